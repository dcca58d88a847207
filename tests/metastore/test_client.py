"""One client of several servers: which it asks, how often, and what it says where no answer comes."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from support.metastore.fake_hive import FakeHive
from support.metastore.fake_metastore import Failed, fake_metastore
from support.trouble.bad_line import BadLine, Trouble

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, NotFoundError
from acidctl.metastore import client as module
from acidctl.metastore import interface, queue
from acidctl.metastore.client import Metastore, releasing
from acidctl.metastore.connection import Connection
from acidctl.metastore.errors import MetastoreError, NoAnswer, NotAsked, Unreachable, Unreadable
from acidctl.metastore.settings import find_settings
from acidctl.metastore.wire import Method


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHive]:
    monkeypatch.setattr(module, "_PAUSE", 0.01)
    with FakeHive(4) as one:
        one.table("sales", "orders", "file:/nowhere")
        yield one


def client(*addresses: str, **given: str) -> Metastore:
    settings = find_settings(
        {"uris": ",".join(addresses), "selection": "SEQUENTIAL", "timeout": "1", "connect-timeout": "1", **given}, {}
    )
    assert settings
    return Metastore(settings)


def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"thrift://127.0.0.1:{taken.getsockname()[1]}"


ONCE = [
    (interface.OPEN_TXNS, interface.OpenTxnRequest(1, "u", "h")),
    (
        interface.LOCK,
        interface.LockRequest((interface.LockComponent(database="sales", table="orders"),), None, "u", "h"),
    ),
    (interface.COMPACT, interface.CompactionRequest("sales", "orders")),
    (interface.ABORT_TXN, interface.AbortTxnRequest(1)),
    (interface.ABORT_TXNS, interface.AbortTxnsRequest((1,))),
    (interface.ABORT_COMPACTIONS, interface.AbortCompactionsRequest((1,))),
    (interface.COMMIT_TXN, interface.CommitTxnRequest(1)),
    (interface.UNLOCK, interface.UnlockRequest(1)),
]


@pytest.mark.parametrize(("method", "request_"), ONCE, ids=[method.name for method, _ in ONCE])
@pytest.mark.parametrize("kind", ["lost", "done", "garbage"])
def test_what_must_not_be_done_twice_is_asked_once_and_it_is_said_what_may_have_happened(
    fake: FakeHive, method: Method, request_: object, kind: str
) -> None:
    fake.begin()
    fake.lock("sales", "orders")
    fake.entry("sales", "orders", "initiated", "p=1")
    fake.fault(method.name, kind, 3)
    with pytest.raises((Unreachable, Unreadable)) as lost:
        client(fake.address).call(method, request_)
    assert "it may have been done nevertheless" in lost.value.hint
    assert fake.calls.count(method.name) == 1


def test_what_only_reads_is_asked_again_and_by_another_server(fake: FakeHive) -> None:
    fake.fault("get_all_databases", "lost", 2)
    assert client(fake.address).call(interface.GET_ALL_DATABASES) == ("sales",)
    assert fake.calls.count("get_all_databases") == 3
    assert client(nobody(), fake.address).call(interface.GET_ALL_DATABASES) == ("sales",)
    fake.fault("get_all_databases", "lost", 9)
    with pytest.raises(Unreachable, match="lost in get_all_databases"):
        client(fake.address).call(interface.GET_ALL_DATABASES)


def test_an_answer_that_cannot_be_read_is_not_asked_for_again(fake: FakeHive) -> None:
    fake.fault("get_all_databases", "garbage", 2)
    metastore = client(fake.address)
    with pytest.raises(Unreadable):
        metastore.call(interface.GET_ALL_DATABASES)
    assert fake.calls.count("get_all_databases") == 1
    with pytest.raises(Unreadable):
        metastore.call(interface.GET_ALL_DATABASES)
    assert metastore.call(interface.GET_ALL_DATABASES) == ("sales",), "by a connection of its own"


def test_a_refusal_leaves_the_connection_as_it_is(fake: FakeHive) -> None:
    metastore = client(fake.address)
    with pytest.raises(NotFoundError):
        metastore.call(interface.GET_DATABASE, "none")
    metastore.call(interface.GET_ALL_DATABASES)
    assert fake.calls.count("set_ugi") == 1


@pytest.mark.parametrize(("kind", "calls"), [("refused", 1), ("failed", 1), ("lost", 2)])
def test_an_entry_is_marked_once_more_only_after_a_lost_answer(fake: FakeHive, kind: str, calls: int) -> None:
    id_ = fake.entry("sales", "orders", "working", worker="w")
    fake.fault("mark_failed", kind)
    metastore = client(fake.address)
    entry = queue.find_compactions(metastore, id=id_)[0].as_claimed()
    assert queue.mark_failed(metastore, entry, "no reason") is (kind == "lost")
    assert fake.calls.count("mark_failed") == calls


@pytest.mark.parametrize("kind", ["failed", "lost"])
def test_an_abort_is_tried_again_after_any_error(fake: FakeHive, kind: str) -> None:
    txn = fake.begin()
    fake.fault("abort_txn", kind)
    request = interface.AbortTxnRequest(txn)
    client(fake.address).insist(interface.ABORT_TXN, request, after=AcidctlError)
    assert fake.txns[txn].state == interface.TxnState.ABORTED


@pytest.mark.parametrize(("method", "request_"), ONCE, ids=[method.name for method, _ in ONCE])
def test_a_server_that_was_restarted_between_two_calls_is_asked_by_a_new_connection(
    method: Method, request_: object
) -> None:
    with FakeHive(4) as fake, BadLine(fake.address) as line:
        fake.table("sales", "orders", "file:/nowhere")
        txn = fake.begin()
        fake.lock("sales", "orders")
        metastore = client(line.address)
        metastore.call(interface.GET_ALL_DATABASES)
        line.hang_up()
        wait_until(lambda: metastore.connection().is_lost())
        metastore.call(method, request_)
        assert fake.calls.count(method.name) == 1
        assert txn


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)


def test_a_server_that_says_nothing_is_asked_once(fake: FakeHive) -> None:
    with BadLine(fake.address) as line:
        line.answers = Trouble(0, "hang")
        begun = time.monotonic()
        with pytest.raises(NoAnswer, match="does not answer"):
            client(line.address, timeout="0.3", **{"connect-timeout": "0.3"}).call(interface.GET_ALL_DATABASES)
        assert time.monotonic() - begun < 5
        assert client(line.address).call(interface.GET_ALL_DATABASES) == ("sales",)


def test_nobody_anywhere_is_told_after_some_rounds(fake: FakeHive) -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        client(nobody(), nobody()).call(interface.GET_ALL_DATABASES)


def test_what_a_server_fails_in_and_refuses_is_told_in_its_words_without_control_characters(fake: FakeHive) -> None:
    with fake_metastore({"get_all_databases": _evil}) as server, pytest.raises(MetastoreError) as failed:
        server.client().call(interface.GET_ALL_DATABASES)
    assert "\x1b" not in str(failed.value)
    assert "oh no" in str(failed.value)


def _evil() -> object:
    raise Failed("oh no \x1b[2J\x07")


def test_what_thrift_logs_goes_nowhere(
    fake: FakeHive, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        for addresses in ((nobody(),), (fake.address,)):
            fake.fault("get_all_databases", "garbage")
            with pytest.raises(MetastoreError):
                client(*addresses).call(interface.GET_ALL_DATABASES)
    assert not capfd.readouterr().err


@pytest.fixture
def silent() -> Iterator[Metastore]:
    """A client whose settings would let a silent server take a minute."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"thrift://127.0.0.1:{mute.getsockname()[1]}"
        yield client(address, **{"timeout": "60", "connect-timeout": "60"})


def test_a_call_ends_with_the_run_that_asks(silent: Metastore) -> None:
    silent.until = Deadline(time.monotonic() + 0.3)
    with pytest.raises(NoAnswer) as cut:
        silent.call(interface.GET_ALL_DATABASES)
    assert (cut.value.exit_status, "--deadline" in cut.value.hint) == (6, True)


def test_nothing_is_asked_after_the_deadline_except_to_release(
    silent: Metastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silent, "_closing", 0.3)
    silent.until = Deadline(time.monotonic() - 1)
    for asking in (silent, silent.another()):
        with pytest.raises(NotAsked) as late:
            asking.call(interface.GET_ALL_DATABASES)
        assert late.value.exit_status == 13
    with releasing(), pytest.raises(NoAnswer) as cut:
        silent.call(interface.GET_ALL_DATABASES)
    assert not isinstance(cut.value, NotAsked)


def test_all_releases_after_the_deadline_share_some_seconds(silent: Metastore, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def call(_: object, method: Method, *__: object, most: float) -> None:
        asked.append(most)
        time.sleep(0.2)

    monkeypatch.setattr(
        silent, "_connection", SimpleNamespace(call=call, is_lost=lambda: False, address=SimpleNamespace(url=""))
    )
    monkeypatch.setattr(silent, "_closing", 0.3)
    silent.until = Deadline(time.monotonic() - 1)
    with releasing():
        silent.call(interface.ABORT_TXN, interface.AbortTxnRequest(1))
        silent.call(interface.ABORT_TXN, interface.AbortTxnRequest(2))
        with pytest.raises(NotAsked):
            silent.call(interface.ABORT_TXN, interface.AbortTxnRequest(3))
    assert asked[1] <= 0.1 < asked[0] <= 0.3


def test_a_deadline_holds_within_its_block(fake: FakeHive) -> None:
    metastore = client(fake.address)
    with metastore.limited(Deadline(0.0)), pytest.raises(NotAsked):
        metastore.call(interface.GET_ALL_DATABASES)
    assert metastore.call(interface.GET_ALL_DATABASES) == ("sales",)


def test_a_line_that_breaks_again_and_again_has_no_more_than_the_time_of_one_call(
    fake: FakeHive, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def call(_: Connection, method: Method, *__: object, most: float = 0.0) -> None:
        if method is not interface.SET_UGI:
            asked.append(most)
            time.sleep(0.2)
            raise Unreachable("lost", "", "")

    monkeypatch.setattr(Connection, "call", call)
    with pytest.raises(Unreachable):
        client(fake.address, timeout="0.3").call(interface.GET_ALL_DATABASES)
    assert len(asked) == 2
    assert asked[1] < asked[0] <= 0.3
