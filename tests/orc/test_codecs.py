from __future__ import annotations

import zlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acidctl.base.errors import BadDataError
from acidctl.orc.codecs import ChunkError, decompress, encode_original

BLOCK = 65536


def chunk(data: bytes, original: bool = False) -> bytes:
    return (len(data) << 1 | original).to_bytes(3, "little") + data


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(data) + packer.flush()


def packed(kind: str, data: bytes) -> bytes:
    if kind == "zlib":
        return deflated(data)
    out: bytes = pa.Codec({"lz4": "lz4_raw"}.get(kind, kind)).compress(data, asbytes=True)
    return out


CODECS = ["zlib", "snappy", "lz4", "zstd", "brotli"]


@pytest.mark.parametrize("kind", CODECS)
@settings(max_examples=25, deadline=None)
@given(st.lists(st.binary(max_size=300).map(lambda piece: piece * 40), max_size=4))
def test_chunks_packed_or_not_come_back(kind: str, pieces: list[bytes]) -> None:
    stream = b"".join(chunk(packed(kind, piece)) + chunk(piece[:100], original=True) for piece in pieces)
    assert decompress(stream, kind, BLOCK) == b"".join(piece + piece[:100] for piece in pieces)


@given(st.binary(max_size=1000), st.integers(1, 300))
def test_stored_chunks_need_no_codec(data: bytes, block: int) -> None:
    for kind in ("zlib", "lzo", "zstd"):
        assert decompress(encode_original(data, kind, block), kind, block) == data
    assert encode_original(data, "none", block) == data


@pytest.mark.parametrize("kind", CODECS)
def test_chunk_that_unpacks_beyond_the_block_is_refused(kind: str) -> None:
    bomb = chunk(packed(kind, bytes(20 * BLOCK)))
    with pytest.raises(ChunkError):
        decompress(bomb, kind, BLOCK)
    fair = chunk(packed(kind, bytes(BLOCK)))
    assert len(decompress(fair * 4, kind, BLOCK)) == 4 * BLOCK
    with pytest.raises(ChunkError):
        decompress(fair * 4, kind, BLOCK, limit=3 * BLOCK)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("zlib", b"\x01"),
        ("zlib", chunk(b"abc")[:-1]),
        ("zlib", chunk(b"\xff\xff\xff")),
        ("zlib", chunk(deflated(b"x" * 1000)[:-3])),
        ("snappy", chunk(b"\xff\xff\xff\xff\xff\xff")),
        ("snappy", chunk(b"\xff\xff\xff\xff\x0f")),
        ("snappy", chunk(b"\x80")),
        ("lz4", chunk(b"\xff" * 50)),
        ("lz4", chunk(b"\xf0")),
        ("lz4", chunk(b"\x1fa\x00\x00\x00")),
        ("zstd", chunk(b"\x28\xb5\x2f\xfd")),
        ("zstd", chunk(b"no zstd at all")),
        ("brotli", chunk(b"\xff\xff\xff")),
    ],
)
def test_damaged_chunk_is_refused(kind: str, data: bytes) -> None:
    with pytest.raises(ChunkError):
        decompress(data, kind, BLOCK)


def test_lzo_is_refused_by_name() -> None:
    with pytest.raises(BadDataError, match="lzo"):
        decompress(chunk(b"abc"), "lzo", BLOCK)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(CODECS), st.binary(max_size=200))
def test_noise_is_a_chunk_error_or_bytes(kind: str, noise: bytes) -> None:
    outcome: Any
    try:
        outcome = decompress(chunk(noise), kind, BLOCK)
    except ChunkError as error:
        outcome = error
    assert isinstance(outcome, bytes | ChunkError)
