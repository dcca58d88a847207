"""`dump --limit` shows the first rows of the whole dump, though it reads no more than these take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from acidctl.orc.reader import OrcFile
from acidctl.orc.types import OrcType
from tests.orc.writer_data import acid_batch, acid_file

Acidctl = Callable[..., Any]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two original files of one bucket and a delta, all larger than what is asked for."""
    rows = pa.table({"a": pa.array(range(900), pa.int32()), "b": [f"text {i}" for i in range(900)]})
    for name in ("000000_0", "000000_0_copy_1"):
        orc.write_table(rows, tmp_path / name)
    row = OrcType("struct", children=(OrcType("int"), OrcType("string")), names=("a", "b"))
    data, _ = acid_file(
        row, [acid_batch(pa.StructArray.from_arrays([c.combine_chunks() for c in rows.columns], names=["a", "b"]))]
    )
    delta = tmp_path / "delta_0000007_0000007_0000"
    delta.mkdir()
    (delta / "bucket_00000").write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("what", ["", "000000_0", "000000_0_copy_1", "delta_0000007_0000007_0000/bucket_00000"])
@pytest.mark.parametrize(("offset", "limit"), [(0, 1), (0, 100), (7, 100), (890, 20), (5, 2000)])
def test_the_same_lines(acidctl: Acidctl, table: Path, what: str, offset: int, limit: int) -> None:
    for more in ((), ("--decode",), ("--columns", "row.b,rowId"), ("--columns", "rowId"), ("--where", "rowId > 3")):
        whole = acidctl("dump", *more, table / what).lines()
        found = acidctl("dump", *more, "--limit", str(limit), "--offset", str(offset), table / what).lines()
        assert found == whole[offset : offset + limit]


def test_no_stripe_is_read(acidctl: Acidctl, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delta = table / "delta_0000007_0000007_0000"
    expected = acidctl("dump", delta).lines()[:10]

    def refused(*_: object) -> None:
        raise AssertionError("a whole stripe was read")

    monkeypatch.setattr(OrcFile, "read_stripe", refused)
    assert acidctl("dump", "--limit", "10", delta).lines() == expected
