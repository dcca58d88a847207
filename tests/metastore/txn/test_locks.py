"""A lock for reading: taken before anything counts, kept alive, and always ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_hive import FakeHive

from acidctl.base.errors import ConflictError
from acidctl.location.arguments import HiveName
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import LostTransaction
from acidctl.metastore.interface import HeartbeatRequest, LockType, TxnType
from acidctl.metastore.server import txn_timeout
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import HiveTable, get_table
from acidctl.metastore.txn.locks import ReadLock


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def fake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeHive]:
    with FakeHive(request.param) as server:
        location = tmp_path / "orders"
        write_acid(location / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1,)))
        server.table("sales", "orders", f"file:{location}")
        server.write_ids["sales.orders"] = [server.begin()]
        server.end(1)
        yield server


def client(fake: FakeHive) -> Metastore:
    settings = find_settings({"uris": fake.address}, {})
    assert settings
    return Metastore(settings)


def orders(fake: FakeHive) -> HiveTable:
    return get_table(client(fake), "sales", "orders")


def test_it_is_a_shared_lock_in_a_transaction_and_both_end(fake: FakeHive) -> None:
    lock = ReadLock(client(fake), [orders(fake)])
    (held,) = fake.locks
    assert (held.database, held.table, held.type, held.txn) == ("sales", "orders", LockType.SHARED_READ, lock.txn)
    expected = TxnType.READ_ONLY if fake.version == 4 else TxnType.DEFAULT
    assert fake.txns[lock.txn].type == expected
    lock.release()
    assert not fake.locks
    assert lock.txn not in fake.txns, "it was committed"
    lock.release()
    assert fake.calls.count("commit_txn") == 1


def test_transactions_are_taken_after_the_lock(fake: FakeHive) -> None:
    metastore = client(fake)
    _ = metastore.features  # which asks, too
    order: list[str] = []
    for name in ("lock", "get_open_txns", "get_open_txns_req"):
        fake.before[name] = lambda name=name: order.append(name)  # type: ignore[misc]
    warehouse = Warehouse(metastore, read_lock=True)
    assert len(list(warehouse.places(HiveName.parse("hive:sales.orders"), {}))) == 1
    _ = warehouse.transactions
    warehouse.close()
    assert order[0] == "lock"
    assert len(order) > 1
    assert not fake.locks


def test_a_lock_that_is_not_to_be_had_leaves_nothing_behind(fake: FakeHive) -> None:
    writer = fake.begin()
    fake.lock("sales", "orders", txn=writer, type=LockType.EXCLUSIVE)
    with pytest.raises(ConflictError) as refused:
        ReadLock(client(fake), [orders(fake)], wait=0.2)
    assert "sales.orders" in str(refused.value)
    assert [lock.txn for lock in fake.locks] == [writer]
    assert [txn for txn in fake.txns.values() if txn.state == 3 and txn.id != writer] == []


def test_heartbeats_go_on_and_a_lost_transaction_is_told(fake: FakeHive) -> None:
    fake.config["metastore.txn.timeout"] = fake.config["hive.txn.timeout"] = "1s"
    lock = ReadLock(client(fake), [orders(fake)])
    end = time.monotonic() + 30
    while fake.calls.count("heartbeat") < 2 and time.monotonic() < end:
        time.sleep(0.05)
    lock.check()
    fake.end(lock.txn, commit=False)
    while time.monotonic() < end:
        try:
            lock.check()
        except LostTransaction:
            break
        time.sleep(0.05)
    with pytest.raises(LostTransaction):
        lock.check()
    lock.release()


@pytest.mark.parametrize(
    ("said", "seconds"), [("300s", 300), ("5m", 300), ("10", 10), ("2000ms", 2), ("odd", 300), ("", 300)]
)
def test_the_time_out_of_the_server(fake: FakeHive, said: str, seconds: float) -> None:
    fake.config["metastore.txn.timeout"] = fake.config["hive.txn.timeout"] = said
    assert txn_timeout(client(fake)) == seconds


def test_cat_takes_it_and_lets_it_go(fake: FakeHive, acidctl: Callable[..., Result], tmp_path: Path) -> None:
    found = acidctl("cat", "--read-lock", "--metastore", fake.address, "hive:sales.orders")
    assert found.status == 0, found.err
    assert fake.calls.count("lock") == fake.calls.count("commit_txn") == 1
    assert not fake.locks
    refused = acidctl("cat", "--read-lock", "--metastore", fake.address, tmp_path / "orders")
    assert refused.status == 2
    assert "name the table" in refused.err
    assert acidctl("cat", "--read-lock", "--metastore", "none", tmp_path / "orders").status == 2


def test_a_heartbeat_without_an_answer_does_not_hold_up_the_next(fake: FakeHive) -> None:
    fake.config["metastore.txn.timeout"] = fake.config["hive.txn.timeout"] = "1s"
    answer, held, next_one = fake.answers["heartbeat"], threading.Event(), threading.Event()

    def heard(request: HeartbeatRequest) -> None:
        next_one.set()
        answer(request)

    def silent(_: HeartbeatRequest) -> None:
        fake.answers["heartbeat"] = heard
        held.wait(60)

    fake.answers["heartbeat"] = silent
    lock = ReadLock(client(fake), [orders(fake)])
    try:
        assert next_one.wait(30)
    finally:
        held.set()
        lock.release()


def test_no_time_out_of_a_server_ends_the_heartbeats(fake: FakeHive, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.config["metastore.txn.timeout"] = fake.config["hive.txn.timeout"] = "9" * 30 + "s"
    ended: list[object] = []
    monkeypatch.setattr(threading, "excepthook", ended.append)
    ReadLock(client(fake), [orders(fake)]).release()
    assert not ended
