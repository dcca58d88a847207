"""Copies in Hive's metastore, 3.1.3 and 4.0.1: Spark and Trino read them, and commits of Spark are never lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.servers.hdfs_server import ServerUnavailable
from support.servers.hive_server import HiveServer
from support.servers.trino_server import TrinoServer
from support.spark.iceberg_sql import IcebergSql

import acidctl
from acidctl.base.errors import ConflictError, EnvironmentProblem, RefusedError
from acidctl.iceberg.catalogs.hive_metastore import MetastoreCatalog
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import HiveTable, get_table

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


@pytest.fixture
def real_hive(real_hives: Callable[[int], HiveServer]) -> HiveServer:
    """Hive 3.1.3: Iceberg's client in Spark asks by a method that metastores of Hive 4 do not have."""
    return real_hives(3)


@pytest.fixture
def spark(real_hive: HiveServer, tmp_path: Path) -> Iterator[IcebergSql]:
    try:
        started = IcebergSql(real_hive.metastore, tmp_path / "spark")
    except (ServerUnavailable, EnvironmentProblem) as reason:
        pytest.skip(str(reason))
    with started:
        yield started


def copy(hive: HiveServer, name: str, **options: Any) -> Any:
    return acidctl.migrate(f"hive:default.{name}", f"hive:default.{name}_ice", metastore=hive.metastore, **options)


def table(hive: HiveServer, name: str) -> HiveTable:
    settings = find_settings({"uris": hive.metastore})
    assert settings
    return get_table(Metastore(settings), "default", name)


def test_spark_reads_the_copy_and_its_commits_are_not_lost(
    real_hive: HiveServer, spark: IcebergSql, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_hive.sql(
        "create table kept (id int, name string) partitioned by (p int) stored as orc"
        " tblproperties('transactional'='true')",
        "insert into kept values (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)",
        "delete from kept where id = 2",
    )
    copy(real_hive, "kept")
    assert spark.sql("select * from kept_ice order by id") == [[1, "a", 1], [3, "c", 2]]
    real_hive.sql("insert into kept values (4, 'd', 2)")
    real_locked = MetastoreCatalog._locked
    statements = ["alter table kept_ice set tblproperties ('by' = 'spark')"]

    @contextmanager
    def locked(self: MetastoreCatalog, names: Any) -> Iterator[Any]:
        """Spark commits after the table was loaded, before the lock."""
        while statements:
            assert spark.sql(statements.pop()) == []
        with real_locked(self, names) as held:
            yield held

    monkeypatch.setattr(MetastoreCatalog, "_locked", locked)
    with pytest.raises(ConflictError, match="changed by somebody else"):
        copy(real_hive, "kept", catch_up=True)
    assert copy(real_hive, "kept", catch_up=True).rows == 1
    assert table(real_hive, "kept_ice").parameters["by"] == "spark"
    assert spark.sql("select id from kept_ice order by id") == [[1], [3], [4]]
    assert ["by", "spark"] in spark.sql("show tblproperties kept_ice")
    described = table(real_hive, "kept_ice").parameters
    newest = spark.sql("select snapshot_id from ice.default.kept_ice.snapshots order by committed_at desc limit 1")
    assert described["current-snapshot-id"] == str(newest[0][0])
    real_hive.sql("insert into kept values (5, 'e', 2)")
    statements.append("insert into kept_ice values (99, 'spark', 1)")
    with pytest.raises(ConflictError):
        copy(real_hive, "kept", catch_up=True)
    with pytest.raises(RefusedError) as refused:
        copy(real_hive, "kept", catch_up=True)
    assert "somebody wrote to the copy" in refused.value.why
    assert spark.sql("select id from kept_ice order by id") == [[1], [3], [4], [99]]


def test_columns_that_hive_gets_are_shown_by_the_metastore(real_hive: HiveServer, spark: IcebergSql) -> None:
    real_hive.sql(
        "create table wider (id int, name string) stored as orc tblproperties('transactional'='true')",
        "insert into wider values (1, 'a')",
    )
    copy(real_hive, "wider")
    real_hive.sql(
        "alter table wider add columns (extra array<double>)",
        "alter table wider change id id bigint",
        "insert into wider select 2, 'b', array(cast(0.5 as double))",
    )
    copy(real_hive, "wider", catch_up=True)
    assert spark.sql("select * from wider_ice order by id") == [[1, "a", None], [2, "b", [0.5]]]
    assert [(one.name, one.type) for one in table(real_hive, "wider_ice").columns] == [
        ("id", "bigint"), ("name", "string"), ("extra", "array<double>"),
    ]  # fmt: skip


@pytest.mark.parametrize("version", [3, 4])
def test_trino_reads_the_copy(version: int, real_hives: Callable[[int], HiveServer], tmp_path: Path) -> None:
    hive = real_hives(version)
    hive.sql(
        "create table shown (id int, name char(5)) partitioned by (p date) stored as orc"
        " tblproperties('transactional'='true')",
        "insert into shown values (1, 'a', date'2026-11-29'), (2, 'b', date'2026-11-29'), (3, 'c', null)",
        "delete from shown where id = 2",
    )
    copy(hive, "shown")
    made = table(hive, "shown_ice")
    assert (made.parameters["EXTERNAL"], made.partition_keys) == ("TRUE", ())
    assert "external.table.purge" not in made.parameters
    try:
        trino = TrinoServer(tmp_path / "trino", {}, iceberg={"ice": hive.metastore})
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
    try:
        select = "select id, name, p from shown_ice order by id"
        assert trino.sql("ice", select) == [[1, "a", "2026-11-29"], [3, "c", None]]
        assert trino.sql("ice", "select id from shown_ice where name = 'c'") == [[3]]
        hive.sql("alter table shown add columns (extra double)", "insert into shown values (4, 'd', 0.5, null)")
        copy(hive, "shown", catch_up=True)
        assert trino.sql("ice", "select id, extra from shown_ice where p is null order by id") == [[3, None], [4, 0.5]]
    finally:
        trino.stop()


COLUMNS = """id int, tiny tinyint, small smallint, big bigint, yes boolean, f float, d double, n decimal(20,3),
    s string, v varchar(9), c char(5), day date, at timestamp, raw binary"""
VALUES = [
    "1, 1, 2, 3, true, 1.5, 0.1, 12.345, 'é€', 'v', 'c', date'2026-11-29', timestamp'2026-11-29 12:34:56.789',"
    " cast('raw' as binary)",
    "2, null, null, null, null, null, null, null, null, null, null, null, null, null",
    "3, -128, -32768, -9223372036854775808, false, -0.0, -1e300, -99999999999999999.999, '', '', '', date'1969-12-31',"
    " timestamp'1969-12-31 23:59:59', cast('' as binary)",
    "4, 127, 32767, 9223372036854775807, true, 3e38, 1e-300, 0.001, 'a\nb', 'x y', 'abcde', date'9999-12-31',"
    " timestamp'2000-02-29 00:00:00.000001', cast('x' as binary)",
]


@pytest.mark.parametrize("kind", ["orc", "parquet"])
def test_trino_proves_both_tables(kind: str, real_hives: Callable[[int], HiveServer], tmp_path: Path) -> None:
    hive, name = real_hives(4), f"proven_{kind}"
    hive.sql(
        f"create table {name} ({COLUMNS}) stored as orc tblproperties('transactional'='true')",
        *(f"insert into {name} select {values}" for values in VALUES),
        f"insert into {name} (id) values (7)",
    )
    # Trino 476 does not apply the files of Hive 4's own deletes, bucket_00000_0: it would count the row.
    acidctl.Hive(hive.metastore).table(f"default.{name}").delete("id = 7")
    copy(hive, name, format=kind)
    source, target = statements(copy(hive, name, prove="trino").statements)
    try:
        trino = TrinoServer(tmp_path / "trino", {"hive": hive.metastore}, iceberg={"ice": hive.metastore})
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
    try:
        assert trino.sql("ice", target) == []
        assert trino.sql("hive", source) == []
        hive.sql(f"insert into {name} select 5, 1, 1, 1, true, 1, 1, 1, 'x', 'x', 'x', date'2026-01-01', null, null")
        differing = {row[0] for row in trino.sql("hive", source)}
        assert {"rows", "s values", "id sum"} & differing, differing
    finally:
        trino.stop()


def statements(text: str) -> list[str]:
    """Return both statements, without their semicolons."""
    return [one.strip() for one in text.split(";") if one.strip()]
