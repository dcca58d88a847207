"""Refuse streams with which a file can crash ORC's C++ reader, end the process, keep it busy, or take all memory.

The reader uses any tag of a union as an index into its alternatives, without a check, and crashes. It brings a decimal
from its own scale to that of the column in steps of 18 digits: a scale of 2^62 takes years. Arrow cannot hold a map
with a NULL key and ends the whole process at one, so the PRESENT stream of a key column is read first.

The reader also crashes if it gets no memory for texts and lists, so a bound on its growth would not be enough: their
lengths are added up from their own streams, which are small. For all other types Arrow reports that memory is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow.compute as pc

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import damaged
from acidctl.orc.codecs import ChunkError, TooLarge, decompress
from acidctl.orc.limits import STRIPE_MEMORY, TAIL, DecodingBudget, LimitError
from acidctl.orc.read.integer_runs import Run, bound_of_runs, unsigned_runs
from acidctl.orc.read.memory_file import read_column
from acidctl.orc.tail import Tail, placed_streams
from acidctl.orc.types import OrcType
from acidctl.orc.varint import TooLongError

_TEXTS = frozenset(("string", "varchar", "char", "binary"))
_LISTS = frozenset(("array", "map"))
_WIDEST = 8
ROWS_SIZE = "decompressed size of its rows"
_IDS = 32  # bytes of the ids of one row
_MOST_RUNS = 10_000_000  # the most runs of one stream; writers make runs of up to 512 values
Read = Callable[[int, int], bytes]


class _Unknown(Exception):
    """The beginnings of the streams are not enough to decide."""


def check_rows(tail: Tail, i: int) -> None:
    """Refuse a stripe whose row ids alone would take too much memory, by LimitError."""
    STRIPE_MEMORY.check(
        tail.stripes[i].numberOfRows * _IDS, f"stripe {i} of {tail.path}", "decompressed size of its row ids"
    )


def check_all_rows(tail: Tail) -> None:
    """Refuse a file of more rows than ids can be made for in any reasonable time, by LimitError."""
    DecodingBudget(tail.path, tail.source.size).add(0, tail.rows * _IDS)


def has_lengths(tree: OrcType) -> bool:
    """Return whether a stripe of these columns must be checked before it is read."""
    return any(node.kind in _TEXTS or node.kind in _LISTS for node in tree.walk())


def check_stripe(tail: Tail, i: int, footer: pb.StripeFooter, tree: OrcType, read: Read) -> None:
    """Refuse a stripe whose texts and lists would take more memory than the limit.

    Args:
        tree: the columns to read, with the file's column ids.
        read: returns the bytes at an offset of the file.

    Raises:
        LimitError: the texts and lists would take more memory.
        BadDataError: a stream of lengths cannot be decompressed.
    """
    streams, rows = _streams(tail, i, footer), tail.stripes[i].numberOfRows
    try:
        _Size(tail, i, footer, streams, read).add(tree, rows)
    except LimitError:
        # The bounds of runs are quick and too large; real stripes seldom come here.
        _Size(tail, i, footer, streams, read, is_exact=True).add(tree, rows)


def is_small_at_first(tail: Tail, footer: pb.StripeFooter, rows: int, read: Read, most: int) -> bool:
    """Return whether the first `rows` rows of a file certainly take little memory.

    Args:
        footer: the footer of the first stripe.
        read: returns the bytes at an offset of the file.
        most: the bytes of each stream that may be read.
    """
    try:
        _Size(tail, 0, footer, _streams(tail, 0, footer), read, most).add(tail.type_tree, rows)
    except (_Unknown, BadDataError):
        return False
    return True


def sum_of_lengths(tail: Tail, i: int, footer: pb.StripeFooter, column: int) -> float:
    """Return the exact number of values of all lists or maps of a column together.

    Raises:
        LimitError: the lengths are written in a hostile number of runs.
        BadDataError: the lengths cannot be decompressed.
    """
    size = _Size(tail, i, footer, _streams(tail, i, footer), tail.source.read, is_exact=True)
    return size.lengths(column, math.inf)


def _streams(tail: Tail, i: int, footer: pb.StripeFooter) -> dict[tuple[int, int], tuple[int, int]]:
    """Return offset and length of every stream by column and kind; of equal streams the first, as ORC's reader does."""
    ranges: dict[tuple[int, int], tuple[int, int]] = {}
    for stream, at in placed_streams(footer, tail.stripes[i].offset):
        ranges.setdefault((stream.column, stream.kind), (at, stream.length))
    return ranges


@dataclass(slots=True)
class _Size:
    tail: Tail
    stripe: int
    footer: pb.StripeFooter
    streams: dict[tuple[int, int], tuple[int, int]]
    read: Read
    most: int | None = None
    is_exact: bool = False
    total: float = 0.0
    limit: int = field(default_factory=lambda: STRIPE_MEMORY.value)

    @property
    def _where(self) -> str:
        return f"stripe {self.stripe} of {self.tail.path}"

    def add(self, node: OrcType, count: float) -> None:
        """Add the texts and lists of a column of `count` values and of all columns below it."""
        if node.kind in _TEXTS:
            self._grow(4 * count)
            self._grow(self._text(node.column_id, count))
        elif node.kind in _LISTS:
            self._grow(4 * count)
            count = self.lengths(node.column_id, count)
            self._grow(sum(_WIDEST * count for child in node.children if child.kind not in _TEXTS))
        for child in node.children:
            self.add(child, count)

    def _grow(self, amount: float) -> None:
        self.total += amount
        if self.total > self.limit:
            raise STRIPE_MEMORY.error(self._where, ROWS_SIZE, self.total)

    def _text(self, column: int, count: float) -> float:
        kinds = pb.ColumnEncoding.DICTIONARY, pb.ColumnEncoding.DICTIONARY_V2
        if column >= len(self.footer.columns) or self.footer.columns[column].kind not in kinds:
            return self.lengths(column, count)
        entries = self.footer.columns[column].dictionarySize
        self._grow(entries * _WIDEST)
        return self.lengths(column, entries)

    def lengths(self, column: int, count: float) -> float:
        """Return the sum of the first `count` lengths of a column."""
        if not self.is_exact and self.most is None and self._version(column) == 2:
            return bound_of_runs(self._bytes(column, pb.Stream.LENGTH), count)[0]
        return sum(float(values.sum()) * times for values, times in self._runs(column, pb.Stream.LENGTH, count))

    def _runs(self, column: int, kind: int, count: float) -> Iterator[Run]:
        """Yield the runs that hold the first `count` values of a stream of unsigned integers.

        A stream that ends early is not an error here: a native reader fails on it before it takes more memory.
        """
        _, length = self.streams.get((column, kind), (0, 0))
        is_cut = self.most is not None and length > self.most
        raw = self._bytes(column, kind)
        seen = 0
        with suppress(IndexError, TooLongError):
            for number, (values, times) in enumerate(unsigned_runs(raw, version=self._version(column))):
                if seen >= count:
                    return
                if number > _MOST_RUNS:
                    raise STRIPE_MEMORY.error(self._where, "number of the runs of a stream")
                yield values, times
                seen += len(values) * times
        if is_cut and seen < count:
            raise _Unknown

    def _version(self, column: int) -> int:
        newer = pb.ColumnEncoding.DIRECT_V2, pb.ColumnEncoding.DICTIONARY_V2
        return 2 if column < len(self.footer.columns) and self.footer.columns[column].kind in newer else 1

    def _bytes(self, column: int, kind: int) -> bytes:
        """Return a decompressed stream, as far as it may be read; no bytes if the stream does not exist."""
        offset, length = self.streams.get((column, kind), (0, 0))
        if not length:
            return b""
        is_cut = self.most is not None and length > self.most
        data = self.read(offset, min(length, self.most or length))
        try:
            return decompress(data, self.tail.compression, self.tail.block_size, is_cut=is_cut)
        except TooLarge as error:
            raise TAIL.error(self._where, "a stream of lengths") from error
        except ChunkError as error:
            hint = "the file is damaged, or uses a part of ORC that is not supported"
            raise BadDataError(f"{self._where} cannot be read", str(error), hint) from error


KINDS = frozenset(("uniontype", "decimal"))
"""Types of columns that :func:`check_streams` checks."""

_LITERALS = 128
"""The first byte of a run of tags is below this for repeats of the next byte (it is their number minus 3), else it is
256 minus the number of literals."""
_HIGHEST_SCALE = 128  # the highest scale that is let through: Hive's are 0 to 38, and a little more costs nothing


def check_streams(
    tail: Tail, i: int, footer: pb.StripeFooter, tree: OrcType, read: Callable[[int, int], bytes]
) -> None:
    """Refuse a stripe that would crash ORC's reader or keep it busy for ever.

    Args:
        tree: the root struct of the columns to read, with the file's column ids.
        read: returns the bytes at an offset of the file.

    Raises:
        BadDataError: a union has a tag that names none of its alternatives, a decimal has an impossible scale, or
            these streams cannot be decompressed.
    """
    unions = {node.column_id: len(node.children) for node in tree.walk() if node.kind == "uniontype"}
    decimals = {node.column_id for node in tree.walk() if node.kind == "decimal"}

    def content(at: int, length: int, what: str) -> bytes:
        try:
            return decompress(read(at, length), tail.compression, tail.block_size)
        except TooLarge as error:
            raise TAIL.error(f"stripe {i} of {tail.path}", f"size of the {what}") from error
        except ChunkError as error:
            raise damaged(tail.path, f"in stripe {i} the {what}: {error}") from error

    for stream, at in placed_streams(footer, tail.stripes[i].offset):
        why = ""
        if stream.length and stream.kind == pb.Stream.DATA and stream.column in unions:
            count, highest = unions[stream.column], highest_byte(content(at, stream.length, "tags of a union"))
            if highest >= count:
                why = f"a union, column {stream.column}, has the tag {highest}, and {count} alternatives"
        elif stream.length and stream.kind == pb.Stream.SECONDARY and stream.column in decimals:
            encoding = footer.columns[stream.column].kind if stream.column < len(footer.columns) else None
            version = 2 if encoding == pb.ColumnEncoding.DIRECT_V2 else 1
            scale = highest_scale(content(at, stream.length, "scales of a decimal"), version)
            if scale > _HIGHEST_SCALE:
                why = f"a decimal, column {stream.column}, has a scale of up to {scale:.0f}"
        if why:
            raise BadDataError(f"stripe {i} of {tail.path} cannot be read", why, "the file is damaged")


def highest_byte(data: bytes) -> int:
    """Return the greatest value of a stream of run-length encoded bytes; 0 if it is empty."""
    at, end, highest = 0, len(data), 0
    while at < end:
        head = data[at]
        after = at + 2 if head < _LITERALS else at + 257 - head
        highest = max(highest, max(data[at + 1 : after], default=0))
        at = after
    return highest


def highest_scale(data: bytes, version: int) -> float:
    """Return an upper bound of the absolute values in a stream of signed integers, up to where it is damaged.

    A negative scale counts as a large scale if it is in a run with a slope, which no writer makes.

    Args:
        version: the version of the encoding, 1 or 2.
    """
    if version == 2 and (bound := bound_of_runs(data, float("inf"))[1] / 2) <= _HIGHEST_SCALE:
        return bound
    highest = 0.0
    with suppress(IndexError, TooLongError):
        for values, _ in unsigned_runs(data, version=version):
            highest = max(highest, float(values.max()) / 2)
    return highest


_DECODED = 8  # bytes that Arrow's reader takes for one bit


class NullMapKey(BadDataError):
    """A map has a NULL key, which is legal in Hive but not in Arrow."""


def check_map_keys(tail: Tail, i: int, footer: pb.StripeFooter, tree: OrcType) -> None:
    """Refuse a stripe with a NULL map key, which would end the process.

    Args:
        tree: the root struct of the columns to read, with the file's column ids.

    Raises:
        NullMapKey: a map in these columns has a NULL key.
        BadDataError: the stripe is damaged.
    """
    maps = {node.children[0].column_id: node.column_id for node in tree.walk() if node.kind == "map"}
    for stream, at in placed_streams(footer, tail.stripes[i].offset):
        if stream.kind == pb.Stream.PRESENT and stream.length and stream.column in maps:
            keys = int(sum_of_lengths(tail, i, footer, maps[stream.column]))
            if not keys:
                continue
            STRIPE_MEMORY.check(keys * _DECODED, f"stripe {i} of {tail.path}", "number of the keys of its maps")
            # PRESENT streams are stored like the values of a BOOLEAN.
            streams = {pb.Stream.DATA: tail.source.read(at, stream.length)}
            is_present = read_column(tail, i, "boolean", streams, keys)
            if len(is_present) != keys or not pc.all(is_present).as_py():
                raise NullMapKey(
                    f"stripe {i} of {tail.path} holds a map with a NULL key",
                    f"column {stream.column} of the file is the key",
                    "leave that column out, or rewrite the rows in Hive",
                )
