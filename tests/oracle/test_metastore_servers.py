"""A Hive metastore of its own process, 3.1.3, 4.0.1 and 4.1.0: what the tests of acidctl's side of it stand on.

On that of 4.1.0 it is Hive 4.0.1 that runs SQL: the archive of 4.1.0 is not in Maven's repository.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.engines.hive_compactor import names
from support.engines.hive_histories import History
from support.servers.hdfs_server import ServerUnavailable
from support.servers.hive_server import HiveServer
from support.servers.metastore_server import MetastoreServer

from acidctl.base.errors import ConflictError
from acidctl.metastore import interface
from acidctl.metastore.activity import find_locks, find_transactions
from acidctl.metastore.client import Metastore
from acidctl.metastore.housekeeping import find_dead
from acidctl.metastore.server import find_switches
from acidctl.metastore.settings import find_settings
from acidctl.metastore.txn.locks import DATABASE
from acidctl.verbs.hive import initiator
from acidctl.verbs.hive.options import InitiatorOptions
from acidctl.verbs.hive.service import Tables

pytestmark = [pytest.mark.server, pytest.mark.timeout(600), pytest.mark.in_turn("version")]


@pytest.mark.parametrize("version", [3, 4], ids=["hive-3.1", "hive-4.0"])
def test_hive_works_on_it_and_its_house_keeper_ends_what_is_dead(
    acidctl: Callable[..., Result], tmp_path: Path, version: int
) -> None:
    try:
        metastore = MetastoreServer(version, tmp_path, txn_timeout=6, keeps_house=True)
    except ServerUnavailable as error:
        pytest.skip(f"no metastore of Hive {version}: {error}")
    try:
        doctor_tells_of_it(acidctl, metastore.address, version)
        hive = HiveServer(version, tmp_path, metastore.address, {"hive.txn.timeout": "6s"})
        try:
            dead = str(hive.open_transaction())
            _, _, still_open, _ = hive.transactions().split(":")
            assert still_open == dead
            history = History(hive, "t", 1)
            history.step()
            history.judge()
            # Hive 4 forgets an aborted transaction that wrote nothing.
            end = time.monotonic() + 60
            while dead in hive.transactions().split(":")[2].split(",") and time.monotonic() < end:
                time.sleep(0.5)
            assert dead not in hive.transactions().split(":")[2].split(","), "it was aborted"
            history.step()
            history.judge()
            acidctl_takes_those_for_dead_that_it_ends(metastore.address, hive)
            owners_are_heard(acidctl, hive, metastore.address)
            one_in_standby_takes_over_from_one_that_died(metastore.address)
        finally:
            hive.stop()
    finally:
        metastore.stop()


def doctor_tells_of_it(acidctl: Callable[..., Result], address: str, version: int) -> None:
    """`acidctl doctor --metastore`: which Hive it is, and which of its services run."""
    done = acidctl("doctor", "--metastore", f"{address},thrift://127.0.0.1:1", "-o", "json")
    assert (done.status, "127.0.0.1:1 cannot be reached" in done.err) == (6, True)
    found, gone = done.json()["metastore"]["servers"]
    assert (found["answers"], gone["answers"], found["problems"]) == (True, False, [])
    assert (found["hive"], found["services"]["houseKeeper"]) == (version, True)


def test_tables_snapshots_and_the_queue_of_hive_4_1(
    acidctl: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acidctl.hive.ready_rules.OPEN_TXN_GAP", 1.0)  # as Hive's own waits for one second
    try:
        metastore = MetastoreServer(41, tmp_path)
    except ServerUnavailable as error:
        pytest.skip(f"no metastore of Hive 4.1: {error}")
    try:
        hive = HiveServer(4, tmp_path, metastore.address)
        try:
            history = History(hive, "t", 1)
            for _ in range(3):
                history.step()
                history.judge()
            a_compaction_goes_through_its_queue(acidctl, history, metastore.address)
            owners_are_heard(acidctl, hive, metastore.address)
        finally:
            hive.stop()
    finally:
        metastore.stop()


def a_compaction_goes_through_its_queue(acidctl: Callable[..., Result], history: History, address: str) -> None:
    """Asked for, done and cleaned by acidctl alone; Hive reads the same rows after each, and changes them."""

    def run(*line: str) -> Result:
        done = acidctl(*line, "--metastore", address, "-o", "jsonl")
        assert done.status == 0, done.err
        return done

    def state() -> str:
        (entry,) = run("hive", "compactions").lines()
        return str(entry["state"])

    before = history.judge()
    run("hive", "request", "--major", "hive:default.t")
    assert state() == "initiated"
    (done,) = run("hive", "worker", "--once", "--engine", "local").lines()
    assert (done["result"], state()) == ("compacted", "ready for cleaning")
    assert history.judge() == before
    time.sleep(1.2)
    (cleaned,) = run(
        "hive", "cleaner", "--once", "--yes", "--older-than", "0", "--unsafe-retention", "default.t"
    ).lines()
    assert (cleaned["result"], cleaned["marked"], state()) == ("cleaned", True, "succeeded")
    assert [name for name in names(history.path) if not name.startswith("base_")] == []
    assert history.judge() == before
    history.step()
    history.judge()


def owners_are_heard(acidctl: Callable[..., Result], hive: HiveServer, address: str) -> None:
    """What SQL says of a table and of its database is what acidctl goes by."""
    hive.sql(
        "alter table t set tblproperties ('no_cleanup' = 'true', 'compactor.mapreduce.job.queuename' = 'etl')",
        "alter database default set dbproperties ('no_auto_compaction' = 'true')",
    )
    table = acidctl("hive", "tables", "default.t", "--metastore", address, "-o", "json").one()
    assert (table["noCleanup"], table["noAutoCompaction"]) == (True, True)
    assert table["job"] == {"mapreduce.job.queuename": "etl"}
    left = acidctl(
        "compact", "--auto", "--dry-run", "--engine", "local", "--metastore", address, "-o", "json", "hive:*.t"
    )
    assert left.one()["reason"] == "no_auto_compaction is set for the database"
    assert left.one()["snapshotSource"]["server"] == address
    kept = acidctl("clean", "-n", "--older-than", "0", "--metastore", address, "-o", "json", "hive:default.t").one()
    assert (kept["removals"], {one["code"] for one in kept["keptBack"]} - {"no-cleanup"}) == ([], set())


def one_in_standby_takes_over_from_one_that_died(address: str) -> None:
    """The lock of an initiator that gives no sign of life any more."""
    settings = find_settings({"uris": address}, {})
    assert settings
    metastore, other = Metastore(settings), Metastore(settings)
    part = interface.LockComponent(interface.LockType.EXCLUSIVE, database=DATABASE, table=initiator.ROLE)
    died = metastore.call(interface.LOCK, interface.LockRequest((part,), None, "alice", "there"))
    assert died.state == interface.LockState.ACQUIRED
    waits: list[ConflictError] = []
    asked = InitiatorOptions(every=60, standby=True)
    one = initiator.Initiator(
        other, asked, Tables(("hive:default.t",)), lambda _: None, lambda _, error: pytest.fail(str(error))
    )
    thread = threading.Thread(target=one.run, args=(waits.append,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(initiator, "_STANDBY", 0.5)
        thread.start()
        end = time.monotonic() + 60
        while not one.counts.rounds and time.monotonic() < end:
            time.sleep(0.2)
        (held,) = find_locks(metastore, DATABASE)
        one.stop()
        thread.join(60)
    assert not thread.is_alive()
    assert [error.why for error in waits] == [f"alice@there holds the lock {died.lock}"]
    assert (held.id > died.lock, one.counts.rounds) == (True, 1)
    assert find_locks(metastore, DATABASE) == ()


def acidctl_takes_those_for_dead_that_it_ends(address: str, hive: HiveServer) -> None:
    settings = find_settings({"uris": address}, {})
    assert settings
    metastore = Metastore(settings)
    assert find_switches(metastore).keeps_house
    part = interface.LockComponent(database="default", table="t")
    dead, alive = hive.open_transaction(), hive.open_transaction()
    for txn in (dead, alive):
        hive.allocate_write_id(txn, "t")
    orphan, kept = (
        metastore.call(interface.LOCK, interface.LockRequest((part,), None, "alice", "there")).lock for _ in range(2)
    )
    over = threading.Event()

    def beat() -> None:
        other = metastore.another()
        while not over.wait(0.5):
            other.call(interface.HEARTBEAT, interface.HeartbeatRequest(None, alive))
            other.call(interface.HEARTBEAT, interface.HeartbeatRequest(kept, None))

    beats = threading.Thread(target=beat, daemon=True)
    beats.start()
    try:
        time.sleep(2.5)
        found = find_dead(metastore, 2.0)
        assert ({txn.id for txn in found.txns}, {lock.id for lock in found.locks}) == ({dead}, {orphan})
        end = time.monotonic() + 60
        while time.monotonic() < end:
            open_now = {txn.id for txn in find_transactions(metastore).open}
            locks = {lock.id for lock in find_locks(metastore)}
            if dead not in open_now and orphan not in locks:
                break
            time.sleep(0.5)
        assert alive in open_now and dead not in open_now
        assert kept in locks and orphan not in locks
    finally:
        over.set()
        beats.join()
    metastore.call(interface.UNLOCK, interface.UnlockRequest(kept))
    hive.end_transaction(alive, commit=True)
