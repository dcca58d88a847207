"""Statements that replace rows of named partitions lock these alone, beside Hive's own statements on the others."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.servers.hive_server import HiveServer

import acidctl
from acidctl.base.errors import ConflictError
from acidctl.metastore.interface import Operation
from acidctl.metastore.tables import get_table
from acidctl.writing.places import Places
from acidctl.writing.transaction import Statement, WriteTransaction

pytestmark = [pytest.mark.server, pytest.mark.in_turn("real_hive")]


@pytest.fixture
def parted(real_hive: HiveServer) -> HiveServer:
    """A Hive with the table `parted`: a row in each of three partitions."""
    properties = "stored as orc tblproperties ('transactional'='true')"
    real_hive.sql(
        "drop table if exists parted", f"create table parted (a int) partitioned by (day string) {properties}",
        "set hive.exec.dynamic.partition.mode=nonstrict",
        "insert into parted partition (day) select 1, 'x' union all select 2, 'y' union all select 3, 'z w'",
    )  # fmt: skip
    return real_hive


def rows(hive: HiveServer) -> list[list[str]]:
    return hive.sql("select a, day from parted order by a")


def test_hive_writes_to_other_partitions_meanwhile(parted: HiveServer) -> None:
    door = acidctl.Hive(parted.metastore)
    metastore = door.metastore
    table = get_table(metastore, "default", "parted")
    statement = Statement(Operation.INSERT, replaces=True, partitions=("day=x",))
    with WriteTransaction(metastore, table, statement):
        parted.sql("insert into parted partition (day='y') values (20)")
        (held,) = door.locks("default.parted")
        assert (held.partition, held.type, held.state) == ("day=x", "EXCLUSIVE", "ACQUIRED")
        with pytest.raises(ConflictError):
            door.table("default.parted").insert(pa.table({"a": [10]}), partition={"day": "x"}, wait=0)
    assert rows(parted) == [["1", "x"], ["2", "y"], ["3", "z w"], ["20", "y"]]


def test_rows_are_replaced_and_hive_goes_on_with_them(parted: HiveServer) -> None:
    table = acidctl.Hive(parted.metastore).table("default.parted")
    table.insert(pa.table({"a": [30, 31]}), partition={"day": "z w"}, overwrite=True)
    table.truncate(partition={"day": "x"})
    assert rows(parted) == [["2", "y"], ["30", "z w"], ["31", "z w"]]
    parted.sql("update parted set a = 40 where a = 30", "insert into parted partition (day='x') values (5)")
    assert rows(parted) == [["2", "y"], ["5", "x"], ["31", "z w"], ["40", "z w"]]
    assert parted.sql("select count(*) from parted") == [["4"]]
    parted.sql("alter table parted partition (day='z w') compact 'major'")
    parted.round("Worker")
    assert rows(parted) == [["2", "y"], ["5", "x"], ["31", "z w"], ["40", "z w"]]


def test_rows_of_an_aborted_overwrite_stay_invisible(parted: HiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(_: Places) -> None:
        raise KeyboardInterrupt

    table = acidctl.Hive(parted.metastore).table("default.parted")
    with monkeypatch.context() as patch:
        patch.setattr(WriteTransaction, "check", killed)
        if parted.version > 3:  # the files stay there; Hive 3 reads no location whose only base was aborted
            patch.setattr(Places, "take_back", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            table.insert(pa.table({"a": [99]}), partition={"day": "x"}, overwrite=True)
    assert bool(list((parted.warehouse / "parted" / "day=x").glob("base_*"))) == (parted.version > 3)
    for _ in range(2):
        parted.round("Initiator")
        parted.round("Cleaner")
        assert rows(parted) == [["1", "x"], ["2", "y"], ["3", "z w"]]
    table.insert(pa.table({"a": [7]}), partition={"day": "x"}, overwrite=True)
    assert rows(parted) == [["2", "y"], ["3", "z w"], ["7", "x"]]
