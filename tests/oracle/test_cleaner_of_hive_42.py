"""The cleaner of Hive 4.2.1 beside an open transaction that may write, on a server on which nothing else ran."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.command_line import Result
from support.engines.hive_compactor import READY, compact_by_hive, names
from support.engines.real_hive import started
from support.servers.hive_server import HiveServer

from acidctl.hive import ready_rules

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


def test_it_fails_unless_an_earlier_transaction_was_aborted(
    tmp_path: Path, acidctl: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hive's own fault: it cannot read its own list of transactions, where one is open and no earlier one is aborted.

    It tries again some minutes later; acidctl's cleaner waits for the end of the transaction. If this fails, Hive got
    over it.
    """
    monkeypatch.setattr(ready_rules, "AFTER_A_FAILURE", 0.0)
    monkeypatch.setattr(ready_rules, "OPEN_TXN_GAP", 0.0)
    with ExitStack() as running:
        hive = started(42, tmp_path)
        running.callback(hive.stop)
        line = ("hive", "cleaner", "--once", "--yes", "--older-than", "0", "--unsafe-retention")
        line += ("--metastore", hive.metastore)
        writer, said = cleaned_beside_a_writer(hive, "none_aborted")
        assert "NumberFormatException" in said
        done = acidctl(*line)
        assert (done.status, len(names(hive.warehouse / "none_aborted"))) == (0, 3), done
        hive.end_transaction(writer, commit=True)
        done = acidctl(*line)
        assert (done.status, len(names(hive.warehouse / "none_aborted"))) == (0, 1), done
        hive.end_transaction(hive.open_transaction(), commit=False)
        writer, said = cleaned_beside_a_writer(hive, "one_aborted")
        assert "Exception" not in said
        assert len(names(hive.warehouse / "one_aborted")) == 1


def cleaned_beside_a_writer(hive: HiveServer, name: str) -> tuple[int, str]:
    """Let Hive compact a table and clean it while a transaction is open; that, and what the queue has for its error."""
    create = f"create table {name} (a int) stored as orc tblproperties ('transactional'='true')"
    hive.sql(create, *(f"insert into {name} values ({number})" for number in (1, 2)))
    writer = hive.open_transaction()
    assert compact_by_hive(hive, name, "major") == READY
    time.sleep(1.2)  # its cleaner does not look at what happened in the last second
    hive.round("Cleaner")
    head, *rows = hive.sql("show compactions")
    (said,) = [row[head.index("Error message")] for row in rows if name in row]
    return writer, said
