"""INSERT, UPDATE, DELETE, TRUNCATE and MERGE as verbs."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from acidctl.base.errors import UsageProblem
from acidctl.metastore.client import Metastore
from acidctl.metastore.tables import HiveTable
from acidctl.orc.types import arrow_type, parse_type
from acidctl.verbs.events import Events
from acidctl.verbs.selection import Selection
from acidctl.verbs.writing.carry_out import RowsWritten, carry_out
from acidctl.verbs.writing.options import (
    DeleteOptions,
    InsertOptions,
    MergeOptions,
    SelectingOptions,
    TruncateOptions,
    UpdateOptions,
)
from acidctl.wording import human_count
from acidctl.writing.change import Change
from acidctl.writing.insert import Insert
from acidctl.writing.merge import Merge
from acidctl.writing.once import Once
from acidctl.writing.rows.held_rows import held_rows
from acidctl.writing.rows.key_filter import KeyFilter
from acidctl.writing.rows.sources import RowSource
from acidctl.writing.truncate import Truncate


def insert(selection: Selection, options: InsertOptions, events: Events, rows: RowSource) -> Iterator[RowsWritten]:
    """Yield the outcome of an INSERT; see :func:`acidctl.verbs.writing.carry_out.carry_out`."""

    def make(metastore: Metastore, table: HiveTable) -> Insert:
        columns = (*table.columns, *table.partition_keys)
        parts = rows({column.name: arrow_type(parse_type(column.type)) for column in columns})
        return Insert(metastore, table, parts, dict(options.partition), overwrite=options.overwrite)

    once = None if options.once is None else Once(options.once)
    return carry_out("insert", selection, options, events, make, once=once)


def update(selection: Selection, options: UpdateOptions, events: Events) -> Iterator[RowsWritten]:
    """Yield the outcome of an UPDATE; see :func:`acidctl.verbs.writing.carry_out.carry_out`."""

    def make(metastore: Metastore, table: HiveTable) -> Change:
        return Change(metastore, table, _condition(options.where), options.set)

    return carry_out("update", selection, options, events, make, repeats=True)


def delete(
    selection: Selection, options: DeleteOptions, events: Events, keys: RowSource | pa.Table | None = None
) -> Iterator[RowsWritten]:
    """Yield the outcome of a DELETE; see :func:`acidctl.verbs.writing.carry_out.carry_out`.

    Args:
        keys: the keys of the rows, all held in memory, or as :func:`held_keys` returns them; without them the condition
            in `options` selects the rows.

    Raises:
        UsageProblem: neither keys nor a condition is given.
    """
    if keys is None and options.where is None:
        raise UsageProblem("no rows are selected", "", "give --where or --keys; --where true deletes all rows")
    of_user = keys if isinstance(keys, pa.Table) else None

    def make(metastore: Metastore, table: HiveTable) -> Change:
        nonlocal of_user
        if keys is None:
            return Change(metastore, table, _condition(options.where or ""))
        if of_user is None:
            of_user = held_keys(keys, table, options, events)
        return Change(metastore, table, KeyFilter.of(table, of_user))

    return carry_out("delete", selection, options, events, make, repeats=True)


def held_keys(keys: RowSource, table: HiveTable, options: SelectingOptions, events: Events) -> pa.Table:
    """Return all keys of a source in the types of the table, and tell of those with a NULL, which select nothing.

    Raises:
        UsageProblem: the keys have no column, or one that the table lacks.
        BadDataError: a value does not fit its column exactly.
    """
    held = held_rows(keys, table, options.key)
    if nulls := KeyFilter.of(table, held).nulls:
        verb = "have" if nulls > 1 else "has"
        events.note(f"{human_count(nulls, 'key')} {verb} a NULL and {'select' if nulls > 1 else 'selects'} no row")
    return held


def truncate(selection: Selection, options: TruncateOptions, events: Events) -> Iterator[RowsWritten]:
    """Yield the outcome of a TRUNCATE; see :func:`acidctl.verbs.writing.carry_out.carry_out`."""

    def make(metastore: Metastore, table: HiveTable) -> Truncate:
        return Truncate(metastore, table, dict(options.partition) or None)

    return carry_out("truncate", selection, options, events, make, repeats=True)


def merge(selection: Selection, options: MergeOptions, events: Events, rows: RowSource) -> Iterator[RowsWritten]:
    """Yield the outcome of a MERGE; see :func:`acidctl.verbs.writing.carry_out.carry_out`.

    All rows of the source are held in memory.
    """
    source: pa.Table | None = None
    operation, order = options.operation_column or "", options.order_by or ""

    def make(metastore: Metastore, table: HiveTable) -> Merge:
        nonlocal source
        if source is None:
            source = held_rows(rows, table, extra=filter(None, (operation, order)))
        return Merge(metastore, table, source, options.key, operation=operation, order=order)

    return carry_out("merge", selection, options, events, make, repeats=True)


def _condition(where: str) -> str | None:
    """Return the condition, or None if it selects all rows."""
    return None if where.strip().lower() == "true" else where
