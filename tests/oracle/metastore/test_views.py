"""acidctl's views of a metastore are those of Hive's SHOW statements through whole lives, and its acts are Hive's."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from support.command_line import Result
from support.engines.hive_compactor import names
from support.engines.hive_views import Views
from support.servers.hive_server import HiveError, HiveServer

from acidctl.base.errors import AcidctlError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.housekeeping import end_dead, find_dead
from acidctl.metastore.interface import LockLevel, LockState, LockType, Operation
from acidctl.metastore.settings import find_settings

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

ACID = "stored as orc tblproperties('transactional'='true')"


@pytest.fixture
def views(real_hive: HiveServer, acidctl: Callable[..., Result]) -> Views:
    return Views(real_hive, acidctl)


def client(hive: HiveServer) -> Metastore:
    settings = find_settings({"uris": hive.metastore}, {})
    assert settings
    return Metastore(settings)


def made(hive: HiveServer, name: str, inserts: int = 2) -> str:
    hive.sql(f"create table {name} (id int, name string) {ACID}")
    for number in range(inserts):
        hive.sql(f"insert into {name} values ({number}, 'a'), ({number + 10}, 'b')")
    return name


def lock_of(metastore: Metastore, *parts: interface.LockComponent, txn: int | None = None) -> tuple[int, int]:
    request = interface.LockRequest(parts, txn, "alice", "there", "agent of tests")
    answer = metastore.call(interface.LOCK, request)
    return answer.lock, answer.state


def test_transactions_and_locks_through_their_lives(views: Views) -> None:
    hive = views.hive
    made(hive, "lived", 1)
    hive.sql(f"create table lived_in_parts (id int) partitioned by (day string, hour int) {ACID}")
    metastore = client(hive)
    before = set(views.transactions())
    reader, writer, dropper = (hive.open_transaction() for _ in range(3))
    hive.allocate_write_id(writer, "lived")
    part = interface.LockComponent(LockType.SHARED_READ, database="default", table="lived")
    written = interface.LockComponent(
        LockType.SHARED_READ,
        LockLevel.PARTITION,
        "default",
        "lived_in_parts",
        "day=a b%2Fc/hour=7",
        Operation.INSERT,
    )
    whole = interface.LockComponent(LockType.SHARED_READ, LockLevel.DB, "default")
    first, state = lock_of(metastore, part, written, whole, txn=reader)
    assert state == LockState.ACQUIRED
    alone, state = lock_of(metastore, part)
    assert state == LockState.ACQUIRED
    second, state = lock_of(
        metastore,
        interface.LockComponent(LockType.EXCLUSIVE, database="default", table="lived", operation=Operation.DELETE),
        txn=dropper,
    )
    assert state == LockState.WAITING
    assert set(views.transactions()) - before == {reader, writer, dropper}
    held = views.locks()
    assert [key for key in held if key[0] in (first, alone, second)] == [
        *((first, 1), (first, 2), (first, 3), (alone, 1), (second, 1))
    ]
    (waiting,) = views.told("locks", "--waiting")
    assert waiting["blockedBy"]["lock"] in (first, alone)
    assert {one["lock"] for one in views.told("locks", "default.lived")} == {first, alone, second}
    # The one that waits gets it when the others go: Hive sees it so.
    metastore.call(interface.UNLOCK, interface.UnlockRequest(alone))
    hive.end_transaction(reader, commit=True)
    checked = metastore.call(interface.CHECK_LOCK, interface.CheckLockRequest(second, dropper))
    assert checked.state == LockState.ACQUIRED
    assert {key[0] for key in views.locks()} & {first, alone, second} == {second}
    # An abort of acidctl's, and one of Hive's.
    views.ask("abort", "txn", "--yes", str(writer))
    hive.sql(f"abort transactions {dropper}")
    found = views.transactions()
    assert not {key[0] for key in views.locks()} & {first, alone, second}
    assert found[writer]["state"] == "aborted"
    if hive.version == 3:  # Hive 4 forgets, after a while, what wrote nothing
        assert found[dropper]["state"] == "aborted"
    assert reader not in found
    with pytest.raises(HiveError, match=r"[Aa]borted"):
        hive.end_transaction(writer, commit=True)
    assert hive.sql("select count(*) from lived") == [["2"]]


def test_what_is_silent_for_too_long_is_ended_and_hive_sees_it(views: Views) -> None:
    hive = views.hive
    metastore = client(hive)
    made(hive, "silent", 1)
    dead = hive.open_transaction()
    hive.allocate_write_id(dead, "silent")
    part = interface.LockComponent(LockType.SHARED_READ, database="default", table="silent")
    lock_of(metastore, part, txn=dead)
    orphan, _ = lock_of(metastore, part)
    time.sleep(3.5)
    alive = hive.open_transaction()
    lock, _ = lock_of(metastore, part, txn=alive)
    kept, _ = lock_of(metastore, part)
    planned = find_dead(metastore, 3.0)
    for one in (planned, end_dead(metastore, planned, 3.0)):
        txns, locks = {txn.id for txn in one.txns}, {part.id for part in one.locks}
        assert dead in txns and alive not in txns
        assert orphan in locks and not locks & {kept, lock}
    found = views.transactions()
    assert (found[dead]["state"], found[alive]["state"]) == ("aborted", "open")
    assert {key[0] for key in views.locks()} & {orphan, lock, kept} == {lock, kept}
    metastore.call(interface.UNLOCK, interface.UnlockRequest(kept))
    hive.end_transaction(alive, commit=True)


def states(views: Views, table: str) -> list[str]:
    return [one["state"] for one in views.compactions(table)]


@pytest.mark.parametrize("kind", ["minor"])
def test_what_is_asked_for_is_what_alter_table_asks_for_and_lives_as_long(views: Views, kind: str) -> None:
    hive = views.hive
    ours, hives = made(hive, f"ours_{kind}", 3), made(hive, f"hives_{kind}", 3)
    views.ask("request", f"--{kind}", "--property", "a.b=c d", f"hive:default.{ours}")
    hive.sql(f"alter table {hives} compact '{kind}' with overwrite tblproperties('a.b'='c d')")
    (one,), (other,) = views.compactions(ours), views.compactions(hives)
    of_one = {"id", "on", "table", "enqueued", "age", "initiator"}
    assert {name: value for name, value in one.items() if name not in of_one} == {
        name: value for name, value in other.items() if name not in of_one
    }
    again = views.ask("request", f"--{kind}", f"hive:default.{ours}", "-o", "json", status=7)
    assert "initiated" in again.out
    assert len(views.compactions(ours)) == 1
    for _ in range(2):
        hive.round("Worker")
        views.compactions(ours)
    assert states(views, ours) == states(views, hives) == ["ready for cleaning"]
    (entry,) = views.told("compactions", "--state", "ready for cleaning", f"default.{ours}")
    assert entry["on"] == f"default.{ours}"
    time.sleep(1.2)
    for _ in range(3):
        hive.round("Cleaner")
    assert states(views, ours) == states(views, hives) == ["succeeded"]
    assert len(names(hive.warehouse / ours)) == len(names(hive.warehouse / hives))


def test_compactions_that_come_to_nothing(views: Views) -> None:
    hive = views.hive
    broken = made(hive, "broken", 3)
    for bucket in (hive.warehouse / broken).glob("delta_*/bucket_*"):
        bucket.write_bytes(b"no ORC file")
    for number in range(2):
        views.ask("request", "--major", f"hive:default.{broken}")
        hive.round("Worker")
        assert states(views, broken) == ["failed"] * (number + 1)
    newest, *_ = views.compactions(broken)
    if hive.version > 3:
        assert newest["error"]
    (stuck,) = [one for one in views.told("compactions", "--stuck") if one["table"] == broken]
    assert stuck["cause"] == "given-up"
    views.hive.sql(
        f"alter table {broken} set tblproperties('compactorthreshold.hive.compactor.delta.num.threshold'='1')"
    )
    hive.round("Initiator")  # which gives up
    gone = "did not initiate" if hive.version > 3 else "attempted"
    assert states(views, broken)[0] == gone
    assert views.told("compactions", "--state", "did not initiate", f"default.{broken}")
    hive.sql(f"drop table {broken}")
    views.compactions(broken)


def test_compactions_that_hive_4_refuses_or_that_are_taken_out(
    real_hives: Callable[[int], HiveServer], acidctl: Callable[..., Result]
) -> None:
    hive = real_hives(4)
    views = Views(hive, acidctl)
    one, other = made(hive, "taken_out", 2), made(hive, "taken_out_by_hive", 2)
    for name in (one, other):
        views.ask("request", "--minor", f"hive:default.{name}")
    (ours,), (hives,) = views.compactions(one), views.compactions(other)
    views.ask("abort", "compaction", "--yes", str(ours["id"]))
    hive.sql(f"abort compactions {hives['id']}")
    ours, hives = views.compactions(one)[0], views.compactions(other)[0]
    of_one = {"id", "on", "table", "enqueued", "age", "ended"}
    assert ours["state"] == "aborted"
    assert {key: ours[key] for key in ours.keys() - of_one} == {key: hives[key] for key in hives.keys() - of_one}
    single = made(hive, "nothing_to_do", 1)
    views.ask("request", "--major", f"hive:default.{single}")
    hive.round("Worker")
    assert states(views, single) == ["refused"]
    assert views.compactions(single)[0]["error"]
    views.ask("request", "--rebalance", f"hive:default.{one}")
    views.ask("request", "--major", "--pool", "slow", f"hive:default.{other}")
    assert (views.compactions(one)[0]["kind"], views.compactions(other)[0]["pool"]) == ("rebalance", "slow")
    for name in (one, other):
        views.ask("abort", "compaction", "--yes", str(views.compactions(name)[0]["id"]))
    hive.sql(f"drop table {one}", f"drop table {other}")


def test_what_blocks_is_what_hives_cleaner_waits_for(views: Views) -> None:
    hive = views.hive
    name = made(hive, "held", 3)
    blocker = hive.open_transaction()
    lock_of(client(hive), interface.LockComponent(LockType.SHARED_READ, database="default", table=name), txn=blocker)
    before = names(hive.warehouse / name)
    views.ask("request", "--major", f"hive:default.{name}")
    hive.round("Worker")
    time.sleep(1.2)
    hive.round("Cleaner")
    assert states(views, name) == ["ready for cleaning"]
    assert names(hive.warehouse / name) > before
    found = views.told("txns", "--blocking", f"hive:default.{name}")
    assert [one["id"] for one in found] == [blocker]
    assert f"default.{name}" in [held["on"] for held in found[0]["holds"]]
    assert found[0]["bytes"] > 0
    if hive.version > 3:
        assert str(blocker) in views.ask("why", f"hive:default.{name}").out
    (stuck,) = [one for one in views.told("compactions", "--stuck") if one["table"] == name]
    assert stuck["cause"] == "blocked"
    views.ask("abort", "txn", "--yes", str(blocker))
    assert not views.told("txns", "--blocking", f"hive:default.{name}")
    for _ in range(2):
        hive.round("Cleaner")
    assert states(views, name) == ["succeeded"]
    assert len(names(hive.warehouse / name)) == 1


def test_tables_are_described_as_hive_describes_them(views: Views) -> None:
    hive = views.hive
    hive.sql(
        f"create table described (id int, name string) partitioned by (day date, hour int) clustered by (id) into 3"
        f" buckets {ACID[:-1]}, 'NO_AUTO_COMPACTION'='true',"
        " 'compactorthreshold.hive.compactor.delta.num.threshold'='4')",
        "create table described_text (id int) stored as textfile"
        " tblproperties('transactional'='true', 'transactional_properties'='insert_only', 'no_cleanup'='true')",
        "create table not_transactional (id int)",
        "insert into described partition (day='2026-11-25', hour) values (1, 'a', 7), (2, 'b', 8)",
    )
    records = {one["table"]: one for one in views.told("tables", "--partitions", "default.*")}
    assert "not_transactional" not in records
    for name in ("described", "described_text"):
        told = {row[0].strip().rstrip(":"): row[1].strip() for row in hive.sql(f"describe formatted {name}") if row[0]}
        set_for = {row[0]: row[1] for row in hive.sql(f"show tblproperties {name}")}
        one = records[name]
        assert (one["location"], one["owner"]) == (told["Location"], told["Owner"])
        assert one["buckets"] == max(int(told["Num Buckets"]), 0)
        assert f"[{', '.join(one['bucketColumns'])}]" == told["Bucket Columns"]
        assert one["type"] == ("insert-only" if "insert_only" in set_for["transactional_properties"] else "full-acid")
        assert {"ORC": "OrcSerde", "text": "LazySimpleSerDe"}[one["format"]] == told["SerDe Library"].rpartition(".")[2]
        assert one["noAutoCompaction"] == ("NO_AUTO_COMPACTION" in set_for)
        assert one["noCleanup"] == ("no_cleanup" in set_for)
        assert one["thresholds"] == {
            key.partition(".")[2]: value for key, value in set_for.items() if key.startswith("compactorthreshold.")
        }
    assert records["described"]["partitions"] == len(hive.sql("show partitions described")) == 2
    hive.sql("drop table described", "drop table described_text", "drop table not_transactional")


def test_a_table_that_is_dropped_is_not_found(views: Views) -> None:
    hive = views.hive
    hive.sql(f"create table dropped (id int) partitioned by (p int) {ACID}", "insert into dropped values (1, 2)")
    metastore = client(hive)
    hive.sql("drop table dropped")
    for name in ("hive:default.dropped", "hive:default.dropped/p=2"):
        found = views.acidctl("ls", "--metastore", hive.metastore, name)
        assert found.status == 3, found
    for method in (interface.GET_PARTITIONS_BY_NAMES, interface.GET_PARTITIONS_WITH_FILES):
        with pytest.raises(AcidctlError) as gone:
            metastore.call(method, "default", "dropped", ("p=2",))
        assert gone.value.exit_status == 3
