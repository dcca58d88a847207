"""Two other clients of metastores, the stubs of pyiceberg and pymetastore, see what acidctl wrote and what it sees."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.engines.hive_views import Views
from support.servers import pypi
from support.servers.hdfs_server import ServerUnavailable
from support.servers.hive_server import HiveServer
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import get_table
from acidctl.metastore.transactions import Transactions, bits
from acidctl.metastore.txn.locks import ReadLock

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

STUBS = Path(pypi.__file__).with_name("metastore_stubs.txt")
ONE_WHEEL = ("--python-version", "3.11", "--implementation", "cp", "--platform", "manylinux2014_x86_64")
"""Of packages whose stubs are plain Python, whatever this one is."""
MODULES = {"pyiceberg": "hive_metastore", "pymetastore": "pymetastore.hive_metastore"}
ACID = "stored as orc tblproperties('transactional'='true')"


@pytest.fixture
def views(real_hive: HiveServer, acidctl: Callable[..., Result]) -> Views:
    return Views(real_hive, acidctl)


@pytest.fixture(params=MODULES)
def other(request: pytest.FixtureRequest, views: Views, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """The client, and the module of its structs."""
    try:
        monkeypatch.syspath_prepend(pypi.packages(STUBS, *ONE_WHEEL))
    except ServerUnavailable as error:
        pytest.skip(f"no other clients: {error}")
    name = MODULES[request.param]
    service, types = (importlib.import_module(f"{name}.{part}") for part in ("ThriftHiveMetastore", "ttypes"))
    host, _, port = views.hive.metastore.removeprefix("thrift://").partition(":")
    with closing(TBufferedTransport(TSocket(host, int(port)))) as transport:
        transport.open()
        yield service.Client(TBinaryProtocol(transport)), types


def client(views: Views) -> Metastore:
    settings = find_settings({"uris": views.hive.metastore}, {})
    assert settings
    return Metastore(settings)


@pytest.mark.sampled(3)
def test_they_see_what_acidctl_asks_for_holds_and_ends(views: Views, other: tuple[Any, Any]) -> None:
    theirs, types = other
    hive, metastore = views.hive, client(views)
    name = f"seen_{types.__name__.partition('.')[0]}"
    hive.sql(f"create table {name} (id int) {ACID}", f"insert into {name} values (1)", f"insert into {name} values (2)")

    views.ask("request", "--major", f"hive:default.{name}")
    (entry,) = [one for one in theirs.show_compact(types.ShowCompactRequest()).compacts if one.tablename == name]
    (shown,) = views.compactions(name)
    assert (entry.dbname, entry.partitionname, entry.type, entry.state, entry.id) == (
        *("default", None, types.CompactionType.MAJOR, "initiated", shown["id"]),
    )

    lock = ReadLock(metastore, [get_table(metastore, "default", name)])
    (held,) = [one for one in theirs.show_locks(types.ShowLocksRequest()).locks if one.tablename == name]
    assert (held.txnid, held.type, held.state) == (lock.txn, types.LockType.SHARED_READ, types.LockState.ACQUIRED)
    assert held.agentInfo.startswith("acidctl-")
    (txn,) = [one for one in theirs.get_open_txns_info().open_txns if one.id == lock.txn]
    assert (txn.state, txn.user, txn.hostname) == (types.TxnState.OPEN, held.user, held.hostname)
    lock.release()
    assert not [one for one in theirs.show_locks(types.ShowLocksRequest()).locks if one.tablename == name]
    assert lock.txn not in {one.id for one in theirs.get_open_txns_info().open_txns}

    opened = types.OpenTxnRequest(num_txns=1, user="bob", hostname="elsewhere", agentInfo="of tests")
    (theirs_txn,) = theirs.open_txns(opened).txn_ids
    theirs.allocate_table_write_ids(
        types.AllocateTableWriteIdsRequest(dbName="default", tableName=name, txnIds=[theirs_txn])
    )
    assert views.transactions()[theirs_txn]["user"] == "bob"
    views.ask("abort", "txn", "--yes", str(theirs_txn))
    (txn,) = [one for one in theirs.get_open_txns_info().open_txns if one.id == theirs_txn]
    assert txn.state == types.TxnState.ABORTED
    with pytest.raises(types.TxnAbortedException):
        theirs.commit_txn(types.CommitTxnRequest(txnid=theirs_txn))

    ours = Transactions(metastore)
    answer = theirs.get_open_txns()
    aborted = bits(answer.abortedBits, len(answer.open_txns))
    told = dict(zip(answer.open_txns, aborted, strict=True))
    assert set(told) >= set(ours.txns.exceptions)  # they count those that only read, too
    assert {id_ for id_, is_aborted in told.items() if is_aborted} == set(ours.txns.aborted)
    request = types.GetValidWriteIdsRequest(fullTableNames=[f"default.{name}"], validTxnList=str(ours.txns))
    (ids,) = theirs.get_valid_write_ids(request).tblValidWriteIds
    known = ours.write_ids(f"default.{name}")
    assert (ids.writeIdHighWaterMark, tuple(ids.invalidWriteIds)) == (known.high_watermark, known.exceptions)
    assert known.aborted == (3,)

    if hive.version > 3 and hasattr(theirs, "find_next_compact2"):
        _work(views, theirs, types, name)
    hive.sql(f"drop table {name}")


def _work(views: Views, theirs: Any, types: Any, name: str) -> None:
    """Another one takes the compaction that acidctl asked for, and fails."""
    taken = theirs.find_next_compact2(types.FindNextCompactRequest(workerId="elsewhere-17", workerVersion="1")).ci
    entry = views.compactions(name)[0]
    assert (entry["id"], entry["state"], entry["worker"]) == (taken.id, "working", "elsewhere-17")
    refused = views.ask("abort", "compaction", "--yes", str(taken.id), status=7)
    assert "at work with elsewhere-17" in refused.err
    taken.errorMessage = "no disk is left"
    theirs.mark_failed(taken)
    entry = views.compactions(name)[0]
    assert (entry["state"], entry["error"]) == ("failed", "no disk is left")
