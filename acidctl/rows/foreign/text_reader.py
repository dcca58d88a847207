"""Text files, whose blocks of lines are read as stripes.

A line is one row with one column, ``line``, unless the metastore declares how its fields are separated.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from acidctl.base.errors import BadDataError
from acidctl.location.metastore_schema import Declared, TextLayout
from acidctl.orc.byte_source import ByteSource, ReadAheadFile, native_errors, native_read
from acidctl.orc.hive_types import row_type_of
from acidctl.orc.limits import STRIPE_MEMORY, DecodingBudget
from acidctl.orc.tail import Tail
from acidctl.orc.types import OrcType
from acidctl.rows.foreign.delimited_text import DelimitedBlock
from acidctl.rows.foreign.foreign_reader import (
    BYTE_ORDER_MARK,
    CODECS,
    HADOOP_CODECS,
    ForeignReader,
    made_tail,
    text_extension,
)

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
