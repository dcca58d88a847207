"""Written files: read again and compared with what was to be written; segments put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa

from acidctl.compaction.merge.stripe_copy import counts_of, describe
from acidctl.compaction.proof.checksum import RowProof, add
from acidctl.compaction.proof.keys import Key, KeyFacts
from acidctl.compaction.proof.second_reader import SecondReader
from acidctl.compaction.proof.sent import SummedSink, Taken, mismatch, require_bytes, take
from acidctl.compaction.proof.values import event_checksum, spread_checksum
from acidctl.compaction.tasks import BucketResult, BucketTask, JoinTask, OutputFile, StripeCopy
from acidctl.errors import BadDataError, VerifyError
from acidctl.orc.read.reader import OrcFile, open_orc
from acidctl.orc.tail import Tail
from acidctl.orc.write.acid_writer import AcidFileResult, AcidWriter
from acidctl.rows.read.events import ID_COLUMNS, Ids, read_ids
from acidctl.storage import registry
from acidctl.storage.port import FileSystem

OnValues = Callable[[int, Ids, pa.Array], None]
"""Takes the number, ids and rows of a stripe."""


def open_writer(sink: SummedSink, task: BucketTask, block_size: int = 0) -> AcidWriter:
    """The writer of a task's file; `block_size` is the largest among the stripes that may be copied."""
    return AcidWriter(
        cast(BinaryIO, sink),
        task.row,
        task.settings,
        calendar=task.calendar,
        block_size=block_size,
        acid_version=task.acid_version,
    )


def join_segments(task: JoinTask) -> BucketResult:
    """Copy the stripes of all segments into one file; without segments it has no rows.

    Raises:
        VerifyError: the file is not what the segments make.
    """
    like = task.like
    stripes = [stripe for segment in task.segments for stripe in segment.stripes]
    if task.segments and not stripes:
        return BucketResult(like.bucket)
    fs = registry.open_file_system(like.storage)
    expected = sum((segment.expected for segment in task.segments), RowProof())
    block_size = max((stripe.block_size for stripe in stripes), default=0)
    output = write_output(fs, like, block_size, stripes, lambda: expected)
    encoded = sum(segment.encoded for segment in task.segments)
    return BucketResult(like.bucket, replace(output, stripes_copied=len(stripes) - encoded))


def write_output(
    fs: FileSystem,
    task: BucketTask,
    block_size: int,
    items: Iterable[pa.RecordBatch | StripeCopy],
    expected: Callable[[], RowProof],
) -> OutputFile:
    """Write events, and stripes of other files as they are, to a new file of a task, and prove it.

    Args:
        block_size: the largest among the stripes.
        items: in order.
        expected: what the file is to hold, as it is known once all items are written.

    Raises:
        BadDataError: keys are out of order, or the file of a stripe has become shorter.
        StorageError: bytes that were read twice came differently.
        VerifyError: the file is not what was to be written.
    """
    path = task.new_attempt(task.name)
    copies: dict[int, StripeCopy] = {}
    taken: list[Taken] = []
    with fs.open_output(path, private=True) as file:
        sink = SummedSink(file)
        writer = open_writer(sink, task, block_size)
        for item in items:
            if isinstance(item, StripeCopy):
                append = partial(writer.copy_stripe, item.stripe)
                twice = task.verify.compares_values
                taken.append(take(fs, item.path, item.offset, item.length, sink=sink, append=append, twice=twice))
                copies[writer.flush() - 1] = item
            else:
                writer.write(item)
        result = writer.close()
    if task.verify.compares_bytes:
        require_bytes(fs, path, sink, taken)
    return _proven(fs, task, path, result, copies=copies, expected=expected())


def stripes_of(
    fs: FileSystem,
    path: str,
    on_values: OnValues | None = None,
    copies: Mapping[int, StripeCopy] | None = None,
) -> Iterator[StripeCopy]:
    """The stripes of a file that was just written, read again; with proof that it is in order and indexed.

    Args:
        copies: stripes that were copied.  Where their ids were not decoded before, the same bytes of ids must be there;
            the ids of all others are decoded.
        on_values: called with the number, ids and rows of each, where they too are to be read.

    Raises:
        VerifyError: it is not.
    """
    previous: Key | None = None
    with open_orc(fs, path) as orc:
        index = orc.tail.key_index() or []
        for stripe in range(orc.stripe_count):
            made = copies.get(stripe) if copies else None
            known = _copied(fs, orc.tail, stripe, made) if made else None
            found = _decoded(fs, orc, stripe, on_values) if known is None or on_values else known
            is_next = previous is None or previous <= found.stripe.first
            if not is_next or index[stripe : stripe + 1] != [found.stripe.last]:
                raise _mismatch(fs, path, f"stripe {stripe} is out of order or not in the key index")
            previous = found.stripe.last
            yield found


def _decoded(fs: FileSystem, orc: OrcFile, stripe: int, on_values: OnValues | None) -> StripeCopy:
    try:
        batch = orc.read_stripe(stripe, None if on_values else ID_COLUMNS)
    except BadDataError as error:
        raise _mismatch(fs, orc.tail.path, f"stripe {stripe} cannot be read: {error.why}") from error
    ids = read_ids(batch, fs.display(orc.tail.path))
    if on_values:
        on_values(stripe, ids, batch.column("row"))
    facts, counts = KeyFacts.of(ids.keys), counts_of(ids)
    if counts is None or not facts.ascends:
        raise _mismatch(fs, orc.tail.path, f"the keys or operations of stripe {stripe} are not in order")
    return describe(orc.tail, orc.tail.path, stripe, counts, facts)


def _copied(fs: FileSystem, tail: Tail, stripe: int, source: StripeCopy) -> StripeCopy | None:
    """The copy of a stripe; None where its ids must be decoded."""
    info = tail.stripes[stripe]
    found = replace(source, path=tail.path, offset=info.offset, stripe=replace(source.stripe, info=info))
    same = (
        found.length == source.length
        and info.numberOfRows == source.stripe.info.numberOfRows
        and tail.metadata.stripeStats[stripe] == source.stripe.statistics
        and (source.ids is None or source.ids.are_in(tail, stripe))
    )
    if not same:
        raise _mismatch(fs, tail.path, f"stripe {stripe} is not the one of {fs.display(source.path)} it is to be")
    return found if source.ids else None


def _proven(
    fs: FileSystem,
    task: BucketTask,
    path: str,
    result: AcidFileResult,
    *,
    copies: Mapping[int, StripeCopy],
    expected: RowProof,
) -> OutputFile:
    """The written file, read again and compared with what was to be written: all ids; and where asked, all values.

    Raises:
        VerifyError: they differ.
    """
    with fs.open_input(path) if task.verify.compares_values else nullcontext() as file:
        values = _Values(fs, task, path, copies, file) if file else None
        stripes = list(stripes_of(fs, path, values.add if values else None, copies))
    found = sum(
        (RowProof(s.stripe.info.numberOfRows, s.checksum) for s in stripes),
        RowProof(values=values.sum if values else 0),
    )
    if found != expected:
        differs = "their keys differ" if found.keys != expected.keys else "values of their columns differ"
        raise _mismatch(fs, path, f"{expected.rows} rows were to be written and {found.rows} are there; {differs}")
    counts = (result.inserts, result.updates, result.deletes)
    if counts != tuple(sum(s.stripe.counts[kind] for s in stripes) for kind in range(3)):
        raise _mismatch(fs, path, "its operations are not those of hive.acid.stats")
    made = OutputFile(path, task.name, result.bytes, result.stripes, len(copies), expected, found, counts)
    return replace(made, first=stripes[0].stripe.first, last=stripes[-1].stripe.last) if stripes else made


class _Values:
    """All values of a written file as they are read again, with a look by pyorc at the first rows of what was encoded.

    Attributes:
        sum: their checksum.
    """

    def __init__(
        self, fs: FileSystem, task: BucketTask, path: str, copies: Mapping[int, StripeCopy], file: BinaryIO
    ) -> None:
        self._fs, self._task, self._path, self._copies = fs, task, path, copies
        self._second = SecondReader(file, task.row.children, fs.display(path))
        self.sum = 0

    def add(self, stripe: int, ids: Ids, rows: pa.Array) -> None:
        """Take a stripe.

        Raises:
            VerifyError: pyorc reads something else.
        """
        if self._task.is_spread and not np.array_equal(ids.current, ids.keys.original):
            raise _mismatch(self._fs, self._path, f"rows of stripe {stripe} are not of the write id that they claim")
        checksum = spread_checksum if self._task.is_spread else event_checksum
        self.sum = add(self.sum, checksum(ids, rows, self._task.row))
        source = self._copies.get(stripe)
        # By this compaction: in this file, or in that of a segment from which it was copied.
        is_encoded = source is None or source.path.startswith(f"{self._task.attempts}/")
        if is_encoded and (column := self._second.differing(stripe, rows)):
            raise _mismatch(self._fs, self._path, f"pyorc reads other values in column {column} of stripe {stripe}")


def _mismatch(fs: FileSystem, path: str, why: str) -> VerifyError:
    return mismatch(fs.display(path), why)
