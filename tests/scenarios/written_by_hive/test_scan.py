"""Merge-on-read over tables that real Hive wrote, against the rows Hive itself returned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.engines.written_by_hive import HIVE23, hive23_cases
from support.judge.normal import ACIDCTL, EXPECTED, normalise_row
from support.judge.txns import Txns
from support.tables import json_rows, read_rows, snapshot_of

from acidctl.acid.state import State
from acidctl.acid.writeids import ValidWriteIds
from acidctl.rows.scan.scan import Scan


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "number", "text"), hive23_cases())
def test_tables_of_hive_2_have_the_rows_that_hive_returned(name: str, number: int, text: str) -> None:
    folder = HIVE23 / name
    schema = json.loads((folder / "scenario.json").read_text())["schema"]
    expected = [json.loads(line) for line in (folder / "expected" / f"{number}.rows.jsonl").read_text().splitlines()]
    wanted = sorted((tuple(row["id"]), normalise_row(row["row"], schema, EXPECTED)) for row in expected)
    write_ids = ValidWriteIds.parse(Txns.of_scenario(text).write_ids())
    found = [(key, normalise_row(row, schema, ACIDCTL)) for key, row in read_rows(folder / "table", write_ids)]
    assert [key for key, _ in found] == [key for key, _ in wanted]
    assert found == wanted


@pytest.mark.parametrize(("name", "number", "text"), hive23_cases())
def test_tables_of_hive_2_have_the_state_that_hive_saw(name: str, number: int, text: str) -> None:
    folder = HIVE23 / name
    expected = json.loads((folder / "expected" / f"{number}.state.json").read_text())
    write_ids = ValidWriteIds.parse(Txns.of_scenario(text).write_ids())
    for view, list_ in (("read", write_ids), ("compactor", write_ids.for_compactor())):
        state = snapshot_of(folder / "table", list_).state
        assert (state.base.name if state.base else None) == expected[view]["base"]
        # Hive 2.3 has no list of aborted directories: its compactor reads them and drops every row (section 6.5).
        aborted = {verdict.name for verdict in state.in_state(State.ABORTED)}
        names = [delta["name"] for delta in expected[view]["deltas"]]
        assert [verdict.name for verdict in state.deltas] == [name for name in names if name not in aborted]
        assert [Path(entry.path).name for entry in state.originals] == [
            Path(original["path"] if isinstance(original, dict) else original).name
            for original in expected[view]["originals"]
        ]


def test_deletes_of_a_large_table_of_hive_3_are_applied(shared_data: Path) -> None:
    folder = shared_data / "hive-written" / "nation-25k"
    rows = read_rows(folder / "table")
    assert len(rows) == 23_000
    assert {5, 19} & {row["n_nationkey"] for _, row in rows} == set()
    only_insert = read_rows(folder / "table", ValidWriteIds(2))
    assert len(only_insert) == 25_000
    assert [key[2] for key, _ in only_insert] == list(range(25_000))


def test_originals_with_copies_of_hive_3_are_numbered_on(shared_data: Path) -> None:
    folder = shared_data / "hive-written" / "originals-with-copies"
    rows = read_rows(folder / "table")
    assert len(rows) == 19
    assert (0, 536870912, 2) not in [key for key, _ in rows]
    assert [key[2] for key, _ in rows if key[1] == 537001984] == list(range(12))


@pytest.mark.parametrize(("hwm", "rows"), [(0, 0), (1, 2), (2, 4)])
def test_stream_shows_the_transactions_below_the_high_watermark(shared_data: Path, hwm: int, rows: int) -> None:
    table = shared_data / "hive-written" / "streaming-two-txns" / "table"
    found = read_rows(table, ValidWriteIds.parse(f"t:{hwm}:9223372036854775807::"))
    assert [(row["a"], row["b"]) for _, row in found] == [("a1", "b2"), ("a3", "b4"), ("a5", "b6"), ("a7", "b8")][:rows]


@pytest.mark.parametrize("table", ["tbl", "tbl2", "tbl3"])
def test_tables_of_hdp_3_are_read(shared_data: Path, table: str) -> None:
    folder = shared_data / "hive-written" / "hdp3-hcube"
    expected = json.loads((folder / f"{table}.expected.json").read_text())
    found = read_rows(folder / "test_hcube_2.db" / table)
    assert [row for _, row in found] == [{"fld": 1}] * len(expected.get("visible_rows", expected.get("rows", found)))


def test_columns_are_projected_in_the_order_asked_for() -> None:
    table = HIVE23 / "alltypes_random" / "table"
    whole = json_rows(Scan(snapshot_of(table)))
    some = json_rows(Scan(snapshot_of(table), ["un", "T3", "st"], row_id=True))
    assert [list(row) for row in some[:1]] == [["ROW__ID", "un", "t3", "st"]]
    assert [(row["un"], row["t3"], row["st"]) for row in some] == [(r["un"], r["t3"], r["st"]) for r in whole]
