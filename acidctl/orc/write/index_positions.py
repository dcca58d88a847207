"""A finished stripe compressed by zlib; and the positions in its row index, which streams these speak of, and what they
become then.

An entry of a column's row index says where its rows begin in each of the column's streams.  For every stream that is
the byte, or where there is compression the chunk and the byte inside it, and then the place in what a run-length
encoder made of the bytes: values of the run, and for single bits the bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from acidctl.errors import VerifyError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import encode_stream
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType
from acidctl.orc.write.stripe_editor import StripeParts

Int64 = npt.NDArray[np.int64]

StreamKind = pb.Stream.Kind
Places = tuple[tuple[StreamKind, int], ...]
"""Streams in the order of the positions, each with how many numbers follow that of the byte."""

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
    """What the positions of a column speak of.

    Args:
        kind: its type, see OrcType.kind.
        encoding: how it is encoded; of a dictionary only the references have positions.
        streams: kinds of the streams that it has.  A writer that leaves out PRESENT, where nothing is null, leaves
            out its positions; those of other streams stay though the streams be empty.
    """
    dictionary = encoding.kind in (pb.ColumnEncoding.DICTIONARY, pb.ColumnEncoding.DICTIONARY_V2)
    values = _NUMBERS if dictionary else _DIRECT[kind]
    return (_PRESENT if pb.Stream.PRESENT in streams else ()) + values


@dataclass(frozen=True, slots=True)
class Layout:
    """How one stream was cut into chunks.

    Attributes:
        length: its bytes before compression.
        block: bytes that went into each chunk; the last may have less.
        starts: where each chunk begins in the compressed stream.
    """

    length: int
    block: int
    starts: Int64

    def locate(self, offsets: Int64) -> tuple[Int64, Int64]:
        """(start of the chunk, byte inside the chunk before compression) of bytes of the stream.

        The stream's end is the end of its last chunk, as other writers say it.
        """
        if len(offsets) and (offsets.min() < 0 or offsets.max() > self.length):
            raise VerifyError("the ORC library wrote a row index that does not fit its streams", "a row is beyond one")
        if not len(self.starts):
            return offsets, offsets  # all zero
        chunks = np.minimum(offsets // self.block, len(self.starts) - 1)
        return self.starts[chunks], offsets - chunks * self.block


def relocate(index: pb.RowIndex, where: Places, layouts: Sequence[Layout]) -> None:
    """Change the positions of uncompressed streams into those of compressed ones.

    Args:
        index: the row index of one column, changed in place.
        where: see :func:`places`.
        layouts: of the same streams.

    Raises:
        VerifyError: the entries have other positions than the column's streams ask for.
    """
    width = sum(1 + more for _, more in where)
    if any(len(entry.positions) != width for entry in index.entry):
        found = sorted({len(entry.positions) for entry in index.entry})
        raise VerifyError(
            "the ORC library wrote a row index that does not fit its streams",
            f"entries have {found} positions where the streams ask for {width}",
        )
    if not width:
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
        block_size: compression block size in bytes.

    Raises:
        VerifyError: its row index does not fit its streams.
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
        own = layouts[column]
        where = places(kinds[column], parts.footer.columns[column], own)
        relocate(index, where, [own.get(kind, nowhere) for kind, _ in where])
        parts.streams[column, pb.Stream.ROW_INDEX] = memoryview(parts.stored(index))
