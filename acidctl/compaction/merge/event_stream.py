"""One side of a task: its insert events or its delete events, from the input files to the output file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.layout import Role
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base import task_progress
from acidctl.compaction.merge.agreement import refuse_twins
from acidctl.compaction.merge.merge import Chunk, StripeRun, merge
from acidctl.compaction.merge.written import (
    agrees,
    counts_of,
    describe,
    has_large_stripe,
    is_small,
    open_writer,
    stripes_of,
    write_output,
)
from acidctl.compaction.proof.checksum import (
    KeyFacts,
    RowProof,
    SummedSink,
    ascending_runs,
    key_checksum,
    key_range,
    require_bytes,
)
from acidctl.compaction.proof.values import event_checksum
from acidctl.compaction.tasks import PROLEPTIC_GREGORIAN, BucketTask, Input, OutputFile, Segment, StripeCopy
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.read.integer_runs import RowIdRun, id_run
from acidctl.orc.tail import read_tail, stripe_length
from acidctl.orc.types import OrcType, acid_tree, arrow_type
from acidctl.rows.convert.conform import all_null, conform
from acidctl.rows.read.delete_set import INSERT, Bools, DeleteSet, Keys, StripeRange
from acidctl.rows.read.events import EventFile, EventReader, Ids, with_ids
from acidctl.rows.read.selection import kept_rows
from acidctl.storage.port import FileSystem

HELD_ROWS = 20_000
HELD_BYTES = 64 << 20
"""Limits for the rows of small stripes that a task keeps in memory from their first read to the writing."""


class EventStream:
    """The insert events or the delete events of a task."""

    _checksum: Callable[[Ids, pa.Array, OrcType], int] = staticmethod(event_checksum)

    def __init__(
        self,
        fs: FileSystem,
        task: BucketTask,
        inputs: Sequence[Input],
        keep: Callable[[EventFile, Ids], Bools | None],
        keeps_run: Callable[[RowIdRun], bool],
        *,
        look: Callable[[EventFile, Ids | RowIdRun], None] | None = None,
    ) -> None:
        """Set up a side.

        Args:
            keep: returns which events stay, None for all; called again when their rows are read.
            keeps_run: returns whether all events of a run certainly stay.
            look: called once with every stripe of every file, in order.
        """
        self._fs = fs
        self._task = task
        self._sources = [(reopen(fs, item), item) for item in inputs]
        self._places = {item.path: place for place, item in enumerate(inputs)}
        self._keep = keep
        self._keeps_run = keeps_run
        self._look = look
        self._target = arrow_type(task.row)
        self._proleptic = task.calendar == PROLEPTIC_GREGORIAN
        self._expected = RowProof()
        self._held_bytes = 0
        self.rows_read = 0

    def write(self) -> OutputFile | None:
        """Write the events that are kept; return None if there are none."""
        pieces = list(self._pieces())
        if not pieces:
            return None
        block_size = max(source.tail.block_size for source, _ in self._sources)
        return write_output(self._fs, self._task, block_size, self._events(pieces), lambda: self._expected)

    def write_segment(self, number: int) -> Segment:
        """Write only stripes that must be encoded; the join copies the others, so that they are copied once."""
        path = self._task.new_attempt(f"segment_{number}")
        copies: list[tuple[int, StripeCopy]] = []
        with self._fs.open_output(path, private=True) as file:
            sink = SummedSink(file)
            writer = open_writer(sink, self._task)
            for item in self._events(list(self._pieces())):
                if isinstance(item, StripeCopy):
                    copies.append((writer.flush(), item))
                else:
                    writer.write(item)
            writer.close()
        if self._task.verify.compares_bytes:
            require_bytes(self._fs, path, sink)
        encoded = list(stripes_of(self._fs, path))
        stripes: list[StripeCopy] = []
        done = 0
        for before, copy in copies:
            stripes += [*encoded[done:before], copy]
            done = before
        stripes += encoded[done:]
        return Segment(number, tuple(stripes), len(encoded), self._expected)

    def _events(self, pieces: Sequence[StripeRun]) -> Iterator[pa.RecordBatch | StripeCopy]:
        collapses = self._task.kind is CompactionKind.MINOR
        for item in merge(pieces, self._drop if collapses else None, self._refuse_twins):
            yield item if isinstance(item, StripeCopy) else with_ids(*item)

    def _drop(self, ids: Ids, rows: pa.Array) -> None:
        """Take events that the merge leaves out from the expected rows."""
        values = event_checksum(ids, rows, self._task.row) if self._task.verify.compares_values else 0
        self._expected -= RowProof(len(ids.current), key_checksum(ids.keys), values)

    def _refuse_twins(self, ids: Ids, one: int, other: int) -> None:
        count = len(self._sources)
        refuse_twins(ids, self._sources[one % count][0], self._sources[other % count][0])

    def _pieces(self) -> Iterator[StripeRun]:
        """Yield the stripes of all files that keep an event, with the range of their keys; only ids are read."""
        held: list[Chunk] = []
        tree = acid_tree(self._task.row)
        for source, item in self._sources:
            task = self._task
            is_native = source.synthetic is None
            copies = task.may_copy and is_native and has_large_stripe(source) and agrees(source, task, tree)
            with source.open() as events:
                for stripe in range(*(item.stripes or (0, events.stripes))):
                    copied = self._clean(source, stripe) if copies else None
                    if copied:
                        yield copied
                        continue
                    is_held = self._is_held(source, stripe)
                    ids, rows = self._both(events, stripe) if is_held else (events.ids(stripe), None)
                    self.rows_read += len(ids.current)
                    if self._look:
                        self._look(source, ids)
                    kept = self._kept(source, ids)
                    ids = ids.take(kept)
                    if not len(ids.current) or is_held:
                        stripe_done(source, stripe)
                    if not len(ids.current):
                        continue
                    load = partial(self._load, source, stripe)
                    if rows is not None:
                        rows = rows if kept is None else kept_rows(rows, kept)
                        self._held_bytes += rows.nbytes
                        held.append(self._chunk(source, stripe, ids, rows))
                        self._see(ids)
                        yield StripeRun(*key_range(ids.keys), load, held=held[-1])
                        continue
                    facts = KeyFacts.of(ids.keys)
                    copy = self._copy(source, stripe, ids, facts) if copies and kept is None else None
                    values = 0
                    if self._task.verify.compares_values:
                        values = self._checksum(ids, self._rows(events, stripe, kept), self._task.row)
                    self._see(ids)
                    self._expected += RowProof(len(ids.current), facts.checksum, values)
                    yield StripeRun(facts.first, facts.last, load, copy, is_small=is_small(source.tail.stripes[stripe]))
        keys = Keys.concat(chunk.ids.keys for chunk in held)  # values of held rows are not compared
        self._expected += RowProof(len(keys), key_checksum(keys))

    def _see(self, ids: Ids) -> None:
        """Receive events that are kept, before any of their rows is written."""

    @staticmethod
    def _copy(source: EventFile, stripe: int, ids: Ids, facts: KeyFacts) -> StripeCopy | None:
        """Describe a stripe that keeps all events for a copy; None if its keys are out of order."""
        counts = counts_of(ids)
        if counts is None or not facts.ascends or facts.repeats:
            return None
        return describe(source.tail, source.path, stripe, counts, facts)

    def _clean(self, source: EventFile, stripe: int) -> StripeRun | None:
        """Return a stripe that can be copied if that shows without decoding its ids."""
        run = None if self._task.verify.compares_values else id_run(source.tail, stripe)
        if run is None or not self._keeps_run(run):
            return None
        if self._look:
            self._look(source, run)
        facts = KeyFacts.of_run(run)
        insert, update, delete = (run.count if kind == run.operation else 0 for kind in range(3))
        copy = replace(describe(source.tail, source.path, stripe, (insert, update, delete), facts), ids=run.encoded)
        self.rows_read += run.count
        self._expected += RowProof(run.count, facts.checksum)
        load = partial(self._load, source, stripe)
        return StripeRun(facts.first, facts.last, load, copy, is_small=is_small(source.tail.stripes[stripe]))

    def _is_held(self, source: EventFile, stripe: int) -> bool:
        """Say if a stripe is so small that opening its file again would cost more than keeping its rows.

        If all values are compared, they are read twice, so that a fault of one read is noticed.
        """
        if self._task.verify.compares_values:
            return False
        is_short = source.tail.stripes[stripe].numberOfRows <= HELD_ROWS
        return is_short and is_small(source.tail.stripes[stripe]) and self._held_bytes < HELD_BYTES

    def _both(self, events: EventReader, stripe: int) -> tuple[Ids, pa.Array]:
        if events.source.file.role is Role.DELETE:
            return events.ids(stripe), self._rows(events, stripe, None)
        ids, rows = events.ids_with_rows(stripe, None, proleptic=self._proleptic)
        return ids, self._conformed(events.source, rows)

    def _load(self, source: EventFile, stripe: int) -> Chunk:
        with source.open() as events:
            ids = events.ids(stripe)
            kept = self._kept(source, ids)
            rows = self._rows(events, stripe, kept)
        stripe_done(source, stripe)
        return self._chunk(source, stripe, ids.take(kept), rows)

    def _chunk(self, source: EventFile, stripe: int, ids: Ids, rows: pa.Array) -> Chunk:
        """Number the parts of a file among events; each run of ascending keys in a stripe is a part."""
        statement = np.full(len(ids.current), source.file.statement_id, np.int64)
        run = ascending_runs(ids.keys) + (stripe << 32)
        return Chunk(ids, statement, self._places[source.path] + len(self._sources) * run, rows)

    def _kept(self, source: EventFile, ids: Ids) -> Bools | None:
        kept = self._keep(source, ids)
        return None if kept is None or kept.all() else kept

    def _rows(self, events: EventReader, stripe: int, kept: Bools | None) -> pa.Array:
        source = events.source
        if source.file.role is Role.DELETE:
            # A delete event has no row, whatever row type its file declares (section 3.1).
            rows = all_null(source.tail.stripes[stripe].numberOfRows, self._target)
        else:
            rows = self._conformed(source, events.rows(stripe, proleptic=self._proleptic))
        return rows if kept is None else kept_rows(rows, kept)

    def _conformed(self, source: EventFile, rows: pa.Array) -> pa.Array:
        return conform(rows, source.row_type, self._task.row, source.shown, how=self._task.conversion)


def reopen(fs: FileSystem, item: Input) -> EventFile:
    tail = item.tail or read_tail(ByteSource(fs, item.path, item.length))
    return EventFile(fs, item.file, item.path, item.length, tail, item.synthetic)


def all_live(run: RowIdRun, write_ids: ValidWriteIds, dead: DeleteSet) -> bool:
    """Say if all rows of a run certainly are rows that a reader returns."""
    (original, bucket, first), last = run.first, run.last.row_id
    keys = StripeRange((original,) * 2, (bucket,) * 2, (first, last), (run.current,) * 2, True)
    return run.operation == INSERT and write_ids.is_valid(run.current) and not dead.may_hit(keys)


def stripe_done(source: EventFile, stripe: int) -> None:
    """Report a stripe as read, and its kept rows as written."""
    task_progress.done(stripe_length(source.tail.stripes[stripe]))
