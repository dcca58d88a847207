"""Give parts of a stripe to Arrow as an ORC file in memory, under a footer made for the purpose.

In this way its decoders read what its file reader cannot: timestamps of any year, NULLs of unions, NULL map keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import native_errors
from acidctl.orc.codecs import encode_original
from acidctl.orc.tail import MAGIC, Tail
from acidctl.orc.types import OrcType, to_proto

ByteStream = bytes | memoryview


def read_as(
    like: Tail,
    i: int,
    tree: OrcType,
    streams: Sequence[ByteStream],
    footer: pb.StripeFooter,
    *,
    rows: int,
    columns: Sequence[str] | None = None,
) -> pa.RecordBatch:
    """Read a file of one stripe without an index, made of `streams`, with Arrow.

    Args:
        like: the file whose codec, version and writer are used.
        tree: the types of the file in memory.
        streams: the data, in the order of the footer's streams.
        columns: the columns to read; None for all.

    Raises:
        BadDataError: Arrow cannot read it.
    """
    length = sum(map(len, streams))
    stripe_footer = encode_original(footer.SerializeToString(), like.compression, like.block_size)
    tail = pb.Footer(
        headerLength=len(MAGIC),
        contentLength=len(MAGIC) + length + len(stripe_footer),
        types=to_proto(tree),
        numberOfRows=rows,
        rowIndexStride=0,
        writer=like.footer.writer,
    )
    tail.stripes.add(
        offset=len(MAGIC), indexLength=0, dataLength=length, footerLength=len(stripe_footer), numberOfRows=rows
    )
    file_footer = encode_original(tail.SerializeToString(), like.compression, like.block_size)
    postscript = pb.PostScript(
        footerLength=len(file_footer),
        compression=like.postscript.compression,
        compressionBlockSize=like.block_size,
        version=like.version,
        metadataLength=0,
        writerVersion=like.writer_version,
        magic=MAGIC.decode(),
    ).SerializeToString()
    file = b"".join([MAGIC, *streams, stripe_footer, file_footer, postscript, bytes((len(postscript),))])
    from pyarrow import orc  # noqa: PLC0415 - with Arrow's file systems: only where rows are decoded

    with native_errors(like.path, i):
        return orc.ORCFile(pa.BufferReader(pa.py_buffer(file))).read_stripe(0, columns=columns)


def read_column(
    like: Tail, i: int, kind: str, streams: Mapping[pb.Stream.Kind, ByteStream], count: int, *, version: int = 1
) -> pa.Array:
    """Return the first values of a column without NULLs.

    Args:
        like, i: as for :func:`read_as`.
        kind: the ORC type of the column.
        count: the number of values, at most all.
        version: the version of the encoding of integers, 1 or 2.
    """
    footer = pb.StripeFooter(writerTimezone="UTC")
    footer.columns.add(kind=pb.ColumnEncoding.DIRECT)
    footer.columns.add(kind=pb.ColumnEncoding.DIRECT_V2 if version == 2 else pb.ColumnEncoding.DIRECT)
    for stream, data in streams.items():
        footer.streams.add(kind=stream, column=1, length=len(data))
    root = OrcType("struct", children=(OrcType(kind, 1),), names=("values",))
    return read_as(like, i, root, list(streams.values()), footer, rows=count).column(0)
