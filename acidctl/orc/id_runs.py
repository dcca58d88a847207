"""The ids of a stripe as its few bytes say them, where one writer's rows follow each other: nothing is decoded.

Such a stripe holds the same operation, write ids and bucket throughout, and row ids one above the other.  Its streams
are then nothing but runs that repeat or count (ORC's RLE version 2, short repeats and deltas without widths), five
hundred values in four bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import ChunkError, decompress
from acidctl.orc.tail import RecordKey, Tail

_OPERATION, _ORIGINAL, _BUCKET, _ROW_ID, _CURRENT = _COLUMNS = range(1, 6)
"""Column ids (format section 3.1)."""

_MOST_BYTES = 1 << 20
"""Streams of so many bytes are no such runs, unless a stripe had a hundred million rows."""

_SHORT_REPEAT, _DELTA = 0, 3
_WIDTH = 0x3E
_DELTA_HEADER = 2

_FEW = 8
"""Fewer runs than this are looked at one by one."""
_MOST_DIGITS = 9
_MOST = 1 << 62
"""Numbers below this can be counted on in 64 bits."""


@dataclass(frozen=True, slots=True)
class IdRun:
    """The ids of a stripe whose row ids follow each other.

    Attributes:
        first: the least key; only the row id differs in the others.
        count: rows.
    """

    operation: int
    first: RecordKey
    current: int
    count: int

    @property
    def last(self) -> RecordKey:
        """The greatest key."""
        return self.first._replace(row_id=self.first.row_id + self.count - 1)


def id_run(tail: Tail, i: int) -> IdRun | None:
    """The ids of stripe `i` of a native file; None where they must be decoded, be it because they are damaged.

    Costs two small reads: the stripe's footer, and the id streams.

    Raises:
        BadDataError: the stripe's footer is damaged.
    """
    info = tail.stripes[i]
    if not tail.is_acid or not info.numberOfRows:
        return None
    footer = tail.stripe_footer(i)
    places: dict[int, tuple[int, int]] = {}
    at = info.offset
    for stream in footer.streams:
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
    data = memoryview(tail.source.read(start, end - start))
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
    return IdRun(operation[0], RecordKey(original[0], bucket[0], row_id[0]), current[0], info.numberOfRows)


def progression(data: bytes, count: int) -> tuple[int, int] | None:
    """The first value and the step of a stream of signed integers in RLE version 2.

    Args:
        data: the stream, inflated.
        count: its values.

    Returns:
        None when they are no arithmetic progression, or are not written as short repeats and deltas.
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
                base = _signed(int.from_bytes(data[start + 1 : at], "big"))
            elif head >> 6 == _DELTA and not head & _WIDTH:
                length = ((head & 1) << 8 | data[at + 1]) + 1
                base, middle = _varint(data, at + 2)
                delta, at = _varint(data, middle)
            else:
                return None
            if not seen:
                first, step = base, delta
            elif base != first + step * seen or (length > 1 and delta != step):
                return None
            times = 1
            if head >> 6 == _DELTA:
                times = _alike(data, start, (middle, at), base, delta * length) if delta else _repeats(data, start, at)
            seen += length * times
            at = start + (at - start) * times
    except IndexError:
        return None
    return (first, step) if seen == count and abs(first) + count < _MOST else None


def _repeats(data: bytes, start: int, end: int) -> int:
    """How often the bytes of a run follow one another; most often all runs but the last are the same."""
    run, most = data[start:end], (len(data) - start) // (end - start)
    return next((times for times in (most, most - 1) if times and data.startswith(run * times, start)), 1)


def _alike(data: bytes, start: int, ends: tuple[int, int], base: int, step: int) -> int:
    """How many delta runs from `start` on are as long as the first and differ only in their bases, by `step` each.

    Args:
        ends: of the first run's base, and of the run.
        base: of the first run.
    """
    middle, end = ends
    size, digits = end - start, middle - start - _DELTA_HEADER
    count = (len(data) - start) // size
    if count < _FEW or digits > _MOST_DIGITS or abs(base) + abs(step) * count >= _MOST:
        return 1
    runs = np.frombuffer(data, np.uint8, count * size, start).reshape(count, size)
    raw = np.zeros(count, np.int64)
    for digit in range(digits):
        raw |= (runs[:, _DELTA_HEADER + digit].astype(np.int64) & 0x7F) << 7 * digit
    wanted = runs[0].copy()
    wanted[_DELTA_HEADER : _DELTA_HEADER + digits] &= 0x80
    same = runs.copy()
    same[:, _DELTA_HEADER : _DELTA_HEADER + digits] &= 0x80
    alike = (same == wanted).all(axis=1) & ((raw >> 1 ^ -(raw & 1)) == base + step * np.arange(count))
    return count if alike.all() else int(alike.argmin())


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A signed number of 7 bits a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return _signed(value), at
        shift += 7


def _signed(value: int) -> int:
    return value >> 1 ^ -(value & 1)
