"""What a rebalance sorts by: what is taken of SQL, and the order of values as Hive has it."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.base.errors import RefusedError
from acidctl.compaction.rebalance import SortColumn, parse_order, sort_keys, sorted_places

COLUMNS = ("id", "name", "my day")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id", [SortColumn(0)]),
        ("order by ID desc", [SortColumn(0, descending=True, nulls_first=True)]),
        ("name asc nulls first, id", [SortColumn(1, nulls_first=True), SortColumn(0)]),
        ("`my day` DESC NULLS LAST", [SortColumn(2, descending=True)]),
    ],
)
def test_columns_with_their_ways_are_understood(text: str, expected: list[SortColumn]) -> None:
    assert list(parse_order(text, COLUMNS)) == expected


@pytest.mark.parametrize("text", ["upper(name)", "id + 1", "2", "gone", "id,", "", "id desc desc", "id; drop table t"])
def test_whatever_else_is_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="cannot be sorted"):
        parse_order(text, COLUMNS)


def nan_last(value: float) -> tuple[bool, float]:
    return math.isnan(value), 0.0 if math.isnan(value) else value


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("kind", "values", "key"),
    [
        (pa.int32(), st.integers(-3, 3), None),
        (pa.float64(), st.sampled_from([1.5, -1.0, math.nan, math.inf, -math.inf]), nan_last),
        (pa.string(), st.sampled_from(["", "a", "B", "\u00e9", "\U0001f600", "\uffff", "a "]), str.encode),
        (pa.decimal128(20, 2), st.sampled_from([Decimal("1.10"), Decimal("-3.00"), Decimal("1234567890123.00")]), None),
        (pa.bool_(), st.booleans(), None),
        (pa.date32(), st.sampled_from([date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]), None),
        (pa.timestamp("ns"), st.sampled_from([datetime(1969, 1, 1, 0, 0, 0, 5), datetime(2020, 1, 1)]), None),
        (pa.timestamp("us"), st.sampled_from([datetime(1, 1, 1), datetime(2020, 1, 1), datetime(9999, 1, 1)]), None),
    ],
)  # fmt: skip
@given(data=st.data(), descending=st.booleans(), nulls_first=st.booleans())
def test_values_are_in_hives_order_and_equal_ones_stay_as_they_are(
    kind: pa.DataType,
    values: st.SearchStrategy[Any],
    key: Callable[[Any], Any] | None,
    data: st.DataObject,
    descending: bool,
    nulls_first: bool,
) -> None:
    some = data.draw(st.lists(st.none() | values, min_size=1, max_size=12))
    column = pa.StructArray.from_arrays([pa.array(some, kind)], names=["a"])
    order = (SortColumn(0, descending, nulls_first),)
    cut = data.draw(st.integers(0, len(some)))
    found = sorted_places([sort_keys(part, order) for part in (column[:cut], column[cut:])]).tolist()
    nulls = [place for place, value in enumerate(some) if value is None]
    others = [place for place, value in enumerate(some) if value is not None]
    others.sort(key=lambda place: (key or (lambda value: value))(some[place]), reverse=descending)
    assert found == ([*nulls, *others] if nulls_first else [*others, *nulls])


def test_a_column_that_no_file_has_yet_changes_nothing() -> None:
    rows = pa.StructArray.from_arrays([pa.array([2, 1])], names=["a"])
    assert sorted_places([sort_keys(rows, (SortColumn(1), SortColumn(0)))]).tolist() == [1, 0]
    assert sorted_places([sort_keys(rows, (SortColumn(1),))]).tolist() == [0, 1]
