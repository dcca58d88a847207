"""Written files: read again and compared with what was to be written; segments put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

import pyarrow as pa

from acidctl.acid.names import format_bucket
from acidctl.compaction.checksum import Proof, add
from acidctl.compaction.keys import Key, KeyFacts
from acidctl.compaction.merge import StripeCopy
from acidctl.compaction.stripes import describe
from acidctl.compaction.tasks import BucketResult, BucketTask, JoinTask, OutputFile, new_attempt
from acidctl.compaction.values import value_checksum
from acidctl.errors import VerifyError
from acidctl.orc.acid_writer import AcidFileResult, AcidWriter
from acidctl.orc.reader import open_orc
from acidctl.rows.deletes import Keys
from acidctl.rows.events import ID_COLUMNS, read_ids
from acidctl.storage.port import FileSystem

COPY_CHUNK = 8 << 20
"""Bytes of a copied stripe that are held at a time."""


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
    with fs.open_output(path) as sink:
        writer = open_writer(sink, like, max(stripe.block_size for stripe in stripes))
        for stripe in stripes:
            writer.copy_stripe(stripe.stripe, bytes_of(fs, stripe))
        result = writer.close()
    copied = len(stripes) - sum(segment.encoded for segment in task.segments)
    return BucketResult(
        like.bucket, proven(fs, like, path, name, result=result, copied=copied, expected=expected), None, 0, 0
    )


def bytes_of(fs: FileSystem, copy: StripeCopy) -> Iterator[bytes]:
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


def stripes_of(
    fs: FileSystem, path: str, on_values: Callable[[Keys, pa.Array], None] | None = None
) -> Iterator[StripeCopy]:
    """The stripes of a file that was just written, read again; with proof that it is in order and indexed.

    Args:
        on_values: called with the keys and rows of each, where they too are to be read.

    Raises:
        VerifyError: it is not.
    """
    previous: Key | None = None
    with open_orc(fs, path) as orc:
        index = orc.tail.key_index() or []
        for stripe in range(orc.stripe_count):
            batch = orc.read_stripe(stripe, None if on_values else ID_COLUMNS)
            ids = read_ids(batch, fs.display(path))
            if on_values:
                on_values(ids.keys, batch.column("row"))
            facts = KeyFacts.of(ids.keys)
            found = describe(orc.tail, path, stripe, ids, facts)
            ascends = facts.ascends and (previous is None or previous <= facts.first)
            if not ascends or index[stripe : stripe + 1] != [found.stripe.last]:
                raise _mismatch(fs, path, f"stripe {stripe} is out of order or not in the key index")
            previous = found.stripe.last
            yield found


def proven(
    fs: FileSystem, task: BucketTask, path: str, name: str, *, result: AcidFileResult, copied: int, expected: Proof
) -> OutputFile:
    """The written file, read again and compared with what was to be written.

    Raises:
        VerifyError: they differ.
    """
    values = 0

    def add_values(keys: Keys, rows: pa.Array) -> None:
        nonlocal values
        values = add(values, value_checksum(keys, rows, task.row))

    stripes = list(stripes_of(fs, path, add_values if task.verify_values else None))
    found = sum((Proof(s.stripe.info.numberOfRows, s.checksum) for s in stripes), Proof(values=values))
    if found != expected:
        differs = "their keys differ" if found.keys != expected.keys else "values of their columns differ"
        raise _mismatch(fs, path, f"{expected.rows} rows were to be written and {found.rows} are there; {differs}")
    counts = tuple(sum(s.stripe.counts[kind] for s in stripes) for kind in range(3))
    if counts != (result.inserts, result.updates, result.deletes):
        raise _mismatch(fs, path, "its operations are not those of hive.acid.stats")
    first, last = stripes[0].stripe.first, stripes[-1].stripe.last
    return OutputFile(path, name, result.bytes, result.stripes, copied, expected, found, counts, first, last)


def _mismatch(fs: FileSystem, path: str, why: str) -> VerifyError:
    return VerifyError(f"the written file {fs.display(path)} is wrong", why, "nothing was published; report this")
