"""The harness judged: Hive against the stored expected rows and against the model, and Java ORC on known files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.engines.written_by_hive import HIVE23
from support.judge.checks import answer, assert_hive_reads, assert_same, hive_accepts, hive_answer, plain_view
from support.judge.generate import random_history
from support.judge.history import QUIRK_ORIGINAL_COPIES, resolve
from support.judge.hive import DELETE, INSERT, UPDATE, Event, Hive, RowKey, StoredEvent, count_buckets
from support.judge.hivetypes import parse_type
from support.judge.java_orc import JavaOrc, java_orc_seek_check
from support.judge.lazybinary import Cursor, decode, encode_row, write_vlong
from support.judge.model import model_rows
from support.judge.normal import ACIDCTL, EXPECTED, normalise, normalise_row
from support.judge.play import play
from support.judge.txns import Txns
from support.judge.values import ALL_TYPES, SCHEMAS, SeedChoice, row_of

SCENARIOS = sorted(path.name for path in HIVE23.iterdir() if path.is_dir())
FLAT = "struct<a:int,b:string>"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


# --- without a JVM
@pytest.mark.parametrize("schema", SCHEMAS)
def test_types_print_as_they_were_written(schema: str) -> None:
    assert str(parse_type(schema)) == schema


@pytest.mark.parametrize("value", [0, 127, 128, -112, -113, 255, 256, 2**31, -(2**31), 2**63 - 1, -(2**63)])
def test_variable_length_numbers_come_back(value: int) -> None:
    assert Cursor(write_vlong(value)).vlong() == value


@pytest.mark.parametrize("seed", range(20))
def test_lazy_binary_rows_come_back(seed: int) -> None:
    node = parse_type(ALL_TYPES)
    row = row_of(SeedChoice(seed), ALL_TYPES)
    data = encode_row(list(row.values()), node.children)
    found = decode(Cursor(len(data).to_bytes(4, "big") + data), node)
    assert normalise_row(found, node) == normalise_row(row, node)


def test_normal_form_is_one_for_three_sources() -> None:
    node = parse_type(
        "struct<b:binary,m:map<string,int>,u:uniontype<int,string>,d:decimal(9,3),t:timestamp,f:float,c:char(3)>"
    )
    plain = {
        "b": b"\x01",
        "m": [("k", 1)],
        "u": (1, "x"),
        "d": "1.50",
        "t": "2020-01-01 00:00:00.10",
        "f": 0.1,
        "c": "a",
    }
    stored = plain | {"b": "AQ==", "m": [["k", 1]], "u": [1, "x"], "d": "1.5", "t": "2020-01-01 00:00:00.1"}
    printed = stored | {"b": [1], "m": [{"_key": "k", "_value": 1}], "u": "x", "d": 1.5, "c": "a  "}
    assert normalise(plain, node) == normalise(stored, node, EXPECTED) == normalise(printed, node, ACIDCTL)


def test_histories_of_a_seed_are_the_same() -> None:
    assert resolve(random_history(7)).changes == resolve(random_history(7)).changes


def test_transactions_give_the_lists_of_readers_and_compactors() -> None:
    txns = Txns(10, frozenset({6}), frozenset({3}))
    assert txns.write_ids("db.t") == "db.t:10:6:6:3"
    assert txns.compactor() == Txns(5, frozenset(), frozenset({3}))
    assert txns.accepts_base(5) and not txns.accepts_base(6) and not txns.is_valid(3)


# --- Hive
@pytest.mark.sampled(5)
@pytest.mark.spark
@pytest.mark.parametrize("name", SCENARIOS)
def test_hive_reads_what_is_stored(hive: Hive, name: str) -> None:
    scenario = json.loads((HIVE23 / name / "scenario.json").read_text())
    table, expected = HIVE23 / name / "table", HIVE23 / name / "expected"
    schema, buckets, version = scenario["schema"], scenario["buckets"], int(scenario["acid"][1])
    for number, text in list(enumerate(scenario["txnlists"]))[-4:]:
        txns = Txns.of_scenario(text)
        want = answer(((r["id"], r["row"]) for r in lines(expected / f"{number}.rows.jsonl")), schema, EXPECTED)
        assert_hive_reads(hive, table, schema, want, txns, version=version, buckets=buckets)
        events = [e for b in range(buckets) for e in hive.events(table, schema, txns, b, version=version)]
        got = [(*event[:5], normalise_row(event.row, schema)) for event in events]
        stored = lines(expected / f"{number}.events.jsonl")
        assert got == [(*list(e.values())[:5], normalise_row(e["row"], schema, EXPECTED)) for e in stored]
        states = json.loads((expected / f"{number}.state.json").read_text())
        for view in ("read", "compactor"):
            state = hive.state(table, txns, compactor=view == "compactor", version=version)
            assert state["deltas"] == [delta["name"] for delta in states[view]["deltas"]]
            assert state["originals"] == [Path(original).name for original in states[view]["originals"]]


@pytest.mark.sampled
@pytest.mark.spark
@pytest.mark.parametrize("kind", ["minor", "major"])
@pytest.mark.parametrize("name", ["alltypes_v1", "original_files", "update_chain"])
def test_hive_compacts_as_stored(hive: Hive, name: str, kind: str, tmp_path: Path) -> None:
    scenario = json.loads((HIVE23 / name / "scenario.json").read_text())
    table = tmp_path / "table"
    shutil.copytree(HIVE23 / name / "table", table)
    version = int(scenario["acid"][1])
    made = hive.compact(table, scenario["schema"], kind, Txns(), version=version, buckets=scenario["buckets"])
    assert made == json.loads((HIVE23 / name / "expected" / f"0.{kind}.json").read_text())["created"]
    stored = lines(HIVE23 / name / "expected" / f"0.{kind}.rows.jsonl")
    want = answer(((r["id"], r["row"]) for r in stored), scenario["schema"], EXPECTED)
    assert_hive_reads(hive, table, scenario["schema"], want, version=version)


@pytest.mark.slow
@pytest.mark.spark
def test_hive_agrees_with_the_model(hive: Hive, history_seeds: range, tmp_path: Path) -> None:
    for seed in history_seeds:
        history = random_history(seed)
        played = play(history, hive, tmp_path / str(seed))
        for txns in played.snapshots()[:4]:
            want = answer(model_rows(played.plan.changes, txns, history.version), history.schema)
            got = hive_answer(
                hive, played.table, history.schema, txns, version=history.version, buckets=history.buckets
            )
            assert_same(got, want, f"seed {seed}, {txns}, {played.table}: {history}")
        hive.close_left_open()


@pytest.mark.spark
def test_live_batch_keeps_its_side_file(hive: Hive, tmp_path: Path) -> None:
    """v1 here: a side file beside a v2 delta makes Hive 2.3's reader fail."""
    rows = [{"a": i, "b": "x"} for i in range(4)]
    done = [(1, [Event(INSERT, rows[0])]), (2, [Event(INSERT, rows[1]), Event(INSERT, rows[2])])]
    late = (3, [Event(INSERT, rows[3])])
    hive.write_streaming(tmp_path, FLAT, 1, 3, done, version=1, leave_open=True, unflushed=late)
    side = tmp_path / "delta_0000001_0000003" / "bucket_00000_flush_length"
    assert side.stat().st_size % 8 == 0 and side.stat().st_size > 0
    want = answer([((1, 0, 0), rows[0]), ((2, 0, 0), rows[1]), ((2, 0, 1), rows[2])], FLAT)
    assert_hive_reads(hive, tmp_path, FLAT, want, version=1)
    hive.close_left_open()
    assert not side.exists()
    assert len(hive_answer(hive, tmp_path, FLAT, version=1)) == 4


@pytest.mark.slow
@pytest.mark.spark
def test_writer_settings_and_java_orc(hive: Hive, tmp_path: Path) -> None:
    orc = {"orc.compress": "SNAPPY", "orc.stripe.size": "65536", "orc.row.index.stride": "1000"}
    events = [Event(INSERT, {"a": i, "b": f"{i * 7919:>040}"}) for i in range(3_000)]
    hive.write_delta(tmp_path, FLAT, 1, events, orc=orc)
    file = tmp_path / "delta_0000001_0000001_0000" / "bucket_00000"
    java = JavaOrc(hive, file)
    facts = java.facts()
    assert facts.rows == 3_000 and facts.row_index_stride == 1000 and facts.compression == "SNAPPY"
    assert len(facts.stripes) > 1 and facts.user_metadata["hive.acid.stats"] == "3000,0,0"
    assert java_orc_seek_check(hive, file) == []
    kept = java.sarg_rows("a", 1500)
    assert len(kept) == 1000 and any(row["row"]["a"] == 1500 for row in kept)
    assert java.statistics_check() == []
    assert hive_accepts(hive, tmp_path, FLAT) == []
    file.write_bytes(file.read_bytes()[:-1])
    assert hive_accepts(hive, tmp_path, FLAT) != []


@pytest.mark.spark
def test_v1_bucket_values_and_visibility_names(hive: Hive, tmp_path: Path) -> None:
    """Codec V1 in write-id directories reads as it is; `_v` names through a view."""
    table, view = tmp_path / "table", tmp_path / "view"
    table.mkdir()
    first, second = 1 << 29, 1 << 29 | 1
    rows = [StoredEvent(INSERT, 1, b, i, 1, {"a": i, "b": str(b)}) for b in (first, second) for i in (0, 1)]
    hive.write_events(table, FLAT, (1, 1), rows[:2], statement=0)
    hive.write_events(table, FLAT, (1, 1), rows[2:], statement=1)
    hive.write_events(table, FLAT, (2, 2), [StoredEvent(DELETE, 1, second, 0, 2, None)], kind="delete_delta")
    want = answer(((e.key, e.row) for e in rows if e.key != RowKey(1, second, 0)), FLAT)
    assert_hive_reads(hive, table, FLAT, want)
    assert hive.compact(table, FLAT, "major", Txns(2)) == ["base_0000002"]
    (table / "base_0000002").rename(table / "base_0000002_v0000031")
    assert hive_accepts(hive, table, FLAT) != []
    assert_hive_reads(hive, plain_view(table, view), FLAT, want)
    assert hive_accepts(hive, view, FLAT) == []


@pytest.mark.spark
def test_copies_of_originals_are_beyond_hive_23(hive: Hive, tmp_path: Path) -> None:
    """The quirk that keeps _copy_N out of the comparison: row numbers start again in the copy."""
    quirks = frozenset({QUIRK_ORIGINAL_COPIES})
    assert not random_history(0, quirks=quirks).hive_can_judge
    for copy in ("", "_copy_1"):
        hive.write_original(tmp_path / f"000000_0{copy}", FLAT, [{"a": 1, "b": copy}, {"a": 2, "b": copy}])
    assert count_buckets(tmp_path) == 1
    assert [key.row for key, _ in hive.rows(tmp_path, FLAT, Txns())] == [0, 1, 0, 1]


@pytest.mark.spark
def test_updates_in_v1_keep_the_row_id(hive: Hive, tmp_path: Path) -> None:
    hive.write_delta(tmp_path, FLAT, 1, [Event(INSERT, {"a": i, "b": "old"}) for i in range(3)], version=1)
    verbs = [Event(UPDATE, {"a": 9, "b": "new"}, RowKey(1, 0, 1)), Event(DELETE, None, RowKey(1, 0, 2))]
    hive.write_delta(tmp_path, FLAT, 2, verbs, version=1, statement=-1)
    want = answer([((1, 0, 0), {"a": 0, "b": "old"}), ((1, 0, 1), {"a": 9, "b": "new"})], FLAT)
    assert_hive_reads(hive, tmp_path, FLAT, want, version=1)
