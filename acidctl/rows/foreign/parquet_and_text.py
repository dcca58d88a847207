"""Data files that are not ORC: Parquet and text, which insert-only tables may have (format sections 1.4 and 11).

They get the footer that an ORC file of the same rows would have, with a stripe for each row group or block of lines, so
that they can be read like raw ORC files. A line of text is one row with one column, ``line``, unless the metastore
declares how its fields are separated.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.acid.compaction_kind import Hive
from acidctl.base.errors import BadDataError
from acidctl.location.metastore_schema import Declared, TextLayout
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import below, struct_of, with_children
from acidctl.orc.byte_source import ByteSource, ReadAheadFile, native_errors, native_read
from acidctl.orc.hive_types import row_type_of
from acidctl.orc.limits import STRIPE_MEMORY, DecodingBudget
from acidctl.orc.read.wide_timestamps import wide, widened
from acidctl.orc.tail import Tail
from acidctl.orc.types import OrcType, arrow_type, renumbered, row_of, to_proto
from acidctl.rows.foreign.delimited_text import DelimitedBlock, one_chunk
from acidctl.rows.foreign.parquet_file import ParquetTime, RowGroups, as_meant, open_parquet, parquet_time, window_on

LINE = OrcType("struct", children=(OrcType("string"),), names=("line",))
"""The row type of a text file."""

# Bytes of text in a stripe, unless a line is longer.
_BLOCK = 8 << 20
# Bytes of memory for each byte of text while lines are searched.
_A_BYTE = 4
_PROLEPTIC = 2
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_CODECS = {"gz": "gzip", "deflate": "gzip", "bz2": "bz2", "zst": "zstd"}
_HADOOP_CODECS = ("snappy", "lz4")
_LEAVES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.uint8(): "smallint",
    pa.int16(): "smallint",
    pa.uint16(): "int",
    pa.int32(): "int",
    pa.uint32(): "bigint",
    pa.int64(): "bigint",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.date32(): "date",
    pa.null(): "string",
}


class ForeignReader:
    """The part of :class:`~acidctl.orc.read.reader.OrcFile` that is needed to read rows."""

    def __init__(self, source: ByteSource, tail: Tail, declared: Declared | None = None) -> None:
        self._source = source
        self._tail = tail
        self._layout = declared.text if declared else None
        self._hive = declared.hive if declared else None

    @property
    def stripe_count(self) -> int:
        """Return the number of row groups or blocks."""
        return len(self._tail.stripes)

    def read_stripe(self, i: int, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """Return the rows of stripe `i` in the types of an ORC reader; for `columns` see :class:`OrcFile`.

        Raises:
            BadDataError: the file is damaged.
        """
        if columns is not None and not columns:
            return pa.RecordBatch.from_struct_array(struct_of((), (), self._tail.stripes[i].numberOfRows))
        return self._read(i, columns)

    def _read(self, i: int, columns: Sequence[str] | None) -> pa.RecordBatch:
        raise NotImplementedError

    def close(self) -> None:
        """Close the file."""


def _made_tail(source: ByteSource, row: OrcType, stripes: list[tuple[int, int]]) -> Tail:
    """Return a footer with a row type and (rows, bytes) of each stripe; no statistics, proleptic Gregorian dates."""
    footer = pb.Footer(types=to_proto(renumbered(row)), calendar=_PROLEPTIC)
    for rows, size in stripes:
        footer.stripes.add(numberOfRows=rows, dataLength=size)
    footer.numberOfRows = sum(rows for rows, _ in stripes)
    return Tail(
        source=source,
        postscript=pb.PostScript(),
        footer=footer,
        file_length=source.size,
        content_end=source.size,
        metadata_start=source.size,
        compression="none",
        block_size=0,
        _raw_metadata=b"",
    )


# --- Parquet -------------------------------------------------------------------------------------------------------


class ParquetReader(ForeignReader):
    """Reads row groups as stripes."""

    @staticmethod
    def describe(source: ByteSource, declared: Declared | None = None) -> Tail:
        """Return the footer that an ORC file of these rows would have.

        Args:
            declared: gives the table's columns, which Hive finds by their names.
        """
        with native_errors(source.path):
            file = open_parquet(source, window=window_on(source))
            metadata, schema = file.metadata, file.schema_arrow
        row = OrcType("struct", children=tuple(_orc_type(f, source.path) for f in schema), names=tuple(schema.names))
        if declared and declared.columns:
            row = _by_name(row, row_type_of(declared.columns))
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        return _made_tail(source, row, [(group.num_rows, group.total_byte_size) for group in groups])

    @cached_property
    def _file(self) -> Any:
        # Timestamps of 96 bits may not fit into 64 bits of nanoseconds: Arrow would wrap them around.
        return self._open("us")

    @cached_property
    def _window(self) -> ReadAheadFile | None:
        return window_on(self._source) if self._source.local_whole() is None else None

    @cached_property
    def _groups(self) -> RowGroups:
        return RowGroups(self._source, self._file.metadata, self._window)

    @cached_property
    def _work(self) -> DecodingBudget:
        return DecodingBudget(self._source.path, self._source.size)

    def _open(self, unit: str) -> Any:
        return open_parquet(self._source, unit=unit, window=self._window)

    @cached_property
    def _exact(self) -> Any:
        """Return the file opened with nanoseconds, which may overflow; None if no column has 96 bits."""
        return self._open("ns") if self._has_int96 else None

    @property
    def _has_int96(self) -> bool:
        columns = self._file.schema
        return any(columns.column(i).physical_type == "INT96" for i in range(len(columns)))

    @cached_property
    def _time(self) -> ParquetTime:
        metadata = self._file.metadata
        time = parquet_time(metadata.created_by or "", metadata.metadata or {}, int96=self._has_int96)
        if self._hive is Hive.HIVE3:  # it takes days as they are stored
            return replace(time, julian_dates=False, julian_timestamps=False)
        return time

    def _read(self, i: int, columns: Sequence[str] | None) -> pa.RecordBatch:
        wanted = None if columns is None else list(columns)
        with native_errors(self._source.path, i):
            self._work.require()
            files = [self._file] if self._exact is None else [self._file, self._exact]
            table, *more = self._groups.read(i, files, wanted)
            exact = more[0] if more else table
            self._work.add_part(i, table.nbytes)
            arrays, names = [], []
            places = {name: place for place, name in enumerate(table.schema.names)}
            if len(places) != table.num_columns:
                raise BadDataError(f"{self._source.path} cannot be read", "several of its columns have one name")
            for name, kind in self._tail.type_tree.fields():
                if name not in places and (wanted is None or name in wanted):
                    arrays.append(pa.nulls(table.num_rows, arrow_type(kind)))  # a column of the table that is newer
                    names.append(name)
                elif name in places:
                    column = one_chunk(table.column(places[name]))
                    if self._exact is not None:
                        column = _finer(column, one_chunk(exact.column(places[name])))
                    array = _as_orc(column, kind)
                    arrays.append(array if self._time.is_plain else as_meant(array, self._time))
                    names.append(name)
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def close(self) -> None:
        for name in ("_file", "_exact"):
            file = self.__dict__.pop(name, None)
            if file is not None:
                file.close(force=True)


def _by_name(file: OrcType, table: OrcType) -> OrcType:
    """Return the table's columns in its order, each with the file's type if the file has it."""
    by_name = {name.lower(): (name, child) for name, child in reversed(list(file.fields()))}
    return row_of([by_name.get(name.lower(), (name, child)) for name, child in table.fields()])


def _finer(coarse: pa.Array, fine: pa.Array) -> pa.Array:
    """Return timestamps with their nanoseconds, in the wide form if 64 bits do not hold them.

    Args:
        coarse: in microseconds, which hold every time.
        fine: the same in nanoseconds, wrapped around if they do not fit.
    """
    if coarse.type == fine.type:
        return coarse
    if not pa.types.is_timestamp(coarse.type):
        return with_children(coarse, [_finer(*pair) for pair in zip(below(coarse), below(fine), strict=True)])
    micros, nanos = (pc.fill_null(array.cast(pa.int64()), 0).to_numpy() for array in (coarse, fine))
    limit = (1 << 63) // 1000 - 1
    if ((-limit <= micros) & (micros <= limit)).all():
        return fine
    # The last three digits are right even in values that wrapped around.
    rest = nanos.view(np.uint64) - micros.view(np.uint64) * np.uint64(1000)
    seconds, part = np.divmod(micros, 10**6)
    return wide(seconds, part * 1000 + rest.view(np.int64), coarse, instant=coarse.type.tz is not None)


def _orc_type(field: pa.Field, path: str) -> OrcType:
    kind = field.type
    if kind in _LEAVES:
        return OrcType(_LEAVES[kind])
    if pa.types.is_dictionary(kind):  # an encoding of Arrow's: the file has plain values
        return _orc_type(field.with_type(kind.value_type), path)
    if pa.types.is_timestamp(kind):
        return OrcType("timestamp" if kind.tz is None else "timestamp with local time zone")
    if pa.types.is_fixed_size_binary(kind):
        return OrcType("binary")
    if kind == pa.uint64():
        return OrcType("decimal", precision=20)
    if pa.types.is_decimal(kind) and kind.precision <= 38 and kind.scale >= 0:
        return OrcType("decimal", precision=kind.precision, scale=kind.scale)
    if pa.types.is_struct(kind):
        names = tuple(child.name for child in kind)
        return OrcType("struct", children=tuple(_orc_type(child, path) for child in kind), names=names)
    if pa.types.is_map(kind):
        return OrcType("map", children=(_orc_type(kind.key_field, path), _orc_type(kind.item_field, path)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return OrcType("array", children=(_orc_type(kind.value_field, path),))
    raise BadDataError(f"{path} cannot be read", f"Hive has no type for its column {field.name} of {kind}")


def _as_orc(array: pa.Array, tree: OrcType) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if tree.kind.startswith("timestamp"):
        return _timestamps(array, tree)
    if tree.kind == "struct":
        # Only some of the fields may have been read.
        kinds = dict(tree.fields())
        names = [child.name for child in kind]
        return with_children(
            array, [_as_orc(c, kinds[name]) for c, name in zip(below(array), names, strict=True)], names
        )
    if tree.kind == "array" and not pa.types.is_list(kind):
        array = array.cast(pa.list_(kind.value_type))
    if tree.kind in ("array", "map"):
        return with_children(array, [_as_orc(c, k) for c, k in zip(below(array), tree.children, strict=True)])
    target = arrow_type(tree)
    if kind == pa.uint64():
        return _decimals(array, target)  # Arrow has no such cast
    return array if kind == target else array.cast(target)


def _decimals(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert unsigned numbers of 64 bits to decimals, whose lower half they are."""
    halves = np.zeros((len(array), 2), np.uint64)
    halves[:, 0] = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    is_valid = pa.py_buffer(np.packbits(array.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))
    return pa.Array.from_buffers(target, len(array), [is_valid, pa.py_buffer(halves)])


def _timestamps(array: pa.Array, tree: OrcType) -> pa.Array:
    target = arrow_type(tree)
    if isinstance(array.type, pa.BaseExtensionType):
        return array  # in the wide form already
    if target.tz is not None and array.type.tz != "UTC":
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        return widened(array)


# --- text ----------------------------------------------------------------------------------------------------------


class TextReader(ForeignReader):
    """Reads blocks of lines as stripes; a compressed file can only be read from its beginning."""

    def __init__(self, source: ByteSource, tail: Tail, declared: Declared | None = None) -> None:
        super().__init__(source, tail, declared)
        self._blocks: Iterator[bytes] = iter(())
        self._next = -1

    @staticmethod
    def describe(source: ByteSource, declared: Declared | None = None) -> Tail:
        """Return the footer that an ORC file of these rows would have.

        Args:
            declared: describes how a line is split into columns; by default a line is one column.

        Raises:
            BadDataError: acidctl does not support this way of splitting.
        """
        layout = declared.text if declared else None
        if layout and layout.problem:
            raise BadDataError(f"{source.path} cannot be read", layout.problem, "read the table with Hive")
        with native_errors(source.path):
            stripes = [(len(_ends(block)), len(block)) for block in _blocks(source)]
        if layout is None:
            return _made_tail(source, LINE, stripes)
        header, counts = _header_of([lines for lines, _ in stripes], layout)
        sizes = [size for _, size in stripes]
        tail = _made_tail(source, row_type_of(layout.columns), list(zip(counts, sizes, strict=True)))
        for stripe, skipped in zip(tail.footer.stripes, header, strict=True):
            stripe.offset = skipped
        return tail

    def _read(self, i: int, columns: Sequence[str] | None) -> pa.RecordBatch:
        if self._layout is None and columns is not None and list(columns) != ["line"]:
            raise BadDataError(f"{self._source.path} has no such column", "a text file has the one column `line`")
        with native_errors(self._source.path, i):
            if not 0 <= self._next <= i:
                self._blocks, self._next = _blocks(self._source), 0
            block = next(itertools.islice(self._blocks, i - self._next, None), b"")
            self._next = i + 1
        ends = _ends(block)
        stripe = self._tail.stripes[i]
        is_other = len(ends) != stripe.numberOfRows if self._layout is None else len(ends) < stripe.numberOfRows
        if is_other:
            raise BadDataError(f"{self._source.path} changed while it was read", "its lines are others", "try again")
        if self._layout is None:
            return pa.RecordBatch.from_arrays([_lines(block, ends)], names=["line"])
        bounds = [0, *ends[[stripe.offset - 1]]] if stripe.offset else [0]
        last = ends[stripe.offset + stripe.numberOfRows - 1] if stripe.numberOfRows else bounds[-1]
        lines = DelimitedBlock(block[bounds[-1] : last], stripe.numberOfRows, self._layout, self._source.path)
        with native_read(self._source.path, i):
            return lines.columns(self._tail.schema.row_type, columns)


def _header_of(lines: Sequence[int], layout: TextLayout) -> tuple[list[int], list[int]]:
    """Return how many lines of each block are above its first row, and how many are rows."""
    total, before = sum(lines), 0
    skipped, counts = [], []
    for count in lines:
        first = min(max(layout.header - before, 0), count)
        last = min(max(total - layout.footer - before, 0), count)
        skipped.append(first)
        counts.append(max(last - first, 0))
        before += count
    return skipped, counts


def text_extension(path: str) -> str | None:
    """Return the extension by which Hadoop finds the codec of a text file; None for a plain file."""
    extension = path.rpartition("/")[2].rpartition(".")[2].lower()
    return extension if extension in _CODECS or extension in _HADOOP_CODECS else None


def _decoded(source: ByteSource) -> Iterator[bytes]:
    """Yield the text without a byte order mark at its beginning: Hadoop does not count it as part of the first line."""
    work, total = DecodingBudget(source.path, source.size), 0
    for piece in _pieces(source):
        text = piece.removeprefix(BYTE_ORDER_MARK) if not total else piece
        total += len(piece)
        work.add(0, total)
        yield text


def _pieces(source: ByteSource) -> Iterator[bytes]:
    extension = text_extension(source.path)
    raw = ReadAheadFile(source)
    if extension in _HADOOP_CODECS:
        why = f"acidctl does not read text in Hadoop's frames of {extension}"
        raise BadDataError(f"{source.path} cannot be read", why, "read the table with Hive")
    stream = io.BufferedReader(raw, _BLOCK)
    with (
        pa.PythonFile(stream, mode="r") as plain,
        plain if extension is None else pa.CompressedInputStream(plain, _CODECS[extension]) as text,
    ):
        while piece := text.read(_BLOCK):
            yield piece


def _blocks(source: ByteSource) -> Iterator[bytes]:
    """Yield the text in blocks of about _BLOCK bytes or one line, cut after line ends."""
    waiting: list[bytes] = []
    size = 0
    for piece in _decoded(source):
        waiting.append(piece)
        size += len(piece)
        if size < _BLOCK:
            continue
        STRIPE_MEMORY.check(size * _A_BYTE, source.path, "memory that one of its lines takes")
        # A line feed is the only safe place: a carriage return may be half of a line's end.
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield b"".join([*waiting[:-1], piece[:cut]])
            waiting, size = [piece[cut:]], len(piece) - cut
    if size:
        yield b"".join(waiting)


def _ends(block: bytes) -> Any:
    """Return where each line ends, including its line end: at LF, CR, CR LF or the end, as in Hadoop."""
    data = np.frombuffer(block, np.uint8)
    feeds = data == ord("\n")
    breaks = feeds.copy()
    if b"\r" in block:
        returns = data == ord("\r")
        returns[:-1] &= ~feeds[1:]
        breaks |= returns
    ends = np.flatnonzero(breaks) + 1
    if len(data) and (not len(ends) or ends[-1] != len(data)):
        ends = np.append(ends, len(data))
    return ends


def _spans(block: bytes, ends: Any) -> tuple[Any, Any]:
    """Return where each line begins, and where it ends without its line end."""
    data = np.frombuffer(block, np.uint8)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])[: len(ends)]
    stops = ends.astype(np.int64)
    if len(data):
        last = data[ends - 1]
        # A carriage return before a line feed is in the same line.
        pairs = (last == ord("\n")) & (ends - starts > 1) & (data[ends - 2] == ord("\r"))
        stops = stops - ((last == ord("\n")) | (last == ord("\r"))) - pairs
    return starts, stops


def _lines(block: bytes, ends: Any) -> pa.Array:
    """Return the lines without their ends, as a string column whose bytes may not be UTF-8."""
    data = np.frombuffer(block, np.uint8)
    starts, stops = _spans(block, ends)
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = np.cumsum(stops - starts)
    kept = data[(data != ord("\n")) & (data != ord("\r"))]  # all of these end a line
    return pa.Array.from_buffers(pa.string(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(kept)])


READERS = {"Parquet": ParquetReader, "text": TextReader}
