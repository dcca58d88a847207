"""One bucket of a compaction: task in, result out; the same function in this process and in a Spark executor."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from acidctl.acid.layout import Role
from acidctl.acid.names import format_bucket
from acidctl.acid.triggers import CompactionKind
from acidctl.compaction.checksum import add, key_checksum
from acidctl.compaction.merge import Chunk, Piece, StripeCopy, is_sorted, key_range, merge
from acidctl.compaction.plan import PROLEPTIC_GREGORIAN, BucketTask, Input
from acidctl.compaction.stripes import fits, stripe_copy
from acidctl.errors import VerifyError
from acidctl.orc.acid_writer import AcidWriter
from acidctl.orc.reader import open_orc
from acidctl.orc.source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.orc.types import arrow_type
from acidctl.rows.deletes import Bools
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
        checksum: of the keys of its rows, as read back from the file.
    """

    attempt_path: str
    name: str
    rows: int
    bytes: int
    stripes: int
    stripes_copied: int
    checksum: int


@dataclass(frozen=True, slots=True)
class BucketResult:
    """What a task did; None for a kind of file that got no event."""

    bucket: int
    inserts: OutputFile | None
    deletes: OutputFile | None
    rows_read: int
    rows_dropped: int


def run_task(task: BucketTask) -> BucketResult:
    """Read, merge, filter, write and read back one bucket.

    Raises:
        BadDataError: an input cannot be read.
        VerifyError: what was written is not what was to be written.
    """
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

    written = _write(fs, task, inserts, task.insert_directory, keep_insert)
    deleted = _write(fs, task, deletes, task.delete_directory, keep_delete) if deletes else None
    rows_read = sum(source.rows for source in (*inserts, *deletes))
    rows_written = sum(output.rows for output in (written, deleted) if output)
    return BucketResult(task.bucket, written, deleted, rows_read, rows_read - rows_written)


def _reopen(fs: FileSystem, item: Input) -> EventFile:
    tail = read_tail(ByteSource(fs, item.path, item.length))
    return EventFile(fs, item.file, item.path, item.length, tail, item.synthetic)


def _write(
    fs: FileSystem,
    task: BucketTask,
    sources: Sequence[EventFile],
    directory: str,
    keep: Callable[[EventFile, Ids], Bools | None],
) -> OutputFile | None:
    """Write the events of `sources` that are kept; None when there are none."""
    target = arrow_type(task.row)
    collapse = task.kind is CompactionKind.MINOR
    proleptic = task.calendar == PROLEPTIC_GREGORIAN
    pieces = list(_pieces(task, sources, keep, target, proleptic))
    merged = merge(pieces, collapse=collapse)
    first = next(merged, None)
    if first is None:
        return None
    block_size = max((source.tail.block_size for source in sources), default=0)
    name = format_bucket(task.bucket)
    path = f"{directory}/_attempt_{uuid.uuid4().hex}_{name}"
    fs.make_dirs(directory)
    rows = checksum = copied = 0
    with fs.open_output(path) as sink:
        writer = AcidWriter(
            sink, task.row, task.settings, calendar=task.calendar, block_size=block_size, acid_version=task.acid_version
        )
        for item in itertools.chain([first], merged):
            if isinstance(item, StripeCopy):
                writer.copy_stripe(item.stripe, _bytes_of(item))
                copied += 1
                rows += item.stripe.info.numberOfRows
                checksum = add(checksum, item.checksum)
            else:
                ids, values = item
                writer.write(with_ids(ids, values))
                rows += len(ids.current)
                checksum = add(checksum, key_checksum(ids.keys))
        result = writer.close()
    _verify(fs, path, rows, checksum)
    return OutputFile(path, name, rows, result.bytes, result.stripes, copied, checksum)


def _bytes_of(copy: StripeCopy) -> Iterator[bytes]:
    """A stripe's bytes in pieces."""
    info = copy.stripe.info
    left = info.indexLength + info.dataLength + info.footerLength
    with copy.fs.open_input(copy.path) as file:
        file.seek(copy.offset)
        while left:
            chunk = file.read(min(left, COPY_CHUNK))
            if not chunk:
                return  # the writer notices that the stripe is not whole
            left -= len(chunk)
            yield chunk


def _pieces(
    task: BucketTask,
    sources: Sequence[EventFile],
    keep: Callable[[EventFile, Ids], Bools | None],
    target: pa.StructType,
    proleptic: bool,
) -> Iterator[Piece]:
    """The stripes of all files that keep an event, with the range of their keys; ids are read, rows are not."""
    for source in sources:
        copies = fits(source, task)
        with source.open() as events:
            for stripe in range(events.stripes):
                ids = events.ids(stripe)
                kept = keep(source, ids)
                copy = None
                if kept is not None and not kept.all():
                    ids = ids.take(kept)
                elif copies:
                    copy = stripe_copy(source, stripe, ids)
                if len(ids.current):
                    yield Piece(*key_range(ids.keys), _loader(source, stripe, keep, target, proleptic), copy)


def _loader(
    source: EventFile,
    stripe: int,
    keep: Callable[[EventFile, Ids], Bools | None],
    target: pa.StructType,
    proleptic: bool,
) -> Callable[[], Chunk]:
    def load() -> Chunk:
        with source.open() as events:
            ids = events.ids(stripe)
            kept = keep(source, ids)
            rows = _rows(events, stripe, target, proleptic)
            if kept is not None:
                rows = rows.filter(pa.array(kept))
                ids = ids.take(kept)
            return Chunk(ids, source.file.statement_id, rows)

    return load


def _rows(events: Events, stripe: int, target: pa.StructType, proleptic: bool) -> pa.Array:
    source = events.source
    if source.file.role is Role.DELETE:
        # A delete event has no row, whatever row type its file declares (section 3.1).
        return all_null(source.tail.stripes[stripe].numberOfRows, target)
    return conform(events.rows(stripe, proleptic=proleptic), target, source.fs.display(source.path))


def _verify(fs: FileSystem, path: str, rows: int, checksum: int) -> None:
    """Read the written file again: its rows, the order of its keys, its index, its checksum."""
    found, total = 0, 0
    previous: tuple[int, int, int] | None = None
    with open_orc(fs, path) as orc:
        index = orc.tail.key_index() or []
        for stripe in range(orc.stripe_count):
            ids = read_ids(orc.read_stripe(stripe, ID_COLUMNS), fs.display(path))
            first, last = key_range(ids.keys)
            ascends = is_sorted(ids.keys) and (previous is None or previous <= first)
            if not ascends or index[stripe : stripe + 1] != [last]:
                raise _mismatch(fs, path, f"stripe {stripe} is out of order or not in the key index")
            previous = last
            found += len(ids.current)
            total = add(total, key_checksum(ids.keys))
    if (found, total) != (rows, checksum):
        raise _mismatch(fs, path, f"{rows} rows were written and {found} read back, or their keys differ")


def _mismatch(fs: FileSystem, path: str, why: str) -> VerifyError:
    return VerifyError(f"the written file {fs.display(path)} is wrong", why, "nothing was published; report this")
