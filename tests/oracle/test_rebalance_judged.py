"""Rebalances by acidctl, beside those that Hive 4 makes itself of twin tables: the same ROW__IDs, and all goes on.

One Hive for all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from support.command_line import Result
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, compactions, names, work_by_hive
from support.engines.real_hive import HiveTable, Rows
from support.servers.hive_server import HiveServer

from acidctl.acid.bucket import encode
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import LockComponent, LockType, Operation, TxnType
from acidctl.metastore.settings import find_settings
from acidctl.metastore.txn.transaction import Heartbeats, LockedTransaction

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

Acidctl = Callable[..., Result]
COLUMNS = {"id": "int", "name": "string"}
VECTORISED = "hive.vectorized.execution.enabled"


@pytest.fixture
def hive(real_hives: Callable[[int], HiveServer]) -> Any:
    server = real_hives(4)
    yield server
    server.reset()


def filled(hive: HiveServer, name: str) -> HiveTable:
    """Inserts, an update, deletes, and a transaction that was aborted."""
    table = HiveTable(hive, name, COLUMNS, by_lists=True)
    for number in (0, 20):
        texts = ", ".join(f"({i}, 'n{i}')" for i in range(number, number + 20))
        table.run(f"insert into {name} values {texts}")
    with hive.aborting():
        table.run(f"insert into {name} values (1000, 'aborted')")
    table.run(f"delete from {name} where id % 5 = 3", f"update {name} set name = null where id % 7 = 0")
    return table


def rebalance(acidctl: Acidctl, hive: HiveServer, name: str, *options: str) -> Result:
    return acidctl(
        "compact", "--rebalance", "--engine", "local", *options, "--metastore", hive.metastore, f"hive:default.{name}"
    )


def spread(before: Rows, buckets: int) -> Rows:
    """The ids and rows that a rebalance makes of rows, which are in the order of their ids: as Hive's query has it."""
    each = -(-len(before) // buckets)
    return sorted(((key[0], encode(n // each, 0), n), row) for n, (key, row) in enumerate(before))


def by_hive(hive: HiveServer, name: str, clauses: str = "") -> None:
    hive.set("hive.compactor.crud.query.based", "true")
    hive.sql(f"alter table {name} compact 'rebalance' {clauses}")
    assert work_by_hive(hive, name) == READY


def base_files(table: HiveTable) -> list[str]:
    (base,) = [name for name in names(table.path) if name.startswith("base_")]
    return sorted(file.name for file in (table.path / base).glob("bucket_*"))


def values(rows: Rows) -> Counter[Any]:
    return Counter(row for _, row in rows)


def judged(table: HiveTable) -> Rows:
    """As both of Hive's readers and acidctl see it."""
    table.hive.set(VECTORISED, "false")
    rows = table.rows()
    table.hive.set(VECTORISED, "true")
    assert sorted(table.judge()) == rows
    return rows


def changed(table: HiveTable) -> None:
    name = table.name
    table.run(
        f"update {name} set name = 'u' where id % 4 = 0",
        f"delete from {name} where id % 9 = 1",
        f"merge into {name} as t using (select 2 as id union all select 700 as id) as s on t.id = s.id "
        "when matched then update set name = 'merged' when not matched then insert values (s.id, 'new')",
    )


@pytest.mark.parametrize("buckets", [None, 12])
def test_rows_have_the_ids_of_hives_own_rebalance_and_all_goes_on(
    hive: HiveServer, acidctl: Acidctl, buckets: int | None
) -> None:
    ours, theirs = (filled(hive, f"{whose}_{buckets or 0}") for whose in ("ours", "theirs"))
    assert ours.judge() == theirs.judge()
    found = rebalance(acidctl, hive, ours.name, *(["--buckets", str(buckets)] if buckets else []))
    assert found.status == 0, found.err
    by_hive(hive, theirs.name, f"clustered into {buckets} buckets" if buckets else "")
    assert judged(ours) == theirs.rows()
    assert compactions(hive, ours.name) == [READY]
    assert base_files(ours) == base_files(theirs)
    for table in (ours, theirs):
        changed(table)
    assert values(judged(ours)) == values(theirs.rows())
    clean_by_hive(hive, ours.name)
    assert compactions(hive, ours.name) == ["succeeded"]
    assert "delta_0000001_0000001_0000" not in names(ours.path)
    before = judged(ours)
    hive.reset()
    assert compact_by_hive(hive, ours.name, "major") == READY
    assert judged(ours) == before
    clean_by_hive(hive, ours.name)
    alone = rebalance(acidctl, hive, ours.name, "--buckets", "2")
    assert (alone.status, "another write id" in alone.err) == (7, True)
    ours.run(f"delete from {ours.name} where id = 5")
    again = rebalance(acidctl, hive, ours.name, "--buckets", "2")
    assert again.status == 0, again.err
    assert len(judged(ours)) == len(before) - 1
    assert {key[1] for key, _ in ours.rows()} == {encode(0), encode(1)}


def test_an_order_that_is_asked_for_is_understood_by_hives_own_worker(hive: HiveServer, acidctl: Acidctl) -> None:
    table = filled(hive, "asked_for")
    before = table.judge()
    line = ["hive", "request", "--rebalance", "--buckets", "2", "--order-by", "id desc", "--metastore", hive.metastore]
    assert acidctl(*line, f"hive:default.{table.name}").status == 0
    hive.set("hive.compactor.crud.query.based", "true")
    assert work_by_hive(hive, table.name) == READY
    found = table.rows()
    assert values(found) == values(before)
    assert [int(row[0]) for _, row in found] == sorted((int(row[0]) for _, row in before), reverse=True)


def test_a_partition_is_rebalanced_alone_and_a_worker_takes_hives_entry(hive: HiveServer, acidctl: Acidctl) -> None:
    """What Hive 4.0.1 does not: it takes the rows of all partitions into the one."""
    tables = []
    for name in ("part_ours", "part_theirs"):
        table = HiveTable(hive, name, COLUMNS, "partitioned by (day int)", by_lists=True)
        for day in (1, 2):
            texts = ", ".join(f"({i}, 'n{i}', {day})" for i in range(9))
            table.run(f"insert into {name} partition (day) values {texts}", f"delete from {name} where id = {day}")
        tables.append(table)
    ours, theirs = tables
    by_day = [ours.rows(f"day = {day}") for day in (1, 2)]
    hive.sql(f"alter table {ours.name} partition (day=1) compact 'rebalance' clustered into 2 buckets")
    found = acidctl("hive", "worker", "--once", "--engine", "local", "--metastore", hive.metastore, "-o", "jsonl")
    assert found.status == 0, found.err
    mine = [one for one in found.lines() if ours.name in one["on"]]
    assert [(one["kind"], one["result"]) for one in mine] == [("rebalance", "compacted")]
    hive.set("hive.compactor.crud.query.based", "true")
    hive.sql(f"alter table {theirs.name} partition (day=1) compact 'rebalance' clustered into 2 buckets")
    work_by_hive(hive, theirs.name)
    assert len(theirs.rows("day = 1")) == sum(map(len, by_day))
    assert ours.rows("day = 1") == spread(by_day[0], 2) != by_day[0]
    assert ours.rows("day = 2") == by_day[1]
    changed_days = [f"delete from {ours.name} where id = 7", f"update {ours.name} set name = 'x' where id = 8"]
    ours.run(*changed_days)
    assert len(judged(ours)) == sum(map(len, by_day)) - 2
    clean_by_hive(hive, ours.name)


def test_a_table_in_buckets_is_refused_as_hive_refuses_it(hive: HiveServer, acidctl: Acidctl) -> None:
    table = HiveTable(hive, "clustered", COLUMNS, "clustered by (id) into 2 buckets", by_lists=True)
    table.run("insert into clustered values (1, 'a'), (2, 'b')")
    before = table.judge()
    found = rebalance(acidctl, hive, table.name)
    assert found.status == 7, found.err
    assert "clustered by" in found.err
    assert table.judge() == before
    assert compact_by_hive(hive, table.name, "rebalance") == "refused"
    assert not [one for one in names(table.path) if one.startswith("base")]


def test_the_lock_is_hives_and_keeps_who_updates_away_but_not_who_reads(hive: HiveServer, acidctl: Acidctl) -> None:
    """While somebody updates, it is refused; and nothing of it stays."""
    table = filled(hive, "locked")
    before = table.judge()
    settings = find_settings({"uris": hive.metastore}, {})
    assert settings
    metastore = Metastore(settings)
    heartbeats = Heartbeats(metastore)
    for kind, operation, is_in_the_way in (
        (LockType.SHARED_WRITE, Operation.UPDATE, True),
        (LockType.SHARED_READ, Operation.SELECT, False),
    ):
        part = LockComponent(kind, database="default", table=table.name, operation=operation)
        held = LockedTransaction(metastore, heartbeats, (part,), TxnType.DEFAULT)
        found = rebalance(acidctl, hive, table.name)
        held.abort()
        if is_in_the_way:
            assert found.status != 0
            assert "lock" in found.err, found.err
            assert table.judge() == before
            assert not [one for one in names(table.path) if one.startswith("base")]
        else:
            assert found.status == 0, found.err
    heartbeats.close()
    assert len(judged(table)) == len(before)
    _, *rows = hive.sql("show locks")
    assert not [row for row in rows if table.name in row]


def test_below_an_open_write_id_it_is_refused(hive: HiveServer, acidctl: Acidctl) -> None:
    table = filled(hive, "still_open")
    before = table.judge()
    txn = hive.open_transaction()
    write_id = hive.allocate_write_id(txn, table.name)
    found = rebalance(acidctl, hive, table.name)
    hive.end_transaction(txn, False)
    assert found.status == 7, found.err
    assert f"write id {write_id}" in found.err
    assert table.judge() == before
    found = rebalance(acidctl, hive, table.name)
    assert found.status == 0, found.err


@pytest.mark.parametrize("by", ["hive", "acidctl"])
def test_a_cleaner_removes_and_marks_what_a_rebalance_replaced(
    hive: HiveServer, acidctl: Acidctl, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Of its entry Hive 4.0 tells neither when nor before whom it was committed."""
    monkeypatch.setattr("acidctl.hive.ready_rules.OPEN_TXN_GAP", 1.0)
    theirs, ours = (filled(hive, f"rebalance_cleaned_{by}_{whose}") for whose in ("theirs", "ours"))
    for table in (theirs, ours):
        if by == "hive":
            by_hive(hive, table.name)
        else:
            assert rebalance(acidctl, hive, table.name).status == 0
    before = ours.rows()  # what Hive itself makes has no marker, which `validate` says
    line = (
        "hive", "cleaner", "--once", "--yes", "--older-than", "0", "--unsafe-retention", "-o", "jsonl",
        "--metastore", hive.metastore, f"default.{ours.name}",
    )  # fmt: skip
    reader = hive.open_transaction()
    (waits,) = acidctl(*line).lines()
    assert (waits["result"], waits["reasonCodes"]) == ("postponed", ["transaction-below"])
    hive.end_transaction(reader, commit=True)
    (done,) = acidctl(*line).lines()
    assert (done["result"], done["marked"]) == ("cleaned", True), done
    clean_by_hive(hive, theirs.name)
    assert {name.partition("_v")[0] for name in names(ours.path)} == {
        name.partition("_v")[0] for name in names(theirs.path)
    }
    assert compactions(hive, ours.name) == compactions(hive, theirs.name) == ["succeeded"]
    assert ours.rows() == before
    ours.run(f"insert into {ours.name} values (77, 'later')")
    assert len(ours.rows()) == len(before) + 1
