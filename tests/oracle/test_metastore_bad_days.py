"""Bad days of a real metastore: what was asked over a line that breaks, and asked of the server itself afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from support.command_line import Result
from support.servers.hdfs_server import ServerUnavailable
from support.servers.metastore_server import MetastoreServer
from support.trouble.bad_line import BadLine, Trouble

from acidctl.metastore import activity, client, interface
from acidctl.metastore.activity import find_locks, find_transactions
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.settings import find_settings
from acidctl.metastore.txn.transaction import OwnTransaction

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

IMPATIENT = {"timeout": "5", "connect-timeout": "5"}


@pytest.fixture(scope="module", params=[3, 4], ids=["hive-3.1", "hive-4.0"])
def metastore(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    try:
        server = MetastoreServer(request.param, tmp_path_factory.mktemp("metastore"), standalone=True)
    except ServerUnavailable as error:
        pytest.skip(f"no metastore of Hive {request.param}: {error}")
    yield server
    server.stop()


def asking(address: str) -> Metastore:
    settings = find_settings({"uris": address, **IMPATIENT}, {})
    assert settings
    return Metastore(settings)


def still_open(server: MetastoreServer) -> list[str]:
    """The hosts of what is open, asked over a line that is whole."""
    metastore = asking(server.address)
    found = [txn.host for txn in find_transactions(metastore).open] + [lock.host for lock in find_locks(metastore)]
    metastore.close()
    return found


def wait_until_none_is_open(server: MetastoreServer) -> None:
    """A question that was cut off may be at work yet."""
    end = time.monotonic() + 30
    while still_open(server) and time.monotonic() < end:
        time.sleep(0.2)
    assert not still_open(server)


def test_people_see_whose_a_transaction_and_a_lock_are(metastore: MetastoreServer) -> None:
    own = OwnTransaction(asked := asking(metastore.address))
    own.open()
    part = interface.LockComponent(database="default", table="t")
    asked.call(interface.LOCK, interface.LockRequest((part,), own.id, "me", own.host, own.agent))
    assert [txn.host for txn in find_transactions(asked).open] == [own.host]
    assert [(lock.host, lock.agent) for lock in find_locks(asked)] == [(own.host, own.agent)]
    own.end()
    assert not still_open(metastore)


def test_a_line_that_breaks_anywhere_leaves_nothing_open(
    metastore: MetastoreServer, acidctl: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_PAUSE", 0.01)
    monkeypatch.setattr(activity, "_GAP", 0.01)
    options = [part for name, value in IMPATIENT.items() for part in ("--set", f"metastore.{name}={value}")]
    line = ("hive", "housekeep", "--force", "--dry-run", *options, "--metastore")
    with BadLine(metastore.address) as through:
        assert acidctl(*line, through.address).status == 0
        asked, answered = through.asked, through.answered
    places = [(at, False) for at in range(0, answered, answered // 25)] + [
        (at, True) for at in range(0, asked, asked // 10)
    ]
    for at, is_question in places:
        with BadLine(metastore.address) as through:
            trouble = Trouble(at)
            through.questions, through.answers = (trouble, None) if is_question else (None, trouble)
            found = acidctl(*line, through.address)
        assert found.status in (0, 6), found.err
        assert "Traceback" not in found.err
        wait_until_none_is_open(metastore)


def test_a_transaction_whose_id_was_lost_is_found_and_ended(
    metastore: MetastoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PATIENCE", 5.0)
    with BadLine(metastore.address) as through:
        asked = asking(through.address)
        _ = asked.features
        own = OwnTransaction(asked)
        through.answers = Trouble(through.answered + 8)
        with pytest.raises(MetastoreError, match="lost in open_txns"):
            own.open()
        own.end()
    wait_until_none_is_open(metastore)


def test_a_server_that_dies_is_told_soon(metastore: MetastoreServer, acidctl: Callable[..., Result]) -> None:
    """It is not there any more then."""
    asked = asking(metastore.address)
    own = OwnTransaction(asked)
    own.open()
    metastore.stop()
    own.end()
    assert own.failure is not None
    found = acidctl("hive", "txns", "--metastore", metastore.address)
    assert found.status == 6
    assert "cannot be reached" in found.err


def test_numbers_that_a_restart_left_out_hide_no_transaction(
    metastore: MetastoreServer, acidctl: Callable[..., Result]
) -> None:
    """It was stopped.  Derby forgets the numbers that it held in store, which Hive 4 counts as open for a second."""
    again = MetastoreServer(metastore.version, metastore.directory, standalone=True)
    try:
        own = OwnTransaction(asked := asking(again.address))
        own.open()
        assert own.id in {txn.id for txn in find_transactions(asked).open}
        own.end()
        (server,) = acidctl("doctor", "--metastore", again.address, "-o", "json").json()["metastore"]["servers"]
        assert server["problems"] == []
    finally:
        again.stop()
