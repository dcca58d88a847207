"""Small files that claim or unpack to gigabytes: refused before they take much memory."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc as native
from support.paths import REPO

from acidctl.base.errors import BadDataError, MemoryProblem, UsageProblem
from acidctl.orc import limits
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import ByteSource, native_errors
from acidctl.orc.codecs import COMPRESSION_NAMES, encode_stream
from acidctl.orc.limits import LIMITS, STRIPE_MEMORY, LimitError
from acidctl.orc.read.integer_runs import bound_of_runs, unsigned_runs
from acidctl.orc.read.reader import open_orc
from acidctl.orc.tail import read_tail
from acidctl.orc.types import OrcType, renumbered, to_proto
from acidctl.orc.varint import count_parts
from acidctl.storage.local.filesystem import LocalFileSystem

BLOCK = 1 << 18
DIRECT, DICTIONARY = pb.ColumnEncoding.DIRECT_V2, pb.ColumnEncoding.DICTIONARY_V2
Streams = Sequence[tuple[int, int, bytes]]


def repeated(value: int, count: int) -> bytes:
    """`count` times one value in RLE version 2; as signed integers they are half of it."""
    number = b""
    while value > 127:
        number += bytes((value & 127 | 128,))
        value >>= 7
    number += bytes((value, 0))
    full, rest = divmod(count, 512)
    last = bytes((0xC0 | (rest - 1) >> 8, (rest - 1) & 255)) + number if rest else b""
    return (bytes((0xC1, 0xFF)) + number) * full + last


def made(
    path: Path,
    columns: Sequence[OrcType],
    rows: int,
    streams: Streams = (),
    encodings: Sequence[tuple[int, int]] = (),
    *,
    more_footer: bytes = b"",
    statistics: bytes = b"",
    more_stripe_footer: bytes = b"",
) -> str:
    """A file of one stripe; encodings are (kind, size of the dictionary) of the columns from 1 on."""
    tree = renumbered(OrcType("struct", children=tuple(columns), names=tuple(f"c{i}" for i in range(len(columns)))))
    stripe = pb.StripeFooter(writerTimezone="UTC", columns=[pb.ColumnEncoding(kind=pb.ColumnEncoding.DIRECT)])
    for kind, size in encodings:
        stripe.columns.add(kind=kind, dictionarySize=size)  # type: ignore[arg-type]
    data = b""
    for stream, column, raw in streams:
        packed = encode_stream(raw, "zlib", BLOCK)[0]
        stripe.streams.add(kind=stream, column=column, length=len(packed))  # type: ignore[arg-type]
        data += packed
    end = encode_stream(stripe.SerializeToString() + more_stripe_footer, "zlib", BLOCK)[0]
    footer = pb.Footer(headerLength=3, types=to_proto(tree), numberOfRows=rows, rowIndexStride=0)
    footer.stripes.add(offset=3, indexLength=0, dataLength=len(data), footerLength=len(end), numberOfRows=rows)
    footer.contentLength = 3 + len(data) + len(end)
    raw_footer = encode_stream(footer.SerializeToString() + more_footer, "zlib", BLOCK)[0]
    raw_statistics = encode_stream(statistics, "zlib", BLOCK)[0] if statistics else b""
    postscript = pb.PostScript(
        footerLength=len(raw_footer),
        compression=COMPRESSION_NAMES.index("zlib"),
        compressionBlockSize=BLOCK,
        version=[0, 12],
        metadataLength=len(raw_statistics),
        magic="ORC",
    ).SerializeToString()
    ends = [raw_statistics, raw_footer, postscript, bytes((len(postscript),))]
    path.write_bytes(b"".join([b"ORC", data, end, *ends]))
    return str(path)


STRING, BIGINT = OrcType("string"), OrcType("bigint")
DATA, LENGTH, TEXTS = pb.Stream.DATA, pb.Stream.LENGTH, pb.Stream.DICTIONARY_DATA


def array(child: OrcType) -> OrcType:
    return OrcType("array", children=(child,))


BOMBS: dict[str, tuple[Any, ...]] = {
    "rows": ([BIGINT] * 8, 60_000_000, [(DATA, i, repeated(2, 60_000_000)) for i in range(1, 9)], [(DIRECT, 0)] * 8),
    "lengths": ([STRING], 100, [(DATA, 1, b"abc"), (LENGTH, 1, repeated(1 << 30, 100))], [(DIRECT, 0)]),
    "dictionary": (
        [STRING] * 3,
        1000,
        [
            part
            for i in (1, 2, 3)
            for part in (
                (DATA, i, repeated(0, 1000)),
                (TEXTS, i, b"a" * 1_000_000),
                (LENGTH, i, repeated(1_000_000, 1)),
            )
        ],
        [(DICTIONARY, 1)] * 3,
    ),
    "size of a dictionary": (
        [STRING],
        10,
        [(DATA, 1, repeated(0, 10)), (TEXTS, 1, b"a"), (LENGTH, 1, repeated(1, 1))],
        [(DICTIONARY, 4_000_000_000)],
    ),
    "list": ([array(BIGINT)], 1000, [(LENGTH, 1, repeated(1 << 21, 1000)), (DATA, 2, b"")], [(DIRECT, 0)] * 2),
    "lists in lists": (
        [array(array(BIGINT))],
        10,
        [(LENGTH, 1, repeated(1000, 10)), (LENGTH, 2, repeated(1 << 20, 10_000))],
        [(DIRECT, 0)] * 3,
    ),
    "map": (
        [OrcType("map", children=(STRING, BIGINT))],
        1000,
        [(LENGTH, 1, repeated(1 << 21, 1000)), (LENGTH, 2, repeated(0, 1000))],
        [(DIRECT, 0)] * 3,
    ),
}


SAID_BY_ARROW = {"rows", "dictionary"}


@pytest.mark.parametrize("name", sorted(BOMBS.keys() - SAID_BY_ARROW))
def test_stripe_that_unpacks_to_gigabytes_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path / "f", *BOMBS[name])
    assert Path(path).stat().st_size < 1_000_000
    monkeypatch.setattr(native, "ORCFile", None)  # nothing native may be asked
    with open_orc(LocalFileSystem(), path) as file:
        assert file.read_first(1) is None
        with pytest.raises(
            LimitError, match=r"stripe 0 of .*size of its .* is .* GiB: the file is damaged, made"
        ) as caught:
            file.read_stripe(0)
    assert "or larger than the limit max-stripe-memory (2 GiB)" in caught.value.why
    assert "ACIDCTL_LIMIT_STRIPE_MEMORY" in caught.value.hint


@pytest.mark.parametrize("limit", ["10M", "100M"])
@pytest.mark.parametrize("name", sorted(SAID_BY_ARROW))
def test_stripe_for_which_arrow_gets_no_memory_is_refused(
    tmp_path: Path, name: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns, rows, streams, encodings = BOMBS[name]
    if name == "rows":  # fewer than have room for their ids
        rows = 3_000_000 if limit == "100M" else 300_000
    path = made(tmp_path / "f", columns, rows, streams, encodings)
    monkeypatch.setenv(STRIPE_MEMORY.variable, limit)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    words = r"stripe 0 of .*(needs more memory than .* to be read|size of its rows is .*): the file is damaged"
    with open_orc(LocalFileSystem(), path) as file, pytest.raises(LimitError, match=words):
        file.read_stripe(0)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20


def test_a_dictionary_of_one_long_text_is_no_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = ["x" * 1_000_000, *("y" * (i % 7) for i in range(9999))]
    path = tmp_path / "f"
    native.write_table(pa.table({"a": values}), path, compression="zlib", dictionary_key_size_threshold=1.0)
    monkeypatch.setenv("ACIDCTL_LIMIT_STRIPE_MEMORY", "2M")
    with open_orc(LocalFileSystem(), str(path)) as file:
        assert file.read_stripe(0).column(0).to_pylist() == values
    monkeypatch.setenv("ACIDCTL_LIMIT_STRIPE_MEMORY", "1000K")
    with open_orc(LocalFileSystem(), str(path)) as file, pytest.raises(LimitError):
        file.read_stripe(0)


@pytest.mark.sampled
@pytest.mark.parametrize("field", [3, 4, 5, 7], ids=["stripes", "types", "metadata", "statistics"])
def test_footers_of_very_many_parts(tmp_path: Path, field: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "f", [BIGINT], 1, more_footer=bytes((field << 3 | 2, 0)) * 5_000_000)
    monkeypatch.setattr(pb.Footer, "FromString", None)  # an empty part takes a hundred bytes once it is parsed
    with pytest.raises(LimitError, match=r"number of the parts of its footer is .*max-columns"):
        read_tail(ByteSource(LocalFileSystem(), path))


@pytest.mark.slow
def test_a_footer_that_unpacks_to_a_gigabyte(tmp_path: Path) -> None:
    path = made(tmp_path / "f", [BIGINT], 1, more_footer=b"\x72\x80\x80\x80\x80\x04" + bytes(1 << 30))
    with pytest.raises(LimitError, match=r"decompressed size of its footer is too large: .*max-tail \(128 MiB\)"):
        read_tail(ByteSource(LocalFileSystem(), path))


def test_too_many_columns_or_stripes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "f", [BIGINT] * 20, 0)
    monkeypatch.setenv("ACIDCTL_LIMIT_COLUMNS", "20")
    with pytest.raises(LimitError, match=r"number of its columns is 21: .*max-columns \(20\)"):
        read_tail(ByteSource(LocalFileSystem(), path))
    monkeypatch.setenv("ACIDCTL_LIMIT_COLUMNS", "21")
    monkeypatch.setenv("ACIDCTL_LIMIT_STRIPES", "0")
    with pytest.raises(LimitError, match="number of its stripes is 1"):
        read_tail(ByteSource(LocalFileSystem(), path))


@pytest.mark.parametrize("types", [pa.int64(), pa.string()], ids=str)
def test_work_in_proportion_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, types: pa.DataType) -> None:
    """Each stripe is within limits, all of them together are not; one that is read again costs nothing more."""
    values = np.random.default_rng(1).integers(0, 2**62, 100_000)
    table = pa.table({"x": pa.array(values).cast(types)})
    with native.ORCWriter(tmp_path / "f", stripe_size=1, compression="zlib", batch_size=64) as writer:
        for _ in range(4):
            writer.write(table)
    monkeypatch.setenv("ACIDCTL_LIMIT_RATIO", "1")
    with open_orc(LocalFileSystem(), str(tmp_path / "f")) as orc:
        assert orc.stripe_count > 3
        monkeypatch.setattr(limits, "_ALWAYS", orc.stripe_count << 20)
        assert len({orc.read_stripe(0).num_rows for _ in range(30)}) == 1
        with pytest.raises(LimitError, match="max-ratio"):
            for stripe in range(orc.stripe_count):
                orc.read_stripe(stripe)
        with pytest.raises(LimitError, match="max-ratio"):
            orc.read_stripe(0)  # nothing more of such a file


def test_statistics_of_very_many_columns(tmp_path: Path) -> None:
    inner = b"\x0a\x00" * 100_000
    path = made(tmp_path / "f", [BIGINT], 1, statistics=b"\x0a\xc0\x9a\x0c" + inner)
    with pytest.raises(LimitError, match="stripe statistics is 100,000"):
        _ = read_tail(ByteSource(LocalFileSystem(), path)).metadata


def parts_of(message: Any) -> int:
    """Messages and texts in a message, counted by what was parsed."""
    count = 0
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        if field.type in (field.TYPE_MESSAGE, field.TYPE_STRING, field.TYPE_BYTES):
            count += len(values)
        if field.type == field.TYPE_MESSAGE:
            count += sum(map(parts_of, values))
    return count


def test_parts_of_a_message_are_counted_without_parsing(tmp_path: Path) -> None:
    path = tmp_path / "f"
    values = {"a": ["x", "y" * 300], "b": [[{"c": 1.5, "d": "z"}], []], "e": [(1 << 62), -1]}
    native.write_table(pa.table(values), path, compression="zlib")
    tail = read_tail(ByteSource(LocalFileSystem(), str(path)))
    for message in (tail.footer, tail.metadata, tail.stripe_footer(0)):
        raw = message.SerializeToString()
        count = parts_of(message)
        assert 0 < count == count_parts(message.DESCRIPTOR, raw, 1000)
        assert count_parts(message.DESCRIPTOR, raw, 2) == 3
        with pytest.raises(ValueError, match="a message is cut short"):
            count_parts(message.DESCRIPTOR, raw + b"\xff", 1000)
        with pytest.raises(ValueError, match="groups, which ORC does not have"):
            count_parts(message.DESCRIPTOR, raw + b"\x0b", 1000)
        assert count_parts(message.DESCRIPTOR, b"\x78\x01" * 4000, 1000) == 0
        assert count_parts(message.DESCRIPTOR, b"\x78\x01" * 4001, 1000) > 1000, "numbers take time, too"


@pytest.mark.sampled
@pytest.mark.parametrize("where", ["names", "statistics", "statistics of the file", "streams"])
def test_tail_of_very_many_nested_parts_is_refused(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 5_000_000
    field = {"names": 3, "streams": 1}.get(where, 1)
    many = bytes((field << 3 | 2, 0)) * count
    inside = lambda number: bytes((number << 3 | 2,)) + varint(len(many)) + many  # noqa: E731
    footer = inside(4) if where == "names" else b""
    statistics = inside(1) if where == "statistics" else b""
    if where == "statistics of the file":
        path = made(tmp_path / "f", [BIGINT], 1, more_footer=b"\x3a\x04\x22\x00\x22\x00" * (count // 2))
    elif where == "streams":
        path = made(tmp_path / "f", [BIGINT], 1, more_stripe_footer=many)
    else:
        path = made(tmp_path / "f", [BIGINT], 1, more_footer=footer, statistics=statistics)
    message = {"statistics": pb.Metadata, "streams": pb.StripeFooter}.get(where, pb.Footer)
    monkeypatch.setattr(message, "FromString", None)
    with pytest.raises(LimitError, match="number of the parts of its"):
        tail = read_tail(ByteSource(LocalFileSystem(), path))
        _ = tail.metadata if where == "statistics" else tail.stripe_footer(0)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def test_limits_are_read_with_their_units(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, value in (("8G", 8 << 30), ("5", 5), ("3MiB", 3 << 20), ("2k", 2048)):
        monkeypatch.setenv(STRIPE_MEMORY.variable, text)
        assert STRIPE_MEMORY.value == value
    monkeypatch.setenv(STRIPE_MEMORY.variable, "much")
    with pytest.raises(UsageProblem, match="ACIDCTL_LIMIT_STRIPE_MEMORY is 'much'"):
        _ = STRIPE_MEMORY.value


def test_the_page_of_limits_has_them_all() -> None:
    text = (REPO / "docs" / "reference" / "limits.md").read_text("utf-8")
    for limit in LIMITS:
        assert f"| `{limit.name}` | {limit.shown(limit.default)} | `{limit.variable}` |" in text


@pytest.mark.parametrize("version", ["0.11", "0.12"])
@pytest.mark.parametrize("shape", ["short", "wide", "outliers", "same", "rising", "falling"])
def test_lengths_as_a_writer_wrote_them(tmp_path: Path, version: str, shape: str) -> None:
    rng = np.random.default_rng(7)
    lengths = {
        "short": rng.integers(0, 9, 5000),
        "wide": rng.integers(0, 3000, 2000),
        "outliers": np.where(rng.random(5000) < 0.02, 5000, rng.integers(3, 9, 5000)),
        "same": np.full(5000, 4),
        "rising": np.arange(2000),
        "falling": np.sort(rng.integers(0, 5000, 2000))[::-1],
    }[shape]
    path = tmp_path / "f"
    table = pa.table({"a": ["x" * int(n) for n in lengths]})
    native.write_table(table, path, file_version=version, compression="uncompressed", dictionary_key_size_threshold=0)
    tail = read_tail(ByteSource(LocalFileSystem(), str(path)))
    footer, at = tail.stripe_footer(0), tail.stripes[0].offset
    for stream in footer.streams:
        if (stream.column, stream.kind) == (1, LENGTH):
            raw = tail.source.read(at, stream.length)
        at += stream.length
    runs = list(unsigned_runs(raw, version=1 if version == "0.11" else 2))
    found = np.concatenate([np.repeat(values, times) for values, times in runs])
    assert found.tolist() == lengths.tolist()
    if version == "0.12":
        total, longest = bound_of_runs(raw, len(lengths))
        assert lengths.sum() <= total < 1 << 30, "a larger one would have all runs read"
        assert longest >= lengths.max()


@pytest.mark.parametrize("alike", [1, 2, 3, 100])
@pytest.mark.parametrize("rest", [b"", b"\x02\x09", b"\xc0\x04\x05\x02", b"\xc0"])
@pytest.mark.parametrize("count", [1, 5, 6, 12, 500, 10**6, float("inf")])
def test_runs_that_are_alike_are_counted_as_one_by_one(alike: int, rest: bytes, count: float) -> None:
    runs, zeros = b"\x02\x07" * alike + rest, b"\x02\x00"
    assert bound_of_runs(runs, count) == bound_of_runs(zeros + runs, count + 5)


def test_no_memory_is_no_damage() -> None:
    for error in (
        MemoryError("x"),
        pa.ArrowMemoryError("malloc of size 5 failed"),
        OSError("Unknown error: std::bad_alloc"),
    ):
        with (
            pytest.raises(MemoryProblem, match="not enough memory to read stripe 1 of f") as caught,
            native_errors("f", 1),
        ):
            raise error
        assert not isinstance(caught.value, BadDataError)
