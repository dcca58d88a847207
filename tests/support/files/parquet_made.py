"""Parquet files byte by byte, whose footers and pages may say what no writer says."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

INT64, TEXT, FIXED = 2, 6, 7
REQUIRED, OPTIONAL, REPEATED = 0, 1, 2
PLAIN, SHARED, BY_DICTIONARY = 0, 7, 8
I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


class Column(NamedTuple):
    """A column chunk.

    Attributes:
        kind: the physical type.
        path: names from the root on.
        values: that the footer claims.
        pages: all of them, the dictionary first.
        dictionary: how many bytes of `pages` that one takes.
    """

    kind: int
    path: Sequence[str]
    values: int
    pages: bytes
    dictionary: int = 0


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*encoded, number))


def zigzag(number: int) -> bytes:
    return varint(number << 1 ^ number >> 63)


def thrift(*fields: tuple[int, int, Any]) -> bytes:
    """A struct of (number, kind, value): integers, bytes, structs, or lists with the kind of their elements."""
    out, last = b"", 0
    for number, kind, value in fields:
        raw = value
        if kind in (I32, I64):
            raw = zigzag(value)
        elif kind == BINARY:
            raw = varint(len(value)) + value
        elif kind == LIST:
            raw = listed(value[0], value[1])
        out += bytes(((number - last) << 4 | kind,)) + raw
        last = number
    return out + b"\0"


def listed(kind: int, items: Sequence[bytes], claimed: int | None = None) -> bytes:
    return bytes((0xF0 | kind,)) + varint(len(items) if claimed is None else claimed) + b"".join(items)


def data_page(values: int, encoding: int, body: bytes) -> bytes:
    own = thrift((1, I32, values), (2, I32, encoding), (3, I32, 3), (4, I32, 3))
    return thrift((1, I32, 0), (2, I32, len(body)), (3, I32, len(body)), (5, STRUCT, own)) + body


def dictionary_page(values: int, body: bytes) -> bytes:
    own = thrift((1, I32, values), (2, I32, PLAIN))
    return thrift((1, I32, 2), (2, I32, len(body)), (3, I32, len(body)), (7, STRUCT, own)) + body


def repeated(value: int, count: int, width: int = 1) -> bytes:
    """A run of equal numbers."""
    return varint(count << 1) + value.to_bytes((width + 7) // 8, "little")


def levels(*runs: bytes) -> bytes:
    raw = b"".join(runs)
    return struct.pack("<I", len(raw)) + raw


def text(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


def one_then_others(first: int, others: int, count: int) -> bytes:
    """DELTA_BINARY_PACKED: a number, and behind it one number again and again."""
    step = others - first
    lowest = min(step, 0)
    bits = "".join(f"{delta - lowest:032b}"[::-1] for delta in [step, *[0] * 127])
    packed = bytes(int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8))
    blocks = -(-(count - 1) // 128)
    head = varint(128) + varint(4) + varint(count) + zigzag(first)
    return head + zigzag(lowest) + bytes((32,) * 4) + packed + (zigzag(0) + bytes(4)) * (blocks - 1)


def leaf(name: str, kind: int, repetition: int = REQUIRED, length: int = 0) -> bytes:
    size = [(2, I32, length)] if length else []
    utf8 = [(6, I32, 0)] if kind == TEXT else []
    return thrift((1, I32, kind), *size, (3, I32, repetition), (4, BINARY, name.encode()), *utf8)


def group(name: str, children: int, repetition: int | None = None, converted: int | None = None) -> bytes:
    first = [] if repetition is None else [(3, I32, repetition)]
    last = [] if converted is None else [(6, I32, converted)]
    return thrift(*first, (4, BINARY, name.encode()), (5, I32, children), *last)


LIST_OF_NUMBERS = [
    group("root", 1), group("a", 1, OPTIONAL, 3), group("list", 1, REPEATED), leaf("element", INT64, OPTIONAL)
]  # fmt: skip


def column_chunk(column: Column, at: int, length: int | None = None) -> bytes:
    size = len(column.pages) if length is None else length
    path = [varint(len(name)) + name.encode() for name in column.path]
    fields: list[tuple[int, int, Any]] = [
        (1, I32, column.kind), (2, LIST, (I32, [zigzag(0)])), (3, LIST, (BINARY, path)), (4, I32, 0),
        (5, I64, column.values), (6, I64, size), (7, I64, size), (9, I64, at + column.dictionary),
    ]  # fmt: skip
    if column.dictionary:
        fields.append((11, I64, at))
    return thrift((2, I64, 0), (3, STRUCT, thrift(*fields)))


def with_footer(body: bytes, footer: bytes) -> bytes:
    return b"PAR1" + body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def parquet(schema: Sequence[bytes], columns: Sequence[Column], rows: int, groups: int = 1) -> bytes:
    """A file of row groups which all have the same bytes."""
    body, chunks = b"", []
    for column in columns:
        chunks.append(column_chunk(column, 4 + len(body)))
        body += column.pages
    one = thrift((1, LIST, (STRUCT, chunks)), (2, I64, 100), (3, I64, rows))
    footer = thrift(
        (1, I32, 1), (2, LIST, (STRUCT, schema)), (3, I64, rows * groups), (4, LIST, (STRUCT, [one] * groups))
    )
    return with_footer(body, footer)


NUMBERS = dictionary_page(1, bytes(8))


def in_one_list(values: int) -> bytes:
    each = levels(repeated(0, 1), repeated(1, values - 1)), levels(repeated(3, values, 2))
    return data_page(values, BY_DICTIONARY, b"".join(each) + b"\1" + repeated(0, values))
