"""Read the ids of a stripe from a few encoded bytes, without decoding, if one writer's rows follow each other.

Such a stripe holds the same operation, write ids and bucket throughout, and consecutive row ids.  Its streams consist
only of runs that repeat or count (ORC's RLE version 2, short repeats and deltas without widths), five hundred values
in four bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from isal.isal_zlib import crc32

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import ChunkError, decompress
from acidctl.orc.read.integer_runs import LONGEST, encoded_runs
from acidctl.orc.tail import RecordKey, Tail, placed_streams, stripe_length
from acidctl.orc.varint import TooLongError, signed

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
