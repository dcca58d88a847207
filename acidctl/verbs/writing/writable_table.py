"""A table of a metastore whose rows Python changes: ``acidctl.Hive().table("sales.orders")``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from acidctl.base.arguments import as_path
from acidctl.base.errors import UsageProblem
from acidctl.location.snapshot_resolver import SnapshotResolver, open_warehouse
from acidctl.verbs.events import Events
from acidctl.verbs.selection import Selection
from acidctl.verbs.writing import statements
from acidctl.verbs.writing.carry_out import RowsWritten
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
        self, schema: Any, *, location: str = "", properties: Mapping[str, str] | None = None, **options: Any
    ) -> TableCreated:
        """Create the table, as Hive's own CREATE TABLE does.

        Args:
            schema: columns as in CREATE TABLE, ``"id bigint, name string"``; or an Arrow schema, a table, or anything
                else with ``__arrow_c_schema__``, from which partition keys are left out.
            location: the URL of an empty directory; by default the metastore chooses it.
            options: further ones of :class:`CreateOptions`: `partitioned_by`, ``"day date"``, `clustered_by`,
                `buckets`, `type`, `stored_as`, `comment`, `if_not_exists`, `dry_run`.
        """
        is_text = isinstance(schema, str)
        options |= {"schema": schema if is_text else None, "directory": location, "property": properties or {}}
        columns = None if is_text else columns_like(_arrow_schema(schema))
        (created,) = create_table(self._selection, CreateOptions(**options), Events(), columns)
        return created

    def insert(self, rows: Any, **options: Any) -> RowsWritten:
        """Insert rows.

        Args:
            rows: an Arrow table, or anything else with ``__arrow_c_stream__``; columns go by name, in any case.
            options: of :class:`InsertOptions`: `partition`, the values of partition keys by name, as texts, numbers,
                dates or booleans (columns of the rows give the others); `overwrite`; `once`, the name of this load:
                if a load of this name is in the table, the result is `nothing-to-do`; `wait`, `dry_run`.
        """
        return _only(statements.insert(self._selection, InsertOptions(**options), Events(), arrow_source(rows)))

    def update(self, set: str, where: str, **options: Any) -> RowsWritten:  # noqa: A002 - SQL's own word
        """Give the rows that meet a condition new values.

        Args:
            set: ``"value = 'CC', n = n + 1"``, of literals, the row's old values, ``+``, ``-``, ``*`` and ``||``.
            where: a condition in SQL; ``"true"`` for all rows.
            options: `wait` and `dry_run`.
        """
        return _only(statements.update(self._selection, UpdateOptions(set=set, where=where, **options), Events()))

    def delete(self, where: str | None = None, *, keys: Any = None, **options: Any) -> RowsWritten:
        """Delete the rows that meet a condition, or those that have one of some keys.

        Args:
            where: a condition in SQL; ``"true"`` for all rows.
            keys: an Arrow table as for :meth:`insert`, of the columns that identify a row.
            options: `wait` and `dry_run`.
        """
        if where is not None and keys is not None:
            raise UsageProblem("where and keys both select rows", "", "give one of them")
        source = None if keys is None else arrow_source(keys)
        return _only(statements.delete(self._selection, DeleteOptions(where=where, **options), Events(), source))

    def truncate(self, **options: Any) -> RowsWritten:
        """Delete all rows, or those of the partitions with the values of `partition`, by a base without rows.

        Args:
            options: of :class:`TruncateOptions`: `partition`, `wait`, `dry_run`.
        """
        return _only(statements.truncate(self._selection, TruncateOptions(**options), Events()))

    def merge(self, rows: Any, key: str | Sequence[str], **options: Any) -> RowsWritten:
        """Replace each row of the table that has the key of a row in `rows`, and insert the rows with new keys.

        Args:
            rows: as for :meth:`insert`; a column that they lack keeps its value in replaced rows.
            key: the columns that identify a row.
            options: of :class:`MergeOptions`: `operation_column`, the column of `rows` with insert, update or delete,
                or their first letters; `order_by`, the column that orders `rows`, of which only the last row of each
                key counts; `wait`, `dry_run`.
        """
        chosen = MergeOptions(**{**options, "key": key})
        return _only(statements.merge(self._selection, chosen, Events(), arrow_source(rows)))


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
