"""Written files: read again and compared with what was to be written; segments put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO

import pyarrow as pa

from acidctl.acid.names import format_bucket
from acidctl.compaction.checksum import Crc, Proof, add, crc_of
from acidctl.compaction.keys import Key, KeyFacts
from acidctl.compaction.merge import StripeCopy
from acidctl.compaction.stripes import counts_of, describe
from acidctl.compaction.tasks import BucketResult, BucketTask, JoinTask, OutputFile, new_attempt
from acidctl.compaction.values import event_checksum
from acidctl.compaction.working import through
from acidctl.errors import BadDataError, VerifyError
from acidctl.orc.acid_writer import AcidFileResult, AcidWriter
from acidctl.orc.reader import OrcFile, open_orc
from acidctl.orc.tail import Tail
from acidctl.rows.events import ID_COLUMNS, Ids, read_ids
from acidctl.storage.port import FileSystem
from acidctl.storage.ranged import pieces


def open_writer(sink: BinaryIO, task: BucketTask, block_size: int) -> AcidWriter:
    """The writer of a task's file; `block_size` is the largest among the stripes that may be copied."""
    return AcidWriter(
        sink, task.row, task.settings, calendar=task.calendar, block_size=block_size, acid_version=task.acid_version
    )


def join(task: JoinTask) -> BucketResult:
    """Copy the stripes of all segments into one file.

    Raises:
        VerifyError: the file is not what the segments make.
    """
    like = task.like
    fs = like.storage.open()
    stripes = [stripe for segment in task.segments for stripe in segment.stripes]
    expected = sum((segment.expected for segment in task.segments), Proof())
    if not stripes:
        return BucketResult(like.bucket, None, None, 0, 0)
    name = format_bucket(like.bucket)
    path = new_attempt(like, name)
    with fs.open_output(path, private=True) as sink:
        writer = open_writer(sink, like, max(stripe.block_size for stripe in stripes))
        copier = Copier(fs, writer, full=like.verify_values)
        for stripe in stripes:
            copier.copy(stripe)
        result = writer.close()
    output = proven(fs, like, path, name, result=result, copies=copier.copies, expected=expected)
    encoded = sum(segment.encoded for segment in task.segments)
    output = replace(output, stripes_copied=len(stripes) - encoded)
    return BucketResult(like.bucket, output, None, 0, 0)


@dataclass(frozen=True, slots=True)
class CopyMade:
    """A stripe that was copied, and the CRC-32 of its bytes where they came from, if all of them are to be compared."""

    source: StripeCopy
    crc: int | None


class Copier:
    """Copies stripes of other files into a writer.

    Attributes:
        copies: what was copied, by the place of the stripe in the written file.
    """

    def __init__(self, fs: FileSystem, writer: AcidWriter, *, full: bool) -> None:
        """`full`: all bytes are to be compared afterwards."""
        self._fs = fs
        self._writer = writer
        self._full = full
        self.copies: dict[int, CopyMade] = {}

    def copy(self, stripe: StripeCopy) -> None:
        """Take one as it is.

        Raises:
            BadDataError: its keys are out of order, or its file has become shorter.
        """
        crc, chunks = Crc(), through(_bytes_of(self._fs, stripe))
        self._writer.copy_stripe(stripe.stripe, crc.through(chunks) if self._full else chunks)
        self.copies[self._writer.flush() - 1] = CopyMade(stripe, crc.value if self._full else None)


def _bytes_of(fs: FileSystem, copy: StripeCopy) -> Iterator[bytes]:
    return pieces(fs, copy.path, copy.offset, copy.length)  # the writer notices when the stripe is not whole


def stripes_of(
    fs: FileSystem,
    path: str,
    on_values: Callable[[Ids, pa.Array], None] | None = None,
    copies: Mapping[int, CopyMade] | None = None,
) -> Iterator[StripeCopy]:
    """The stripes of a file that was just written, read again; with proof that it is in order and indexed.

    Args:
        copies: stripes that were copied.  Where their ids were not decoded before, the same bytes of ids must be there;
            the ids of all others are decoded.  Where a CRC is known, all bytes must be the same.
        on_values: called with the ids and rows of each, where they too are to be read.

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


def _decoded(
    fs: FileSystem, orc: OrcFile, stripe: int, on_values: Callable[[Ids, pa.Array], None] | None
) -> StripeCopy:
    try:
        batch = orc.read_stripe(stripe, None if on_values else ID_COLUMNS)
    except BadDataError as error:
        raise _mismatch(fs, orc.path, f"stripe {stripe} cannot be read: {error.why}") from error
    ids = read_ids(batch, fs.display(orc.path))
    if on_values:
        on_values(ids, batch.column("row"))
    facts, counts = KeyFacts.of(ids.keys), counts_of(ids)
    if counts is None or not facts.ascends:
        raise _mismatch(fs, orc.path, f"the keys or operations of stripe {stripe} are not in order")
    return describe(orc.tail, orc.path, stripe, counts, facts)


def _copied(fs: FileSystem, tail: Tail, stripe: int, made: CopyMade) -> StripeCopy | None:
    """The copy of a stripe; None where its ids must be decoded."""
    info, source = tail.stripes[stripe], made.source
    found = replace(source, path=tail.path, offset=info.offset, stripe=replace(source.stripe, info=info))
    same = (
        found.length == source.length
        and info.numberOfRows == source.stripe.info.numberOfRows
        and tail.metadata.stripeStats[stripe] == source.stripe.statistics
        and (source.ids is None or source.ids.are_in(tail, stripe))
        and (made.crc is None or made.crc == crc_of(_bytes_of(fs, found)))
    )
    if not same:
        raise _mismatch(fs, tail.path, f"stripe {stripe} is not the one of {fs.display(source.path)} it is to be")
    return found if source.ids else None


def proven(
    fs: FileSystem,
    task: BucketTask,
    path: str,
    name: str,
    *,
    result: AcidFileResult,
    copies: Mapping[int, CopyMade],
    expected: Proof,
) -> OutputFile:
    """The written file, read again and compared with what was to be written: all ids; and where asked, all values and
    all bytes of copied stripes.

    Raises:
        VerifyError: they differ.
    """
    values = 0

    def add_values(ids: Ids, rows: pa.Array) -> None:
        nonlocal values
        values = add(values, event_checksum(ids, rows, task.row))

    stripes = list(stripes_of(fs, path, add_values if task.verify_values else None, copies))
    found = sum((Proof(s.stripe.info.numberOfRows, s.checksum) for s in stripes), Proof(values=values))
    if found != expected:
        differs = "their keys differ" if found.keys != expected.keys else "values of their columns differ"
        raise _mismatch(fs, path, f"{expected.rows} rows were to be written and {found.rows} are there; {differs}")
    counts = tuple(sum(s.stripe.counts[kind] for s in stripes) for kind in range(3))
    if counts != (result.inserts, result.updates, result.deletes):
        raise _mismatch(fs, path, "its operations are not those of hive.acid.stats")
    first, last = stripes[0].stripe.first, stripes[-1].stripe.last
    return OutputFile(path, name, result.bytes, result.stripes, len(copies), expected, found, counts, first, last)


def _mismatch(fs: FileSystem, path: str, why: str) -> VerifyError:
    return VerifyError(f"the written file {fs.display(path)} is wrong", why, "nothing was published; report this")
