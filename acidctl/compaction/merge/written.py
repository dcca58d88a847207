"""Written files: read again and compared with what was to be written; segments put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import BinaryIO, cast

import pyarrow as pa

from acidctl.compaction.merge.stripe_copy import counts_of, describe
from acidctl.compaction.proof.checksum import Crc, RowProof, add
from acidctl.compaction.proof.keys import Key, KeyFacts
from acidctl.compaction.proof.second_reader import SecondReader
from acidctl.compaction.proof.sent import SummedSink, Taken, mismatch, require_again, require_bytes
from acidctl.compaction.proof.values import event_checksum
from acidctl.compaction.tasks import BucketResult, BucketTask, JoinTask, OutputFile, StripeCopy
from acidctl.compaction.working import through
from acidctl.errors import BadDataError, VerifyError
from acidctl.orc.read.reader import OrcFile, open_orc
from acidctl.orc.tail import Tail
from acidctl.orc.write.acid_writer import AcidFileResult, AcidWriter
from acidctl.rows.read.events import ID_COLUMNS, Ids, read_ids
from acidctl.storage import registry
from acidctl.storage.port import FileSystem
from acidctl.storage.ranged import pieces


def open_writer(sink: SummedSink, task: BucketTask, block_size: int) -> AcidWriter:
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
    """Copy the stripes of all segments into one file.

    Raises:
        VerifyError: the file is not what the segments make.
    """
    like = task.like
    fs = registry.open_file_system(like.storage)
    stripes = [stripe for segment in task.segments for stripe in segment.stripes]
    expected = sum((segment.expected for segment in task.segments), RowProof())
    if not stripes:
        return BucketResult(like.bucket)
    path = like.new_attempt(like.name)
    with fs.open_output(path, private=True) as file:
        sink = SummedSink(file)
        writer = open_writer(sink, like, max(stripe.block_size for stripe in stripes))
        copier = Copier(fs, writer, sink, twice=like.verify.compares_values)
        for stripe in stripes:
            copier.copy(stripe)
        result = writer.close()
    if like.verify.compares_bytes:
        require_bytes(fs, path, sink, copier.made)
    output = proven(fs, like, path, result=result, copies=copier.copies, expected=expected)
    encoded = sum(segment.encoded for segment in task.segments)
    output = replace(output, stripes_copied=len(stripes) - encoded)
    return BucketResult(like.bucket, output)


class Copier:
    """Copies stripes of other files into a writer.

    Attributes:
        copies: what was copied, by the place of the stripe in the written file.
        made: the same in their order, with what is known of their bytes.
    """

    def __init__(self, fs: FileSystem, writer: AcidWriter, sink: SummedSink, *, twice: bool) -> None:
        """`twice`: read all of them a second time, and compare."""
        self._twice = twice
        self._fs = fs
        self._writer = writer
        self._sink = sink
        self.copies: dict[int, StripeCopy] = {}
        self.made: list[Taken] = []

    def copy(self, stripe: StripeCopy) -> None:
        """Take one as it is.

        Raises:
            BadDataError: its keys are out of order, or its file has become shorter.
            StorageError: the second time something else came.
        """
        # The writer notices when the stripe is not whole.
        crc, chunks = Crc(), pieces(self._fs, stripe.path, stripe.offset, stripe.length)
        self._writer.copy_stripe(stripe.stripe, through(crc.through(chunks)))
        if self._twice:
            require_again(self._fs, stripe.path, stripe.offset, stripe.length, crc.value)
        self.copies[self._writer.flush() - 1] = stripe
        self.made.append(Taken(stripe.path, crc.value, self._sink.count - stripe.length, self._sink.count))


def stripes_of(
    fs: FileSystem,
    path: str,
    on_values: Callable[[Ids, pa.Array], None] | None = None,
    copies: Mapping[int, StripeCopy] | None = None,
) -> Iterator[StripeCopy]:
    """The stripes of a file that was just written, read again; with proof that it is in order and indexed.

    Args:
        copies: stripes that were copied.  Where their ids were not decoded before, the same bytes of ids must be there;
            the ids of all others are decoded.
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


def proven(
    fs: FileSystem,
    task: BucketTask,
    path: str,
    *,
    result: AcidFileResult,
    copies: Mapping[int, StripeCopy],
    expected: RowProof,
) -> OutputFile:
    """The written file, read again and compared with what was to be written: all ids; and where asked, all values.

    Raises:
        VerifyError: they differ.
    """
    with _Values(fs, task, path, copies) if task.verify.compares_values else nullcontext() as values:
        stripes = list(stripes_of(fs, path, values.add if values else None, copies))
    found = sum(
        (RowProof(s.stripe.info.numberOfRows, s.checksum) for s in stripes),
        RowProof(values=values.sum if values else 0),
    )
    if found != expected:
        differs = "their keys differ" if found.keys != expected.keys else "values of their columns differ"
        raise _mismatch(fs, path, f"{expected.rows} rows were to be written and {found.rows} are there; {differs}")
    counts = tuple(sum(s.stripe.counts[kind] for s in stripes) for kind in range(3))
    if counts != (result.inserts, result.updates, result.deletes):
        raise _mismatch(fs, path, "its operations are not those of hive.acid.stats")
    first, last = stripes[0].stripe.first, stripes[-1].stripe.last
    return OutputFile(path, task.name, result.bytes, result.stripes, len(copies), expected, found, counts, first, last)


class _Values:
    """All values of a written file as they are read again, with a look by pyorc at the first rows of what was encoded.

    Attributes:
        sum: their checksum.
    """

    def __init__(self, fs: FileSystem, task: BucketTask, path: str, copies: Mapping[int, StripeCopy]) -> None:
        self._fs, self._task, self._path, self._copies = fs, task, path, copies
        self._stripe = self.sum = 0
        self._file = fs.open_input(path)
        try:
            self._second = SecondReader(self._file, task.row.children, fs.display(path))
        except BaseException:
            self._file.close()
            raise

    def add(self, ids: Ids, rows: pa.Array) -> None:
        """Take the next stripe.

        Raises:
            VerifyError: pyorc reads something else.
        """
        self.sum = add(self.sum, event_checksum(ids, rows, self._task.row))
        if self._is_encoded(self._stripe) and (column := self._second.differing(self._stripe, rows)):
            raise _mismatch(
                self._fs, self._path, f"pyorc reads other values in column {column} of stripe {self._stripe}"
            )
        self._stripe += 1

    def _is_encoded(self, stripe: int) -> bool:
        """By this compaction: in this file, or in that of a segment from which it was copied."""
        source = self._copies.get(stripe)
        return source is None or source.path.startswith(f"{self._task.attempts}/")

    def __enter__(self) -> _Values:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _mismatch(fs: FileSystem, path: str, why: str) -> VerifyError:
    return mismatch(fs.display(path), why)
