"""ORC files in memory: written by pyorc, altered in their tails, read at any place."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyorc

from acidctl.acid.listing import Entry
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.codecs import encode_original
from acidctl.orc.tail import Tail, read_tail
from acidctl.storage.local.filesystem import LocalFileSystem


class Remote:
    """Files by name with no path on the local disk; counts the ranged reads."""

    def __init__(self, **files: bytes) -> None:
        self.files = files
        self.reads: list[tuple[int, int | None]] = []

    def stat(self, path: str) -> Entry:
        return Entry(path, len(self.files[path]), None, False)

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        self.reads.append((offset, length))
        return self.files[path][offset : None if length is None else offset + length]

    def local_path(self, path: str) -> str | None:
        return None


def tail_of(data: bytes, length: int | None = None) -> Tail:
    """The tail of a file in memory."""
    return read_tail(ByteSource(Remote(file=data), "file", length))


def local_tail(path: Path) -> Tail:
    """The tail of a file on disk."""
    return read_tail(ByteSource(LocalFileSystem(), str(path)))


class Raw:
    """pyorc's converter that leaves timestamps as (seconds, nanoseconds), whatever the year."""

    @staticmethod
    def from_orc(seconds: int, nanos: int, timezone: Any) -> tuple[int, int]:
        return seconds, nanos

    @staticmethod
    def to_orc(value: tuple[int, int], timezone: Any) -> tuple[int, int]:
        return value


RAW: dict[Any, Any] = {pyorc.TypeKind.TIMESTAMP: Raw, pyorc.TypeKind.TIMESTAMP_INSTANT: Raw}


def written(schema: str, rows: list[Any], **options: Any) -> bytes:
    """A file that pyorc wrote; timestamps are given as (seconds, nanoseconds)."""
    out = io.BytesIO()
    options.setdefault("batch_size", max(1, len(rows)))
    with pyorc.Writer(out, schema, converters=RAW, **options) as writer:
        writer.writerows(rows)
    return out.getvalue()


def retailed(data: bytes, change: Any, *, statistics: bool = False) -> bytes:
    """The same stripes under a footer and postscript that `change(footer, postscript)` has altered.

    Args:
        statistics: keep those of stripes.
    """
    tail = tail_of(data)
    footer, postscript = pb.Footer(), pb.PostScript()
    footer.CopyFrom(tail.footer)
    postscript.CopyFrom(tail.postscript)
    kept = tail.content_end + (postscript.metadataLength if statistics else 0)
    postscript.metadataLength = kept - tail.content_end
    change(footer, postscript)
    section = encode_original(footer.SerializeToString(), tail.compression, tail.block_size)
    postscript.footerLength = len(section)
    end = postscript.SerializeToString()
    return data[:kept] + section + end + bytes((len(end),))


ACID_SCHEMA = (
    "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
    "row:struct<a:int,b:string>>"
)


def acid_rows(count: int) -> list[Any]:
    """Insert events of write id 7 in bucket 0."""
    return [(0, 7, 536870912, i, 7, (i, f"row {i}")) for i in range(count)]
