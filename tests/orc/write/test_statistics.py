"""Merged statistics against a simple model: what the values themselves say."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.write.statistics import merge_column_statistics, merge_statistics

LONG = st.integers(-(1 << 63), (1 << 63) - 1)


def ints(values: Sequence[int]) -> pb.IntegerStatistics:
    total = sum(values)
    return pb.IntegerStatistics(
        minimum=min(values, default=None),
        maximum=max(values, default=None),
        sum=total if -(1 << 63) <= total < 1 << 63 else None,
    )


def doubles(values: Sequence[float]) -> pb.DoubleStatistics:
    return pb.DoubleStatistics(minimum=min(values, default=None), maximum=max(values, default=None), sum=sum(values))


def strings(values: Sequence[bytes]) -> pb.StringStatistics:
    return pb.StringStatistics(
        minimum=min(values, default=None), maximum=max(values, default=None), sum=sum(map(len, values))
    )


def buckets(values: Sequence[bool]) -> pb.BucketStatistics:
    return pb.BucketStatistics(count=[sum(values)])


def decimals(values: Sequence[Decimal]) -> pb.DecimalStatistics:
    low, high = min(values, default=None), max(values, default=None)
    return pb.DecimalStatistics(
        minimum=None if low is None else str(low),
        maximum=None if high is None else str(high),
        sum=format(sum(values, Decimal(0)).normalize(), "f") if values else "0",
    )


def dates(values: Sequence[int]) -> pb.DateStatistics:
    return pb.DateStatistics(minimum=min(values, default=None), maximum=max(values, default=None))


def timestamps(values: Sequence[tuple[int, int]]) -> pb.TimestampStatistics:
    if not values:
        return pb.TimestampStatistics()
    low, high = min(values), max(values)
    block = pb.TimestampStatistics(minimumUtc=low[0], maximumUtc=high[0])
    if low[1]:
        block.minimumNanos = low[1] + 1
    if high[1] != 999_999:
        block.maximumNanos = high[1] + 1
    return block


def binaries(values: Sequence[bytes]) -> pb.BinaryStatistics:
    return pb.BinaryStatistics(sum=sum(map(len, values)))


def collections(values: Sequence[int]) -> pb.CollectionStatistics:
    return pb.CollectionStatistics(
        minChildren=min(values, default=None), maxChildren=max(values, default=None), totalChildren=sum(values)
    )


KINDS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], Any]]] = {
    "intStatistics": (st.one_of(st.integers(-5, 5), LONG), ints),
    "doubleStatistics": (st.integers(-1000, 1000).map(float), doubles),
    "stringStatistics": (st.binary(max_size=4), strings),
    "bucketStatistics": (st.booleans(), buckets),
    "decimalStatistics": (st.decimals("-99999.99", "99999.99", places=2, allow_nan=False), decimals),
    "dateStatistics": (st.integers(-(1 << 31), (1 << 31) - 1), dates),
    "timestampStatistics": (st.tuples(st.integers(-(10**15), 10**15), st.sampled_from([0, 1, 5, 999_999])), timestamps),
    "binaryStatistics": (st.binary(max_size=4), binaries),
    "collectionStatistics": (st.integers(0, 9), collections),
}


def describe(name: str, values: Sequence[Any]) -> pb.ColumnStatistics:
    """What a correct writer says of `values`, None being null."""
    present = [value for value in values if value is not None]
    result = pb.ColumnStatistics(numberOfValues=len(present), hasNull=len(present) < len(values), bytesOnDisk=3)
    getattr(result, name).CopyFrom(KINDS[name][1](present))
    getattr(result, name).SetInParent()
    return result


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_merging_says_what_all_values_say(name: str, data: st.DataObject) -> None:
    column = st.lists(st.one_of(st.none(), KINDS[name][0]), max_size=6)
    parts = data.draw(st.lists(column, min_size=1, max_size=4))
    merged = merge_statistics([describe(name, part) for part in parts])
    expected = describe(name, [value for part in parts for value in part])
    expected.bytesOnDisk = 3 * len(parts)
    if name == "intStatistics" and not merged.intStatistics.HasField("sum"):
        # A part that overflowed by itself leaves its sum unknown, even where the whole would fit again.
        expected.intStatistics.ClearField("sum")
        holders = [part for part in parts if any(value is not None for value in part)]
        sums = [describe(name, part).intStatistics for part in holders]
        total = sum(block.sum for block in sums)
        assert not all(block.HasField("sum") for block in sums) or not -(1 << 63) <= total < 1 << 63
    if name == "decimalStatistics" and expected.decimalStatistics.minimum:
        for field in ("minimum", "maximum", "sum"):
            got, wanted = (getattr(one.decimalStatistics, field) for one in (merged, expected))
            assert Decimal(got) == Decimal(wanted)
        merged.ClearField("decimalStatistics")
        expected.ClearField("decimalStatistics")
    assert merged == expected


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_an_unknown_part_makes_the_whole_unknown(name: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(KINDS[name][0], min_size=1, max_size=4))
    known, unknown = describe(name, values), describe(name, values)
    unknown.ClearField(name)
    unknown.ClearField("hasNull")
    unknown.ClearField("bytesOnDisk")
    merged = merge_statistics([known, unknown])
    assert merged == pb.ColumnStatistics(numberOfValues=2 * len(values))
    # A part without values cannot spoil anything.
    empty = pb.ColumnStatistics(numberOfValues=0, hasNull=True, bytesOnDisk=1)
    assert merge_statistics([known, empty]).HasField(name)


@pytest.mark.parametrize("name", ["intStatistics", "doubleStatistics", "stringStatistics", "dateStatistics"])
@pytest.mark.parametrize("bound", ["minimum", "maximum"])
def test_one_bound_missing_is_none_at_all(name: str, bound: str) -> None:
    whole = describe(name, {"stringStatistics": [b"a"], "doubleStatistics": [1.0]}.get(name, [1]))
    half = pb.ColumnStatistics.FromString(whole.SerializeToString())
    getattr(half, name).ClearField(bound)
    assert not merge_statistics([whole, half]).HasField(name)


@given(st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=3), st.booleans(), st.booleans()), min_size=1))
def test_string_bounds_stay_bounds(parts: list[tuple[bytes, bytes, bool, bool]]) -> None:
    """A bound never becomes a value; an exact extreme is said only where no bound could hide a better one."""
    inputs, lows, highs = [], [], []
    for one, other, exact_low, exact_high in parts:
        low, high = min(one, other), max(one, other)
        block = pb.StringStatistics(sum=1)
        setattr(block, "minimum" if exact_low else "lowerBound", low)
        setattr(block, "maximum" if exact_high else "upperBound", high)
        lows.append((low, exact_low))
        highs.append((high, exact_high))
        inputs.append(pb.ColumnStatistics(numberOfValues=2, hasNull=False, stringStatistics=block))
    merged = merge_statistics(inputs).stringStatistics
    assert (merged.minimum or merged.lowerBound) == min(lows)[0]
    assert (merged.maximum or merged.upperBound) == max(highs)[0]
    assert merged.HasField("minimum") == ((min(lows)[0], True) in lows)
    assert merged.HasField("maximum") == ((max(highs)[0], True) in highs)
    assert merged.HasField("minimum") != merged.HasField("lowerBound")


def test_nan_makes_doubles_unknown() -> None:
    one = describe("doubleStatistics", [1.0])
    nan = pb.ColumnStatistics(
        numberOfValues=2, hasNull=False, doubleStatistics=pb.DoubleStatistics(minimum=1, maximum=1, sum=math.nan)
    )
    assert not merge_statistics([one, nan]).HasField("doubleStatistics")
    assert not merge_statistics([nan]).HasField("doubleStatistics")
    unsaid = describe("doubleStatistics", [1.0])
    unsaid.doubleStatistics.ClearField("sum")
    assert not merge_statistics([nan, unsaid]).HasField("doubleStatistics")
    assert merge_statistics([one, unsaid]).doubleStatistics == unsaid.doubleStatistics


def test_minus_zero_is_less_than_zero() -> None:
    merged = merge_statistics([describe("doubleStatistics", [0.0]), describe("doubleStatistics", [-0.0])])
    assert math.copysign(1, merged.doubleStatistics.minimum) == -1
    assert math.copysign(1, merged.doubleStatistics.maximum) == 1


def text_block(low: str, high: str, total: str | None) -> pb.ColumnStatistics:
    block = pb.DecimalStatistics(minimum=low, maximum=high, sum=total)
    return pb.ColumnStatistics(numberOfValues=1, hasNull=False, decimalStatistics=block)


def test_decimals_are_compared_as_numbers_and_keep_their_text() -> None:
    merged = merge_statistics([text_block("9.50", "9.50", "9.50"), text_block("-10", "10", "0")]).decimalStatistics
    assert (merged.minimum, merged.maximum, merged.sum) == ("-10", "10", "9.5")


def test_decimal_sum_beyond_38_digits_is_dropped() -> None:
    most = "9" * 38
    merged = merge_statistics([text_block(most, most, most), text_block("1", "1", "1")]).decimalStatistics
    assert (merged.minimum, merged.maximum, merged.HasField("sum")) == ("1", most, False)
    exact = merge_statistics([text_block("0", "0", "0." + "1" * 38), text_block("0", "0", "-0." + "1" * 38)])
    assert exact.decimalStatistics.sum == "0"


@pytest.mark.parametrize("text", ["", "x", "NaN", "Infinity", "1e999999999", "1" * 200])
def test_hostile_decimals_are_unknown(text: str) -> None:
    assert not merge_statistics([text_block("1", "1", "1"), text_block(text, "1", "1")]).HasField("decimalStatistics")
    merged = merge_statistics([text_block("1", "1", "1"), text_block("1", "1", text)]).decimalStatistics
    assert merged.minimum == "1" and not merged.HasField("sum")


def test_local_timestamps_of_old_writers() -> None:
    old = pb.ColumnStatistics(numberOfValues=1, hasNull=False)
    old.timestampStatistics.minimum, old.timestampStatistics.maximum = 5, 9
    new = describe("timestampStatistics", [(7, 0)])
    assert merge_statistics([old, old]).timestampStatistics.maximum == 9
    assert not merge_statistics([old, new]).HasField("timestampStatistics")


def test_counts_that_overflow_are_unknown() -> None:
    most = pb.ColumnStatistics(numberOfValues=(1 << 64) - 1, hasNull=True, bytesOnDisk=(1 << 64) - 1)
    most.bucketStatistics.count.append((1 << 64) - 1)
    assert merge_statistics([most, most]) == pb.ColumnStatistics(hasNull=True)


def test_statistics_of_several_columns_are_merged_column_by_column() -> None:
    one = [describe("intStatistics", [1]), describe("stringStatistics", [b"a"])]
    two = [describe("intStatistics", [2]), describe("stringStatistics", [b"b"])]
    first, second = merge_column_statistics([one, two])
    assert (first.intStatistics.maximum, second.stringStatistics.maximum) == (2, b"b")
    assert merge_column_statistics([]) == []
    with pytest.raises(BadDataError):
        merge_column_statistics([one, two[:1]])
