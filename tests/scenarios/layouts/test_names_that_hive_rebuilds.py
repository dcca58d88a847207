"""Names and places by which Hive 3 and 4 read different rows: told, found by `validate`, and not compacted."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compacting import compact_location
from support.files.acid_files import B1, delete, insert, write_acid, write_plain
from support.tables import read_rows, snapshot_of
from support.validating import check

from acidctl import open_table
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import Entry, Listing, TableType
from acidctl.acid.reasons import Code
from acidctl.acid.state import select
from acidctl.acid.unfinished import layout_problems
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import BadDataError
from acidctl.compaction.request import CompactionRequest, Mode
from acidctl.location.snapshot import list_location, take_snapshot
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.storage.registry import open_location
from acidctl.validation.findings import Depth

D1, D3 = "delta_0000001_0000001_0000", "delta_0000003_0000003_0000"
DELETES = "delete_delta_0000002_0000002_0000"


def with_deletes_in(table: Path, name: str) -> Path:
    write_acid(table / D1 / "bucket_00000", insert(1, 0, (1, "a")), insert(1, 1, (2, "b")))
    write_acid(table / DELETES / name, delete(1, 0, 2))
    write_acid(table / D3 / "bucket_00000", insert(3, 0, (3, "c")))
    return table


@pytest.mark.parametrize(
    "name", ["bucket_0", "bucket_000000", "bucket_00000_07", "bucket_0_7", "bucket_00000_9999999999"]
)
def test_deletes_that_hive_4_does_not_find_are_told_and_not_compacted(tmp_path: Path, name: str) -> None:
    table = with_deletes_in(tmp_path, name)
    [warning] = odd_layout(snapshot_of(table))
    assert f"{DELETES}/{name}" in warning
    found = [(one.rule, one.path) for one in check(table, depth=Depth.LISTING)[0].findings]
    assert ("V1", f"{DELETES}/{name}") in found
    for kind in CompactionKind:
        with pytest.raises(BadDataError) as refused:
            compact_location(str(table), CompactionRequest(Mode(kind.value), offline=True, force=True))
        assert "V1" in (refused.value.why or "")
    assert [row["a"] for _, row in read_rows(table)] == [2, 3]


@pytest.mark.parametrize("name", ["bucket_00000", "bucket_00000_7", "bucket_00000_0"])
def test_deletes_that_every_hive_finds_are_compacted(tmp_path: Path, name: str) -> None:
    table = with_deletes_in(tmp_path, name)
    assert odd_layout(snapshot_of(table)) == []
    assert compact_location(str(table), CompactionRequest(Mode.MAJOR, offline=True, force=True))


def test_rows_in_a_file_whose_number_is_not_padded_are_read_by_every_hive(tmp_path: Path) -> None:
    write_acid(tmp_path / D1 / "bucket_0", insert(1, 0, (1, "a")))
    write_acid(tmp_path / DELETES / "bucket_00000", delete(1, 0, 2))
    assert layout_problems(snapshot_of(tmp_path).listing, snapshot_of(tmp_path).state) == []


def problems_of(
    *files: str, table_type: TableType | None = None, partitions: tuple[str, ...] = ()
) -> list[tuple[str, str, Code]]:
    folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
    entries = sorted([*(Entry(p, 9, 1.0, False) for p in files), *(Entry(p, 0, 1.0, True) for p in folders)])
    listing = Listing("/t", tuple(entries), table_type, partitions)
    state = select(listing, ValidWriteIds(), None, {})
    return [(one.rule, one.path, one.reason.code) for one in layout_problems(listing, state)]


def test_a_folder_of_a_key_beside_deltas_of_an_insert_only_table_is_a_problem() -> None:
    files = f"{D1}/000000_0", f"{D3}/000000_0"
    assert problems_of(*files, table_type=TableType.INSERT_ONLY) == []
    assert problems_of(*files, table_type=TableType.INSERT_ONLY, partitions=("k=1",)) == [
        ("V45", "k=1", Code.PARTITION_BESIDE)
    ]


@pytest.mark.parametrize("table_type", [None, *TableType])
@pytest.mark.parametrize("folder", ["sub", "a/b", "a/k=1"])
@pytest.mark.parametrize("directory", ["delta_0000002_0000002_0000", "base_0000002", DELETES])
def test_an_acid_directory_in_a_folder_is_a_problem(table_type: TableType | None, folder: str, directory: str) -> None:
    name = "000000_0" if table_type is TableType.INSERT_ONLY else "bucket_00000"
    found = problems_of(f"{D1}/{name}", f"{folder}/{directory}/{name}", table_type=table_type)
    assert ("V45", f"{folder}/{directory}", Code.DEEP_DIRECTORY) in found


def test_a_folder_of_tables_is_not_a_location_with_a_problem() -> None:
    assert problems_of(f"t1/{D1}/bucket_00000", f"t2/{D1}/bucket_00000") == []


def test_a_delta_in_a_folder_of_an_insert_only_table_is_told_once(tmp_path: Path) -> None:
    for path in (D1, "sub/delta_0000002_0000002_0000", D3):
        write_plain(tmp_path / path / "000000_0", (1, "a"))
    fs, path = open_location(str(tmp_path))
    look = list_location(fs, path).of_type(TableType.INSERT_ONLY)
    [warning] = odd_layout(take_snapshot(fs, path, look=look))
    assert "sub/delta_0000002_0000002_0000" in warning


@pytest.mark.parametrize(("directory", "how"), [("base_0000001", "beside-in-base"), (D1, "beside")])
def test_a_file_of_another_name_beside_bucket_files_is_read_by_its_directory(
    tmp_path: Path, directory: str, how: str
) -> None:
    for name in ("bucket_00000", "000000_0"):
        write_acid(tmp_path / directory / name, insert(1, len(name), (1, "a")))
    snapshot = snapshot_of(tmp_path)
    [problem] = layout_problems(snapshot.listing, snapshot.state)
    assert (problem.rule, problem.reason.value("how")) == ("V25", how)


def test_deletes_in_the_file_of_another_bucket_are_told_and_found_by_footers(tmp_path: Path) -> None:
    write_acid(tmp_path / D1 / "bucket_00001", insert(1, 0, (1, "a"), bucket=B1), insert(1, 1, (2, "b"), bucket=B1))
    write_acid(tmp_path / DELETES / "bucket_00000", delete(1, 0, 2, bucket=B1))
    [warning] = open_table(str(tmp_path)).scan().warnings
    assert f"{DELETES}/bucket_00000" in warning
    for depth in (Depth.FOOTERS, Depth.DEEP):
        found = [one.path for one in check(tmp_path, depth=depth)[0].findings if one.rule == "V21"]
        assert found == [f"{DELETES}/bucket_00000"]


def test_deletes_in_the_file_of_their_bucket_are_not_told(tmp_path: Path) -> None:
    write_acid(tmp_path / D1 / "bucket_00001", insert(1, 0, (1, "a"), bucket=B1), insert(1, 1, (2, "b"), bucket=B1))
    write_acid(tmp_path / DELETES / "bucket_00001", delete(1, 0, 2, bucket=B1))
    assert open_table(str(tmp_path)).scan().warnings == []
