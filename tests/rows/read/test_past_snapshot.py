"""Rows of an earlier write id whose directories a compaction made obsolete: read while they are there, never wrong."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from support.compacting import run_compaction
from support.files.acid_files import SMALL_GROUPS, ids, write_deletes, write_delta, write_plain
from support.made.random_tables import Made, Rows, write
from support.tables import mark, snapshot_of

import acidctl
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.state import State
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import HistoryError
from acidctl.rows.past.diff import table_difference
from acidctl.rows.scan.table import Table
from acidctl.spark.datasource.load_options import SourceOptions
from acidctl.spark.datasource.table_plan import plan_table

ABORTED = "t:4:9223372036854775807::3"


def rows_of(table: Table, at: int) -> Rows | None:
    """The rows at a write id by their keys; None where they are gone."""
    try:
        scan = table.scan(at=at, row_id=True)
    except HistoryError:
        return None
    found = {}
    for row in scan.to_table().to_pylist():
        key = row.pop("ROW__ID")
        found[key["writeid"], key["bucketid"], key["rowid"]] = row
    assert scan.count() == len(found)
    return found


def of_hive_3(table: Path) -> None:
    """Its markers tell that the table was never converted, so that it had no original files."""
    for directory in table.glob("*delta_*"):
        mark(directory)


@pytest.fixture
def compacted(tmp_path: Path) -> Path:
    """Rows 0, 1, 2 of write id 1, of which 2 deletes the first and 3 the second; 4 inserts; then a major compaction."""
    table = tmp_path / "t"
    table.mkdir()
    write_delta(table, 1, ids(0, 1, 2))
    write_deletes(table, 2, 1, [0])
    write_deletes(table, 3, 1, [1])
    write_delta(table, 4, ids(40, 41))
    of_hive_3(table)
    assert run_compaction(table, CompactionKind.MAJOR) is not None
    return table


def found(table: Path, at: int, write_ids: str | None = None) -> list[int]:
    scan = acidctl.open_table(str(table), snapshot=write_ids).scan(at=at)
    assert scan.count() == scan.to_table().num_rows
    return [row["id"] for row in scan.to_table().to_pylist()]


def test_all_write_ids_as_long_as_nothing_is_cleaned(compacted: Path) -> None:
    assert [found(compacted, at) for at in range(6)] == [
        [], [0, 1, 2], [1, 2], [2], [2, 40, 41], [2, 40, 41],
    ]  # fmt: skip
    assert table_difference(acidctl.open_table(str(compacted)), 1, 3).count() == (2, 0)
    assert table_difference(acidctl.open_table(str(compacted)), 2, 4).count() == (1, 2)
    deleted = acidctl.open_table(str(compacted)).scan(["id"], at=2, deleted=True)
    assert deleted.to_table().column("id").to_pylist() == [0]


@pytest.mark.parametrize(
    ("gone", "lost"),
    [
        ("delta_0000001_0000001_0000", (1, 2, 3)),
        ("delete_delta_0000002_0000002_0000", (1, 2, 3)),
        ("delete_delta_0000003_0000003_0000", (1, 2, 3)),
        ("delta_0000004_0000004_0000", (1, 2, 3)),
    ],
)
def test_one_directory_that_is_gone_is_missed(compacted: Path, gone: str, lost: tuple[int, ...]) -> None:
    shutil.rmtree(compacted / gone)
    for at in lost:
        with pytest.raises(HistoryError) as caught:
            found(compacted, at)
        assert f"write id {at}" in caught.value.what
        assert "base_0000004" in caught.value.why
        assert caught.value.hint == "the oldest write id that can still be read is 4"
    assert found(compacted, 4) == [2, 40, 41]


def test_rows_of_aborted_write_ids_are_no_rows(compacted: Path) -> None:
    """Nobody said so, but the base does not have them: given the list, the rest can be read."""
    write_delta(compacted / "new", 3, ids(77), first_row=5)
    (compacted / "new" / "delta_0000003_0000003_0000").rename(compacted / "delta_0000003_0000003_0001")
    (compacted / "new").rmdir()
    with pytest.raises(HistoryError, match="aborted"):
        found(compacted, 3)
    shutil.rmtree(compacted / "delete_delta_0000003_0000003_0000")
    with pytest.raises(HistoryError, match="aborted"):
        found(compacted, 3)
    shutil.rmtree(compacted / "base_0000004")
    assert run_compaction(compacted, CompactionKind.MAJOR, ValidWriteIds.parse(ABORTED)) is not None
    with pytest.raises(HistoryError, match="aborted"):
        found(compacted, 3)
    assert found(compacted, 3, ABORTED) == [1, 2]


def test_original_files_count_too(tmp_path: Path) -> None:
    write_plain(tmp_path / "000000_0", ids(0, 1), settings=SMALL_GROUPS)
    write_plain(tmp_path / "000000_0_copy_1", ids(2), settings=SMALL_GROUPS)
    write_deletes(tmp_path, 10_000_001, 0, [1])
    write_delta(tmp_path, 10_000_002, ids(5))
    assert run_compaction(tmp_path, CompactionKind.MAJOR) is not None
    assert [found(tmp_path, at) for at in (0, 10_000_000, 10_000_001)] == [[0, 1, 2], [0, 1, 2], [0, 2]]
    (tmp_path / "000000_0").unlink()
    for at in (0, 10_000_001):
        with pytest.raises(HistoryError):
            found(tmp_path, at)


def test_of_a_table_of_hive_2_nothing_tells_that_it_had_no_original_files(compacted: Path) -> None:
    """They may have gone with the delete delta of a write id that updated all of their rows."""
    (compacted / "delta_0000001_0000001_0000" / "_orc_acid_version").unlink()
    with pytest.raises(HistoryError, match="original files may be missing"):
        found(compacted, 2)
    assert found(compacted, 4) == [2, 40, 41]


def test_the_id_of_a_row_that_was_never_here(compacted: Path) -> None:
    """A delete event that names it shows that something is missing, although the base has no such row either."""
    shutil.rmtree(compacted / "delta_0000001_0000001_0000")
    shutil.rmtree(compacted / "base_0000004")
    write_delta(compacted, 1, ids(0, 2))  # as if the second row had lain in another directory
    assert run_compaction(compacted, CompactionKind.MAJOR) is not None
    shutil.rmtree(compacted / "delete_delta_0000003_0000003_0000")
    write_deletes(compacted, 3, 1, [1, 7])
    with pytest.raises(HistoryError):
        found(compacted, 1)


def test_a_wide_delta_of_an_insert_only_table(tmp_path: Path) -> None:
    for write_id in (1, 2, 3):
        write_plain(
            tmp_path / f"delta_{write_id:07}_{write_id:07}_0000" / "000000_0",
            ids(write_id, 10 * write_id),
            settings=SMALL_GROUPS,
        )
    merged = tmp_path / "delta_0000001_0000003_v0000009"
    write_plain(merged / "000000_0", ids(1, 10, 2, 20, 3, 30), settings=SMALL_GROUPS)
    assert [found(tmp_path, at) for at in (0, 1, 2, 3)] == [[], [1, 10], [1, 10, 2, 20], [1, 10, 2, 20, 3, 30]]
    shutil.rmtree(tmp_path / "delta_0000002_0000002_0000")
    assert found(tmp_path, 3) == [1, 10, 2, 20, 3, 30]
    for at in (1, 2):
        with pytest.raises(HistoryError):
            found(tmp_path, at)


def test_a_base_that_hive_2_left_without_a_mark(compacted: Path) -> None:
    """It looks like an INSERT OVERWRITE's, but its rows are of several write ids."""
    (compacted / "base_0000004" / "_metadata_acid").unlink()
    assert found(compacted, 2) == [1, 2]
    shutil.rmtree(compacted / "delete_delta_0000002_0000002_0000")
    with pytest.raises(HistoryError):
        found(compacted, 3)


def test_what_an_insert_overwrite_replaced(tmp_path: Path) -> None:
    for write_id in (1, 2):
        write_delta(tmp_path, write_id, ids(write_id))
    write_delta(tmp_path, 3, ids(30), base=True)
    of_hive_3(tmp_path)
    assert [found(tmp_path, at) for at in range(4)] == [[], [1], [1, 2], [30]]
    shutil.rmtree(tmp_path / "delta_0000001_0000001_0000")
    for at in (1, 2):
        with pytest.raises(HistoryError, match="write id 1"):
            found(tmp_path, at)


def test_a_base_that_cannot_be_read_proves_nothing(compacted: Path) -> None:
    (compacted / "base_0000004" / "bucket_00000").write_bytes(b"no ORC")
    with pytest.raises(HistoryError, match="cannot be compared"):
        found(compacted, 2)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(30))
def test_after_any_cleaning_a_write_id_is_whole_or_gone(tmp_path: Path, seed: int) -> None:
    """Write ids go whole, but for one at which the cleaning stopped, and older bases before them."""
    choice = random.Random(f"past {seed}")
    made = Made(tmp_path / "t")
    made.path.mkdir()
    for _ in range(9):
        kind = choice.choice(["insert", "update", "update", "delete", "mixed", "minor", "major"])
        if kind in ("minor", "major"):
            if made.last:
                run_compaction(made.path, CompactionKind(kind))
        else:
            write(made, choice, kind)
    table = acidctl.open_table(str(made.path))
    whole = all(write_id in {*made.inserts, *made.deletes} for write_id in range(1, made.last + 1))
    for at in range(made.last + 1):
        rows = rows_of(table, at)
        assert rows == made.rows_at(at) if rows is not None else not whole
    going = [verdict.name for verdict in snapshot_of(made.path).state.in_state(State.OBSOLETE)]
    bases = [name for name in going if name.startswith("base")]
    ranges = sorted({name.removeprefix("delete_").removeprefix("delta_") for name in going if name not in bases})
    gone = [one for one in ranges if choice.random() < 0.4]
    removed = bases if gone else []
    for number, one in enumerate(gone):
        twins = [name for name in going if name.endswith(f"delta_{one}")]
        removed = removed + (twins[: choice.randint(1, 2)] if number == 0 else twins)
    for name in removed:
        shutil.rmtree(made.path / name)
    for at in range(made.last + 1):
        rows = rows_of(table, at)
        assert rows is None or rows == made.rows_at(at), (at, removed)


def test_the_spark_source_reads_the_same_directories(compacted: Path) -> None:
    plan = plan_table(SourceOptions.parse({"path": str(compacted), "at": "2"}))
    assert [file.path.partition("/")[0] for file in plan.locations[0].files] == [
        "delta_0000001_0000001_0000",
        "delete_delta_0000002_0000002_0000",
    ]
    shutil.rmtree(compacted / "delta_0000001_0000001_0000")
    with pytest.raises(HistoryError):
        plan_table(SourceOptions.parse({"path": str(compacted), "at": "2"}))
