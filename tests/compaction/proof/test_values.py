"""The checksum over values against a slow model: equal where, and only where, the same rows have the same keys."""

from __future__ import annotations

import datetime
import math
import struct
from collections import Counter
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acidctl.base.errors import BadDataError
from acidctl.compaction.proof.checksum import add
from acidctl.compaction.proof.values import _MOST_ROWS, column_checksum, row_and_column_checksums, value_checksum
from acidctl.orc.read.union_nulls import with_nulls
from acidctl.orc.read.wide_timestamps import as_nanoseconds, wide, widened
from acidctl.orc.types import OrcType, arrow_type
from acidctl.rows.read.delete_set import Keys

MANY = settings(max_examples=100, deadline=None)

WIDE = Context(prec=38)

LEAVES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    pa.float32(): st.floats(width=32) | st.sampled_from([0.0, -0.0]),
    pa.float64(): st.floats() | st.sampled_from([0.0, -0.0, math.nan]),
    pa.string(): st.text(max_size=20) | st.sampled_from(["", "\0", "a", "a\0", "12345678", "123456789"]),
    pa.binary(): st.binary(max_size=40),
    pa.decimal128(38, 3): st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-3, WIDE))
    | st.integers(-3, 3).map(lambda n: Decimal(n).scaleb(-3, WIDE)),
    pa.date32(): st.dates(),
    pa.timestamp("ns"): st.integers(-(2**63), 2**63 - 1).map(lambda n: pa.scalar(n, pa.timestamp("ns"))),
}


def nested_types(depth: int = 2) -> st.SearchStrategy[pa.DataType]:
    leaves = st.sampled_from(list(LEAVES))
    if not depth:
        return leaves
    below = nested_types(depth - 1)
    fields = st.lists(below, max_size=3).map(lambda kinds: pa.struct([(f"f{i}", kind) for i, kind in enumerate(kinds)]))
    maps = st.tuples(leaves, below).map(lambda pair: pa.map_(*pair))
    return leaves | fields | maps | below.map(pa.list_)


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        some: st.SearchStrategy[Any] = st.fixed_dictionaries({f.name: values_of(f.type) for f in kind})
    elif pa.types.is_map(kind):
        some = st.lists(st.tuples(values_of(kind.key_type).filter(lambda k: k is not None), values_of(kind.item_type)))
    elif pa.types.is_list(kind):
        some = st.lists(values_of(kind.value_type), max_size=4)
    else:
        some = LEAVES[kind]
    return st.none() | some


def canonical(value: Any) -> Any:
    """A Python value that is equal where Hive's value is the same, NaN and the sign of 0 included."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    if isinstance(value, dict):
        return ("struct", *(canonical(field) for _, field in sorted(value.items())))
    if isinstance(value, list | tuple):
        return ("list", *map(canonical, value))
    return value.value if isinstance(value, pa.TimestampScalar) else value


def keys_of(ids: list[int]) -> Keys:
    columns = np.asarray(ids, np.int64)
    return Keys(columns // 100, columns // 10, columns)


@st.composite
def tables(draw: Any) -> tuple[pa.StructType, list[tuple[int, Any]], list[tuple[int, Any]]]:
    """A row type and two lists of (key, row) that are often nearly the same."""
    kind = pa.struct([(f"c{i}", draw(nested_types())) for i in range(draw(st.integers(1, 3)))])
    row = st.tuples(st.integers(0, 3), values_of(kind))
    one = draw(st.lists(row, max_size=5))
    other = draw(st.permutations(one))
    change = draw(st.sampled_from(["none", "drop", "repeat", "change", "swap", "all"]))
    if change == "all":
        other = draw(st.lists(row, max_size=5))
    elif other and change == "drop":
        other = other[1:]
    elif other and change == "repeat":
        other = [*other, other[0]]
    elif other and change == "change":
        other = [(other[0][0], draw(values_of(kind))), *other[1:]]
    elif len(other) > 1 and change == "swap":
        other = [(other[0][0], other[1][1]), (other[1][0], other[0][1]), *other[2:]]
    return kind, one, list(other)


def checksum(kind: pa.DataType, rows: list[tuple[int, Any]], keyed: bool = True) -> int:
    array = pa.array([row for _, row in rows], kind)
    return value_checksum(keys_of([key for key, _ in rows]) if keyed else None, array)


@MANY
@given(tables(), st.booleans())
def test_equal_as_the_model_says(case: Any, keyed: bool) -> None:
    kind, one, other = case

    def model(rows: list[tuple[int, Any]]) -> Counter[Any]:
        return Counter((key if keyed else 0, canonical(row)) for key, row in rows)

    assert (checksum(kind, one, keyed) == checksum(kind, other, keyed)) == (model(one) == model(other))


@MANY
@given(tables(), st.integers(0, 5))
def test_parts_add_up_and_slices_do_not_matter(case: Any, cut: int) -> None:
    kind, rows, _ = case
    whole = pa.array([None, *(row for _, row in rows), None], kind).slice(1, len(rows))
    keys = keys_of([key for key, _ in rows])
    cut = min(cut, len(rows))
    parts = [value_checksum(keys.take(part), whole[part]) for part in (slice(0, cut), slice(cut, len(rows)))]
    assert add(*parts) == value_checksum(keys, whole) == checksum(kind, rows)


UNION = arrow_type(
    OrcType("uniontype", children=(OrcType("int"), OrcType("string"), OrcType("array", children=(OrcType("int"),))))
)
MEMBERS = (st.integers(-3, 3), st.text(max_size=3), st.lists(st.integers(-3, 3), max_size=3))
TAGGED = st.integers(-1, 2).flatmap(
    lambda tag: st.tuples(st.just(tag), st.none() if tag < 0 else MEMBERS[tag] | st.none())
)


def unions(rows: list[tuple[int, Any]], null_member: bool) -> pa.Array:
    tags = np.array([tag for tag, _ in rows], np.int8)
    children = [pa.array([value if tag == i else None for tag, value in rows], UNION.field(i).type) for i in range(3)]
    if null_member:
        array = with_nulls(np.maximum(tags, 0), children, tags < 0)
    else:
        array = pa.UnionArray.from_sparse(pa.array(tags, pa.int8()), children)
    return pa.StructArray.from_arrays([array], names=["u"])


@MANY
@given(st.lists(TAGGED, max_size=4), st.lists(TAGGED, max_size=4))
@example([(-1, None)], [(0, None)])
def test_unions_have_equal_checksums_where_tags_and_values_are(one: list[Any], other: list[Any]) -> None:
    same = Counter((tag, canonical(value)) for tag, value in one) == Counter(
        (tag, canonical(value)) for tag, value in other
    )
    assert (value_checksum(None, unions(one, True)) == value_checksum(None, unions(other, True))) == same


@MANY
@given(st.lists(TAGGED.filter(lambda row: row[0] >= 0), min_size=1, max_size=6))
def test_a_union_may_come_with_the_alternative_for_null_or_without(rows: list[Any]) -> None:
    sliced = unions([(2, [9]), *rows], True).slice(1)
    assert value_checksum(None, unions(rows, False)) == value_checksum(None, sliced)


WIDE_SECONDS = st.integers(-(10**11), 3 * 10**11)


@MANY
@given(st.lists(st.tuples(WIDE_SECONDS, st.integers(0, 999_999_999)) | st.none(), max_size=6), st.booleans())
@example([(0, 0), (18_446_744_073, 709_551_616)], False)
def test_both_forms_of_timestamps_are_alike(moments: list[tuple[int, int] | None], instant: bool) -> None:
    like = pa.array([moment and 1 for moment in moments], pa.int64())
    seconds, nanos = (np.array([m[i] if m else 0 for m in moments], np.int64) for i in (0, 1))
    array = wide(seconds, nanos, like, instant)
    alone = [
        value_checksum(None, pa.StructArray.from_arrays([one if widen else as_nanoseconds(one)], names=["t"]))
        for one in (array.slice(i, 1) for i in range(len(array)))
        for widen in (True, False)
    ]
    assert alone[::2] == alone[1::2]
    assert len(set(alone)) == len(set(moments))
    total = 0
    for each in alone[::2]:
        total = add(total, each)
    assert value_checksum(None, pa.StructArray.from_arrays([array], names=["t"])) == total


def test_the_units_of_timestamps_are_alike() -> None:
    moment = datetime.datetime(1969, 12, 31, 23, 59, 58, 123000)
    arrays = [pa.array([moment, None], pa.timestamp(unit)) for unit in ("ms", "us", "ns")]
    arrays.append(widened(arrays[-1]))
    sums = {value_checksum(None, pa.StructArray.from_arrays([array], names=["t"])) for array in arrays}
    assert len(sums) == 1


def test_encodings_of_strings_are_alike() -> None:
    texts = ["", None, "a", "bb" * 9, "a"]
    plain = pa.array(texts)
    arrays = [plain, plain.dictionary_encode(), plain.cast(pa.large_string()), plain.cast(pa.string_view())]
    sums = {value_checksum(None, pa.StructArray.from_arrays([array], names=["s"])) for array in arrays}
    assert len(sums) == 1


def test_short_strings_are_alike_beside_long_ones() -> None:
    short, long = ["", "a", "12345678", "123456789", None, "x" * 31, "é" * 16], ["y" * 33, "z" * 99]
    one, other, both = (
        value_checksum(None, pa.StructArray.from_arrays([pa.array(values)], ["s"]))
        for values in (short, long, [*long, *short])
    )
    assert add(one, other) == both


def test_the_checksums_of_columns_come_with_those_of_rows() -> None:
    """A checksum ignores the order of the columns, and differs between places."""
    numbers, texts = pa.array([1, 2, None, 2]), pa.array(["a", None, "b", "c"])
    whole, (first, second) = row_and_column_checksums(None, pa.StructArray.from_arrays([numbers, texts], ["n", "s"]))
    assert whole == value_checksum(None, pa.StructArray.from_arrays([numbers, texts], ["n", "s"]))
    assert (first, second) == (column_checksum(numbers, 0), column_checksum(texts, 1))
    assert column_checksum(numbers.take(pa.array([3, 2, 0, 1])), 0) == first
    assert len({first, column_checksum(numbers, 1), column_checksum(pa.array([1, 2, None, 3]), 0)}) == 3
    assert column_checksum(pa.array([1, 1, None, 3]), 0) != first, "of the same sum"


def test_what_is_null_is_like_nothing_else() -> None:
    inner = pa.struct([("a", pa.int32())])
    kind = pa.struct([("s", inner)])
    rows = [None, {"s": None}, {"s": {"a": None}}, {"s": {"a": 0}}]
    assert len({checksum(kind, [(0, row)]) for row in rows}) == 4
    lists = pa.struct([("l", pa.list_(pa.string()))])
    cases = [{"l": None}, {"l": []}, {"l": [None]}, {"l": [""]}, {"l": ["", ""]}, {"l": [None, ""]}, {"l": ["", None]}]
    assert len({checksum(lists, [(0, row)]) for row in cases}) == len(cases)


def test_nans_are_alike_and_zeros_are_not() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64).view(np.float64)
    sums = {value_checksum(None, pa.StructArray.from_arrays([pa.array([nan])], names=["d"])) for nan in bits}
    assert len(sums) == 1
    kind = pa.struct([("d", pa.float64())])
    assert checksum(kind, [(0, {"d": 0.0})]) != checksum(kind, [(0, {"d": -0.0})])


def test_spaces_at_the_end_of_char_do_not_count() -> None:
    row = OrcType("struct", children=(OrcType("array", children=(OrcType("char", max_length=5),)),), names=("c",))
    one, other, third = (
        pa.array([{"c": [text, ""]}], pa.struct([("c", pa.list_(pa.string()))])) for text in ("ab", "ab   ", " ab")
    )
    assert value_checksum(None, one, row) == value_checksum(None, other, row)
    assert value_checksum(None, one) != value_checksum(None, other)
    assert value_checksum(None, one, row) != value_checksum(None, third, row)


def test_long_values_and_many_rows() -> None:
    generator = np.random.default_rng(1)
    texts = ["".join(map(chr, generator.integers(32, 120, size))) for size in (700_000, 3, 0, 9_000_001, 64)]
    kind = pa.struct([("s", pa.string()), ("l", pa.list_(pa.int64()))])
    rows = [{"s": text, "l": list(range(i * 30_000))} for i, text in enumerate(texts)]
    whole = checksum(kind, list(enumerate(rows)))
    total = 0
    for i in (3, 0, 4, 1, 2):
        total = add(total, checksum(kind, [(i, rows[i])]))
    assert whole == total
    changed = texts[3][:5_000_000] + "~" + texts[3][5_000_001:]
    assert changed != texts[3]
    assert checksum(kind, [(3, {**rows[3], "s": changed})]) != checksum(kind, [(3, rows[3])])
    count = 3 * _MOST_ROWS + 17
    many = pa.StructArray.from_arrays(
        [pa.array(np.arange(count)), pa.array(np.arange(count) % 7).cast("string")], names="ab"
    )
    keys = keys_of(list(range(count)))
    order = generator.permutation(count)
    assert value_checksum(keys, many) == value_checksum(keys.take(order), many.take(pa.array(order)))
    assert value_checksum(keys, many) != value_checksum(keys, many.take(pa.array(order)))


def test_a_hidden_value_below_a_null_does_not_count() -> None:
    child = pa.array([1, 2, 3], pa.int32())
    masked = pa.StructArray.from_arrays([child], names=["a"], mask=pa.array([False, True, False]))
    offsets = pa.array([0, 1, 2, 3], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, child, mask=pa.array([False, True, False]))
    rows = pa.StructArray.from_arrays([masked, lists], names=["s", "l"])
    plain = pa.array([{"s": {"a": 1}, "l": [1]}, {"s": None, "l": None}, {"s": {"a": 3}, "l": [3]}], rows.type)
    assert value_checksum(None, rows) == value_checksum(None, plain)


def test_a_type_that_no_reader_gives_is_refused() -> None:
    array = pa.array([datetime.timedelta(1)])
    with pytest.raises(BadDataError, match="duration"):
        value_checksum(None, pa.StructArray.from_arrays([array], names=["d"]))
