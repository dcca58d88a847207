"""Row counts of the metastore stay right across statements: Hive answers `count(*)` from them, and from the files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from support.servers.hive_server import HiveServer

from acidctl.base.errors import RefusedError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import HiveTable, get_table
from acidctl.writing import transaction
from acidctl.writing.change import Change
from acidctl.writing.insert import Insert
from acidctl.writing.merge import Merge
from acidctl.writing.places import Places
from acidctl.writing.statistics import Growth
from acidctl.writing.transaction import WriteTransaction
from acidctl.writing.truncate import Truncate

pytestmark = [pytest.mark.server, pytest.mark.in_turn("real_hive")]


@pytest.fixture
def metastore(real_hive: HiveServer) -> Metastore:
    settings = find_settings({"uris": real_hive.metastore})
    assert settings
    return Metastore(settings)


def made(hive: HiveServer, metastore: Metastore, name: str, more: str = "", kind: str = "") -> HiveTable:
    hive.set("hive.stats.autogather", "true")
    options = f"stored as orc tblproperties('transactional'='true'{kind})"
    hive.sql(f"drop table if exists {name}", f"create table {name} (id int, s string) {more} {options}")
    return get_table(metastore, "default", name)


def counted(hive: HiveServer, name: str) -> str:
    """The number of rows by statistics and by files, which must be the same."""
    found = set()
    for by_statistics in ("true", "false"):
        hive.set("hive.compute.query.using.stats", by_statistics)
        found.add(hive.sql(f"select count(*) from {name}")[0][0])
    assert len(found) == 1, found
    return str(found.pop())


def known(metastore: Metastore, name: str, *partitions: str) -> list[int | None]:
    """The rows of each partition, or of the table, that the metastore calls accurate."""
    if partitions:
        raw = metastore.call(interface.GET_RAW_PARTITIONS, "default", name, partitions)
        found = [one.texts(interface.PARTITION_PARAMETERS) for one in raw]
    else:
        found = [dict(get_table(metastore, "default", name).parameters)]
    return [int(one["numRows"]) if "BASIC" in one.get("COLUMN_STATS_ACCURATE", "") else None for one in found]


def insert(metastore: Metastore, table: HiveTable, *ids: int, **more: Any) -> None:
    columns = {"id": pa.array(ids, pa.int32()), "s": [str(id_) for id_ in ids]}
    keys = {"p": pa.array(more.pop("p"), pa.int32())} if "p" in more else {}
    Insert(metastore, table, pa.table(columns | keys).to_reader(), **more).run()


@pytest.mark.parametrize("kind", ["", ",'transactional_properties'='insert_only'"])
def test_counts_of_a_table(kind: str, real_hive: HiveServer, metastore: Metastore) -> None:
    table = made(real_hive, metastore, "kept", kind=kind)
    keeps = real_hive.version > 3

    def is_counted(rows: int) -> bool:
        return counted(real_hive, "kept") == str(rows) and known(metastore, "kept") == [rows if keeps else None]

    insert(metastore, table, 0)
    assert is_counted(1), "Hive 3 made it with the claim that it has no rows"
    real_hive.sql("insert into kept values (1, 'a'), (2, 'b')")
    assert is_counted(3)
    insert(metastore, table, 3)
    assert is_counted(4)
    if not kind:
        Change(metastore, table, "id = 1", "s = 'x'").run()
        assert is_counted(4)
        real_hive.sql("update kept set s = 'h' where id = 2", "delete from kept where id = 2")
        assert is_counted(3)
        Change(metastore, table, "id = 1").run()
        assert is_counted(2)
        Merge(metastore, table, pa.table({"id": [3, 4, 5], "s": ["m", "m", "m"]}), ["id"]).run()
        assert is_counted(4)
    insert(metastore, table, 7, 8, overwrite=True)
    assert is_counted(2)
    Truncate(metastore, table).run()
    assert is_counted(0)
    insert(metastore, table, 9)
    real_hive.sql("insert into kept values (10, 'a')")
    assert is_counted(2)


def test_counts_of_partitions(real_hive: HiveServer, metastore: Metastore) -> None:
    table = made(real_hive, metastore, "kept_parts", "partitioned by (p int)")
    names, keeps = ("p=1", "p=2", "p=3"), real_hive.version > 3

    def is_counted(*rows: int) -> bool:
        by_partition = known(metastore, "kept_parts", *names[: len(rows)])
        return counted(real_hive, "kept_parts") == str(sum(rows)) and by_partition == [
            count if keeps else None for count in rows
        ]

    real_hive.sql("insert into kept_parts values (1, 'a', 1), (2, 'b', 2)")
    insert(metastore, table, 3, 4, 5, p=[1, 3, 3])
    assert is_counted(2, 1, 2)
    real_hive.sql("insert into kept_parts values (6, 'a', 1), (7, 'b', 3)")
    assert is_counted(3, 1, 3)
    Change(metastore, table, "id in (3, 7)").run()
    assert is_counted(2, 1, 2)
    insert(metastore, table, 8, 9, p=[1, 1], overwrite=True)
    Truncate(metastore, table, {"p": "3"}).run()
    assert is_counted(2, 1, 0)


Between = Callable[[HiveServer, Metastore, HiveTable], None]

BETWEEN: dict[str, Between] = {
    "an insert of Hive": lambda hive, _, table: hive.sql(f"insert into {table.name} values (100, 'x'), (101, 'y')"),
    "an insert of ours": lambda _, metastore, table: insert(metastore, table, 100, 101),
}


@pytest.mark.parametrize("other", BETWEEN)
@pytest.mark.parametrize("step", ["give_up_statistics", "check", "commit", "restore_counts"])
@pytest.mark.parametrize("fails", [False, True])
def test_another_writer_meanwhile(
    fails: bool, step: str, other: str, real_hive: HiveServer, metastore: Metastore
) -> None:
    """Counts are right, or given up, if two writers change them at the same time, also if one fails."""
    table = made(real_hive, metastore, "kept_both")
    real_hive.sql("insert into kept_both values (1, 'a')")
    real = getattr(WriteTransaction, step)
    begun: list[int] = []

    def overtaken(self: WriteTransaction, *given: Any) -> None:
        is_first = not begun
        begun.append(self.id)
        if is_first:
            BETWEEN[other](real_hive, metastore, table)
        real(self, *given)
        if fails and is_first:
            raise RefusedError("a test", "it fails", "")

    with patch.object(WriteTransaction, step, overtaken):
        try:
            insert(metastore, table, 2)
        except RefusedError as error:
            assert error.what == "a test"
    expected = 3 if fails and step in ("give_up_statistics", "check") else 4
    assert counted(real_hive, "kept_both") == str(expected)
    insert(metastore, table, 5)
    real_hive.sql("insert into kept_both values (6, 'a')")
    assert counted(real_hive, "kept_both") == str(expected + 2)
    assert known(metastore, "kept_both") in ([None], [expected + 2])


def test_counts_that_an_aborted_writer_left_are_given_up(real_hive: HiveServer, metastore: Metastore) -> None:
    """Hive writes its counts before it commits."""
    table = made(real_hive, metastore, "kept_not")
    real_hive.sql("insert into kept_not values (1, 'a')")

    def counts_and_fails(self: WriteTransaction, *_: object) -> None:
        self.restore_counts({"": Growth(1, 1, 100)})
        raise RefusedError("a test", "it fails", "")

    with patch.object(WriteTransaction, "commit", counts_and_fails), pytest.raises(RefusedError):
        insert(metastore, table, 2)
    assert counted(real_hive, "kept_not") == "1"
    insert(metastore, table, 3)
    assert counted(real_hive, "kept_not") == "2"


@pytest.mark.parametrize("other", ["Hive", "ours"])
def test_another_writer_makes_the_same_partition(other: str, real_hive: HiveServer, metastore: Metastore) -> None:
    table = made(real_hive, metastore, "kept_new", "partitioned by (p int)")
    real = Places._add_partitions
    begun: list[bool] = []

    def overtaken(self: Places, *given: Any) -> set[str]:
        if not begun:
            begun.append(True)
            if other == "ours":
                insert(metastore, table, 1, 2, p=[1, 1])
            else:
                real_hive.sql("insert into kept_new values (1, 'a', 1), (2, 'b', 1)")
        return real(self, *given)

    with patch.object(Places, "_add_partitions", overtaken):
        insert(metastore, table, 3, 4, p=[1, 1])
    assert counted(real_hive, "kept_new") == "4"
    insert(metastore, table, 5, p=[1])
    assert counted(real_hive, "kept_new") == "5"


@pytest.mark.parametrize("statement", ["add columns (later int)", "set tblproperties ('k'='v')"])
def test_what_hive_alters_before_counts_are_restored_stays(
    statement: str, real_hives: Callable[[int], HiveServer]
) -> None:
    """Adding a column waits for the lock of the restoring if it comes between its two calls."""
    real_hive, name = real_hives(4), "kept_altered"
    settings = find_settings({"uris": real_hive.metastore})
    assert settings
    metastore = Metastore(settings)
    table = made(real_hive, metastore, name, kind=",'k'='old'")
    real_hive.sql(f"insert into {name} values (1, 'a')")
    real, others = transaction.raw_table, []
    begun: list[bool] = []

    def read_then_altered(*given: Any) -> Any:
        raw = real(*given)
        if begun and not others and statement.startswith("add"):
            others.append(threading.Thread(target=real_hive.sql, args=(f"alter table {name} {statement}",)))
            others[0].start()
            others[0].join(3)
            assert others[0].is_alive(), "Hive waits"
        return raw

    restore = WriteTransaction.restore_counts

    def restored(self: WriteTransaction, growth: Mapping[str, Growth]) -> None:
        begun.append(True)
        if statement.startswith("set"):
            real_hive.sql(f"alter table {name} {statement}")
        restore(self, growth)

    with (
        patch.object(transaction, "raw_table", read_then_altered),
        patch.object(WriteTransaction, "restore_counts", restored),
    ):
        insert(metastore, table, 2)
    for other in others:
        other.join()
    now = get_table(metastore, "default", name)
    assert [column.name for column in now.columns][2:] == ["later"] * statement.startswith("add")
    assert now.parameters["k"] == ("v" if statement.startswith("set") else "old")
    assert counted(real_hive, name) == "2"
    metastore.close()
