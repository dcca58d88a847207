"""Insert JSON lines as they come, in one transaction for each interval."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pyarrow as pa

from acidctl.base.errors import AcidctlError, BadDataError, RefusedError
from acidctl.location.change.own_files import new_run_id
from acidctl.location.change.work_log import LogEntry
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import Operation
from acidctl.metastore.tables import HiveTable
from acidctl.metastore.txn.transaction import UnknownOutcome
from acidctl.orc.types import arrow_type, parse_type
from acidctl.outcome import Result
from acidctl.verbs.events import Events
from acidctl.verbs.selection import Selection
from acidctl.verbs.writing.options import StreamOptions, WriteOptions
from acidctl.verbs.writing.statements import RowsWritten, carry_out, table_of
from acidctl.wording import human_count
from acidctl.writing.constraints import Constraints
from acidctl.writing.insert import Insert
from acidctl.writing.once import NOTHING, Once, loaded_value
from acidctl.writing.refusals import require_writable
from acidctl.writing.rows.conform import RowConformer
from acidctl.writing.rows.json_lines import JsonParser, first_bad_line, why_bad
from acidctl.writing.rows.partition_values import partition_texts
from acidctl.writing.write import log_at, stream_line

_CHUNK, _MOST = 1 << 20, 32 << 20

_Holding = Callable[[], AbstractContextManager[None]]


class _Lines:
    """Whole lines of a pipe or a file, an interval's at a time.

    Attributes:
        rest: the beginning of a line whose end has not come.
        end: ``input`` if that has ended, ``signal`` if a signal has ended it, else empty.
    """

    def __init__(self, descriptor: int, every: float, holding: _Holding) -> None:
        self._descriptor, self._every, self._holding = descriptor, every, holding
        self._chunks: list[bytes] = []
        self.rest, self.end = b"", ""

    def gather(self, number: int) -> bytes:
        """Wait for a first line and until its interval has passed, and return whole lines.

        A last line without its end counts as a line at the end of the input, but not after a signal.

        Args:
            number: the number of lines that were returned before.

        Raises:
            BadDataError: a line is too long.
        """
        begun, is_whole = time.monotonic() if self.rest else 0.0, False
        size, has_end = 0, False
        try:
            while not self.end and size < _MOST:
                left = begun + self._every - time.monotonic() if begun else None
                if left is not None and left <= 0:
                    if has_end:
                        break
                    left = None  # a line has begun, and its end may come at any time
                if select.select([self._descriptor], [], [], left)[0]:
                    with self._holding():  # so that no signal comes between a chunk and its place in the list
                        chunk = os.read(self._descriptor, _CHUNK)
                        self._chunks.append(chunk)
                        is_whole = not chunk
                        self.end = "input" if is_whole else ""
                        begun = begun or time.monotonic()
                    size += len(chunk)
                    has_end = has_end or b"\n" in chunk
        except KeyboardInterrupt:
            self.end = "signal"
        text = self.rest + b"".join(self._chunks)
        end = len(text) if is_whole else text.rfind(b"\n") + 1
        self.rest, self._chunks = text[end:], []
        if len(self.rest) >= _MOST and not end:
            hint = "all lines before it are written; write its rows with `acidctl insert`"
            raise BadDataError(f"line {number + 1:,} is longer than {_MOST >> 20} MiB", "", hint)
        return text[:end]


class _Loads:
    """The transactions of one stream.

    Attributes:
        name: the name under which the highest offset is recorded; empty without offsets.
        seen: the highest offset that is loaded.
        passed: the number of rows that were passed over.
    """

    _is_logged = False

    def __init__(self, selection: Selection, options: StreamOptions) -> None:
        self._selection, self._options, self._run = selection, options, new_run_id()
        metastore, table = table_of(selection)
        self._table = table
        require_writable(metastore, table, Operation.INSERT)  # before the first lines have come
        if Constraints.of(metastore, table).defaults:
            why = "it has defaults, which Hive would compute"
            raise RefusedError(f"will not stream into {table.full_name}", why, "use `acidctl insert`")
        self.name = f"stream by {options.offset_key.lower()}" if options.offset_key else ""
        self.seen = loaded_value(metastore, table, self.name, selection.storage) if self.name else NOTHING
        self.passed = 0

    def load(self, text: bytes) -> Iterator[RowsWritten]:
        """Write whole lines in one transaction.

        Raises:
            BadDataError: a line cannot be written; nothing was.
        """
        source = self._rows()
        rows = source.read(text)
        if rows.num_rows:
            once = Once(self.name, source.highest, after=self.seen) if self.name else None
            options = WriteOptions(wait=self._options.wait)
            made = carry_out(
                "insert",
                self._selection,
                options,
                Events(),
                lambda metastore, table: Insert(metastore, table, rows.to_reader()),
                repeats=True,
                once=once,
                stream=self._run,
            )
            for outcome in made:
                self._is_logged |= outcome.result is Result.WRITTEN
                yield outcome
        self.seen = source.highest
        self.passed += source.passed

    def load_before_bad_line(self, text: bytes, number: int) -> Iterator[RowsWritten]:
        """Write the lines before the first one that cannot be written, and raise its error.

        Args:
            number: the number of lines before `text`.
        """
        place, error = first_bad_line(text, self._rows().read, BadDataError)
        good = b"\n".join(text.split(b"\n", place)[:place])
        if good.strip():
            yield from self.load(good)
        why = str(error)
        if isinstance(error.__cause__, pa.ArrowInvalid):
            why = why_bad(text, place, self._rows().types, error.__cause__)
        hint = "all lines before it are written; correct it, and go on from there"
        raise BadDataError(f"line {number + place + 1:,} cannot be written", why, hint) from error

    def log_end(self, end: str, events: Events) -> None:
        """Log how the run has ended, if it has written anything."""
        if self._is_logged:
            result = Result.WRITTEN if end in ("input", "signal") else Result.FAILED
            entry = LogEntry("stream", result.value, self._run, facts={"end": end}, id=stream_line(self._run))
            log_at(self._table, entry, self._selection.storage, events.warn)

    def _rows(self) -> StreamedRows:
        return StreamedRows(*table_of(self._selection), self._options.offset_key, self.seen)


def stream(
    selection: Selection, options: StreamOptions, events: Events, descriptor: int, holding: _Holding = nullcontext
) -> Iterator[RowsWritten]:
    """Yield the outcome of each transaction, until the input has ended or a KeyboardInterrupt ends the waiting.

    Args:
        descriptor: of a pipe or a file with JSON lines.
        holding: delays the KeyboardInterrupt of a signal while a transaction is committed.

    Raises:
        BadDataError: a line cannot be written; all lines before it are.
        AcidctlError: the lines since the last transaction were not written.
    """
    loads, lines = _Loads(selection, options), _Lines(descriptor, options.every, holding)
    if loads.seen != NOTHING:
        events.note(f"lines with {options.offset_key} up to {loads.seen} are loaded, and are passed over")
    end = "error"
    try:
        yield from _load_all(loads, lines, events, holding)
        end = lines.end
    except (AcidctlError, KeyboardInterrupt) as error:
        end = error.code if isinstance(error, AcidctlError) else "signal"
        raise
    finally:
        loads.log_end(end, events)


def _load_all(loads: _Loads, lines: _Lines, events: Events, holding: _Holding) -> Iterator[RowsWritten]:
    number = 0
    while not lines.end:
        text = lines.gather(number)
        is_written = not text.strip()
        try:
            with holding():
                try:
                    if not is_written:
                        yield from loads.load(text)
                except BadDataError:
                    yield from loads.load_before_bad_line(text, number)
                is_written = True
        except (AcidctlError, KeyboardInterrupt) as error:
            if isinstance(error, UnknownOutcome):
                events.warn(f"whether lines from {number + 1:,} on were written is not known")
            elif not (is_written or isinstance(error, BadDataError)):
                events.warn(f"lines from {number + 1:,} on were not written")
            if not is_written:
                raise
            lines.end = "signal"
        number += text.count(b"\n") + (text[-1:] not in (b"", b"\n"))
    if lines.rest:
        events.warn(f"the last {human_count(len(lines.rest), 'byte')} are not a whole line, and were not written")
    passed = f"; {human_count(loads.passed, 'row')} passed over, as loaded before" if loads.passed else ""
    events.note(f"ended after {human_count(number, 'line')}{passed}")


class StreamedRows:
    """Reads lines, and refuses every line that an INSERT would refuse before its transaction is opened.

    Args:
        offset_key: the field with a number that rises from line to line; empty without one.
        seen: rows up to this number are passed over.

    Attributes:
        types: of the table's columns.
        highest: the highest number so far.
        passed: how many rows were passed over.
    """

    def __init__(self, metastore: Metastore, table: HiveTable, offset_key: str | None, seen: int) -> None:
        self._kinds = {column.name: parse_type(column.type) for column in (*table.columns, *table.partition_keys)}
        self.types = {name: arrow_type(kind) for name, kind in self._kinds.items()}
        self._keys = {column.name for column in table.partition_keys}
        self._key = (offset_key or "").lower()
        self._constraints = Constraints.of(metastore, table)
        self._seen = self.highest = seen
        self.passed = 0

    def read(self, text: bytes) -> pa.Table:
        """Return the rows of whole lines that are not passed over, with columns of the table alone.

        Raises:
            BadDataError: a line cannot be parsed, has a field that the table lacks, a value that does not fit, or no
                offset.
        """
        key = {self._key: pa.int64()} if self._key and self._key not in self.types else {}
        try:
            parser = JsonParser({**self.types, **key}, text)
            rows = parser.table(text).combine_chunks()
            lower = [name.lower() for name in rows.schema.names]
            names = [name for name in rows.schema.names if name.lower() in self._kinds]
            if unknown := [name for name in rows.schema.names if name.lower() not in {*self._kinds, *key}]:
                raise BadDataError(f"the table has no column {unknown[0]}", "", "")
            if rows.num_rows and (absent := self._keys.difference(name.lower() for name in parser.seen)):
                raise BadDataError(f"it has no {min(absent)}, which is a partition key")
            rows = rows if not self._key else self._new(rows, lower.index(self._key))
            self._require_fitting(rows.select(names))
        except pa.ArrowInvalid as error:
            raise BadDataError(str(error).splitlines()[0].partition(" in row ")[0]) from error
        except AcidctlError as error:  # its number is that of a row of this interval
            raise BadDataError(error.why or error.what) from error
        return rows.select(names)

    def _new(self, rows: pa.Table, place: int) -> pa.Table:
        """Return the rows whose offset is above that of every row before them."""
        column = rows.column(place)
        if column.null_count or not pa.types.is_integer(column.type):
            raise BadDataError(f"it has no number {self._key}")
        offsets = column.cast(pa.int64()).to_numpy()
        if len(offsets) and offsets.min() < 0:
            raise BadDataError(f"{self._key} is below 0")
        before = np.maximum.accumulate(np.concatenate(([self._seen], offsets)))
        is_new = offsets > before[:-1]
        self.highest, self.passed = int(before[-1]), int((~is_new).sum())
        return rows.filter(pa.array(is_new))

    def _require_fitting(self, rows: pa.Table) -> None:
        names = [name.lower() for name in rows.schema.names]
        kinds, not_null = [self._kinds[name] for name in names], self._constraints.not_null
        conformer = RowConformer(rows.schema, names, kinds, keys=self._keys, not_null=not_null)
        for batch in rows.to_batches():
            for name, column in zip(names, conformer.columns(batch), strict=True):
                if name in self._keys:
                    partition_texts(column, self._kinds[name])
