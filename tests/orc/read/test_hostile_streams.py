"""Streams that would crash ORC's reader, or keep it busy for ever, are refused before it reads them."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import pyorc
import pytest
from support.files.orc_bytes import Remote, retailed, tail_of

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.read.hostile_streams import highest_byte, highest_scale
from acidctl.orc.read.reader import open_orc
from acidctl.orc.tail import placed_streams
from acidctl.orc.varint import encoded

NESTED = "struct<a:int,l:array<struct<u:uniontype<int,string>>>,m:map<string,uniontype<int,string>>>"
ROWS = [(i, [(i,), (f"t{i}",)], {"k": i if i % 2 else "v"}) for i in range(5)]


def written(schema: str, rows: list[Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    with pyorc.Writer(sink, schema, **options) as writer:
        writer.writerows(rows)
    return sink.getvalue()


def with_tags(data: bytes, column: int, tags: bytes) -> bytes:
    """Return the uncompressed file with other tags of a union, as literals that take no more bytes than before."""
    tail = tail_of(data)
    for stream, at in placed_streams(tail.stripe_footer(0), tail.stripes[0].offset):
        if stream.column == column and stream.kind == pb.Stream.DATA:
            raw = bytes([256 - len(tags)]) + tags
            assert len(raw) <= stream.length
            return data[:at] + raw + data[at + len(raw) :]
    raise AssertionError(column)


@pytest.mark.parametrize("tag", [2, 6, 127, 128, 255])
@pytest.mark.parametrize("column", ["l", "m"])
def test_a_tag_of_no_alternative_is_named(column: str, tag: int) -> None:
    data = written(NESTED, ROWS, compression=pyorc.CompressionKind.NONE)
    place = {"l": 4, "m": 9}[column]
    with open_orc(Remote(f=with_tags(data, place, bytes([0, 1, 0, tag]))), "f") as file:
        for columns in (None, [column]):
            with pytest.raises(BadDataError, match=f"has the tag {tag}, and 2 alternatives"):
                file.read_stripe(0, columns)
        assert file.read_stripe(0, ["a"]).column(0).to_pylist() == [0, 1, 2, 3, 4]


def test_tags_that_cannot_be_decompressed_are_named() -> None:
    data = written("struct<u:uniontype<int,string>>", [(i,) for i in range(9)], compression=pyorc.CompressionKind.ZLIB)
    tail = tail_of(data)
    ((_, at),) = [
        (stream, at)
        for stream, at in placed_streams(tail.stripe_footer(0), tail.stripes[0].offset)
        if stream.column == 1 and stream.kind == pb.Stream.DATA
    ]
    with (
        open_orc(Remote(f=data[:at] + b"\xff\xff\xff" + data[at + 3 :]), "f") as file,
        pytest.raises(BadDataError, match="tags of a union"),
    ):
        file.read_stripe(0)


@pytest.mark.parametrize("compression", list(pyorc.CompressionKind.__members__.values())[:3])
def test_sound_unions_are_read(compression: Any) -> None:
    data = written(NESTED, ROWS, compression=compression)
    with open_orc(Remote(f=data), "f") as file:
        assert file.read_stripe(0, ["a"]).num_rows == file.read_stripe(0).num_rows == 5


@pytest.mark.parametrize(
    ("encoded", "highest"),
    [(b"", 0), (b"\x7f\x05", 5), (b"\xfd\x01\x02\x09\x00\x03", 9), (b"\x00", 0), (b"\x80\x07", 7), (b"\xff\x80", 128)],
)
def test_bytes_in_runs(encoded: bytes, highest: int) -> None:
    assert highest_byte(encoded) == highest


SCALES = {
    "short repeat": (1, b"\x38" + b"\x7f" * 8),
    "delta": (1, b"\xc0\x04" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" + b"\x00"),
    "direct": (1, b"\x7e\x04" + b"\x7f\xff\xff\xff\xff\xff\xff\xff" * 5),
    "first version": (0, b"\x02\x00" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"),
}


def with_streams(data: bytes, changed: dict[tuple[int, int], bytes], encoding: dict[int, int] | None = None) -> bytes:
    """Return an uncompressed file of one stripe with streams (by column and kind) and column encodings replaced."""
    tail, body = tail_of(data), b"ORC"
    stripe, footer = tail.stripes[0], tail.stripe_footer(0)
    for stream, at in placed_streams(footer, stripe.offset):
        raw = changed.get((stream.column, stream.kind), data[at : at + stream.length])
        body, stream.length = body + raw, len(raw)
    for column, kind in (encoding or {}).items():
        footer.columns[column].kind = kind  # type: ignore[assignment]
    end = footer.SerializeToString()

    def change(of_file: Any, _: Any) -> None:
        of_file.stripes[0].footerLength = len(end)
        of_file.stripes[0].dataLength = len(body) - 3 - stripe.indexLength

    rest = data[stripe.offset + stripe.indexLength + stripe.dataLength + stripe.footerLength :]
    return retailed(body + end + rest, change)


def with_scales(scales: bytes, version: int, rows: int) -> bytes:
    """Return a file of decimals whose scales are these bytes."""
    values = [(i, Decimal(i * 7 ** (i % 40)).scaleb(-2)) for i in range(rows)]
    data = written("struct<a:int,d:decimal(38,2)>", values, compression=pyorc.CompressionKind.NONE)
    kind = pb.ColumnEncoding.DIRECT_V2 if version else pb.ColumnEncoding.DIRECT
    return with_streams(data, {(2, pb.Stream.SECONDARY): scales}, {2: kind})


@pytest.mark.parametrize("how", SCALES)
def test_a_scale_that_takes_years_is_named(how: str) -> None:
    version, scales = SCALES[how]
    with open_orc(Remote(f=with_scales(scales, version, 5)), "f") as file:
        with pytest.raises(BadDataError, match="a decimal, column 2, has a scale of up to"):
            file.read_stripe(0)
        assert file.read_stripe(0, ["a"]).column(0).to_pylist() == [0, 1, 2, 3, 4]
    with open_orc(Remote(f=with_scales(scales, version, 50)), "f") as file:
        assert file.read_first(1) is None


@pytest.mark.parametrize(
    ("data", "version", "highest"),
    [
        (b"", 2, 0),
        (b"\x02\x14", 2, 10),
        (b"\xc0\x04\x4c\x00", 2, 38),
        (b"\x02\x00\x4c", 1, 38),
        (b"\xfd\x4c\x02\x04", 1, 38),
    ],
)
def test_scales_of_sound_files(data: bytes, version: int, highest: float) -> None:
    assert highest_scale(data, version) == highest


@pytest.mark.parametrize("size", [(1 << 23) + 1, 1 << 40, 1 << 62])
def test_a_block_size_that_no_memory_holds_is_named(size: int) -> None:
    """The library allocates memory for a block of each stream, and dies if there is not enough."""
    data = written("struct<a:int>", [(1,)], compression=pyorc.CompressionKind.ZLIB)
    evil = retailed(data, lambda _, postscript: setattr(postscript, "compressionBlockSize", size))
    with pytest.raises(BadDataError, match="compression blocks"):
        open_orc(Remote(f=evil), "f")


@pytest.mark.parametrize("schema", ["struct<a:string>", "struct<a:array<tinyint>>", "struct<a:map<tinyint,tinyint>>"])
@pytest.mark.parametrize("step", [-1, -1000, -4_165_161])
def test_lengths_below_0_are_too_large(schema: str, step: int) -> None:
    """Their sum is small, so the library would use it as an offset in front of its buffer."""
    value = {"string": "x", "array": [1], "map": {1: 1}}[schema[9:].partition(">")[0].partition("<")[0]]
    data = written(schema, [(value,)] * 512, compression=pyorc.CompressionKind.NONE)
    tail = tail_of(data)
    footer = tail.stripe_footer(0)
    lengths = b"\xc1\xff\x00" + encoded(-2 * step - 1)
    evil = with_streams(data, {(1, pb.Stream.LENGTH): lengths})
    assert footer.columns[1].kind == pb.ColumnEncoding.DIRECT_V2
    with open_orc(Remote(f=evil), "f") as file, pytest.raises(BadDataError, match="size of its rows"):
        file.read_stripe(0)
