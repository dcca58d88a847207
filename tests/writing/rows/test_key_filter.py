"""Keys as a condition: the rows that they match, and the bounds that rule them out."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import table_of, writable

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.metastore.tables import HiveTable
from acidctl.orc.types import OrcType
from acidctl.rows.scan.pruning import ColumnBounds
from acidctl.writing.rows.key_filter import KeyFilter
from acidctl.writing.rows.key_lookup import KeyLookup

INT, TEXT = OrcType("int"), OrcType("string")
LONG = OrcType("bigint")


def between(low: Any, high: Any, kind: pa.DataType | None = None) -> ColumnBounds:
    return ColumnBounds(kind or pa.int64(), nulls=False, low=low, high=high)


def bounds(**known: ColumnBounds) -> Callable[[tuple[str, ...]], ColumnBounds | None]:
    return lambda path: known.get(path[0])


def numbers(*values: int | None) -> KeyFilter:
    return KeyFilter(["a"], [LONG], [pa.array(values, pa.int64())])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 4, False), (0, 5, True), (5, 5, True), (6, 9, False), (10, 20, True), (11, 20, False), (None, 4, False),
     (None, None, True), (10, None, True), (11, None, False)],
)  # fmt: skip
def test_a_range_without_keys_is_ruled_out(low: int | None, high: int | None, expected: bool) -> None:
    ends = [None if end is None else Fraction(end) for end in (low, high)]
    assert numbers(10, None, 5).may_match(bounds(a=between(*ends))) is expected


def test_keys_count_only_together() -> None:
    keys = KeyFilter(["a", "b"], [LONG, TEXT], [pa.array([1, 9]), pa.array(["x", "y"])])
    first = between(Fraction(0), Fraction(5))
    assert keys.may_match(bounds(a=first, b=between(b"x", b"x", pa.string())))
    assert not keys.may_match(bounds(a=first, b=between(b"y", b"z", pa.string())))


def test_a_column_of_one_value_is_left_out_unless_it_has_nulls() -> None:
    keys = KeyFilter(["a", "b"], [LONG, TEXT], [pa.array([1, 1]), pa.array(["x", "y"])])
    same = between(Fraction(1), Fraction(1))
    assert keys.narrowed(bounds(a=same)).paths == (("b",),)
    assert keys.narrowed(bounds(a=replace(same, nulls=True))).paths == (("a",), ("b",))


def test_dates_and_times_are_compared_in_their_units() -> None:
    day = pa.array([datetime.date(1970, 1, 11)])
    by_day = KeyFilter(["a"], [OrcType("date")], [day])
    assert by_day.may_match(bounds(a=between(Fraction(10), Fraction(10))))
    assert not by_day.may_match(bounds(a=between(Fraction(11), Fraction(12))))
    by_time = KeyFilter(["a"], [OrcType("timestamp")], [pa.array([5], pa.timestamp("ns"))])
    assert by_time.may_match(bounds(a=between(Fraction(5), Fraction(5))))
    assert not by_time.may_match(bounds(a=between(Fraction(6), Fraction(7))))


@pytest.mark.parametrize(
    ("kind", "value"), [(OrcType("boolean"), True), (OrcType("char", max_length=3), "a"), (OrcType("double"), 1.0)]
)
def test_values_that_bounds_do_not_order_are_never_ruled_out(kind: OrcType, value: Any) -> None:
    keys = KeyFilter(["a", "b"], [kind, LONG], [pa.array([value]), pa.array([1])])
    of_others = bounds(a=between(Fraction(7), Fraction(7)))
    assert keys.may_match(of_others)
    assert keys.narrowed(of_others).paths == keys.paths


def test_a_column_of_nulls_alone_is_ruled_out() -> None:
    assert not numbers(1).may_match(bounds(a=ColumnBounds(pa.int64(), values=False)))


def test_bloom_filters_are_asked_for_few_keys_alone() -> None:
    asked: list[Any] = []

    def absent(value: Any) -> bool:
        asked.append(value)
        return True

    known = replace(between(Fraction(0), Fraction(100)), absent=absent)
    assert not numbers(3, 4).may_match(bounds(a=known))
    assert asked == [3, 4]
    assert numbers(*range(100)).may_match(bounds(a=known))
    assert len(asked) == 2
    assert numbers(3).may_match(bounds(a=replace(known, absent=lambda _: False)))


def test_the_filter_of_a_partition_has_its_keys_by_their_numbers_without_their_partition() -> None:
    keys = KeyFilter(["day", "a"], [TEXT, LONG], [pa.array(["x", "y", "x"]), pa.array([1, 2, 3])])
    narrowed = keys.narrowed(bounds(day=between(b"x", b"x", pa.string())))
    assert narrowed.paths == (("a",),)
    assert narrowed.find([pa.array([1, 2, 3])]).tolist() == [0, -1, 2]
    twice = narrowed.narrowed(bounds(a=between(Fraction(3), Fraction(9))))
    assert twice.find([pa.array([1, 2, 3])]).tolist() == [-1, -1, 2]
    assert keys.narrowed(bounds(day=between(b"z", b"z", pa.string()))).find([pa.array([1])]).tolist() == [-1]
    alone = KeyFilter(["day"], [TEXT], [pa.array(["x", "y"])]).narrowed(bounds(day=between(b"x", b"x", pa.string())))
    assert alone.find([pa.array(["x", "y"])]).tolist() == [0, -1]


def test_blanks_at_the_end_of_a_char_do_not_count() -> None:
    keys = KeyFilter(["a"], [OrcType("char", max_length=4)], [pa.array(["a", "b  "])])
    assert keys.find([pa.array(["a   ", "b   ", "c   "])]).tolist() == [0, 1, -1]


_COLUMN = st.lists(st.one_of(st.none(), st.integers(0, 6)), min_size=0, max_size=30)


@settings(deadline=None)
@given(st.integers(1, 3).flatmap(lambda width: st.tuples(*[st.tuples(_COLUMN, _COLUMN)] * width)))
def test_keys_are_found_as_a_dictionary_finds_them(columns: Any) -> None:
    size = min(len(column) for column, _ in columns)
    count = min(len(column) for _, column in columns)
    keys = list(zip(*(column[:size] for column, _ in columns), strict=True))
    rows = list(zip(*(column[:count] for _, column in columns), strict=True))
    lookup = KeyLookup([pa.array(column[:size], pa.int64()) for column, _ in columns])
    found = lookup.find([pa.array(column[:count], pa.int64()) for _, column in columns])
    known = {key for key in keys if None not in key}
    assert [at >= 0 for at in found] == [row in known for row in rows]
    assert all(keys[at] == row for at, row in zip(found, rows, strict=True) if at >= 0)
    assert found.dtype == np.int64


@pytest.fixture
def table(tmp_path: FilePath) -> HiveTable:
    with FakeHive(4) as hive:
        writable(hive, tmp_path / "t", keys="day string")
        return table_of(hive)


def test_the_keys_of_a_user_have_partition_columns_first(table: HiveTable) -> None:
    keys = KeyFilter.of(table, pa.table({"B": ["x"], "Day": ["1"]}))
    assert keys.paths == (("day",), ("b",))
    assert keys.find([pa.array(["1", "2"]), pa.array(["x", "x"])]).tolist() == [0, -1]


def test_keys_that_cannot_be_keys_are_refused(table: HiveTable) -> None:
    with pytest.raises(UsageProblem, match="no column c"):
        KeyFilter.of(table, pa.table({"c": [1]}))
    with pytest.raises(UsageProblem, match="no columns"):
        KeyFilter.of(table, pa.table({}))
    with pytest.raises(BadDataError, match="row 2"):
        KeyFilter.of(table, pa.table({"a": [1, 2**40]}))


def test_a_column_whose_values_are_unknown_is_left_out_of_hope_alone() -> None:
    keys = KeyFilter(["a", "b"], [LONG, TEXT], [pa.array([1, 2, None]), pa.array(["x", None, "z"])])
    assert (keys.count, keys.nulls) == (1, 2)
    assert keys.without(set(), hopeful=False) is keys
    assert keys.without({("b",)}, hopeful=False) is False
    assert keys.without({("a",), ("b",)}, hopeful=True) is True
    hoped = keys.without({("b",)}, hopeful=True)
    assert isinstance(hoped, KeyFilter)
    assert hoped.find([pa.array([1, 9, None])]).tolist() == [0, -1, -1]
    nothing = KeyFilter(["a", "b"], [LONG, TEXT], [pa.array([1]), pa.array([None], pa.string())])
    assert nothing.without({("a",), ("b",)}, hopeful=True) is False
