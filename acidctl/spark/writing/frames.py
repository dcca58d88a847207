"""INSERT, DELETE, UPDATE and MERGE by the rows of a DataFrame, under a transaction of the user's process.

Executors read and write all rows. This process publishes and commits the files of the tasks that Spark accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

from acidctl.base.arguments import as_columns, as_flag, as_texts
from acidctl.base.deadline import Duration, as_seconds
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import LostTransaction
from acidctl.metastore.tables import HiveTable, get_table
from acidctl.spark.writing.frame_jobs import merge_jobs, write_shares
from acidctl.spark.writing.insert import FrameInsert
from acidctl.spark.writing.merge import FrameMerge
from acidctl.spark.writing.target import Address, arrow_schema, log_by_spark, open_table
from acidctl.writing.once import Once
from acidctl.writing.transaction import ATTEMPTS
from acidctl.writing.write import Write, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def insert(
    df: DataFrame,
    table: str,
    *,
    overwrite: bool = False,
    partition: Mapping[str, object] | None = None,
    metastore: Address = None,
    storage_options: Mapping[str, str] | None = None,
    wait: Duration = 600.0,
) -> Written:
    """Insert the rows of a DataFrame; executors write them, and none of them comes to the driver.

    insert(orders, "hive:sales.orders", partition={"day": "2026-11-20"})

    Args:
        df: its columns go by name, in any case; one that it lacks is NULL.
        table: ``hive:db.table``.
        overwrite: replace all rows of the table, of the given partition, or else of the partitions that get rows.
        partition: values of partition keys by name, as texts, numbers, dates or booleans; columns give the others.
        metastore: its address, or a dict of settings; by default that of ``hive-site.xml``.
        storage_options: options of the store, by their fsspec names.
        wait: limits the time to wait for the lock of another writer: seconds, ``"10m"`` or a timedelta.

    Raises:
        NotFoundError: the table does not exist.
        UsageProblem: an argument cannot be used, or a column does not exist.
        RefusedError: acidctl cannot write this table as Hive does.
        BadDataError: a row does not fit into the table; the message has the number of its row and partition.
        ConflictError: another writer held its lock for longer than `wait`, or the table was changed.
        UnknownOutcome: the metastore did not say whether the transaction was committed.
    """
    target = _Target.of(table, metastore, storage_options, wait)
    return _inserted(
        target, df, dict(as_columns(partition or {}, "partition")), overwrite=as_flag(overwrite, "overwrite")
    )


def insert_once(
    df: DataFrame,
    table: str,
    once: Once,
    *,
    metastore: Address,
    storage_options: Mapping[str, str] | None,
    wait: Duration,
) -> Written:
    """Insert the rows of a DataFrame unless a load is in the table; see :func:`insert`.

    Raises:
        AlreadyLoaded: it is.
    """
    return _inserted(_Target.of(table, metastore, storage_options, wait), df, {}, once=once)


def _inserted(
    target: _Target, df: DataFrame, values: Mapping[str, str], *, overwrite: bool = False, once: Once | None = None
) -> Written:
    def make(table: HiveTable) -> Write:
        schema, run = arrow_schema(df.schema), partial(write_shares, df)
        return FrameInsert(target.metastore, table, schema, run, values, overwrite=overwrite)

    return target.run("insert", make, 1, once)  # the rows of a DataFrame may be others the next time


def delete(
    df: DataFrame,
    table: str,
    *,
    key: str | Sequence[str] | None = None,
    metastore: Address = None,
    storage_options: Mapping[str, str] | None = None,
    wait: Duration = 600.0,
) -> Written:
    """Delete the rows of a table that have the key of a row in a DataFrame.

    Executors look for the keys, each task in a part of the table. A NULL in a key matches nothing. If another writer
    changed the same rows first, the statement starts again with new values of `df`, up to five times.

    Args:
        key: the columns that identify a row; by default all columns of `df`.

    Raises:
        UsageProblem: a column cannot be a key; other errors as for :func:`insert`.
    """
    target = _Target.of(table, metastore, storage_options, wait)
    if key is not None:
        df = df.select(*(f"`{name.replace('`', '``')}`" for name in as_texts(key, "key")))
    return _changed("delete", target, df.distinct())


def update(
    df: DataFrame,
    table: str,
    *,
    key: str | Sequence[str],
    metastore: Address = None,
    storage_options: Mapping[str, str] | None = None,
    wait: Duration = 600.0,
) -> Written:
    """Give rows of a table the values of the row with the same key in a DataFrame; rows with new keys are left out.

    A column that the DataFrame lacks keeps its value. See :func:`delete` for conflicts.

    Args:
        key: the columns that identify a row.

    Raises:
        BadDataError: two rows have the same key; other errors as for :func:`delete`.
    """
    target = _Target.of(table, metastore, storage_options, wait)
    return _changed("update", target, df, as_texts(key, "key"), inserts=False)


def merge(
    df: DataFrame,
    table: str,
    *,
    key: str | Sequence[str],
    operation_column: str = "",
    order_by: str = "",
    metastore: Address = None,
    storage_options: Mapping[str, str] | None = None,
    wait: Duration = 600.0,
) -> Written:
    """Replace each row of a table that has the key of a row in a DataFrame, and insert the rows with new keys.

    A column that the DataFrame lacks keeps its value in replaced rows. See :func:`delete` for conflicts.

    Args:
        key: the columns that identify a row.
        operation_column: the column of `df` with insert, update or delete, or their first letters.
        order_by: the column that orders the rows of `df`: only the last row of each key counts.

    Raises:
        BadDataError: two rows have the same key, and nothing orders them; other errors as for :func:`delete`.
    """
    target = _Target.of(table, metastore, storage_options, wait)
    return _changed("merge", target, df, as_texts(key, "key"), operation=operation_column, order=order_by)


@dataclass(frozen=True, slots=True)
class _Target:
    """The table that a statement changes."""

    metastore: Metastore
    table: HiveTable
    storage: Mapping[str, str] | None
    wait: float

    @classmethod
    def of(cls, table: str, metastore: Address, storage_options: Mapping[str, str] | None, wait: Duration) -> Self:
        return cls(*open_table(table, metastore), storage_options, as_seconds(wait, "wait"))

    def run(
        self, verb: str, make: Callable[[HiveTable], Write], attempts: int = ATTEMPTS, once: Once | None = None
    ) -> Written:
        """Run a statement, start again while other writers commit first, and log it."""
        written = self._committed(make, attempts, once)
        log_by_spark(verb, self.table, written, self.storage, once)
        return written

    def _committed(self, make: Callable[[HiveTable], Write], attempts: int, once: Once | None) -> Written:
        table = self.table
        for _ in range(attempts - 1):
            with suppress(LostTransaction):
                return make(table).run(wait=self.wait, storage=self.storage)
            table = get_table(self.metastore, table.database, table.name)
        return make(table).run(wait=self.wait, storage=self.storage, once=once)


def _changed(
    verb: str,
    target: _Target,
    df: DataFrame,
    key: Sequence[str] | None = None,
    *,
    operation: str = "",
    order: str = "",
    inserts: bool = True,
) -> Written:
    def make(table: HiveTable) -> Write:
        schema, jobs = arrow_schema(df.schema), merge_jobs(df)
        return FrameMerge(target.metastore, table, schema, jobs, key, operation=operation, order=order, inserts=inserts)

    return target.run(verb, make)
