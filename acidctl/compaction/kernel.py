"""One bucket of a compaction: task in, result out; the same function in this process and in a Spark executor."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from acidctl.acid.layout import Role
from acidctl.acid.names import format_bucket
from acidctl.acid.triggers import CompactionKind
from acidctl.compaction.checksum import Proof, key_checksum
from acidctl.compaction.merge import Chunk, Key, Piece, StripeCopy, is_sorted, key_range, merge
from acidctl.compaction.plan import PROLEPTIC_GREGORIAN, BucketTask, Input
from acidctl.compaction.stripes import describe, fits, stripe_copy
from acidctl.errors import VerifyError
from acidctl.orc.acid_writer import AcidFileResult, AcidWriter
from acidctl.orc.reader import open_orc
from acidctl.orc.source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.orc.types import arrow_type
from acidctl.rows.deletes import Bools, Keys
from acidctl.rows.events import ID_COLUMNS, EventFile, Events, Ids, read_ids, with_ids
from acidctl.rows.scan import live_rows, load_deletes, visible_events
from acidctl.rows.schema import all_null, conform
from acidctl.storage.port import FileSystem

COPY_CHUNK = 8 << 20
"""Bytes of a copied stripe that are held at a time."""


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One written file.

    Attributes:
        attempt_path: absolute; a hidden name of this attempt, so that a repeated task never meets another's file.
        name: the name it will get, ``bucket_N``.
        stripes_copied: how many of its stripes are byte copies.
        expected: worked out from what was read, less what was dropped.
        found: worked out from the written file, read again.
        counts: inserts, updates and deletes in it.
        first, last: its least and greatest key.
    """

    attempt_path: str
    name: str
    bytes: int
    stripes: int
    stripes_copied: int
    expected: Proof
    found: Proof
    counts: tuple[int, int, int]
    first: Key
    last: Key

    @property
    def rows(self) -> int:
        """Events in it."""
        return self.found.rows


@dataclass(frozen=True, slots=True)
class Segment:
    """What a task for a part of a bucket leaves: stripes that are still to be put together.

    Attributes:
        number: its place in the bucket.
        stripes: in order; of the inputs, where they can be copied, and of the segment's own file.
        encoded: how many of them are of its own file.
    """

    number: int
    stripes: tuple[StripeCopy, ...]
    encoded: int
    expected: Proof


@dataclass(frozen=True, slots=True)
class BucketResult:
    """What a task did; None for a kind of file that got no event.

    Attributes:
        segment: of a task that is a part of a bucket, instead of `inserts`.
    """

    bucket: int
    inserts: OutputFile | None
    deletes: OutputFile | None
    rows_read: int
    rows_dropped: int
    segment: Segment | None = None


@dataclass(frozen=True, slots=True)
class JoinTask:
    """One bucket's segments, to be put together.

    Attributes:
        like: a task of the bucket, for what its segments have in common.
        segments: in the order of their numbers.
    """

    like: BucketTask
    segments: tuple[Segment, ...]

    @property
    def weight(self) -> int:
        """Bytes to copy, for scheduling."""
        return sum(stripe.length for segment in self.segments for stripe in segment.stripes)


Task = BucketTask | JoinTask


def run_task(task: Task) -> BucketResult:
    """Read, merge, filter, write and read back one bucket or a segment of one; or put segments together.

    Raises:
        BadDataError: an input cannot be read.
        VerifyError: what was written is not what was to be written.
    """
    return _join(task) if isinstance(task, JoinTask) else _compact(task)


def _compact(task: BucketTask) -> BucketResult:
    fs = task.storage.open()
    inserts = [_reopen(fs, item) for item in task.inserts]
    deletes = [_reopen(fs, item) for item in task.deletes]
    kills = [_reopen(fs, item) for item in task.kills]
    major = task.kind is CompactionKind.MAJOR
    dead = load_deletes(kills, task.write_ids, same_write_id=not major)

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

    def keep_delete(_: EventFile, ids: Ids) -> Bools | None:
        return visible_events(ids, task.write_ids)

    insert_side = _Side(fs, task, list(zip(inserts, task.inserts, strict=True)), task.insert_directory, keep_insert)
    delete_side = _Side(fs, task, list(zip(deletes, task.deletes, strict=True)), task.delete_directory, keep_delete)
    segment = written = None
    if task.segment is None:
        written = insert_side.write()
    else:
        segment = insert_side.write_segment(task.segment)
    deleted = delete_side.write()
    read = insert_side.rows_read + delete_side.rows_read
    kept = sum(item.expected.rows for item in (written, segment, deleted) if item)
    return BucketResult(task.bucket, written, deleted, read, read - kept, segment)


def _reopen(fs: FileSystem, item: Input) -> EventFile:
    tail = read_tail(ByteSource(fs, item.path, item.length))
    return EventFile(fs, item.file, item.path, item.length, tail, item.synthetic)


class _Side:
    """The insert events or the delete events of a task, on their way to a file."""

    def __init__(
        self,
        fs: FileSystem,
        task: BucketTask,
        sources: Sequence[tuple[EventFile, Input]],
        directory: str,
        keep: Callable[[EventFile, Ids], Bools | None],
    ) -> None:
        self._fs = fs
        self._task = task
        self._sources = sources
        self._directory = directory
        self._keep = keep
        self._target = arrow_type(task.row)
        self._proleptic = task.calendar == PROLEPTIC_GREGORIAN
        self._expected = Proof()
        self.rows_read = 0

    def write(self) -> OutputFile | None:
        """Write the events that are kept; None when there are none."""
        pieces = list(self._pieces())
        if not pieces:
            return None
        name = format_bucket(self._task.bucket)
        path = self._new_path(name)
        copied = 0
        with self._fs.open_output(path) as sink:
            writer = _writer(sink, self._task, max(source.tail.block_size for source, _ in self._sources))
            for item in self._events(pieces):
                if isinstance(item, StripeCopy):
                    writer.copy_stripe(item.stripe, _bytes_of(self._fs, item))
                    copied += 1
                else:
                    writer.write(item)
            result = writer.close()
        return _proven(self._fs, self._task, path, name, result, copied, self._expected)

    def write_segment(self, number: int) -> Segment:
        """Write only what must be encoded; stripes that can be copied are named, to be copied once, by the join."""
        path = self._new_path(f"segment_{number}")
        copies: list[tuple[int, StripeCopy]] = []
        with self._fs.open_output(path) as sink:
            writer = _writer(sink, self._task, 0)
            for item in self._events(list(self._pieces())):
                if isinstance(item, StripeCopy):
                    copies.append((writer.flush(), item))
                else:
                    writer.write(item)
            writer.close()
        encoded = list(_stripes_of(self._fs, path))
        stripes: list[StripeCopy] = []
        done = 0
        for before, copy in copies:
            stripes += [*encoded[done:before], copy]
            done = before
        stripes += encoded[done:]
        return Segment(number, tuple(stripes), len(encoded), self._expected)

    def _new_path(self, name: str) -> str:
        self._fs.make_dirs(self._directory)
        return f"{self._directory}/_attempt_{uuid.uuid4().hex}_{name}"

    def _events(self, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch | StripeCopy]:
        collapses = self._task.kind is CompactionKind.MINOR
        for item in merge(pieces, self._drop if collapses else None):
            if isinstance(item, StripeCopy):
                yield item
            else:
                ids, rows = item
                yield with_ids(ids, rows)

    def _drop(self, keys: Keys) -> None:
        """Events that the merge leaves out."""
        self._expected -= Proof(len(keys), key_checksum(keys))

    def _pieces(self) -> Iterator[Piece]:
        """The stripes of all files that keep an event, with the range of their keys; ids are read, rows are not."""
        for source, item in self._sources:
            copies = fits(source, self._task)
            with source.open() as events:
                for stripe in range(*(item.stripes or (0, events.stripes))):
                    ids = events.ids(stripe)
                    self.rows_read += len(ids.current)
                    kept = self._keep(source, ids)
                    copy = None
                    if kept is not None and not kept.all():
                        ids = ids.take(kept)
                    elif copies and len(ids.current):
                        copy = stripe_copy(source, stripe, ids)
                    if len(ids.current):
                        checksum = copy.checksum if copy else key_checksum(ids.keys)
                        self._expected += Proof(len(ids.current), checksum)
                        yield Piece(*key_range(ids.keys), self._loader(source, stripe), copy)

    def _loader(self, source: EventFile, stripe: int) -> Callable[[], Chunk]:
        def load() -> Chunk:
            with source.open() as events:
                ids = events.ids(stripe)
                kept = self._keep(source, ids)
                rows = self._rows(events, stripe)
                if kept is not None:
                    rows = rows.filter(pa.array(kept))
                    ids = ids.take(kept)
                return Chunk(ids, source.file.statement_id, rows)

        return load

    def _rows(self, events: Events, stripe: int) -> pa.Array:
        source = events.source
        if source.file.role is Role.DELETE:
            # A delete event has no row, whatever row type its file declares (section 3.1).
            return all_null(source.tail.stripes[stripe].numberOfRows, self._target)
        rows = events.rows(stripe, proleptic=self._proleptic)
        return conform(rows, self._target, source.fs.display(source.path))


def _writer(sink: BinaryIO, task: BucketTask, block_size: int) -> AcidWriter:
    return AcidWriter(
        sink, task.row, task.settings, calendar=task.calendar, block_size=block_size, acid_version=task.acid_version
    )


def _join(task: JoinTask) -> BucketResult:
    """Copy the stripes of all segments into one file."""
    like = task.like
    fs = like.storage.open()
    stripes = [stripe for segment in task.segments for stripe in segment.stripes]
    expected = sum((segment.expected for segment in task.segments), Proof())
    if not stripes:
        return BucketResult(like.bucket, None, None, 0, 0)
    name = format_bucket(like.bucket)
    path = f"{like.insert_directory}/_attempt_{uuid.uuid4().hex}_{name}"
    with fs.open_output(path) as sink:
        writer = _writer(sink, like, max(stripe.block_size for stripe in stripes))
        for stripe in stripes:
            writer.copy_stripe(stripe.stripe, _bytes_of(fs, stripe))
        result = writer.close()
    copied = len(stripes) - sum(segment.encoded for segment in task.segments)
    return BucketResult(like.bucket, _proven(fs, like, path, name, result, copied, expected), None, 0, 0)


def _bytes_of(fs: FileSystem, copy: StripeCopy) -> Iterator[bytes]:
    """A stripe's bytes in pieces."""
    left = copy.length
    with fs.open_input(copy.path) as file:
        file.seek(copy.offset)
        while left:
            chunk = file.read(min(left, COPY_CHUNK))
            if not chunk:
                return  # the writer notices that the stripe is not whole
            left -= len(chunk)
            yield chunk


def _stripes_of(fs: FileSystem, path: str) -> Iterator[StripeCopy]:
    """The stripes of a file that was just written, read again; with proof that it is in order and indexed.

    Raises:
        VerifyError: it is not.
    """
    previous: Key | None = None
    with open_orc(fs, path) as orc:
        index = orc.tail.key_index() or []
        for stripe in range(orc.stripe_count):
            ids = read_ids(orc.read_stripe(stripe, ID_COLUMNS), fs.display(path))
            found = describe(orc.tail, path, stripe, ids)
            ascends = is_sorted(ids.keys) and (previous is None or previous <= found.stripe.first)
            if not ascends or index[stripe : stripe + 1] != [found.stripe.last]:
                raise _mismatch(fs, path, f"stripe {stripe} is out of order or not in the key index")
            previous = found.stripe.last
            yield found


def _proven(
    fs: FileSystem, task: BucketTask, path: str, name: str, result: AcidFileResult, copied: int, expected: Proof
) -> OutputFile:
    """The written file, read again and compared with what was to be written.

    Raises:
        VerifyError: they differ.
    """
    stripes = list(_stripes_of(fs, path))
    found = sum((Proof(s.stripe.info.numberOfRows, s.checksum) for s in stripes), Proof())
    if found != expected:
        raise _mismatch(
            fs, path, f"{expected.rows} rows were to be written and {found.rows} are there, or their keys differ"
        )
    counts = tuple(sum(s.stripe.counts[kind] for s in stripes) for kind in range(3))
    if counts != (result.inserts, result.updates, result.deletes):
        raise _mismatch(fs, path, "its operations are not those of hive.acid.stats")
    first, last = stripes[0].stripe.first, stripes[-1].stripe.last
    return OutputFile(path, name, result.bytes, result.stripes, copied, expected, found, counts, first, last)


def _mismatch(fs: FileSystem, path: str, why: str) -> VerifyError:
    return VerifyError(f"the written file {fs.display(path)} is wrong", why, "nothing was published; report this")
