"""How many rows an empty result lacks, against a model: those that were inserted, and not deleted, by then."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.files.acid_files import delete, insert, write_by_pyorc, write_plain
from support.repairing import FS
from support.work import calls_of

from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.location.snapshot import take_snapshot
from acidctl.rows.read.lost_rows import find_lost_rows

ROWS = 3
LAST = 5
DELETES = st.dictionaries(st.tuples(st.integers(1, LAST), st.integers(0, ROWS - 1)), st.integers(2, LAST), max_size=9)


def write(table: Path, deletes: dict[tuple[int, int], int]) -> None:
    """Three rows of each write id, and delete events of a later one, which a key has one of."""
    for write_id in range(1, LAST + 1):
        write_by_pyorc(
            table / f"delta_{write_id:07d}_{write_id:07d}_0000", [insert(write_id, row) for row in range(ROWS)]
        )
        gone = sorted(key for key, by in deletes.items() if by == write_id)
        if gone:
            events = [delete(original, row, write_id) for original, row in gone]
            write_by_pyorc(table / f"delete_delta_{write_id:07d}_{write_id:07d}_0001", events)


@settings(max_examples=60)
@given(DELETES, st.sets(st.integers(1, LAST)), st.integers(1, LAST), st.booleans())
def test_as_many_as_a_reader_of_then_sees(
    deletes: dict[tuple[int, int], int], aborted: set[int], last: int, is_base: bool
) -> None:
    deletes = {key: by for key, by in deletes.items() if by > key[0]}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "t")
        write(table, deletes)
        name = f"base_{last:07d}_v0000007" if is_base else f"delta_0000001_{last:07d}_v0000007"
        (table / name).mkdir()
        (table / name / "_orc_acid_version").write_text("2")
        ids = ValidWriteIds(high_watermark=LAST, aborted=tuple(sorted(aborted)))
        snapshot = take_snapshot(FS, str(table), ids, ValidTxns(high_watermark=99))
        dead = {key for key, by in deletes.items() if by <= last and by not in aborted}
        live = {(w, row) for w in range(1, last + 1) for row in range(ROWS) if w not in aborted} - dead
        found = [(lost.rows, lost.deletes) for lost in find_lost_rows(snapshot)]
        hides = any(one.name in snapshot.state.current_names for one in map(Path, [name]))
        # A minor compaction writes two directories: one alone hides delete events, too.
        events = 0 if is_base else sum(1 for by in deletes.values() if by <= last and by not in aborted)
        assert found == ([(len(live), events)] if (live or events) and hides else [])


def test_rows_of_others_are_not_counted(tmp_path: Path) -> None:
    """A base below an empty delta holds its rows as ever."""
    write_by_pyorc(tmp_path / "base_0000001", [insert(1, row) for row in range(ROWS)])
    write_by_pyorc(tmp_path / "delta_0000002_0000002_0000", [insert(2, row) for row in range(ROWS)])
    (tmp_path / "delta_0000002_0000003_v0000007").mkdir()
    (tmp_path / "delta_0000002_0000003_v0000007/_orc_acid_version").write_text("2")
    snapshot = take_snapshot(FS, str(tmp_path), ValidWriteIds(high_watermark=LAST), ValidTxns(high_watermark=99))
    assert [(lost.rows, lost.deletes) for lost in find_lost_rows(snapshot)] == [(ROWS, 0)]


@pytest.mark.parametrize("kind", ["delta", "delete_delta"])
def test_half_of_a_minor_compaction_hides_both_kinds(tmp_path: Path, kind: str) -> None:
    """As a repair leaves it that was killed between two renames."""
    write_by_pyorc(tmp_path / "base_0000001", [insert(1, row) for row in range(ROWS)])
    write_by_pyorc(tmp_path / "delta_0000002_0000002_0000", [insert(2, row) for row in range(ROWS)])
    write_by_pyorc(tmp_path / "delete_delta_0000003_0000003_0000", [delete(1, 0, 3), delete(2, 0, 3)])
    name = f"{kind}_0000002_0000003_v0000007"
    (tmp_path / name).mkdir()
    (tmp_path / name / "_orc_acid_version").write_text("2")
    snapshot = take_snapshot(FS, str(tmp_path), ValidWriteIds(high_watermark=LAST), ValidTxns(high_watermark=99))
    assert [(lost.rows, lost.deletes) for lost in find_lost_rows(snapshot)] == [(ROWS - 1, 2)]


@pytest.mark.parametrize("base", ["base_0000003_v0000007", "base_-9223372036854775808_v0000007"])
def test_originals_are_rows_that_can_be_lost(tmp_path: Path, base: str) -> None:
    write_plain(tmp_path / "000000_0", (1, 2), (3, 4))
    (tmp_path / base).mkdir()
    (tmp_path / base / "_orc_acid_version").write_text("2")
    snapshot = take_snapshot(FS, str(tmp_path), ValidWriteIds(high_watermark=LAST), ValidTxns(high_watermark=99))
    assert [(lost.rows, lost.deletes) for lost in find_lost_rows(snapshot)] == [(2, 0)]


def empty_base(table: Path, write_id: int, txn: int) -> str:
    marker = table / f"base_{write_id:07d}_v{txn:07d}" / "_orc_acid_version"
    marker.parent.mkdir()
    marker.write_text("2")
    return marker.parent.name


def lost_in(table: Path) -> dict[str, int | None]:
    snapshot = take_snapshot(FS, str(table), ValidWriteIds(high_watermark=LAST), ValidTxns(high_watermark=99))
    return {lost.result.name: lost.rows for lost in find_lost_rows(snapshot)}


@pytest.mark.parametrize(
    ("second_base", "missed"),
    [((2,), ROWS), ((1, 2), 0), ((), ROWS), ((1,), 0)],
    ids=["lacks them, too", "has all rows", "is empty itself", "has the first rows alone"],
)
def test_rows_of_an_empty_base_are_missed_unless_what_hides_it_has_them(
    tmp_path: Path, second_base: tuple[int, ...], missed: int
) -> None:
    """The second base was made from the first, or from its inputs before the first one was committed."""
    for write_id in (1, 2):
        write_by_pyorc(
            tmp_path / f"delta_{write_id:07d}_{write_id:07d}_0000", [insert(write_id, r) for r in range(ROWS)]
        )
    first = empty_base(tmp_path, 1, 7)
    if second_base:
        write_by_pyorc(tmp_path / "base_0000002_v0000008", [insert(w, r) for w in second_base for r in range(ROWS)])
    lost = {} if second_base else {empty_base(tmp_path, 2, 8): 2 * ROWS}
    assert lost_in(tmp_path) == lost | ({first: missed} if missed else {})


@pytest.mark.parametrize("deleted", range(ROWS + 1))
def test_rows_of_an_empty_base_that_were_deleted_since_are_not_missed(tmp_path: Path, deleted: int) -> None:
    """The second base has no rows because all of them were deleted, so that nothing hides behind it."""
    write_by_pyorc(tmp_path / "delta_0000001_0000001_0000", [insert(1, row) for row in range(ROWS)])
    first = empty_base(tmp_path, 1, 7)
    if deleted:
        write_by_pyorc(tmp_path / "delete_delta_0000002_0000002_0000", [delete(1, row, 2) for row in range(deleted)])
    second, missed = empty_base(tmp_path, 2, 8), ROWS - deleted
    assert lost_in(tmp_path) == ({first: missed, second: missed} if missed else {})


def test_the_work_grows_as_empty_results_do(tmp_path: Path) -> None:
    """Each replaced two deltas, and a wide delete delta lies across all of them."""

    def work(size: int) -> int:
        table = tmp_path / str(size)
        first = table / "delta_0000001_0000001_0000"
        write_by_pyorc(first, [insert(1, row) for row in range(ROWS)])
        for number in range(2, 2 * size + 1):
            shutil.copytree(first, table / f"delta_{number:07d}_{number:07d}_0000", copy_function=os.link)
        for number in range(1, 2 * size, 2):
            marker = table / f"delta_{number:07d}_{number + 1:07d}_v0000007" / "_orc_acid_version"
            marker.parent.mkdir()
            marker.write_text("2")
        write_by_pyorc(table / f"delete_delta_0000001_{2 * size:07d}", [delete(1, 0, 2)])
        snapshot = take_snapshot(FS, str(table), ValidWriteIds(2 * size), ValidTxns(high_watermark=99))
        return calls_of(lambda: list(find_lost_rows(snapshot)))

    assert work(32) < 5 * work(8)
