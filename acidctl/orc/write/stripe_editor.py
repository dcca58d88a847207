"""Take a finished stripe apart, change or compress its streams, drop its index, and put it together again.

An entry of a column's row index holds the position of its rows in each of the column's streams.  For every stream this
is the byte (with compression, the chunk and the byte inside it), then the position in the run-length encoding: the
number of values of the run to skip, and for single bits the bit.  Compression changes these positions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from acidctl.base.errors import VerifyError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import decompress, encode_section, encode_stream
from acidctl.orc.tail import placed_streams
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType

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


Int64 = npt.NDArray[np.int64]

StreamKind = pb.Stream.Kind
Places = tuple[tuple[StreamKind, int], ...]
"""Streams in the order of the positions, each with the count of numbers that follow the number of the byte."""

_NOT_FITTING = "the ORC library wrote a row index that does not fit its streams"
_RAW, _RUN, _BITS = 0, 1, 2
_PRESENT: Final[Places] = ((pb.Stream.PRESENT, _BITS),)
_NUMBERS: Final[Places] = ((pb.Stream.DATA, _RUN),)
_BYTES: Final[Places] = ((pb.Stream.DATA, _RAW), (pb.Stream.LENGTH, _RUN))
_TIMES: Final[Places] = ((pb.Stream.DATA, _RUN), (pb.Stream.SECONDARY, _RUN))
_LENGTHS: Final[Places] = ((pb.Stream.LENGTH, _RUN),)
_DIRECT: Final[dict[str, Places]] = {
    "boolean": ((pb.Stream.DATA, _BITS),),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "date", "uniontype"), _NUMBERS),
    **dict.fromkeys(("float", "double"), ((pb.Stream.DATA, _RAW),)),
    **dict.fromkeys(("string", "varchar", "char", "binary"), _BYTES),
    **dict.fromkeys(TIMESTAMP_KINDS, _TIMES),
    "decimal": ((pb.Stream.DATA, _RAW), (pb.Stream.SECONDARY, _RUN)),
    **dict.fromkeys(("array", "map"), _LENGTHS),
    "struct": (),
}


def places(kind: str, encoding: pb.ColumnEncoding, streams: Collection[int]) -> Places:
    """Return the streams that the positions of a column refer to.

    Args:
        kind: the column's type, see OrcType.kind.
        encoding: the column's encoding; of a dictionary only the references have positions.
        streams: the kinds of the column's streams.  A writer that leaves out PRESENT, if nothing is null, leaves out
            its positions; positions of other streams stay even if the streams are empty.
    """
    dictionary = encoding.kind in (pb.ColumnEncoding.DICTIONARY, pb.ColumnEncoding.DICTIONARY_V2)
    values = _NUMBERS if dictionary else _DIRECT[kind]
    return (_PRESENT if pb.Stream.PRESENT in streams else ()) + values


@dataclass(frozen=True, slots=True)
class Layout:
    """The chunks of one stream.

    Attributes:
        length: bytes of the stream before compression.
        block: bytes before compression of each chunk but the last.
        starts: the offset of each chunk in the compressed stream.
    """

    length: int
    block: int
    starts: Int64

    def locate(self, offsets: Int64) -> tuple[Int64, Int64]:
        """Return (start of the chunk, byte inside the chunk before compression) for bytes of the stream.

        The stream's end is the end of its last chunk, as for other writers.
        """
        if len(offsets) and (offsets.min() < 0 or offsets.max() > self.length):
            raise VerifyError(_NOT_FITTING, "a row is beyond one")
        if not len(self.starts):
            return offsets, offsets  # all zero
        chunks = np.minimum(offsets // self.block, len(self.starts) - 1)
        return self.starts[chunks], offsets - chunks * self.block


def relocate(index: pb.RowIndex, where: Places, layouts: Sequence[Layout]) -> None:
    """Change the positions of uncompressed streams into positions of compressed streams.

    Args:
        index: the row index of one column, changed in place.
        where: see :func:`places`.
        layouts: the layouts of the same streams.

    Raises:
        VerifyError: the number of positions in the entries does not fit the column's streams.
    """
    width = sum(1 + more for _, more in where)
    if any(len(entry.positions) != width for entry in index.entry):
        counts = sorted({len(entry.positions) for entry in index.entry})
        raise VerifyError(_NOT_FITTING, f"entries have {counts} positions where the streams ask for {width}")
    if not any(position for entry in index.entry for position in entry.positions):
        for entry in index.entry:  # the beginning of a stream stays its beginning, in chunk 0
            entry.positions.extend([0] * len(where))
        return
    old = np.array([position for entry in index.entry for position in entry.positions], np.int64).reshape(-1, width)
    columns: list[Int64] = []
    at = 0
    for (_, more), layout in zip(where, layouts, strict=True):
        columns.extend(layout.locate(old[:, at]))
        columns.extend(old[:, at + 1 + i] for i in range(more))
        at += 1 + more
    for entry, positions in zip(index.entry, np.column_stack(columns).tolist(), strict=True):
        entry.positions[:] = positions


def deflate_stripe(parts: StripeParts, tree: OrcType, block_size: int) -> None:
    """Compress an uncompressed stripe by zlib, several times as fast as the ORC library does.

    Args:
        parts: the stripe, changed in place.
        tree: the root of its types, numbered from 0.
        block_size: the compression block size in bytes.

    Raises:
        VerifyError: the row index does not fit the streams.
    """
    layouts: defaultdict[int, dict[int, Layout]] = defaultdict(dict)
    indexes: dict[int, pb.RowIndex] = {}
    for (column, kind), raw in parts.streams.items():
        if kind == pb.Stream.ROW_INDEX:
            indexes[column] = pb.RowIndex.FromString(bytes(raw))
            continue
        packed, starts = encode_stream(raw, "zlib", block_size)
        parts.streams[column, kind] = memoryview(packed)
        layouts[column][kind] = Layout(len(raw), block_size, np.array(starts, np.int64))
    parts.codec = ("zlib", block_size)
    nowhere = Layout(0, block_size, np.array([], np.int64))
    kinds = [node.kind for node in tree.walk()]
    for column, index in indexes.items():
        by_kind = layouts[column]
        where = places(kinds[column], parts.footer.columns[column], by_kind)
        relocate(index, where, [by_kind.get(kind, nowhere) for kind, _ in where])
        parts.streams[column, pb.Stream.ROW_INDEX] = memoryview(parts.stored(index))
