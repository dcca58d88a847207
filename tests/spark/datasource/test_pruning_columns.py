"""Batches of columns: plans get them on every Spark that is known, and rows, the same ones, everywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.engines.written_by_hive import HIVE23
from support.made.big_tables import BigOptions, write_big
from support.spark.source_tables import BIG_DELETES, BIG_ROWS

from acidctl.storage.registry import open_location

pytest.importorskip("pyspark.sql.datasource", reason="PySpark older than 4.0")

from pyspark.sql import functions

from acidctl.spark.datasource import pruning, register
from acidctl.spark.datasource.pruning import java_source

EXCLUDED = "spark.sql.optimizer.excludedRules"
DIGESTS = [f"sum(hash({name}))" for name in ("id", "customer", "city", "amount", "score", "day", "updated")]


def test_a_spark_of_which_nothing_is_known_is_left_alone() -> None:
    with pytest.raises(ValueError, match=r"Spark 5\.1\.0 may read"):
        pruning.ship_columns(SimpleNamespace(version="5.1.0"))
    with pytest.raises(ValueError, match=r"Spark 4\.31\.0 may read"):
        pruning.ship_columns(SimpleNamespace(version="4.31.0"))


@pytest.fixture(scope="module")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of many batches."""
    register(spark)
    fs, path = open_location(str(tmp_path_factory.mktemp("columnar") / "big"))
    write_big(fs, path, BigOptions(rows=BIG_ROWS, write_ids=2, deletes=BIG_DELETES, base=True))
    return str(path)


@pytest.fixture
def without_rules(spark: Any, table: str) -> Iterator[Any]:
    experimental = spark._jsparkSession.experimental()
    rules = experimental.extraOptimizations()
    setter = getattr(experimental, "extraOptimizations_$eq")
    setter(rules.take(0))
    yield spark
    setter(rules)


def load(spark: Any, table: str) -> Any:
    return spark.read.format("hive_acid").load(table)


def hands_over_columns(frame: Any) -> bool:
    return "ColumnarToRow" in str(frame._jdf.queryExecution().executedPlan().toString())


def upper(frame: Any) -> Any:
    """A function in Python over one column, with all others beside it."""
    made = functions.pandas_udf(lambda words: words.str.upper(), "string")
    return frame.select("*", made("city").alias("loud")).selectExpr(*DIGESTS, "sum(hash(loud))")


QUERIES = {
    "all columns": lambda frame: frame.selectExpr(*DIGESTS),
    "words that outlive their batch": lambda frame: frame.selectExpr(
        "max(city)", "min(customer)", "max_by(customer, id)", "min_by(city, id)", "sort_array(collect_set(city))"
    ),
    "groups": lambda frame: frame.groupBy("city").agg({"customer": "max", "amount": "sum", "id": "count"}),
    "order": lambda frame: frame.orderBy("customer", "id").limit(7),
    "self-join": lambda frame: frame.alias("a").join(frame.alias("b"), functions.expr("a.id = b.id + 1")).selectExpr(
        "sum(hash(a.city, b.customer, a.amount, b.updated))"
    ),
    "window": lambda frame: frame.selectExpr(
        "id", "customer", "lag(city) OVER (PARTITION BY day ORDER BY id) AS before"
    ).selectExpr("sum(hash(id, customer, before))"),
    "union": lambda frame: frame.union(frame.where("id % 3 = 0")).selectExpr(*DIGESTS),
    "function in Python": upper,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", QUERIES)
def test_columns_and_rows_are_the_same(spark: Any, table: str, name: str) -> None:
    found = [list(map(repr, QUERIES[name](load(spark, table)).collect()))]
    spark.conf.set(EXCLUDED, pruning.RULE)
    try:
        found.append(list(map(repr, QUERIES[name](load(spark, table)).collect())))
    finally:
        spark.conf.unset(EXCLUDED)
    assert sorted(found[0]) == sorted(found[1])


@pytest.mark.slow
@pytest.mark.spark
def test_a_plan_takes_columns_and_the_classes_are_sent_once(spark: Any, table: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        assert hands_over_columns(load(spark, table))
        assert hands_over_columns(load(spark, table).selectExpr("sum(score)"))
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert pruning.why_rows(spark) is None
    sent = spark.sparkContext._jsc.sc().listJars().size()
    other = spark.newSession()
    register(other)
    assert pruning.why_rows(other) is None
    assert spark.sparkContext._jsc.sc().listJars().size() == sent
    assert len([*Path(spark.sparkContext._temp_dir).rglob("acidctl-columns-*.jar")]) == 1
    register(other)
    assert hands_over_columns(load(other, table))
    assert load(other, table).count() == load(spark, table).count()


@pytest.mark.slow
@pytest.mark.spark
def test_columns_go_together_with_those_of_files_and_into_the_cache(spark: Any, table: str, tmp_path: Path) -> None:
    acid = load(spark, table)
    acid.write.parquet(str(tmp_path / "flat"))
    flat = spark.read.parquet(str(tmp_path / "flat"))
    wanted = [2 * value for value in flat.selectExpr(*DIGESTS).collect()[0]]
    assert list(acid.union(flat).selectExpr(*DIGESTS).collect()[0]) == wanted
    cached = acid.cache()
    try:
        assert cached.count() == BIG_ROWS - BIG_DELETES
        assert list(cached.union(cached).selectExpr(*DIGESTS).collect()[0]) == wanted
    finally:
        cached.unpersist()


@pytest.mark.slow
@pytest.mark.spark
def test_every_type_that_hive_wrote_comes_by_columns_as_by_rows(spark: Any, table: str) -> None:
    frame = load(spark, str(HIVE23 / "alltypes_random" / "table"))
    assert hands_over_columns(frame)
    found = [sorted(map(repr, one.collect())) for one in (frame, frame.repartition(2))]
    spark.conf.set(EXCLUDED, pruning.RULE)
    try:
        rows = load(spark, str(HIVE23 / "alltypes_random" / "table"))
        assert not hands_over_columns(rows)
        assert found == [sorted(map(repr, rows.collect()))] * 2
    finally:
        spark.conf.unset(EXCLUDED)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("KNOWN_SPARKS", ()), "may read Python sources in another way"),
        (("java_source", lambda name: java_source(name).replace("sent.numRows()", "sent.rows()")), "rows"),
    ],
)
def test_where_columns_cannot_be_had_rows_are_handed_over(
    without_rules: Any, table: str, monkeypatch: pytest.MonkeyPatch, change: tuple[str, Any], why: str
) -> None:
    monkeypatch.setattr(pruning, *change)
    register(without_rules)
    frame = load(without_rules, table)
    assert "reads 7 of 7" in str(frame._jdf.queryExecution().executedPlan().toString())
    assert not hands_over_columns(frame)
    assert frame.where("id < 10").count() > 0
    assert pruning.why_not_pruned(without_rules) is None
    assert why in str(pruning.why_rows(without_rules))
