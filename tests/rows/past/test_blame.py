"""The life of one row, against the past that was written down."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compacting import run_compaction
from support.files.acid_files import B0, ids, write_deletes, write_delta
from support.made.past import events_below, remove_obsolete, walkthrough
from support.made.random_tables import make_table
from support.tables import read_rows, snapshot_of

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import UsageProblem
from acidctl.rows.past.blame import RowId, Status, blame, parse_row_id


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1:536870912:2", RowId(1, 536870912, 2)),
        ("0:-1:2", RowId(0, -1, 2)),
        ('{"writeid":1,"bucketid":536870912,"rowid":2}', RowId(1, 536870912, 2)),
        ('{"ROW__ID":{"writeid":1,"bucketid":536870912,"rowid":2},"id":3}', RowId(1, 536870912, 2)),
    ],
)
def test_row_ids_are_read_in_every_form(text: str, wanted: RowId) -> None:
    assert parse_row_id(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["", "1:2", "1:2:3:4", "a:1:2", "1:9999999999:2", '{"writeid":1}', "{", '{"writeid":1,"bucketid":true,"rowid":2}'],
)
def test_malformed_row_ids_are_refused(text: str) -> None:
    with pytest.raises(UsageProblem):
        parse_row_id(text)


def test_life_of_a_deleted_row_of_the_walkthrough_is_told(tmp_path: Path) -> None:
    table = walkthrough(tmp_path / "t")
    life = blame(snapshot_of(table), parse_row_id(f"1:{B0}:2"))
    assert life.status is Status.DELETED
    assert [one.file for one in life.inserts] == ["delta_0000001_0000001_0000/bucket_00000"]
    assert [(one.operation, one.write_id) for one in life.changes] == [("delete", 2)]
    life = blame(snapshot_of(table, ValidWriteIds.parse("t:1:9::")), parse_row_id(f"1:{B0}:2"))
    assert life.status is Status.LIVE
    life = blame(snapshot_of(table, ValidWriteIds.parse("t:3:9::1")), parse_row_id(f"1:{B0}:0"))
    assert life.status is Status.INVISIBLE
    run_compaction(table, CompactionKind.MAJOR)
    found = blame(snapshot_of(table), parse_row_id(f"1:{B0}:1"))
    assert [(one.directory, one.is_rewritten) for one in found.inserts] == [
        ("delta_0000001_0000001_0000", False),
        ("base_0000003", True),
    ]
    assert found.rewritten_changes == {1, 2}
    remove_obsolete(table)
    found = blame(snapshot_of(table), parse_row_id(f"1:{B0}:2"))
    assert (found.status, found.hidden_by) == (None, ("base_0000003",))


def test_only_stripes_that_may_hold_it_are_read(tmp_path: Path) -> None:
    batches = [ids(*range(n, n + 10)) for n in range(0, 80, 10)]
    write_delta(tmp_path, 1, *batches)
    write_deletes(tmp_path, 2, 1, [3, 44])
    found = blame(snapshot_of(tmp_path), parse_row_id(f"1:{B0}:44"))
    assert (found.stripes, found.stripes_read) == (9, 2)
    assert found.status is Status.DELETED


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(25))
def test_life_of_every_row_is_that_of_the_written_past(tmp_path: Path, seed: int) -> None:
    made = make_table(tmp_path / "t", seed)
    live = {key for key, _ in read_rows(made.path)} if made.values else set()
    events = events_below(made.path) if any(made.path.iterdir()) else set()
    deleted = {key: at for at, keys in made.deletes.items() for key in keys}
    for key in sorted(made.values)[::3]:
        found = blame(snapshot_of(made.path), RowId(*key))
        seen = {event for event in events if event[1:4] == key}
        assert (found.status is not None) == bool(seen)
        if not seen:
            assert found.hidden_by and key in deleted
            continue
        assert (found.status is Status.LIVE) == (key in live)
        assert {one.write_id for one in found.inserts} == {event[4] for event in seen if event[0] == 0} <= {key[0]}
        assert {one.write_id for one in found.changes} == {event[4] for event in seen if event[0] == 2}
        assert {one.write_id for one in found.changes} <= {deleted.get(key)}
        if key not in live:
            assert found.status is (Status.DELETED if found.changes else Status.GONE)
