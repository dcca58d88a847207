"""Bloom filters of ORC files: they show which values are in no group of rows of a stripe.

Only filters of whole numbers and strings are used, because all writers hash these alike: Thomas Wang's hash for numbers
of 64 bits, Murmur3 for bytes [org.apache.orc.util.BloomFilter, Murmur3]. Filters of strings from before ORC-101, which
depend on the writer's character set, are not used, nor is any malformed filter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import ChunkError, decompress
from acidctl.orc.tail import Tail, placed_streams
from acidctl.orc.types import OrcType
from acidctl.orc.varint import unsigned
from acidctl.rows.read.events import EventFile
from acidctl.rows.scan.columns import ColumnSource, ScanColumn, own_column
from acidctl.rows.scan.predicate import Path
from acidctl.rows.scan.pruning import ColumnBounds

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_WRITERS = (0, 1)
"""ORC's own writers in Java and C++."""

_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_SEED = 104729


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The filter of one group of rows.

    Attributes:
        hashes: number of bits that a value sets.
        bits: words of 64 bits, the lowest byte first.
    """

    hashes: int
    bits: bytes

    def may_hold(self, hashed: int) -> bool:
        """Return whether a value of this hash may be among the rows."""
        low, high, count = _signed(hashed), _signed(hashed >> 32), len(self.bits) * 8
        for turn in range(1, self.hashes + 1):
            mixed = _signed(low + turn * high)
            bit = (~mixed if mixed < 0 else mixed) % count
            if not self.bits[bit >> 3] >> (bit & 7) & 1:
                return False
        return True


def with_bloom_filters(
    known: Callable[[Path], ColumnBounds | None],
    source: EventFile,
    stripe: int,
    columns: Mapping[Path, ScanColumn],
    row_type: OrcType,
) -> Callable[[Path], ColumnBounds | None]:
    """Extend column bounds by bloom filters, which are read on first use.

    Args:
        known: the bounds without the filters.
        columns: the columns of the condition, by their paths.
        row_type: the row type that their positions refer to.
    """

    @functools.cache
    def bounds(path: Path) -> ColumnBounds | None:
        plain, column = known(path), columns[path]
        file_column = own_column(source.row_type, column, row_type) if column.kind is ColumnSource.DATA else None
        if plain is None or file_column is None or not _can_hash(source.tail, file_column, column.type):
            return plain
        filters = functools.cache(lambda: row_filters(source.tail, stripe, file_column))
        return replace(plain, absent=lambda value: _is_absent(filters, file_column, value))

    return bounds


def _can_hash(tail: Tail, own: OrcType, target: OrcType) -> bool:
    """Return whether the filter hashed the values in the form in which they are searched."""
    kinds = own.kind, target.kind
    return tail.footer.writer in _WRITERS and (
        kinds == ("string", "string") or all(kind in _INTEGERS for kind in kinds)
    )


def _is_absent(read_filters: Callable[[], Sequence[RowFilter]], own: OrcType, value: Any) -> bool:
    hashed = _hash_of(own, value)
    if hashed is None:
        return False
    filters = read_filters()
    return bool(filters) and not any(group.may_hold(hashed) for group in filters)


def _hash_of(own: OrcType, value: Any) -> int | None:
    if own.kind == "string":
        # Invalid UTF-8 is read as U+FFFD, but was hashed unchanged.
        odd = "\N{REPLACEMENT CHARACTER}".encode()
        return murmur(value) if isinstance(value, bytes) and odd not in value else None
    if not isinstance(value, Fraction) or value.denominator != 1 or not -(1 << 63) <= value < 1 << 63:
        return None
    return mixed_number(int(value))


def row_filters(tail: Tail, stripe: int, column: OrcType) -> Sequence[RowFilter]:
    """Return the filters of a column in a stripe, one for each group of rows; none if they are unusable.

    Args:
        column: the file's column, of whole numbers or strings.
    """
    try:
        usable = {pb.Stream.BLOOM_FILTER_UTF8} | ({pb.Stream.BLOOM_FILTER} if column.kind in _INTEGERS else set())
        section = None
        for stream, start in placed_streams(tail.stripe_footer(stripe), tail.stripes[stripe].offset):
            if stream.column == column.column_id and stream.kind in usable:
                section = tail.source.read(start, stream.length)
        raw = None if section is None else decompress(section, tail.compression, tail.block_size)
        filters = [] if raw is None else list(_filters(raw))
    except (BadDataError, ChunkError, ValueError, LookupError):
        return ()  # reading the stripe reports the error
    groups = -(-tail.stripes[stripe].numberOfRows // tail.stride) if tail.stride else 0
    is_sound = len(filters) == groups and all(group.bits and 0 < group.hashes < 64 for group in filters)
    return filters if is_sound else ()


def _filters(section: bytes) -> Iterator[RowFilter]:
    """Parse a BloomFilterIndex of ORC's messages: field 1 is a filter; its field 1 is hashes, 2 and 3 are bits."""
    for number, value in _fields(section):
        if number != 1 or not isinstance(value, bytes):
            raise ValueError
        hashes, words, plain = 0, [], b""
        for field_number, part in _fields(value):
            if field_number == 1 and isinstance(part, int):
                hashes = part
            elif field_number == 2 and isinstance(part, bytes):
                words.append(part)
            elif field_number == 3 and isinstance(part, bytes):
                plain = part
        yield RowFilter(hashes, plain or b"".join(words))


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the numbers and values of a message's fields; fixed-size values as their bytes."""
    offset = 0
    while offset < len(message):
        tag, offset = unsigned(message, offset)
        kind = tag & 7
        if kind == 0:
            number, offset = unsigned(message, offset)
            yield tag >> 3, number
            continue
        length, offset = unsigned(message, offset) if kind == 2 else ({1: 8, 5: 4}[kind], offset)
        if offset + length > len(message):
            raise ValueError
        yield tag >> 3, message[offset : offset + length]
        offset += length


def mixed_number(value: int) -> int:
    """Return the hash of a whole number, as 64 bits without a sign."""
    key = _long(~value + (value << 21))
    key = _long(key ^ (key >> 24))
    key = _long(key + (key << 3) + (key << 8))
    key = _long(key ^ (key >> 14))
    key = _long(key + (key << 2) + (key << 4))
    key = _long(key ^ (key >> 28))
    return (key + (key << 31)) & _MASK


def murmur(data: bytes) -> int:
    """Return the hash of some bytes, as 64 bits without a sign."""
    hashed = _SEED
    whole = len(data) & ~7
    for offset in range(0, whole, 8):
        hashed ^= _mixed_word(int.from_bytes(data[offset : offset + 8], "little"))
        hashed = (_rotated(hashed, 27) * 5 + 0x52DCE729) & _MASK
    if whole < len(data):
        hashed ^= _mixed_word(int.from_bytes(data[whole:], "little"))
    hashed ^= len(data)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        hashed = ((hashed ^ hashed >> 33) * factor) & _MASK
    return hashed ^ hashed >> 33


def _mixed_word(word: int) -> int:
    return _rotated(word * _C1 & _MASK, 31) * _C2 & _MASK


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> 64 - by) & _MASK


def _signed(value: int) -> int:
    """Return the lowest 32 bits as Java's int."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _long(value: int) -> int:
    """Return the lowest 64 bits as Java's long."""
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value
