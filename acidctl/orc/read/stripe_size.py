"""Bound the memory that texts and lists of a stripe take, before a native reader takes it.

ORC's C++ reader crashes if it gets no memory for these, so a bound on its growth would not be enough: their lengths
are added up from their own streams, which are small. For all other types Arrow reports that memory is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import ChunkError, TooLarge, decompress
from acidctl.orc.limits import STRIPE_MEMORY, TAIL, DecodingBudget, LimitError
from acidctl.orc.read.integer_runs import Run, bound_of_runs, unsigned_runs
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
