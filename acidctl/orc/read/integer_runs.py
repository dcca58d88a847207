"""Read runs of ORC's integers to bound their sums before a native reader takes memory, and write runs that count.

A run of equal values is not unpacked: a few bytes can claim any number of values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from acidctl.orc.varint import TooLongError, signed, unsigned

Int64 = NDArray[np.int64]
Floats = NDArray[np.float64]
Run = tuple[Floats, int]
"""Values, and how often each counts: a single value many times, or many values once."""

_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_ROUNDED = (*range(1, 25), 26, 26, 28, 28, 30, 30, 32, 32, *(40,) * 8, *(48,) * 8, *(56,) * 8, *(64,) * 8)
_V1_REPEATS = 128
_BELOW_ZERO = 1 << 63

LONGEST: Final = 512
"""The most values of a run."""

_DIGITS, _STEP = 2, 12  # offsets in an encoded run: two bytes of header, at most ten of the base, one of the step
_DELTA: Final = 0xC0
_DIRECT_64: Final = 0x40 | 31 << 1


def unsigned_runs(data: bytes, *, version: int) -> Iterator[Run]:
    """Yield the runs of a stream of unsigned integers.

    The values are as exact as floats; values that patches enlarge are a little too large.

    Args:
        data: the decompressed stream.
        version: 1 or 2, as the column's encoding says.

    Raises:
        IndexError: the stream ends within a run.
        TooLongError: a number in the stream is longer than writers make it.
    """
    at = 0
    step = _run_2 if version == 2 else _run_1
    while at < len(data):
        values, times, at = step(data, at)
        if at > len(data):
            raise IndexError("a run of integers is cut short")
        yield values, times


def bound_of_runs(data: bytes, count: float) -> tuple[float, float]:
    """Return upper bounds of the sum and the maximum of the first `count` integers of an unsigned stream.

    The stream is of version 2; the bounds are far too large if values may be below 0.  Only the heads of runs are
    read, which takes a tenth of the time of :func:`unsigned_runs`; a stream that is cut short counts up to its end.
    """
    at, seen, total, longest, end = 0, 0, 0, 0, len(data)
    try:
        while at < end and seen < count:
            head, begin = data[at], at
            kind = head >> 6
            if kind == 0:
                width, times = (head >> 3) + 1, (head & 7) + 3
                most = int.from_bytes(data[at + 1 : at + 1 + width], "big")
                at += 1 + width
                seen += times
                total += most * times
            else:
                width, times = _WIDTHS[head >> 1 & 31], ((head & 1) << 8 | data[at + 1]) + 1
                seen += times
                most, more, at = _BOUNDS[kind](data, at, width, times)
                total += most * times + more
                most += more
            longest = max(longest, most)
            if not begin:  # most often all runs but the last are alike, as the scales of a column are
                alike = min(end // at - 2, int(min(count - seen, end * LONGEST)) // times)
                if alike > 0 and data[at : at * (alike + 1)] == data[:at] * alike:
                    at, seen, total = at * (alike + 1), seen + times * alike, total * (alike + 1)
    except (IndexError, TooLongError):
        pass
    return float(total), float(longest)


def _bound_direct(_: bytes, at: int, width: int, count: int) -> tuple[int, int, int]:
    return (1 << width) - 1, 0, at + 2 + (width * count + 7 >> 3)


def _bound_patched(data: bytes, at: int, width: int, count: int) -> tuple[int, int, int]:
    base_bytes, patch_width = (data[at + 2] >> 5) + 1, _WIDTHS[data[at + 2] & 31]
    gap_width, patches = (data[at + 3] >> 5) + 1, data[at + 3] & 31
    bits = _ROUNDED[min(gap_width + patch_width, 64) - 1]
    base = int.from_bytes(data[at + 4 : at + 4 + base_bytes], "big") & ~(1 << 8 * base_bytes - 1)
    end = at + 4 + base_bytes + (width * count + 7 >> 3) + (bits * patches + 7 >> 3)
    return base + (1 << width) - 1, patches << width + patch_width, end


def _bound_delta(data: bytes, at: int, width: int, count: int) -> tuple[int, int, int]:
    is_even = not data[at] >> 1 & 31
    base, at = unsigned(data, at + 2)
    delta, at = signed(data, at)
    steps = 0 if is_even else max(0, count - 2)
    slope = abs(delta) * (count - 1) if is_even else abs(delta) + steps * ((1 << width) - 1)
    # Lengths below 0 crash the native reader, and are huge if a run is read as unsigned.
    most = base + slope if delta >= 0 or slope <= base else _BELOW_ZERO
    return most, 0, at + (width * steps + 7 >> 3)


_BOUNDS = {1: _bound_direct, 2: _bound_patched, 3: _bound_delta}


def _run_1(data: bytes, at: int) -> tuple[Floats, int, int]:
    head = data[at]
    if head < _V1_REPEATS:
        count = head + 3
        delta = data[at + 1] - 256 * (data[at + 1] >> 7)
        base, at = unsigned(data, at + 2)
        if not delta:
            return np.array([base], np.float64), count, at
        return _clean(base + delta * np.arange(count, dtype=np.float64)), 1, at
    values = []
    at += 1
    for _ in range(256 - head):
        value, at = unsigned(data, at)
        values.append(value)
    return np.array(values, np.float64), 1, at


def _run_2(data: bytes, at: int) -> tuple[Floats, int, int]:
    head = data[at]
    kind = head >> 6
    if kind == 0:
        end = at + 2 + (head >> 3)
        return np.array([int.from_bytes(data[at + 1 : end], "big")], np.float64), (head & 7) + 3, end
    code, count = head >> 1 & 31, ((head & 1) << 8 | data[at + 1]) + 1
    if kind == 1:
        values, end = _packed(data, at + 2, _WIDTHS[code], count)
        return values, 1, end
    if kind == 2:
        return _patched(data, at, _WIDTHS[code], count)
    base, at = unsigned(data, at + 2)
    delta, at = signed(data, at)
    if not code:
        if not delta:
            return np.array([base], np.float64), count, at
        return _clean(base + delta * np.arange(count, dtype=np.float64)), 1, at
    steps, end = _packed(data, at, _WIDTHS[code], max(0, count - 2))
    steps = np.concatenate([[0.0, delta], steps if delta >= 0 else -steps])[:count]
    return _clean(base + np.cumsum(steps)), 1, end


def _patched(data: bytes, at: int, width: int, count: int) -> tuple[Floats, int, int]:
    """Read a run in which a few values are larger than the others; their upper bits follow in a list."""
    base_bytes, patch_width = (data[at + 2] >> 5) + 1, _WIDTHS[data[at + 2] & 31]
    gap_width, patches = (data[at + 3] >> 5) + 1, data[at + 3] & 31
    at += 4
    base = int.from_bytes(data[at : at + base_bytes], "big")
    sign = 1 << 8 * base_bytes - 1
    base = sign - base if base & sign else base
    values, at = _packed(data, at + base_bytes, width, count)
    bits = _ROUNDED[min(gap_width + patch_width, 64) - 1]
    end = at + (bits * patches + 7 >> 3)
    listed, index = int.from_bytes(data[at:end], "big") >> 8 * (end - at) - bits * patches, 0
    for number in range(patches, 0, -1):
        gap, patch = divmod(listed >> bits * (number - 1) & (1 << bits) - 1, 1 << patch_width)
        index += gap
        if index < count:
            values[index] += float(patch << width)
    return _clean(values + base), 1, end


def _packed(data: bytes, at: int, width: int, count: int) -> tuple[Floats, int]:
    """Unpack `count` numbers of `width` bits each, the highest bit first."""
    end = at + (width * count + 7) // 8
    if end > len(data):
        raise IndexError("a run of integers is cut short")
    raw = np.frombuffer(data, np.uint8, end - at, at)
    if width % 8 == 0:
        weights = 256.0 ** np.arange(width // 8 - 1, -1, -1)
        return raw.reshape(count, width // 8) @ weights, end
    bits = np.unpackbits(raw, count=width * count).reshape(count, width)
    return bits @ 2.0 ** np.arange(width - 1, -1, -1), end


def _clean(values: Floats) -> Floats:
    """Replace values that only damage can make negative: unsigned readers see huge numbers for them."""
    return np.where(values < 0, float(_BELOW_ZERO), values)


def encoded_runs(bases: Int64, lengths: Int64, step: int) -> tuple[bytes, Int64]:
    """Return runs of version 2 as bytes, and the offset of each run.

    A delta run without widths expresses, in a few bytes, up to 512 values with a constant step; a single value is
    written directly.

    Args:
        bases: the first value of each run.
        lengths: the number of values of each run, 1 to 512.
        step: the difference between neighbouring values, 0 or 1.
    """
    raw = np.zeros((len(bases), _STEP + 1), np.uint8)
    used = np.zeros(raw.shape, np.bool_)
    zigzag = (bases << 1 ^ bases >> 63).view(np.uint64)
    alone = lengths == 1
    used[:, :_DIGITS] = True
    raw[:, 0] = np.where(alone, _DIRECT_64, _DELTA | lengths - 1 >> 8)
    raw[:, 1] = np.where(alone, 0, lengths - 1 & 0xFF)
    remaining = zigzag.copy()
    for digit in range(_DIGITS, _STEP):
        used[:, digit] = remaining != 0 if digit > _DIGITS else True
        rest = remaining >> np.uint64(7)
        raw[:, digit] = (remaining & np.uint64(0x7F)).astype(np.uint8) | np.where(rest != 0, 0x80, 0).astype(np.uint8)
        remaining = rest
        if not remaining.any():
            break
    used[:, _STEP] = True
    raw[:, _STEP] = step << 1
    if alone.any():
        big_endian = zigzag[alone].astype(">u8").view(np.uint8).reshape(-1, 8)
        raw[alone, _DIGITS : _DIGITS + 8] = big_endian
        used[alone, _DIGITS : _DIGITS + 8] = True
        used[alone, _DIGITS + 8 :] = False
    sizes = used.sum(axis=1)
    return raw[used].tobytes(), np.cumsum(sizes) - sizes
