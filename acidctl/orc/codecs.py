"""Read and write the chunks that ORC compresses its sections into: a 3-byte header, then the bytes.

acidctl reads footers, stripe footers and row indexes by itself; Arrow decodes the rows.  Every length is checked
against the compression block size and a limit before memory is taken, so that a damaged or hostile file causes an
error and does not exhaust the machine.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
from isal import igzip_lib

from acidctl.base.errors import BadDataError
from acidctl.orc.limits import TAIL
from acidctl.orc.varint import TooLongError, unsigned

COMPRESSION_NAMES = ("none", "zlib", "snappy", "lzo", "lz4", "zstd", "brotli")
"""Names of codecs, by their number in the postscript."""

DEFAULT_BLOCK_SIZE = 256 * 1024
"""The compression block size in bytes if the postscript names none."""

_HEADER = 3

MAX_BLOCK = 1 << 23
"""The largest size of a compression block in bytes: the header of a chunk has 23 bits for its length."""
_MAX_CHUNK = MAX_BLOCK - 1
# Level 3 is three times slower and makes nothing smaller; level 1 is not faster.
_LEVEL = 2


class ChunkError(ValueError):
    """A chunk cannot be decompressed; the caller has the path and turns this into a BadDataError."""


class TooLarge(ChunkError):
    """A section would decompress to more than is allowed."""


class UnsupportedCodec(BadDataError):
    """The file uses a codec of ORC that acidctl does not have: LZO."""


def decompress(
    data: bytes | memoryview, kind: str, block_size: int, limit: int | None = None, *, is_cut: bool = False
) -> bytes:
    """Decompress a section.

    Args:
        data: the section as it is in the file: chunks, or the bytes themselves if `kind` is ``none``.
        kind: one of COMPRESSION_NAMES.
        block_size: no chunk may decompress to more bytes than this (postscript).
        limit: the most bytes that the result may have; None for the limit of footers, see limits.py.
        is_cut: `data` is only the beginning of a section; a chunk that is not whole is left out.

    Raises:
        ChunkError: a chunk is cut short, is damaged, or is larger than its block may be.
        TooLarge: the result is larger than `limit`.
        UnsupportedCodec: acidctl does not have the codec (LZO).
    """
    limit = TAIL.value if limit is None else limit
    if kind == "none":
        if len(data) > limit:
            raise TooLarge(f"the section is larger than {limit} bytes")
        return bytes(data)
    view = memoryview(data).cast("B")
    parts: list[bytes] = []
    total = 0
    at = 0
    while at < len(view):
        if len(view) - at < _HEADER:
            if is_cut:
                break
            raise ChunkError("a compression chunk is cut short")
        header = int.from_bytes(view[at : at + _HEADER], "little")
        length, original = header >> 1, header & 1
        at += _HEADER
        if length > len(view) - at:
            if is_cut:
                break
            raise ChunkError(f"a compression chunk claims {length} bytes where {len(view) - at} are left")
        chunk = view[at : at + length]
        at += length
        part = bytes(chunk) if original else _inflate(chunk, kind, min(block_size, _MAX_CHUNK))
        total += len(part)
        if total > limit:
            raise TooLarge(f"the section is larger than {limit} bytes")
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _inflate(chunk: memoryview, kind: str, limit: int) -> bytes:
    if not chunk:
        return b""
    try:
        if kind == "zlib":
            inflater = zlib.decompressobj(wbits=-15)
            part = inflater.decompress(chunk, limit)
            if not inflater.eof and (inflater.unconsumed_tail or inflater.decompress(b"", 1)):
                raise _too_large("zlib", limit)
            if not inflater.eof:
                raise ChunkError("a zlib chunk is cut short")
            return part
        if kind == "snappy":
            return _inflate_sized(chunk, "snappy", unsigned(chunk, 0)[0], limit)
        if kind == "lz4":
            return _inflate_sized(chunk, "lz4_raw", _lz4_size(chunk), limit)
        if kind in ("zstd", "brotli"):
            return _inflate_stream(chunk, kind, limit)
    except (zlib.error, pa.ArrowException, OSError, IndexError, TooLongError) as error:
        raise ChunkError(f"a {kind} chunk cannot be decompressed ({error})") from error
    why = "acidctl reads ORC files with no compression, zlib, snappy, lz4 and zstd"
    hint = "rewrite the table with another orc.compress"
    raise UnsupportedCodec(f"ORC compression {kind} is not supported", why, hint)


def _inflate_sized(chunk: memoryview, codec: str, size: int, limit: int) -> bytes:
    if size > limit:
        raise _too_large(codec, limit)
    return pa.Codec(codec).decompress(pa.py_buffer(chunk), decompressed_size=size, asbytes=True) if size else b""


def _inflate_stream(chunk: memoryview, codec: str, limit: int) -> bytes:
    stream: Any = pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(chunk)), codec)
    with stream:
        part: bytes = stream.read(limit + 1)
    if len(part) > limit:
        raise _too_large(codec, limit)
    return part


def _too_large(kind: str, limit: int) -> ChunkError:
    return ChunkError(f"a {kind} chunk is larger than the compression block size or the limit ({limit} bytes)")


def _lz4_size(chunk: memoryview) -> int:
    """Return the decompressed size of a raw LZ4 block, which does not state it, by adding up its sequences."""
    at = total = 0
    end = len(chunk)
    while at < end:
        token = chunk[at]
        literals, at = _lz4_length(chunk, at + 1, token >> 4)
        at += literals
        total += literals
        if at > end:
            raise ChunkError("an lz4 chunk is cut short")
        if at == end:
            break
        match, at = _lz4_length(chunk, at + 2, token & 0x0F)
        total += match + 4
    return total


def _lz4_length(chunk: memoryview, at: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            byte = chunk[at]
            at += 1
            length += byte
            if byte != 255:
                break
    return length, at


Packer = Callable[[memoryview], bytes | memoryview]

_ARROW_NAMES = {"snappy": "snappy", "lz4": "lz4_raw", "zstd": "zstd"}


def encode_original(data: bytes, kind: str, block_size: int) -> bytes:
    """Return `data` as chunks marked as stored, which readers accept under any `kind`, without compressing.

    Args:
        kind: the file's compression; ``none`` has no chunks at all.
        block_size: the file's compression block size, the most bytes of one chunk.
    """
    return data if kind == "none" else _chunked(data, block_size, lambda chunk: chunk)[0]


def encode_stream(data: bytes | memoryview, kind: str, block_size: int) -> tuple[bytes, list[int]]:
    """Return `data` as compressed chunks of `kind`, which is not ``none``, and the offset of each chunk.

    Args:
        kind: ``zlib`` (several times as fast as in the ORC library), ``snappy``, ``lz4`` or ``zstd``.
        block_size: the most bytes that go into one chunk.
    """
    if kind == "zlib":
        settings = {"level": _LEVEL, "flag": igzip_lib.COMP_DEFLATE, "mem_level": igzip_lib.MEM_LEVEL_LARGE}
        return _chunked(data, block_size, partial(igzip_lib.compress, **settings))
    return _chunked(data, block_size, partial(pa.Codec(_ARROW_NAMES[kind]).compress, asbytes=True))


def encode_section(data: bytes, kind: str, block_size: int) -> bytes:
    """Return `data` as the chunks of a section: compressed for zlib, else see :func:`encode_original`."""
    return encode_stream(data, kind, block_size)[0] if kind == "zlib" else encode_original(data, kind, block_size)


def _chunked(data: bytes | memoryview, block_size: int, pack: Packer) -> tuple[bytes, list[int]]:
    view = memoryview(data)
    step = max(1, min(block_size, _MAX_CHUNK))
    parts: list[bytes | memoryview] = []
    starts = []
    at = 0
    for first in range(0, len(view), step):
        chunk = view[first : first + step]
        packed = pack(chunk)
        original = len(packed) >= len(chunk)
        if original:
            packed = chunk
        starts.append(at)
        at += _HEADER + len(packed)
        parts.append((len(packed) << 1 | original).to_bytes(_HEADER, "little"))
        parts.append(packed)
    return b"".join(parts), starts
