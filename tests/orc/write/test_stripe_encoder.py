"""Rows into stripes and back, for every type that ORC has."""

from __future__ import annotations

import io
import math
import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyorc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.files.encoded import SMALL, Raw, batch_of, file_of, raw_rows, read, root, wide
from support.files.orc_bytes import tail_of
from support.made.random_values import random_array, row_types

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.types import OrcType, renumbered
from acidctl.orc.write.stripe_editor import StripeParts
from acidctl.orc.write.stripe_encoder import encode_stripes
from acidctl.orc.write.writer_settings import CODECS, MAX_BLOCK, WriterSettings

CODEC = st.sampled_from(CODECS)


@settings(max_examples=40, deadline=None)
@given(row_types(), st.lists(st.integers(0, 30), min_size=1, max_size=3), st.integers(0, 1 << 30), CODEC, st.booleans())
def test_every_type_comes_back(tree: OrcType, sizes: list[int], seed: int, compression: str, cut: bool) -> None:
    tree = renumbered(tree)
    rng = random.Random(seed)
    pieces = [random_array(tree, size, rng) for size in sizes]
    if cut:  # slices share their parents' buffers
        pieces = [piece[len(piece) // 3 : len(piece) - len(piece) // 4] for piece in pieces]
    # A root has no nulls of its own.
    pieces = [
        pa.StructArray.from_arrays([p.field(i) for i in range(len(tree.names))], names=tree.names) for p in pieces
    ]
    batches = [pa.RecordBatch.from_struct_array(piece) for piece in pieces]
    data = file_of(batches, tree, WriterSettings(compression, block_size=65536, stride=7))
    assert read(data).equals(pa.Table.from_batches(batches))
    assert tail_of(data).type_tree == tree


def test_values_as_python_sees_them() -> None:
    """A second reader, and values written out by hand."""
    tree = root(
        OrcType("decimal", precision=38, scale=10),
        OrcType("date"),
        OrcType("char", max_length=4),
        OrcType("varchar", max_length=4),
        OrcType("binary"),
        OrcType("map", children=(OrcType("string"), OrcType("array", children=(OrcType("int"),)))),
        OrcType("timestamp"),
    )
    big = Decimal("-1234567890123456789012345678.0123456789")
    batch = batch_of(
        pa.array([big, None, Decimal(1)], pa.decimal128(38, 10)),
        pa.array([date(1, 1, 1), None, date(9999, 12, 31)], pa.date32()),
        pa.array(["ž", None, "abcd"]),
        pa.array(["ž", "\0", "abcd"]),
        pa.array([b"\0\xff", None, b""]),
        pa.array([[("k", [1, None])], None, []], pa.map_(pa.string(), pa.list_(pa.int32()))),
        pa.array([datetime(1969, 12, 31, 23, 59, 58, 500000), None, datetime(2200, 1, 1)], pa.timestamp("ns")),
    )
    rows = list(pyorc.Reader(io.BytesIO(file_of(batch, tree))))
    assert [row[0] for row in rows] == [big, None, 1]
    assert [row[1] for row in rows] == [date(1, 1, 1), None, date(9999, 12, 31)]
    assert [row[2] for row in rows] == ["ž   ", None, "abcd"]
    assert [row[3] for row in rows] == ["ž", "\0", "abcd"]
    assert [row[4] for row in rows] == [b"\0\xff", None, b""]
    assert [row[5] for row in rows] == [{"k": [1, None]}, None, {}]
    assert [row[6] for row in raw_rows(file_of(batch, tree))] == [
        (-2, 500_000_000),
        None,
        (7_258_118_400, 0),
    ]


FAR = 253_402_300_799  # 9999-12-31 23:59:59
SECONDS = st.one_of(st.integers(-62_135_596_800, FAR), st.integers(-5, 5), st.integers(-(10**12), 10**12))
NANOS = st.sampled_from([0, 1, 999, 1000, 999_000, 999_999, 1_000_000, 123_456_789, 999_999_999, 999_999_000])
TIMES = st.one_of(st.none(), st.tuples(SECONDS, NANOS)).filter(lambda v: v is None or v[0] != -1 or v[1] <= 999_999)


@settings(max_examples=40, deadline=None)
@given(st.lists(TIMES, max_size=30), st.lists(TIMES, max_size=30), CODEC, st.sampled_from([0, 1, 7]), st.booleans())
def test_timestamps_of_any_year_come_back(
    first: list[Any], second: list[Any], compression: str, stride: int, instant: bool
) -> None:
    """Wide and narrow pieces in one stripe, alone and nested, next to columns that hold no timestamp."""
    kind = OrcType("timestamp with local time zone" if instant else "timestamp")
    inner = OrcType("struct", children=(OrcType("int"), kind), names=("i", "t"))
    tree = root(OrcType("string"), kind, OrcType("array", children=(inner,)), OrcType("uniontype", children=(kind,)))
    near = [None if v is None else (v[0] % 9_000_000_000, v[1]) for v in second]
    zone = "UTC" if instant else None
    narrow = pa.array([None if v is None else v[0] * 10**9 + v[1] for v in near]).cast(pa.int64())
    pieces = [wide(first, instant), narrow.cast(pa.timestamp("ns", tz=zone))]
    batches = []
    for times in pieces:
        n = len(times)
        pairs = pa.StructArray.from_arrays([pa.array(range(n), pa.int32()), times], names=["i", "t"])
        lists = pa.ListArray.from_arrays(pa.array([0, n, *([n] * (n - 1))][: n + 1], pa.int32()), pairs)
        union = pa.UnionArray.from_sparse(pa.array([0] * n, pa.int8()), [times], ["_union_0"])
        batches.append(batch_of(pa.array([f"s{i}" for i in range(n)], pa.string()), times, lists, union))
    data = file_of(batches, tree, WriterSettings(compression, block_size=65536, stride=stride))
    rows = raw_rows(data)
    expected = first + near
    assert [row[1] for row in rows] == expected
    assert [pair[1] for row in rows for pair in row[2]] == expected
    assert [row[3] for row in rows] == expected
    assert [row[0] for row in rows] == [f"s{i}" for part in (first, near) for i in range(len(part))]
    _check_bounds(tail_of(data), expected)
    if stride and rows:
        reader = pyorc.Reader(io.BytesIO(data), converters=dict.fromkeys((9, 18), Raw))
        for at in range(0, len(rows), 5):
            reader.seek(at)
            assert next(reader) == rows[at]


def _check_bounds(tail: Any, values: list[Any]) -> None:
    """The statistics of column 2 hold for all values: as milliseconds and nanoseconds within."""
    present = [(v[0] * 1000 + v[1] // 10**6, v[1] % 10**6) for v in values if v is not None]
    for statistics in (tail.footer.statistics[2], *(stripe.colStats[2] for stripe in tail.metadata.stripeStats)):
        assert statistics.numberOfValues == len(present)
        if present:
            block = statistics.timestampStatistics
            low = (block.minimumUtc, max(block.minimumNanos - 1, 0))
            high = (block.maximumUtc, block.maximumNanos - 1 if block.maximumNanos else 999_999)
            assert low <= min(present) and max(present) <= high


def test_bounds_in_the_row_index_of_halves() -> None:
    """Row groups keep bounds that hold, after their two halves were put together."""
    values = [(-100 + i, 500_000_000 + i) for i in range(50)] + [(FAR, 999_999_999)]
    tree = root(OrcType("timestamp"))
    chosen = WriterSettings("none", block_size=65536, stride=10)
    (stripe,) = encode_stripes(batch_of(wide([v if v[0] != -1 else None for v in values])), chosen, tree)
    index = StripeParts(stripe.data, stripe.info, ("none", 65536)).row_index(1)
    assert index is not None and len(index.entry) == 6
    for i, entry in enumerate(index.entry):
        group = [s * 1000 + n // 10**6 for s, n in values[i * 10 : i * 10 + 10]]
        block = entry.statistics.timestampStatistics
        assert block.minimumUtc <= min(group) and max(group) <= block.maximumUtc
        assert not block.HasField("minimumNanos") and not block.HasField("maximumNanos")


def test_nothing_but_nulls_beside_wide_timestamps() -> None:
    """As delete events and inserts in one v1 delta are."""
    tree = root(root(OrcType("int"), root(OrcType("timestamp"), OrcType("string"))))
    inner = pa.StructArray.from_arrays([wide([(FAR, 5), None]), pa.array(["a", "b"])], names=["f0", "f1"])
    outer = pa.StructArray.from_arrays([pa.array([1, 2], pa.int32()), inner], names=["f0", "f1"])
    half = pa.StructArray.from_arrays([pa.array([3], pa.int32()), pa.nulls(1)], names=["f0", "f1"])
    for batches in ([pa.nulls(3), outer, half], [outer, pa.nulls(3), half], [half, pa.nulls(3), outer]):
        rows = raw_rows(file_of([batch_of(one) for one in batches], tree))
        wanted = {3: [None] * 3, 2: [(1, ((FAR, 5), "a")), (2, (None, "b"))], 1: [(3, None)]}
        assert [row[0] for row in rows] == [row for one in batches for row in wanted[len(one)]]


def test_pieces_of_all_forms_in_one_stripe() -> None:
    pieces = [
        pa.array([5], pa.timestamp("ns")),
        pa.array([-5], pa.timestamp("s")),
        wide([(FAR, 1000)]),
        wide([(-9, 1)]),
    ]
    for chosen in ([0], [1], [0, 1], [1, 2], [0, 1, 2], [3, 1, 0, 2]):
        rows = raw_rows(file_of([batch_of(pieces[i]) for i in chosen], root(OrcType("timestamp"))))
        assert [row[0] for row in rows] == [[(0, 5), (-5, 0), (FAR, 1000), (-9, 1)][i] for i in chosen]


def test_decimal_of_an_old_file() -> None:
    """Hive 0.11 did not say precision and scale."""
    batch = batch_of(pa.array([Decimal("-1.5"), None], pa.decimal128(38, 6)))
    found = read(file_of(batch, root(OrcType("decimal"))))
    assert found.equals(pa.Table.from_batches([batch]))


def test_a_time_that_orc_cannot_hold() -> None:
    """Every ORC reader takes the fraction of the last second before 1970 for one after it."""
    tree = root(OrcType("timestamp"))
    with pytest.raises(BadDataError, match="timestamp cannot"):
        encode_stripes(batch_of(pa.array([-500_000_000], pa.timestamp("ns"))), SMALL, tree)
    with pytest.raises(BadDataError, match="timestamp cannot"):
        encode_stripes(batch_of(wide([(1 << 60, 5)])), SMALL, tree)
    assert raw_rows(file_of(batch_of(wide([(-1, 999_999), (10**15, 1)])), tree)) == [((-1, 999_999),), ((10**15, 1),)]


def test_char_is_padded_wherever_it_is() -> None:
    char = OrcType("char", max_length=3)
    tree = root(char, OrcType("array", children=(char,)), OrcType("map", children=(char, OrcType("int"))))
    batch = batch_of(
        pa.array(["a", None, "abcd"]),
        pa.array([["a", None], None, []], pa.list_(pa.string())),
        pa.array([[("ž", 1)], None, []], pa.map_(pa.string(), pa.int32())),
    )
    found = read(file_of(batch, tree)).to_pydict()
    assert found == {
        "f0": ["a  ", None, "abcd"],
        "f1": [["a  ", None], None, []],
        "f2": [[("ž  ", 1)], None, []],
    }
    broken = pa.array([b"\xff", b"a"], pa.binary()).view(pa.string())
    assert read(file_of(batch_of(broken), root(char)))["f0"].cast(pa.binary()).to_pylist() == [b"\xff  ", b"a  "]


def test_statistics_tell_no_lies() -> None:
    tree = root(OrcType("double"), OrcType("array", children=(OrcType("int"),)))
    batch = batch_of(pa.array([math.nan, 1.0]), pa.array([[1], [2, 3]], pa.list_(pa.int32())))
    (stripe,) = encode_stripes(batch, SMALL, tree)
    columns = stripe.statistics.colStats
    assert not columns[1].HasField("doubleStatistics")
    assert not columns[2].HasField("collectionStatistics")
    assert (columns[2].numberOfValues, columns[3].numberOfValues) == (2, 3)
    assert columns[3].intStatistics == pb.IntegerStatistics(minimum=1, maximum=3, sum=6)


@pytest.mark.parametrize("kind", ["double", "float"])
def test_a_zero_is_below_the_maximum_whatever_its_sign(kind: str) -> None:
    """Readers in Java order -0.0 before 0.0."""
    arrow = pa.float64() if kind == "double" else pa.float32()
    values = [*([-0.0] * 7), *([0.0] * 7), *([-3.0] * 5), -0.0, 0.0]
    chosen = WriterSettings("none", block_size=65536, stride=7)
    (stripe,) = encode_stripes(batch_of(pa.array(values, arrow)), chosen, root(OrcType(kind)))
    bounds = stripe.statistics.colStats[1].doubleStatistics
    assert (bounds.minimum, math.copysign(1, bounds.maximum)) == (-3, 1)
    index = StripeParts(stripe.data, stripe.info, (chosen.compression, chosen.block_size)).row_index(1)
    assert index is not None
    groups = [entry.statistics.doubleStatistics for entry in index.entry]
    assert len(groups) > 2
    assert all(math.copysign(1, group.maximum) == 1 for group in groups), "each has a zero"


def test_a_large_batch_gives_several_stripes() -> None:
    rng = np.random.default_rng(0)
    batch = batch_of(pa.array(rng.integers(0, 1 << 60, 300_000)))
    chosen = WriterSettings(stripe_size=1 << 18)
    stripes = encode_stripes(batch, chosen, root(OrcType("bigint")))
    assert len(stripes) > 2 and sum(stripe.rows for stripe in stripes) == 300_000
    assert read(file_of(batch, root(OrcType("bigint")), chosen)).equals(pa.Table.from_batches([batch]))


def test_no_rows_make_no_stripes() -> None:
    assert encode_stripes(batch_of(pa.array([], pa.int64())), SMALL, root(OrcType("bigint"))) == []
    assert encode_stripes([], SMALL, root(OrcType("bigint"))) == []


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array(["a", "b", "a"], pa.large_string()),
        pa.array(["a", "b", "a"], pa.string_view()),
    ],
)
def test_arrows_other_kinds_of_strings_are_written(array: pa.Array) -> None:
    assert read(file_of(batch_of(array), root(OrcType("string"))))["f0"].to_pylist() == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([1], pa.int64()), OrcType("int")),
        (pa.array([1]), OrcType("string")),
        (pa.array(["a"]), OrcType("binary")),
        (pa.array([Decimal(1)], pa.decimal128(9, 2)), OrcType("decimal", precision=9, scale=3)),
        (pa.array([0], pa.timestamp("ns")), OrcType("timestamp with local time zone")),
        (wide([(0, 0)], instant=True), OrcType("timestamp")),
        (pa.array([0]), OrcType("timestamp")),
        (pa.array([0], pa.timestamp("ns")), OrcType("date")),
        (pa.array([[1]]), root(OrcType("bigint"))),
        (pa.array([{"a": 1}]), OrcType("struct")),
        (pa.array([{}], pa.struct([])), root(OrcType("bigint"))),
    ],
)
def test_rows_of_other_types_are_refused(array: pa.Array, kind: OrcType) -> None:
    with pytest.raises(BadDataError, match="cannot be written as"):
        encode_stripes(batch_of(array), SMALL, root(kind))


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "lzo"},
        {"compression": "ZLIB"},
        {"block_size": 32768},
        {"block_size": MAX_BLOCK + 65536},
        {"block_size": 100_000},
        {"stride": -1},
        {"stripe_size": 0},
        {"dictionary_threshold": 1.5},
        {"batch_rows": 0},
    ],
)
def test_settings_that_the_library_would_die_of(options: dict[str, Any]) -> None:
    with pytest.raises(UsageProblem):
        WriterSettings(**options)


def test_recommended_settings_are_those_of_hive() -> None:
    base, delta = WriterSettings.for_base(), WriterSettings.for_delta("snappy")
    assert (base.compression, base.stripe_size, base.block_size, base.stride) == ("zlib", 64 << 20, 256 << 10, 10_000)
    assert (delta.compression, delta.stripe_size, delta.stride) == ("snappy", 8 << 20, 10_000)
    assert read(
        file_of(batch_of(pa.array([1])), root(OrcType("bigint")), WriterSettings(block_size=MAX_BLOCK))
    ).num_rows
