"""What Hive 4 would misread of tables that Hive 2.3 wrote; judged by their events, read by Arrow alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyarrow import orc
from support.engines.written_by_hive import HIVE23
from support.files.acid_files import delete, insert, write_by_pyorc
from support.tables import snapshot_of
from support.validating import check, found

from acidctl.api import Location
from acidctl.validation.findings import Depth
from acidctl.verbs.compact_options import CompactOptions, WriteOptions

TABLES = sorted(path.name for path in HIVE23.iterdir() if path.is_dir())


def changes(table: Path) -> int:
    """Updates and deletes in current deltas, streams aside."""
    found = 0
    for file in snapshot_of(table).files():
        if file.native_name and file.path.startswith("delta_") and file.flush_length_path is None:
            operations = orc.ORCFile(table / file.path).read(["operation"]).column("operation").to_pylist()
            found += sum(one != 0 for one in operations)
    return found


def must_be_compacted(table: Path) -> bool:
    (report,) = check(table, depth=Depth.FOOTERS, readers=("hive4",))
    return "R13" in found(report)


@pytest.mark.parametrize("name", TABLES)
def test_updates_and_deletes_among_inserts_are_told(name: str, tmp_path: Path) -> None:
    table = Path(shutil.copytree(HIVE23 / name / "table", tmp_path / "t"))
    assert must_be_compacted(table) == bool(changes(table))
    if changes(table):
        before = Location(table).row_digest()
        Location(table, assume_committed=0).compact(CompactOptions(major=True, writing=WriteOptions(reader="hive2")))
        assert not must_be_compacted(table)
        assert Location(table).row_digest() == before


def test_some_of_them_have_changes_and_some_have_none() -> None:
    assert {bool(changes(HIVE23 / name / "table")) for name in TABLES} == {True, False}
    assert "update_chain" in TABLES, "where Hive's own tool asks for a compaction by counts that are wrong"
    assert not changes(HIVE23 / "update_chain" / "table")


def test_files_that_count_no_operations_are_named(tmp_path: Path) -> None:
    write_by_pyorc(
        tmp_path / "t/delta_0000001_0000001",
        [(1, 1, 0, 0, 1, (1, "x"))],
        marker=None,
        metadata={"hive.acid.version": None, "hive.acid.stats": None},
        row_index_stride=0,
    )
    for reader, told in (("hive4", {"R13 warning"}), ("spark", set())):
        (report,) = check(tmp_path / "t", depth=Depth.FOOTERS, readers=(reader,))
        assert {one for one in found(report) if one.startswith("R13")} == told
    (report,) = check(tmp_path / "t", depth=Depth.FOOTERS, readers=("hive4",))
    assert any("do not count their operations" in one.message for one in report.findings)


def test_deletes_that_hive_4_does_not_apply_are_told(tmp_path: Path) -> None:
    write_by_pyorc(tmp_path / "t/delta_0000003_0000003_0000", [insert(3, 0)])
    write_by_pyorc(tmp_path / "t/delete_delta_0000002_0000002_0000", [delete(3, 0, 2)])
    (report,) = check(tmp_path / "t", depth=Depth.DEEP, readers=("hive4",))
    assert "V35" in found(report)
