"""What every write id did, against the past that was written down, and against the events of all directories."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compacting import copy_table, run_compaction
from support.engines.written_by_hive import HIVE23
from support.files.acid_files import (
    B0,
    B1,
    SMALL_GROUPS,
    delete,
    insert,
    write_acid,
    write_delta,
    write_plain,
)
from support.made.past import events_below, remove_obsolete, walkthrough
from support.made.random_tables import make_table
from support.tables import snapshot_of

from acidctl.acid.bucket import encode
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import Listing
from acidctl.acid.writeids import ValidWriteIds
from acidctl.demo.walkthrough import ROW
from acidctl.rows.past.blame import blame, parse_row_id
from acidctl.rows.past.history import WriteIdHistory, _Covered, read_history
from acidctl.rows.scan.event_dump import event_files_at
from acidctl.rows.scan.scan import Scan
from acidctl.storage.registry import open_location


def counts(line: WriteIdHistory) -> tuple[int, int | None, int | None]:
    return line.inserted, line.updated, line.deleted


def test_walkthrough_is_told_by_footers_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = walkthrough(tmp_path / "t")
    with monkeypatch.context() as patch:
        patch.setattr("acidctl.rows.read.events.EventReader.ids", None)  # footers are enough
        found = read_history(snapshot_of(table))
    assert {line.write_id: counts(line) for line in found.write_ids} == {1: (3, 0, 0), 2: (0, 1, 0), 3: (0, 0, 1)}
    assert found.unknown_below is None
    assert found.write_ids[0].directories == ("delta_0000001_0000001_0000",)
    assert all(line.modified and line.state == "committed" for line in found.write_ids)


def test_a_base_hides_what_was_deleted(tmp_path: Path) -> None:
    table = walkthrough(tmp_path / "t")
    before = read_history(snapshot_of(table))
    run_compaction(table, CompactionKind.MAJOR)
    assert read_history(snapshot_of(table)) == before, "what is obsolete is history still"
    remove_obsolete(table)
    found = read_history(snapshot_of(table))
    assert found.unknown_below == 4
    (line,) = found.write_ids
    assert (line.write_id, counts(line), line.is_complete) == (1, (2, None, None), False)
    assert line.compacted_into == ("base_0000003",)
    assert line.modified is None


def test_an_overwrite_is_a_write_id_like_others(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pydict({"id": pa.array([7, 8], pa.int32()), "value": ["x", "y"]})
    table = walkthrough(tmp_path / "t")
    write_delta(table, 4, batch, row=ROW, base=True)
    found = read_history(snapshot_of(table))
    assert found.unknown_below is None
    assert (counts(found.write_ids[-1]), found.write_ids[-1].directories) == ((2, 0, 0), ("base_0000004",))
    remove_obsolete(table)
    found = read_history(snapshot_of(table))
    assert (len(found.write_ids), found.unknown_below) == (1, 4)
    assert found.write_ids[0].is_complete


def test_a_minor_compaction_hides_nothing(tmp_path: Path) -> None:
    table = walkthrough(tmp_path / "t")
    run_compaction(table, CompactionKind.MINOR)
    remove_obsolete(table)
    found = read_history(snapshot_of(table))
    assert {line.write_id: counts(line) for line in found.write_ids} == {1: (3, 0, 0), 2: (0, 1, 0), 3: (0, 0, 1)}
    assert found.write_ids[1].compacted_into == ("delete_delta_0000001_0000003", "delta_0000001_0000003")


def copied_deletes(table: Path, name: str = "delete_delta_0000001_0000004") -> Path:
    """What the minor compaction of Hive 3.1 leaves of a table without buckets: every delete event in each file."""
    for bucket, value in enumerate((B0, B1, encode(2))):
        rows = [insert(1, row, bucket=value) for row in range(9)]
        write_acid(table / "delta_0000001_0000004" / f"bucket_{bucket:05}", *rows)
        events = [delete(1, row, 2 + row % 3, one) for one in (B0, B1, encode(2)) for row in range(0, 9, 2)]
        write_acid(table / name / f"bucket_{bucket:05}", *events)
    return table


@pytest.mark.parametrize("unsettled", [1, 20, 1 << 20])
def test_delete_events_that_lie_in_each_file_are_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unsettled: int
) -> None:
    monkeypatch.setattr("acidctl.rows.past.history._UNSETTLED", unsettled)
    found = read_history(snapshot_of(copied_deletes(tmp_path)))
    # Row ids 0, 6; 4; 2, 8, in each of three buckets.
    assert {line.write_id: counts(line) for line in found.write_ids} == {
        1: (27, 0, 0), 2: (0, 0, 6), 3: (0, 0, 3), 4: (0, 0, 6)
    }  # fmt: skip
    key = f"1:{B1}:4"
    row = blame(snapshot_of(tmp_path), parse_row_id(key))
    assert [(one.write_id, one.is_rewritten) for one in row.changes] == [(3, True)] * 3
    assert row.status == "deleted"
    assert Scan(snapshot_of(tmp_path)).count() == 12
    assert Scan(snapshot_of(tmp_path), deleted=True).count() == 15


def test_delete_events_of_one_write_id_that_lie_in_each_file_are_counted_once(tmp_path: Path) -> None:
    write_acid(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", *(insert(1, row) for row in range(5)))
    for bucket in range(2):
        events = [delete(1, row, 2) for row in range(4)]
        write_acid(tmp_path / "delete_delta_0000002_0000002" / f"bucket_{bucket:05}", *events)
    found = read_history(snapshot_of(tmp_path))
    assert [counts(line) for line in found.write_ids] == [(5, 0, 0), (0, 0, 4)]


def test_files_of_their_own_buckets_hold_no_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for bucket, value in enumerate((B0, B1)):
        events = [delete(1, row, 3, value) for row in range(4)]
        write_acid(tmp_path / "delete_delta_0000002_0000004" / f"bucket_{bucket:05}", *events)
    monkeypatch.setattr("acidctl.rows.read.events.EventReader.ids", None)  # footers are enough
    (line,) = read_history(snapshot_of(tmp_path)).write_ids
    assert counts(line) == (0, 0, 8)


def streamed(own_data: Path, path: Path) -> Path:
    """What Hive's streaming writer left: write ids 1 to 3, a stripe each, its intermediate footers between them."""
    return copy_table(own_data / "hive23-written" / "streaming_batch" / "table", path)


def where(line: WriteIdHistory) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    return line.directories, line.compacted_into, line.held_in


def test_a_closed_streaming_batch_is_no_compaction(own_data: Path, tmp_path: Path) -> None:
    table = streamed(own_data, tmp_path / "t")
    found = read_history(snapshot_of(table))
    assert [counts(line) for line in found.write_ids] == [(3, 0, 0), (2, 0, 0), (4, 0, 0)]
    assert {where(line) for line in found.write_ids} == {((), (), ("delta_0000001_0000003",))}
    row = blame(snapshot_of(table), parse_row_id("1:0:0"))
    assert [one.is_rewritten for one in row.inserts] == [False]


def test_a_streaming_batch_written_by_hive_3(shared_data: Path) -> None:
    found = read_history(snapshot_of(shared_data / "hive-written" / "streaming-two-txns" / "table"))
    assert {where(line) for line in found.write_ids} == {((), (), ("delta_0000001_0000002",))}


@pytest.mark.parametrize(
    ("beside", "name", "expected"),
    [
        ("", "delta_0000001_0000003_v0000012", "compacted"),
        ("", "delta_0000001_0000003_0000", "own"),
        ("delta_0000002_0000002_0000", "delta_0000001_0000003", "compacted"),
        ("delete_delta_0000001_0000003", "delta_0000001_0000003", "compacted"),
        ("delta_0000004_0000004_0000", "delta_0000001_0000003", "held"),
    ],
)
def test_names_that_tell_who_wrote_it(own_data: Path, tmp_path: Path, beside: str, name: str, expected: str) -> None:
    table = streamed(own_data, tmp_path / "t")
    (table / "delta_0000001_0000003").rename(table / name)
    if beside:
        (table / beside).mkdir()
        shutil.copy(table / name / "bucket_00000", table / beside)
    line = next(line for line in read_history(snapshot_of(table)).write_ids if line.write_id == 1)
    directories, compacted, held = where(line)
    filled = zip(("own", "compacted", "held"), (directories, compacted, held), strict=True)
    assert [kind for kind, names in filled if names] == [expected]


def test_originals_and_states_of_write_ids_are_listed(tmp_path: Path) -> None:
    table = walkthrough(tmp_path / "t")
    batch = pa.RecordBatch.from_pydict({"id": pa.array([7, 8], pa.int32()), "value": ["x", "y"]})
    write_plain(table / "000000_0", batch, row=ROW, settings=SMALL_GROUPS)
    lists = ValidWriteIds.parse("t:2:1:1:2")
    found = read_history(snapshot_of(table, lists)).write_ids
    assert [line.state for line in found] == ["committed", "open", "aborted", "unknown"]
    assert (counts(found[0]), found[0].directories) == ((2, 0, 0), ("000000_0",))


def test_events_of_acid_v1_say_what_they_are(tmp_path: Path) -> None:
    for name, rows in (
        ("delta_1_1", [(0, 1, 0, n, 1) for n in range(5)]),
        ("delta_2_2", [(1, 1, 0, 1, 2), (1, 1, 0, 2, 2), (2, 1, 0, 3, 2), (0, 2, 0, 0, 2)]),
    ):
        events = [(*row, None if row[0] == 2 else (row[3], "v")) for row in rows]
        write_acid(tmp_path / name / "bucket_00000", *events)
    found = read_history(snapshot_of(tmp_path)).write_ids
    assert [counts(line) for line in found] == [(5, 0, 0), (1, 2, 1)]


def test_a_damaged_directory_that_nobody_reads(tmp_path: Path) -> None:
    table = walkthrough(tmp_path / "t")
    (table / "delta_0000002_0000002_0000" / "bucket_00000").write_bytes(b"no ORC")
    found = read_history(snapshot_of(table, ValidWriteIds.parse("t:3:9::2")))
    assert len(found.problems) == 1
    assert found.unknown_below == 3


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(40))
def test_history_is_that_of_the_written_past(tmp_path: Path, seed: int) -> None:
    made = make_table(tmp_path / "t", seed)
    found = read_history(snapshot_of(made.path))
    lines = {line.write_id: line for line in found.write_ids}
    bases = [v.directory.max_write_id for v in snapshot_of(made.path).state.verdicts if v.directory and v.compacted]
    gaps = [at for at in range(1, max(bases, default=0) + 1) if at not in {*made.inserts, *made.deletes}]
    assert (found.unknown_below or 0) <= max([made.lost, *gaps]) + 1
    events = events_below(made.path) if any(made.path.iterdir()) else set()
    for write_id in range(1, made.last + 1):
        inserts, deletes = len(made.inserts.get(write_id, ())), len(made.deletes.get(write_id, ()))
        seen = sum(event[4] == write_id and event[0] == 0 for event in events)
        line = lines.get(write_id)
        if line is None:
            assert not inserts + deletes or write_id < (found.unknown_below or 0)
            assert not seen
        elif line.is_complete:
            pairs = min(inserts, deletes)
            assert counts(line) == (inserts - pairs, pairs, deletes - pairs)
        else:
            assert write_id < (found.unknown_below or 0)
            assert counts(line) == (seen, None, None)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in HIVE23.glob("*/scenario.json")))
def test_history_of_tables_of_hive_is_that_of_their_events(name: str) -> None:
    """Against every event on disk, those of delete deltas told from the deletes of ACID v1."""
    snapshot = snapshot_of(HIVE23 / name / "table")
    fs, inner = open_location(str(HIVE23 / name / "table"))
    events = set()
    for source in event_files_at(fs, inner):
        with source.open() as opened:
            for stripe in range(opened.stripes):
                columns = (opened.batch(stripe).column(i).to_pylist() for i in range(5))
                events |= {(*event, source.file.role == "delete") for event in zip(*columns, strict=True)}
    lines = {line.write_id: line for line in read_history(snapshot).write_ids}
    assert {event[4] for event in events} <= lines.keys()
    for write_id, line in lines.items():
        own = [(event[0], event[5]) for event in events if event[4] == write_id]
        inserts, updates = own.count((0, False)), own.count((1, False))
        deletes = own.count((2, True))
        pairs = min(inserts, deletes)
        if line.is_complete:
            wanted = (inserts - pairs, pairs + updates, deletes - pairs + own.count((2, False)))
            assert counts(line) == wanted
        else:
            assert counts(line) == (inserts + updates, None, None)


class CountedEntries(tuple[Any, ...]):
    """The entries of a listing, which count how often somebody goes through all of them."""

    times = 0

    def __iter__(self) -> Iterator[Any]:
        CountedEntries.times += 1
        return super().__iter__()


@pytest.mark.parametrize("look", [read_history, lambda snapshot: blame(snapshot, parse_row_id("1:536870912:0"))])
def test_the_listing_is_gone_through_as_often_however_many_deltas_there_are(tmp_path: Path, look: Any) -> None:
    times = set()
    for number in (3, 30):
        table = tmp_path / str(number)
        for first in range(1, 2 * number, 2):  # as a streaming writer leaves them
            write_acid(table / f"delta_{first:07}_{first + 1:07}" / "bucket_00000", insert(first, 0))
        found = snapshot_of(table)
        listing = Listing(found.listing.location, CountedEntries(found.listing.entries))
        CountedEntries.times = 0
        look(replace(found, listing=listing))
        times.add(CountedEntries.times)
    assert len(times) == 1
    assert times.pop() < 10


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12))
def test_ranges_that_are_counted_are_those_that_were_added(added: list[tuple[int, int]]) -> None:
    covered, ids = _Covered(), set[int]()
    for low, length in added:
        covered.add(low, low + length)
        ids |= set(range(low, low + length + 1))
        assert all(end + 1 < start for end, start in zip(covered.ends, covered.starts[1:], strict=False))
    spans = zip(covered.starts, covered.ends, strict=True)
    assert {one for start, end in spans for one in range(start, end + 1)} == ids
