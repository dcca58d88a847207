"""What the rows of some stripes of one file show. Runs in a worker process; no loop over rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from acidctl.acid import bucket as codec
from acidctl.acid.layout import NO_BUCKET, DataFile, Role
from acidctl.acid.names import MINL, NO_STATEMENT, AcidDirectory, Kind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.errors import BadDataError
from acidctl.orc.map_keys import NullMapKey
from acidctl.orc.reader import OrcFile, open_orc
from acidctl.orc.source import ByteSource
from acidctl.orc.tail import RecordKey, Tail
from acidctl.rows.deletes import Bools, Longs, valid_mask
from acidctl.rows.events import ID_COLUMNS
from acidctl.rows.foreign import ForeignReader, Format, open_foreign, read_any_tail
from acidctl.storage.port import FileSystemSpec
from acidctl.validation.by_footers import opened
from acidctl.validation.events import Events, compare, shown_key, whole_events
from acidctl.validation.findings import Severity, Unchecked
from acidctl.validation.isolate import Beat
from acidctl.validation.row_facts import RowFacts, Tally
from acidctl.validation.spans import SpanBuilder

_DELETE = 2
_RESERVED = 1 << 28 | 0xF000


@dataclass(frozen=True, slots=True)
class RowTask:
    """Look at every row of some stripes.

    Attributes:
        path: absolute.
        first, end: the stripes, the end not among them.
        is_native: it has the six columns.
        is_old: its footer has no ``hive.acid.version``: written by Hive before 3, or by a merge of files.
        is_compacted: it lies in a base or delta that a compaction certainly made.
        ids_only: leave the table's columns out: they ended the reader before.
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
    ids_only: bool = False

    @property
    def stripes(self) -> int:
        """How many stripes it reads."""
        return self.end - self.first

    def part(self, first: int, end: int, *, ids_only: bool = False) -> RowTask:
        """The same for other stripes."""
        return replace(self, first=first, end=end, ids_only=ids_only)

    def run(self, beat: Beat) -> RowFacts:
        """The facts. Raises NotFoundError, AccessError or StorageError when the file cannot be opened."""
        reader, tail = _open(self)
        look = _Look(self, tail)
        for stripe in range(self.first, self.end):
            look.stripe(reader, stripe)
            beat()
        return look.facts()


@lru_cache(maxsize=4)
def _opened_file(
    storage: FileSystemSpec, path: str, length: int | None, size: int, form: Format
) -> tuple[OrcFile | ForeignReader, Tail]:
    fs = opened(storage)
    if form is Format.ORC:
        orc = open_orc(fs, path, length)
        return orc, orc.tail
    source = ByteSource(fs, path, size if length is None else length)
    tail = read_any_tail(source).tail
    return open_foreign(source, form, tail), tail


def _open(task: RowTask) -> tuple[OrcFile | ForeignReader, Tail]:
    return _opened_file(task.storage, task.path, task.length, task.file.size, task.format)


class _Look:
    """The stripes of one task being looked at."""

    def __init__(self, task: RowTask, tail: Tail) -> None:
        self._task = task
        self._tail = tail
        self._facts = RowFacts()
        self._tallies: dict[tuple[str, str], Tally] = {}
        self._counts = np.zeros(3, np.int64)
        self._inserts, self._deletes, self._changes = SpanBuilder(), SpanBuilder(), SpanBuilder()
        try:
            self._index: list[RecordKey | None] = (tail.key_index() or []) if task.is_native else []
        except BadDataError:
            self._index = []  # the tail's own check says so

    def facts(self) -> RowFacts:
        facts = self._facts
        facts.tallies = list(self._tallies.values())
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
            self.add("V29", text, int(np.count_nonzero(~there)), f"row {int(np.argmin(there))} of stripe {number}")
        if ids is None or not len(ids):
            return
        self._events(ids, batch)
        self._key_order(ids)
        self._write_ids(ids)
        self._tail_of_stripe(ids, number, complete=there is None)

    def add(self, rule: str, text: str, count: int, example: str, severity: Severity | None = None) -> None:
        """Count something."""
        if count:
            tally = self._tallies.setdefault((rule, text), Tally(rule, text, 0, example, severity))
            tally.count += count

    def _add_where(self, rule: str, text: str, where: Bools, ids: Events, severity: Severity | None = None) -> None:
        if where.any():
            at = int(np.argmax(where))
            self.add(rule, text, int(np.count_nonzero(where)), ids.event(at), severity)

    def _read(self, reader: OrcFile | ForeignReader, number: int) -> pa.RecordBatch | None:
        task = self._task
        try:
            if not task.ids_only:
                return reader.read_stripe(number)
        except NullMapKey as error:
            self._facts.unchecked.append(Unchecked(task.file.path, error))
        except BadDataError as error:
            why = " ".join(f"{error.why or error.what}".split())[:200]
            self.add("V24", f"a stripe cannot be read ({why})", 1, f"stripe {number}")
        if not task.is_native:
            return None
        try:
            return reader.read_stripe(number, ID_COLUMNS)
        except BadDataError:
            self._facts.is_complete = False
            if task.ids_only:
                self.add("V24", "the ids of a stripe cannot be read", 1, f"stripe {number}")
            return None

    # --- what each event says ---

    def _events(self, ids: Events, batch: pa.RecordBatch) -> None:
        task, directory = self._task, self._task.file.directory
        is_delete = task.file.role is Role.DELETE
        unsigned = ids.keys.bucket & 0xFFFFFFFF
        version = unsigned >> 29
        is_v1 = task.is_old and not is_delete and not (version == 1).any()
        operation = ids.operation
        if is_delete:
            self._add_where("V12", "delete events are none by their operation", operation != _DELETE, ids)
            if "row" in batch.schema.names:
                with_row = batch.num_rows - batch.column("row").null_count
                self.add("V12", "delete events have a row", with_row, f"in {task.file.path}")
        elif is_v1:
            most = 1 if directory is not None and directory.kind is Kind.BASE else 2
            self._add_where("V12", "events have an impossible operation", (operation < 0) | (operation > most), ids)
        else:
            self._add_where("V12", "events among the inserts are none by their operation", operation != 0, ids)
        self._counts += np.bincount(np.clip(operation, 0, 2), minlength=3)
        bad = (version > 1) | ((version == 1) & ((unsigned & _RESERVED) != 0))
        self._add_where("V23", "events have an impossible bucket", bad, ids)
        if task.file.bucket != NO_BUCKET:
            number = np.where(version == 1, (unsigned >> 16) & codec.MAX_BUCKET, unsigned)
            text = f"events are of another bucket than the file's, {task.file.bucket}"
            self._add_where("V21", text, ~bad & (number != task.file.bucket), ids)
        self._add_where("V29", "row ids are negative", ids.keys.row_id < 0, ids)
        self._gather(ids, is_v1=is_v1)

    def _gather(self, ids: Events, *, is_v1: bool) -> None:
        """Keep the keys for what only all files together show."""
        task, directory = self._task, self._task.file.directory
        if task.file.role is Role.DELETE:
            keys = ids.keys
            written = directory is not None and directory.statement_id != NO_STATEMENT
            if not written or task.is_compacted:
                # A minor compaction leaves of an insert and its delete in one write id only the delete (section 8.2).
                keys = keys.take(ids.current != keys.original)
            self._deletes.add(keys)
        elif is_v1:
            changed = ids.operation != 0
            if directory is not None and directory.kind is Kind.BASE:
                self._inserts.add(ids.keys)
            else:
                self._inserts.add(ids.keys.take(~changed))
                self._changes.add(ids.keys.take(changed))
        else:
            self._inserts.add(ids.keys)

    def _key_order(self, ids: Events) -> None:
        """Ascending keys; of equal ones, where they may be, the newest event first (section 4.1)."""
        before, after = ids, ids
        last = self._facts.last
        if last is None:
            before, after = ids.slice(0, -1), ids.slice(1, None)
        else:
            before = ids.slice(0, -1).after(last)
        same, down = compare(before.keys, after.keys)
        self._add_where("V26", "events have a lower key than the one before", down, after)
        if same.any():
            is_delete = self._task.file.role is Role.DELETE
            may_repeat = is_delete or (self._task.is_old and bool((ids.operation != 0).any()))
            newer = after.current < before.current
            if may_repeat:
                self._add_where("V26", "events have the key of the one before and are not older", same & ~newer, after)
                if is_delete:
                    self._add_where("V34", "delete events name a row again", same & newer, after)
            else:
                self._add_where("V26", "rows have the key of the one before", same, after)
        self._facts.first = self._facts.first or ids.at(0)
        self._facts.last = ids.at(len(ids) - 1)

    def _write_ids(self, ids: Events) -> None:
        task, directory = self._task, self._task.file.directory
        current, original = ids.current, ids.keys.original
        is_delete = task.file.role is Role.DELETE
        if directory is not None:
            self._add_where("V28", _range_text(directory), _outside(directory, current), ids)
        if is_delete:
            self._add_where("V35", "delete events are older than their rows", current < original, ids)
        else:
            self._add_where("V28", "events are older than their rows", current < original, ids)
            newer = (current > original) & (ids.operation == 0)
            in_base = directory is not None and directory.kind is Kind.BASE
            text = "inserted rows have two different write ids"
            self._add_where("V28", text, newer, ids, Severity.WARNING if in_base else None)
        if task.is_compacted:
            valid = valid_mask(current, task.write_ids.high_watermark, task.write_ids.exceptions)
            if valid is not None:
                self._add_where("V37", "events are of write ids that are not committed", ~valid, ids)

    def _tail_of_stripe(self, ids: Events, number: int, *, complete: bool) -> None:
        """The key index and the statistics against the rows."""
        if not complete:
            return
        severity = Severity.WARNING if self._task.is_old else None
        keys = ids.keys
        last = int(keys.original[-1]), int(keys.bucket[-1]), int(keys.row_id[-1])
        entry = self._index[number] if number < len(self._index) else None
        if entry is not None and entry != last:
            text = "entries of the key index are not the last keys of their stripes"
            self.add(
                "V30",
                text,
                1,
                f"stripe {number} ends with {shown_key(last)}, the index says {shown_key(entry)}",
                severity,
            )
        statistics = self._tail.stripe_statistics(number)
        if not statistics or not self._tail.stride:
            return
        columns = (ids.operation, keys.original, keys.bucket, keys.row_id, ids.current)
        for place, (name, values) in enumerate(zip(ID_COLUMNS, columns, strict=True), 1):
            if place >= len(statistics) or not statistics[place].HasField("intStatistics"):
                continue
            bounds = statistics[place].intStatistics
            least, most = int(values.min()), int(values.max())
            if bounds.HasField("minimum") and bounds.HasField("maximum"):
                said = bounds.minimum, bounds.maximum
                if said != (least, most):
                    text = f"stripes have other values of {name} than their statistics say"
                    example = f"stripe {number} holds {least} to {most}, not {said[0]} to {said[1]}"
                    self.add("V31", text, 1, example, severity)


def _outside(directory: AcidDirectory, current: Longs) -> Bools:
    """Which write ids do not belong in the directory."""
    outside: Bools
    if directory.kind is not Kind.BASE:
        outside = (current < directory.min_write_id) | (current > directory.max_write_id)
    elif directory.max_write_id == MINL:
        outside = current != 0
    else:
        outside = current > directory.max_write_id
    return outside


def _range_text(directory: AcidDirectory) -> str:
    low, high = directory.min_write_id, directory.max_write_id
    if directory.kind is Kind.BASE:
        return f"events are of later write ids than {max(high, 0)}"
    return f"events are of other write ids than {low}" if low == high else f"events are outside of {low} to {high}"
