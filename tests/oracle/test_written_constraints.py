"""Constraints as real metastores have them, and rows of acidctl under them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.servers.hive_server import HiveServer

import acidctl
from acidctl.base.errors import BadDataError, RefusedError, UsageProblem
from acidctl.metastore.tables import get_table
from acidctl.writing.constraints import Constraints

pytestmark = pytest.mark.server

COLUMNS = (
    "a int not null enable, b string default 'x', c int not null disable, d int, primary key (a) disable novalidate"
)


def test_constraints_of_a_real_metastore_are_kept(real_hive: HiveServer) -> None:
    stored = "stored as orc tblproperties ('transactional'='true')"
    real_hive.sql(
        "drop table if exists constrained", "drop table if exists checked",
        f"create table constrained ({COLUMNS}) {stored}", f"create table checked (a int check (a > 0)) {stored}",
    )  # fmt: skip
    door = acidctl.Hive(real_hive.metastore)
    table = get_table(door.metastore, "default", "constrained")
    assert Constraints.of(door.metastore, table) == Constraints(frozenset("a"), frozenset("b"))
    written = door.table("default.constrained")
    with pytest.raises(BadDataError, match="no value in a"):
        written.insert(pa.table({"a": pa.nulls(1, pa.int32()), "b": ["y"]}))
    with pytest.raises(UsageProblem, match="no column b"):
        written.insert(pa.table({"a": [1]}))
    written.insert(pa.table({"a": [1], "b": ["y"]}))
    assert real_hive.sql("select * from constrained") == [["1", "y", "NULL", "NULL"]]
    with pytest.raises(BadDataError, match="no value in a"):
        written.update("a = null", "true")
    with pytest.raises(BadDataError, match="no value in a"):
        written.merge(pa.table({"d": pa.array([9], pa.int32()), "a": pa.nulls(1, pa.int32()), "b": ["z"]}), "d")
    with pytest.raises(UsageProblem, match="no column b"):
        written.merge(pa.table({"a": [1]}), "a")
    written.insert(pa.table({"a": [1], "b": pa.nulls(1, pa.string())}))  # Hive does not enforce keys, either
    assert sorted(real_hive.sql("select a, b from constrained")) == [["1", "NULL"], ["1", "y"]]
    real_hive.sql("insert into checked values (1), (2)")
    checked = door.table("default.checked")
    for adding in (
        lambda: checked.insert(pa.table({"a": [1]})),
        lambda: checked.insert(pa.table({"a": [1]}), overwrite=True),
        lambda: checked.update("a = 5", "true"),
        lambda: checked.merge(pa.table({"a": [5]}), "a"),
    ):
        with pytest.raises(RefusedError) as refusal:
            adding()
        assert "CHECK" in (refusal.value.why or "")
    checked.delete("a = 1")
    assert real_hive.sql("select * from checked") == [["2"]]
    checked.truncate()
    assert real_hive.sql("select count(*) from checked") == [["0"]]
