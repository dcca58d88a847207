"""The reader of a data file that is not ORC: what :class:`~acidctl.orc.read.reader.OrcFile` does to read rows.

Such a file gets the footer that an ORC file of the same rows would have, with a stripe for each row group of Parquet or
block of text, so that it can be read like a raw ORC file (format sections 1.4 and 11).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from acidctl.location.metastore_schema import Declared
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import struct_of
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import Tail
from acidctl.orc.types import OrcType, renumbered, to_proto

_PROLEPTIC = 2
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

CODECS = {"gz": "gzip", "deflate": "gzip", "bz2": "bz2", "zst": "zstd"}
HADOOP_CODECS = ("snappy", "lz4")
"""The codecs of compressed text by their extensions: as Arrow calls them, and those whose frames are Hadoop's own."""


class ForeignReader:
    """The part of :class:`~acidctl.orc.read.reader.OrcFile` that is needed to read rows."""

    def __init__(self, source: ByteSource, tail: Tail, declared: Declared | None = None) -> None:
        self._source = source
        self._tail = tail
        self._layout = declared.text if declared else None
        self._hive = declared.hive if declared else None

    @property
    def stripe_count(self) -> int:
        """Return the number of row groups or blocks."""
        return len(self._tail.stripes)

    def read_stripe(self, i: int, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """Return the rows of stripe `i` in the types of an ORC reader; for `columns` see :class:`OrcFile`.

        Raises:
            BadDataError: the file is damaged.
        """
        if columns is not None and not columns:
            return pa.RecordBatch.from_struct_array(struct_of((), (), self._tail.stripes[i].numberOfRows))
        return self._read(i, columns)

    def _read(self, i: int, columns: Sequence[str] | None) -> pa.RecordBatch:
        raise NotImplementedError

    def close(self) -> None:
        """Close the file."""


def made_tail(source: ByteSource, row: OrcType, stripes: list[tuple[int, int]]) -> Tail:
    """Return a footer with a row type and (rows, bytes) of each stripe; no statistics, proleptic Gregorian dates."""
    footer = pb.Footer(types=to_proto(renumbered(row)), calendar=_PROLEPTIC)
    for rows, size in stripes:
        footer.stripes.add(numberOfRows=rows, dataLength=size)
    footer.numberOfRows = sum(rows for rows, _ in stripes)
    return Tail(
        source=source,
        postscript=pb.PostScript(),
        footer=footer,
        file_length=source.size,
        content_end=source.size,
        metadata_start=source.size,
        compression="none",
        block_size=0,
        _raw_metadata=b"",
    )


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """Return the values of a column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def text_extension(path: str) -> str | None:
    """Return the extension by which Hadoop finds the codec of a text file; None for a plain file."""
    extension = path.rpartition("/")[2].rpartition(".")[2].lower()
    return extension if extension in CODECS or extension in HADOOP_CODECS else None
