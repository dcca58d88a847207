"""Compactions by acidctl in Hive's own protocol, seen by a whole Hive 3.1.3 or 4.0.1 with its metastore.

Its SHOW COMPACTIONS, SHOW TRANSACTIONS, SHOW LOCKS, SELECT, Worker and Cleaner say what became of them.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.command_line import Result
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, compactions, names
from support.engines.hive_histories import History
from support.files.acid_files import damage_stripe
from support.servers.hive_server import HiveServer
from support.spark.processes import wait_until

from acidctl import Location
from acidctl.base.errors import AcidctlError, ConflictError, RefusedError
from acidctl.compaction.local_engine import LocalEngine
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import LostTransaction, UnknownMethod
from acidctl.metastore.queue import Wish, request_compaction
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import get_table
from acidctl.metastore.txn.locks import LeaderLock, ReadLock
from acidctl.metastore.txn.transaction import Heartbeats, LockedTransaction

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]

Acidctl = Callable[..., Result]


def entries(hive: HiveServer, table: str) -> list[dict[str, str]]:
    """SHOW COMPACTIONS, the newest first."""
    head, *rows = hive.sql("show compactions")
    found = [dict(zip(head, row, strict=True)) for row in rows]
    return sorted((one for one in found if one["Table"] == table), key=lambda one: -int(one["CompactionId"]))


def open_transactions(hive: HiveServer) -> list[list[str]]:
    _, *rows = hive.sql("show transactions")
    return [row for row in rows if row[1] == "OPEN"]


def locks(hive: HiveServer, table: str) -> list[list[str]]:
    _, *rows = hive.sql("show locks")
    return [row for row in rows if table in row]


def changed(hive: HiveServer, name: str, seed: int) -> History:
    """A table with a past; `test_real_hive` judges such tables after each of their statements."""
    history = History(hive, name, seed)
    for number in range(6):
        history.aborted_step() if number == 3 else history.step()
    return history


def compact(acidctl: Acidctl, hive: HiveServer, name: str, *options: str) -> Result:
    return acidctl("compact", "--engine", "local", *options, "--metastore", hive.metastore, f"hive:default.{name}")


@pytest.mark.parametrize("kind", ["major", "minor"])
def test_hive_sees_it_in_its_queue_and_cleans_after_it(
    real_hives: Callable[[int], HiveServer], acidctl: Acidctl, kind: str
) -> None:
    hive = real_hives(4)
    history = changed(hive, f"queue_{kind}", 5)
    before = history.judge()
    found = compact(acidctl, hive, history.name, f"--{kind}")
    assert found.status == 0, found.err
    (entry,) = entries(hive, history.name)
    assert (entry["State"], entry["Type"]) == (READY, kind.upper())
    assert entry["Pool name"].startswith("acidctl-")
    assert entry["Error message"].strip() in ("---", "")
    (txn,) = {name.rpartition("_v")[2] for name in names(history.path) if "_v" in name}
    assert int(txn) == int(entry["TxnId"])
    assert not open_transactions(hive)
    assert not locks(hive, history.name)
    assert history.judge() == before
    replaced = {name for name in names(history.path) if "_v" not in name and not name.startswith("base")}
    clean_by_hive(hive, history.name)
    assert not replaced & names(history.path)
    assert compactions(hive, history.name) == ["succeeded"]
    assert history.judge() == before
    history.step()
    history.judge()
    assert compact_by_hive(hive, history.name, "major") == READY
    clean_by_hive(hive, history.name)
    history.judge()


@pytest.mark.parametrize("kind", ["major", "minor"])
def test_hive_3_goes_on_after_a_compaction_beside_its_queue(
    real_hives: Callable[[int], HiveServer], acidctl: Acidctl, kind: str
) -> None:
    hive = real_hives(3)
    history = changed(hive, f"beside_{kind}", 6)
    before = history.judge()
    found = compact(acidctl, hive, history.name, f"--{kind}", *(["--offline"] if kind == "minor" else []))
    assert found.status == 0, found.err
    assert entries(hive, history.name) == []
    assert not open_transactions(hive)
    assert history.judge() == before
    assert compact_by_hive(hive, history.name, "major") == READY
    clean_by_hive(hive, history.name)
    assert history.judge() == before
    history.step()
    history.judge()


@pytest.mark.parametrize("kind", ["major", "minor"])
def test_hive_3_s_cleaner_finds_what_it_looks_at(
    real_hives: Callable[[int], HiveServer], acidctl: Acidctl, kind: str
) -> None:
    """What ours replaced while its own compaction waited for the cleaner, which else fails for want of history."""
    hive = real_hives(3)
    history = changed(hive, f"cleaner_{kind}", 8)
    assert compact_by_hive(hive, history.name, "major") == READY
    clean_by_hive(hive, history.name)
    history.step()
    assert compact_by_hive(hive, history.name, kind) == READY
    history.step()
    before = history.judge()
    assert compact(acidctl, hive, history.name, "--major").status == 0
    now = ("--yes", "--older-than", "0", "--unsafe-retention")
    there = names(history.path)
    clean = ("clean", *now, "--metastore", hive.metastore, f"hive:default.{history.name}")
    found = acidctl(*clean)
    assert found.status == 0, found.err
    assert "of Hive's queue began before it became obsolete" in found.out
    assert names(history.path) == there
    clean_by_hive(hive, history.name)
    assert compactions(hive, history.name)[0] == "succeeded"
    assert acidctl(*clean).status == 0
    (left,) = names(history.path)
    assert left.startswith("base")
    assert history.judge() == before


def test_hives_own_request_is_in_the_way_until_it_is_taken_over(
    real_hives: Callable[[int], HiveServer], acidctl: Acidctl
) -> None:
    hive = real_hives(4)
    history = changed(hive, "queue_in_the_way", 7)
    before = history.judge()
    hive.sql(f"alter table {history.name} compact 'major'")
    (theirs,) = entries(hive, history.name)
    refused = compact(acidctl, hive, history.name, "--major")
    assert refused.status == 7
    assert theirs["CompactionId"] in refused.err
    assert "--take-over" in refused.err
    assert compact(acidctl, hive, history.name, "--major", "--take-over").status == 0
    ours, theirs = entries(hive, history.name)
    assert (ours["State"], theirs["State"]) == (READY, "aborted")
    assert history.judge() == before
    clean_by_hive(hive, history.name)
    assert history.judge() == before


def test_a_failed_compaction_leaves_an_entry_that_says_why(
    real_hives: Callable[[int], HiveServer], acidctl: Acidctl
) -> None:
    """A task that fails, as by a damaged file: the entry has failed, the transaction is aborted, rows are there."""
    hive = real_hives(4)
    history = changed(hive, "queue_failed", 8)
    before = history.judge()
    damaged = sorted(history.path.glob("delta_*/bucket_*"))[0]
    content = damaged.read_bytes()
    damage_stripe(damaged, 0)
    found = compact(acidctl, hive, history.name, "--major")
    damaged.write_bytes(content)
    assert found.status not in (0, 7), found.out
    (entry,) = entries(hive, history.name)
    assert entry["State"] == "failed"
    assert entry["Error message"].strip()
    assert not open_transactions(hive)
    assert not locks(hive, history.name)
    assert history.judge() == before
    assert compact(acidctl, hive, history.name, "--major").status == 0
    assert history.judge() == before
    clean_by_hive(hive, history.name)
    assert history.judge() == before


def test_readers_and_writers_of_hive_go_on_meanwhile(real_hives: Callable[[int], HiveServer]) -> None:
    """Statements while compactions come and go: rows change by statements only."""
    hive = real_hives(4)
    history = changed(hive, "queue_meanwhile", 9)
    location = Location(f"hive:default.{history.name}", metastore=hive.metastore)
    failed: list[AcidctlError] = []
    done: list[str] = []
    over = threading.Event()

    def compact_on() -> None:
        while not over.is_set():
            for kind in ("minor", "major"):
                try:
                    done.append(location.compact(kind).result)
                except (RefusedError, ConflictError):
                    done.append("conflict")
                except AcidctlError as error:
                    failed.append(error)
                    return

    thread = threading.Thread(target=compact_on)
    thread.start()
    try:
        for number in range(6):
            history.aborted_step() if number % 3 == 2 else history.step()
            assert history.rows() == history.rows()
            if READY in compactions(hive, history.name):
                before = history.rows()
                hive.round("Cleaner")
                assert history.rows() == before
    finally:
        over.set()
        thread.join(120)
    assert not failed, failed
    assert "compacted" in done
    assert not open_transactions(hive)
    before = history.judge()

    def are_cleaned() -> bool:
        """The cleaner takes one entry of a table at a time, and none while a new transaction's id may still come."""
        hive.round("Cleaner")
        # Hive 4.0's cleaner does not get over an entry once what a later one has replaced is gone, whoever compacted.
        return all(
            entry["State"] == "succeeded" or "Not enough history" in entry["Error message"]
            for entry in entries(hive, history.name)
        )

    assert wait_until(are_cleaned, 60)
    assert history.judge() == before


def test_a_worker_does_what_hive_was_asked_for(real_hives: Callable[[int], HiveServer], acidctl: Acidctl) -> None:
    """Entries of SQL, in a pool and in none, with a partition and without; one of them a table that is gone."""
    hive = real_hives(4)
    history = changed(hive, "queue_worker", 10)
    before = history.judge()
    hive.sql(
        "create table queue_days (id int) partitioned by (day string) stored as orc"
        " tblproperties('transactional'='true')",
        "insert into queue_days partition (day='a:b') values (1), (2)",
        "insert into queue_days partition (day='a:b') values (3)",
        "insert into queue_days partition (day='c') values (4)",
        "create table queue_gone (id int) stored as orc tblproperties('transactional'='true')",
        "insert into queue_gone values (1)",
        "alter table queue_gone compact 'major'",
        f"alter table {history.name} compact 'minor'",
        "alter table queue_days partition (day='a:b') compact 'major' pool 'nightly'",
        "alter table queue_days partition (day='c') compact 'major' pool 'nightly'",
        "drop table queue_gone",
    )
    done = acidctl("hive", "worker", "--once", "--engine", "local", "-o", "jsonl", "--metastore", hive.metastore)
    assert done.status == 0, done.err
    assert "compacted" in {one["result"] for one in done.lines()}
    assert compactions(hive, history.name) == [READY]
    assert {one["State"] for one in entries(hive, "queue_days")} == {"initiated"}
    nightly = acidctl(
        "hive", "worker", "--once", "--pool", "nightly", "--engine", "local", "--max-parallel", "2", "-o", "jsonl",
        "--metastore", hive.metastore,
    )  # fmt: skip
    assert nightly.status == 0, nightly.err
    assert sorted(one["result"] for one in nightly.lines()) == ["compacted", "nothing-to-do"]
    by_partition = {one["Partition"]: one["State"] for one in entries(hive, "queue_days")}
    assert by_partition == {"day=a%3Ab": READY, "day=c": "refused"}
    assert not open_transactions(hive)
    assert history.judge() == before
    days = "select id from queue_days order by id"
    assert hive.sql(days) == [["1"], ["2"], ["3"], ["4"]]
    for name in ("queue_days", history.name):
        clean_by_hive(hive, name)
    assert hive.sql(days) == [["1"], ["2"], ["3"], ["4"]]
    assert history.judge() == before


def test_a_transaction_that_was_committed_is_never_taken_for_aborted(real_hive: HiveServer) -> None:
    """On this hangs whether a result may be taken back."""
    settings = find_settings({"uris": real_hive.metastore}, {})
    assert settings
    metastore = Metastore(settings)
    heartbeats = Heartbeats(metastore)
    part = interface.LockComponent(database="default", table="nobodys")
    kind = interface.TxnType.COMPACTION
    committed, aborted = (LockedTransaction(metastore, heartbeats, (part,), kind) for _ in range(2))
    committed.commit()
    assert not committed.abort()
    assert aborted.abort()
    assert aborted.abort(), "once more"
    with pytest.raises(LostTransaction):
        aborted.commit()
    heartbeats.close()
    metastore.close()


def test_what_a_transaction_may_read_is_taken_by_servers_that_have_the_call_and_changes_nothing_there(
    real_hive: HiveServer,
) -> None:
    """Hive 4.0 has it, and needs it only with a setting that is off; Hive 3 does not, and is not asked."""
    name = f"held{secrets.token_hex(4)}"
    real_hive.sql(f"create table {name} (a int) stored as orc tblproperties ('transactional'='true')")
    for number in (1, 2):
        real_hive.sql(f"insert into {name} values ({number})")
    settings = find_settings({"uris": real_hive.metastore}, {})
    assert settings
    metastore = Metastore(settings)
    lock = ReadLock(metastore, [get_table(metastore, "default", name)])
    called = _has_min_history(metastore, lock.txn)
    real_hive.sql(f"insert into {name} values (3)")
    lock.check()
    lock.release()
    assert called is metastore.features.txn_types
    assert sorted(real_hive.sql(f"select a from {name}")[-3:]) == [["1"], ["2"], ["3"]]
    assert not locks(real_hive, name)


def _has_min_history(metastore: Metastore, txn: int) -> bool:
    try:
        metastore.call(interface.ADD_WRITE_IDS_TO_MIN_HISTORY, txn, {})
    except UnknownMethod:
        return False
    return True


@pytest.mark.parametrize(("kind", "by"), [("major", "hive"), ("minor", "hive"), ("major", "acidctl")])
def test_a_cleaner_removes_and_marks_what_hives_own_would(
    real_hives: Callable[[int], HiveServer], acidctl: Acidctl, monkeypatch: pytest.MonkeyPatch, kind: str, by: str
) -> None:
    """Two tables of the same statements, some of them aborted: one is cleaned by Hive, one by acidctl."""
    monkeypatch.setattr("acidctl.hive.ready_rules.OPEN_TXN_GAP", 1.0)  # as Hive's own waits for one second
    hive = real_hives(4)
    theirs, ours = (changed(hive, f"cleaner_{by}_{kind}_{whose}", 9) for whose in ("theirs", "ours"))
    before = ours.judge()
    reader = hive.open_transaction()
    for history in (theirs, ours):
        if by == "hive":
            assert compact_by_hive(hive, history.name, kind) == READY
        else:
            assert compact(acidctl, hive, history.name, f"--{kind}").status == 0
    line = (
        "hive", "cleaner", "--once", "--yes", "--older-than", "0", "--unsafe-retention", "-o", "jsonl",
        "--metastore", hive.metastore, f"default.{ours.name}",
    )  # fmt: skip
    time.sleep(1.2)
    (waits,) = acidctl(*line).lines()
    assert (waits["result"], waits["reasonCodes"]) == ("postponed", ["transaction-below"])
    hive.end_transaction(reader, commit=True)
    (done,) = acidctl(*line).lines()
    assert (done["result"], done["marked"]) == ("cleaned", True), done
    clean_by_hive(hive, theirs.name)
    assert {without_txn(name) for name in names(ours.path)} == {without_txn(name) for name in names(theirs.path)}
    assert compactions(hive, ours.name) == compactions(hive, theirs.name) == ["succeeded"]
    assert ours.judge() == before
    assert not open_transactions(hive)
    for number in range(2):
        ours.aborted_step() if number else ours.step()
        ours.judge()
    after = ours.judge()
    assert compact_by_hive(hive, ours.name, "major") == READY
    clean_by_hive(hive, ours.name)
    assert ours.judge() == after
    assert acidctl(*line).lines() == []


def without_txn(name: str) -> str:
    return name.partition("_v")[0]


def test_an_initiator_asks_for_what_hives_own_asks_for(real_hive: HiveServer, acidctl: Acidctl) -> None:
    """Tables that are due, and tables that are not; then ours asks, and Hive's own finds nothing more to ask for."""
    for name in ("delta.num.threshold", "delta.pct.threshold", "abortedtxn.threshold"):
        real_hive.set(f"hive.compactor.{name}", "1000000")  # nothing of other tests is due
    low = "'compactorthreshold.hive.compactor.delta.num.threshold'='2'"
    tables = {
        "initiated_due": (low, 4),
        "initiated_few": (low, 2),
        "initiated_off": (f"{low}, 'no_auto_compaction'='true'", 4),
        "initiated_usual": ("'x'='y'", 4),
    }
    for name, (properties, inserts) in tables.items():
        real_hive.sql(
            f"create table {name} (id int) stored as orc tblproperties('transactional'='true', {properties})",
            *(f"insert into {name} values ({number})" for number in range(inserts)),
        )
    real_hive.sql(
        "create table initiated_days (id int) partitioned by (day string) stored as orc"
        f" tblproperties('transactional'='true', {low})",
        *(f"insert into initiated_days partition (day='{day}') values (1)" for day in "aaaab"),
    )
    line = ("hive", "initiator", "--metastore", real_hive.metastore, "-o", "jsonl")
    planned = acidctl(*line, "--dry-run", "default.initiated_*")
    assert planned.status == 0, planned.err
    ours = {
        (one["location"].rpartition("/warehouse/")[2].replace("/", " "), one["kind"])
        for one in planned.lines()
        if one["result"] == "planned"
    }
    assert ours == {("initiated_due", "major"), ("initiated_days day=a", "major")}
    assert initiated(real_hive) == set()
    real_hive.round("Initiator")
    assert initiated(real_hive) == ours
    late = "alter table initiated_off set tblproperties('no_auto_compaction'='false')"
    real_hive.sql(late)
    asked = acidctl(*line, "--once", "default.initiated_*")
    requested = [one["location"] for one in asked.lines() if one["result"] == "requested"]
    assert [place.rpartition("/")[2] for place in requested] == ["initiated_off"]
    everything = {*ours, ("initiated_off", "major")}
    assert initiated(real_hive) == everything
    assert not locks(real_hive, "acidctl")
    real_hive.round("Initiator")
    assert initiated(real_hive) == everything
    for name in (*tables, "initiated_days"):
        real_hive.sql(f"drop table {name}")
    assert initiated(real_hive) == set()  # or Hive's workers would take them before those of other tests


def initiated(hive: HiveServer) -> set[tuple[str, str]]:
    """Locations of the queue, with the type of what is asked for."""
    head, *rows = hive.sql("show compactions")
    waiting = [one for one in (dict(zip(head, row, strict=True)) for row in rows) if one["State"] == "initiated"]
    return {
        (f"{one['Table']} {one['Partition']}".removesuffix(" ---").strip(" -"), one["Type"].lower())
        for one in waiting
        if one["Table"].startswith("initiated_")
    }


def test_one_initiator_works_at_a_time(real_hive: HiveServer, acidctl: Acidctl) -> None:
    settings = find_settings({"uris": real_hive.metastore}, {})
    assert settings
    metastore = Metastore(settings)
    with LeaderLock(metastore, "initiator") as lock:
        lock.take()
        (held,) = locks(real_hive, "acidctl")
        assert "EXCLUSIVE" in held
        refused = acidctl("hive", "initiator", "--once", "--metastore", real_hive.metastore, "default.nothing_*")
        assert (refused.status, "there is another initiator" in refused.err) == (9, True)
        assert len(locks(real_hive, "acidctl")) == 1
        lock.check()
        assert not open_transactions(real_hive)
    assert not locks(real_hive, "acidctl")
    metastore.close()


DROP_TABLE = interface.INTERFACE.method(
    "void drop_table(string, string, bool) throws NoSuchObjectException, MetaException [once]"
)
DROP_PARTITION = interface.INTERFACE.method(
    "bool drop_partition_by_name(string, string, string, bool) throws NoSuchObjectException, MetaException"
)


def metastore_of(hive: HiveServer) -> Metastore:
    settings = find_settings({"uris": hive.metastore}, {})
    assert settings
    return Metastore(settings)


def drop(metastore: Metastore, table: str, partition: str) -> None:
    """As Trino and Spark do it: without a lock, from under whoever works there."""
    if partition:
        assert metastore.call(DROP_PARTITION, "default", table, partition, True)
    else:
        metastore.call(DROP_TABLE, "default", table, True)


def table_to_drop(hive: HiveServer, name: str, partition: str) -> None:
    keys = " partitioned by (day string)" if partition else ""
    into = f"{name} partition (day='1')" if partition else name
    hive.sql(
        f"create table {name} (id int){keys} stored as orc tblproperties('transactional'='true')",
        *(f"insert into {into} values ({number})" for number in (1, 2, 3)),
    )


@pytest.mark.parametrize("partition", ["", "day=1"], ids=["table", "partition"])
def test_what_is_dropped_under_a_compaction_leaves_no_transaction_and_no_lock(
    real_hive: HiveServer, acidctl: Acidctl, monkeypatch: pytest.MonkeyPatch, partition: str
) -> None:
    """In the middle of its work, by somebody who takes no lock; on both Hives."""
    name = f"dropped_under_{'part' if partition else 'table'}"
    table_to_drop(real_hive, name, partition)
    metastore = metastore_of(real_hive)
    run = LocalEngine.__call__

    def drop_then_run(engine: LocalEngine, *arguments: Any) -> Any:
        drop(metastore, name, partition)
        return run(engine, *arguments)

    monkeypatch.setattr(LocalEngine, "__call__", drop_then_run)
    found = compact(acidctl, real_hive, f"{name}/{partition}".rstrip("/"), "--major")
    metastore.close()
    assert found.status not in (0, 1), found.out + found.err
    assert "Traceback" not in found.err
    assert not open_transactions(real_hive)
    assert not locks(real_hive, name)
    assert {one["State"] for one in entries(real_hive, name)} <= {"failed", "refused"}
    place = real_hive.warehouse / name / partition
    assert not list(place.glob("base_*"))


@pytest.mark.parametrize("moment", ["before the work", "under the work", "before the cleaning"])
@pytest.mark.parametrize("partition", ["", "day=1"], ids=["table", "partition"])
def test_what_is_dropped_meanwhile_ends_its_entry(
    real_hives: Callable[[int], HiveServer],
    acidctl: Acidctl,
    monkeypatch: pytest.MonkeyPatch,
    partition: str,
    moment: str,
) -> None:
    """An entry of Hive's own queue, worker and cleaner of acidctl: nothing waits, nothing is open."""
    hive = real_hives(4)
    name = f"dropped_{'part' if partition else 'table'}_{moment.replace(' ', '_')}"
    table_to_drop(hive, name, partition)
    metastore = metastore_of(hive)
    assert request_compaction(metastore, Wish("default", name, partition, "major")).accepted
    if moment == "before the work":
        drop(metastore, name, partition)
    elif moment == "under the work":
        run = LocalEngine.__call__

        def drop_then_run(engine: LocalEngine, *arguments: Any) -> Any:
            drop(metastore, name, partition)
            return run(engine, *arguments)

        monkeypatch.setattr(LocalEngine, "__call__", drop_then_run)
    address = ("--metastore", hive.metastore)
    worked = acidctl("hive", "worker", "--once", "--engine", "local", "-o", "jsonl", *address)
    monkeypatch.undo()
    assert "Traceback" not in worked.err
    if moment == "before the cleaning":
        drop(metastore, name, partition)
    line = (
        "hive",
        "cleaner",
        "--once",
        "--yes",
        "--older-than",
        "0",
        "--unsafe-retention",
        f"default.{name}",
        *address,
    )
    cleaned = acidctl(*line)
    assert "Traceback" not in cleaned.err
    assert not open_transactions(hive)
    assert not locks(hive, name)
    states = {one["State"] for one in entries(hive, name)}
    assert states <= {"refused", "succeeded"}, "what is dropped has not failed"
    assert not list((hive.warehouse / name / partition).glob("base_*"))
    metastore.close()


def test_an_entry_for_all_partitions_of_a_table_is_refused(
    real_hives: Callable[[int], HiveServer], acidctl: Acidctl
) -> None:
    hive = real_hives(4)
    table_to_drop(hive, "queue_whole", "day=1")
    metastore = metastore_of(hive)
    assert request_compaction(metastore, Wish("default", "queue_whole", "", "major")).accepted
    done = acidctl("hive", "worker", "--once", "--engine", "local", "-o", "jsonl", "--metastore", hive.metastore)
    (one,) = (line for line in done.lines() if line["on"] == "default.queue_whole")
    assert one["result"] == "refused"
    (entry,) = entries(hive, "queue_whole")
    assert entry["State"] == "refused"
    assert "the table has partitions" in entry["Error message"]
    assert not open_transactions(hive)
    metastore.close()
