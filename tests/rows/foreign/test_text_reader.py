"""Text that unpacks to gigabytes, in one line or in many."""

from __future__ import annotations

import bz2
import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as native
from support.files.acid_files import write_orc

import acidctl
from acidctl.base.errors import BadDataError
from acidctl.orc import limits
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.limits import RATIO, STRIPE_MEMORY, DecodingBudget, LimitError
from acidctl.rows.foreign.format import open_foreign, read_any_tail
from acidctl.storage.local.filesystem import LocalFileSystem

PACKED: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "txt": bytes}


def lines_of(path: Path) -> list[str]:
    source = ByteSource(LocalFileSystem(), str(path))
    found = read_any_tail(source)
    reader = open_foreign(source, found.format, found.tail)
    return [line for i in range(reader.stripe_count) for line in reader.read_stripe(i).column(0).to_pylist()]


@pytest.mark.parametrize("extension", PACKED)
def test_one_endless_line_is_refused(tmp_path: Path, extension: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"a.{extension}"
    path.write_bytes(PACKED[extension](b"a\n" + b"x" * (40 << 20) + b"\nb"))
    monkeypatch.setenv(STRIPE_MEMORY.variable, "100M")
    with pytest.raises(LimitError, match=r"memory that one of its lines takes is .* MiB: the file is damaged, made"):
        lines_of(path)
    monkeypatch.setenv(STRIPE_MEMORY.variable, "300M")
    assert [len(line) for line in lines_of(path)] == [1, 40 << 20, 1]


@pytest.mark.slow
def test_text_that_unpacks_to_much_more_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_ALWAYS", 1 << 20)
    path = tmp_path / "a.bz2"
    path.write_bytes(bz2.compress(b"some line\n" * 2_000_000))
    with pytest.raises(LimitError, match=r"that its .* unpack to, for each of them, is 1\d,\d\d\d: .*max-ratio"):
        lines_of(path)
    monkeypatch.setenv(RATIO.variable, "100M")
    assert len(lines_of(path)) == 2_000_000


@pytest.mark.parametrize("codec", ["snappy", "lz4"])
def test_frames_of_hadoop_are_refused_by_name(tmp_path: Path, codec: str) -> None:
    path = tmp_path / f"a.{codec}"
    path.write_bytes(struct.pack(">II", 1000, 4) + b"text")
    with pytest.raises(BadDataError, match=codec):
        lines_of(path)


@pytest.mark.parametrize("text", [b"a\r\nb\rc\n\rd", b"\r\n\r\n", b"\n", b"", b"\r", b"a", b"\r\r\n\n\r"])
def test_lines_end_where_python_ends_them(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    if text:
        assert lines_of(path) == text.decode().splitlines()
    else:
        with pytest.raises(BadDataError):
            lines_of(path)


@pytest.mark.parametrize("name", ["000000_0", "000000_0.gz"])
def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path, name: str) -> None:
    """Of the first only: Hadoop leaves one out at the beginning of a file."""
    text = b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert lines_of(path) == ["a", "\ufeffb"]


def test_files_of_very_many_stripes_are_counted_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    native.write_table(pa.table({"a": range(50)}), path, row_group_size=1)
    monkeypatch.setattr(limits, "_ALWAYS", 40 << 20)
    source = ByteSource(LocalFileSystem(), str(path))
    found = read_any_tail(source)
    reader = open_foreign(source, found.format, found.tail)
    monkeypatch.setenv(RATIO.variable, "1")
    for i in range(39):
        for _ in range(3):
            reader.read_stripe(i)
    for i in (40, 0):
        with pytest.raises(LimitError, match="unpack to, for each of them"):
            reader.read_stripe(i)


def test_work_on_a_part_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_ALWAYS", 1000)
    work = DecodingBudget("f", 1)
    for _ in range(100):
        work.add(0, 900)
    work.add(1, 9_000)
    with pytest.raises(LimitError, match=r"f: number of bytes that its 1 bytes unpack to, .* is 10,900"):
        work.add(2, 1000)


def test_text_that_is_not_named_like_a_data_file_is_no_row_without_a_metastore(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("hello\n")
    with pytest.raises(BadDataError, match="not named like a data file"):
        acidctl.open_table(tmp_path).to_table()
    (tmp_path / "README.md").rename(tmp_path / "000000_0")
    assert acidctl.open_table(tmp_path).to_table().to_pylist() == [{"line": "hello"}]


@pytest.mark.parametrize("places", [("000000_0", "000001_0"), ("day=1/000000_0", "day=2/000000_0")])
def test_without_a_metastore_text_and_other_files_are_not_one_table(tmp_path: Path, places: tuple[str, str]) -> None:
    write_orc(tmp_path / places[0], "struct<a:int>", [(1,)])
    (tmp_path / places[1]).parent.mkdir(exist_ok=True)
    (tmp_path / places[1]).write_text("hello\n")
    with pytest.raises(BadDataError, match=r"is text, and .* is ORC"):
        acidctl.open_table(tmp_path).scan()
