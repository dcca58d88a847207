"""Read runs of ORC's integers to bound their sums before a native reader takes memory, and write runs that count.

A run of equal values is not unpacked: a few bytes can claim any number of values. The ids of a stripe are read from a
few encoded bytes if one writer's rows follow each other. Such a stripe holds the same operation, write ids and bucket
throughout, and consecutive row ids.  Its streams consist only of runs that repeat or count (ORC's RLE version 2, short
repeats and deltas without widths), five hundred values in four bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from isal.isal_zlib import crc32
from numpy.typing import NDArray

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import ChunkError, decompress
from acidctl.orc.tail import RecordKey, Tail, placed_streams, stripe_length
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
_DELTA_HEAD: Final = 0xC0
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
                most = data[at + 1] if width == 1 else int.from_bytes(data[at + 1 : at + 1 + width], "big")
                at += 1 + width
                seen += times
                total += most * times
            elif kind == 1:  # here, because a call takes as long as the rest
                width, times = _WIDTHS[head >> 1 & 31], ((head & 1) << 8 | data[at + 1]) + 1
                at += 2 + (width * times + 7 >> 3)
                seen += times
                most = (1 << width) - 1
                total += most * times
            else:
                width, times = _WIDTHS[head >> 1 & 31], ((head & 1) << 8 | data[at + 1]) + 1
                seen += times
                most, more, at = _BOUNDS[kind](data, at, width, times)
                total += most * times + more
                most += more
            if most > longest:  # noqa: PLR1730 - max() takes three times as long
                longest = most
            if not begin:  # most often all runs but the last are alike, as the scales of a column are
                alike = min(end // at - 2, int(min(count - seen, end * LONGEST)) // times)
                if alike > 0 and data[at : at * (alike + 1)] == data[:at] * alike:
                    at, seen, total = at * (alike + 1), seen + times * alike, total * (alike + 1)
    except (IndexError, TooLongError):
        pass
    return float(total), float(longest)


def _bound_patched(data: bytes, at: int, width: int, count: int) -> tuple[int, int, int]:
    base_bytes, patch_width = (data[at + 2] >> 5) + 1, _WIDTHS[data[at + 2] & 31]
    gap_width, patches = (data[at + 3] >> 5) + 1, data[at + 3] & 31
    bits = _ROUNDED[min(gap_width + patch_width, 64) - 1]
    base = int.from_bytes(data[at + 4 : at + 4 + base_bytes], "big") & ~(1 << 8 * base_bytes - 1)
    end = at + 4 + base_bytes + (width * count + 7 >> 3) + (bits * patches + 7 >> 3)
    return base + (1 << width) - 1, patches << width + patch_width, end


def _bound_delta(data: bytes, at: int, width: int, count: int) -> tuple[int, int, int]:
    begin = at
    is_even = not data[at] >> 1 & 31
    base, at = unsigned(data, at + 2)
    delta, at = signed(data, at)
    steps = 0 if is_even else max(0, count - 2)
    slope = abs(delta) * (count - 1) if is_even else abs(delta) + steps * ((1 << width) - 1)
    most = base + slope
    if delta < 0 and slope > base:
        # Lengths below 0 crash the native reader, and are huge if a run is read as unsigned.
        most = _BELOW_ZERO if is_even else int(_run_2(data, begin)[0].max())
    return most, 0, at + (width * steps + 7 >> 3)


_BOUNDS = {2: _bound_patched, 3: _bound_delta}


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
    raw[:, 0] = np.where(alone, _DIRECT_64, _DELTA_HEAD | lengths - 1 >> 8)
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


_OPERATION, _ORIGINAL, _BUCKET, _ROW_ID, _CURRENT = _COLUMNS = range(1, 6)  # column ids (format section 3.1)
_MOST_BYTES = 1 << 20  # longer streams cannot be such runs, unless a stripe had a hundred million rows
_SHORT_REPEAT, _DELTA = 0, 3
_WIDTH = 0x3E
_MOST = 1 << 62  # counting on from numbers below this does not leave 64 bits
_INTS = 1 << 31  # one above the largest INT


@dataclass(frozen=True, slots=True)
class IdBytes:
    """Identifies a stripe that is copied byte for byte, by its encoded ids and its footer.

    Attributes:
        start: offset of the streams of the ids in the stripe.
        length: bytes to the end of the last of these streams.
        crc: CRC-32 of these bytes followed by the stripe's footer.
    """

    start: int
    length: int
    crc: int

    def are_in(self, tail: Tail, i: int) -> bool:
        """Return whether stripe `i` of a file has these bytes, and so these ids and the same layout.

        This costs two small reads.
        """
        info = tail.stripes[i]
        if self.start + self.length + info.footerLength > stripe_length(info):
            return False
        ids = tail.source.read(info.offset + self.start, self.length)
        return crc32(tail.raw_stripe_footer(i), crc32(ids)) == self.crc


@dataclass(frozen=True, slots=True)
class RowIdRun:
    """The ids of a stripe with consecutive row ids.

    Attributes:
        first: the least key; other keys differ in the row id only.
        count: the number of rows.
    """

    operation: int
    first: RecordKey
    current: int
    count: int
    encoded: IdBytes | None = field(default=None, compare=False)

    @property
    def last(self) -> RecordKey:
        """Return the greatest key."""
        return self.first._replace(row_id=self.first.row_id + self.count - 1)


def id_run(tail: Tail, i: int) -> RowIdRun | None:
    """Return the ids of stripe `i` of a native file; None if they must be decoded, even because they are damaged.

    This costs two small reads: the stripe's footer, and the id streams.  Raises BadDataError if the stripe's footer is
    damaged.
    """
    info = tail.stripes[i]
    if not tail.is_acid or not info.numberOfRows:
        return None
    raw_footer = tail.raw_stripe_footer(i)
    footer = tail.parse_stripe_footer(i, raw_footer)
    ranges: dict[int, tuple[int, int]] = {}
    for stream, at in placed_streams(footer, info.offset):
        if stream.column == 0 and stream.kind == pb.Stream.PRESENT and stream.length:
            return None  # whole rows are NULL
        if stream.column in _COLUMNS and stream.kind in (pb.Stream.PRESENT, pb.Stream.DATA) and stream.length:
            if stream.kind == pb.Stream.PRESENT or stream.column in ranges:
                return None
            ranges[stream.column] = at, at + stream.length
    encodings = [footer.columns[column].kind for column in _COLUMNS if column < len(footer.columns)]
    if len(ranges) != len(_COLUMNS) or encodings != [pb.ColumnEncoding.DIRECT_V2] * len(_COLUMNS):
        return None
    start, end = min(start for start, _ in ranges.values()), max(end for _, end in ranges.values())
    if end - start > _MOST_BYTES:
        return None
    encoded = tail.source.read(start, end - start)
    data = memoryview(encoded)
    progressions = []
    for column in _COLUMNS:
        low, high = ranges[column]
        try:
            raw = decompress(data[low - start : high - start], tail.compression, tail.block_size, _MOST_BYTES)
        except ChunkError:
            return None
        progressions.append(progression(raw, info.numberOfRows))
    operation, original, bucket, row_id, current = progressions
    if not (operation and original and bucket and row_id and current):
        return None
    if row_id[1] != 1 or any(step for _, step in (operation, original, bucket, current)):
        return None
    if any(not -_INTS <= value < _INTS for value, _ in (operation, bucket)):
        return None  # readers cut off what an INT cannot hold
    first = RecordKey(original[0], bucket[0], row_id[0])
    id_bytes = IdBytes(start - info.offset, end - start, crc32(raw_footer, crc32(encoded)))
    return RowIdRun(operation[0], first, current[0], info.numberOfRows, id_bytes)


def progression(data: bytes, count: int) -> tuple[int, int] | None:
    """Return the first value and the step of a stream of signed integers in RLE version 2.

    Args:
        data: the decompressed stream.
        count: the number of values.

    Returns:
        None if the values are not an arithmetic progression, or are not written as short repeats and deltas.
    """
    at = seen = 0
    first = step = 0
    try:
        while at < len(data):
            head = data[at]
            if head >> 6 == _SHORT_REPEAT:
                width, length, delta = (head >> 3) + 1, (head & 7) + 3, 0
                value = int.from_bytes(data[at + 1 : at + 1 + width], "big")
                at += 1 + width
                if at > len(data):
                    return None
                base = value >> 1 ^ -(value & 1)
            elif head >> 6 == _DELTA and not head & _WIDTH:
                length = ((head & 1) << 8 | data[at + 1]) + 1
                base, at = signed(data, at + 2)
                delta, at = signed(data, at)
            else:
                return None
            if not seen:
                first, step = base, delta
                is_usual = length == LONGEST and step in (0, 1) and abs(first) + count < _MOST
                # Usually all but the last few values are in runs of the greatest length.
                if is_usual and LONGEST <= count <= len(data) * LONGEST // 2:
                    runs = count // LONGEST
                    starts = first + np.arange(runs) * LONGEST
                    # The full runs that writers make of these numbers, for a step of 0 or 1.
                    full = encoded_runs(starts, np.full(runs, LONGEST), 1)[0] if step else data[:at] * runs
                    if data.startswith(full):
                        at, length = len(full), count // LONGEST * LONGEST
            elif base != first + step * seen or (length > 1 and delta != step):
                return None
            seen += length
    except (IndexError, TooLongError):
        return None
    return (first, step) if seen == count and abs(first) + count < _MOST else None
