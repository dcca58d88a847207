"""Read and write numbers of 7 bits per byte, as in ORC's streams, Protocol Buffers and Thrift."""

from __future__ import annotations

# The most bits before the last byte: without a bound the time would grow with the square of a hostile length.
_MOST_BITS = 63


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
