"""The bucket of a row in a table with CLUSTERED BY, hashed as Hive does: version 1 (Java) and version 2 (Murmur3).

A row in a wrong bucket gives wrong results: Hive prunes by buckets, joins by them, and looks for deletes by them. So
types whose hashes were not compared with Hive's are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.base.errors import RefusedError
from acidctl.orc.read.wide_timestamps import parts
from acidctl.orc.types import OrcType
from acidctl.rows.export.text import text_spans

Hashes = NDArray[np.uint32]
Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]

VERSIONS = (1, 2)
"""Values of the table property `bucketing_version`; a table without it has version 1."""

_SEED = np.uint32(104729)
_C1, _C2, _MORE = np.uint32(0xCC9E2D51), np.uint32(0x1B873593), np.uint32(0xE6546B64)
_EXACT = Context(prec=40)
_AT_ONCE = 4096
_LONG_DIGITS = 18
"""A decimal of at most this precision fits in 64 bits."""


def check_bucket_type(kind: OrcType, version: int) -> None:
    """Refuse a type whose hash is unknown.

    Raises:
        RefusedError: Hive's hash depends on its JVM, or was never compared with acidctl's.
    """
    why = ""
    if version not in VERSIONS:
        why = f"its bucketing_version is {version}, not 1 or 2"
    elif kind.kind in ("binary", "uniontype", "timestamp with local time zone"):
        why = f"Hive's hash of {kind.kind} is not known for certain"
    elif kind.kind == "timestamp" and version == 1:
        why = "bucketing_version 1 hashes timestamps in the time zone of Hive's machines"
    if why:
        raise RefusedError("the table is bucketed by a column that cannot be hashed", why, "write it with Hive")
    for child in kind.children:
        check_bucket_type(child, version)


def buckets_of(columns: Sequence[pa.Array], types: Sequence[OrcType], count: int, version: int) -> NDArray[np.int32]:
    """Return the bucket of each row.

    Args:
        columns: the values of the bucket columns in the order of CLUSTERED BY, in the Arrow types of
            :func:`acidctl.orc.types.arrow_type`.
        count: the number of buckets.
        version: the table's `bucketing_version`.

    Raises:
        RefusedError: the type of a column cannot be hashed.
    """
    hashes = np.zeros(len(columns[0]), np.uint32)
    for column, kind in zip(columns, types, strict=True):
        check_bucket_type(kind, version)
        hashes = hashes * np.uint32(31) + hash_column(column, kind, version)
    return ((hashes & np.uint32(0x7FFFFFFF)) % np.uint32(count)).astype(np.int32)


def hash_column(column: pa.Array, kind: OrcType, version: int) -> Hashes:
    """Return Hive's hash of each value, as unsigned 32 bits; that of NULL is 0."""
    if kind.kind in _NESTED:
        hashes = _NESTED[kind.kind](column, kind, version)
    else:
        hashes = (_murmur_of if version == 2 else _java_hash)(column, kind)
    if column.null_count:
        hashes[np.asarray(column.is_null())] = 0
    return hashes


# --- nested types ---------------------------------------------------------------------------------------------------


def _struct(column: pa.StructArray, kind: OrcType, version: int) -> Hashes:
    hashes = np.zeros(len(column), np.uint32)
    for child, field in zip(kind.children, column.flatten(), strict=True):
        hashes = hashes * np.uint32(31) + hash_column(field, child, version)
    return hashes


def _list(column: pa.ListArray, kind: OrcType, version: int) -> Hashes:
    column = column.take(pa.array(np.arange(len(column))))  # begins at 0, and has nothing below a NULL
    offsets = np.asarray(column.offsets, np.int64)
    elements = hash_column(column.values, kind.children[0], version)
    return _polynomials(elements, offsets[:-1], np.diff(offsets))


def _map(column: pa.MapArray, kind: OrcType, version: int) -> Hashes:
    column = column.take(pa.array(np.arange(len(column))))
    offsets = np.asarray(column.offsets, np.int64)
    values = hash_column(column.items, kind.children[1], 1)  # version 2 hashes keys alone by Murmur3
    return _sums(hash_column(column.keys, kind.children[0], version) ^ values, offsets[:-1], np.diff(offsets))


_NESTED: dict[str, Callable[[pa.Array, OrcType, int], Hashes]] = {"struct": _struct, "array": _list, "map": _map}


def _sums(numbers: Hashes, starts: Longs, lengths: Longs) -> Hashes:
    """Return the sum of each run of numbers; runs follow one another."""
    sums = np.zeros(len(starts), np.uint32)
    filled = lengths > 0
    if filled.any():
        sums[filled] = np.add.reduceat(numbers, starts[filled], dtype=np.uint32)
    return sums


def _polynomials(numbers: Hashes, starts: Longs, lengths: Longs, first: int = 0) -> Hashes:
    """Return ``h = 31 * h + number`` over each run of numbers, from ``h = first``; runs follow one another."""
    powers = np.cumprod(np.full(int(lengths.max(initial=0)), 31, np.uint32), dtype=np.uint32)
    powers = np.concatenate([np.ones(1, np.uint32), powers])
    hashes = powers[lengths] * np.uint32(first)
    for row in range(0, len(starts), _AT_ONCE):  # a part fits in the processor's cache, which is seven times faster
        rows = slice(row, row + _AT_ONCE)
        begins, counts = starts[rows], lengths[rows]
        part = numbers[begins[0] : begins[-1] + counts[-1]]
        begins = begins - begins[0]
        behind = np.repeat(begins + counts, counts) - 1 - np.arange(len(part))
        hashes[rows] += _sums(part * powers[behind], begins, counts)
    return hashes


# --- version 1: as Java's hashCode ----------------------------------------------------------------------------------


def _java_hash(column: pa.Array, kind: OrcType) -> Hashes:
    name = kind.kind
    if name in ("string", "varchar", "char"):
        data, starts, lengths = _texts(column, is_char=name == "char")
        return _polynomials(data.view(np.int8).astype(np.uint32), starts, lengths, first=int(name != "string"))
    if name == "decimal":
        return _java_decimals(column)
    values = _numbers(column)
    if name in ("bigint", "double"):
        bits = (values if name == "bigint" else _bits(values)).view(np.uint64)
        return ((bits >> np.uint64(32)) ^ bits).astype(np.uint32)
    return _bits(values).astype(np.uint32) if name == "float" else values.astype(np.uint32)


def _java_decimals(column: pa.Array) -> Hashes:
    unscaled, scales = _stripped(column)
    if isinstance(unscaled, list):
        hashes = np.array([_java_big_integer(number) for number in unscaled], np.uint32)
    else:
        size = np.abs(unscaled).view(np.uint64)
        high, low = (size >> np.uint64(32)).astype(np.uint32), size.astype(np.uint32)
        hashes = (high * np.uint32(31) + low) * np.sign(unscaled).astype(np.uint32)
    return hashes * np.uint32(31) + scales.astype(np.uint32)


def _java_big_integer(number: int) -> int:
    hashed, size = 0, abs(number)
    for shift in range((size.bit_length() - 1) // 32 * 32, -1, -32):
        hashed = 31 * hashed + (size >> shift & 0xFFFFFFFF)
    return (hashed if number > 0 else -hashed) & 0xFFFFFFFF


# --- version 2: Murmur3 ---------------------------------------------------------------------------------------------


def _murmur_of(column: pa.Array, kind: OrcType) -> Hashes:
    name = kind.kind
    if name in ("string", "varchar", "char"):
        return _murmur(*_texts(column, is_char=name == "char"))
    if name == "decimal":
        return _murmur(*_decimal_bytes(column))
    if name == "timestamp":
        return _murmur(*_timestamp_bytes(column))
    values = _numbers(column)
    if name in ("boolean", "tinyint"):
        return values.astype(np.uint32)
    if name in ("float", "double"):
        values = _bits(values).astype(values.dtype)  # Hive turns the bits into a number of the same type
    big_endian = values.astype(values.dtype.newbyteorder(">"))
    width = values.dtype.itemsize
    return _murmur(big_endian.view(np.uint8), np.arange(len(values)) * width, np.full(len(values), width))


def _murmur(data: Bytes, starts: Longs, lengths: Longs) -> Hashes:
    """Return Hive's Murmur3 of runs of bytes: its tail of one to three bytes is signed, unlike the standard's."""
    hashes = np.full(len(starts), _SEED)
    blocks = lengths // 4
    order = np.argsort(-blocks, kind="stable")
    # For each number of blocks, how many rows have that number or more.
    more = np.bincount(blocks)[::-1].cumsum()[::-1] if len(blocks) else blocks
    padded = np.concatenate([data, np.zeros(3, np.uint8)])
    words = np.ndarray((len(data),), "<u4", padded, strides=(1,))
    for block in range(len(more) - 1):
        rows = order[: more[block + 1]]
        mixed = _rotated(_mix(words[starts[rows] + 4 * block]) ^ hashes[rows], 13)
        hashes[rows] = mixed * np.uint32(5) + _MORE
    _add_tails(hashes, data, starts + 4 * blocks, lengths % 4)
    hashes ^= lengths.astype(np.uint32)
    hashes = (hashes ^ hashes >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ hashes >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return hashes ^ hashes >> np.uint32(16)


def _add_tails(hashes: Hashes, data: Bytes, starts: Longs, lengths: Longs) -> None:
    signed = data.view(np.int8)
    tails = np.zeros(len(starts), np.uint32)
    for byte in range(3):
        rows = lengths > byte
        tails[rows] ^= signed[starts[rows] + byte].astype(np.uint32) << np.uint32(8 * byte)
    rows = lengths > 0
    hashes[rows] ^= _mix(tails[rows])


def _mix(words: Hashes) -> Hashes:
    return _rotated(words * _C1, 15) * _C2


def _rotated(words: Hashes, bits: int) -> Hashes:
    return words << np.uint32(bits) | words >> np.uint32(32 - bits)


# --- values ---------------------------------------------------------------------------------------------------------


def _numbers(column: pa.Array) -> NDArray[np.generic]:
    """Return the values of a column of a fixed width, 0 for NULL; dates are days."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return np.asarray(pc.fill_null(column, pa.scalar(0, column.type)))


def _bits(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return floating point numbers as integers of their bits; all NaNs are Java's one."""
    values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    return values.view(np.int32 if values.dtype.itemsize == 4 else np.int64)


def _texts(column: pa.Array, *, is_char: bool) -> tuple[Bytes, Longs, Longs]:
    """Return the bytes of texts, and where each begins and how long it is; CHAR has no padding."""
    column = pc.fill_null(column, "")
    if is_char:
        column = pc.utf8_rtrim(column, characters=" ")
    offsets, data = text_spans(column)
    return data, offsets[:-1], np.diff(offsets)


def _stripped(column: pa.Array) -> tuple[Longs | list[int], Longs]:
    """Return decimals without zeros at their end: unscaled values, and scales that are at least 0."""
    scale = column.type.scale
    if column.type.precision > _LONG_DIGITS:  # seldom a bucket column: one Python number for each
        numbers = [0 if value is None else int(value.scaleb(scale, _EXACT)) for value in column.to_pylist()]
        zeros = [_zeros_at_end(number, scale) for number in numbers]
        scales = np.array([scale - count for count in zeros], np.int64)
        return [number // 10**count for number, count in zip(numbers, zeros, strict=True)], scales
    flat = column.take(pa.array(np.arange(len(column))))
    unscaled = np.frombuffer(flat.buffers()[1], np.int64)[::2][: len(flat)].copy()
    unscaled[np.asarray(flat.is_null())] = 0
    scales = np.full(len(flat), scale, np.int64)
    for _ in range(scale):
        rows = (scales > 0) & (unscaled % 10 == 0)
        if not rows.any():
            break
        unscaled[rows] //= 10
        scales[rows] -= 1
    return unscaled, scales


def _zeros_at_end(number: int, most: int) -> int:
    count = 0
    while count < most and number % 10 ** (count + 1) == 0:
        count += 1
    return count


def _decimal_bytes(column: pa.Array) -> tuple[Bytes, Longs, Longs]:
    """Return the shortest two's complement of each unscaled value, the most significant byte first."""
    unscaled, _ = _stripped(column)
    if isinstance(unscaled, list):
        texts = [
            number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
            for number in unscaled
        ]
        lengths = np.array([len(text) for text in texts], np.int64)
        return np.frombuffer(b"".join(texts), np.uint8), np.cumsum(lengths) - lengths, lengths
    size = np.where(unscaled < 0, ~unscaled, unscaled)
    lengths = np.ones(len(size), np.int64)
    for count in range(1, 8):
        lengths += size >= 1 << (8 * count - 1)
    ends = 8 * np.arange(1, len(unscaled) + 1)
    return unscaled.astype(">i8").view(np.uint8), ends - lengths, np.asarray(lengths)


def _timestamp_bytes(column: pa.Array) -> tuple[Bytes, Longs, Longs]:
    """Return timestamps as Hive's TimestampWritable: 31 bits of seconds, digits of nanoseconds, then more seconds."""
    seconds, nanos = (np.asarray(pc.fill_null(pa.array(part), 0), np.int64) for part in parts(column))
    is_far = (seconds < 0) | (seconds > 0x7FFFFFFF)
    has_more = is_far | (nanos != 0)
    digits = np.zeros(len(nanos), np.int64)
    rest = nanos.copy()
    for _ in range(9):
        digits, rest = digits * 10 + rest % 10, rest // 10
    first = (seconds & 0x7FFFFFFF) | np.where(has_more, 1 << 31, 0)
    held = np.zeros((len(nanos), 4 + 9 + 9), np.uint8)
    held[:, :4] = first.astype(">u4").view(np.uint8).reshape(-1, 4)
    lengths = np.full(len(nanos), 4, np.int64)
    _append_variable(held, lengths, np.where(is_far, -digits - 1, digits), has_more)
    _append_variable(held, lengths, seconds >> 31, is_far)
    return held.reshape(-1), np.arange(len(nanos)) * held.shape[1], lengths


def _append_variable(held: NDArray[np.uint8], lengths: Longs, numbers: Longs, wanted: NDArray[np.bool_]) -> None:
    """Append numbers to the wanted rows as Hadoop's variable-length integers, of one to nine bytes."""
    is_short = (numbers >= -112) & (numbers <= 127)
    size = np.where(numbers < 0, ~numbers, numbers)
    count = sum((size >= 1 << (8 * place)).astype(np.int64) for place in range(8))
    head = np.where(is_short, numbers, np.where(numbers < 0, -120, -112) - count)
    rows = np.flatnonzero(wanted)
    held[rows, lengths[rows]] = head[rows].astype(np.int8).view(np.uint8)
    lengths[rows] += 1
    for place in range(7, -1, -1):
        more = np.flatnonzero(wanted & ~is_short & (count > place))
        held[more, lengths[more]] = (size[more] >> (8 * place)).astype(np.uint8)
        lengths[more] += 1
