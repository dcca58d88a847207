"""Take a finished stripe apart, change its streams or drop its index, and put it together again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from google.protobuf.message import Message

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import decompress, encode_section
from acidctl.orc.tail import placed_streams

INDEX_KINDS = frozenset((pb.Stream.ROW_INDEX, pb.Stream.BLOOM_FILTER, pb.Stream.BLOOM_FILTER_UTF8))

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
        self.streams: dict[tuple[int, int], memoryview] = {
            (stream.column, stream.kind): data[at : at + stream.length] for stream, at in placed_streams(self.footer)
        }

    @property
    def width(self) -> int:
        """Return how many numbers of a row index entry give the position in the last stream of a column.

        With compression these are the chunk, the byte in it and the value in the run; without, there is no chunk.
        """
        return 2 if self.codec[0] == "none" else 3

    def row_index(self, column: int) -> pb.RowIndex | None:
        """Return the row index of a column, None if it does not exist."""
        raw = self.streams.get((column, pb.Stream.ROW_INDEX))
        return None if raw is None else pb.RowIndex.FromString(decompress(raw, *self.codec))

    def joined(self) -> tuple[bytes, pb.StripeInformation]:
        """Return the stripe put together again, and its information."""
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
        """Return `message` as a section of the file."""
        return encode_section(message.SerializeToString(), *self.codec)


def set_repeated(repeated: Any, messages: Iterable[Message]) -> None:
    """Replace the messages of a repeated field by `messages`, which may come from the same field."""
    kept = list(messages)
    del repeated[:]
    repeated.extend(kept)


def drop_index(parts: StripeParts) -> None:
    """Remove the row index and bloom filters of a stripe."""
    set_repeated(parts.footer.streams, [stream for stream in parts.footer.streams if stream.kind not in INDEX_KINDS])
    parts.streams = {key: raw for key, raw in parts.streams.items() if key[1] not in INDEX_KINDS}


def mend_doubles(statistics: pb.ColumnStatistics) -> bool:
    """Make ORC C++'s statistics of floating point numbers true for all readers; return whether they changed.

    If a value is NaN the bounds are those of the other values, or NaN, and old Java readers still compare with them.
    In Java -0.0 comes before 0.0, so that a greatest value of -0.0 would leave out the 0.0 that may follow it.
    """
    if not statistics.HasField("doubleStatistics"):
        return False
    block = statistics.doubleStatistics
    if math.isnan(block.sum):
        statistics.ClearField("doubleStatistics")
        return True
    if block.maximum or math.copysign(1.0, block.maximum) > 0:
        return False
    block.maximum = 0.0
    return True


def mend_index(parts: StripeParts, columns: Iterable[int]) -> bool:
    """Apply :func:`mend_doubles` to every entry of the row index of some columns; return whether any changed."""
    changed = False
    for column in columns:
        index = parts.row_index(column)
        if index is None or not sum(mend_doubles(entry.statistics) for entry in index.entry):
            continue
        parts.streams[column, pb.Stream.ROW_INDEX] = memoryview(parts.stored(index))
        changed = True
    return changed
