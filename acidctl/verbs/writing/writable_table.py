"""A table of a metastore whose rows Python changes: ``acidctl.Hive().table("sales.orders")``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from acidctl.base.arguments import as_columns, as_path
from acidctl.base.deadline import Duration, as_seconds
from acidctl.base.errors import UsageProblem
from acidctl.location.snapshot_resolver import SnapshotResolver, open_warehouse
from acidctl.verbs.events import Events
from acidctl.verbs.selection import Selection
from acidctl.verbs.writing import statements
from acidctl.verbs.writing.create import TableCreated
from acidctl.verbs.writing.create import create as create_table
from acidctl.verbs.writing.options import (
    CreateOptions,
    DeleteOptions,
    InsertOptions,
    MergeOptions,
    TruncateOptions,
    UpdateOptions,
)
from acidctl.verbs.writing.statements import RowsWritten
from acidctl.writing.definition import columns_like
from acidctl.writing.rows.sources import arrow_source


class WritableTable:
    """A table of a metastore; :meth:`acidctl.Hive.table` makes it.

    Every method runs one Hive transaction and returns the amounts that it wrote. `wait` limits the time to wait for the
    lock of another writer: seconds, ``"10m"`` or a timedelta. With `dry_run` nothing is written, and the result is the
    plan. All methods raise:

    Raises:
        NotFoundError: the table does not exist.
        UsageProblem: an argument cannot be used, or a column does not exist.
        RefusedError: acidctl cannot write this table as Hive does.
        BadDataError: a row does not fit into the table; the message has its number.
        StatementConflict: another writer changed the same rows, or held its lock for longer than `wait`.
        ConflictError: the table was changed meanwhile.
        UnknownOutcome: the metastore did not say whether the transaction was committed.
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection

    def __repr__(self) -> str:
        return f"<acidctl table {self._selection.shown}>"

    def create(
        self,
        schema: Any,
        *,
        partitioned_by: str = "",
        clustered_by: str | Sequence[str] = (),
        buckets: int = 0,
        type: str = "full",  # noqa: A002 - as the option of the command line
        stored_as: str = "orc",
        location: str = "",
        properties: Mapping[str, str] | None = None,
        comment: str = "",
        if_not_exists: bool = False,
        dry_run: bool = False,
    ) -> TableCreated:
        """Create the table, as Hive's own CREATE TABLE does.

        Args:
            schema: columns as in CREATE TABLE, ``"id bigint, name string"``; or an Arrow schema, a table, or anything
                else with ``__arrow_c_schema__``, from which partition keys are left out.
            partitioned_by: partition keys with their types, ``"day date"``.
            clustered_by, buckets: the columns whose hash chooses the bucket of a row, and the number of buckets.
            type: ``full``, or ``insert_only`` for rows that are only added or replaced.
            stored_as: ``orc``; also ``parquet`` or ``text`` for insert_only.
            location: the URL of an empty directory; by default the metastore chooses it.
            if_not_exists: do nothing if a table has this name already.
        """
        options = CreateOptions(
            schema=schema if isinstance(schema, str) else None,
            partitioned_by=partitioned_by,
            clustered_by=(clustered_by,) if isinstance(clustered_by, str) else tuple(clustered_by),
            buckets=buckets,
            type=type,
            stored_as=stored_as,
            directory=location,
            property=tuple((properties or {}).items()),
            comment=comment,
            if_not_exists=if_not_exists,
            dry_run=dry_run,
        )
        columns = None if isinstance(schema, str) else columns_like(_arrow_schema(schema))
        (created,) = create_table(self._selection, options, Events(), columns)
        return created

    def insert(
        self,
        rows: Any,
        *,
        partition: Mapping[str, object] | None = None,
        overwrite: bool = False,
        once: str | None = None,
        wait: Duration = 600.0,
        dry_run: bool = False,
    ) -> RowsWritten:
        """Insert rows.

        Args:
            rows: an Arrow table, or anything else with ``__arrow_c_stream__``; columns go by name, in any case.
            partition: values of partition keys by name, as texts, numbers, dates or booleans; columns of the rows give
                the others.
            overwrite: replace all rows of the table, of the given partition, or else of the partitions that get rows.
            once: the name of this load. If a load of this name is in the table, nothing is written, and the result is
                `nothing-to-do`.
        """
        values = as_columns(partition or {}, "partition")
        seconds = as_seconds(wait, "wait")
        options = InsertOptions(partition=values, overwrite=overwrite, once=once, wait=seconds, dry_run=dry_run)
        return _only(statements.insert(self._selection, options, Events(), arrow_source(rows)))

    def update(
        self,
        set: str,  # noqa: A002 - SQL's own word
        where: str,
        *,
        wait: Duration = 600.0,
        dry_run: bool = False,
    ) -> RowsWritten:
        """Give the rows that meet a condition new values.

        Args:
            set: ``"value = 'CC', n = n + 1"``, of literals, the row's old values, ``+``, ``-``, ``*`` and ``||``.
            where: a condition in SQL; ``"true"`` for all rows.
        """
        options = UpdateOptions(set=set, where=where, wait=as_seconds(wait, "wait"), dry_run=dry_run)
        return _only(statements.update(self._selection, options, Events()))

    def delete(
        self, where: str | None = None, *, keys: Any = None, wait: Duration = 600.0, dry_run: bool = False
    ) -> RowsWritten:
        """Delete the rows that meet a condition, or those that have one of some keys.

        Args:
            where: a condition in SQL; ``"true"`` for all rows.
            keys: an Arrow table as for :meth:`insert`, of the columns that identify a row.
        """
        if where is not None and keys is not None:
            raise UsageProblem("where and keys both select rows", "", "give one of them")
        options = DeleteOptions(where=where, wait=as_seconds(wait, "wait"), dry_run=dry_run)
        source = None if keys is None else arrow_source(keys)
        return _only(statements.delete(self._selection, options, Events(), source))

    def truncate(
        self, *, partition: Mapping[str, object] | None = None, wait: Duration = 600.0, dry_run: bool = False
    ) -> RowsWritten:
        """Delete all rows, or those of the partitions with these values, by a base without rows."""
        values = as_columns(partition or {}, "partition")
        options = TruncateOptions(partition=values, wait=as_seconds(wait, "wait"), dry_run=dry_run)
        return _only(statements.truncate(self._selection, options, Events()))

    def merge(
        self,
        rows: Any,
        key: str | Sequence[str],
        *,
        operation_column: str = "",
        order_by: str = "",
        wait: Duration = 600.0,
        dry_run: bool = False,
    ) -> RowsWritten:
        """Replace each row of the table that has the key of a row in `rows`, and insert the rows with new keys.

        Args:
            rows: as for :meth:`insert`; a column that they lack keeps its value in replaced rows.
            key: the columns that identify a row.
            operation_column: the column of `rows` with insert, update or delete, or their first letters.
            order_by: the column that orders `rows`: only the last row of each key counts.
        """
        options = MergeOptions(
            key=(key,) if isinstance(key, str) else tuple(key),
            operation_column=operation_column,
            order_by=order_by,
            wait=as_seconds(wait, "wait"),
            dry_run=dry_run,
        )
        return _only(statements.merge(self._selection, options, Events(), arrow_source(rows)))


def create(
    name: str,
    schema: Any,
    *,
    metastore: str | Mapping[str, str] | None = None,
    storage: Mapping[str, str] | None = None,
    **definition: Any,
) -> WritableTable:
    """Create a table, ``hive:db.table``, and return it; see :meth:`WritableTable.create` for the other arguments.

    Args:
        metastore: as for :class:`acidctl.Hive`.
        storage: options of the stores.
    """
    resolver = SnapshotResolver(warehouse=open_warehouse(metastore))
    table = WritableTable(Selection((as_path(name),), dict(storage or {}), resolver))
    table.create(schema, **definition)
    return table


def _arrow_schema(schema: Any) -> pa.Schema:
    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(own := getattr(schema, "schema", None), pa.Schema):
        return own
    if not hasattr(schema, "__arrow_c_schema__"):
        why = f"its type is {type(schema).__name__}"
        hint = "give text as in CREATE TABLE, or an Arrow schema"
        raise UsageProblem("this schema cannot be read", why, hint)
    return pa.schema(schema)


def _only(outcomes: Iterator[RowsWritten]) -> RowsWritten:
    (outcome,) = outcomes
    return outcome
