"""The cleaner of Hive 4.2.1 beside an open transaction that may write, on a server on which nothing else ran."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.engines.hive_compactor import READY, compact_by_hive, names
from support.engines.real_hive import started
from support.servers.hive_server import HiveServer

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


def test_it_fails_unless_an_earlier_transaction_was_aborted(tmp_path: Path) -> None:
    """Hive's own fault: it cannot read its own list of transactions, where one is open and no earlier one is aborted.

    It tries again some minutes later. If this fails, Hive got over it.
    """
    with ExitStack() as running:
        hive = started(42, tmp_path)
        running.callback(hive.stop)
        assert "NumberFormatException" in cleaned_beside_a_writer(hive, "none_aborted")
        assert len(names(hive.warehouse / "none_aborted")) == 3
        hive.end_transaction(hive.open_transaction(), commit=False)
        assert "Exception" not in cleaned_beside_a_writer(hive, "one_aborted")
        assert len(names(hive.warehouse / "one_aborted")) == 1


def cleaned_beside_a_writer(hive: HiveServer, name: str) -> str:
    """Let Hive compact a table and clean it while a transaction is open; what the queue has for its error."""
    create = f"create table {name} (a int) stored as orc tblproperties ('transactional'='true')"
    hive.sql(create, *(f"insert into {name} values ({number})" for number in (1, 2)))
    writer = hive.open_transaction()
    assert compact_by_hive(hive, name, "major") == READY
    time.sleep(1.2)  # its cleaner does not look at what happened in the last second
    hive.round("Cleaner")
    hive.end_transaction(writer, commit=True)
    head, *rows = hive.sql("show compactions")
    (said,) = [row[head.index("Error message")] for row in rows if name in row]
    return said
