"""Read tables and their changes as DataFrames, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def read(spark: SparkSession, table: str, **options: Any) -> DataFrame:
    """Return the rows of a table.

    orders = read(spark, "hive:sales.orders", at=812)

    Args:
        table: a path, or ``hive:db.table``.
        options: options of the data source ``hive_acid`` (docs/reference/spark-source.md), which is registered in the
            session: ``snapshot="..."``, ``rowId=True``, ``metastore="thrift://host:9083"``.
    """
    from acidctl.spark.datasource import register  # noqa: PLC0415 - PySpark

    register(spark)
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    return spark.read.format("hive_acid").options(**texts).load(table)


def read_changes(
    spark: SparkSession,
    table: str,
    start: int,
    end: int | None = None,
    *,
    key: Sequence[str] = (),
    **options: Any,
) -> DataFrame:
    """Return the changes of the write ids start+1..end: ``_change`` (``insert`` or ``delete``), ``_write_id``, rows.

    An UPDATE is a ``delete`` of what was and an ``insert`` of what is; with a key they become one row, see
    :func:`pair_changes`.

    Args:
        table, options: as for :func:`read`.
        start: changes of write ids above this one.
        end: the last write id; None for the newest below which nothing is open.
        key: columns whose values identify a row.
    """
    more = {} if end is None else {"changesTo": end}
    changes = read(spark, table, changesFrom=start, **more, **options)
    return pair_changes(changes, key) if key else changes


def pair_changes(changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return changes with the row before and after: ``_change`` (``insert``, ``update`` or ``delete``), ``_write_id``,
    ``old`` and ``new``.

    Of the rows that one write id deleted and inserted with equal keys, the n-th and the n-th are one update; NULL is
    equal to NULL. Good for batches of a stream, too (``foreachBatch``).

    Args:
        changes: the result of :func:`read_changes`, or a batch of a stream.
        key: names of columns.
    """
    from pyspark.sql import Window  # noqa: PLC0415 - PySpark
    from pyspark.sql import functions as f  # noqa: PLC0415 - PySpark

    rows = [name for name in changes.columns if name not in ("_change", "_write_id")]

    def named(name: str) -> Column:
        return f.col("`" + name.replace("`", "``") + "`")

    row = f.struct(*map(named, rows))
    same = [f.col("_write_id"), *map(named, key)]
    place = f.row_number().over(Window.partitionBy("_change", *same).orderBy(f.hash(row)))

    def side(change: str, as_: str) -> DataFrame:
        rows_of_kind = changes.where(f.col("_change") == change).withColumn("_place", place)
        keys = f.struct(*[column.alias(f"k{i}") for i, column in enumerate([*same, f.col("_place")])])
        return rows_of_kind.select(keys.alias(f"{as_}_key"), row.alias(as_))

    both = side("delete", "old").join(side("insert", "new"), f.col("old_key").eqNullSafe(f.col("new_key")), "full")
    kind = f.when(f.col("old_key").isNull(), "insert").when(f.col("new_key").isNull(), "delete").otherwise("update")
    write_id = f.coalesce(f.col("old_key.k0"), f.col("new_key.k0"))
    return both.select(kind.alias("_change"), write_id.alias("_write_id"), "old", "new")
