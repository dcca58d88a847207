"""One bucket of a compaction: task in, result out; the same function in this process and in a Spark executor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from acidctl.acid.layout import Role
from acidctl.acid.triggers import CompactionKind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.compaction import working
from acidctl.compaction.merge.merge import Chunk, Piece, merge, sorted_events
from acidctl.compaction.merge.stripe_copy import agrees, counts_of, describe, has_large_stripe, is_small
from acidctl.compaction.merge.written import join_segments, open_writer, stripes_of, write_output
from acidctl.compaction.proof.checksum import RowProof, key_checksum
from acidctl.compaction.proof.keys import KeyFacts, key_range
from acidctl.compaction.proof.sent import SummedSink, require_bytes
from acidctl.compaction.proof.values import event_checksum, spread_checksum
from acidctl.compaction.rebalance.order import sort_keys, sorted_places
from acidctl.compaction.rebalance.runs import Runs
from acidctl.compaction.rebalance.shares import Share, SortedShare
from acidctl.compaction.tasks import (
    PROLEPTIC_GREGORIAN,
    BucketResult,
    BucketTask,
    ConcatTask,
    CountTask,
    Input,
    JoinTask,
    OutputFile,
    Segment,
    StripeCopy,
    Task,
)
from acidctl.errors import ConflictError, RefusedError
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.read.common_type import same_types
from acidctl.orc.read.id_runs import RowIdRun, id_run
from acidctl.orc.tail import read_tail, stripe_length
from acidctl.orc.types import OrcType, acid_tree, arrow_type
from acidctl.rows.read.bucket_values import decode_all
from acidctl.rows.read.delete_set import DELETE, INSERT, Bools, DeleteSet, Keys, Longs
from acidctl.rows.read.events import EventFile, EventReader, Ids, with_ids
from acidctl.rows.read.schema_evolution import SIZED_TEXTS, all_null, conform, fit_text
from acidctl.rows.read.selection import kept_rows
from acidctl.rows.read.stripe_key_ranges import StripeRange
from acidctl.rows.read.visibility import live_rows, load_deletes, visible_events
from acidctl.storage import registry
from acidctl.storage.port import FileSystem

HELD_ROWS = 20_000
HELD_BYTES = 64 << 20
"""Rows of small stripes that a task keeps from the first look to the writing."""


def run_task(task: Task) -> BucketResult:
    """Read, merge, filter, write and read back one bucket or a segment of one; or put segments together.

    Raises:
        BadDataError: an input cannot be read.
        VerifyError: what was written is not what was to be written.
    """
    start = time.monotonic()
    if isinstance(task, JoinTask):
        result = join_segments(task)
    elif isinstance(task, ConcatTask):
        from acidctl.compaction.concat.insert_only import run_concat  # noqa: PLC0415 - with Arrow's Parquet

        result = run_concat(task)
    elif isinstance(task, CountTask):
        result = _count(task)
    else:
        result = _spread(task) if task.is_spread else _compact(task)
    return replace(result, seconds=time.monotonic() - start)


def _compact(task: BucketTask) -> BucketResult:
    fs = registry.open_file_system(task.storage)
    major = task.kind is CompactionKind.MAJOR
    dead = load_deletes([_reopen(fs, item) for item in task.kills], task.write_ids, same_write_id=not major)

    def keep_insert(source: EventFile, ids: Ids) -> Bools | None:
        if major:
            return live_rows(source, ids, task.write_ids, dead)
        visible = visible_events(ids, task.write_ids)
        killed = dead.dead(ids.keys)
        if killed is None:
            return visible
        # The delete event is of the write id that inserted the row: only an event of that one collapses into it.
        kept: Bools = ~killed | (ids.current != ids.keys.original)
        return kept if visible is None else visible & kept

    def keep_delete(source: EventFile, ids: Ids) -> Bools | None:
        visible = visible_events(ids, task.write_ids)
        if not task.sorts_deletes_by:
            return visible
        own = _is_to_go_to(task, decode_all(ids.keys.bucket).bucket, source)
        return own if visible is None else visible & own

    def keeps_inserts(run: RowIdRun) -> bool:
        return _is_live(run, task.write_ids, dead)

    def keeps_deletes(run: RowIdRun) -> bool:
        return run.operation == DELETE and task.write_ids.is_valid(run.current) and not task.sorts_deletes_by

    insert_side = _Side(fs, task, task.inserts, keep_insert, keeps_inserts)
    delete_side = _Side(fs, task, task.deletes, keep_delete, keeps_deletes)
    segment = written = None
    if task.segment is None:
        written = insert_side.write()
    else:
        segment = insert_side.write_segment(task.segment)
    deleted = delete_side.write()
    read = insert_side.rows_read + delete_side.rows_read
    kept = sum(item.expected.rows for item in (written, segment, deleted) if item)
    return BucketResult(task.bucket, written, deleted, read, read - kept, segment)


def _count(task: CountTask) -> BucketResult:
    fs = registry.open_file_system(task.storage)
    dead = load_deletes([_reopen(fs, item) for item in task.kills], task.write_ids)
    found: list[Runs] = []
    read = 0
    for place, item in enumerate(task.inserts, task.first):
        source = _reopen(fs, item)
        with source.open() as events:
            for stripe in range(events.stripes):
                run = id_run(source.tail, stripe) if source.synthetic is None else None
                if run and _is_live(run, task.write_ids, dead):
                    read += run.count
                    found.append(Runs.counting(place, stripe, run.first, run.count))
                else:
                    ids = events.ids(stripe)
                    read += len(ids.current)
                    found.append(Runs.of(place, stripe, ids.take(live_rows(source, ids, task.write_ids, dead)).keys))
                working.done(_length(source, stripe))
    runs = Runs.concat(found)
    return BucketResult(task.bucket, rows_read=read, rows_dropped=read - int(runs.count.sum()), runs=runs)


def _spread(task: BucketTask) -> BucketResult:
    """Write rows with new ids; what was read and dropped, those that counted them have told."""
    fs = registry.open_file_system(task.storage)
    dead = load_deletes([_reopen(fs, item) for item in task.kills], task.write_ids)
    expected = RowProof()

    def events() -> Iterator[pa.RecordBatch]:
        nonlocal expected
        for share in task.shares:
            side = _Shared(fs, task, share, dead)
            yield from side.numbered()
            expected += side.proof()
        if task.sorted_share:
            all_rows = _Sorted(fs, task, task.sorted_share, dead)
            yield from all_rows.numbered()
            expected += all_rows.proof()

    return BucketResult(task.bucket, write_output(fs, task, 0, events(), lambda: expected))


def _is_live(run: RowIdRun, write_ids: ValidWriteIds, dead: DeleteSet) -> bool:
    """Whether surely all rows are that a reader returns."""
    return run.operation == INSERT and write_ids.is_valid(run.current) and not dead.may_hit(_range(run))


def _is_to_go_to(task: BucketTask, bucket: Longs, source: EventFile) -> Bools:
    """Which delete events of a file this bucket writes, of those that are of the buckets given."""
    own: Bools = bucket == task.bucket
    if source.file.bucket == task.bucket:
        own |= ~np.isin(bucket, task.sorts_deletes_by)
    return own


def _range(run: RowIdRun) -> StripeRange:
    """The keys of a run, as what deletes hit is asked for."""
    (original, bucket, first), last = run.first, run.last.row_id
    return StripeRange((original,) * 2, (bucket,) * 2, (first, last), (run.current,) * 2, True)


def _reopen(fs: FileSystem, item: Input) -> EventFile:
    tail = item.tail or read_tail(ByteSource(fs, item.path, item.length))
    return EventFile(fs, item.file, item.path, item.length, tail, item.synthetic)


class _Side:
    """The insert events or the delete events of a task, on their way to a file."""

    _checksum: Callable[[Ids, pa.Array, OrcType], int] = staticmethod(event_checksum)

    def __init__(
        self,
        fs: FileSystem,
        task: BucketTask,
        inputs: Sequence[Input],
        keep: Callable[[EventFile, Ids], Bools | None],
        keeps_run: Callable[[RowIdRun], bool],
    ) -> None:
        """`keep`: which events stay, None for all; `keeps_run`: whether surely all of these do."""
        self._fs = fs
        self._task = task
        self._sources = [(_reopen(fs, item), item) for item in inputs]
        self._keep = keep
        self._keeps_run = keeps_run
        self._target = arrow_type(task.row)
        self._has_sized_text = any(node.kind in SIZED_TEXTS for node in task.row.walk())
        self._proleptic = task.calendar == PROLEPTIC_GREGORIAN
        self._expected = RowProof()
        self._held_bytes = 0
        self.rows_read = 0

    def write(self) -> OutputFile | None:
        """Write the events that are kept; None when there are none."""
        pieces = list(self._pieces())
        if not pieces:
            return None
        block_size = max(source.tail.block_size for source, _ in self._sources)
        return write_output(self._fs, self._task, block_size, self._events(pieces), lambda: self._expected)

    def write_segment(self, number: int) -> Segment:
        """Write only what must be encoded; stripes that can be copied are named, to be copied once, by the join."""
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
        found: list[StripeCopy] = []
        done = 0
        for before, copy in copies:
            found += [*encoded[done:before], copy]
            done = before
        found += encoded[done:]
        return Segment(number, tuple(found), len(encoded), self._expected)

    def _events(self, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch | StripeCopy]:
        collapses = self._task.kind is CompactionKind.MINOR
        for item in merge(pieces, self._drop if collapses else None):
            yield item if isinstance(item, StripeCopy) else with_ids(*item)

    def _drop(self, ids: Ids, rows: pa.Array) -> None:
        """Events that the merge leaves out."""
        values = event_checksum(ids, rows, self._task.row) if self._task.verify.compares_values else 0
        self._expected -= RowProof(len(ids.current), key_checksum(ids.keys), values)

    def _pieces(self) -> Iterator[Piece]:
        """The stripes of all files that keep an event, with the range of their keys; ids are read, rows are not."""
        held: list[Chunk] = []
        tree = acid_tree(self._task.row)
        for source, item in self._sources:
            copies = self._may_copy(source, tree)
            with source.open() as events:
                for stripe in range(*(item.stripes or (0, events.stripes))):
                    copied = self._clean(source, stripe) if copies else None
                    if copied:
                        yield copied
                        continue
                    is_held = self._is_held(source, stripe)
                    ids, rows = self._both(events, stripe) if is_held else (events.ids(stripe), None)
                    self.rows_read += len(ids.current)
                    kept = self._kept(source, ids)
                    ids = ids.take(kept)
                    if not len(ids.current) or is_held:
                        working.done(_length(source, stripe))
                    if not len(ids.current):
                        continue
                    load = partial(self._load, source, stripe)
                    if rows is not None:
                        rows = rows if kept is None else kept_rows(rows, kept)
                        self._held_bytes += rows.nbytes
                        held.append(_chunk(source, ids, rows))
                        self._see(ids)
                        yield Piece(*key_range(ids.keys), load, held=held[-1])
                        continue
                    facts = KeyFacts.of(ids.keys)
                    copy = self._copy(source, stripe, ids, facts) if copies and kept is None else None
                    values = 0
                    if self._task.verify.compares_values:
                        values = self._checksum(ids, self._rows(events, stripe, kept), self._task.row)
                    self._see(ids)
                    self._expected += RowProof(len(ids.current), facts.checksum, values)
                    yield Piece(facts.first, facts.last, load, copy, is_small=is_small(source.tail.stripes[stripe]))
        keys = Keys.concat(chunk.ids.keys for chunk in held)  # values of what is held are not compared
        self._expected += RowProof(len(keys), key_checksum(keys))

    def _see(self, ids: Ids) -> None:
        """Events that are kept, before any of their rows is written."""

    def _may_copy(self, source: EventFile, tree: OrcType) -> bool:
        """Whether stripes of a file may stand in the output as they are; `tree` is its type."""
        task = self._task
        is_native = source.synthetic is None
        return task.may_copy and is_native and has_large_stripe(source) and agrees(source, task, tree)

    @staticmethod
    def _copy(source: EventFile, stripe: int, ids: Ids, facts: KeyFacts) -> StripeCopy | None:
        """A stripe, all of whose events are kept, for the writer to copy; None for one that is out of order."""
        counts = counts_of(ids)
        if counts is None or not facts.ascends or facts.repeats:
            return None
        return describe(source.tail, source.path, stripe, counts, facts)

    def _clean(self, source: EventFile, stripe: int) -> Piece | None:
        """A stripe that can be copied, where its ids need not even be decoded to see that."""
        run = None if self._task.verify.compares_values else id_run(source.tail, stripe)
        if run is None or not self._keeps_run(run):
            return None
        facts = KeyFacts.of_run(run)
        insert, update, delete = (run.count if kind == run.operation else 0 for kind in range(3))
        copy = replace(describe(source.tail, source.path, stripe, (insert, update, delete), facts), ids=run.encoded)
        self.rows_read += run.count
        self._expected += RowProof(run.count, facts.checksum)
        load = partial(self._load, source, stripe)
        return Piece(facts.first, facts.last, load, copy, is_small=is_small(source.tail.stripes[stripe]))

    def _is_held(self, source: EventFile, stripe: int) -> bool:
        """Whether a stripe is so small that opening its file a second time would cost more than keeping its rows.

        Not where all values are compared: what is written is then read apart from what it is compared with.
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
        """The events of a stripe that are kept."""
        with source.open() as events:
            ids = events.ids(stripe)
            kept = self._kept(source, ids)
            rows = self._rows(events, stripe, kept)
        working.done(_length(source, stripe))
        return _chunk(source, ids.take(kept), rows)

    def _kept(self, source: EventFile, ids: Ids) -> Bools | None:
        """Which events stay; None for all."""
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
        rows = conform(rows, self._target, source.fs.display(source.path))
        if self._has_sized_text or not SIZED_TEXTS.isdisjoint(source.tail.schema.kinds):
            rows = fit_text(rows, source.row_type, self._task.row)
        return rows


class _Shared(_Side):
    """The rows of a share of a rebalance, which get their new ids on the way."""

    _checksum = staticmethod(spread_checksum)

    def __init__(self, fs: FileSystem, task: BucketTask, share: Share, dead: DeleteSet) -> None:
        def keep(source: EventFile, ids: Ids) -> Bools:
            live = live_rows(source, ids, task.write_ids, dead)
            own = share.holds(ids.keys)
            return own if live is None else own & live

        inputs = [replace(task.inserts[place], stripes=span) for place, span in sorted(share.spans.items())]
        super().__init__(fs, task, inputs, keep, lambda _: False)
        self._share = share
        self._seen: list[Longs] = [np.empty(0, np.int64)]
        self._left_out: list[Longs] = [np.empty(0, np.int64)]

    def numbered(self) -> Iterator[pa.RecordBatch]:
        """In order, with the ids that they get."""
        share, at = self._share, -self._share.skip
        for ids, rows in _all_in_order(list(self._pieces())):
            count = len(ids.current)
            low, high = (min(max(end - at, 0), count) for end in (0, share.count))
            for part in (slice(low), slice(high, count)):
                self._leave_out(ids.take(part), rows[part])
            if low < high:
                original = ids.keys.original[low:high]
                keys = share.new_keys(original, self._task.bucket, at + low)
                new = Ids(np.full(high - low, INSERT, np.int64), keys, original)
                yield with_ids(new, rows.slice(low, high - low))
            at += count

    def proof(self) -> RowProof:
        """What is to be written, from the ids as they were first read: rows in the order of their write ids get
        numbers that follow each other.
        """
        first, second = (np.concatenate(some) for some in (self._seen, self._left_out))
        write_ids, at = np.unique(np.concatenate((first, second)), return_inverse=True)
        counts = np.bincount(at[: len(first)], minlength=len(write_ids)) - np.bincount(
            at[len(first) :], minlength=len(write_ids)
        )
        if counts.min(initial=0) < 0 or counts.sum() != self._share.count:
            raise _changed(int(counts.sum()), self._share.count)
        keys = self._share.new_keys(np.repeat(write_ids, counts), self._task.bucket)
        return RowProof(self._share.count, key_checksum(keys), self._expected.values)

    def _see(self, ids: Ids) -> None:
        self._seen.append(ids.keys.original)

    def _leave_out(self, ids: Ids, rows: pa.Array) -> None:
        self._left_out.append(ids.keys.original)
        if self._task.verify.compares_values:
            self._expected -= RowProof(0, 0, spread_checksum(ids, rows, self._task.row))


class _Sorted(_Side):
    """The rows of one bucket of a rebalance that sorts all rows: what they are sorted by is read of all, in memory."""

    def __init__(self, fs: FileSystem, task: BucketTask, share: SortedShare, dead: DeleteSet) -> None:
        def keep(source: EventFile, ids: Ids) -> Bools | None:
            return live_rows(source, ids, task.write_ids, dead)

        super().__init__(fs, task, task.inserts, keep, lambda _: False)
        self._share = share

    def numbered(self) -> Iterator[pa.RecordBatch]:
        """In order, with the ids that they get.

        Raises:
            ConflictError: there are not as many rows as were counted.
            RefusedError: they are too large to be put together.
        """
        share, bucket = self._share, self._task.bucket
        keys, stripes, starts = self._keys()
        if starts[-1] != share.total:
            raise _changed(int(starts[-1]), share.total)
        chosen = sorted_places(keys)[share.number : share.number + share.count]
        as_stored = np.argsort(chosen)
        found = chosen[as_stored]
        cuts = np.searchsorted(found, starts)
        parts: list[pa.Array] = []
        for (source, stripe), start, low, high in zip(stripes, starts, cuts, cuts[1:], strict=False):
            if low < high:
                parts.append(self._load(source, stripe).rows.take(pa.array(found[low:high] - start)))
                if self._task.verify.compares_values:
                    self._expected += RowProof(0, 0, self._values(parts[-1]))
        try:
            rows = pa.concat_arrays(same_types(parts)).take(pa.array(np.argsort(as_stored)))
        except pa.ArrowInvalid as error:
            raise RefusedError(
                f"the {share.count} rows of a bucket are too large to be sorted", str(error), "give more `buckets`"
            ) from error
        for first in range(0, share.count, HELD_ROWS):
            some = share.new_keys(bucket, first, min(first + HELD_ROWS, share.count))
            ids = Ids(np.full(len(some), INSERT, np.int64), some, some.original)
            yield with_ids(ids, rows.slice(first, len(some)))

    def proof(self) -> RowProof:
        """What is to be written, whose values were seen before they were sorted."""
        keys = self._share.new_keys(self._task.bucket, 0, self._share.count)
        return RowProof(len(keys), key_checksum(keys), self._expected.values)

    def _keys(self) -> tuple[list[pa.Table], list[tuple[EventFile, int]], Longs]:
        """What the rows of all stripes are sorted by, and how many rows come before each stripe."""
        keys: list[pa.Table] = []
        stripes: list[tuple[EventFile, int]] = []
        counts = [0]
        for source, _ in self._sources:
            with source.open() as events:
                for stripe in range(events.stripes):
                    ids, rows = self._both(events, stripe)
                    kept = self._kept(source, ids)
                    rows = rows if kept is None else kept_rows(rows, kept)
                    keys.append(sort_keys(rows, self._share.order))
                    stripes.append((source, stripe))
                    counts.append(len(rows))
        return keys, stripes, np.cumsum(np.array(counts, np.int64))

    def _values(self, rows: pa.Array) -> int:
        original = np.full(len(rows), self._share.write_id, np.int64)
        ids = Ids(original, Keys(original, original, original), original)
        return spread_checksum(ids, rows, self._task.row)


def _all_in_order(pieces: Sequence[Piece]) -> Iterator[tuple[Ids, pa.Array]]:
    """What :func:`merge` gives of pieces that mostly overlap: sorted at once, as long as one array holds it."""
    if not pieces:
        return
    try:
        events = sorted_events(Chunk.concat([piece.held or piece.load() for piece in pieces]))
    except pa.ArrowInvalid:
        for item in merge(pieces):
            assert not isinstance(item, StripeCopy)  # none may be copied where rows get other ids
            yield item
        return
    yield events.ids, events.rows


def _changed(found: int, counted: int) -> ConflictError:
    return ConflictError(
        "the files of a rebalance changed while they were read",
        f"{found} rows are where {counted} were counted",
        "nothing was published; run it again",
    )


def _length(source: EventFile, stripe: int) -> int:
    return stripe_length(source.tail.stripes[stripe])


def _chunk(source: EventFile, ids: Ids, rows: pa.Array) -> Chunk:
    return Chunk(ids, np.full(len(ids.current), source.file.statement_id, np.int64), rows)
