"""Read and write numbers of 7 bits per byte, as in ORC, Protocol Buffers and Thrift, and count parts of messages."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import FieldDescriptor

_MOST_BITS = 63
"""The most bits before the last byte; without a bound the time would grow with the square of a hostile length."""

LEAST_PART: Final = 2
"""Bytes of an empty message or text; parsed, it takes a hundred bytes of memory."""

_NUMBERS_A_PART = 4
"""The most fields for each part: messages of ORC have about as many numbers as texts and messages."""

_LENGTHS, _NUMBER = 2, 0
_FIXED: Final = {1: 8, 5: 4}

Shape: TypeAlias = "dict[int, Shape]"
"""The fields that count, by number, each with the shape of its own message."""


class TooLongError(ValueError):
    """A number has more bytes than 64 bits need."""


def unsigned(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return the number at an offset, and the offset behind it.

    Raises:
        IndexError: the number is cut short.
        TooLongError: the number is longer than any number of 64 bits.
    """
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    shift = 7
    while shift <= _MOST_BITS:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
    raise TooLongError("a number is too long")


def encoded(number: int) -> bytes:
    """Encode a number that is not negative, as :func:`unsigned` reads it."""
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def signed(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return the same for a number whose sign is in its lowest bit (zigzag)."""
    value, at = unsigned(data, at)
    return value >> 1 ^ -(value & 1), at


def count_parts(kind: Any, plain: bytes, most: int) -> int:
    """Return the number of parts; counting stops as soon as there are more than `most`.

    Many more numbers than that count as too many parts, too: each takes a turn of a Python loop.

    Args:
        kind: the descriptor of the message.
        plain: the bytes of the message.

    Raises:
        ValueError: the bytes are not a message.
    """
    try:
        return _count(_shape(kind), plain, most)
    except IndexError as error:
        raise ValueError("a message is cut short") from error


def _count(shape: Shape, plain: bytes, most: int) -> int:
    count = at = turns = 0
    end = len(plain)
    above: list[tuple[int, Shape]] = []
    while count <= most:
        while at >= end:
            if not above:
                break
            end, shape = above.pop()
        if at >= end:
            break
        turns += 1
        if turns > _NUMBERS_A_PART * most:
            return most + 1
        key, at = unsigned(plain, at)
        wire = key & 7
        if wire == _LENGTHS:
            length, at = unsigned(plain, at)
            inner = shape.get(key >> 3)
            if inner is not None:
                count += 1
            if inner and length:
                above.append((end, shape))
                end, shape = min(end, at + length), inner
            else:
                at += length
        elif wire == _NUMBER:
            _, at = unsigned(plain, at)
        elif wire in _FIXED:
            at += _FIXED[wire]
        else:
            raise ValueError("groups, which ORC does not have")
    return count


@lru_cache(maxsize=64)
def _shape(kind: Any) -> Shape:
    shape: Shape = {}
    for field in kind.fields:
        if field.type == FieldDescriptor.TYPE_MESSAGE and field.message_type is not kind:
            shape[field.number] = _shape(field.message_type)
        elif field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
            shape[field.number] = {}
    return shape
