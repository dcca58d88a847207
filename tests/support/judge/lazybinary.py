"""Hive's LazyBinary row format, both ways: a whole row crosses py4j as one byte string instead of cell by cell.

Hive turns these bytes into Writables itself (`LazyBinarySerDe.deserialize`) and makes them from any row
(`LazyBinarySerDe.serialize`). Python values are the plain form of `normal.py`: dicts for structs, lists of pairs for
maps, (tag, value) for unions, 'yyyy-MM-dd[ HH:mm:ss[.f]]' for dates and timestamps, Decimal, bytes. The JVM is in UTC.
"""

from __future__ import annotations

import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from support.judge.hivetypes import HiveType

_EPOCH = datetime(1970, 1, 1)
_DAY_ZERO = date(1970, 1, 1).toordinal()


# --- numbers of variable length (org.apache.hadoop.io.WritableUtils)
def write_vlong(value: int) -> bytes:
    if -112 <= value <= 127:
        return struct.pack(">b", value)
    first = -112
    if value < 0:
        value, first = ~value, -120
    body = value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")
    return struct.pack(">b", first - len(body)) + body


class Cursor:
    """A place in a byte string."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) != count:
            raise ValueError("the row ends too early")
        self.at += count
        return piece

    def unpack(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def vlong(self) -> int:
        first = self.unpack(">b")
        if first >= -112:
            return int(first)
        negative = first < -120
        value = int.from_bytes(self.take(-(first + 120) if negative else -(first + 112)), "big")
        return ~value if negative else value

    @property
    def done(self) -> bool:
        return self.at >= len(self.data)


# --- values
def timestamp_parts(text: str) -> tuple[int, int]:
    """Seconds since 1970 (floor) and nanoseconds of 'yyyy-MM-dd HH:mm:ss[.f]'."""
    head, _, fraction = text.partition(".")
    moment = datetime.strptime(head, "%Y-%m-%d %H:%M:%S") - _EPOCH
    return moment.days * 86400 + moment.seconds, int(fraction.ljust(9, "0")[:9] or 0)


def timestamp_text(seconds: int, nanos: int) -> str:
    """The plain form, without trailing zeros of the fraction."""
    moment = _EPOCH + timedelta(seconds=seconds)
    text = f"{moment.year:04d}-{moment:%m-%d %H:%M:%S}"
    return text + (f".{nanos:09d}".rstrip("0") if nanos else "")


def _write_timestamp(text: str) -> bytes:
    seconds, nanos = timestamp_parts(text)
    wide = not 0 <= seconds <= 0x7FFFFFFF
    head = seconds & 0x7FFFFFFF
    if not wide and not nanos:
        return struct.pack(">I", head)
    reverse = int(f"{nanos:09d}"[::-1])
    out = struct.pack(">I", head | 0x80000000) + write_vlong(-reverse - 1 if wide else reverse)
    return out + write_vlong(seconds >> 31) if wide else out


def _read_timestamp(cursor: Cursor) -> str:
    head = cursor.unpack(">I")
    seconds, nanos = head & 0x7FFFFFFF, 0
    if head & 0x80000000:
        reverse = cursor.vlong()
        if reverse < 0:
            reverse = -reverse - 1
            seconds += cursor.vlong() << 31
        nanos = int(f"{reverse:09d}"[::-1])
    return timestamp_text(seconds, nanos)


def _write_decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    if exponent > 0:
        unscaled, exponent = unscaled * 10**exponent, 0
    body = unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True)
    return write_vlong(-exponent) + write_vlong(len(body)) + body


def _read_decimal(cursor: Cursor) -> Decimal:
    scale = cursor.vlong()
    unscaled = int.from_bytes(cursor.take(cursor.vlong()), "big", signed=True)
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))  # no arithmetic: the context would round 38 digits


_FIXED = {"boolean": ">?", "tinyint": ">b", "smallint": ">h", "float": ">f", "double": ">d"}
_TEXT = {"string", "char", "varchar"}


def _sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def encode(value: Any, node: HiveType) -> bytes:
    """One value that is not null; structs, lists, maps and unions with their length in front."""
    kind = node.kind
    if kind in _FIXED:
        return struct.pack(_FIXED[kind], value)
    if kind in ("int", "bigint"):
        return write_vlong(value)
    if kind in _TEXT or kind == "binary":
        body = value.encode() if kind in _TEXT else bytes(value)
        return write_vlong(len(body)) + body
    if kind == "date":
        return write_vlong(date.fromisoformat(value).toordinal() - _DAY_ZERO)
    if kind == "timestamp":
        return _write_timestamp(value)
    if kind == "decimal":
        return _write_decimal(Decimal(value))
    if kind == "struct":
        return _sized(encode_row([value[name] for name in node.names], node.children))
    if kind == "array":
        return _sized(write_vlong(len(value)) + _nulls(value) + _bodies(value, node.children * len(value)))
    if kind == "map":
        flat = [item for pair in value for item in pair]
        return _sized(write_vlong(len(value)) + _nulls(flat) + _bodies(flat, node.children * len(value)))
    if kind == "uniontype":
        tag, inner = value
        return _sized(bytes([tag]) + encode(inner, node.children[tag]))
    raise ValueError(f"no LazyBinary form for {node}")


def _nulls(values: Any) -> bytes:
    bits = sum(1 << i for i, value in enumerate(values) if value is not None)
    return bits.to_bytes((len(values) + 7) // 8, "little")


def _bodies(values: Any, nodes: Any) -> bytes:
    return b"".join(encode(v, n) for v, n in zip(values, nodes, strict=True) if v is not None)


def encode_row(values: Any, nodes: Any) -> bytes:
    """A struct's fields: a byte of null bits before each eight fields."""
    out = []
    for start in range(0, len(nodes), 8):
        group = values[start : start + 8]
        out.append(_nulls(group) + _bodies(group, nodes[start : start + 8]))
    return b"".join(out)


def decode(cursor: Cursor, node: HiveType) -> Any:
    """One value that is not null, in the plain form."""
    kind = node.kind
    if kind in _FIXED:
        return cursor.unpack(_FIXED[kind])
    if kind in ("int", "bigint"):
        return cursor.vlong()
    if kind in _TEXT:
        return cursor.take(cursor.vlong()).decode()
    if kind == "binary":
        return cursor.take(cursor.vlong())
    if kind == "date":
        return date.fromordinal(cursor.vlong() + _DAY_ZERO).isoformat()
    if kind == "timestamp":
        return _read_timestamp(cursor)
    if kind == "decimal":
        return _read_decimal(cursor)
    inner = Cursor(cursor.take(cursor.unpack(">i")))
    if kind == "struct":
        return _decode_struct(inner, node)
    if kind == "array":
        return _decode_items(inner, inner.vlong(), node.children)
    if kind == "map":
        flat = _decode_items(inner, 2 * inner.vlong(), node.children)
        return list(zip(flat[::2], flat[1::2], strict=True))
    if kind == "uniontype":
        tag = inner.unpack(">b")
        return (tag, None if inner.done else decode(inner, node.children[tag]))
    raise ValueError(f"no LazyBinary form for {node}")


def _decode_items(cursor: Cursor, count: int, nodes: tuple[HiveType, ...]) -> list[Any]:
    bits = int.from_bytes(cursor.take((count + 7) // 8), "little")
    return [decode(cursor, nodes[i % len(nodes)]) if bits >> i & 1 else None for i in range(count)]


def _decode_struct(cursor: Cursor, node: HiveType) -> dict[str, Any]:
    values: list[Any] = []
    bits = 0
    for i, child in enumerate(node.children):
        if i % 8 == 0:
            bits = cursor.unpack(">B")
        values.append(decode(cursor, child) if bits >> (i % 8) & 1 else None)
    return dict(zip(node.names, values, strict=True))
