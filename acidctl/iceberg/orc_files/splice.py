"""One ORC file of Hive becomes one of Iceberg: streams of the wanted columns are copied and columns get new numbers.

Values are not decoded, but for single columns whose streams Iceberg's readers would take for other values.  Row
indexes and bloom filters are copied too, because their positions are relative to the stripe.

The footer names the old calendar although days are numbered as in the proleptic one.  Iceberg's own files do so, and
Java's ORC reader, which Iceberg does not tell which one it wants, moves the days of a file that names the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import BinaryIO, cast

import pyarrow as pa

from acidctl.base.errors import RefusedError
from acidctl.compaction.proof.checksum import SummedSink, require_bytes
from acidctl.compaction.tasks import JULIAN_GREGORIAN
from acidctl.iceberg.fields import CopiedColumn, Field, NotCopied, copied_column
from acidctl.iceberg.orc_files.plain_values import plain_values
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.codecs import encode_section
from acidctl.orc.tail import KNOWN_VERSIONS, Tail, as_text, placed_streams, read_tail, stripe_length
from acidctl.orc.types import OrcType, row_of, to_proto
from acidctl.orc.write.file_assembler import CPP_WRITER, OrcAssembler, lowest_writer
from acidctl.orc.write.stripe_editor import INDEX_KINDS, Codec, StripeParts
from acidctl.orc.write.stripe_encoder import encode_stripes
from acidctl.orc.write.writer_settings import BLOCK_UNIT, CODECS, MAX_BLOCK, WHOLE, WriterSettings
from acidctl.rows.convert.conform import How, convert
from acidctl.rows.convert.matching import fields_of
from acidctl.rows.read.events import EventFile, EventReader
from acidctl.storage.port import FileSystem


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """A column of a data file whose values are encoded again.

    Attributes:
        name: in the file.
        own, target: its types in the file and in the Hive table.
        why: the reason, as the end of a sentence.
    """

    name: str
    own: OrcType
    target: OrcType
    field: Field
    why: str = ""

    @property
    def type(self) -> OrcType:
        """Return the column's type in the new file."""
        return self.field.stored


@dataclass(frozen=True)
class FileColumns:
    """The columns of a data file that go into the copy, in the order of the table; it lacks those of later ALTERs."""

    columns: tuple[CopiedColumn | EncodedColumn, ...]
    names: tuple[str, ...]

    @cached_property
    def tree(self) -> OrcType:
        """Return the root of the copy's type."""
        return OrcType("struct", children=tuple(column.type for column in self.columns), names=self.names)

    @property
    def encoded(self) -> tuple[EncodedColumn, ...]:
        """Return the columns that are encoded again."""
        return tuple(column for column in self.columns if isinstance(column, EncodedColumn))


def file_columns(source: EventFile, row: OrcType, fields: Sequence[Field | None]) -> FileColumns:
    """Decide for each column of a file how it gets into the copy.

    Args:
        row: the columns of the Hive table, without its partition columns.
        fields: those of the Iceberg table, in the same order; a column that is left out is None.

    Raises:
        RefusedError: the file has encrypted columns, or rows that are NULL as a whole.
    """
    tail, own = source.tail, source.row_type
    if tail.encrypted:
        raise _refused(source, "it has encrypted columns", "decrypt it in Hive first: INSERT OVERWRITE")
    whole = tail.column_statistics(own.column_id)
    if source.synthetic is None and (whole is None or whole.hasNull or not whole.HasField("hasNull")):
        raise _refused(source, "some of its rows may have no values at all", "compact the table first")
    columns: list[CopiedColumn | EncodedColumn] = []
    problem = "" if tail.version in KNOWN_VERSIONS else f"the file is of ORC's format version {tail.version}"
    if len(tail.metadata.stripeStats) != len(tail.stripes):
        problem = "the file has no statistics of its stripes"
    if tail.compression not in CODECS:
        problem = f"the file is compressed by {tail.compression}"
    wanted = [
        EncodedColumn(own.names[place], own.children[place], target, into)
        for place, target, into in zip(fields_of(own, row, is_top=True), row.children, fields, strict=True)
        if place is not None and into is not None
    ]
    if not wanted:
        raise _refused(source, "it has none of the table's columns", "compact the table first")
    for column in wanted:
        try:
            if problem:
                raise NotCopied(problem)
            columns.append(copied_column(column.own, column.target, column.field, tail))
        except NotCopied as why:
            columns.append(replace(column, why=str(why)))
    if any(isinstance(column, EncodedColumn) and has_times(column.type) for column in columns):
        # A stripe has one time zone for all of its timestamps, and what is encoded again counts in UTC.
        columns = [
            replace(again, why="another timestamp is")
            if isinstance(column, CopiedColumn) and has_times(column.type)
            else column
            for column, again in zip(columns, wanted, strict=True)
        ]
    return FileColumns(tuple(columns), tuple(column.field.name for column in wanted))


def has_times(kind: OrcType) -> bool:
    """Return whether there is a TIMESTAMP in a type; those with a time zone are stored in UTC."""
    return any(node.kind == "timestamp" for node in kind.walk())


def _refused(source: EventFile, why: str, hint: str) -> RefusedError:
    return RefusedError(f"{source.shown} cannot be copied to Iceberg", why, hint)


@dataclass(frozen=True, slots=True)
class SplicedFile:
    """A file that was written, as it was read again.

    Attributes:
        tail: its footer, with the statistics of all columns.
        stream_bytes: the bytes of the streams of each column id.
    """

    tail: Tail
    stream_bytes: tuple[int, ...]


class _Stripe:
    """A stripe under construction, whose columns come from several finished stripes."""

    def __init__(self) -> None:
        self._streams: tuple[list[tuple[pb.Stream, memoryview]], list[tuple[pb.Stream, memoryview]]] = [], []
        self._encodings: dict[int, pb.ColumnEncoding] = {}
        self._statistics: dict[int, pb.ColumnStatistics] = {}
        self.zone = ""

    @property
    def streams(self) -> Iterator[tuple[pb.Stream, memoryview]]:
        """Return the streams with their bytes, in the order of the file: indexes first."""
        return chain(*self._streams)

    def add(
        self,
        footer: pb.StripeFooter,
        streams: Iterable[tuple[pb.Stream, memoryview]],
        statistics: Sequence[pb.ColumnStatistics],
        new_ids: Mapping[int, int],
    ) -> None:
        """Take the columns of a finished stripe that have a new number."""
        for stream, data in streams:
            new = new_ids.get(stream.column)
            if new is not None:
                moved = pb.Stream(kind=stream.kind, column=new, length=stream.length)
                self._streams[stream.kind not in INDEX_KINDS].append((moved, data))
        for old, new in new_ids.items():
            self._encodings[new] = footer.columns[old]
            self._statistics[new] = statistics[old]

    def append_to(self, assembler: OrcAssembler, rows: int, codec: Codec) -> None:
        """Write it."""
        columns = [self._encodings[at] for at in range(len(self._encodings))]
        footer = pb.StripeFooter(streams=[stream for stream, _ in self.streams], columns=columns)
        if self.zone:
            footer.writerTimezone = self.zone
        stored = encode_section(footer.SerializeToString(), *codec)
        index, data = (sum(stream.length for stream, _ in part) for part in self._streams)
        info = pb.StripeInformation(indexLength=index, dataLength=data, footerLength=len(stored), numberOfRows=rows)
        statistics = pb.StripeStatistics(colStats=[self._statistics[at] for at in range(len(columns))])
        assembler.append_stripe([*(data for _, data in self.streams), stored], info, statistics)


class Splice:
    """The copy of one file.

    Args:
        columns: see :func:`file_columns`.
        stripes: the numbers of those to copy; None for all.
    """

    def __init__(self, source: EventFile, columns: FileColumns, stripes: Collection[int] | None = None) -> None:
        self._source, self._columns = source, columns
        tail = source.tail
        self._stripes = range(len(tail.stripes)) if stripes is None else sorted(stripes)
        self._root = source.row_type.column_id
        starts, following = [], 1
        for column in columns.columns:
            starts.append(following)
            following += len(list(column.type.walk()))
        self._starts, self._width = starts, following
        self._new_ids = {self._root: 0}
        for start, column in zip(starts, columns.columns, strict=True):
            if isinstance(column, CopiedColumn):
                self._new_ids |= {old: start + at for at, old in enumerate(column.ids)}
        block = min(max(BLOCK_UNIT, tail.block_size // BLOCK_UNIT * BLOCK_UNIT), MAX_BLOCK)
        self._settings = WriterSettings(
            compression=tail.compression if tail.compression in CODECS else "zlib",
            block_size=block,
            stripe_size=WHOLE,
            stride=tail.stride,
        )

    def write(self, fs: FileSystem, path: str, user_metadata: Mapping[str, bytes]) -> SplicedFile:
        """Write the copy, and read it again to compare all bytes.

        Raises:
            BadDataError: a stripe cannot be read, or a value cannot be converted.
            StorageError, VerifyError: the store did not keep the bytes.
        """
        tail, settings = self._source.tail, self._settings
        stream_bytes = [0] * self._width
        encoded = self._columns.encoded
        blocks = [settings.block_size] * bool(encoded) + [tail.block_size] * (len(self._new_ids) > 1)
        with fs.open_output(path) as file:
            sink = SummedSink(file)
            assembler = OrcAssembler(
                cast(BinaryIO, sink),
                compression=settings.compression,
                block_size=max(blocks, default=settings.block_size),
                stride=tail.stride,
            )
            for rows, stripe in self._made():
                for stream, _ in stripe.streams:
                    stream_bytes[stream.column] += stream.length
                stripe.append_to(assembler, rows, (settings.compression, settings.block_size))
            writers = [(tail.footer.writer, tail.writer_version)] + [CPP_WRITER] * bool(encoded)
            types = to_proto(self._columns.tree)
            assembler.finish(types, user_metadata, calendar=JULIAN_GREGORIAN, writer=lowest_writer(writers))
        require_bytes(fs, path, sink)
        return SplicedFile(read_tail(ByteSource(fs, path)), tuple(stream_bytes))

    def _made(self) -> Iterator[tuple[int, _Stripe]]:
        """Yield the number of rows of each stripe, and the stripe."""
        tail = self._source.tail
        with self._source.open() if self._columns.encoded else nullcontext() as events:
            for number in self._stripes:
                info, stripe = tail.stripes[number], _Stripe()
                if len(self._new_ids) > 1:
                    data = memoryview(tail.source.read(info.offset, stripe_length(info)))
                    footer = tail.parse_stripe_footer(number, data[info.indexLength + info.dataLength :])
                    streams = ((stream, data[at : at + stream.length]) for stream, at in placed_streams(footer))
                    stripe.add(footer, streams, tail.metadata.stripeStats[number].colStats, self._new_ids)
                    stripe.zone = as_text(footer.writerTimezone)
                for start, column in zip(self._starts, self._columns.columns, strict=True):
                    if isinstance(column, EncodedColumn) and events:
                        self._encode(stripe, column, start, events, number)
                yield info.numberOfRows, stripe

    def _encode(self, stripe: _Stripe, column: EncodedColumn, start: int, events: EventReader, number: int) -> None:
        values = events.rows(number, [column.name]).field(0)
        how = How(for_good=True, by=self._source.declared.hive if self._source.declared else None)
        values = convert(values, column.own, column.target, column.field.name, self._source.shown, how=how)
        values = plain_values(values, column.target, column.field)
        tree = row_of([(column.field.name, column.type)])
        batch = pa.RecordBatch.from_arrays([values], names=[column.field.name])
        (made,) = encode_stripes(batch, self._settings, tree)
        parts = StripeParts(made.data, made.info, (self._settings.compression, self._settings.block_size))
        new_ids = {at: start + at - 1 for at in range(1, len(parts.footer.columns))}
        if len(self._new_ids) == 1:
            new_ids[0] = 0
        streams = ((stream, parts.streams[stream.column, stream.kind]) for stream in parts.footer.streams)
        stripe.add(parts.footer, streams, made.statistics.colStats, new_ids)
        if has_times(column.type):
            stripe.zone = as_text(parts.footer.writerTimezone)
