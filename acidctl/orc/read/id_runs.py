"""The ids of a stripe as its few bytes say them, where one writer's rows follow each other: nothing is decoded.

Such a stripe holds the same operation, write ids and bucket throughout, and row ids one above the other.  Its streams
are then nothing but runs that repeat or count (ORC's RLE version 2, short repeats and deltas without widths), five
hundred values in four bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from isal.isal_zlib import crc32
from numpy.typing import NDArray

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import ChunkError, decompress
from acidctl.orc.tail import RecordKey, Tail, stripe_length
from acidctl.orc.varint import TooLongError, signed

_OPERATION, _ORIGINAL, _BUCKET, _ROW_ID, _CURRENT = _COLUMNS = range(1, 6)
"""Column ids (format section 3.1)."""

_MOST_BYTES = 1 << 20
"""Streams of so many bytes are no such runs, unless a stripe had a hundred million rows."""

_SHORT_REPEAT, _DELTA = 0, 3
_WIDTH = 0x3E
_DELTA_HEADER = 2
_FULL_RUN = b"\xc1\xff"
"""The header of a delta run without widths and of the most values."""
_RUN_BITS = 9
"""Its values: 512."""

_FEW = 8
"""Fewer runs than this are looked at one by one."""
_MOST_DIGITS = 9
_MOST = 1 << 62
"""Numbers below this can be counted on in 64 bits."""
_INTS = 1 << 31
"""One above the largest INT."""


@dataclass(frozen=True, slots=True)
class IdBytes:
    """What a stripe that is copied byte for byte can be known by: its encoded ids, and its footer.

    Attributes:
        start: where the streams of the ids begin, from the beginning of the stripe on.
        length: to the end of the last of them.
        crc: CRC-32 of these bytes and, behind them, those of the stripe's footer.
    """

    start: int
    length: int
    crc: int

    def are_in(self, tail: Tail, i: int) -> bool:
        """Whether stripe `i` of a file has them: then it has these ids, and everything lies where it did.

        Costs two small reads.
        """
        info = tail.stripes[i]
        if self.start + self.length + info.footerLength > stripe_length(info):
            return False
        ids = tail.source.read(info.offset + self.start, self.length)
        return crc32(tail.raw_stripe_footer(i), crc32(ids)) == self.crc


@dataclass(frozen=True, slots=True)
class RowIdRun:
    """The ids of a stripe whose row ids follow each other.

    Attributes:
        first: the least key; only the row id differs in the others.
        count: rows.
        encoded: how they are written.
    """

    operation: int
    first: RecordKey
    current: int
    count: int
    encoded: IdBytes | None = field(default=None, compare=False)

    @property
    def last(self) -> RecordKey:
        """The greatest key."""
        return self.first._replace(row_id=self.first.row_id + self.count - 1)


def id_run(tail: Tail, i: int) -> RowIdRun | None:
    """The ids of stripe `i` of a native file; None where they must be decoded, be it because they are damaged.

    Costs two small reads: the stripe's footer, and the id streams.

    Raises:
        BadDataError: the stripe's footer is damaged.
    """
    info = tail.stripes[i]
    if not tail.is_acid or not info.numberOfRows:
        return None
    raw_footer = tail.raw_stripe_footer(i)
    footer = tail.parse_stripe_footer(i, raw_footer)
    places: dict[int, tuple[int, int]] = {}
    at = info.offset
    for stream in footer.streams:
        if stream.column == 0 and stream.kind == pb.Stream.PRESENT and stream.length:
            return None  # whole rows are NULL
        if stream.column in _COLUMNS and stream.kind in (pb.Stream.PRESENT, pb.Stream.DATA) and stream.length:
            if stream.kind == pb.Stream.PRESENT or stream.column in places:
                return None
            places[stream.column] = at, at + stream.length
        at += stream.length
    encodings = [footer.columns[column].kind for column in _COLUMNS if column < len(footer.columns)]
    if len(places) != len(_COLUMNS) or encodings != [pb.ColumnEncoding.DIRECT_V2] * len(_COLUMNS):
        return None
    start, end = min(start for start, _ in places.values()), max(end for _, end in places.values())
    if end - start > _MOST_BYTES:
        return None
    encoded = tail.source.read(start, end - start)
    data = memoryview(encoded)
    found = []
    for column in _COLUMNS:
        low, high = places[column]
        try:
            raw = decompress(data[low - start : high - start], tail.compression, tail.block_size, _MOST_BYTES)
        except ChunkError:
            return None
        found.append(progression(raw, info.numberOfRows))
    operation, original, bucket, row_id, current = found
    if not (operation and original and bucket and row_id and current):
        return None
    if row_id[1] != 1 or any(step for _, step in (operation, original, bucket, current)):
        return None
    if any(not -_INTS <= value < _INTS for value, _ in (operation, bucket)):
        return None  # readers cut off what an INT cannot hold
    first = RecordKey(original[0], bucket[0], row_id[0])
    known_by = IdBytes(start - info.offset, end - start, crc32(raw_footer, crc32(encoded)))
    return RowIdRun(operation[0], first, current[0], info.numberOfRows, known_by)


def progression(data: bytes, count: int) -> tuple[int, int] | None:
    """The first value and the step of a stream of signed integers in RLE version 2.

    Args:
        data: the stream, inflated.
        count: its values.

    Returns:
        None when they are not an arithmetic progression, or are not written as short repeats and deltas.
    """
    at = seen = 0
    first = step = 0
    try:
        while at < len(data):
            start, head = at, data[at]
            if head >> 6 == _SHORT_REPEAT:
                width, length, delta = (head >> 3) + 1, (head & 7) + 3, 0
                at += 1 + width
                if at > len(data):
                    return None
                value = int.from_bytes(data[start + 1 : at], "big")
                base = value >> 1 ^ -(value & 1)
            elif head >> 6 == _DELTA and not head & _WIDTH:
                length = ((head & 1) << 8 | data[at + 1]) + 1
                base, middle = signed(data, at + 2)
                delta, at = signed(data, middle)
            else:
                return None
            if not seen:
                first, step = base, delta
            elif base != first + step * seen or (length > 1 and delta != step):
                return None
            times = 1
            if head >> 6 == _DELTA:
                times, at = _counting(data, start, (middle, at), base, delta) if delta else _repeats(data, start, at)
            seen += length * times
    except (IndexError, TooLongError):
        return None
    return (first, step) if seen == count and abs(first) + count < _MOST else None


def _repeats(data: bytes, start: int, end: int) -> tuple[int, int]:
    """How often a run follows itself, and where the last ends; most often all runs but the last are the same."""
    run, most = data[start:end], (len(data) - start) // (end - start)
    times = next((times for times in (most, most - 1) if times and data.startswith(run * times, start)), 1)
    return times, start + len(run) * times


def _counting(data: bytes, start: int, ends_of_first: tuple[int, int], base: int, delta: int) -> tuple[int, int]:
    """How many runs from `start` on are as long as can be and go on counting by `delta`; and where the last ends.

    Args:
        ends_of_first: where the base of the first run ends, and the run.
        base: of the first run.
    """
    middle, end = ends_of_first
    alone = 1, end
    if data[start : start + _DELTA_HEADER] != _FULL_RUN or len(data) - start < _FEW * (end - start):
        return alone
    raw = np.frombuffer(data, np.uint8, offset=start)
    # Both bytes of such a header have their highest bit set, so only the ends of its two numbers have not.
    last = np.flatnonzero(raw < 0x80)
    middles, ends = last[0:-1:2] + 1, last[1::2] + 1
    starts = np.concatenate([[0], ends[:-1]])
    digits = middles - starts - _DELTA_HEADER
    step = data[middle:end]
    # At the first other run the ends are no longer what they seem, and nothing is counted from there on.
    same = (digits > 0) & (digits <= _MOST_DIGITS) & (ends - middles == len(step))
    count = _leading(same)
    if count < _FEW or abs(base) + (abs(delta) * count << _RUN_BITS) >= _MOST:
        return alone
    starts, middles, digits = starts[:count], middles[:count], digits[:count]
    wanted = np.arange(count) * (delta << _RUN_BITS) + base
    value = np.zeros(count, np.int64)
    for digit in range(int(digits.max())):
        has = digits > digit
        value |= np.where(has, raw[starts + _DELTA_HEADER + digit * has].astype(np.int64) & 0x7F, 0) << 7 * digit
    good = (raw[starts] == _FULL_RUN[0]) & (raw[starts + 1] == _FULL_RUN[1]) & ((value >> 1 ^ -(value & 1)) == wanted)
    for place, byte in enumerate(step):
        good &= raw[middles + place] == byte
    count = _leading(good)
    return count, start + int(ends[count - 1])


def _leading(flags: NDArray[np.bool_]) -> int:
    """How many of the first are all true."""
    return len(flags) if flags.all() else int(flags.argmin())
