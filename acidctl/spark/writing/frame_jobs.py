"""The jobs of Spark that write the rows of a DataFrame; only pickled results of tasks come to this process."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from acidctl.spark.shipping import is_connect, own_python, ship_to
from acidctl.spark.told import explain
from acidctl.spark.writing.merge import MergeJobs
from acidctl.spark.writing.merge_tasks import (
    Changed,
    MergeTask,
    Missing,
    SourceShare,
    TablePart,
    all_missing,
    changed_parts,
    with_key_route,
    written_source,
)
from acidctl.spark.writing.share import MOST_SHARES, ROUTE, Attempt, InsertTask, with_route, written
from acidctl.spark.writing.worker import ShareMapper

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_shares(df: DataFrame, task: InsertTask) -> list[Attempt]:
    """Have executors write the rows of a DataFrame, and return the attempts that Spark accepted."""
    task = replace(task, names=tuple(df.columns))
    df = _plain(df)
    with _ready(df):
        if task.new_files.table.buckets:  # rows of one bucket go to one task: readers look for one file of each
            df = _routed(df, with_route, task)
            task = replace(task, is_routed=True)
        return _results(df.coalesce(MOST_SHARES), written, task)


def merge_jobs(df: DataFrame) -> MergeJobs:
    """Return the jobs of a DELETE, UPDATE or MERGE by the rows of a DataFrame, which the first of them evaluates."""

    def source(task: MergeTask) -> list[SourceShare]:
        with _ready(df):
            return _results(_routed(_plain(df), with_key_route, task), written_source, task)

    def change(task: MergeTask, parts: Sequence[TablePart]) -> list[Changed]:
        with _ready(df):
            return _results(_frame_of(df, parts), changed_parts, task)

    def insert(task: MergeTask, missing: Sequence[Missing]) -> list[Attempt]:
        from pyspark.sql import types as st  # noqa: PLC0415 - PySpark

        assert task.rule
        fields = [field for field in df.schema.fields if field.name.lower() not in task.rule.extra]
        schema = st.StructType([st.StructField(f"c{at}", field.dataType) for at, field in enumerate(fields)])
        with _ready(df):
            rows = _frame_of(df, missing).mapInArrow(ShareMapper.of(all_missing, task), schema)
        return write_shares(rows.toDF(*(field.name for field in fields)), task.insert)

    return MergeJobs(source, change, insert)


def _plain(df: DataFrame) -> DataFrame:
    """Return a DataFrame with other names: PySpark cannot map one with a dot in a name."""
    return df.toDF(*(f"c{place}" for place in range(len(df.columns))))


def _routed(df: DataFrame, function: Callable[..., Iterator[Any]], task: Any) -> DataFrame:
    """Bring the rows with the same route together."""
    from pyspark.sql import types as st  # noqa: PLC0415 - PySpark

    schema = st.StructType([*df.schema.fields, st.StructField(ROUTE, st.LongType())])
    return df.mapInArrow(ShareMapper.of(function, task), schema).repartition(ROUTE)


def _frame_of(df: DataFrame, values: Sequence[object]) -> DataFrame:
    """Return a DataFrame with pickled values, about one in each partition."""
    rows = df.sparkSession.createDataFrame([(pickle.dumps(value),) for value in values], "value binary")
    return rows.repartition(len(values))


def _results(df: DataFrame, function: Callable[[Any, int, Iterable[Any]], Iterator[Any]], task: Any) -> list[Any]:
    mapped = df.mapInArrow(ShareMapper.of(function, task), "value binary")
    return [pickle.loads(row.value) for row in mapped.collect()]


@contextmanager
def _ready(df: DataFrame) -> Iterator[None]:
    """Send this package to executors, cancel jobs of a block that fails, and raise errors of acidctl as such."""
    spark, tag = df.sparkSession, f"acidctl-{uuid.uuid4().hex}"
    ship_to(spark)
    add, interrupt, remove = _tagging(spark)
    add(tag)
    try:
        with own_python(spark):
            yield
    except BaseException as error:
        with suppress(Exception):  # a Java that has ended runs no job
            interrupt(tag)
        if found := explain(error):
            raise found from error
        raise
    finally:
        with suppress(Exception):  # the same: the first error tells more
            remove(tag)


def _tagging(spark: SparkSession) -> tuple[Callable[[str], object], ...]:
    """Return how jobs get a tag, are cancelled by it and lose it."""
    if is_connect(spark) or not spark.version.startswith("3.5."):
        return spark.addTag, spark.interruptTag, spark.removeTag
    context = spark.sparkContext  # in Spark 3.5 only a session of Spark Connect has tags
    return context.addJobTag, context.cancelJobsWithTag, context.removeJobTag
