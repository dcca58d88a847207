"""A table of a metastore whose rows Python changes: ``acidctl.Hive().table("sales.orders")``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from acidctl.base.arguments import as_columns
from acidctl.base.deadline import Duration, as_seconds
from acidctl.base.errors import UsageProblem
from acidctl.verbs.events import Events
from acidctl.verbs.selection import Selection
from acidctl.verbs.writing import statements
from acidctl.verbs.writing.carry_out import RowsWritten
from acidctl.verbs.writing.options import DeleteOptions, InsertOptions, MergeOptions, TruncateOptions, UpdateOptions
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
        ConflictError: another writer changed the same rows, or held its lock for longer than `wait`.
        UnknownOutcome: the metastore did not say whether the transaction was committed.
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection

    def __repr__(self) -> str:
        return f"<acidctl table {self._selection.shown}>"

    def insert(
        self,
        rows: Any,
        *,
        partition: Mapping[str, object] | None = None,
        overwrite: bool = False,
        wait: Duration = 600.0,
        dry_run: bool = False,
    ) -> RowsWritten:
        """Insert rows.

        Args:
            rows: an Arrow table, or anything else with ``__arrow_c_stream__``; columns go by name, in any case.
            partition: values of partition keys by name, as texts, numbers, dates or booleans; columns of the rows give
                the others.
            overwrite: replace all rows of the table, of the given partition, or else of the partitions that get rows.
        """
        values = as_columns(partition or {}, "partition")
        seconds = as_seconds(wait, "wait")
        options = InsertOptions(partition=values, overwrite=overwrite, wait=seconds, dry_run=dry_run)
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


def _only(outcomes: Iterator[RowsWritten]) -> RowsWritten:
    (outcome,) = outcomes
    return outcome
