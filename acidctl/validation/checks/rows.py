"""The check of the rows of some stripes of one file, in a worker process, without a loop over rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.acid.layout import NO_BUCKET, DataFile, Role
from acidctl.acid.names import MINL, NO_STATEMENT, AcidDirectory, Kind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import BadDataError
from acidctl.base.worker_process import Beat
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.read.hostile_streams import NullMapKey
from acidctl.orc.read.reader import OrcFile, open_orc
from acidctl.orc.tail import RecordKey, Tail
from acidctl.rows.foreign.foreign_reader import ForeignReader
from acidctl.rows.foreign.format import Format, open_foreign, read_any_tail
from acidctl.rows.read.bucket_numbers import decode_all, versions_of
from acidctl.rows.read.delete_set import Bools, Keys, Longs, valid_mask
from acidctl.rows.read.events import ID_COLUMNS, Ids
from acidctl.storage.port import FileSystemSpec
from acidctl.validation.checks.files import V24
from acidctl.validation.checks.footers import V21, V30, V31, V39, opened, severity_of_index
from acidctl.validation.checks.row_facts import (
    V12,
    V29,
    Bounds,
    KeyOrder,
    RowFacts,
    SpanBuilder,
    Tally,
    added_up,
    shown_key,
    tally_where,
    whole_events,
)
from acidctl.validation.findings import DEEP, ERROR, WARNING, Rule, Severity, Unchecked

_DELETE = 2
_MOST = 2**63 - 1
_RESERVED = 1 << 28 | 0xF000


@dataclass(frozen=True, slots=True)
class RowTask:
    """The task to check every row of some stripes.

    Attributes:
        path: absolute.
        first, end: the stripes; `end` is excluded.
        is_native: it has the six ACID columns.
        is_old: its footer has no ``hive.acid.version``: written by Hive before 3, or by a merge of files.
        is_compacted: it is in a base or delta that a compaction certainly made.
        stamp: identifies the check: a file that was opened for an earlier check may have changed since.
        weight: bytes of the stripes.
        ids_only: leave out the table's columns, because they crashed the reader before.
    """

    storage: FileSystemSpec
    file: DataFile
    path: str
    length: int | None
    format: Format
    first: int
    end: int
    is_native: bool
    is_old: bool
    is_compacted: bool
    write_ids: ValidWriteIds
    stamp: int = 0
    weight: int = 0
    ids_only: bool = False

    @property
    def stripes(self) -> int:
        """Return the number of stripes it reads."""
        return self.end - self.first

    @property
    def order(self) -> KeyOrder:
        """Return the order that its events must have."""
        return KeyOrder(self.file.role is Role.DELETE, self.is_old)

    def part(self, first: int, end: int, weight: int, *, ids_only: bool = False) -> RowTask:
        """Return the task for other stripes."""
        return replace(self, first=first, end=end, weight=weight, ids_only=ids_only)

    def run(self, beat: Beat) -> RowFacts:
        """Return the facts. Raises NotFoundError, AccessError or StorageError if the file cannot be opened."""
        reader, tail = _opened_file(
            self.storage, self.path, self.length, self.file.size, self.format, self.stamp, is_native=self.is_native
        )
        check = _RowCheck(self, tail)
        for stripe in range(self.first, self.end):
            check.stripe(reader, stripe)
            beat()
        return check.facts()


@lru_cache(maxsize=4)
def _opened_file(
    storage: FileSystemSpec, path: str, length: int | None, size: int, form: Format, _stamp: int, *, is_native: bool
) -> tuple[OrcFile | ForeignReader, Tail]:
    fs = opened(storage)
    if form is Format.ORC:
        orc = open_orc(fs, path, length, has_ids=is_native)
        return orc, orc.tail
    source = ByteSource(fs, path, size if length is None else length)
    tail = read_any_tail(source).tail
    return open_foreign(source, form, tail), tail


V23 = Rule(
    "V23", ERROR, DEEP, "A value of the bucket column has an unknown codec, or reserved bits set.",
    "Hive refuses the row.",
    "Find out what wrote the file; restore it.", "2",
)  # fmt: skip
V28 = Rule(
    "V28", ERROR, DEEP, "The write id of an event does not belong in its directory.",
    "Snapshots hide and show such rows at the wrong time.",
    "Find out whether the directory or the file was renamed or copied.", "4",
)  # fmt: skip
V35 = Rule(
    "V35", ERROR, DEEP, "A delete event has a lower write id than the row that it deletes, or no later statement.",
    "Hive 4 does not apply the first kind, and the readers of Hive 3 disagree on it; those of Hive 4 disagree on the "
    "second. An UPDATE of Hive 3 that waited for a lock can leave the first.",
    "Run `acidctl compact --major`: it keeps the rows as Hive 4 does, or says which are disputed.", "4.2",
)  # fmt: skip
V37 = Rule(
    "V37", WARNING, DEEP, "A compacted directory holds rows of write ids that are open or aborted.",
    "A compaction should have left them out; readers that filter by file show them.",
    "Run `acidctl compact --major` with the same --snapshot.", "8.2",
)  # fmt: skip


class _RowCheck:
    def __init__(self, task: RowTask, tail: Tail) -> None:
        self._task = task
        self._tail = tail
        self._facts = RowFacts()
        self._counts = np.zeros(3, np.int64)
        self._inserts, self._deletes, self._changes = SpanBuilder(), SpanBuilder(), SpanBuilder()
        try:
            self._index: list[RecordKey | None] = (tail.key_index() or []) if task.is_native else []
        except BadDataError:
            self._index = []  # the check of the footer reports it

    def facts(self) -> RowFacts:
        facts = self._facts
        facts.tallies = added_up(facts.tallies)
        inserts, updates, deletes = self._counts.tolist()
        facts.counts = (inserts, updates, deletes)
        facts.inserts, facts.deletes = self._inserts.build(), self._deletes.build()
        facts.changes = self._changes.build()
        return facts

    def stripe(self, reader: OrcFile | ForeignReader, number: int) -> None:
        batch = self._read(reader, number)
        self._facts.rows += self._tail.stripes[number].numberOfRows
        if batch is None or not self._task.is_native:
            return
        ids, there = whole_events(batch)
        if there is not None:
            missing = [name for name in ID_COLUMNS if batch.column(name).null_count]
            text = f"events have no {', '.join(missing)}"
            self.add(V29, text, int(np.count_nonzero(~there)), f"row {int(np.argmin(there))} of stripe {number}")
        if ids is None or not len(ids.keys):
            return
        bounds = Bounds.of(ids)
        self._events(ids, bounds, batch if there is None else batch.filter(pa.array(there)))
        order = self._task.order
        if self._facts.last is not None:
            self._facts.tallies += order.check(self._facts.last, ids.take(slice(1)))
        self._facts.tallies += order.check(ids.take(slice(-1)), ids.take(slice(1, None)))
        # An index array makes copies; a slice would keep the whole stripe in memory.
        self._facts.first = self._facts.first or ids.take(np.array([0]))
        self._facts.last = ids.take(np.array([-1]))
        self._write_ids(ids, bounds)
        if there is None:
            self._tail_of_stripe(ids, bounds, number)

    def add(self, rule: Rule, text: str, count: int, example: str, severity: Severity | None = None) -> None:
        """Count a violation."""
        if count:
            self._facts.tallies.append(Tally(rule, text, count, example, severity))

    def _add_where(self, rule: Rule, text: str, where: Bools, ids: Ids, severity: Severity | None = None) -> None:
        self._facts.tallies += tally_where(rule, text, where, ids, severity)

    def _read(self, reader: OrcFile | ForeignReader, number: int) -> pa.RecordBatch | None:
        task = self._task
        try:
            if not task.ids_only:
                return reader.read_stripe(number)
        except NullMapKey as error:
            self._facts.unchecked.append(Unchecked(task.file.path, error))
        except BadDataError as error:
            why = " ".join(f"{error.why or error.what}".split())[:200]
            self.add(V24, f"a stripe cannot be read ({why})", 1, f"stripe {number}")
        if not task.is_native:
            return None
        try:
            return reader.read_stripe(number, ID_COLUMNS)
        except BadDataError:
            self._facts.is_complete = False
            if task.ids_only:
                self.add(V24, "the ids of a stripe cannot be read", 1, f"stripe {number}")
            return None

    # --- each event ---

    def _events(self, ids: Ids, bounds: Bounds, batch: pa.RecordBatch) -> None:
        task, directory = self._task, self._task.file.directory
        is_delete = task.file.role is Role.DELETE
        is_v1 = task.is_old and not is_delete and not (versions_of(_few(ids.keys.bucket, bounds.bucket)) == 1).any()
        in_base = directory is not None and directory.kind is Kind.BASE
        if is_delete:
            text, allowed = "events are not deletes by their operation", (_DELETE, _DELETE)
            if "row" in batch.schema.names:
                with_row = batch.num_rows - batch.column("row").null_count
                self.add(V12, "delete events have a row", with_row, f"in {task.file.path}")
        elif is_v1 or in_base:  # every Hive reads an update in a base as the row that it is
            text, allowed = "events have an impossible operation", (0, 1 if in_base else 2)
        else:
            text, allowed = "events are not inserts by their operation", (0, 0)
        if not _inside(bounds.operation, allowed):
            self._add_where(V12, text, _outside(ids.operation, allowed), ids)
        if not is_delete and "row" in batch.schema.names and batch.column("row").null_count:
            self._without_row(batch)
        self._count(ids.operation, bounds.operation)
        number = self._task.file.bucket
        bad, other = _bucket_faults(_few(ids.keys.bucket, bounds.bucket), number)
        if bad.any() or other.any():
            bad, other = _bucket_faults(ids.keys.bucket, number)
            self._add_where(V23, "events have an impossible bucket", bad, ids)
            self._add_where(V21, f"events are of another bucket than the file's, {number}", other, ids)
        if bounds.row_id[0] < 0:
            self._add_where(V29, "row ids are negative", ids.keys.row_id < 0, ids)
        self._gather(ids, is_v1=is_v1)

    def _without_row(self, batch: pa.RecordBatch) -> None:
        """Report events without a row, which only deletes may be (section 4)."""
        deletes = pc.equal(batch.column("operation"), _DELETE).fill_null(True)
        bare = pc.and_not(batch.column("row").is_null(), deletes).to_numpy(zero_copy_only=False)
        text = "inserted rows are NULL as a whole, not in their columns"
        self.add(V39, text, int(np.count_nonzero(bare)), f"row {int(np.argmax(bare))} of its stripe")

    def _count(self, operation: Longs, bounds: tuple[int, int]) -> None:
        if bounds[0] == bounds[1]:
            self._counts[min(max(bounds[0], 0), 2)] += len(operation)
        else:
            self._counts += np.bincount(np.clip(operation, 0, 2), minlength=3)

    def _gather(self, ids: Ids, *, is_v1: bool) -> None:
        """Keep the keys for the checks over all files."""
        task, directory = self._task, self._task.file.directory
        if task.file.role is Role.DELETE:
            keys = ids.keys
            written = directory is not None and directory.statement_id != NO_STATEMENT
            if not written or task.is_compacted:
                # If one write id inserts and deletes a row, a minor compaction keeps only the delete (section 8.2).
                keys = keys.take(ids.current != keys.original)
            self._deletes.add(keys)
        elif is_v1:
            changed = ids.operation != 0
            if directory is not None and directory.kind is Kind.BASE:
                self._add_rows(ids.keys)
            else:
                self._add_rows(ids.keys.take(~changed))
                self._changes.add(ids.keys.take(changed))
        else:
            self._add_rows(ids.keys)

    def _add_rows(self, keys: Keys) -> None:
        self._inserts.add(keys)
        self._facts.keys += len(keys)

    def _write_ids(self, ids: Ids, bounds: Bounds) -> None:
        task, directory = self._task, self._task.file.directory
        current, original = ids.current, ids.keys.original
        if directory is not None and not _inside(bounds.current, _range(directory)):
            self._add_where(V28, _range_text(directory), _outside(current, _range(directory)), ids)
        is_delete = task.file.role is Role.DELETE
        if bounds.current != bounds.original or bounds.current[0] != bounds.current[1]:
            rule, text = (V35, "delete events") if is_delete else (V28, "events")
            self._add_where(rule, f"{text} are older than their rows", current < original, ids)
            if not is_delete:
                in_base = directory is not None and directory.kind is Kind.BASE
                text = "inserted rows have two different write ids"
                newer = (current > original) & (ids.operation == 0)
                self._add_where(V28, text, newer, ids, Severity.WARNING if in_base else None)
        if is_delete and directory is not None and directory.min_write_id == directory.max_write_id:
            same_id: Bools = current == original
            if same_id.any():
                same_id &= decode_all(ids.keys.bucket).statement >= max(directory.statement_id, 0)
                self._add_where(V35, "delete events are of no later statement than their rows", same_id, ids)
        if task.is_compacted:
            valid = valid_mask(current, task.write_ids.high_watermark, task.write_ids.exceptions)
            if valid is not None:
                self._add_where(V37, "events are of write ids that are not committed", ~valid, ids)

    def _tail_of_stripe(self, ids: Ids, bounds: Bounds, number: int) -> None:
        """Check the key index and the statistics against the rows."""
        severity = Severity.WARNING if self._task.is_old else None
        of_index = severity_of_index(self._task.file.role) or severity
        keys = ids.keys
        last = int(keys.original[-1]), int(keys.bucket[-1]), int(keys.row_id[-1])
        entry = self._index[number] if number < len(self._index) else None
        if entry is not None and entry != last:
            text = "entries of the key index are not the last keys of their stripes"
            example = f"stripe {number} ends with {shown_key(last)}, the index says {shown_key(entry)}"
            self.add(V30, text, 1, example, of_index)
        statistics = self._tail.stripe_statistics(number)
        if not statistics or not self._tail.stride:
            return
        columns = (bounds.operation, bounds.original, bounds.bucket, bounds.row_id, bounds.current)
        for column, (name, there) in enumerate(zip(ID_COLUMNS, columns, strict=True), 1):
            if column >= len(statistics) or not statistics[column].HasField("intStatistics"):
                continue
            stored = statistics[column].intStatistics
            if stored.HasField("minimum") and stored.HasField("maximum") and (stored.minimum, stored.maximum) != there:
                text = f"stripes have other values of {name} than their statistics say"
                example = f"stripe {number} holds {there[0]} to {there[1]}, not {stored.minimum} to {stored.maximum}"
                self.add(V31, text, 1, example, severity)


def _inside(bounds: tuple[int, int], allowed: tuple[int, int]) -> bool:
    return allowed[0] <= bounds[0] and bounds[1] <= allowed[1]


def _outside(values: Longs, allowed: tuple[int, int]) -> Bools:
    outside: Bools = (values < allowed[0]) | (values > allowed[1])
    return outside


def _few(values: Longs, bounds: tuple[int, int]) -> Longs:
    """Return one value if all are equal."""
    return values[:1] if bounds[0] == bounds[1] else values


def _bucket_faults(bucket: Longs, number: int) -> tuple[Bools, Bools]:
    """Return masks of the values that no codec has, and of those with another bucket than `number`."""
    parts = decode_all(bucket)
    bad: Bools = (parts.version > 1) | ((parts.version == 1) & ((bucket & _RESERVED) != 0))
    if number == NO_BUCKET:
        return bad, np.zeros_like(bad)
    return bad, ~bad & (parts.bucket != number)


def _range(directory: AcidDirectory) -> tuple[int, int]:
    """Return the write ids that belong in the directory."""
    if directory.kind is not Kind.BASE:
        return directory.min_write_id, directory.max_write_id
    return (0, 0) if directory.max_write_id == MINL else (-_MOST, directory.max_write_id)


def _range_text(directory: AcidDirectory) -> str:
    low, high = directory.min_write_id, directory.max_write_id
    if directory.kind is Kind.BASE:
        return f"events are of later write ids than {max(high, 0)}"
    return f"events are of other write ids than {low}" if low == high else f"events are outside of {low} to {high}"
