"""Two committed deltas of one range: Hive 4.0.1 reads both (6 rows), 4.2.1 the later one (3), as measured with both."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compacting import compact_location
from support.files.acid_files import ID, insert, write_acid
from support.tables import read_rows, snapshot_of
from support.validating import check

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.reasons import Code
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import BadDataError
from acidctl.cleaning.plan import plan_cleaning
from acidctl.cleaning.retention import Policy
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


def test_twins_of_deletes_return_no_row_twice(twins: Path) -> None:
    """Two sets of deletes apply as one."""
    for name in TWINS:
        (twins / name).rename(twins / f"delete_{name}")
    [warning] = odd_layout(snapshot_of(twins))
    assert "applies the deletes of both" in warning
    assert "twice" not in warning


BASES = "base_0000003_v0000013", "base_0000003_v0000015"


@pytest.fixture
def bases(tmp_path: Path) -> Path:
    for count, name in enumerate(BASES, 1):
        write_acid(tmp_path / name / "bucket_00000", *[insert(1, at, (at,)) for at in range(count)], row=ID)
    write_acid(tmp_path / "delta_0000004_0000004_0000" / "bucket_00000", insert(4, 0, (40,)), row=ID)
    return tmp_path


def test_two_bases_of_one_end_are_told_and_not_compacted(bases: Path) -> None:
    [warning] = odd_layout(snapshot_of(bases))
    assert all(name in warning for name in BASES)
    told = [one for one in check(bases, depth=Depth.LISTING)[0].findings if one.rule == "V10"]
    assert [(one.path, one.evidence) for one in told] == [(BASES[0], {"others": [BASES[1]]})]
    with pytest.raises(BadDataError, match=BASES[0]):
        compact_location(str(bases), CompactionRequest(Mode.MAJOR, offline=True, force=True))


def test_an_overwrite_and_a_compaction_of_one_write_id_are_no_twins(tmp_path: Path) -> None:
    """Hive always takes the compaction's."""
    for name in ("base_0000003", "base_0000003_v0000015"):
        write_acid(tmp_path / name / "bucket_00000", insert(3, 0, (1,)), row=ID)
    assert not odd_layout(snapshot_of(tmp_path))


@pytest.mark.parametrize("names", [TWINS, BASES])
def test_cleaning_keeps_both_until_something_else_hides_them(
    names: tuple[str, str], twins: Path, request: pytest.FixtureRequest
) -> None:
    table = twins if names is TWINS else request.getfixturevalue("bases")
    lists = ValidWriteIds.parse(f"default.{table.name}:4:{2**63 - 1}::"), ValidTxns.parse(f"20:{2**63 - 1}::")
    everything = Policy(older_than=0)
    plan = plan_cleaning(snapshot_of(table, *lists), everything)
    assert set(names).isdisjoint(plan.names)
    assert {name: why.code for name, why in plan.kept_back} == {names[0]: Code.OVERLAP}
    write_acid(table / "base_0000004_v0000016" / "bucket_00000", insert(1, 0, (0,)), row=ID)
    assert set(names) <= set(plan_cleaning(snapshot_of(table, *lists), everything).names)
