"""The reader over ranges: what it returns, and how often it asks."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.base.errors import StorageError
from acidctl.storage.ranged import RangedReader, clamp, pieces

DATA = bytes(index % 251 for index in range(1000))


class Counting:
    def __init__(self, data: bytes = DATA) -> None:
        self.data = data
        self.asked: list[tuple[int, int]] = []

    def __call__(self, start: int, end: int) -> bytes:
        assert 0 <= start < end <= len(self.data)
        self.asked.append((start, end))
        return self.data[start:end]


def reader(fetch: Counting, read_ahead: int = 100) -> RangedReader:
    return RangedReader(fetch, len(fetch.data), "file", read_ahead)


@given(
    st.binary(max_size=40),
    st.integers(1, 50),
    st.lists(st.tuples(st.sampled_from(["read", "seek0", "seek1", "seek2", "readinto"]), st.integers(-50, 50))),
)
def test_behaves_as_bytes_in_memory_do(data: bytes, read_ahead: int, steps: list[tuple[str, int]]) -> None:
    ranged, model = reader(Counting(data), read_ahead), io.BytesIO(data)
    for step, number in steps:
        if step == "read":
            assert ranged.read(number) == model.read(number)
        elif step == "readinto":
            one, two = bytearray(abs(number)), bytearray(abs(number))
            assert ranged.readinto(one) == model.readinto(two)
            assert one == two
        else:
            whence = int(step[-1])
            base = (0, model.tell(), len(data))[whence]
            if base + number < 0:
                with pytest.raises(OSError, match="before the start"):
                    ranged.seek(number, whence)
            else:
                assert ranged.seek(number, whence) == model.seek(base + number)
        assert ranged.tell() == model.tell()


@given(st.integers(-60, 60), st.none() | st.integers(0, 60), st.integers(0, 50))
def test_clamp_is_a_slice(offset: int, length: int | None, size: int) -> None:
    start, end = clamp(offset, length, size)
    expected = range(size)[offset:]
    expected = expected if length is None else expected[:length]
    assert list(range(size)[start:end]) == list(expected)


def test_small_reads_share_a_request() -> None:
    fetch = Counting()
    source = reader(fetch)
    assert b"".join(source.read(10) for _ in range(10)) == DATA[:100]
    source.seek(50)
    source.read(50)
    assert fetch.asked == [(0, 100)]


def test_big_reads_fetch_exactly_what_is_missing() -> None:
    fetch = Counting()
    source = reader(fetch)
    source.seek(300)
    source.read(500)
    source.seek(10)
    source.read(20)
    assert source.read(300) == DATA[30:330]
    assert fetch.asked == [(300, 800), (10, 110), (110, 330)]


def test_nothing_is_asked_for_at_the_end() -> None:
    fetch = Counting()
    source = reader(fetch)
    source.seek(0, 2)
    assert source.read() == source.read(5) == b""
    source.seek(5000)
    assert source.read() == b""
    assert source.tell() == 5000
    assert fetch.asked == []


def test_fewer_bytes_than_there_should_be_are_an_error() -> None:
    source = RangedReader(lambda start, end: b"x", 10, "webhdfs://nn/file")
    with pytest.raises(StorageError, match="asked for 10 bytes at offset 0, got 1") as raised:
        source.read()
    assert "webhdfs://nn/file" in raised.value.what


def test_a_closed_one_does_not_read() -> None:
    source = reader(Counting())
    source.close()
    for call in (source.read, source.tell, lambda: source.seek(0)):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_seek_with_a_bad_whence_is_refused() -> None:
    with pytest.raises(ValueError, match="whence"):
        reader(Counting()).seek(0, 3)


def test_arrow_reads_through_it() -> None:
    with pa.PythonFile(reader(Counting()), mode="r") as source:
        assert source.size() == 1000
        source.seek(10)
        assert source.read(5) == DATA[10:15]
        assert source.read_at(7, 990) == DATA[990:997]


def test_a_text_wrapper_iterates_over_its_lines() -> None:
    text = b"one\ntwo\nthree\n"
    source = RangedReader(lambda start, end: text[start:end], len(text), "webhdfs://nn/file", 4)
    assert list(io.TextIOWrapper(source, encoding="utf-8")) == ["one\n", "two\n", "three\n"]


@pytest.mark.parametrize(("is_local", "requests"), [(True, 10), (False, 1)])
def test_pieces_are_few_where_each_is_a_request(is_local: bool, requests: int) -> None:
    """And small where they are not: fresh memory takes longer than the reading."""
    data = bytes(range(256)) * (10 << 10)
    reads: list[int] = []

    class File(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            reads.append(size or 0)
            return super().read(size)

    fs = SimpleNamespace(is_local=is_local, open_input=lambda _: File(data))
    found = list(pieces(fs, "/x", 7, len(data) - 10))  # type: ignore[arg-type]
    assert b"".join(found) == data[7:-3]
    assert len(reads) == requests
    assert b"".join(pieces(fs, "/x", len(data) - 5, 9)) == data[-5:]  # type: ignore[arg-type]
