"""acidctl beside a whole Hive 4.2.1 with its metastore, where it differs from 4.0.1."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.command_line import Result
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, compactions, names
from support.engines.hive_histories import History
from support.engines.random_history import RandomHistory
from support.servers.hive_server import HiveServer

from acidctl.metastore import interface
from acidctl.metastore.activity import find_locks
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import get_table
from acidctl.metastore.txn.locks import ReadLock
from acidctl.metastore.txn.transaction import Heartbeats, LockedTransaction

pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(900),
    pytest.mark.parametrize("real_hive", [42], ids=["hive-4.2"], indirect=True),
]

Acidctl = Callable[..., Result]


def test_what_happens_by_chance_is_read_as_it_reads_it(real_hive: HiveServer) -> None:
    RandomHistory(real_hive, 1).live(4)


def test_it_reads_and_cleans_what_acidctl_compacted(real_hive: HiveServer, acidctl: Acidctl) -> None:
    history = History(real_hive, "by_acidctl", 5)
    for number in range(4):
        history.aborted_step() if number == 2 else history.step()
        history.judge()
    before = history.judge()
    line = ("compact", "--major", "--engine", "local", "--metastore", real_hive.metastore)
    done = acidctl(*line, f"hive:default.{history.name}")
    assert done.status == 0, done.err
    assert compactions(real_hive, history.name) == [READY]
    assert history.judge() == before
    clean_by_hive(real_hive, history.name)
    assert [name for name in names(history.path) if not name.startswith("base_")] == []
    history.step()
    before = history.judge()
    assert compact_by_hive(real_hive, history.name, "major") == READY
    clean_by_hive(real_hive, history.name)
    assert history.judge() == before


def two_rows(hive: HiveServer, name: str) -> Path:
    """A table of two deltas; its directory."""
    create = f"create table {name} (a int) stored as orc tblproperties ('transactional'='true')"
    hive.sql(create, *(f"insert into {name} values ({number})" for number in (1, 2)))
    return hive.warehouse / name


def compacted_and_cleaned(hive: HiveServer, name: str) -> None:
    """By Hive's own Worker and Cleaner, which gets as far as it may."""
    assert compact_by_hive(hive, name, "major") == READY
    time.sleep(1.2)
    hive.round("Cleaner")


def metastore_of(hive: HiveServer) -> Metastore:
    settings = find_settings({"uris": hive.metastore}, {})
    assert settings
    return Metastore(settings)


@pytest.mark.parametrize(
    ("work", "registers"),
    [
        pytest.param("reader", True, id="reader-held", marks=pytest.mark.by_hand),  # the next test holds one, too
        pytest.param("reader", False, id="reader-not-held"),
        pytest.param("compaction", True, id="compaction-held"),
        pytest.param("compaction", False, id="compaction-not-held", marks=pytest.mark.by_hand),
    ],
)
def test_its_cleaner_spares_what_acidctl_has_registered_to_read(
    real_hive: HiveServer, monkeypatch: pytest.MonkeyPatch, work: str, registers: bool
) -> None:
    """Neither the open transaction nor its lock holds this cleaner: without the registration, files are missing."""
    if not registers:
        monkeypatch.setattr(LockedTransaction, "_hold_cleaner", lambda *_: None)
    name = f"{work}_{registers}".lower()
    place = two_rows(real_hive, name)
    metastore = metastore_of(real_hive)
    with closing(Heartbeats(metastore)) as heartbeats:
        if work == "reader":
            lock = ReadLock(metastore, [get_table(metastore, "default", name)])
            check, release = lock.check, lock.release
        else:
            part = interface.LockComponent(database="default", table=name)
            txn = LockedTransaction(metastore, heartbeats, (part,), interface.TxnType.COMPACTION)
            check, release = txn.check, txn.abort
        seen = sorted(place.glob("delta_*/bucket_*"))
        compacted_and_cleaned(real_hive, name)
        missing = [path for path in seen if not path.exists()]
        check()
        release()
    assert missing == ([] if registers else seen), compactions(real_hive, name)
    metastore.close()


def test_who_holds_back_its_cleaner_is_told(real_hive: HiveServer, acidctl: Acidctl) -> None:
    """A reader of the table does; a bystander, whose transaction only began before the compaction, does not."""
    place = two_rows(real_hive, "blocked")
    metastore = metastore_of(real_hive)
    elsewhere = interface.LockComponent(database="default", table="elsewhere")
    bystander = LockedTransaction(metastore, Heartbeats(metastore), (elsewhere,), interface.TxnType.READ_ONLY)
    reader = ReadLock(metastore, [get_table(metastore, "default", "blocked")])
    compacted_and_cleaned(real_hive, "blocked")
    told = acidctl("hive", "txns", "--blocking", "default.blocked", "-o", "jsonl", "--metastore", real_hive.metastore)
    assert [one["id"] for one in told.lines()] == [reader.txn]
    line = ("hive", "compactions", "--stuck", "default.blocked", "-o", "jsonl", "--metastore", real_hive.metastore)
    (entry,) = acidctl(*line).lines()
    (lock,) = [one for one in find_locks(metastore, "default", "blocked") if one.txn == reader.txn]
    assert (entry["cause"], entry["blockers"]) == ("blocked", [lock.id])
    reader.release()
    assert acidctl(*line).lines() == []
    real_hive.round("Cleaner")
    assert [name for name in names(place) if name.startswith("delta")] == []
    bystander.abort()
    metastore.close()


def test_of_two_deltas_of_one_range_it_reads_the_later_one(real_hive: HiveServer, acidctl: Acidctl) -> None:
    """Hive 4.0.1 reads both, see the conformance set: acidctl reads as 4.2 does, and tells of them."""
    place = two_rows(real_hive, "twins")
    assert compact_by_hive(real_hive, "twins", "minor") == READY
    clean_by_hive(real_hive, "twins")
    (first,) = names(place)
    txn = int(first.rpartition("_v")[2])
    two_rows(real_hive, "twins_meanwhile")
    shutil.copytree(place / first, place / f"{first.rpartition('_v')[0]}_v{txn + 1:07}")
    assert real_hive.sql("select a from twins") == [["1"], ["2"]]
    found = acidctl("cat", "--metastore", real_hive.metastore, "hive:default.twins", "-o", "jsonl")
    assert [one["a"] for one in found.lines()] == [1, 2]
    listed = acidctl("ls", "--metastore", real_hive.metastore, "hive:default.twins")
    assert f"cannot be compacted: {first} and " in listed.out
    status = acidctl("status", "--metastore", real_hive.metastore, "hive:default.twins")
    assert "cannot compact " in status.out
    assert f": {first} and " in status.out
    assert "V10" in acidctl("validate", "--metastore", real_hive.metastore, "hive:default.twins").out
