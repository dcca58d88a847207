"""Odd layouts beside what both Hives read of them: nothing is read otherwise without a word, nor compacted."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.made.layouts import LayoutCase, layout_cases
from support.tables import json_rows

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import AcidctlError
from acidctl.compaction.request import CompactionRequest, Mode, Planned, carry_out, plan_location
from acidctl.location.change.lock import Locking
from acidctl.location.metastore_schema import Declared, TextLayout
from acidctl.location.snapshot import Snapshot
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec
from acidctl.location.table_location import TableLocation
from acidctl.location.walk import WalkedLocation
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.rows.scan.scan import Scan
from acidctl.storage.registry import open_location
from acidctl.validation.findings import Depth, Severity
from acidctl.validation.report import CheckOptions, LocationToCheck
from acidctl.validation.run import check_locations

RESOLVER = SnapshotResolver(SnapshotSpec(of_any_table=ValidWriteIds(5)))
CASES = layout_cases()
COLUMNS = (("a", "int"),)
DECLARED = {
    "mm_text": Declared(COLUMNS, "text", TextLayout(COLUMNS)),
    "mm_orc": Declared(COLUMNS, "ORC"),
    "mm_parquet": Declared(COLUMNS, "Parquet"),
}


def found_at(case: LayoutCase, path: Path) -> TableLocation:
    fs, inner = open_location(str(path))
    return TableLocation(
        fs, WalkedLocation(inner, "t"), True, RESOLVER, given_type=case.table_type, declared=DECLARED.get(case.table)
    )


def rows_of(snapshot: Snapshot) -> str:
    """As a line of the data has them."""
    try:
        return " ".join(sorted("NULL" if row["a"] is None else str(row["a"]) for row in json_rows(Scan(snapshot))))
    except AcidctlError:
        return "error"


def named(found: TableLocation, snapshot: Snapshot) -> bool:
    """Whether `ls` and `cat` warn, and `validate` finds an error without looking into files."""
    place = LocationToCheck(found.fs, snapshot.path, snapshot.write_ids, listing=found.look)
    (report,) = check_locations([place], CheckOptions(Depth.LISTING))
    errors = [one.rule for one in report.findings if one.severity in (Severity.ERROR, Severity.WARNING)]
    return bool(errors) and bool(odd_layout(snapshot))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.table} {case.name}")
def test_what_hive_reads_is_read_and_kept(case: LayoutCase, tmp_path: Path) -> None:
    found = found_at(case, case.build(tmp_path / "t"))
    snapshot = found.snapshot(refresh=False)
    # With MapReduce Hive 3 does not look into folders, not even into those that it makes for a UNION ALL with Tez.
    hives = {case.hive4} if "HIVE_UNION" in case.name and not case.is_full else {case.hive3, case.hive4}
    ours = rows_of(snapshot)
    assert hives == {ours} or ours == "error" or named(found, snapshot), (ours, hives)
    for kind in CompactionKind:
        request = CompactionRequest(
            Mode(kind.value), table_type=case.table_type, force=True, offline=True, locking=Locking(hold=False)
        )
        planned = plan_location(found.reload(), request)
        if not isinstance(planned, Planned):
            continue
        assert hives == {ours}, (kind, ours, hives)
        (outcome,) = carry_out([planned], request)
        if outcome.error is None:
            assert rows_of(found.reload().snapshot(refresh=False)) == ours
        break
