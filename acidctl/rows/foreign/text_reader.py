"""Text files, whose blocks of lines are read as stripes.

A line is one row with one column, ``line``, unless the metastore declares how its fields are separated. Then Arrow's
reader of CSV splits it. Hive's LazySimpleSerDe reads an invalid value as NULL, by different rules for every type. Here
only values in the form that Hive writes are accepted; others are refused, so that no row is read differently than in
Hive.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from acidctl.base.errors import BadDataError
from acidctl.location.metastore_schema import Declared, TextLayout
from acidctl.orc.arrow import cut_text
from acidctl.orc.byte_source import ByteSource, ReadAheadFile, native_errors, native_read
from acidctl.orc.limits import STRIPE_MEMORY, DecodingBudget
from acidctl.orc.read.wide_timestamps import as_nanoseconds, wide
from acidctl.orc.tail import Tail
from acidctl.orc.types import OrcType, arrow_type, row_type_of
from acidctl.rows.foreign.foreign_reader import (
    BYTE_ORDER_MARK,
    CODECS,
    HADOOP_CODECS,
    ForeignReader,
    made_tail,
    one_chunk,
    text_extension,
)

_TEXTS = ("string", "char", "varchar")
_ASCII = 128
_EMPTY_LINES = (b"\n\n", b"\n\r", b"\r\r")
_SECONDS = len("2026-11-25 10:11:12")

_INTEGER = "^-?[0-9]{1,19}$"
_FLOAT = r"^-?(?:[0-9]+(?:\.[0-9]+)?(?:E-?[0-9]{1,3})?|Infinity)$|^NaN$"
# The forms in which Hive writes values of types other than text.
_FORMS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _INTEGER),
    "float": _FLOAT,
    "double": _FLOAT,
    "boolean": "^(?i:true|false)$",
    "decimal": r"^-?[0-9]{1,38}(?:\.[0-9]{1,38})?$",
    "date": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "timestamp": r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?$",
}


class DelimitedBlock:
    """A block of lines of a file.

    Args:
        count: the number of lines.
        path: for errors.
    """

    def __init__(self, data: bytes, count: int, layout: TextLayout, path: str) -> None:
        self._data, self._count, self._layout, self._path = data, count, layout, path

    def columns(self, row: OrcType, names: Sequence[str] | None) -> pa.RecordBatch:
        """Return the columns with these names, or all of them; each line is a row.

        Raises:
            BadDataError: acidctl does not read these types, values or lines as Hive does.
        """
        wanted = [(name, kind) for name, kind in row.fields() if names is None or name in names]
        for name, kind in wanted:
            if kind.kind not in _FORMS and kind.kind not in _TEXTS:
                raise self._refused(f"acidctl does not read {kind.kind} from text, as its column {name} is")
        fields = self._fields(row.names)
        arrays = [self._values(fields.get(name), name, kind) for name, kind in wanted]
        return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in wanted])

    def _refused(self, why: str) -> BadDataError:
        return BadDataError(f"{self._path} cannot be read", why, "read the table with Hive")

    def _fields(self, names: Sequence[str]) -> dict[str, pa.Array]:
        """Return the bytes of the fields by name, without the last columns if all lines end before them."""
        separator = self._layout.separator
        if separator >= _ASCII or self._layout.escape == separator:
            raise self._refused("acidctl takes ASCII alone for what separates fields, and no escape")
        first = re.split(rb"[\r\n]", self._data, maxsplit=1)[0]
        names = names[: first.count(separator) + 1]
        if len(names) > 1 and any(ends in self._data for ends in _EMPTY_LINES):
            raise self._refused("it has empty lines among lines of several fields")
        try:
            table = csv.read_csv(
                pa.py_buffer(self._data),
                csv.ReadOptions(use_threads=False, block_size=len(self._data) + 1, column_names=list(names)),
                csv.ParseOptions(
                    delimiter=chr(separator),
                    quote_char=False,
                    double_quote=False,
                    escape_char=self._escape(),
                    ignore_empty_lines=False,
                ),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.binary()),
                    null_values=[self._layout.null],
                    strings_can_be_null=True,
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._refused(f"its lines are not as acidctl knows them: {str(error)[:200]}") from error
        if table.num_rows != self._count:
            raise self._refused(f"{table.num_rows} rows were found in {self._count} of its lines")
        return {name: one_chunk(table.column(name)) for name in names}

    def _escape(self) -> str | bool:
        """Return Arrow's escape character: False if the data has no escapes, apart from the text for NULL."""
        escape, null = self._layout.escape, self._layout.null.encode()
        if escape is None or escape not in self._data:
            return False
        byte, separator = re.escape(bytes([escape])), re.escape(bytes([self._layout.separator]))
        alone = rb"(?<![^\r\n%b])%b(?![^\r\n%b])" % (separator, re.escape(null), separator)
        if escape in null and self._data.count(escape) == null.count(escape) * len(re.findall(alone, self._data)):
            return False
        # Arrow compares with the text for NULL after removing escapes, Hive before; and in Hive `\n` is a line end.
        odd = rb"%b(?:[\r\nnr%b]|\Z)" % (byte, re.escape(null))
        if escape >= _ASCII or escape in null or re.search(odd, self._data.replace(bytes([escape, escape]), b"")):
            raise self._refused("it has escapes that acidctl does not know")
        return chr(escape)

    def _values(self, raw: pa.Array | None, name: str, kind: OrcType) -> pa.Array:
        if raw is None:
            return pa.nulls(self._count, arrow_type(kind))
        if kind.kind in _TEXTS:
            text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), offset=raw.offset)
            cut = text if kind.kind == "string" else cut_text(text, kind.max_length)
            return pc.ascii_rtrim(cut, characters=" ") if kind.kind == "char" else cut
        raw = pc.if_else(pc.equal(raw, b""), pa.scalar(None, raw.type), raw)
        odd = raw.filter(pc.invert(pc.match_substring_regex(raw, _FORMS[kind.kind])))
        if len(odd):
            shown = odd[0].as_py()[:40].decode("utf-8", "replace")
            raise self._refused(f"its column {name} has {shown!r}, which is not how Hive writes {kind.kind}")
        texts = raw.cast(pa.string())
        try:
            if kind.kind == "boolean":
                return pc.equal(pc.ascii_lower(texts), "true")
            return _timestamps(texts) if kind.kind == "timestamp" else texts.cast(arrow_type(kind))
        except pa.ArrowInvalid as error:
            raise self._refused(f"its column {name} has values beyond {kind.kind}: {str(error)[:200]}") from error


def _timestamps(texts: pa.Array) -> pa.Array:
    """Parse values of any year: seconds as Arrow reads them, and the digits after the point."""
    seconds = pc.utf8_slice_codeunits(texts, 0, _SECONDS).cast(pa.timestamp("s")).cast(pa.int64())
    nanos = pc.utf8_rpad(pc.utf8_slice_codeunits(texts, _SECONDS + 1), 9, "0").cast(pa.int64())
    whole, rest = (np.asarray(pc.fill_null(part, 0)) for part in (seconds, nanos))
    return as_nanoseconds(wide(whole, rest, seconds, instant=False))


LINE = OrcType("struct", children=(OrcType("string"),), names=("line",))
"""The row type of a text file."""

# Bytes of text in a stripe, unless a line is longer.
_BLOCK = 8 << 20
# Bytes of memory for each byte of text while lines are searched.
_A_BYTE = 4


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
            return made_tail(source, LINE, stripes)
        header, counts = _header_of([lines for lines, _ in stripes], layout)
        sizes = [size for _, size in stripes]
        tail = made_tail(source, row_type_of(layout.columns), list(zip(counts, sizes, strict=True)))
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
            return lines.columns(self._tail.type_tree, columns)


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
    if extension in HADOOP_CODECS:
        why = f"acidctl does not read text in Hadoop's frames of {extension}"
        raise BadDataError(f"{source.path} cannot be read", why, "read the table with Hive")
    stream = io.BufferedReader(raw, _BLOCK)
    with (
        pa.PythonFile(stream, mode="r") as plain,
        plain if extension is None else pa.CompressedInputStream(plain, CODECS[extension]) as text,
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
