"""The pages of a column of Parquet, as their headers describe them: what a native reader will unpack them to."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from acidctl.orc.byte_source import damaged
from acidctl.orc.varint import encoded, unsigned
from acidctl.rows.foreign.thrift import LIST, STRUCT, fields_of

Read = Callable[[int, int], bytes]
"""Gives the bytes at an offset of the file."""

DATA, DICTIONARY, DATA_2 = 0, 2, 3
"""Kinds of pages."""
PLAIN, BY_DICTIONARY, PACKED_NUMBERS, SHARED_BEGINNINGS = 0, (2, 8), 5, 7
"""Encodings: one value behind the other; numbers of entries; differences of integers; what a text has in common with
the one before, then the rest of it."""
_LEVELS_BY_RUNS = 3
_INT32, _BYTES = 1, 6
_I32, _I64, _TEXT, _PATH = 5, 6, 8, 3
_MAGIC = b"PAR1"
_NO_PAGE = "no page can be at {}: {}"
_CODES = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "LZ4": 5, "ZSTD": 6}
_UNPACKED = {"SNAPPY": "snappy", "GZIP": "gzip", "BROTLI": "brotli", "ZSTD": "zstd"}
_FIRST_HEADER, _LARGEST_HEADER = 256, 16 << 20


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes:
        kind: DATA, DICTIONARY, DATA_2 or what nobody reads.
        at: where its bytes begin in the file.
        packed: how many they are.
        unpacked: and once they are decompressed.
        values: that it claims to hold, NULL included.
        encoding: of its values.
        header: all of the header.
    """

    kind: int
    at: int
    packed: int
    unpacked: int
    values: int
    encoding: int
    header: dict[int, Any]


def next_page(read: Read, at: int, end: int, path: str) -> Page:
    """The page whose header is at a place of the file, and which lies before `end`.

    Raises:
        BadDataError: none is.
    """
    header, begin = _header(read, at, end, path)
    kind, unpacked, packed = (_int(header.get(number)) for number in (1, 2, 3))
    own = header.get({DATA: 5, DICTIONARY: 7, DATA_2: 8}.get(kind, 0))
    own = own if isinstance(own, dict) else {}
    values = _int(own.get(1))
    if min(unpacked, packed, values) < 0 or begin + packed > end:
        raise damaged(path, _NO_PAGE.format(at, "it claims impossible lengths"))
    return Page(kind, begin, packed, unpacked, values, _int(own.get(4 if kind == DATA_2 else 2)), header)


def _header(read: Read, at: int, end: int, path: str) -> tuple[dict[int, Any], int]:
    size = _FIRST_HEADER
    while True:
        raw = read(at, min(size, end - at))
        try:
            header, length = fields_of(raw, 0)
        except ValueError as error:
            raise damaged(path, _NO_PAGE.format(at, error)) from error
        except IndexError as error:
            if size >= min(_LARGEST_HEADER, end - at):
                raise damaged(path, _NO_PAGE.format(at, "its header is cut short")) from error
            size *= 16
        else:
            return header, at + length


def _int(value: Any) -> int:
    """A number of 32 bits as generated libraries take it from more."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31) if isinstance(value, int) else 0


def longest_text(page: Page, read: Read, compression: str) -> int:
    """The most bytes of one entry of a dictionary of texts; where it cannot be read, all bytes of the page."""
    entries = min(page.values, page.unpacked // 4)
    if not entries or compression not in _CODES:
        return page.unpacked
    data = read(page.at, page.packed)
    try:
        texts = _decoded(_Values(data, page.unpacked, entries, _BYTES, PLAIN), _CODES[compression])
        return int(pc.max(pc.binary_length(texts)).as_py() or 0)
    except (pa.ArrowException, OSError):
        return page.unpacked


def shared_bytes(page: Page, read: Read, compression: str, *, levels: Sequence[int]) -> float:
    """How many bytes the texts of a page take from those before them, where that can be read; else the most it can be.

    Args:
        levels: the greatest repetition level and the greatest definition level of the column.
    """
    try:
        values = _values(page, read(page.at, page.packed), compression, levels)
        count = min(page.values, _packed_count(values))
        if not count:
            return 0.0
        lengths = _decoded(_Values(values, len(values), count, _INT32, PACKED_NUMBERS))
        return float(pc.sum(lengths.cast(pa.int64())).as_py())
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError):
        return float(page.values) * page.unpacked


def _values(page: Page, data: bytes, compression: str, levels: Sequence[int]) -> bytes:
    """The values of a page, without the levels before them."""
    own = page.header[5 if page.kind == DATA else 8]
    before = 0 if page.kind == DATA else _int(own.get(5)) + _int(own.get(6))
    if before < 0 or before > len(data):
        raise ValueError("levels are longer than the page")
    plain, size = data[before:], page.unpacked - before
    if compression != "UNCOMPRESSED" and own.get(7, True):
        plain = pa.Codec(_UNPACKED[compression]).decompress(plain, decompressed_size=size, asbytes=True)
    if page.kind == DATA:
        for most, encoding in zip(levels, (own.get(4), own.get(3)), strict=True):
            if most and encoding != _LEVELS_BY_RUNS:
                raise ValueError("levels of another encoding")
            if most:
                plain = plain[4 + int.from_bytes(plain[:4], "little") :]
    return plain


def _packed_count(values: bytes) -> int:
    """How many integers a series of differences holds: the third number of its header."""
    at = 0
    for _ in range(3):
        count, at = unsigned(values, at)
    return count


# --- a file of one page, which Arrow decodes as it decodes the page where it stands ---


class _Values(NamedTuple):
    """What a page holds without levels: bytes, how many they unpack to, values, their type and encoding."""

    data: bytes
    unpacked: int
    number: int
    kind: int
    encoding: int


def _decoded(values: _Values, codec: int = 0) -> pa.ChunkedArray:
    own = _struct({1: values.number, 2: values.encoding, 3: _LEVELS_BY_RUNS, 4: _LEVELS_BY_RUNS})
    page = _struct({1: DATA, 2: values.unpacked, 3: len(values.data), 5: own}) + values.data
    count, unpacked = _Long(values.number), _Long(values.unpacked)
    column = _struct({
        1: values.kind, 2: [encoded(values.encoding << 1)], 3: [b"\1a"], 4: codec,
        5: count, 6: unpacked, 7: _Long(len(page)), 9: _Long(len(_MAGIC)),
    })  # fmt: skip
    group = _struct({1: [_struct({2: _Long(0), 3: column})], 2: unpacked, 3: count})
    schema = [_struct({4: "r", 5: 1}), _struct({1: values.kind, 3: 0, 4: "a"})]
    footer = _struct({1: 1, 2: schema, 3: count, 4: [group]})
    file = b"".join([_MAGIC, page, footer, struct.pack("<I", len(footer)), _MAGIC])
    return pq.ParquetFile(pa.BufferReader(file)).read_row_group(0, use_threads=False).column(0)


class _Long(int):
    """A number of 64 bits."""


class _Struct(bytes):
    """A struct as it is written."""


def _struct(fields: dict[int, Any]) -> _Struct:
    """Fields by number: integers, texts, structs, and lists of structs, of texts or of integers as they are written."""
    parts, last = [], 0
    for number, value in fields.items():
        kind, raw = _field(value, number)
        parts += [bytes(((number - last) << 4 | kind,)), raw]
        last = number
    return _Struct(b"".join(parts) + b"\0")


def _field(value: Any, number: int) -> tuple[int, bytes]:
    if isinstance(value, list):
        kind = STRUCT if isinstance(value[0], _Struct) else _TEXT if number == _PATH else _I32
        return LIST, bytes((len(value) << 4 | kind,)) + b"".join(value)
    if isinstance(value, _Struct):
        return STRUCT, value
    if isinstance(value, str):
        return _TEXT, bytes((len(value),)) + value.encode()
    return _I64 if isinstance(value, _Long) else _I32, encoded(value << 1)
