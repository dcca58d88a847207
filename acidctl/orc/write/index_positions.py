"""Compress a finished stripe by zlib, and change the positions in its row index accordingly.

An entry of a column's row index holds the position of its rows in each of the column's streams.  For every stream this
is the byte (with compression, the chunk and the byte inside it), then the position in the run-length encoding: the
number of values of the run to skip, and for single bits the bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from acidctl.base.errors import VerifyError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import encode_stream
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType
from acidctl.orc.write.stripe_editor import StripeParts

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
