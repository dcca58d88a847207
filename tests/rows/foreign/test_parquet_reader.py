"""Small Parquet files that claim or unpack to gigabytes: refused before they take much memory."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as native
from support.files.parquet_made import (
    BY_DICTIONARY,
    FIXED,
    INT64,
    LIST,
    LIST_OF_NUMBERS,
    NUMBERS,
    OPTIONAL,
    PLAIN,
    REPEATED,
    SHARED,
    STRUCT,
    TEXT,
    Column,
    data_page,
    dictionary_page,
    group,
    in_one_list,
    leaf,
    levels,
    listed,
    one_then_others,
    parquet,
    repeated,
    text,
    thrift,
    with_footer,
)

from acidctl.base.errors import BadDataError
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.limits import STRIPE_MEMORY, LimitError
from acidctl.rows.foreign.format import open_foreign, read_any_tail
from acidctl.storage.local.filesystem import LocalFileSystem

LONG = text(b"x" * 100_000)
TEXTS = dictionary_page(1, LONG)


def rows_of(path: Path, columns: list[str] | None = None) -> pa.RecordBatch:
    source = ByteSource(LocalFileSystem(), str(path))
    found = read_any_tail(source)
    reader = open_foreign(source, found.format, found.tail)
    try:
        return reader.read_stripe(0, columns)
    finally:
        reader.close()


def by_dictionary(values: int) -> bytes:
    return data_page(values, BY_DICTIONARY, b"\1" + repeated(0, values))


def with_shared_beginnings(values: int) -> bytes:
    """The first text is long, and the others are the same."""
    prefixes, suffixes = one_then_others(0, 100_000, values), one_then_others(100_000, 0, values)
    return data_page(values, SHARED, prefixes + suffixes + b"x" * 100_000)


ROOT = group("root", 1)
BOMBS: dict[str, Callable[[], bytes]] = {
    "texts of a dictionary": lambda: parquet(
        [ROOT, leaf("a", TEXT)], [Column(TEXT, ["a"], 30_000, TEXTS + by_dictionary(30_000), len(TEXTS))], 30_000
    ),
    "numbers": lambda: parquet(
        [group("root", 8), *(leaf(f"c{i}", INT64) for i in range(8))],
        [Column(INT64, [f"c{i}"], 60_000_000, NUMBERS + by_dictionary(60_000_000), len(NUMBERS)) for i in range(8)],
        60_000_000,
    ),
    "one list": lambda: parquet(
        LIST_OF_NUMBERS,
        [Column(INT64, ["a", "list", "element"], 1, NUMBERS + in_one_list(1 << 28), len(NUMBERS))],
        1,
    ),
    "wide values": lambda: parquet(
        [ROOT, leaf("a", FIXED, OPTIONAL, 100_000_000)],
        [Column(FIXED, ["a"], 50, data_page(50, PLAIN, levels(repeated(0, 50))))],
        50,
    ),
    "shared beginnings": lambda: parquet(
        [ROOT, leaf("a", TEXT)], [Column(TEXT, ["a"], 30_000, with_shared_beginnings(30_000))], 30_000
    ),
    "rows": lambda: parquet([ROOT, leaf("a", INT64)], [Column(INT64, ["a"], 1 << 40, by_dictionary(1))], 1 << 40),
    "entries of a dictionary": lambda: parquet(
        [ROOT, leaf("a", TEXT)],
        [Column(TEXT, ["a"], 1, dictionary_page(2_000_000_000, text(b"a")) + by_dictionary(1), 30)],
        1,
    ),
}


def most_memory() -> int:
    """Bytes that this process ever had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@pytest.mark.parametrize("name", BOMBS)
def test_row_group_that_unpacks_to_gigabytes_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_bytes(BOMBS[name]())
    assert path.stat().st_size < 200_000
    monkeypatch.setenv(STRIPE_MEMORY.variable, "100M")
    before = most_memory()
    with pytest.raises(
        LimitError, match=r"row group 0 of .*(: decompressed size of its .* [GT]iB|needs more memory than .*): the file"
    ) as caught:
        rows_of(path)
    assert most_memory() - before < 1 << 30
    assert "or larger than the limit max-stripe-memory (100 MiB)" in caught.value.why
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


def test_what_a_footer_says_of_flat_columns_is_all_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    pages = NUMBERS + by_dictionary(1 << 30)
    path.write_bytes(parquet([ROOT, leaf("a", INT64)], [Column(INT64, ["a"], 10, pages, len(NUMBERS))], 10))
    assert rows_of(path).num_rows == 10


SCHEMA = (2, LIST, (STRUCT, [ROOT, leaf("a", INT64)]))
COLUMNS = (2, LIST, (STRUCT, [group("root", 60_000), *[leaf("a", INT64)] * 60_000]))
CHUNKS = thrift((1, LIST, (STRUCT, [thrift((2, 6, 0))] * 1000)), (2, 6, 0), (3, 6, 0))
FOOTERS: dict[str, Callable[[], bytes]] = {
    "columns": lambda: thrift((1, 5, 1), COLUMNS, (3, 6, 0), (4, LIST, (STRUCT, []))),
    "column chunks": lambda: thrift((1, 5, 1), SCHEMA, (3, 6, 0), (4, LIST, (STRUCT, [CHUNKS] * 1001))),
}


@pytest.mark.parametrize("name", FOOTERS)
def test_footers_of_very_many_parts(tmp_path: Path, name: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(with_footer(b"", FOOTERS[name]()))
    before = most_memory()
    with pytest.raises(LimitError, match=f"number of (its|the) {name}.* is .*made to use up"):
        read_any_tail(ByteSource(LocalFileSystem(), str(path)))
    assert most_memory() - before < 1 << 30


CLAIMS: dict[str, Callable[[], bytes]] = {
    "columns": lambda: thrift((1, 5, 1))[:-1] + b"\x19" + listed(STRUCT, [], 999_999),
    "row groups": lambda: thrift((1, 5, 1), SCHEMA, (3, 6, 0))[:-1] + b"\x19" + listed(STRUCT, [], 1 << 30),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_footers_that_claim_very_many_parts(tmp_path: Path, name: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(with_footer(b"", CLAIMS[name]()))
    before = most_memory()
    with pytest.raises(BadDataError, match="Exceeded size limit"):
        read_any_tail(ByteSource(LocalFileSystem(), str(path)))
    assert most_memory() - before < 1 << 27


def test_a_footer_that_claims_much_of_one_kind_only(tmp_path: Path) -> None:
    path = tmp_path / "f"
    schema = (2, LIST, (STRUCT, [ROOT, leaf("a", INT64)]))
    claim = b"\x19" + listed(STRUCT, [], 999_999)  # column chunks, 700 bytes each as soon as they are claimed
    path.write_bytes(with_footer(b"", thrift((1, 5, 1), schema, (3, 6, 0))[:-1] + b"\x19" + listed(STRUCT, [claim])))
    with pytest.raises(BadDataError, match="Exceeded size limit"):
        read_any_tail(ByteSource(LocalFileSystem(), str(path)))


def test_type_nested_too_deep_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    deep = [group("g", 1, OPTIONAL)] * 5000
    schema = (2, LIST, (STRUCT, [*deep, leaf("a", INT64)]))
    path.write_bytes(with_footer(b"", thrift((1, 5, 1), schema, (3, 6, 0), (4, LIST, (STRUCT, [])))))
    with pytest.raises(BadDataError, match="too deeply nested"):
        read_any_tail(ByteSource(LocalFileSystem(), str(path)))


def test_column_of_empty_pages_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    pages = data_page(0, PLAIN, b"") * 2000
    path.write_bytes(parquet([ROOT, leaf("a", INT64)], [Column(INT64, ["a"], 1, pages)], 1))
    with pytest.raises(BadDataError, match="does not hold the 1 rows that it claims"):
        rows_of(path)


def test_chunk_behind_the_end_is_bad_data(tmp_path: Path) -> None:
    path = tmp_path / "f"
    whole = parquet([ROOT, leaf("a", INT64)], [Column(INT64, ["a"], 1, data_page(1, PLAIN, bytes(8)))], 1)
    sizes = b"\x16\x32\x16\x32"  # of the chunk, 25
    assert sizes in whole
    path.write_bytes(whole.replace(sizes, b"\x16\x32\x16\xfe\x7f"))
    with pytest.raises(BadDataError):
        rows_of(path)


@pytest.mark.parametrize("raw", [b"\xff" * 40, b"", bytes(40), b"\x1c" * 40])
def test_malformed_page_header_is_bad_data(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(parquet([ROOT, leaf("a", INT64)], [Column(INT64, ["a"], 1, raw)], 1))
    with pytest.raises(BadDataError):
        rows_of(path)


CODECS = ["none", "snappy", "gzip", "zstd", "brotli", "lz4"]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("shape", ["flat", "list", "struct", "map"])
def test_a_dictionary_with_one_long_text_is_no_bomb(
    tmp_path: Path, codec: str, version: str, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["x" * 300_000, *("y" * (i % 7) for i in range(4999)), None]
    values: Any = {
        "flat": texts,
        "list": [[one, "z"] for one in texts],
        "struct": [{"p": i, "q": one} for i, one in enumerate(texts)],
        "map": [[(str(i % 9), one)] for i, one in enumerate(texts)],
    }[shape]
    column = pa.array(values, pa.map_(pa.string(), pa.string()) if shape == "map" else None)
    path = tmp_path / "f"
    native.write_table(pa.table({"a": column}), path, compression=codec, data_page_version=version)
    monkeypatch.setenv(STRIPE_MEMORY.variable, "3M")
    assert rows_of(path).column(0).to_pylist() == values
    monkeypatch.setenv(STRIPE_MEMORY.variable, "300K")
    with pytest.raises(LimitError):
        rows_of(path)


def test_only_what_is_read_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    native.write_table(pa.table({"a": ["x" * 100_000] * 20, "b": range(20), "st": [{"a": 1}] * 20}), path)
    monkeypatch.setenv(STRIPE_MEMORY.variable, "1M")
    assert rows_of(path, ["b", "st.a"]).num_rows == 20
    with pytest.raises(LimitError):
        rows_of(path, ["a"])


def test_random_bytes_in_pages_and_footers(tmp_path: Path) -> None:
    import random

    rng = random.Random(11)
    path = tmp_path / "f"
    table = pa.table({"a": ["x", "y"] * 50, "b": [[1, 2]] * 100, "c": range(100)})
    native.write_table(table, path, row_group_size=50)
    whole = path.read_bytes()
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(4, len(data) - 8)] = rng.randrange(256)
        path.write_bytes(data)
        try:
            rows_of(path)
        except BadDataError as error:
            assert error.what


def test_several_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    native.write_table(pa.Table.from_arrays([[1], [2]], names=["a", "a"]), path)
    with pytest.raises(BadDataError, match="several of its columns have one name"):
        rows_of(path)


def test_unsigned_numbers_beyond_bigint_are_read(tmp_path: Path) -> None:
    values = [0, None, (1 << 64) - 1, 5]
    path = tmp_path / "f"
    native.write_table(pa.table({"a": pa.array(values, pa.uint64())}), path)
    assert [None if v is None else int(v) for v in rows_of(path).column(0).to_pylist()] == values


def hostile_schema(name: str) -> pa.Schema:
    kinds = {
        "wide timestamp": pa.field("a", pa.int64(), metadata={b"ARROW:extension:name": b"acidctl.wide_timestamp"}),
        "python": pa.field("a", pa.int64(), metadata={b"ARROW:extension:name": b"arrow.py_extension_type",
                                                      b"ARROW:extension:metadata": b"cos\nsystem\n(S'exit'\ntR."}),
        "tensor": pa.field("a", pa.list_(pa.int64(), 1 << 30)),
        "dictionary": pa.field("a", pa.dictionary(pa.int8(), pa.int64())),
        "run ends": pa.field("a", pa.run_end_encoded(pa.int32(), pa.int64())),
    }  # fmt: skip
    return pa.schema([kinds[name]])


@pytest.mark.parametrize("name", ["wide timestamp", "python", "tensor", "dictionary", "run ends", "garbage"])
def test_schemas_of_arrow_that_lie(tmp_path: Path, name: str) -> None:
    import base64

    raw = base64.b64encode(os.urandom(99) if name == "garbage" else hostile_schema(name).serialize().to_pybytes())
    path = tmp_path / "f"
    table = pa.table({"a": range(5)}).replace_schema_metadata({b"ARROW:schema": raw})
    native.write_table(table, path, store_schema=False)
    try:
        assert rows_of(path).column(0).to_pylist() == [0, 1, 2, 3, 4]
    except BadDataError as error:
        assert "cannot be read" in error.what


def test_repeated_column_of_old_writers_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STRIPE_MEMORY.variable, "100M")
    path = tmp_path / "f"
    count = 1 << 28
    body = levels(repeated(0, 1), repeated(1, count - 1)) + levels(repeated(1, count)) + b"\1" + repeated(0, count)
    pages = NUMBERS + data_page(count, BY_DICTIONARY, body)
    path.write_bytes(parquet([ROOT, leaf("a", INT64, REPEATED)], [Column(INT64, ["a"], 1, pages, len(NUMBERS))], 1))
    with pytest.raises(LimitError):
        rows_of(path)


class Remote(LocalFileSystem):
    """Files that are not on the local disk; tells what is read of them."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[int, int | None]] = []

    def local_path(self, path: str) -> str | None:
        return None

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        self.reads.append((offset, length))
        return super().read_bytes(path, offset, length)


def test_of_remote_files_nothing_is_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "f"
    rows = 100_000
    native.write_table(
        pa.table({"a": range(rows), "b": [str(i % 999) for i in range(rows)]}), path, row_group_size=rows
    )
    fs = Remote()
    source = ByteSource(fs, str(path))
    found = read_any_tail(source)
    reader = open_foreign(source, found.format, found.tail)
    fs.reads.clear()
    assert reader.read_stripe(0).num_rows == rows
    reader.close()
    assert len(fs.reads) == 2  # the end, and all columns


def test_columns_of_fewer_values_than_rows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    full, short = data_page(2, PLAIN, bytes(16)), data_page(1, PLAIN, bytes(8))
    for first, second in ((full, short), (short, full), (short, short)):
        columns = [Column(INT64, ["a"], 2, first), Column(INT64, ["b"], 2, second)]
        path.write_bytes(parquet([group("root", 2), leaf("a", INT64), leaf("b", INT64)], columns, 2))
        with pytest.raises(BadDataError):
            rows_of(path)
