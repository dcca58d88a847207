"""Tables that Spark writes: Hive 3.1.3 and 4.0.1 read the rows, count them, change them and compact them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.engines.real_hive import HiveTable
from support.servers.hive_server import HiveServer

import acidctl.spark
from acidctl.spark.datasource import register

pytest.importorskip("pyspark.sql.datasource", reason="PySpark older than 4.0")
pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]

COLUMNS = {"id": "int", "name": "string"}


class SparkTable(HiveTable):
    """A table that both write, and the ids of its rows by what was written."""

    def check(self, ids: list[int]) -> None:
        """Both read these ids; each row has a ROW__ID of its own; Hive counts them with and without statistics."""
        rows = [(where, row) for where, found in self.rows_by_location().items() for row in found]
        assert sorted(int(values[0]) for _, (_, values) in rows) == sorted(ids)
        assert len({(where, row_id) for where, (row_id, _) in rows}) == len(ids)
        wanted = [str(number) for number in (len(ids), min(ids), max(ids))]
        self.hive.set("hive.compute.query.using.stats", "true")
        assert self.hive.sql(f"select count(*), min(id), max(id) from {self.name}") == [wanted]
        self.hive.set("hive.compute.query.using.stats", "false")
        statement = f"select count(*), min(id), max(id), count(name) from {self.name} where id >= 0"
        for batches in ("true", "false"):
            self.hive.set("hive.vectorized.execution.enabled", batches)
            assert self.hive.sql(statement) == [[*wanted, wanted[0]]]
        self.validate()


def made(hive: HiveServer, name: str, extra: str = "", properties: str = "") -> SparkTable:
    for setting in ("hive.stats.autogather", "hive.stats.column.autogather"):
        hive.set(setting, "true")
    return SparkTable(hive, name, COLUMNS, extra, properties, by_lists=True)


def frame(spark: Any, first: int, last: int, *more: str) -> Any:
    return spark.range(first, last, numPartitions=3).selectExpr("int(id) AS id", "concat('n', id) AS name", *more)


def save(hive: HiveServer, rows: Any, name: str, mode: str = "append") -> None:
    options = {"metastore": hive.metastore, "wait": "1m"}
    rows.write.format("hive_acid").mode(mode).options(**options).save(f"hive:default.{name}")


def test_a_plain_table(spark: Any, real_hive: HiveServer) -> None:
    register(spark)
    table, where = made(real_hive, "by_spark"), {"metastore": real_hive.metastore}
    name = "hive:default.by_spark"
    table.run("insert into by_spark values (1000, 'hive')")
    acidctl.spark.insert(frame(spark, 0, 100), name, **where)
    save(real_hive, frame(spark, 100, 200), "by_spark")
    ids = [*range(200), 1000]
    table.check(ids)
    table.run("update by_spark set name = 'u' where id % 10 = 0", "delete from by_spark where id % 10 = 1")
    ids = [number for number in ids if number % 10 != 1]
    table.check(ids)
    assert acidctl.spark.delete(frame(spark, 0, 15), name, key="id", **where).deleted == 13
    assert acidctl.spark.update(frame(spark, 10, 25).selectExpr("id", "'s' name"), name, key="id", **where).updated == 9
    merged = acidctl.spark.merge(frame(spark, 195, 205).selectExpr("id", "'m' name"), name, key="id", **where)
    assert (merged.updated, merged.inserted) == (5, 5)
    ids = [number for number in (*range(15, 205), 1000) if number % 10 != 1 or number >= 200]
    table.check(ids)
    table.run("alter table by_spark compact 'major'")
    real_hive.round("Worker")
    table.check(ids)
    real_hive.round("Cleaner")
    table.run("insert into by_spark values (2000, 'after')")
    table.check([*ids, 2000])
    save(real_hive, frame(spark, 5, 8), "by_spark", "overwrite")
    table.check([5, 6, 7])
    acidctl.spark.insert(frame(spark, 20, 22), name, overwrite=True, **where)
    table.check([20, 21])
    table.run("update by_spark set name = 'u' where id = 20")
    table.check([20, 21])


@pytest.mark.parametrize("numbering", ["1", "2"])
def test_a_table_with_partitions_and_buckets(spark: Any, real_hive: HiveServer, numbering: str) -> None:
    register(spark)
    name = f"by_spark_{numbering}"
    extra = "partitioned by (day string) clustered by (id) into 4 buckets"
    table, where = (
        made(real_hive, name, extra, f", 'bucketing_version'='{numbering}'"),
        {"metastore": real_hive.metastore},
    )
    day = "concat('d/', id % 3) AS day"
    table.run(f"insert into {name} partition (day) values (1000, 'hive', 'd/0')")
    acidctl.spark.insert(frame(spark, 0, 60, day), f"hive:default.{name}", **where)
    save(real_hive, frame(spark, 60, 120, day), name)  # a statement id for each task
    options = f"(path 'hive:default.{name}', metastore '{real_hive.metastore}')"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING hive_acid OPTIONS {options}")
    spark.sql(f"INSERT INTO {name} SELECT int(id), 'sql', 'd/4' FROM range(120, 130)")
    ids = [*range(130), 1000]
    table.check(ids)
    for number in (0, 59, 60, 119, 125):  # Hive reads the bucket of this value alone
        assert real_hive.sql(f"select id from {name} where id = {number}") == [[str(number)]]
    table.run(f"update {name} set name = 'u' where id % 10 = 0", f"delete from {name} where id % 10 = 1")
    ids = [number for number in ids if number % 10 != 1]
    table.check(ids)
    changes = frame(spark, 118, 132, "if(id >= 130, 'd/5', if(id >= 120, 'd/4', concat('d/', id % 3))) AS day")
    merged = acidctl.spark.merge(changes.where("id % 10 <> 1"), f"hive:default.{name}", key=["id"], **where)
    assert (merged.updated, merged.inserted) == (11, 1)
    ids = sorted([*ids, 130])
    table.check(ids)
    for condition in table.locations():
        table.run(f"alter table {name} partition ({condition}) compact 'major'")
        real_hive.round("Worker")
    table.check(ids)
    acidctl.spark.insert(
        frame(spark, 200, 210), f"hive:default.{name}", partition={"day": "d/1"}, overwrite=True, **where
    )
    table.check(
        sorted(
            [*(number for number in ids if number in (1000, 130) or number >= 120 or number % 3 != 1), *range(200, 210)]
        )
    )


def test_a_stream(spark: Any, real_hive: HiveServer, tmp_path: Path) -> None:
    """Its epochs, one of them repeated, lie between statements and a compaction of Hive's."""
    register(spark)
    table, source = made(real_hive, "by_stream"), str(tmp_path / "source")
    table.run("insert into by_stream values (1000, 'hive')")

    def follow() -> None:
        stream = spark.readStream.schema("id int, name string").parquet(source)
        options = {"metastore": real_hive.metastore, "checkpointLocation": str(tmp_path / "checkpoint"), "wait": "1m"}
        writer = stream.writeStream.format("hive_acid").options(**options).trigger(availableNow=True)
        writer.start("hive:default.by_stream").awaitTermination()

    frame(spark, 0, 10).write.parquet(source)
    follow()
    table.check([*range(10), 1000])
    table.run("update by_stream set name = 'u' where id in (3, 1000)", "delete from by_stream where id = 4")
    ids = [number for number in (*range(10), 1000) if number != 4]
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()  # as if the driver had died before Spark's own note
    follow()
    table.check(ids)
    table.run("alter table by_stream compact 'major'")
    real_hive.round("Worker")
    frame(spark, 10, 20).write.mode("append").parquet(source)
    follow()
    ids = sorted([*ids, *range(10, 20)])
    table.check(ids)
    table.run("update by_stream set name = 'u' where id = 15", "delete from by_stream where id = 16")
    table.check([number for number in ids if number != 16])
    (told,) = acidctl.Location(table.path).log()
    assert (told.verb, told.facts["transactions"], told.facts["inserted"]) == ("stream", 2, 20)
