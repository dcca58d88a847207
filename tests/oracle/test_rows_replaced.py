"""Rows that acidctl puts into insert-only tables, and in place of others, judged by Hive 3.1.3 and 4.0.1."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from support.servers.hive_server import HiveServer

from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import HiveTable, get_table
from acidctl.orc.types import arrow_type, parse_type
from acidctl.writing.insert import Insert
from acidctl.writing.truncate import Truncate

pytestmark = [pytest.mark.server, pytest.mark.in_turn("real_hive")]

INSERT_ONLY = "tblproperties('transactional'='true','transactional_properties'='insert_only')"
FORMATS = ("orc", "parquet", "textfile")
AT = datetime.datetime

VALUES: dict[str, tuple[str, list[Any], list[str]]] = {
    "id": ("int", [1, 2, 3], ["1", "2", "3"]),
    "a": ("tinyint", [1, -128, None], ["1", "-128", "NULL"]),
    "b": ("smallint", [2, 32767, None], ["2", "32767", "NULL"]),
    "c": ("bigint", [2**62, -1, None], ["4611686018427387904", "-1", "NULL"]),
    "f": ("float", [1.5, float("nan"), None], ["1.5", "NaN", "NULL"]),
    "d": ("double", [1e300, -0.0, None], ["1.0E300", "-0.0", "NULL"]),
    "n": ("decimal(20,5)", [Decimal("1.5"), Decimal("-0.00001"), None], ["1.50000", "-0.00001", "NULL"]),
    "s": ("string", ["hé, \\", "", None], ["hé, \\", "", "NULL"]),
    "v": ("varchar(10)", ["vär", "", None], ["vär", "", "NULL"]),
    "h": ("char(5)", ["ab ", "", None], ["ab   ", "     ", "NULL"]),
    "o": ("boolean", [True, False, None], ["true", "false", "NULL"]),
    "da": ("date", [datetime.date(2026, 1, 1), datetime.date(1, 1, 1), None], ["2026-01-01", "0001-01-01", "NULL"]),
    "ts": (
        "timestamp",
        [AT(2026, 7, 1, 12, 30, 0, 123456), AT(1850, 3, 4, 1, 2, 3), None],
        ["2026-07-01 12:30:00.123456", "1850-03-04 01:02:03", "NULL"],
    ),
    "far": (
        "timestamp",
        [AT(9999, 12, 31, 23, 59, 59, 999999), AT(1600, 1, 1), None],
        ["9999-12-31 23:59:59.999999", "1600-01-01 00:00:00", "NULL"],
    ),
    "l": ("array<int>", [[1, None, 3], [], None], ["[1,null,3]", "[]", "NULL"]),
    "m": ("map<string,int>", [[("k", 1), ("j", None)], [], None], ['{"k":1,"j":null}', "{}", "NULL"]),
    "st": (
        "struct<a:int,b:string>",
        [{"a": 1, "b": "x"}, {"a": None, "b": ""}, None],
        ['{"a":1,"b":"x"}', '{"a":null,"b":""}', "NULL"],
    ),
    "ll": (
        "array<struct<q:int,r:array<string>>>",
        [[{"q": 1, "r": ["a", "b"]}, {"q": None, "r": []}], [], None],
        ['[{"q":1,"r":["a","b"]},{"q":null,"r":[]}]', "[]", "NULL"],
    ),
    "lt": ("array<timestamp>", [[AT(2026, 11, 1, 1, 30)], [], None], ['["2026-11-01 01:30:00"]', "[]", "NULL"]),
    "z": ("string", [None, None, None], ["NULL", "NULL", "NULL"]),
}
EXPECTED = [list(row) for row in zip(*(texts for _, _, texts in VALUES.values()), strict=True)]


@pytest.fixture
def metastore(real_hive: HiveServer) -> Metastore:
    settings = find_settings({"uris": real_hive.metastore})
    assert settings
    return Metastore(settings)


def made(hive: HiveServer, metastore: Metastore, name: str, columns: str, more: str) -> HiveTable:
    hive.sql(f"drop table if exists {name}", f"create table {name} ({columns}) {more}")
    return get_table(metastore, "default", name)


def given(kind: pa.DataType) -> pa.DataType:
    """The type of a source: microseconds reach all years of Hive."""
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


def put(metastore: Metastore, table: HiveTable, columns: dict[str, list[Any]], **options: Any) -> None:
    kinds = {column.name: parse_type(column.type) for column in (*table.columns, *table.partition_keys)}
    arrays = {name: pa.array(values, given(arrow_type(kinds[name]))) for name, values in columns.items()}
    Insert(metastore, table, pa.table(arrays).to_reader(), **options).run()


@pytest.mark.parametrize("stored_as", FORMATS)
def test_values_of_every_type_in_an_insert_only_table(
    stored_as: str, real_hive: HiveServer, metastore: Metastore
) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in VALUES.items())
    table = made(real_hive, metastore, "plain", columns, f"stored as {stored_as} {INSERT_ONLY}")
    put(metastore, table, {name: values for name, (_, values, _) in VALUES.items()})
    assert sorted(real_hive.sql("select * from plain")) == EXPECTED
    made(real_hive, metastore, "copied", columns, f"stored as {stored_as} {INSERT_ONLY}")
    real_hive.set("hive.vectorized.execution.enabled", "false")
    real_hive.sql("insert into copied select * from plain")
    assert real_hive.sql("select * from plain order by id") == EXPECTED
    real_hive.set("hive.vectorized.execution.enabled", "true")
    expected = EXPECTED
    if (stored_as, real_hive.version) == ("textfile", 3):  # its reader takes empty arrays for NULL
        expected = real_hive.sql("select * from copied order by id")
    assert real_hive.sql("select * from plain order by id") == expected
    real_hive.sql("insert into plain select * from plain where id = 2")
    assert real_hive.sql("select count(*), count(distinct id), max(ts) from plain") == [["4", "3", EXPECTED[0][12]]]


@pytest.mark.parametrize("stored_as", ["full", *FORMATS])
def test_replaced_rows_are_gone_and_tables_live_on(stored_as: str, real_hive: HiveServer, metastore: Metastore) -> None:
    acid = "stored as orc tblproperties('transactional'='true')"
    more = acid if stored_as == "full" else f"stored as {stored_as} {INSERT_ONLY}"
    table = made(real_hive, metastore, "parts", "id int, s string", f"partitioned by (day date) {more}")

    def seen() -> list[str]:
        """Ids as they are read; the counts from statistics and from files are the same."""
        ids = sorted(row[0] for row in real_hive.sql("select id from parts"))
        for by_statistics in ("true", "false"):
            real_hive.set("hive.compute.query.using.stats", by_statistics)
            greatest = max(ids, default="NULL", key=int)
            assert real_hive.sql("select count(*), max(id) from parts") == [[str(len(ids)), greatest]]
        return ids

    real_hive.sql("insert into parts values (1, 'a', '2026-01-01'), (2, 'b', '2026-01-02')")
    days = [datetime.date(2026, 1, 2), datetime.date(2026, 1, 3)]
    put(metastore, table, {"id": [3, 4], "s": ["c", None], "day": days}, overwrite=True)
    assert seen() == ["1", "3", "4"]
    put(metastore, table, {"id": []}, partition={"day": "2026-01-01"}, overwrite=True)
    assert seen() == ["3", "4"]
    Truncate(metastore, table, {"day": "2026-01-02"}).run()
    assert seen() == ["4"]
    real_hive.sql("insert into parts values (5, 'e', '2026-01-02'), (6, 'f', '2026-01-01')")
    assert seen() == ["4", "5", "6"]
    if stored_as == "full":
        real_hive.sql("update parts set s = 'u' where id = 5", "delete from parts where id = 4")
        assert seen() == ["5", "6"]
    real_hive.sql("alter table parts partition (day='2026-01-02') compact 'major'")
    for thread in ("Worker", "Cleaner"):
        real_hive.round(thread)
    assert seen()[-2:] == ["5", "6"]
    Truncate(metastore, table).run()
    assert seen() == []


def test_text_with_delimiters_of_the_table(real_hive: HiveServer, metastore: Metastore) -> None:
    delimiters = (
        "row format delimited fields terminated by ',' escaped by '\\\\' collection items terminated by ';' "
        "map keys terminated by ':' null defined as 'nil'"
    )
    columns = "id int, s string, l array<string>, m map<string,int>"
    table = made(real_hive, metastore, "delimited", columns, f"{delimiters} stored as textfile {INSERT_ONLY}")
    put(metastore, table, {
        "id": [1, 2, 3], "s": ['a,b\\c;rn:"', "\\N", None], "l": [["p,;:q\\", "nil2"], ["", ""], None],
        "m": [[("x:y", 1)], [], None],
    })  # fmt: skip
    expected = [
        ["1", 'a,b\\c;rn:"', '["p,;:q\\\\","nil2"]', '{"x:y":1}'],
        ["2", "\\N", '["",""]', "{}"],
        ["3", "NULL", "NULL", "NULL"],
    ]
    assert sorted(real_hive.sql("select * from delimited")) == expected
    assert real_hive.sql("select * from delimited order by id") == expected
