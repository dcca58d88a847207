from __future__ import annotations

import io
import os
import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import orc
from support.files.orc_bytes import ACID_SCHEMA, Remote, acid_rows, local_tail, retailed, tail_of, written

from acidctl.base.errors import AcidctlError, BadDataError, NotFoundError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import FIRST_READ, RecordKey, Tail, read_tail
from acidctl.orc.tail_document import tail_document
from acidctl.storage.local.filesystem import LocalFileSystem

METADATA = {
    "hive.acid.key.index": b"7,536870912,99;",
    "hive.acid.stats": b"100,0,0",
    "hive.acid.version": b"2",
    "other": b"\xff\x00",
}


@pytest.fixture(scope="module")
def acid_file() -> bytes:
    return written(ACID_SCHEMA, acid_rows(100))


def with_metadata(data: bytes, values: dict[str, bytes]) -> Tail:
    def change(footer: pb.Footer, postscript: pb.PostScript) -> None:
        for name, value in values.items():
            footer.metadata.add(name=name, value=value)

    return tail_of(retailed(data, change))


def with_acid(data: bytes, index: bytes = b"", stats: bytes = b"", version: bytes = b"") -> Tail:
    values = {"hive.acid.key.index": index, "hive.acid.stats": stats, "hive.acid.version": version}
    return with_metadata(data, values)


def test_acid_metadata_is_decoded(acid_file: bytes) -> None:
    tail = with_metadata(acid_file, METADATA)
    assert tail.is_acid
    assert tail.key_index() == [RecordKey(7, 536870912, 99)]
    assert tail.acid_stats() == (100, 0, 0)
    assert tail.acid_version == 2
    assert tail.user_metadata == METADATA


def test_missing_acid_metadata_is_none(acid_file: bytes) -> None:
    tail = tail_of(acid_file)
    assert (tail.key_index(), tail.acid_stats(), tail.acid_version) == (None, None, None)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", []),
        (b"1,2,3;", [RecordKey(1, 2, 3)]),
        (b"1,2,3", [RecordKey(1, 2, 3)]),
        (b"1,2,3;;4,5,6;", [RecordKey(1, 2, 3), None, RecordKey(4, 5, 6)]),
        (b";1,2,3;", [None, RecordKey(1, 2, 3)]),
        (b"-9223372036854775808,0,9223372036854775807;", [RecordKey(-(1 << 63), 0, (1 << 63) - 1)]),
    ],
)
def test_key_index_is_read_in_every_form(acid_file: bytes, raw: bytes, expected: list[RecordKey | None]) -> None:
    assert with_acid(acid_file, raw, b"1,2,3", b"2").key_index() == expected


@pytest.mark.parametrize(
    "raw", [b"1,2;", b"1,2,3,4;", b"a,b,c;", b"1_0,2,3;", b" 1,2,3;", b"1,2,\xff;", b"1" * 30 + b",2,3;"]
)
def test_malformed_key_index_is_refused(acid_file: bytes, raw: bytes) -> None:
    with pytest.raises(BadDataError, match=r"key\.index"):
        with_acid(acid_file, raw).key_index()


@pytest.mark.parametrize("raw", [b"", b"1,2", b"1,2,-3", b"1,2,3,", b"x"])
def test_malformed_stats_and_version_are_refused(acid_file: bytes, raw: bytes) -> None:
    tail = with_acid(acid_file, b"", raw, raw)
    with pytest.raises(BadDataError, match="stats"):
        tail.acid_stats()
    with pytest.raises(BadDataError, match="version"):
        _ = tail.acid_version


def test_of_equal_keys_the_first_counts(acid_file: bytes) -> None:
    def change(footer: pb.Footer, postscript: pb.PostScript) -> None:
        footer.metadata.add(name="k", value=b"first")
        footer.metadata.add(name="k", value=b"second")

    assert tail_of(retailed(acid_file, change)).user_metadata["k"] == b"first"


def test_one_read_for_an_ordinary_tail(acid_file: bytes) -> None:
    remote = Remote(file=b"ORC" + b"\0" * 100_000 + acid_file)
    tail = read_tail(ByteSource(remote, "file", len(remote.files["file"])))
    assert tail.rows == 100
    assert len(remote.reads) == 1


def test_a_long_tail_takes_one_more_read(acid_file: bytes) -> None:
    def change(footer: pb.Footer, postscript: pb.PostScript) -> None:
        footer.metadata.add(name="long", value=random.Random(1).randbytes(3 * FIRST_READ))

    remote = Remote(file=retailed(acid_file, change))
    tail = read_tail(ByteSource(remote, "file"))
    assert len(tail.user_metadata["long"]) == 3 * FIRST_READ
    assert len(remote.reads) == 2


def test_stripe_statistics_of_a_long_tail_are_read_when_asked_for() -> None:
    out = io.BytesIO()
    table = pa.table({f"c{i}": pa.array(range(20_000), pa.int64()) for i in range(60)})
    orc.write_table(table, out, stripe_size=1, batch_size=500)
    remote = Remote(file=out.getvalue())
    tail = read_tail(ByteSource(remote, "file"))
    assert tail.postscript.metadataLength > FIRST_READ
    before = len(remote.reads)
    statistics = tail.stripe_statistics(len(tail.stripes) - 1)
    assert statistics is not None
    assert statistics[1].intStatistics.maximum == 19_999
    assert tail.stripe_statistics(len(tail.stripes)) is None
    assert len(remote.reads) == before + 1


def test_what_lies_behind_the_logical_length_is_invisible(acid_file: bytes) -> None:
    tail = tail_of(acid_file + b"torn write", len(acid_file))
    assert tail.rows == 100
    with pytest.raises(BadDataError):
        tail_of(acid_file + b"torn write")
    with pytest.raises(BadDataError, match="shorter"):
        tail_of(acid_file, len(acid_file) + 5)


@pytest.mark.parametrize("data", [b"", b"O", b"ORC", b"ORC\0", b"hello, world\n" * 10, b"PAR1" + b"\0" * 50 + b"PAR1"])
def test_files_that_are_not_orc(data: bytes) -> None:
    with pytest.raises(BadDataError, match=r"^file ") as caught:
        tail_of(data)
    assert caught.value.why
    assert caught.value.hint


def test_a_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="is a directory"):
        local_tail(tmp_path)


def _claim(**fields: int) -> Any:
    def change(footer: pb.Footer, postscript: pb.PostScript) -> None:
        for name, value in fields.items():
            setattr(footer.stripes[0], name, value)

    return change


@pytest.mark.parametrize(
    "change",
    [
        _claim(offset=1 << 60),
        _claim(dataLength=1 << 40),
        _claim(footerLength=(1 << 64) - 1),
        lambda footer, postscript: setattr(postscript, "metadataLength", 1 << 50),
        lambda footer, postscript: setattr(postscript, "stripeStatisticsLength", 1 << 50),
        lambda footer, postscript: setattr(postscript, "magic", "PAR"),
        lambda footer, postscript: setattr(postscript, "compression", 99),
    ],
)
def test_lengths_are_checked_before_memory_is_taken(acid_file: bytes, change: Any) -> None:
    with pytest.raises(BadDataError, match="file"):
        tail_of(retailed(acid_file, change))


def test_unknown_versions_are_noted(acid_file: bytes) -> None:
    def change(footer: pb.Footer, postscript: pb.PostScript) -> None:
        postscript.version[:] = [7, 1]
        footer.writer = 77
        footer.calendar = 9
        footer.numberOfRows = 5

    tail = tail_of(retailed(acid_file, change))
    assert len(tail.notes) == 4
    assert tail.rows == 100
    assert tail.writer == "unknown writer 77"
    assert tail.calendar is None


def test_text_that_is_no_utf8_does_no_harm(acid_file: bytes) -> None:
    def change(footer: pb.Footer, postscript: pb.PostScript) -> None:
        footer.metadata.add(name="name", value=b"1")
        footer.softwareVersion = "version"

    data = retailed(acid_file, change)
    tail = tail_of(data)
    raw = (
        tail.footer.SerializeToString()
        .replace(b"\x0a\x04name", b"\x0a\x04\xff\xfe\xff\xfe")
        .replace(b"version", b"vers\xffon")
    )

    def broken(footer: pb.Footer, postscript: pb.PostScript) -> None:
        footer.ParseFromString(raw)

    tail = tail_of(retailed(data, broken))
    assert tail.software_version == "vers\ufffdon"
    assert list(tail.user_metadata) == ["\ufffd" * 4]


def test_tails_of_the_corpus_are_as_its_manifest_says(shared_data: Path) -> None:
    corpus = shared_data / "orc-corpus"
    lines = (corpus / "MANIFEST.tsv").read_text().splitlines()
    names = lines[0].split("\t")
    checked = 0
    for line in lines[1:]:
        want = dict(zip(names, line.split("\t"), strict=False))
        if not want.get("rows") or "testWithoutCompressionBlockSize" in want["file"]:
            continue  # zero.orc; and a file made by hand whose counts contradict each other
        tail = local_tail(corpus / want["file"])
        assert tail.rows == int(want["rows"]), want["file"]
        assert len(tail.stripes) == int(want["stripes"]), want["file"]
        assert tail.compression == want["compression"], want["file"]
        assert ".".join(map(str, tail.version)) == want["format"], want["file"]
        assert str(tail.writer_version) == want["writer_version"], want["file"]
        assert tail.encrypted == ("encrypted" in want["file"])
        checked += 1
    assert checked > 30


def test_tail_of_a_file_of_hive_is_read_with_its_acid_metadata(shared_data: Path) -> None:
    tail = local_tail(shared_data / "hive-written" / "acid5k" / "acid5k.orc")
    assert tail.is_acid
    assert tail.key_index() == [RecordKey(12, 536870912, 4999)]
    assert tail.acid_stats() == (5000, 0, 0)
    assert tail.acid_version == 2


def test_tails_of_every_codec_are_read() -> None:
    rows = [(i, f"text {i}") for i in range(2000)]
    for kind in ("NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD"):
        data = written(
            "struct<a_rather_long_name_of_a_column:int,a_rather_long_name_of_another:string>",
            rows,
            compression=getattr(pyorc.CompressionKind, kind),
        )
        tail = tail_of(data)
        assert tail.compression == kind.lower()
        assert tail.rows == 2000
        assert len(tail.metadata.stripeStats) == 1
        assert len(tail.stripe_footer(0).columns) == 3


BASE = written(
    ACID_SCHEMA.replace("b:string", "b:string,c:timestamp,d:decimal(10,2),e:array<char(5)>"),
    [(0, 7, 536870912, i, 7, (i, f"row {i}", (i, 5), None, ["x"])) for i in range(10)],
)
BASE_END = tail_of(BASE).content_end


def probe(data: bytes) -> None:
    """Look at everything in a tail; only acidctl's own errors may come out."""
    try:
        tail = tail_of(data)
        tail_document(tail, with_streams=True)
        _ = tail.metadata, tail.type_tree, tail.software_version
    except AcidctlError as error:
        assert error.what


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_flipped_bits_in_a_tail_are_findings(data: st.DataObject) -> None:
    broken = bytearray(BASE)
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(BASE_END, len(BASE) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    probe(bytes(broken))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(BASE) - 1), st.binary(max_size=8))
@example(0, b"")
def test_truncated_file_is_bad_data_or_whole(length: int, rest: bytes) -> None:
    probe(BASE[:length] + rest)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damage_below_an_uncompressed_footer(data: st.DataObject) -> None:
    """With no codec in between, damage reaches the messages themselves."""

    def change(footer: pb.Footer, postscript: pb.PostScript) -> None:
        raw = bytearray(footer.SerializeToString())
        for _ in range(data.draw(st.integers(1, 3))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        try:
            footer.ParseFromString(bytes(raw))
        except Exception:  # noqa: BLE001 - what protobuf itself refuses is for the other tests
            footer.ParseFromString(b"")

    probe(retailed(BASE, change))


def test_every_truncation_of_a_hive_file(shared_data: Path) -> None:
    whole = (shared_data / "hive-written" / "acid5k" / "acid5k.orc").read_bytes()
    for length in range(len(whole) - 400, len(whole)):
        probe(whole[:length])


def test_a_tail_survives_pickling(acid_file: bytes, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(acid_file)
    tail = read_tail(ByteSource(LocalFileSystem(), str(path)))
    again = pickle.loads(pickle.dumps(tail))
    assert again.rows == 100
    assert again.stripe_footer(0) == tail.stripe_footer(0)


def test_a_pipe_is_called_a_pipe_and_not_a_short_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    with pytest.raises(BadDataError, match="a pipe"):
        read_tail(ByteSource(LocalFileSystem(), str(tmp_path / "p")))
