"""DataFrames of a real Spark session are written to a table of a metastore in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import files_of, rows_of, writable

import acidctl.spark
from acidctl.base.errors import BadDataError, NotFoundError, UsageProblem

pytestmark = pytest.mark.spark


@pytest.fixture
def hive() -> Iterator[FakeHive]:
    with FakeHive(4, remembers=True) as made:
        yield made


def frame(spark: Any, count: int, name: str = "concat('n', id)") -> Any:
    return spark.range(count, numPartitions=3).selectExpr("int(id) AS a", f"{name} AS b")


def test_insert_and_overwrite(spark: Any, hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    done = acidctl.spark.insert(frame(spark, 10), "hive:db.t", metastore=hive.address)
    assert (done.inserted, done.files, done.lock) == (10, 3, "SHARED_READ")
    assert rows_of(hive) == [(i, f"n{i}") for i in range(10)]
    acidctl.spark.insert(frame(spark, 2), "hive:db.t", overwrite=True, metastore=hive.address)
    assert rows_of(hive) == [(0, "n0"), (1, "n1")]
    own = acidctl.spark.read(spark, "hive:db.t", metastore=hive.address).selectExpr("a + 1 AS a", "b")
    acidctl.spark.insert(own, "hive:db.t", overwrite=True, metastore=hive.address)
    assert rows_of(hive) == [(1, "n0"), (2, "n1")]


def test_buckets_and_partitions(spark: Any, hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path, keys="p string", buckets=3, bucket_columns=("a",), parameters={"bucketing_version": "2"})
    rows = frame(spark, 60).withColumnRenamed("a", "A").selectExpr("*", "if(A % 2 = 0, 'x', NULL) AS p")
    done = acidctl.spark.insert(rows, "hive:db.t", metastore=hive.address)
    assert (done.inserted, done.files) == (60, 6)  # one of each bucket and partition, though each had many tasks
    assert sorted(row[0] for row in rows_of(hive)) == list(range(60))
    acidctl.spark.insert(frame(spark, 4), "hive:db.t", partition={"p": "y"}, overwrite=True, metastore=hive.address)
    assert sum(row[2] == "y" for row in rows_of(hive)) == 4


def test_changes_by_key(spark: Any, hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path, {"a": "int", "b": "string", "c.d": "string"})
    where = {"metastore": hive.address}
    rows = frame(spark, 10).selectExpr("*", "concat('c', a) AS `c.d`")
    acidctl.spark.insert(rows, "hive:db.t", **where)
    assert acidctl.spark.delete(rows.where("a < 3"), "hive:db.t", key=["c.d"], **where).deleted == 3
    changed = acidctl.spark.update(frame(spark, 5, "'new'"), "hive:db.t", key="a", **where)
    assert (changed.updated, changed.inserted) == (2, 0)
    assert rows_of(hive)[:3] == [(3, "new", "c3"), (4, "new", "c4"), (5, "n5", "c5")]
    log = spark.createDataFrame(
        [(3, "late", "u", 2), (3, "early", "i", 1), (5, None, "d", 3)], "a int, b string, op string, at int"
    )
    merged = acidctl.spark.merge(log, "hive:db.t", key="a", operation_column="op", order_by="at", **where)
    assert (merged.updated, merged.deleted) == (1, 1)
    assert rows_of(hive)[:3] == [(3, "late", "c3"), (4, "new", "c4"), (6, "n6", "c6")]
    told = [(one.verb, one.facts["engine"], one.facts["writeId"]) for one in acidctl.Location(tmp_path).log()]
    assert told == [(verb, "spark", 4 - place) for place, verb in enumerate(("merge", "update", "delete", "insert"))]


def test_a_conflict_starts_a_merge_again(spark: Any, hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path)
    acidctl.spark.insert(frame(spark, 3), "hive:db.t", metastore=hive.address)

    def overtaken() -> None:
        hive.before.clear()
        hive.end(max(hive.txns), commit=False)

    hive.before["commit_txn"] = overtaken
    done = acidctl.spark.merge(frame(spark, 4, "'new'"), "hive:db.t", key="a", metastore=hive.address)
    assert (done.updated, done.inserted) == (3, 1)
    assert not hive.before, "the first attempt was overtaken"


def test_what_fails_leaves_the_table_as_it_was(
    spark: Any, hive: FakeHive, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    writable(hive, tmp_path)
    where = {"metastore": hive.address}
    with pytest.raises(BadDataError, match="of the DataFrame does not fit"):
        acidctl.spark.insert(spark.range(9).selectExpr("id + 3000000000 AS a"), "hive:db.t", **where)
    with pytest.raises(Exception, match="no such luck"):
        acidctl.spark.insert(spark.range(9).selectExpr("raise_error('no such luck') AS b"), "hive:db.t", **where)
    with pytest.raises(UsageProblem, match="no column x"):
        acidctl.spark.insert(spark.range(9).selectExpr("id AS x"), "hive:db.t", **where)
    with pytest.raises(BadDataError, match="type timestamp"):
        acidctl.spark.insert(spark.sql("SELECT current_timestamp() AS a"), "hive:db.t", **where)
    assert not list(tmp_path.iterdir())
    assert not hive.locks
    for name, error in (("db.t", UsageProblem), ("hive:db.*", UsageProblem), ("hive:db.none", NotFoundError)):
        with pytest.raises(error):
            acidctl.spark.insert(frame(spark, 1), name, **where)
    with pytest.raises(UsageProblem, match="no metastore"):
        acidctl.spark.delete(frame(spark, 1), "hive:db.t", metastore="none")
    capfd.readouterr()  # Java's stack traces


def test_a_worker_that_dies_is_replaced_and_doubles_no_rows(
    spark: Any, hive: FakeHive, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    writable(hive, tmp_path)
    mark = tmp_path.parent / f"{tmp_path.name}-died"

    def dying(batches: Any) -> Any:
        yield from batches
        if not mark.exists():
            mark.touch()
            os._exit(1)

    rows = frame(spark, 3000).coalesce(1).mapInArrow(dying, "a int, b string")
    with pytest.raises(Exception, match=r"crashed|failure"):  # a local master tries each task once
        acidctl.spark.insert(rows, "hive:db.t", metastore=hive.address)
    assert not list(tmp_path.iterdir())
    acidctl.spark.insert(rows, "hive:db.t", metastore=hive.address)
    assert len(rows_of(hive)) == 3000
    assert len(files_of(tmp_path)) == 2
    capfd.readouterr()


def test_rows_do_not_come_to_the_driver(spark: Any, hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path, keys="p string")
    where = {"metastore": hive.address}
    rows = spark.range(200_000).selectExpr("int(id) AS a", "uuid() AS b", "concat('p', id % 3) AS p")
    acidctl.spark.insert(rows, "hive:db.t", **where)
    settings = spark.sparkContext._jsc.sc().conf()
    settings.set("spark.driver.maxResultSize", "200k")
    try:
        with pytest.raises(Exception, match="maxResultSize"):
            rows.collect()
        changes = rows.selectExpr("a + 1000 AS a", "'new' AS b", "p").where("a % 2 = 0")
        merged = acidctl.spark.merge(changes, "hive:db.t", key="a", **where)
        assert (merged.updated, merged.inserted) == (99_500, 500)
        assert acidctl.spark.delete(rows.where("a % 2 = 1"), "hive:db.t", key="a", **where).deleted == 100_000
    finally:
        settings.remove("spark.driver.maxResultSize")
