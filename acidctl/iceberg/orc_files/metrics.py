"""The metrics that Iceberg's manifests have of a data file, from its ORC footer; no row is read.

Bounds are left out where the footer does not say them for sure: readers skip files by them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from decimal import Context, Decimal

from acidctl.iceberg.fields import Field
from acidctl.iceberg.orc_files.splice import SplicedFile
from acidctl.orc import orc_pb2 as pb

_LONGEST = 16
"""Bounds of texts have at most this many characters."""

_HIGHEST = 0x10FFFF
_EXACT = Context(prec=80)


@dataclass(slots=True)
class Metrics:
    """The metrics of a data file, by the ids of Iceberg's fields.

    Attributes:
        rows, length: of the file; its length in bytes.
        offsets: the offset of each stripe, at which readers may split the file.
        sizes: the bytes of the streams of each field.
        values, nulls: numbers of values, NULLs included, and of NULLs; none for what is inside lists and maps.
        lower, upper: bounds of the values, in Iceberg's binary form.
    """

    rows: int
    length: int
    offsets: list[int]
    sizes: dict[int, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    nulls: dict[int, int] = field(default_factory=dict)
    lower: dict[int, bytes] = field(default_factory=dict)
    upper: dict[int, bytes] = field(default_factory=dict)


def metrics_of(made: SplicedFile, fields: dict[int, Field]) -> Metrics:
    """Return the metrics of a file.

    Args:
        fields: all fields of the table by their ids, those inside others too.
    """
    tail = made.tail
    found = Metrics(tail.rows, tail.file_length, [stripe.offset for stripe in tail.stripes])

    def add(at: int) -> None:
        message, statistics = tail.types[at], tail.true_statistics(at) or pb.ColumnStatistics()
        own = fields[next(int(pair.value) for pair in message.attributes if pair.key == "iceberg.id")]
        last = at
        while tail.types[last].subtypes:
            last = tail.types[last].subtypes[-1]
        found.sizes[own.id] = sum(made.stream_bytes[at : last + 1])
        if statistics.HasField("numberOfValues"):
            found.values[own.id] = tail.rows
            found.nulls[own.id] = tail.rows - statistics.numberOfValues
        if own.kind == "struct":
            for child in message.subtypes:
                add(child)
        elif bounds := _bounds(statistics, own):
            found.lower[own.id] = bounds[0]
            if bounds[1] is not None:
                found.upper[own.id] = bounds[1]

    for at in tail.types[0].subtypes:
        add(at)
    return found


def _bounds(found: pb.ColumnStatistics, own: Field) -> tuple[bytes, bytes | None] | None:
    """Return a lower and an upper bound; None if the footer does not say them."""
    if not found.numberOfValues or own.kind in ("list", "map", "binary"):
        return None
    if own.kind in ("int", "long"):
        integers = found.intStatistics
        is_known = integers.HasField("minimum") and integers.HasField("maximum")
        shape = "<i" if own.kind == "int" else "<q"
        return packed(shape, integers.minimum, integers.maximum) if is_known else None
    if own.kind == "boolean":
        true = found.bucketStatistics.count[0] if found.bucketStatistics.count else None
        return None if true is None else (bytes([true == found.numberOfValues]), bytes([true > 0]))
    if own.kind in ("float", "double"):
        return _of_floats(found.doubleStatistics, "<f" if own.kind == "float" else "<d")
    if own.kind == "string":
        return _of_texts(found.stringStatistics)
    if own.kind == "decimal":
        numbers = found.decimalStatistics
        is_known = numbers.HasField("minimum") and numbers.HasField("maximum")
        return (_unscaled(numbers.minimum, own.scale), _unscaled(numbers.maximum, own.scale)) if is_known else None
    if own.kind == "date":
        dates = found.dateStatistics
        return packed("<i", dates.minimum, dates.maximum) if dates.HasField("minimum") else None
    times = found.timestampStatistics  # in milliseconds, cut down
    if not (times.HasField("minimumUtc") and times.HasField("maximumUtc")):
        return None
    return packed("<q", times.minimumUtc * 1000, times.maximumUtc * 1000 + 999)


def packed(shape: str, lower: float, upper: float) -> tuple[bytes, bytes]:
    """Return two numbers as bytes, in the form of :mod:`struct`."""
    return struct.pack(shape, lower), struct.pack(shape, upper)


def _of_floats(found: pb.DoubleStatistics, shape: str) -> tuple[bytes, bytes] | None:
    """Return bounds of floats: a NaN may hide others, and -0.0 and 0.0 are one value to the writer."""
    if not (found.HasField("minimum") and found.HasField("maximum")) or found.sum != found.sum:
        return None
    return packed(shape, found.minimum or -0.0, found.maximum or 0.0)


def _of_texts(found: pb.StringStatistics) -> tuple[bytes, bytes | None] | None:
    lower = found.minimum if found.HasField("minimum") else found.lowerBound
    upper = found.maximum if found.HasField("maximum") else found.upperBound
    is_known = found.HasField("minimum") or found.HasField("lowerBound")
    if not is_known:
        return None
    return text_bounds(lower, upper if found.HasField("maximum") or found.HasField("upperBound") else None)


def text_bounds(lower: bytes, upper: bytes | None) -> tuple[bytes, bytes | None] | None:
    """Return short bounds of texts between `lower` and `upper`; None if these are not UTF-8."""
    try:
        low, high = lower.decode()[:_LONGEST], None if upper is None else upper.decode()
    except UnicodeDecodeError:
        return None
    return low.encode(), None if high is None else _raised(high)


def _raised(text: str) -> bytes | None:
    """Return a short text that is not below `text`; None if there is none."""
    if len(text) <= _LONGEST:
        return text.encode()
    for end in range(_LONGEST - 1, -1, -1):
        following = ord(text[end]) + 1
        following = 0xE000 if 0xD800 <= following < 0xE000 else following  # surrogates are no characters
        if following <= _HIGHEST:
            return (text[:end] + chr(following)).encode()
    return None


def _unscaled(text: str, scale: int) -> bytes:
    number = int(_EXACT.scaleb(Decimal(text), scale))
    return number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)
