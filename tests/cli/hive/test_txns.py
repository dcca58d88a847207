"""`acidctl hive txns`: transactions, and which of them hold back cleaning."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive

from acidctl.metastore.interface import TxnType

Ask = Callable[..., Any]


def compacted(table: Path, rows: int = 3) -> int:
    """A table whose delta a base has replaced; the bytes of the delta."""
    file = table / "delta_0000001_0000001_0000" / "bucket_00000"
    write_acid(file, *(insert(1, at, (at, "x" * at)) for at in range(rows)))
    write_acid(table / "base_0000001" / "bucket_00000", *(insert(1, at, (at, "x" * at)) for at in range(rows)))
    return sum(one.stat().st_size for one in file.parent.iterdir())


def test_open_ones_come_first_with_their_locks(ask: Ask, fake: FakeHive) -> None:
    aborted = fake.begin(user="old")
    fake.end(aborted, commit=False)
    txn = fake.begin(user="etl", host="host7", ago=7200, silent=30, query="insert into orders")
    fake.lock("sales", "orders", "day=1", txn=txn, agent="hive_20261125_17")
    found = ask(fake, "txns", "-o", "json")
    assert found.status == 0, found.err
    first, second = found.json()
    assert (first["id"], first["state"], first["user"], first["host"]) == (txn, "open", "etl", "host7")
    assert (first["query"], first["agent"]) == ("insert into orders", None)
    assert first["locks"] == [{"lock": 1, "on": "sales.orders/day=1", "type": "SHARED_READ", "state": "ACQUIRED"}]
    assert 7190 <= first["age"] <= 7300
    assert 20 <= first["silent"] <= 130
    assert (second["id"], second["state"]) == (aborted, "aborted")
    shown = ask(fake, "txns")
    assert "2 h" in shown.out
    assert "SHARED_READ on sales.orders/day=1; insert into orders" in shown.out
    assert "1 open, 1 aborted; the next transaction is 3" in shown.err


def test_filters(ask: Ask, fake: FakeHive) -> None:
    old, young, gone = fake.begin(user="a", ago=7200), fake.begin(user="b"), fake.begin(user="a")
    fake.end(gone, commit=False)

    def ids(*words: str) -> list[int]:
        return [one["id"] for one in ask(fake, "txns", "-o", "jsonl", *words).lines()]

    assert ids("--open") == [old, young]
    assert ids("--aborted") == [gone]
    assert ids("--older-than", "1h") == [old]
    assert ids("--user", "b") == [young]
    assert ids("--limit", "1") == [old]
    assert ask(fake, "txns", "--user", "nobody", "-o", "json").json() == []


def test_types_are_told_where_the_server_does(ask: Ask, fake: FakeHive) -> None:
    types = [TxnType.DEFAULT, TxnType.READ_ONLY, TxnType.COMPACTION, TxnType.REPL_CREATED, TxnType.READ_ONLY]
    ids = [fake.begin(type=one) for one in types]
    told = {one["id"]: one["type"] for one in ask(fake, "txns", "-o", "jsonl").lines()}
    assert told == {id_: kind.name if fake.version > 3 else None for id_, kind in zip(ids, types, strict=True)}


def test_one_that_ends_while_types_are_asked_for_has_no_wrong_one(ask: Ask, fake4: FakeHive) -> None:
    stays, ends = fake4.begin(), fake4.begin(type=TxnType.READ_ONLY)
    fake4.before["get_open_txns_info"] = lambda: fake4.end(ends)
    late: list[int] = []
    ask(fake4, "txns")  # asks for the features, too
    ends = fake4.begin(type=TxnType.READ_ONLY)
    fake4.before["get_open_txns_info"] = lambda: late.append(fake4.begin())
    told = {one["id"]: one["type"] for one in ask(fake4, "txns", "-o", "jsonl").lines()}
    assert told == {stays: "DEFAULT", ends: "READ_ONLY", late[0]: "DEFAULT"}


def test_what_a_server_says_does_not_reach_the_terminal(ask: Ask, fake: FakeHive) -> None:
    txn = fake.begin(user="e\x1b[31mvil", host="a\u202eb", query="select '\x07'")
    fake.lock("sales", "or\x1bders", txn=txn)
    for words in ((), ("-o", "csv"), ("-o", "json")):
        found = ask(fake, "txns", *words)
        assert found.status == 0
        assert not {"\x1b", "\u202e", "\x07"} & set(found.out)
    assert r"e\x1b[31mvil" in ask(fake, "txns").out


def test_csv_has_one_line_for_each(ask: Ask, fake: FakeHive) -> None:
    txn = fake.begin(user="a,b")
    fake.lock("s", "t", txn=txn)
    fake.lock("s", "u", txn=txn)
    (row,) = csv.DictReader(ask(fake, "txns", "-o", "csv").out.splitlines())
    assert (row["id"], row["user"], row["locks"]) == (str(txn), "a,b", "s.t s.u")


# --- what holds back cleaning ---


def test_on_hive_4_older_transactions_hold_back_a_cleaning(ask: Ask, fake4: FakeHive, tmp_path: Path) -> None:
    size = compacted(tmp_path / "orders")
    fake4.table("sales", "orders", str(tmp_path / "orders"))
    fake4.write_ids["sales.orders"] = [100]
    first = fake4.begin(user="slow", ago=10800, silent=10, query="select * from other")
    second = fake4.begin(user="later", ago=60, silent=10)
    fake4.lock("x", "y", txn=second, agent="hive_17")
    entry = fake4.entry("sales", "orders", "ready for cleaning", next_txn=second + 1, txn=2, committed=50)
    third = fake4.begin(user="young", silent=0)
    one, two = ask(fake4, "txns", "--blocking", "-o", "json").json()
    assert (one["id"], one["user"], one["query"], one["bytes"], one["waiting"]) == (
        first, "slow", "select * from other", size, 1,
    )  # fmt: skip
    assert one["holds"] == [{"on": "sales.orders", "compaction": entry, "bytes": size}]
    assert (two["id"], two["query"]) == (second, "hive_17")
    assert third not in (one["id"], two["id"])
    shown = ask(fake4, "txns", "--blocking")
    assert f"it is alive: end its query, or acidctl hive abort txn {first}" in shown.out
    fake4.end(first)
    fake4.end(second)
    done = ask(fake4, "txns", "--blocking")
    assert done.status == 0
    assert "nothing holds back a cleaning" in done.err


def test_the_one_that_holds_back_most_bytes_comes_first(ask: Ask, fake4: FakeHive, tmp_path: Path) -> None:
    small, big = compacted(tmp_path / "small", 1), compacted(tmp_path / "big", 4000)
    assert big > small
    for name in ("small", "big"):
        fake4.table("s", name, str(tmp_path / name))
        fake4.write_ids[f"s.{name}"] = [100]
    old = fake4.begin(ago=100)
    fake4.entry("s", "small", "ready for cleaning", next_txn=old + 1)
    young = fake4.begin(ago=10)
    fake4.entry("s", "big", "ready for cleaning", next_txn=young + 1)
    found = ask(fake4, "txns", "--blocking", "-o", "jsonl").lines()
    assert [(one["id"], one["bytes"], one["waiting"]) for one in found] == [(old, small + big, 2), (young, big, 1)]
    assert [held["on"] for held in found[0]["holds"]] == ["s.big", "s.small"]


def test_on_hive_3_locks_on_the_location_do(ask: Ask, fake3: FakeHive, tmp_path: Path) -> None:
    size = compacted(tmp_path / "t" / "day=1")
    fake3.table("s", "t", str(tmp_path / "t"), ["day"])
    fake3.partition("s", "t", "day=1")
    fake3.write_ids["s.t"] = [100]
    reads_it, reads_another = fake3.begin(user="reader", ago=50, silent=1), fake3.begin(user="other", ago=500)
    fake3.lock("s", "t", "day=1", txn=reads_it, agent="query_9")
    fake3.lock("s", "t", "day=2", txn=reads_another)
    alone = fake3.lock("s", "t", "day=1", ago=4000, user="trino", host="node3")
    fake3.entry("s", "t", "ready for cleaning", "day=1")
    found = ask(fake3, "txns", "--blocking", "-o", "jsonl").lines()
    assert {(one["id"], one["lock"]) for one in found} == {(reads_it, None), (None, alone)}
    by_user = {one["user"]: one for one in found}
    assert by_user["reader"]["query"] == "query_9"
    assert by_user["reader"]["bytes"] == by_user["trino"]["bytes"] == size
    assert "housekeep" in by_user["trino"]["advice"]
    fake3.locks.clear()
    assert ask(fake3, "txns", "--blocking", "-o", "json").json() == []


def test_a_table_that_is_not_in_the_queue_is_looked_at_on_disk(ask: Ask, fake: FakeHive, tmp_path: Path) -> None:
    size = compacted(tmp_path / "t")
    fake.table("s", "t", str(tmp_path / "t"))
    fake.write_ids["s.t"] = [100]
    before = fake.begin(user="before", ago=3600)
    fake.lock("s", "t", txn=before)
    fake.begin(user="after", ago=-3600)
    assert ask(fake, "txns", "--blocking", "-o", "json").json() == [], "nothing is in the queue"
    (found,) = ask(fake, "txns", "--blocking", "hive:s.t", "-o", "jsonl").lines()
    assert (found["id"], found["bytes"]) == (before, size)
    assert found["holds"] == [{"on": "s.t", "compaction": None, "bytes": size}]


def test_sizes_may_be_left_out(ask: Ask, fake4: FakeHive, tmp_path: Path) -> None:
    txn = fake4.begin(ago=10)
    fake4.table("s", "t", str(tmp_path / "gone"))
    fake4.entry("s", "t", "ready for cleaning", next_txn=txn + 1)
    found = ask(fake4, "txns", "--blocking", "--no-sizes", "-o", "json")
    assert (found.status, found.one()["bytes"]) == (0, None)
    listed = ask(fake4, "txns", "--blocking", "-o", "json")
    assert (listed.status, listed.one()["bytes"]) == (3, None), "it is named, and what failed is said"
    assert "gone" in listed.err


def test_a_table_dropped_meanwhile_does_not_hide_who_blocks(ask: Ask, fake4: FakeHive) -> None:
    txn = fake4.begin(ago=10)
    fake4.entry("s", "dropped", "ready for cleaning", next_txn=txn + 1)
    found = ask(fake4, "txns", "--blocking", "-o", "json")
    assert found.one()["id"] == txn
    assert found.status == 3


def test_where_writes_decide_only_readers_of_the_table_do(ask: Ask, fake4: FakeHive) -> None:
    fake4.config["metastore.txn.use.minhistorywriteid"] = "true"
    reads, other = fake4.begin(ago=10), fake4.begin(ago=10)
    fake4.lock("s", "t", "day=2", txn=reads)
    fake4.lock("s", "other", txn=other)
    fake4.entry("s", "t", "ready for cleaning", "day=1", next_txn=other + 1)
    (found,) = ask(fake4, "txns", "--blocking", "--no-sizes", "-o", "jsonl").lines()
    assert found["id"] == reads


@pytest.mark.parametrize(
    ("kind", "silent", "said"),
    [
        (
            TxnType.DEFAULT,
            4000,
            "acidctl hive housekeep --metastore={at}, or acidctl hive abort txn {txn} --metastore={at}",
        ),
        (TxnType.DEFAULT, 5, "it is alive"),
        (TxnType.COMPACTION, 5, "wait for it"),
        (TxnType.REPL_CREATED, 4000, "replication"),
    ],
)
def test_what_can_be_done_is_said(ask: Ask, fake4: FakeHive, kind: TxnType, silent: int, said: str) -> None:
    txn = fake4.begin(ago=5000, silent=silent, type=kind)
    fake4.entry("s", "t", "ready for cleaning", next_txn=txn + 1)
    advice = ask(fake4, "txns", "--blocking", "--no-sizes", "-o", "json").one()["advice"]
    assert said.format(at=fake4.address, txn=txn) in advice


def test_very_many_are_fine(ask: Ask, fake4: FakeHive) -> None:
    ids = fake4.begin_many(2000, ago=100)
    fake4.begin_many(20000, aborted=True)
    for at in range(300):
        fake4.entry("s", f"t{at:03}", "ready for cleaning", next_txn=ids[0] + 5 * at + 1)
    found = ask(fake4, "txns", "--blocking", "--no-sizes", "-o", "jsonl").lines()
    assert len(found) == 5 * 299 + 1
    assert (found[0]["id"], found[0]["waiting"], len(found[0]["holds"])) == (ids[0], 300, 100)
    assert [one["waiting"] for one in found] == sorted((one["waiting"] for one in found), reverse=True)
    assert found[-1]["waiting"] == 1
    shown = ask(fake4, "txns")
    assert len(shown.out.splitlines()) == 101
    assert "21,900 more" in shown.err


def test_without_a_metastore_it_says_what_to_give(acidctl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HIVE_CONF_DIR", "HIVE_HOME", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    found = acidctl("hive", "txns")
    assert found.status == 2
    assert "give --metastore" in found.err


@pytest.mark.parametrize("fault", ["lost", "done"])
def test_a_lost_connection_is_made_again(ask: Ask, fake: FakeHive, fault: str) -> None:
    fake.begin()
    fake.fault("get_open_txns_info", fault)
    fake.fault("show_locks", fault)
    assert ask(fake, "txns").status == 0


@pytest.mark.parametrize("fault", ["failed", "garbage"])
@pytest.mark.parametrize("method", ["get_open_txns_info", "show_locks"])
def test_a_server_that_fails_is_told(ask: Ask, fake: FakeHive, method: str, fault: str) -> None:
    fake.fault(method, fault, 10)
    found = ask(fake, "txns")
    assert found.status == 6
    assert "the metastore thrift://127.0.0.1" in found.err
