"""A transaction of our own: ended whatever happens, found again where its id was lost, and never another one's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.metastore.fake_hive import FakeHive
from support.trouble.bad_line import BadLine

from acidctl.metastore import client as module
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import LostTransaction, MetastoreError
from acidctl.metastore.interface import TxnState, TxnType
from acidctl.metastore.settings import find_settings
from acidctl.metastore.txn import transaction
from acidctl.metastore.txn.transaction import OwnTransaction
from acidctl.metastore.wire import Method


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def fake(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHive]:
    monkeypatch.setattr(module, "_PAUSE", 0.01)
    monkeypatch.setattr(module, "PATIENCE", 1.0)
    with FakeHive(request.param) as server:
        server.begin(host="another")
        yield server


def client(address: str) -> Metastore:
    settings = find_settings({"uris": address, "timeout": "1", "connect-timeout": "1"}, {})
    assert settings
    return Metastore(settings)


def still_open(fake: FakeHive) -> list[str]:
    """The hosts of what is open."""
    return [one.host for one in fake.txns.values() if one.state == TxnState.OPEN]


def test_people_and_acidctl_see_whose_it_is(fake: FakeHive) -> None:
    own, other = OwnTransaction(client(fake.address)), OwnTransaction(client(fake.address))
    own.open()
    assert own.host == fake.txns[own.id].host
    assert own.host.endswith(f"/{own.agent}")
    assert own.agent.startswith("acidctl-")
    assert own.agent != other.agent
    assert len(own.host) <= 128
    assert fake.txns[own.id].type == (TxnType.READ_ONLY if fake.version > 3 else TxnType.DEFAULT)
    own.end()
    own.end()
    other.end()
    assert still_open(fake) == ["another"]
    assert fake.calls.count("commit_txn") == 1


def test_a_long_name_of_a_machine_leaves_room_for_the_mark(monkeypatch: pytest.MonkeyPatch, fake: FakeHive) -> None:
    monkeypatch.setattr(transaction.socket, "gethostname", lambda: "x" * 300)
    own = OwnTransaction(client(fake.address))
    assert len(own.host) == 128
    assert own.host.endswith(own.agent)


@pytest.mark.parametrize("kind", ["lost", "done", "garbage", "failed"])
def test_one_whose_id_was_lost_is_ended(fake: FakeHive, kind: str) -> None:
    own = OwnTransaction(client(fake.address))
    fake.fault("open_txns", kind)
    with pytest.raises(MetastoreError):
        own.open()
    own.end(commit=False)
    assert still_open(fake) == ["another"]
    assert fake.calls.count("open_txns") == 1


@pytest.mark.parametrize("ids", [(), (0,), (-1,), (1, 2), (2**63 - 1,)])
def test_one_of_which_the_server_tells_a_wrong_id_is_ended_and_no_other(fake: FakeHive, ids: tuple[int, ...]) -> None:
    honest = fake.answers["open_txns"]
    fake.answers["open_txns"] = lambda request: honest(request) and interface.OpenTxnsResponse(ids)
    own = OwnTransaction(client(fake.address))
    if ids == (2**63 - 1,):
        own.open()
    else:
        with pytest.raises(MetastoreError, match="opened no transaction"):
            own.open()
    own.end()
    assert still_open(fake) == ["another"]


@pytest.mark.parametrize("kind", ["lost", "done", "garbage", "failed"])
@pytest.mark.parametrize("commit", [True, False])
def test_an_end_that_fails_is_tried_another_way(fake: FakeHive, kind: str, commit: bool) -> None:
    own = OwnTransaction(client(fake.address))
    own.open()
    fake.fault("commit_txn" if commit else "abort_txn", kind)
    own.end(commit=commit)
    assert still_open(fake) == ["another"]


def test_one_that_somebody_else_has_ended_is_no_failure(fake: FakeHive) -> None:
    own = OwnTransaction(client(fake.address))
    own.open()
    fake.end(own.id, commit=False)
    own.end()
    assert own.failure is None
    assert still_open(fake) == ["another"]


def test_a_server_that_was_restarted_meanwhile_ends_it(fake: FakeHive) -> None:
    with BadLine(fake.address) as line:
        own = OwnTransaction(client(line.address))
        own.open()
        line.hang_up()
        own.end()
    assert still_open(fake) == ["another"]


def test_a_server_that_is_gone_is_told_and_not_waited_for(fake: FakeHive) -> None:
    own = OwnTransaction(client(fake.address))
    own.open()
    fake.__exit__()
    own.end()
    assert isinstance(own.failure, MetastoreError)
    assert not isinstance(own.failure, LostTransaction)


@pytest.mark.parametrize("method", ["commit_txn", "open_txns"])
def test_ctrl_c_in_the_middle_ends_it_all_the_same(
    fake: FakeHive, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    metastore = client(fake.address)
    own = OwnTransaction(metastore)
    if method == "commit_txn":
        own.open()
    called: Callable[..., object] = metastore.call
    times = []

    def interrupted(asked: Method, *arguments: object) -> object:
        if asked.name == method and not times:
            times.append(1)
            if method == "open_txns":
                called(asked, *arguments)  # it is opened, and nobody learns its id
            raise KeyboardInterrupt
        return called(asked, *arguments)

    monkeypatch.setattr(metastore, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        try:
            own.open() if method == "open_txns" else own.end()
        finally:
            own.end(commit=False)
    assert still_open(fake) == ["another"]


def test_what_is_only_opened_when_it_was_looked_for_is_ended(fake: FakeHive) -> None:
    """The line broke, and the server was still at work on it."""
    fake.fault("open_txns", "late")
    own = OwnTransaction(client(fake.address))
    with pytest.raises(MetastoreError, match="lost in open_txns"):
        own.open()
    own.end()
    assert still_open(fake) == ["another"]
    assert len(fake.txns) == 2, "it was opened"
