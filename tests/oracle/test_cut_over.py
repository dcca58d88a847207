"""A cut-over while Hive and acidctl insert all the time: no row is lost or comes twice, and the way back works."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from support.servers.hive_server import HiveError, HiveServer

import acidctl
from acidctl.base.errors import AcidctlError
from acidctl.iceberg.catalogs.hive_metastore import METADATA
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import HiveTable, get_table

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


def change(hive: HiveServer, name: str, **options: Any) -> Any:
    return acidctl.migrate(f"hive:default.{name}", f"hive:default.{name}_ice", metastore=hive.metastore, **options)


def table(hive: HiveServer, name: str) -> HiveTable:
    settings = find_settings({"uris": hive.metastore})
    assert settings
    return get_table(Metastore(settings), "default", name)


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


def void(_: object) -> None:
    """Nothing."""
