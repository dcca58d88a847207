"""Ids written as runs, as the reference sees them: Java ORC in Spark's jars."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.files.run_columns import events, written
from support.judge.hive import Hive
from support.judge.java_orc import JavaOrc, java_orc_complaints

from acidctl.orc.write.writer_settings import CODECS

pytestmark = pytest.mark.spark


@pytest.mark.sampled
@pytest.mark.parametrize("compression", CODECS)
def test_java_reads_ids_written_as_runs(compression: str, hive: Hive, tmp_path: Path) -> None:
    """Runs, single values, pairs; a change of the write id inside a group of rows; seeks, push-down, statistics."""
    gone = np.r_[np.arange(0, 3_000, 700), 1401, 1403, 2_000:2_300]
    row_ids = np.delete(np.arange(3_000), gone)
    batch = events(row_ids, np.where(row_ids < 1_111, 3, 9), 12)
    path = tmp_path / "bucket_00000"
    path.write_bytes(written(batch, compression, 250))
    assert java_orc_complaints(hive, [path]) == []
    file = JavaOrc(hive, path)
    assert file.seek_check(samples=20) == []
    assert [row["rowId"] for row in file.rows()] == row_ids.tolist()
