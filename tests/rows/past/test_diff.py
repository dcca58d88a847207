"""What changed between two write ids, against the past that was written down."""

from __future__ import annotations

import gc
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.compacting import run_compaction
from support.engines.written_by_hive import HIVE23
from support.files.acid_files import (
    ID,
    SMALL_GROUPS,
    acid_batch,
    ids,
    write_acid,
    write_deletes,
    write_delta,
    write_plain,
)
from support.files.json_text import encode_json_lines
from support.made.random_tables import Made, make_table, write
from support.tables import spied_reads

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import HistoryError
from acidctl.rows.past.diff import Difference, _Side, pair_by_key, table_difference
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.read.events import Ids
from acidctl.rows.read.key_ranges import KeyRanges
from acidctl.rows.scan.table import open_table


def listed(found: Difference) -> dict[str, dict[tuple[int, int, int], Any]]:
    rows: dict[str, dict[tuple[int, int, int], Any]] = {"-": {}, "+": {}}
    for batch in found.listed():
        for line in encode_json_lines(batch, found.listed_type).decode().splitlines():
            row = json.loads(line)
            key = row.pop("ROW__ID")
            mark = row.pop("change")
            assert tuple(key.values()) not in rows[mark]
            rows[mark][tuple(key.values())] = row
    return rows


def check(made: Made, start: int, end: int) -> None:
    found = table_difference(open_table(str(made.path)), start, end, row_id=True)
    before, after = made.rows_at(start), made.rows_at(end)
    rows = listed(found)
    assert rows["-"] == {key: row for key, row in before.items() if key not in after}
    assert rows["+"] == {key: row for key, row in after.items() if key not in before}
    assert found.count() == (len(rows["-"]), len(rows["+"]))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(40))
def test_difference_is_that_of_the_written_past(tmp_path: Path, seed: int) -> None:
    made = make_table(tmp_path / "t", seed)
    choice = random.Random(seed)
    table = open_table(str(made.path))
    seen = 0
    for _ in range(6):
        start, end = choice.randint(0, made.last), choice.randint(0, made.last)
        try:
            table.scan(at=start)
            table.scan(at=end)
        except HistoryError:
            with pytest.raises(HistoryError):
                table_difference(table, start, end)
            continue
        seen += 1
        check(made, start, end)
    check(made, made.last, made.last)


def test_difference_between_two_bases_is_that_of_their_rows(tmp_path: Path) -> None:
    for seed in range(8):
        choice = random.Random(seed)
        made = make_table(tmp_path / f"t{seed}", seed, 0)
        numbers = []
        for kinds in (("insert", "insert", "update"), ("insert", "update", "delete")):
            for kind in kinds:
                write(made, choice, kind)
            assert run_compaction(made.path, CompactionKind.MAJOR) is not None
            numbers.append(made.last)
        check(made, *numbers)
        check(made, *reversed(numbers))


def test_shared_stripes_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [pa.RecordBatch.from_pydict({"id": pa.array(range(n, n + 10), pa.int32())}) for n in range(0, 80, 10)]
    write_delta(tmp_path, 1, *batches)
    write_deletes(tmp_path, 2, 1, [3])
    write_deletes(tmp_path, 3, 1, [44])
    read = spied_reads(monkeypatch)
    found = table_difference(open_table(str(tmp_path)), 2, 3)
    assert [batch.to_pylist() for batch in found.listed()] == [[{"change": "-", "id": 44}]]
    assert {stripe for _, stripe in read} == {4}
    assert [one for one in read if one[0] != "ids"] == [("ids_with_rows", 4)]


@pytest.mark.parametrize("keys", [None, ["id"]])
def test_locations_are_compared_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: list[str] | None
) -> None:
    for day in range(30):
        write_delta(tmp_path / f"day={day}", 1, pa.RecordBatch.from_pydict({"id": pa.array([day] * 3, pa.int32())}))
        write_deletes(tmp_path / f"day={day}", 2, 1, [1])
    monkeypatch.setattr("acidctl.rows.scan.table._FEW_LOCATIONS", 1)
    found = table_difference(open_table(str(tmp_path)), 1, 2)
    numbers = []
    for rows in found.paired(keys) if keys else found.listed():
        gc.collect()
        numbers.append((sum(type(item) is _Side for item in gc.get_objects()), rows.num_rows))
    assert sum(rows for _, rows in numbers) == 30
    assert max(sides for sides, _ in numbers) <= 4


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 2)] * 2, st.integers(0, 12), st.integers(0, 2)), max_size=40), st.data())
def test_key_ranges_are_a_set(rows: list[tuple[int, int, int, int]], data: Any) -> None:
    def ids(part: Iterable[tuple[int, int, int, int]]) -> Ids:
        columns = np.array(list(part), np.int64).reshape(-1, 4).T.copy()
        return Ids(np.zeros(columns.shape[1], np.int64), Keys(*columns[:3]), columns[3])

    listed = sorted(set(rows), key=lambda _: data.draw(st.integers(0, 9)))
    cut = data.draw(st.integers(0, len(listed)))
    asked = data.draw(st.lists(st.tuples(*[st.integers(0, 2)] * 2, st.integers(0, 12), st.integers(0, 2)), max_size=40))
    made = KeyRanges()
    made.add(ids(listed[:cut]))
    made.holds(ids(asked))
    made.add(ids(listed[cut:]))
    assert made.holds(ids(asked)).tolist() == [row in set(listed) for row in asked]


values = st.one_of(st.none(), st.integers(0, 3))


@settings(deadline=None)
@given(st.lists(st.tuples(values, values, st.integers())), st.lists(st.tuples(values, values, st.integers())))
def test_rows_are_paired_by_key_as_a_dictionary_does(old: list[Any], new: list[Any]) -> None:
    def table(rows: list[Any]) -> pa.Table:
        kept = [(a, b, c % 1000) for a, b, c in rows]
        columns = zip(*kept, strict=True) if kept else [[]] * 3
        return pa.table({name: pa.array(list(column), pa.int64()) for name, column in zip("abc", columns, strict=True)})

    before, after = table(old).to_pylist(), table(new).to_pylist()
    left = list(after)
    wanted = []
    for row in before:
        match = next((other for other in left if (other["a"], other["b"]) == (row["a"], row["b"])), None)
        if match is None:
            wanted.append(("-", row, None))
        else:
            left.remove(match)
            wanted.append(("~", row, match))
    wanted += [("+", None, row) for row in left]
    found = [
        (row["change"], row["old"], row["new"])
        for batch in pair_by_key(table(old), table(new), ["a", "b"])
        for row in batch.to_pylist()
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", sorted(path.parent.name for path in HIVE23.glob("*/scenario.json")))
def test_difference_of_tables_of_hive_is_that_of_two_scans(name: str) -> None:
    """ACID v1 and v2, originals, streaming: the difference of what a scan gives at either write id."""
    table = open_table(str(HIVE23 / name / "table"))
    newest = table.scan().snapshots[0].state.max_write_id
    for start, end in [(0, newest), (newest // 2, newest), *((n, n + 1) for n in range(min(newest, 6)))]:
        try:
            scans = [table.scan(at=at, row_id=True) for at in (start, end)]
        except HistoryError:
            continue
        before, after = (
            {line for batch in scan.to_batches() for line in encode_json_lines(batch, scan.output_type).splitlines()}
            for scan in scans
        )
        found = table_difference(table, start, end, row_id=True)
        if scans[0].output_type != found.output_type:
            continue
        gone, new = (
            {line for batch in batches for line in encode_json_lines(batch, found.output_type).splitlines()}
            for batches in (found.gone(), found.new())
        )
        # Equal values under one ROW__ID on both sides: an update of ACID v1 that changed nothing.
        assert (gone - new, new - gone) == (before - after, after - before)


def test_files_without_ids_are_compared_where_they_can_be(tmp_path: Path) -> None:
    for write_id in (1, 2):
        write_plain(
            tmp_path / f"delta_{write_id:07}_{write_id:07}_0000" / "000000_0",
            ids(write_id, write_id + 10),
            settings=SMALL_GROUPS,
        )
    table = open_table(str(tmp_path))
    found = [row for batch in table_difference(table, 1, 2).listed() for row in batch.to_pylist()]
    assert found == [{"change": "+", "id": 2}, {"change": "+", "id": 12}]
    for name, numbers in (("base_0000001_v0000005", [1, 11]), ("base_0000002_v0000006", [1, 2, 11, 12])):
        write_plain(
            tmp_path / name / "000000_0",
            ids(*numbers),
            settings=SMALL_GROUPS,
        )
    with pytest.raises(HistoryError, match="cannot be compared"):
        table_difference(open_table(str(tmp_path)), 1, 2)


@pytest.mark.parametrize("kept", [[0, 1, 3, 4], [0, 1, 2, 3]], ids=["a major compaction", "a REBALANCE"])
def test_rows_that_got_new_ids_are_not_compared(tmp_path: Path, kept: list[int]) -> None:
    """The base of write id 2 is all that is needed for what was then, so that nothing else notices."""
    write_delta(tmp_path, 1, ids(10, 11, 12, 13, 14))
    write_delta(tmp_path, 2, ids(10, 11, 12, 13, 14), base=True).parent.rename(tmp_path / "base_0000002_v0000005")
    write_deletes(tmp_path, 3, 2, [2])
    events = acid_batch(ids(10, 11, 13, 14), kept, write_id=2)
    (tmp_path / "base_0000003_v0000006").mkdir()
    write_acid(tmp_path / "base_0000003_v0000006/bucket_00000", events, row=ID)
    write_delta(tmp_path, 4, ids(15))
    table = open_table(str(tmp_path))
    assert table.scan(at=2).count() == 5
    if kept == [0, 1, 2, 3]:
        for start, end in ((2, 3), (4, 2)):
            with pytest.raises(HistoryError, match="REBALANCE"):
                table_difference(table, start, end)
    else:
        assert table_difference(table, 2, 3).count() == (1, 0)
        assert table_difference(table, 4, 2).count() == (1, 1)
    assert table_difference(table, 3, 4).count() == (0, 1)
