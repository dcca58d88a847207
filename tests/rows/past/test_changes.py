"""What every write id changed, against the past that was written down."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.compacting import run_compaction
from support.engines.written_by_hive import HIVE23
from support.files.acid_files import (
    DELETE,
    ID,
    UPDATE,
    acid_batch,
    write_acid,
    write_deletes,
    write_delta,
    write_plain,
)
from support.files.json_text import encode_json_lines
from support.made.random_tables import Made, make_table, write
from support.tables import spied_reads

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import HistoryError
from acidctl.location.find import find_table
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec
from acidctl.rows.past.changes import EventSpan, SingleStep, changes_of, plan_changes
from acidctl.rows.read.past_snapshot import seen_at
from acidctl.rows.scan.table import open_table

Key = tuple[int, int, int]


def planned(path: Path, after: int, upto: int) -> list[EventSpan | SingleStep]:
    (found,) = find_table(str(path), {}, SnapshotResolver())
    return plan_changes(lambda at: seen_at(found, at, since=after), after, upto)


def listed(told: list[EventSpan | SingleStep]) -> dict[int, dict[str, dict[Key, Any]]]:
    """By write id what went and what came."""
    rows: dict[int, dict[str, dict[Key, Any]]] = {}
    for one in told:
        for found in changes_of(one, row_id=True):
            scan_type = open_table(one.snapshot.path).scan(row_id=True).output_type
            lines = encode_json_lines(found.rows, scan_type).decode().splitlines()
            for write_id, line in zip(found.write_ids.tolist(), lines, strict=True):
                row = json.loads(line)
                key = tuple(row.pop("ROW__ID").values())
                own = rows.setdefault(write_id, {}).setdefault(found.change, {})
                assert key not in own
                own[key] = row
    return rows


def expected(made: Made, after: int, upto: int) -> dict[int, dict[str, dict[Key, Any]]]:
    rows: dict[int, dict[str, dict[Key, Any]]] = {}
    for write_id in range(after + 1, upto + 1):
        before, now = made.rows_at(write_id - 1), made.rows_at(write_id)
        changes = {
            "-": {key: row for key, row in before.items() if key not in now},
            "+": {key: row for key, row in now.items() if key not in before},
        }
        if any(changes.values()):
            rows[write_id] = {change: own for change, own in changes.items() if own}
    return rows


def is_gone(path: Path, at: int) -> bool:
    """Whether the rows of then cannot be told."""
    try:
        open_table(str(path)).scan(at=at)
    except HistoryError:
        return True
    return False


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_every_write_id_changed_what_the_written_past_says(tmp_path: Path, first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + 10):
        made = make_table(tmp_path / f"t{seed}", seed)
        choice = random.Random(seed)
        for _ in range(6):
            after, upto = sorted(choice.choices(range(made.last + 1), k=2))
            try:
                told = planned(made.path, after, upto)
            except HistoryError:
                assert after < made.lost or any(is_gone(made.path, at) for at in range(after, upto)), (after, upto)
                seen["gone"] += 1
                continue
            seen.update(type(one).__name__ for one in told)
            assert listed(told) == expected(made, after, upto), (after, upto)
    assert min(seen["EventSpan"], seen["SingleStep"], seen["gone"]) > 1, "bases and cleanings lie in between"


@pytest.mark.parametrize("seed", range(6))
def test_changes_read_in_parts_are_those_read_at_once(tmp_path: Path, seed: int) -> None:
    made = make_table(tmp_path / "t", 0, 0)
    choice = random.Random(seed)
    whole: dict[int, Any] = {}
    done = 0
    for _ in range(8):  # a reader that comes by now and then, while compactions and writers go on
        for kind in choices(choice):
            if kind in ("minor", "major"):
                run_compaction(made.path, CompactionKind(kind))
            else:
                write(made, choice, kind)
        whole |= listed(planned(made.path, done, made.last))
        done = made.last
    assert whole == expected(made, 0, made.last)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(30))
def test_what_an_interrupted_cleaning_left_is_refused_or_tells_the_truth(tmp_path: Path, seed: int) -> None:
    made, choice = make_table(tmp_path / "t", 0, 0), random.Random(seed)
    for kind in ("insert", "insert", *choice.choices(["insert", "update", "delete", "mixed", "gap"], k=5)):
        if kind == "gap":
            made.last += 1
        else:
            write(made, choice, kind)
    run_compaction(made.path, CompactionKind.MAJOR)
    after = choice.randint(1, made.last - 1)
    obsolete = sorted(path for path in made.path.iterdir() if "delta_" in path.name)
    for path in choice.sample(obsolete, min(len(obsolete), choice.randint(0, 1))):
        shutil.rmtree(path)
    try:
        told = planned(made.path, after, made.last)
    except HistoryError:
        assert len(list(made.path.glob("*delta_*"))) < len(obsolete) or not any(
            int(path.name.split("_")[-2]) <= after for path in obsolete
        )
        return
    assert listed(told) == expected(made, after, made.last)


def choices(choice: random.Random) -> list[str]:
    return choice.choices(["insert", "update", "delete", "mixed", "minor", "major"], k=choice.randint(0, 4))


def test_rows_of_aborted_write_ids_are_no_changes_and_their_deletes_delete_nothing(tmp_path: Path) -> None:
    write_delta(tmp_path, 1, small(1, 2, 3))
    write_delta(tmp_path, 2, small(4))
    write_deletes(tmp_path, 2, 1, [0])
    write_deletes(tmp_path, 3, 1, [1])
    write_ids = ValidWriteIds(3, aborted=(2,))
    (found,) = find_table(str(tmp_path), {}, SnapshotResolver(SnapshotSpec.of(write_ids)))
    told = plan_changes(lambda at: seen_at(found, at), 0, 3)
    rows = [(c.change, c.write_ids.tolist(), c.rows["id"].to_pylist()) for one in told for c in changes_of(one)]
    assert rows == [("-", [3], [2]), ("+", [1, 1, 1], [1, 2, 3])]


def test_a_row_that_a_write_id_inserts_and_deletes_is_no_change(tmp_path: Path) -> None:
    write_delta(tmp_path, 1, small(1, 2))
    write_deletes(tmp_path, 1, 1, [1])
    rows = [(c.change, c.rows["id"].to_pylist()) for one in planned(tmp_path, 0, 1) for c in changes_of(one)]
    assert rows == [("+", [1])]


def test_a_row_that_was_dead_already_does_not_go_twice(tmp_path: Path) -> None:
    write_delta(tmp_path, 1, small(1, 2))
    write_deletes(tmp_path, 2, 1, [1])
    write_deletes(tmp_path, 3, 1, [0, 1])
    rows = [(c.change, c.rows["id"].to_pylist()) for one in planned(tmp_path, 2, 3) for c in changes_of(one)]
    assert rows == [("-", [1])]


def test_rows_that_a_compaction_of_an_insert_only_table_merged_have_no_write_id(tmp_path: Path) -> None:
    write_plain(tmp_path / "delta_0000001_0000003" / "000000_0", small(1, 2, 3))
    write_plain(tmp_path / "delta_0000004_0000004" / "000000_0", small(4))
    with pytest.raises(HistoryError, match="cannot be told") as caught:
        planned(tmp_path, 0, 4)
    assert caught.value.hint == "begin after write id 3"
    rows = [
        (c.write_ids.tolist(), c.rows["id"].to_pylist()) for one in planned(tmp_path, 3, 4) for c in changes_of(one)
    ]
    assert rows == [([4], [4])]


def test_updates_of_acid_v1_are_told_one_write_id_after_the_other(tmp_path: Path) -> None:
    write_delta(tmp_path, 1, small(1, 2, 3))
    events = [
        acid_batch(small(10), [0], operation=UPDATE, write_id=1, current=2),
        acid_batch(pa.nulls(1, pa.struct([("id", pa.int32())])), [1], operation=DELETE, write_id=1, current=2),
    ]
    write_acid(tmp_path / "delta_0000002_0000002_0000" / "bucket_00000", *events, row=ID)
    again = acid_batch(small(100), [0], operation=UPDATE, write_id=1, current=3)
    write_acid(tmp_path / "delta_0000003_0000003_0000" / "bucket_00000", again, row=ID)
    told = planned(tmp_path, 0, 3)
    assert [type(one) for one in told] == [SingleStep] * 3
    rows = [(c.write_ids[0], c.change, c.rows["id"].to_pylist()) for one in told for c in changes_of(one)]
    assert rows == [(1, "+", [1, 2, 3]), (2, "-", [1, 2]), (2, "+", [10]), (3, "-", [10]), (3, "+", [100])]


@pytest.mark.parametrize("name", sorted(path.name for path in HIVE23.iterdir() if path.is_dir()))
def test_changes_of_what_hive_wrote_add_up_to_its_rows(name: str) -> None:
    path = HIVE23 / name / "table"
    last = max([0, *(int(part.name.split("_")[2]) for part in path.glob("delta_*"))])
    begin = max([0, *(int(part.name.split("_")[1]) for part in path.glob("base_*"))])
    try:
        told = planned(path, begin, last)
    except HistoryError:
        assert is_gone(path, begin)
        return
    table = open_table(str(path))
    changes = [c for one in told for c in changes_of(one)]
    signs = {"+": 1, "-": -1}
    gained = sum(signs[c.change] * c.rows.num_rows for c in changes)
    assert gained == table.scan(at=last).count() - table.scan(at=begin).count()


def test_stripes_without_changes_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [small(*range(n, n + 10)) for n in range(0, 80, 10)]
    write_delta(tmp_path, 1, *batches)
    write_deletes(tmp_path, 2, 1, [3])
    write_deletes(tmp_path, 3, 1, [44])
    read = spied_reads(monkeypatch)
    rows = [(c.change, c.rows["id"].to_pylist()) for one in planned(tmp_path, 2, 3) for c in changes_of(one)]
    assert rows == [("-", [44])]
    assert read == [("ids", 4), ("rows", 4)]


def small(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": pa.array(numbers, pa.int32())})
