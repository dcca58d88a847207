"""INSERT, UPDATE, DELETE, TRUNCATE and MERGE as verbs: plan, question, commit, and another try after a conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from acidctl.base.errors import StatementConflict, UsageProblem
from acidctl.base.printable import printable
from acidctl.location.arguments import HIVE, HiveName, is_hive_name
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import LostTransaction
from acidctl.metastore.interface import Operation
from acidctl.metastore.tables import HiveTable, get_table
from acidctl.orc.types import arrow_type, parse_type
from acidctl.outcome import Outcome, Remark, Result
from acidctl.verbs.events import Events, Question
from acidctl.verbs.selection import Selection
from acidctl.verbs.writing.options import (
    DeleteOptions,
    InsertOptions,
    MergeOptions,
    SelectingOptions,
    TruncateOptions,
    UpdateOptions,
    WriteOptions,
)
from acidctl.wording import human_bytes, human_count
from acidctl.writing.change import Change
from acidctl.writing.insert import Insert
from acidctl.writing.merge import Merge
from acidctl.writing.once import AlreadyLoaded, Once, loaded_value
from acidctl.writing.refusals import require_writable
from acidctl.writing.rows.held_rows import held_rows
from acidctl.writing.rows.key_filter import KeyFilter
from acidctl.writing.rows.sources import RowSource
from acidctl.writing.transaction import ATTEMPTS
from acidctl.writing.truncate import Truncate
from acidctl.writing.write import Write, Written, log_written

MakeStatement = Callable[[Metastore, HiveTable], Write]


@dataclass(frozen=True, kw_only=True)
class RowsWritten(Outcome):
    """The amounts that a statement wrote, or would write.

    Attributes:
        verb: ``insert``, ``update``, ``delete``, ``merge``...
        once: why nothing was written, if the load is in the table already.
    """

    verb: str
    written: Written
    once: str = ""

    @property
    def heading(self) -> str:
        return f"to {self.verb}" if self.result is Result.PLANNED else super().heading

    def line(self) -> str:
        if self.result is Result.NOTHING_TO_DO:
            return f"{self.location}: {self.once or f'no rows to {self.verb}'}"
        written = self.written
        is_planned = self.result is Result.PLANNED
        lock = f"write id {written.write_id}, lock {written.lock}"
        amount = amount_of(written, is_planned=is_planned)
        return f"{self.location}: {self.verb}{' (planned)' * is_planned}: {amount}; {lock}"

    def remarks(self) -> Iterator[Remark]:
        if self.result is not Result.NOTHING_TO_DO:
            yield Remark("row filters and column masks of Ranger policies were not applied")

    def amounts(self) -> Mapping[str, int]:
        written = self.written
        return {"inserted": written.inserted, "updated": written.updated, "deleted": written.deleted}

    def bytes_by_use(self) -> Mapping[str, int]:
        return {"written": self.written.bytes}

    def facts(self) -> Mapping[str, Any]:
        written = self.written
        return {
            "verb": self.verb,
            "writeId": written.write_id,
            "transaction": written.txn or None,
            "lock": written.lock,
            "inserted": written.inserted,
            "updated": written.updated,
            "deleted": written.deleted,
            "replaces": written.replaces,
            "files": written.files,
            "bytes": written.bytes,
            "partitions": list(written.partitions),
            "loadedBefore": bool(self.once),
        }


def amount_of(written: Written, *, is_planned: bool = False) -> str:
    """Return rows, files, bytes and partitions in words."""
    done = ("to insert", "to update", "to delete") if is_planned else ("inserted", "updated", "deleted")
    counts = zip((written.inserted, written.updated, written.deleted), done, strict=True)
    rows = ", ".join(f"{human_count(count, 'row')} {word}" for count, word in counts if count)
    partitions = human_count(len(written.partitions), "partition") if written.partitions else ""
    files = f"{human_count(written.files, 'file')}, {human_bytes(written.bytes)}"
    if written.replaces and not rows:
        return f"all rows of {partitions or 'the table'} {done[-1]} ({files})"
    there = "these partitions" if partitions else "the table"
    replaced = f", in place of all rows of {there}" if written.replaces else ""
    return f"{rows} ({', '.join(filter(None, (files, partitions)))}){replaced}"


def carry_out(
    verb: str,
    selection: Selection,
    options: WriteOptions,
    events: Events,
    make: MakeStatement,
    *,
    repeats: bool = False,
    once: Once | None = None,
    stream: str = "",
) -> Iterator[RowsWritten]:
    """Yield the plan of a statement if it is a dry run or has to be confirmed, then the rows that it has written.

    Args:
        make: makes the statement from a table.
        repeats: the statement can start again after a conflict, which it does up to five times in all.
        once: the load that the statement makes, if that must not be made twice.
        stream: the id of the stream that the statement is a part of: its line in the log counts it.

    Raises:
        UsageProblem: the location is not one table of a metastore.
        NotFoundError: the table does not exist.
        RefusedError: the table cannot be written to, or it was not confirmed.
        StatementConflict: another writer changed the same rows, or holds a lock.
        ConflictError: the table was changed meanwhile.
        UnknownOutcome: the metastore did not say whether the transaction was committed.
    """
    metastore, table = table_of(selection)
    shown = f"{HIVE}{table.full_name}"
    if once:
        require_writable(metastore, table, Operation.INSERT)
        value = loaded_value(metastore, table, once.name, selection.storage, settle=not options.dry_run)
        if value >= once.value:
            yield _loaded(shown, verb, once)
            return
    if options.dry_run or events.shows_plans:  # rehearsed, so that no lock is held while the user decides
        planned = _outcome(shown, verb, make(metastore, table).rehearse(selection.storage), Result.PLANNED)
        yield planned
        if options.dry_run or planned.result is not Result.PLANNED:
            return
        what = f"{shown}: {amount_of(planned.written, is_planned=True)}"
        events.confirm(Question(what, f"Change {what}?", "nothing was changed", (shown,)))
    for attempt in range(1, ATTEMPTS + 1):
        try:
            written = make(metastore, table).run(wait=options.wait, storage=selection.storage, once=once)
        except AlreadyLoaded:  # by another process meanwhile
            assert once
            yield _loaded(shown, verb, once)
            return
        except LostTransaction as error:
            if not repeats or attempt == ATTEMPTS:
                raise StatementConflict(error.what, error.why, error.hint) from error
            events.note(f"another writer committed first ({error.what}): starting again")
            table = get_table(metastore, table.database, table.name)
        else:
            log_written("stream" if stream else verb, table, written, selection.storage, events.warn, stream=stream)
            yield _outcome(shown, verb, written, Result.WRITTEN)
            return


def _loaded(shown: str, verb: str, once: Once) -> RowsWritten:
    text = f"{printable(once.name)!r} is loaded already: nothing was written"
    idle = Written(0, 0, "", 0, 0, 0, 0, 0)
    return RowsWritten(location=shown, result=Result.NOTHING_TO_DO, verb=verb, written=idle, once=text)


def _outcome(shown: str, verb: str, written: Written, result: Result) -> RowsWritten:
    idle = not written.files
    return RowsWritten(location=shown, result=Result.NOTHING_TO_DO if idle else result, verb=verb, written=written)


def table_of(selection: Selection) -> tuple[Metastore, HiveTable]:
    """Return the metastore and the table to write to, as it is now.

    Raises:
        UsageProblem: the location is not one table of a metastore.
        NotFoundError: the table does not exist.
    """
    name, place = require_table(selection), selection.places[0]
    metastore = selection.resolver.require_warehouse(place).metastore
    parsed = HiveName.parse(name)
    return metastore, get_table(metastore, parsed.database, parsed.table)


def require_table(selection: Selection) -> str:
    """Return the name of the table to write to, ``hive:db.table``.

    Raises:
        UsageProblem: the location is not one table of a metastore.
    """
    place = selection.places[0]
    if not is_hive_name(place):
        raise UsageProblem(
            f"cannot write rows to {place}",
            "rows are written under a transaction of the table's metastore",
            f"name the table: {HIVE}{place}" if place.count(".") == 1 and "/" not in place else f"write {HIVE}db.table",
        )
    name = HiveName.parse(place)
    if name.is_pattern or name.partition:
        raise UsageProblem(
            f"{place} is not one table", "", "name the table only, and give the partition by --partition"
        )
    return f"{HIVE}{name.database}.{name.table}"


def insert(selection: Selection, options: InsertOptions, events: Events, rows: RowSource) -> Iterator[RowsWritten]:
    """Yield the outcome of an INSERT; see :func:`carry_out`."""

    def make(metastore: Metastore, table: HiveTable) -> Insert:
        columns = (*table.columns, *table.partition_keys)
        parts = rows({column.name: arrow_type(parse_type(column.type)) for column in columns})
        return Insert(metastore, table, parts, dict(options.partition), overwrite=options.overwrite)

    once = None if options.once is None else Once(options.once)
    return carry_out("insert", selection, options, events, make, once=once)


def update(selection: Selection, options: UpdateOptions, events: Events) -> Iterator[RowsWritten]:
    """Yield the outcome of an UPDATE; see :func:`carry_out`."""

    def make(metastore: Metastore, table: HiveTable) -> Change:
        return Change(metastore, table, _condition(options.where), options.set)

    return carry_out("update", selection, options, events, make, repeats=True)


def delete(
    selection: Selection, options: DeleteOptions, events: Events, keys: RowSource | pa.Table | None = None
) -> Iterator[RowsWritten]:
    """Yield the outcome of a DELETE; see :func:`carry_out`.

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
    """Yield the outcome of a TRUNCATE; see :func:`carry_out`."""

    def make(metastore: Metastore, table: HiveTable) -> Truncate:
        return Truncate(metastore, table, dict(options.partition) or None)

    return carry_out("truncate", selection, options, events, make, repeats=True)


def merge(selection: Selection, options: MergeOptions, events: Events, rows: RowSource) -> Iterator[RowsWritten]:
    """Yield the outcome of a MERGE; see :func:`carry_out`.

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
