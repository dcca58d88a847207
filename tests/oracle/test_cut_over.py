"""A cut-over while Hive and acidctl insert all the time: no row is lost or comes twice, and the way back works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from support.paths import PYTHONPATH
from support.servers.hive_server import HiveError, HiveServer

import acidctl
from acidctl.base.errors import AcidctlError
from acidctl.iceberg.catalogs.hive_metastore import METADATA
from acidctl.metastore.activity import open_txns_info
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import TxnState
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import HiveTable, get_table

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


def change(hive: HiveServer, name: str, **options: Any) -> Any:
    return acidctl.migrate(f"hive:default.{name}", f"hive:default.{name}_ice", metastore=hive.metastore, **options)


def client(hive: HiveServer) -> Metastore:
    settings = find_settings({"uris": hive.metastore})
    assert settings
    return Metastore(settings)


def table(hive: HiveServer, name: str) -> HiveTable:
    return get_table(client(hive), "default", name)


def iceberg_rows(hive: HiveServer, name: str) -> list[int]:
    found = StaticTable.from_metadata(table(hive, name).parameters[METADATA]).scan().to_arrow()
    return sorted(found["id"].to_pylist())


class Writer(threading.Thread):
    """Inserts one row after another, until three in a row have failed.

    Attributes:
        written: the ids that were inserted, as the statement said.
        errors: what the others said.
    """

    def __init__(self, insert: Callable[[int], None], first: int) -> None:
        super().__init__(daemon=True)
        self._insert, self._next = insert, first
        self.written: list[int] = []
        self.errors: list[str] = []
        self.is_asked_to_end = False

    def run(self) -> None:
        failed = 0
        while failed < 3 and not self.is_asked_to_end:
            try:
                self._insert(self._next)
                self.written.append(self._next)
                failed = 0
            except (HiveError, AcidctlError) as error:
                self.errors.append(str(error))
                failed += 1
            self._next += 1


def test_no_row_is_lost_while_others_insert(real_hive: HiveServer) -> None:
    address, name = real_hive.metastore, "busy"
    real_hive.sql(
        f"create table {name} (id int, name string) stored as orc tblproperties('transactional'='true')",
        f"insert into {name} values (1, 'a'), (2, 'b')",
        f"delete from {name} where id = 2",
    )
    change(real_hive, name)

    def by_acidctl(number: int) -> None:
        rows = pa.table({"id": pa.array([number], pa.int32()), "name": ["acidctl"]})
        acidctl.Hive(address).table(f"default.{name}").insert(rows)

    writers = [
        Writer(lambda number: void(real_hive.sql(f"insert into {name} values ({number}, 'hive')")), 1000),
        Writer(by_acidctl, 100_000),
    ]
    for writer in writers:
        writer.start()
    while any(len(writer.written) < 2 for writer in writers):
        assert all(writer.is_alive() for writer in writers), [writer.errors for writer in writers]
        threading.Event().wait(0.2)
    done = change(real_hive, name, cut_over=True)
    assert "becomes the Iceberg table" in done.names
    for writer in writers:
        writer.join(120)
        assert not writer.is_alive()
    written = [number for writer in writers for number in writer.written]
    assert iceberg_rows(real_hive, name) == sorted([1, *written]), [writer.errors for writer in writers]
    kept = real_hive.sql(f"select id from {name}_acid")
    assert sorted(int(row[0]) for row in kept) == sorted([1, *written])
    assert real_hive.write_ids(name).startswith(f"default.{name}:0:")
    change(real_hive, name, back=True)
    real_hive.sql(f"insert into {name} values (7, 'after')", f"update {name} set name = 'x' where id = 1")
    rows = sorted(int(row[0]) for row in real_hive.sql(f"select id from {name}"))
    assert rows == sorted([1, 7, *written])
    change(real_hive, name, cut_over=True)
    assert iceberg_rows(real_hive, name) == rows


KILLED = """
import os, signal, sys
import acidctl
from acidctl.iceberg.cut_over import Swap

address, name, number, way = sys.argv[1:]
real, calls = Swap._rename, []

def dying(*given):
    real(*given)
    calls.append(given)
    if len(calls) == int(number):
        os.kill(os.getpid(), signal.SIGKILL)

Swap._rename = dying
acidctl.migrate(f"hive:default.{name}", f"hive:default.{name}_ice", metastore=address, **{way: True})
"""


def killed(hive: HiveServer, name: str, number: int, way: str) -> None:
    """A run that is killed after a renaming; its transactions end as after their time-out."""
    line = [sys.executable, "-c", KILLED, hive.metastore, name, str(number), way]
    environ = {**os.environ, "PYTHONPATH": PYTHONPATH}
    done = subprocess.run(line, env=environ, timeout=300, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    for one in open_txns_info(client(hive)).txns:
        if one.state == TxnState.OPEN:
            hive.end_transaction(one.id, commit=False)


def test_a_killed_run_is_finished_or_undone_by_the_next(real_hive: HiveServer) -> None:
    name = "killed"
    real_hive.sql(
        f"create table {name} (id int, name string) partitioned by (p int) stored as orc"
        " tblproperties('transactional'='true')",
        f"insert into {name} values (1, 'a', 1), (2, 'b', 2)",
    )
    change(real_hive, name)
    rows = [1, 2]
    for number, (step, way, then) in enumerate(
        [(1, "cut_over", "back"), (1, "cut_over", "cut_over"), (1, "back", "back"), (2, "cut_over", "cut_over")], 3
    ):
        killed(real_hive, name, step, way)
        change(real_hive, name, **{then: True})
        is_over = then == "cut_over"
        if is_over:
            assert iceberg_rows(real_hive, name) == rows
        acid = f"{name}_acid" if is_over else name
        real_hive.sql(f"insert into {acid} values ({number}, 'more', 1)", f"update {acid} set name = 'x' where id = 1")
        rows.append(number)
        assert sorted(int(row[0]) for row in real_hive.sql(f"select id from {acid}")) == rows


def void(_: object) -> None:
    """Nothing."""
