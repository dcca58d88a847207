"""Two committed deltas of one range: Hive 4.0.1 reads both (6 rows), 4.2.1 the later one (3), as measured with both."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compacting import compact_location
from support.files.acid_files import ID, insert, write_acid
from support.tables import read_rows, snapshot_of
from support.validating import check

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import BadDataError
from acidctl.compaction.request import CompactionRequest, Mode
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.validation.findings import Depth

TWINS = "delta_0000001_0000003_v0000013", "delta_0000001_0000003_v0000015"


@pytest.fixture
def twins(tmp_path: Path) -> Path:
    for name in TWINS:
        write_acid(tmp_path / name / "bucket_00000", *[insert(1, at, (at,)) for at in range(3)], row=ID)
    write_acid(tmp_path / "delta_0000004_0000004_0000" / "bucket_00000", insert(4, 0, (40,)), row=ID)
    return tmp_path


def test_they_are_told_and_the_later_one_is_read(twins: Path) -> None:
    assert len(read_rows(twins)) == 4
    [warning] = odd_layout(snapshot_of(twins))
    assert all(name in warning for name in TWINS)
    told = [one for one in check(twins, depth=Depth.LISTING)[0].findings if one.rule == "V10"]
    assert [(one.path, one.evidence) for one in told] == [(TWINS[0], {"others": [TWINS[1]]})]


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_they_are_not_compacted(twins: Path, kind: CompactionKind) -> None:
    with pytest.raises(BadDataError) as refused:
        compact_location(str(twins), CompactionRequest(Mode(kind.value), offline=True, force=True))
    assert "V10" in (refused.value.why or "")
