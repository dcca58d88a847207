"""The formats of exported rows: JSON, CSV, Parquet or Arrow IPC, written batch by batch to a binary stream.

A sink writes to the stream that the caller opened and never closes it; ``BrokenPipeError`` passes through.
Parquet and Arrow hold the types of the table at the top of :mod:`acidctl.rows.export.storable`.

CSV follows RFC 4180 with lines ended by a line feed: a header row, then the rows. Null is empty and the empty string
is ``""``; text is quoted if necessary; binary, arrays, maps and structs are their JSON text; everything else is like
JSON without quotes (``NaN``, ``2004-03-23``, ``1971-09-01 06:11:38.0``), a union is the value that is set.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.base.printable import printable
from acidctl.orc.types import OrcType, renumbered, to_proto
from acidctl.orc.write.acid_writer import Gathered
from acidctl.orc.write.file_assembler import OrcAssembler
from acidctl.orc.write.stripe_encoder import encode_stripes
from acidctl.orc.write.writer_settings import WHOLE, WriterSettings
from acidctl.rows.export.json_lines import child_types, json_buffers, row_slices, text_buffer, text_of_a_row, unquoted
from acidctl.rows.export.storable import Storable
from acidctl.rows.export.text import Flags, constant, join, printable_texts, text_spans, wrapped

SINK_KINDS = ("jsonl", "json", "csv", "parquet", "arrow")

# A row group of Parquet gathers batches up to this size: small groups are slow to read and compress badly.
ROW_GROUP_BYTES = 1 << 26
_COMPRESSION = "zstd"


class Sink(Protocol):
    """Writes rows in one format."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows. Raises BadDataError if the format cannot hold a value or the columns changed."""

    def close(self) -> None:
        """Write the rest (the footer, or the header of an empty result); call it on success only."""


def open_sink(
    kind: str,
    out: BinaryIO,
    *,
    types: OrcType | None = None,
    schema: pa.Schema | None = None,
    for_terminal: bool = False,
) -> Sink:
    """Return a sink for `kind`, one of SINK_KINDS, on the stream `out`.

    Args:
        out: a binary stream.
        types: the struct whose fields are the columns, for CHAR(n).
        schema: the columns of a result without rows. Otherwise the first batch decides, because it may have timestamps
            that need a wider type; later batches are cast to its types.
        for_terminal: names and texts of CSV go through :func:`acidctl.base.printable.printable`.

    Raises:
        UsageProblem: the kind is unknown.
    """
    if kind == "jsonl":
        return _JsonLines(out, types)
    if kind == "json":
        return JsonArray(out, types)
    if kind == "csv":
        return _Csv(out, types, schema, for_terminal=for_terminal)
    if kind in ("parquet", "arrow"):
        return _Columnar(kind, out, types, schema)
    raise UsageProblem(f"there is no output format {kind!r}", "", f"the formats are {', '.join(SINK_KINDS)}")


class _JsonLines:
    def __init__(self, out: BinaryIO, types: OrcType | None) -> None:
        self._out = out
        self._types = types

    def write(self, batch: pa.RecordBatch) -> None:
        for lines in json_buffers(batch, self._types):
            self._out.write(lines)

    def close(self) -> None:
        """Do nothing: every line is complete."""


class JsonArray:
    """Writes one JSON document: an array with one object per row, one row per line."""

    def __init__(self, out: BinaryIO, types: OrcType | None = None) -> None:
        self._out = out
        self._types = types
        self._begun = False
        self._is_open = True
        self._is_whole = True

    def write(self, batch: pa.RecordBatch, types: OrcType | None = None) -> None:
        for lines in json_buffers(batch, types or self._types):
            # Line feeds inside texts are escaped: each line feed here ends a row.
            text = (b",\n" if self._begun else b"[\n") + bytes(lines[:-1]).replace(b"\n", b",\n")
            self._begun, self._is_whole = True, False
            self._out.write(text)
            self._is_whole = True

    def close(self) -> None:
        """End the document, once, unless a row was written in part."""
        if self._is_open and self._is_whole:
            self._out.write(b"\n]\n" if self._begun else b"[]\n")
        self._is_open = False


class _Csv:
    def __init__(self, out: BinaryIO, types: OrcType | None, schema: pa.Schema | None, *, for_terminal: bool) -> None:
        self._out = out
        self._types = types
        self._schema = schema
        self._names: list[str] | None = None
        self._for_terminal = for_terminal

    def write(self, batch: pa.RecordBatch) -> None:
        self._begin(batch.schema.names)
        for rows in row_slices(batch, self._types):
            with text_of_a_row():
                lines = text_buffer(self._lines(rows))
            self._out.write(lines)

    def close(self) -> None:
        if self._schema is not None:
            self._begin(self._schema.names)

    def _begin(self, names: list[str]) -> None:
        if self._names is None:
            self._names = names
            if names:
                texts = [printable(name) for name in names] if self._for_terminal else names
                fields = _quoted(pa.array([text.encode("utf-8", "replace") for text in texts], pa.binary()))
                self._out.write(b",".join(fields.to_pylist()) + b"\n")
        elif names != self._names:
            raise BadDataError(
                f"the columns changed from {', '.join(self._names)} to {', '.join(names)}",
                "one CSV file cannot hold both",
                "write jsonl, or choose columns that all files have",
            )

    def _lines(self, rows: pa.StructArray) -> pa.Array:
        if not rows.type.num_fields:
            return pa.repeat(constant(b"\n"), len(rows))
        pieces: list[Any] = []
        for place, types in enumerate(child_types(self._types, rows.type.names)):
            column = rows.field(place)
            if place:
                pieces.append(constant(b","))
            values = wrapped(unquoted(column, types))
            kind = column.type
            if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_nested(kind):
                values = _quoted(printable_texts(values) if self._for_terminal else values)
            pieces.append(values)
        return join(*pieces, constant(b"\n"), null=b"")


def _quoted(values: pa.Array) -> pa.Array:
    """Return the values, in quotes if RFC 4180 requires them or the value is empty."""
    offsets, data = text_spans(values)
    needed: Flags = np.diff(offsets) == 0
    special = (data == 0x22) | (data == 0x0A) | (data == 0x0D) | (data == ord(","))
    needed[np.searchsorted(offsets, np.flatnonzero(special), side="right") - 1] = True
    if not needed.any():
        return values
    doubled = pc.replace_substring(values, b'"', b'""') if (data == 0x22).any() else values
    return pc.if_else(pa.array(needed), join(constant(b'"'), doubled, constant(b'"')), values)


class Gate(io.RawIOBase):
    """The stream for pyarrow's writers: writable only during a sink's calls; `count` is the number of bytes written.

    A writer that is dropped after a failure writes its footer in its destructor, which would make an incomplete file
    look complete. The gate also keeps it from closing the caller's stream.
    """

    def __init__(self, out: BinaryIO, hint: str = "") -> None:
        self._out, self._hint = out, hint
        self._open = False
        self.count = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if self._open:
            self._out.write(data)
            self.count += size
        return size

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let writes through meanwhile. Values that the format cannot hold raise BadDataError; stream errors pass."""
        self._open = True
        try:
            yield
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadDataError("the rows cannot be written in this format", str(error), self._hint) from error
        finally:
            self._open = False


class _Columnar:
    def __init__(self, kind: str, out: BinaryIO, types: OrcType | None, schema: pa.Schema | None) -> None:
        self._kind = kind
        self._gate = Gate(out, "write jsonl")
        self._types = types
        self._empty_schema = schema
        self._storable = Storable(parquet=kind == "parquet")
        self._schema: pa.Schema | None = None
        self._writer: Any = None
        self._gathered = Gathered(ROW_GROUP_BYTES, self._write_group)

    def write(self, batch: pa.RecordBatch) -> None:
        storable = self._storable.batch(batch, self._types, self._schema)
        with self._gate.opened():
            if self._writer is None:
                self._open(storable.schema)
            if self._kind == "arrow":
                self._writer.write_batch(storable)
            else:
                self._gathered.add(storable)

    def close(self) -> None:
        with self._gate.opened():
            if self._writer is None:
                schema = self._empty_schema if self._empty_schema is not None else pa.schema([])
                self._open(self._storable.schema(schema))
            self._gathered.flush()
            self._writer.close()

    def _write_group(self, batches: Sequence[pa.RecordBatch]) -> None:
        self._writer.write_table(pa.Table.from_batches(batches))

    def _open(self, schema: pa.Schema) -> None:
        self._schema = schema
        if self._kind == "parquet":
            import pyarrow.parquet as pq  # noqa: PLC0415 - it is slow, and the other formats do not need it

            self._writer = pq.ParquetWriter(self._gate, schema, compression=_COMPRESSION)
        else:
            options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION)
            self._writer = pa.ipc.new_stream(self._gate, schema, options=options)


_PROLEPTIC = 2


class OrcSink:
    """Writes one file.

    Args:
        out: the output; it is not closed.
        types: the struct whose fields are the columns.
        settings: of the writer; :meth:`WriterSettings.for_base` by default.
    """

    def __init__(self, out: BinaryIO, types: OrcType, settings: WriterSettings | None = None) -> None:
        settings = settings or WriterSettings.for_base("zstd")
        self._types = renumbered(types)
        # This class cuts stripes, by the decoded size of rows.
        self._encoder = replace(settings, stripe_size=WHOLE)
        self._assembler = OrcAssembler(
            out, compression=settings.compression, block_size=settings.block_size, stride=settings.stride
        )
        self._gathered = Gathered(settings.stripe_size, self._encode)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows. Raises BadDataError for a value that ORC cannot hold."""
        self._gathered.add(batch)

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        self._gathered.flush()
        self._assembler.finish(to_proto(self._types), {}, calendar=_PROLEPTIC)

    def _encode(self, batches: Sequence[pa.RecordBatch]) -> None:
        for stripe in encode_stripes(batches, self._encoder, self._types):
            self._assembler.append_stripe(stripe.data, stripe.info, stripe.statistics)
