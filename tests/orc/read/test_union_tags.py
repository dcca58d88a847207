"""A union's tag that names no alternative ends ORC's reader and the process with it: it is found first."""

from __future__ import annotations

import io
from typing import Any

import pyorc
import pytest
from support.files.orc_bytes import Remote, tail_of

from acidctl.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.read.reader import open_orc
from acidctl.orc.read.union_tags import highest_byte
from acidctl.orc.tail import placed_streams

NESTED = "struct<a:int,l:array<struct<u:uniontype<int,string>>>,m:map<string,uniontype<int,string>>>"
ROWS = [(i, [(i,), (f"t{i}",)], {"k": i if i % 2 else "v"}) for i in range(5)]


def written(schema: str, rows: list[Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    with pyorc.Writer(sink, schema, **options) as writer:
        writer.writerows(rows)
    return sink.getvalue()


def with_tags(data: bytes, column: int, tags: bytes) -> bytes:
    """The uncompressed file with other tags of a union, as literals; of no more bytes than there were."""
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
