"""Concatenation of ORC files of insert-only tables: stripes are copied byte for byte if possible, or encoded again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import BinaryIO, cast

import pyarrow as pa

from acidctl.compaction.merge.stripe_copy import agrees, is_small
from acidctl.compaction.proof.checksum import RowProof
from acidctl.compaction.proof.sent import SummedSink, Taken, mismatch, require_bytes, take
from acidctl.compaction.proof.values import value_checksum
from acidctl.compaction.tasks import PROLEPTIC_GREGORIAN, ConcatTask, OutputFile
from acidctl.compaction.working import done
from acidctl.orc.arrow import below
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import Tail, read_tail, stripe_length
from acidctl.orc.types import renumbered, to_proto
from acidctl.orc.write.acid_writer import Gathered
from acidctl.orc.write.file_assembler import CPP_WRITER, OrcAssembler, lowest_writer
from acidctl.orc.write.stripe_encoder import encode_stripes
from acidctl.orc.write.writer_settings import WHOLE
from acidctl.rows.convert.conform import conform
from acidctl.rows.read.events import EventFile
from acidctl.storage.port import FileSystem

_ACID_PREFIX = "hive.acid."


@dataclass(frozen=True, slots=True)
class _Piece:
    source: EventFile
    number: int

    @property
    def length(self) -> int:
        return stripe_length(self.source.tail.stripes[self.number])


def write_orc(fs: FileSystem, sources: Sequence[EventFile], task: ConcatTask) -> OutputFile:
    """Write the rows of all sources to one new file, in their order, and read it again.

    About one stripe of decoded rows is in memory.

    Args:
        sources: in read order, with at least one row.

    Raises:
        BadDataError: an input cannot be read, or its rows cannot be converted to the output's types.
        VerifyError: the file differs from the inputs.
    """
    path = task.new_attempt(task.name)
    with fs.open_output(path, private=True) as file:
        sink = SummedSink(file)
        writer = _Writer(fs, sink, sources, task)
        for copies, run in groupby(_plan(sources, task), key=lambda pair: pair[0]):
            for _, piece in run:
                if copies:
                    writer.copy(piece)
                else:
                    writer.encode(piece)
        size = writer.close()
    proof = _prove(fs, task, path, writer, sink)
    return OutputFile(
        path, task.name, size, len(writer.plain), writer.copied, writer.expected, proof, (proof.rows, 0, 0)
    )


def _plan(sources: Sequence[EventFile], task: ConcatTask) -> Iterator[tuple[bool, _Piece]]:
    """Yield all stripes with rows, and whether each is copied.

    Small stripes are encoded together, because many of them make reading slow; a single small stripe between large ones
    would gain nothing, and is copied as well.
    """
    tree = renumbered(task.row)
    agreeing = {source.path: task.may_copy and agrees(source, task, tree) for source in sources}
    pieces = [
        _Piece(source, number)
        for source in sources
        for number, info in enumerate(source.tail.stripes)
        if info.numberOfRows
    ]

    def large(piece: _Piece) -> bool:
        return agreeing[piece.source.path] and not is_small(piece.source.tail.stripes[piece.number])

    for copies, run in groupby(pieces, key=large):
        listed = list(run)
        lone = len(listed) == 1 and agreeing[listed[0].source.path]
        yield from ((copies or lone, piece) for piece in listed)


class _Writer:
    """Writes one file, a stripe after another.

    Attributes:
        taken: the stripes that were copied.
        plain: whether each stripe was copied.
        expected: proof of all rows; values only of stripes that are compared by values.
    """

    def __init__(self, fs: FileSystem, sink: SummedSink, sources: Sequence[EventFile], task: ConcatTask) -> None:
        self._fs = fs
        self._sink = sink
        self._task = task
        self._tree = renumbered(task.row)
        self.sources = sources
        block_size = max(source.tail.block_size for source in sources)
        self._assembler = OrcAssembler(
            cast(BinaryIO, sink),
            compression=task.settings.compression,
            block_size=max(block_size, task.settings.block_size),
            stride=task.settings.stride,
        )
        # The rows are cut into stripes here, by their decoded size, as in AcidWriter.
        self._encoder = replace(task.settings, stripe_size=WHOLE)
        self._gathered = Gathered(task.settings.stripe_size, self._encode)
        self._writers: set[tuple[int, int]] = set()
        self.taken: list[Taken] = []
        self.plain: list[bool] = []
        self.expected = RowProof()

    @property
    def copied(self) -> int:
        return sum(self.plain)

    def copy(self, piece: _Piece) -> None:
        self._gathered.flush()
        tail = piece.source.tail
        info = tail.stripes[piece.number]
        twice = self._task.verify.compares_values

        def append(chunks: Iterator[bytes]) -> None:
            self._assembler.append_stripe(chunks, info, tail.metadata.stripeStats[piece.number])

        self.taken.append(
            take(self._fs, piece.source.path, info.offset, piece.length, sink=self._sink, append=append, twice=twice)
        )
        self._writers.add((tail.footer.writer, tail.writer_version))
        self.plain.append(True)
        values = value_checksum(None, self._rows(piece), self._tree) if twice else 0
        self.expected += RowProof(info.numberOfRows, 0, values)

    def encode(self, piece: _Piece) -> None:
        rows = self._rows(piece)
        done(piece.length)
        # To compare all values, the rows are read a second time, apart from those that are written.
        judge = self._rows(piece) if self._task.verify.compares_values else rows
        self.expected += RowProof(len(rows), 0, value_checksum(None, judge, self._tree))
        # Not by Arrow's own conversion to a batch, which may abort on a union.
        self._gathered.add(pa.RecordBatch.from_arrays(below(rows), names=[field.name for field in rows.type]))

    def close(self) -> int:
        """Write the remaining rows and the footer; return the length of the file."""
        self._gathered.flush()
        metadata = common_metadata([source.tail for source in self.sources])
        return self._assembler.finish(
            to_proto(self._tree), metadata, calendar=self._task.calendar, writer=lowest_writer(self._writers)
        )

    def _rows(self, piece: _Piece) -> pa.StructArray:
        with piece.source.open() as events:
            rows = events.rows(piece.number, proleptic=self._task.calendar == PROLEPTIC_GREGORIAN)
        return conform(
            rows, piece.source.row_type, self._task.row, self._fs.display(piece.source.path), how=self._task.conversion
        )

    def _encode(self, pending: Sequence[pa.RecordBatch]) -> None:
        for stripe in encode_stripes(pending, self._encoder, self._tree):
            self._assembler.append_stripe(stripe.data, stripe.info, stripe.statistics)
            self._writers.add(CPP_WRITER)
            self.plain.append(False)


def common_metadata(tails: Sequence[Tail]) -> dict[str, bytes]:
    """Return the user metadata in which all files agree, except that of full-ACID tables."""
    first, *others = (tail.user_metadata for tail in tails)
    return {
        key: value
        for key, value in first.items()
        if not key.startswith(_ACID_PREFIX) and all(other.get(key) == value for other in others)
    }


def _prove(fs: FileSystem, task: ConcatTask, path: str, writer: _Writer, sink: SummedSink) -> RowProof:
    """Read the file again.

    Raises:
        VerifyError: its rows, its bytes or its values differ.
    """
    require_bytes(fs, path, sink, writer.taken)
    shown = fs.display(path)
    tail = read_tail(ByteSource(fs, path))
    if len(tail.stripes) != len(writer.plain) or tail.type_tree != renumbered(task.row):
        raise mismatch(shown, "its tail speaks of other stripes or types than were written")
    written = replace(writer.sources[0], path=path, length=None, tail=tail)
    proof = RowProof()
    with written.open() as events:
        for number, info in enumerate(tail.stripes):
            values = 0
            if task.verify.compares_values or not writer.plain[number]:
                rows = events.rows(number, proleptic=task.calendar == PROLEPTIC_GREGORIAN)
                values = value_checksum(None, rows, tail.type_tree)
            proof += RowProof(info.numberOfRows, 0, values)
    if proof != writer.expected:
        raise mismatch(shown, f"{writer.expected.rows} rows were read and {proof.rows} are there, or values differ")
    return proof
