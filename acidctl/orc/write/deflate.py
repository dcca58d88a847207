"""zlib for a finished stripe that was written uncompressed: several times as fast as the ORC library's own.

Every stream is compressed, and the row index told where its rows went.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import encode_zlib
from acidctl.orc.types import OrcType
from acidctl.orc.write.index_positions import Layout, places, relocate
from acidctl.orc.write.stripe_editor import StripeParts


def deflate_stripe(parts: StripeParts, tree: OrcType, block_size: int) -> None:
    """Compress an uncompressed stripe.

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
        packed, starts = encode_zlib(raw, block_size)
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
