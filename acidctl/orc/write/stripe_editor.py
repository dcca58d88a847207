"""Changing the streams of a finished stripe: dropping its index, and making one column of two halves of a timestamp.

The halves of a timestamp were written from the same rows with the same nulls, so that all counts agree; one has the
right seconds, the other the right nanoseconds.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from typing import Any

from google.protobuf.message import Message

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import decompress, encode_section

INDEX_KINDS = frozenset((pb.Stream.ROW_INDEX, pb.Stream.BLOOM_FILTER, pb.Stream.BLOOM_FILTER_UTF8))
# What the seconds alone may be off: a second and its fraction downward (times before 1970), a fraction upward.
_MILLIS_DOWN, _MILLIS_UP = 1000, 999

Codec = tuple[str, int]
"""Compression kind and block size."""


class StripeParts:
    """A stripe taken apart: its footer and the bytes of each stream."""

    def __init__(self, data: memoryview, info: pb.StripeInformation, codec: Codec) -> None:
        self.codec = codec
        self.info = info
        self.footer: pb.StripeFooter = pb.StripeFooter.FromString(
            decompress(data[info.indexLength + info.dataLength :], *codec)
        )
        self.streams: dict[tuple[int, int], memoryview] = {}
        at = 0
        for stream in self.footer.streams:
            self.streams[stream.column, stream.kind] = data[at : at + stream.length]
            at += stream.length

    @property
    def width(self) -> int:
        """How many numbers of a row index entry place the last stream of a column.

        With compression: the chunk, the place in it, the place in the run; without, there is no chunk.
        """
        return 2 if self.codec[0] == "none" else 3

    def row_index(self, column: int) -> pb.RowIndex | None:
        """The row index of a column, None where there is none."""
        raw = self.streams.get((column, pb.Stream.ROW_INDEX))
        return None if raw is None else pb.RowIndex.FromString(decompress(raw, *self.codec))

    def joined(self) -> tuple[bytes, pb.StripeInformation]:
        """The stripe put together again, and its information."""
        result = pb.StripeInformation()
        result.CopyFrom(self.info)
        parts: list[bytes | memoryview] = []
        index_length = data_length = 0
        for stream in self.footer.streams:
            raw = self.streams[stream.column, stream.kind]
            stream.length = len(raw)
            parts.append(raw)
            if stream.kind in INDEX_KINDS:
                index_length += len(raw)
            else:
                data_length += len(raw)
        footer = self.stored(self.footer)
        result.indexLength, result.dataLength, result.footerLength = index_length, data_length, len(footer)
        return b"".join([*parts, footer]), result

    def stored(self, message: Message) -> bytes:
        """`message` as a section of the file."""
        return encode_section(message.SerializeToString(), *self.codec)


def set_repeated(repeated: Any, messages: Iterable[Message]) -> None:
    """Make `messages` the only ones of a repeated field, of which they may come."""
    kept = list(messages)
    del repeated[:]
    repeated.extend(kept)


def drop_index(parts: StripeParts) -> None:
    """Remove the row index and bloom filters of a stripe."""
    drop_streams(parts, {key for key in parts.streams if key[1] in INDEX_KINDS})


def drop_streams(parts: StripeParts, gone: Container[tuple[int, int]]) -> None:
    """Remove the streams `gone`, by column id and kind, of a stripe."""
    kept = [stream for stream in parts.footer.streams if (stream.column, stream.kind) not in gone]
    set_repeated(parts.footer.streams, kept)
    parts.streams = {key: raw for key, raw in parts.streams.items() if key not in gone}


def drop_nan_bounds(parts: StripeParts, columns: Iterable[int]) -> None:
    """Take the statistics of floating point columns out of the row index where there is a NaN among the values.

    The bounds are then those of the other values, or NaN; readers of old Java compare with them all the same.
    """
    for column in columns:
        index = parts.row_index(column)
        if index is None:
            continue
        for entry in index.entry:
            if math.isnan(entry.statistics.doubleStatistics.sum):
                entry.statistics.ClearField("doubleStatistics")
        parts.streams[column, pb.Stream.ROW_INDEX] = memoryview(parts.stored(index))


def take_nanos(seconds: StripeParts, nanos: StripeParts, columns: Mapping[int, int]) -> None:
    """Give timestamp columns of `seconds` the nanoseconds of `nanos`, and their row index both halves' positions.

    Args:
        seconds: the stripe, changed in place.
        nanos: the other half.
        columns: column ids of `seconds` and the ids that the same columns have in `nanos`.
    """
    for column, other in columns.items():
        key = (column, pb.Stream.SECONDARY)
        if key in seconds.streams:
            seconds.streams[key] = nanos.streams[other, pb.Stream.SECONDARY]
        # It knows the seconds only: a reader would miss every time with a fraction.
        drop_streams(seconds, {(column, pb.Stream.BLOOM_FILTER_UTF8)})
        index, other_index = seconds.row_index(column), nanos.row_index(other)
        if index is None or other_index is None:
            continue
        for entry, other_entry in zip(index.entry, other_index.entry, strict=True):
            # The nanoseconds' position is the last of the entry's.
            entry.positions[-seconds.width :] = other_entry.positions[-seconds.width :]
            loosen(entry.statistics)
        seconds.streams[column, pb.Stream.ROW_INDEX] = memoryview(seconds.stored(index))


def loosen(statistics: pb.ColumnStatistics) -> None:
    """Widen bounds that were taken from seconds alone until they hold for the whole timestamps."""
    if not statistics.HasField("timestampStatistics"):
        return
    block = statistics.timestampStatistics
    for field in ("minimumNanos", "maximumNanos"):
        block.ClearField(field)  # absent means the widest
    for field in ("minimum", "minimumUtc"):
        if block.HasField(field):
            setattr(block, field, getattr(block, field) - _MILLIS_DOWN)
    for field in ("maximum", "maximumUtc"):
        if block.HasField(field):
            setattr(block, field, getattr(block, field) + _MILLIS_UP)
