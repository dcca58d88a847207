"""What a newer Hive needs first, of tables that Hive 2.3 wrote; judged by their events, read by Arrow alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyarrow import orc
from support.engines.written_by_hive import HIVE23
from support.files.acid_files import AB, insert, write_acid, write_plain
from support.tables import snapshot_of

from acidctl.api import Location
from acidctl.upgrade.needs import Need
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


@pytest.mark.parametrize("name", TABLES)
def test_updates_and_deletes_among_inserts_are_told(name: str, tmp_path: Path) -> None:
    table = Path(shutil.copytree(HIVE23 / name / "table", tmp_path / "t"))
    needs = Location(table).upgrade_check()
    assert needs.needs(Need.COMPACT) == bool(changes(table))
    assert needs.events == changes(table)
    if needs.needs(Need.COMPACT):
        before = Location(table).row_digest()
        Location(table, assume_committed=0).compact(CompactOptions(major=True, writing=WriteOptions(reader="hive2")))
        after = Location(table).row_digest()
        assert not Location(table).upgrade_check().needs(Need.COMPACT)
        assert (before.rows, before.values, before.row_ids) == (after.rows, after.values, after.row_ids)


def test_some_of_them_have_changes_and_some_have_none() -> None:
    assert {bool(changes(HIVE23 / name / "table")) for name in TABLES} == {True, False}


def test_counts_that_are_wrong_do_not_ask_for_a_compaction(tmp_path: Path) -> None:
    table = shutil.copytree(HIVE23 / "update_chain" / "table", tmp_path / "t")
    needs = Location(table).upgrade_check()
    assert needs.needs(Need.COUNTED)
    assert needs.is_ready


def test_names_of_originals_and_streams(tmp_path: Path) -> None:
    for name in ("000000_0", "000000_0_copy_1", "part-00001.orc", "HIVE_UNION_SUBDIR_1/000000_0"):
        write_plain(tmp_path / name, (1, 1), row=AB)
    path = write_acid(tmp_path / "delta_0000001_0000005" / "bucket_00000", insert(1, 0, (1, 1)), row=AB)
    path.with_name("bucket_00000_flush_length").write_bytes(path.stat().st_size.to_bytes(8, "big"))
    found = {finding.need: finding.count for finding in Location(tmp_path).upgrade_check().findings}
    assert found == {Need.ODD_NAMES: 1, Need.COPIES: 1, Need.NESTED: 1, Need.STREAM: 1}


def test_what_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    path = write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, 1)), row=AB)
    assert Location(tmp_path).upgrade_check().is_ready
    path.write_bytes(path.read_bytes()[:80])
    needs = Location(tmp_path).upgrade_check()
    assert needs.needs(Need.NOT_KNOWN)
    assert not needs.is_ready
