"""Whole ACID files: user metadata, stripes, types, and that all rows come back."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyorc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc
from support.files.acid_files import B0, acid_batch, acid_file
from support.files.orc_bytes import tail_of
from support.made.random_values import random_array, row_types
from support.work import calls_of

from acidctl.base.errors import BadDataError
from acidctl.orc.types import ACID_COLUMNS, OrcType, acid_tree, hive_type, row_type, to_proto
from acidctl.orc.write.acid_writer import AcidWriter
from acidctl.orc.write.file_assembler import OrcAssembler
from acidctl.orc.write.writer_settings import CODECS, WriterSettings

ROW = OrcType(
    "struct",
    children=(OrcType("int"), OrcType("varchar", max_length=7), OrcType("char", max_length=3)),
    names=("a", "v", "c"),
)
UNION = OrcType("struct", children=(OrcType("uniontype", children=(OrcType("int"), OrcType("string"))),), names=("u",))


def rows(n: int, first: int = 0) -> pa.StructArray:
    numbers = pa.array(np.arange(first, first + n, dtype="i4"))
    texts = pa.array([f"v{i}" for i in range(n)], pa.string())
    return pa.StructArray.from_arrays([numbers, texts, pa.array(["abc"] * n, pa.string())], names=["a", "v", "c"])


def read(data: bytes) -> pa.Table:
    return orc.ORCFile(pa.BufferReader(data)).read()


def keys(data: bytes) -> list[tuple[int, int, int]]:
    """The last key of each stripe, from the rows."""
    file = orc.ORCFile(pa.BufferReader(data))
    found = []
    for i in range(file.nstripes):
        batch = file.read_stripe(i)
        found.append(tuple(batch.column(j)[batch.num_rows - 1].as_py() for j in (1, 2, 3)))
    return found


def test_a_further_small_file_of_the_same_columns_is_less_work() -> None:
    """An insert into ten thousand partitions writes as many of them."""
    names = tuple(f"further{i}" for i in range(20))
    row = OrcType("struct", children=(OrcType("int"),) * 20, names=names)
    batch = acid_batch(pa.StructArray.from_arrays([pa.array([1, 2], pa.int32())] * 20, names=names), 70)
    acid_file(ROW, [acid_batch(rows(2))])  # all modules are loaded now
    first = calls_of(lambda: acid_file(row, [batch]))
    assert calls_of(lambda: acid_file(row, [batch])) < 0.8 * first


@pytest.mark.parametrize("compression", CODECS)
def test_file_holds_rows_key_index_and_metadata(compression: str) -> None:
    batches = [acid_batch(rows(5)), acid_batch(rows(3, 5), 5), acid_batch(rows(2), 0, write_id=9)]
    data, result = acid_file(ROW, batches, WriterSettings(compression), calendar=2)
    assert read(data).equals(pa.Table.from_batches(batches))
    assert (result.rows, result.inserts, result.updates, result.deletes, result.stripes) == (10, 10, 0, 0, 1)
    assert result.bytes == len(data)
    tail = tail_of(data)
    assert tail.user_metadata == {
        "hive.acid.key.index": b"9,536870912,1;",
        "hive.acid.stats": b"10,0,0",
        "hive.acid.version": b"2",
    }
    assert tail.is_acid and tail.calendar == "proleptic_gregorian"
    assert hive_type(row_type(tail.type_tree)) == "struct<a:int,v:varchar(7),c:char(3)>"
    assert list(tail.footer.types) == to_proto(acid_tree(ROW))
    assert [row[5] for row in pyorc.Reader(io.BytesIO(data))] == [tuple(r.values()) for r in _pylist(batches)]


def _pylist(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.column("row").to_pylist()]


def test_file_without_rows_is_valid() -> None:
    for batches in ([], [acid_batch(rows(0))]):
        data, result = acid_file(ROW, batches)
        assert (result.rows, result.stripes) == (0, 0)
        assert read(data).num_rows == 0 and list(pyorc.Reader(io.BytesIO(data))) == []
        tail = tail_of(data)
        assert tail.is_acid and tail.key_index() == [] and tail.acid_stats() == (0, 0, 0) and tail.acid_version == 2


@pytest.mark.parametrize("row", [ROW, UNION, OrcType("struct")], ids=["flat", "union", "empty"])
@pytest.mark.parametrize("typed", [True, False])
def test_deletes_have_no_row(row: OrcType, typed: bool) -> None:
    """Also of a table with a union, which pyarrow would not survive."""
    nothing = pa.nulls(1000)
    if typed:
        kinds = {"a": pa.int32(), "v": pa.string(), "c": pa.string()} if row is ROW else {}
        union = pa.sparse_union([pa.field("_union_0", pa.int32()), pa.field("_union_1", pa.string())])
        nothing = pa.nulls(1000, pa.struct({"u": union} if row is UNION else kinds))
    batches = [acid_batch(nothing, operation=2), acid_batch(nothing, 1000, operation=2)]
    data, result = acid_file(row, batches, WriterSettings.for_delta())
    assert (result.rows, result.inserts, result.deletes) == (2000, 0, 2000)
    table = read(data)
    assert table["row"].null_count == 2000
    assert table["rowId"].to_pylist() == list(range(2000))
    assert tail_of(data).acid_stats() == (0, 0, 2000)
    assert [one[5] for one in pyorc.Reader(io.BytesIO(data))] == [None] * 2000


def test_v1_events_of_all_kinds() -> None:
    batch = acid_batch(rows(6))
    nulls = pa.array([False, False, True, False, True, False])
    row = pa.StructArray.from_arrays(batch.column("row").flatten(), names=["a", "v", "c"], mask=nulls)
    batch = batch.set_column(5, "row", row).set_column(0, "operation", pa.array([0, 1, 2, 1, 2, 1], pa.int32()))
    data, result = acid_file(ROW, [batch])
    assert (result.inserts, result.updates, result.deletes) == (1, 3, 2)
    assert tail_of(data).user_metadata["hive.acid.stats"] == b"1,3,2"
    assert read(data).equals(pa.Table.from_batches([batch]))


@settings(max_examples=20, deadline=None)
@given(
    row_types(),
    st.lists(st.integers(0, 100), min_size=1, max_size=3),
    st.integers(0, 1 << 30),
    st.sampled_from(CODECS),
    st.sampled_from([0, 1, 1000]),
    st.sampled_from([1, 3000, 1 << 20]),
)
def test_rows_of_any_type_come_back_with_their_key_index(
    row: OrcType, sizes: list[int], seed: int, compression: str, stride: int, stripe: int
) -> None:
    rng = random.Random(seed)
    batches = [acid_batch(random_array(row, n, rng), sum(sizes[:i])) for i, n in enumerate(sizes)]
    if stripe == 1:  # one stripe per row
        batches = [batch[:3] for batch in batches]
    chosen = WriterSettings(compression, block_size=65536, stride=stride, stripe_size=stripe)
    data, result = acid_file(row, batches, chosen)
    assert read(data).equals(pa.Table.from_batches(batches))
    tail = tail_of(data)
    assert tail.key_index() == keys(data)
    assert len(tail.metadata.stripeStats) == len(tail.stripes) == result.stripes
    assert tail.stride == stride and tail.rows == result.rows == sum(batch.num_rows for batch in batches)
    assert list(tail.footer.types) == to_proto(acid_tree(row))
    if stripe == 1:
        assert result.stripes == result.rows


def test_pieces_are_gathered_into_stripes() -> None:
    batches = [acid_batch(rows(10, i * 10), i * 10) for i in range(100)]
    data, result = acid_file(ROW, batches, WriterSettings(stripe_size=batches[0].nbytes * 20))
    assert result.stripes == 5
    assert read(data)["rowId"].to_pylist() == list(range(1000))


def test_stripes_of_one_row_have_an_entry_each_in_the_key_index() -> None:
    n = 200
    batch = acid_batch(rows(n), 1 << 40)
    data, result = acid_file(ROW, [batch], WriterSettings("snappy", stripe_size=1))
    assert result.stripes == n
    tail = tail_of(data)
    assert tail.key_index() == [(7, B0, (1 << 40) + i) for i in range(n)]
    assert read(data).equals(pa.Table.from_batches([batch]))


def test_huge_rows_at_the_start_make_no_huge_stripe() -> None:
    """A few huge rows at the start do not make a huge stripe."""
    texts = pa.array(["x" * 100_000] * 50 + ["y"] * 5000)
    row = OrcType("struct", children=(OrcType("string"),), names=("s",))
    batch = acid_batch(pa.StructArray.from_arrays([texts], names=["s"]))
    data, result = acid_file(row, [batch], WriterSettings("none", stripe_size=1 << 20))
    assert read(data).equals(pa.Table.from_batches([batch]))
    assert result.stripes >= 4
    assert max(stripe.dataLength for stripe in tail_of(data).stripes) < 3 << 20


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("operation", pa.array([0, 3], pa.int32()), "unknown operation"),
        ("operation", pa.array([0, -1], pa.int32()), "unknown operation"),
        ("operation", pa.array([0, None], pa.int32()), "is null"),
        ("rowId", pa.array([0, None], pa.int64()), "is null"),
        ("rowId", pa.array([1, 0], pa.int64()), "out of order"),
        ("bucket", pa.array([1, 0], pa.int32()), "out of order"),
        ("originalTransaction", pa.array([2, 1], pa.int64()), "out of order"),
        ("bucket", pa.array([1, 0], pa.int64()), "six ACID columns"),
    ],
)
def test_events_that_break_the_format(field: str, value: pa.Array, why: str) -> None:
    batch = acid_batch(rows(2))
    batch = batch.set_column(ACID_COLUMNS.index(field), field, value)
    with pytest.raises(BadDataError, match=why):
        acid_file(ROW, [batch])


def test_batch_before_its_predecessor_is_refused() -> None:
    later, earlier = acid_batch(rows(2), 2), acid_batch(rows(2), 0)
    with pytest.raises(BadDataError, match="out of order"):
        acid_file(ROW, [later, earlier])
    _, result = acid_file(ROW, [later, earlier], check_order=False)
    assert result.rows == 4
    # Equal keys (v1 updates) and a smaller row id under a greater bucket are in order.
    assert acid_file(ROW, [later, later[1:], acid_batch(rows(2), 0, bucket=B0 + 1)])[1].rows == 5


def test_batch_of_other_columns_is_refused() -> None:
    batch = acid_batch(rows(2))
    with pytest.raises(BadDataError, match="six ACID columns"):
        acid_file(ROW, [batch.select(ACID_COLUMNS[:5])])
    with pytest.raises(BadDataError, match="cannot be written as"):
        acid_file(UNION, [batch])


def test_a_large_batch_with_small_stripes() -> None:
    n = 300_000
    ids = pa.array(np.random.default_rng(1).integers(0, 1 << 40, n))
    row = OrcType("struct", children=(OrcType("bigint"),), names=("x",))
    batch = acid_batch(pa.StructArray.from_arrays([ids], names=["x"]))
    data, result = acid_file(row, [batch], WriterSettings("snappy", stripe_size=1 << 20))
    assert 10 < result.stripes < 20
    assert read(data).equals(pa.Table.from_batches([batch]))
    assert tail_of(data).key_index() == keys(data)


def test_copied_stripes_of_another_file() -> None:
    """The appender serves stripes of files as they are, between files of one shape."""
    chosen = WriterSettings(stripe_size=4000)
    parts = [acid_batch(rows(300, i * 300), i * 300) for i in range(3)]
    sink = io.BytesIO()
    assembler = OrcAssembler(sink, compression="zlib", block_size=chosen.block_size, stride=chosen.stride)
    for part in parts:
        data, _ = acid_file(ROW, [part], chosen)
        tail = tail_of(data)
        for stripe, statistics in zip(tail.stripes, tail.metadata.stripeStats, strict=True):
            end = stripe.offset + stripe.indexLength + stripe.dataLength + stripe.footerLength
            assembler.append_stripe(data[stripe.offset : end], stripe, statistics)
    assembler.finish(to_proto(acid_tree(ROW)), {})
    copied = tail_of(sink.getvalue())
    assert read(sink.getvalue()).equals(pa.Table.from_batches(parts))
    whole, _ = acid_file(ROW, [pa.concat_batches(parts)], WriterSettings())
    assert list(copied.footer.statistics) == list(tail_of(whole).footer.statistics)


def test_the_sink_is_left_open() -> None:
    sink = io.BytesIO()
    AcidWriter(sink, ROW).close()
    assert not sink.closed and sink.getvalue().startswith(b"ORC")
