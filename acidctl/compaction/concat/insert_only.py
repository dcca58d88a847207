"""Compaction of insert-only tables (format sections 8.5 and 11): files of the same bucket are concatenated.

There are no synthetic columns and no deletes: all rows of a file count if its directory is current, so a compaction
only concatenates. Its directories get no ``_orc_acid_version``. A base without a visibility id does get
``_metadata_acid``: the rules that choose a base (section 6.2) are the same for all tables, and without the marker the
base would be an INSERT OVERWRITE: valid although older write ids are open, and silently absent for readers whose
snapshot does not include its write id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import BinaryIO, cast

import pyarrow as pa

from acidctl.base.errors import BadDataError
from acidctl.base.task_progress import done
from acidctl.compaction.concat.parquet import write_parquet
from acidctl.compaction.merge.written import agrees, is_small
from acidctl.compaction.proof.checksum import RowProof, SummedSink, Taken, mismatch, require_bytes, take
from acidctl.compaction.proof.values import value_checksum
from acidctl.compaction.tasks import PROLEPTIC_GREGORIAN, BucketResult, ConcatTask, Input, OutputFile
from acidctl.location.metastore_schema import Declared
from acidctl.orc.arrow import below
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import Tail, read_tail, stripe_length
from acidctl.orc.types import renumbered, to_proto
from acidctl.orc.write.acid_writer import Gathered
from acidctl.orc.write.file_assembler import CPP_WRITER, OrcAssembler, lowest_writer
from acidctl.orc.write.stripe_encoder import encode_stripes
from acidctl.orc.write.writer_settings import WHOLE
from acidctl.rows.convert.conform import conform
from acidctl.rows.foreign.foreign_reader import BYTE_ORDER_MARK
from acidctl.rows.foreign.format import Format, read_any_tail
from acidctl.rows.read.events import EventFile
from acidctl.storage import registry
from acidctl.storage.port import FileSystem


def run_concat(task: ConcatTask) -> BucketResult:
    """Write the rows of one bucket to one file, and prove it; without rows there is no file.

    Raises:
        BadDataError: an input cannot be read.
        RefusedError: the inputs cannot be put into one file without a change of meaning.
        VerifyError: the written file differs from the inputs.
    """
    fs = registry.open_file_system(task.storage)
    sources = [source for source in (_reopen(fs, item, task.declared) for item in task.sources) if source.rows]
    if not sources:
        return BucketResult(task.bucket)
    if task.format is Format.PARQUET:
        newest = max(range(len(sources)), key=lambda i: (sources[i].file.max_write_id, i))
        written = write_parquet(fs, sources, task, newest)
    elif task.format is Format.TEXT:
        written = write_text(fs, sources, task)
    else:
        written = write_orc(fs, sources, task)
    return BucketResult(task.bucket, written, rows_read=sum(source.rows for source in sources))


def _reopen(fs: FileSystem, item: Input, declared: Declared | None) -> EventFile:
    read = read_any_tail(ByteSource(fs, item.path, item.length), declared)
    return EventFile(fs, item.file, item.path, item.length, read.tail, item.synthetic, read.format, declared)


_LINE_FEED = b"\n"


def write_text(fs: FileSystem, sources: Sequence[EventFile], task: ConcatTask) -> OutputFile:
    """Write the bytes of all sources to one new file, in their order, and read it again.

    A line feed is added between files if the first does not end with one. A byte order mark is left out: Hadoop skips
    it at the beginning of a file, but not in the middle.

    Args:
        sources: in read order, each with rows.

    Raises:
        BadDataError: an input has become shorter.
        VerifyError: the file differs from what was written, or has another number of lines.
    """
    path = task.new_attempt(task.name)
    taken: list[Taken] = []
    with fs.open_output(path, private=True) as file:
        sink = SummedSink(file)
        last = _LINE_FEED

        def append(chunks: Iterator[bytes]) -> None:
            nonlocal last
            for chunk in chunks:
                sink.write(chunk)
                last = chunk[-1:]

        for source in sources:
            if last != _LINE_FEED:
                sink.write(_LINE_FEED)
            text = source.tail.source
            head = text.read(0, min(len(BYTE_ORDER_MARK), text.size))
            start = len(head) if head == BYTE_ORDER_MARK else 0
            begun = sink.count
            twice = task.verify.compares_values
            part = take(fs, source.path, start, text.size - start, sink=sink, append=append, twice=twice)
            if part.start != begun:
                raise BadDataError(
                    f"{source.path} became shorter while it was read", "", "nothing writes there; run it again"
                )
            taken.append(part)
    require_bytes(fs, path, sink, taken)
    rows = sum(source.rows for source in sources)
    lines = read_any_tail(ByteSource(fs, path), task.declared).tail.rows
    if lines != rows:
        raise mismatch(fs.display(path), f"{rows:,} lines were to be written, and it has {lines:,}")
    return OutputFile(path, task.name, sink.count, 1, 0, RowProof(rows), RowProof(lines), (rows, 0, 0))


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
