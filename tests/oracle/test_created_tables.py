"""Tables that acidctl creates, beside those of Hive's own CREATE TABLE: the metastore has the same, and both work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from support.servers.hive_server import HiveServer

import acidctl
from acidctl.base.errors import AcidctlError
from acidctl.metastore.client import Metastore
from acidctl.metastore.lossless import RawStruct
from acidctl.metastore.tables import get_table
from acidctl.writing.transaction import raw_table

pytestmark = [pytest.mark.server, pytest.mark.in_turn("real_hive")]

FULL, ONLY = "'transactional'='true'", "'transactional'='true', 'transactional_properties'='insert_only'"
COLUMNS = "id bigint, name varchar(10), s struct<A:int,b:array<string>>, d decimal(12,2), m map<string,date>, c char(3)"
MADE: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": (f"({COLUMNS}) stored as orc tblproperties ({FULL})", {}),
    "parts": (
        f"({COLUMNS}) comment 'the orders' partitioned by (day date, n int) clustered by (id, name) into 8 buckets "
        f"stored as orc tblproperties ({FULL}, 'orc.compress'='SNAPPY')",
        {"comment": "the orders", "partitioned_by": "day date, n int", "clustered_by": ("id", "name"), "buckets": 8,
         "properties": {"orc.compress": "SNAPPY"}},
    ),
    "only_orc": (f"({COLUMNS}) stored as orc tblproperties ({ONLY})", {"type": "insert_only"}),
    "only_parquet": (
        f"({COLUMNS}) partitioned by (day date) stored as parquet tblproperties ({ONLY})",
        {"type": "insert_only", "stored_as": "parquet", "partitioned_by": "day date"},
    ),
    "only_text": (
        f"({COLUMNS}) stored as textfile tblproperties ({ONLY})", {"type": "insert_only", "stored_as": "text"}
    ),
}  # fmt: skip


def fields_of(metastore: Metastore, name: str) -> Any:
    """Return every field that the metastore has of a table, without its name, times and id."""
    raw = raw_table(metastore, get_table(metastore, "default", name))

    def plain(payload: Any) -> Any:
        if isinstance(payload, RawStruct):
            return {number: plain(value.payload) for number, value in sorted(payload.fields.items())}
        if isinstance(payload, tuple | list):
            return [plain(part) for part in payload]
        return payload.decode() if isinstance(payload, bytes) else payload

    whole = plain(raw)
    location = whole[7].pop(2)
    assert location.endswith(f"/{name}")
    parameters = {key: value for key, value in whole[9][2] if key != "transient_lastDdlTime"}
    return {**{at: value for at, value in whole.items() if at not in (1, 4, 25)}, 9: parameters}


def drop(hive: HiveServer, *names: str) -> None:
    hive.sql(*(f"drop table if exists {name}" for name in names))


@pytest.mark.parametrize("kind", MADE)
def test_the_metastore_has_of_it_what_it_has_of_hives_own(real_hive: HiveServer, kind: str) -> None:
    real_hive.reset()  # other tests of this session gather statistics
    sql, definition = MADE[kind]
    drop(real_hive, "of_hive", "of_ours")
    real_hive.sql(f"create table of_hive {sql}")
    created = acidctl.Hive(real_hive.metastore).table("default.of_ours").create(COLUMNS, **definition)
    metastore = acidctl.Hive(real_hive.metastore).metastore
    assert fields_of(metastore, "of_ours") == fields_of(metastore, "of_hive")
    assert created.table == get_table(metastore, "default", "of_ours")


def test_an_empty_table_claims_statistics_as_hive_4_does(
    real_hives: Callable[[int], HiveServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    hive = real_hives(4)
    drop(hive, "of_hive", "of_ours", "of_parts")
    hive.sql(
        "set hive.stats.autogather=true", f"create table of_hive (b int, a int) stored as orc tblproperties ({FULL})"
    )
    hive.reset()
    usual = Metastore.configured

    def configured(self: Metastore, name: str, default: str) -> str:
        return "true" if name == "hive.stats.autogather" else usual(self, name, default)

    monkeypatch.setattr(Metastore, "configured", configured)
    door = acidctl.Hive(hive.metastore)
    door.table("default.of_ours").create("b int, a int")
    assert fields_of(door.metastore, "of_ours")[9] == fields_of(door.metastore, "of_hive")[9]
    hive.sql("set hive.compute.query.using.stats=true")
    assert hive.sql("select count(*) from of_ours") == [["0"]]
    door.table("default.of_ours").insert(pa.table({"a": [1, 2], "b": [3, 4]}))
    assert hive.sql("select count(*), max(b) from of_ours") == [["2", "4"]]
    hive.reset()


ROWS: Mapping[str, Any] = {"id": [1, 2, 3], "name": ["a", "b", None], "c": ["x", None, "zz"]}


@pytest.mark.parametrize("kind", MADE)
def test_hive_and_acidctl_write_to_it(real_hive: HiveServer, kind: str) -> None:
    _, definition = MADE[kind]
    drop(real_hive, "worked")
    acidctl.create("hive:default.worked", COLUMNS, metastore=real_hive.metastore, **definition)
    table = acidctl.Hive(real_hive.metastore).table("default.worked")
    keys = {"day": ["2026-11-20"] * 3, "n": [1, 1, 2]} if kind == "parts" else {"day": ["2026-11-20"] * 3}
    table.insert(pa.table({**ROWS, **(keys if definition.get("partitioned_by") else {})}))
    given = {"parts": "partition (day='2026-11-21', n=3)", "only_parquet": "partition (day='2026-11-21')"}.get(kind, "")
    nested = "named_struct('A', 1, 'b', array('x')), 1.5, map('k', date '2026-01-01'), 'q'"
    real_hive.sql(f"insert into worked {given} select 4, 'four', {nested}")
    if definition.get("type") != "insert_only":
        table.update("c = 'upd'", "id = 1")
        real_hive.sql("update worked set c = 'sql' where id = 2", "delete from worked where id = 3")
        expected = [["1", "a", "upd"], ["2", "b", "sql"], ["4", "four", "q  "]]
    else:
        expected = [["1", "a", "x  "], ["2", "b", "NULL"], ["3", "NULL", "zz "], ["4", "four", "q  "]]
    assert real_hive.sql("select id, name, c from worked order by id") == expected
    assert real_hive.sql("select s.a, d, m['k'] from worked where id = 4") == [["1", "1.50", "2026-01-01"]]
    assert real_hive.sql("select count(*) from worked") == [[str(len(expected))]]
    read = acidctl.open_table("hive:default.worked", metastore=real_hive.metastore).scan(columns=["id"]).to_table()
    assert sorted(read["id"].to_pylist()) == [int(row[0]) for row in expected]


def test_refusals_leave_no_table(real_hive: HiveServer) -> None:
    drop(real_hive, "refused")
    table = acidctl.Hive(real_hive.metastore).table("default.refused")
    folder = real_hive.warehouse / "refused"
    folder.mkdir(exist_ok=True)
    (folder / "old").write_text("x")
    with pytest.raises(AcidctlError, match="will not create"):
        table.create("id int")
    (folder / "old").unlink()
    if real_hive.version > 3:
        with pytest.raises(AcidctlError, match="managed warehouse"):
            table.create("id int", location="file:///tmp/elsewhere_of_acidctl")
    assert real_hive.sql("show tables like 'refused'") in ([], [[""]])
    table.create("id int")
    with pytest.raises(AcidctlError, match="already"):
        table.create("id int")
