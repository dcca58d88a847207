"""A metastore that is restored from a backup is named by what Hive itself then does; a healthy one at work never is."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.engines.real_hive import started
from support.servers.hive_server import HiveServer

from acidctl.acid.reasons import Code, Reason
from acidctl.location.find import find
from acidctl.location.snapshot_resolver import SnapshotResolver, open_warehouse

pytestmark = [pytest.mark.server, pytest.mark.xdist_group("older-metastore"), pytest.mark.in_turn("version")]

NAME = "hive:default.t"
_AT_WORK = 6


def ahead(metastore: str) -> list[Reason]:
    """What is said of the table now: the lists first, then the listing."""
    resolver = SnapshotResolver(warehouse=open_warehouse(metastore))
    (found,) = find([NAME], {}, resolver)
    return list(found.snapshot(readers=True).ahead)


def looked_at_meanwhile(hive: HiveServer, work: Callable[[], None]) -> int:
    """How often was looked while Hive worked; never was there anything to say."""
    metastore, looks = hive.metastore, 0
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        assert ahead(metastore) == []
        looks += 1
    thread.join()
    assert ahead(metastore) == []
    return looks


def content(table: Path, name: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in table.glob(f"{name}*/*") if not path.name.startswith((".", "_"))}


@pytest.mark.parametrize("version", [3, 4])
def test_a_restored_backup_is_named_and_a_writer_at_work_is_not(
    acidctl: Callable[..., Result], tmp_path: Path, version: int
) -> None:
    database, kept = tmp_path / "database", tmp_path / "kept"
    hive = started(version, tmp_path)
    try:
        hive.sql("create table t (a int) stored as orc tblproperties ('transactional'='true')")
        for number in (1, 2):
            hive.sql(f"insert into t values ({number})")
        hive.stop()
        shutil.copytree(database, kept)  # of a database that nobody has open

        hive = started(version, tmp_path)
        table = hive.warehouse / "t"

        def write() -> None:
            for number in range(_AT_WORK):
                hive.sql(f"insert into t values ({number})")
            hive.sql("delete from t where a = 1")
            hive.sql("alter table t compact 'minor'")
            hive.round("Worker")

        assert looked_at_meanwhile(hive, write) > 0
        txn = hive.open_transaction()
        hive.allocate_write_id(txn, "t")
        hive.end_transaction(txn, commit=False)
        assert ahead(hive.metastore) == [], "an id that was given and never used"
        hive.stop()
        shutil.rmtree(database)
        shutil.move(kept, database)

        hive = started(version, tmp_path)
        reasons = ahead(hive.metastore)
        assert reasons[0].code is Code.ABOVE_GIVEN
        assert reasons[0].value("given") == 2
        at = ("--metastore", hive.metastore)
        assert acidctl("status", *at, NAME).status == 14
        rules = {one.get("rule") for one in acidctl("validate", *at, "-o", "jsonl", NAME).lines()}
        assert "V44" in rules
        for words in (("compact", "--major"), ("clean", "--yes"), ("nightly", "--yes", "--state", tmp_path / "state")):
            assert acidctl(*words, *at, NAME).status == 7, words
        before = content(table, "delta_0000003_0000003")
        hive.sql("insert into t values (99)")
        assert content(table, "delta_0000003_0000003") != before, "Hive took the number again, and the file with it"
    finally:
        hive.stop()
