"""Columns of a source as columns of a table: values unchanged or refused."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from acidctl.base.errors import BadDataError
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts
from acidctl.orc.types import parse_type
from acidctl.writing.rows.conform import RowConformer, fitted, joined

MICROS = pa.timestamp("us")
FAR = datetime.datetime(9999, 12, 31, 23, 59, 59, 5)
NEAR = datetime.datetime(2020, 1, 1, 0, 0, 0, 7)


def column(values: pa.Array, kind: str) -> pa.Array:
    batch = pa.record_batch([values], names=["c"])
    return RowConformer(batch.schema, ["c"], [parse_type(kind)]).columns(batch)[0]


def test_a_timestamp_of_any_year_of_hive_s_fits() -> None:
    assert column(pa.array([NEAR], pa.timestamp("us")), "timestamp").type == pa.timestamp("ns")
    far = column(pa.array([FAR, None], pa.timestamp("us")), "timestamp")
    assert isinstance(far.type, WideTimestamp)
    assert far.null_count == 1
    seconds, nanos = parts(far)
    assert (seconds[0], nanos[0]) == (253402300799, 5000)
    assert column(far.slice(1), "timestamp").type == pa.timestamp("ns")


def test_texts_of_far_timestamps_may_have_nine_digits() -> None:
    texts = [
        "2020-01-01 00:00:00.123456789",
        None,
        "9999-12-31",
        "9999-12-31T23:59:59.999999999",
        "1500-01-01 00:00:00.5",
    ]
    for given in (pa.array(texts), pa.array(texts).dictionary_encode(), pa.array(texts, pa.string_view())):
        found = column(given, "timestamp")
        seconds, nanos = parts(found)
        assert list(seconds) == [1577836800, 0, 253402214400, 253402300799, -14831769600]
        assert list(nanos) == [123456789, 0, 0, 999999999, 500000000]
        assert found.is_null().to_pylist() == [False, True, False, False, False]
    for wrong in ("9999-12-31 23:59:59.", "9999-12-31 23:59:59.1234567890", "9999-12-31 23:59:59Z", "9999-13-31", "x"):
        with pytest.raises(BadDataError, match="row 3") as refused:
            column(pa.array([*texts[:2], wrong, *texts[2:]]), "timestamp")
        assert wrong in refused.value.why


def test_parts_of_a_column_with_far_and_near_timestamps_are_joined() -> None:
    near, far = (column(pa.array([time], pa.timestamp("us")), "timestamp") for time in (NEAR, FAR))
    seconds, nanos = parts(joined([near, far]))
    assert list(seconds) == [1577836800, 253402300799]
    assert list(nanos) == [7000, 5000]
    assert joined([near, near]).type == pa.timestamp("ns")


@pytest.mark.parametrize(
    ("kind", "nest"),
    [
        ("struct<t:timestamp,i:int>", lambda time: {"t": time, "i": 1}),
        ("array<timestamp>", lambda time: [time, None]),
        ("map<string,timestamp>", lambda time: [("k", time)]),
    ],
)
def test_far_timestamps_fit_into_nested_columns(kind: str, nest: Callable[[datetime.datetime], Any]) -> None:
    coarse = {"struct": pa.struct({"t": MICROS, "i": pa.int32()}), "array<": pa.list_(MICROS)}
    source = coarse.get(kind[:6], pa.map_(pa.string(), MICROS))
    near, far = (column(pa.array([None, nest(time)], source), kind) for time in (NEAR, FAR))
    assert len(joined([near, far])) == 4
    assert "wide_timestamp" in str(far.type)
    assert "wide_timestamp" not in str(near.type)
    assert "253402300799" in str(joined([near, far])[3])
    assert "1577836800" in str(joined([near, far])[1])
    assert joined([near, far])[2].as_py() is None


def test_blanks_at_the_end_of_a_char_do_not_count() -> None:
    assert column(pa.array(["ab      ", " a", None]), "char(4)").to_pylist() == ["ab", " a", None]
    with pytest.raises(BadDataError, match="row 2"):
        column(pa.array(["ab", "ab   c"]), "char(4)")
    with pytest.raises(BadDataError, match="row 1"):
        column(pa.array(["ab   "]), "varchar(4)")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_time_with_a_zone_is_no_timestamp(zone: str) -> None:
    for times in (pa.array([NEAR], pa.timestamp("us", zone)), pa.array([[NEAR]], pa.list_(pa.timestamp("us", zone)))):
        with pytest.raises(BadDataError, match="cannot take values of the type"):
            column(times, "timestamp" if times.type == pa.timestamp("us", zone) else "array<timestamp>")


def test_a_decimal_of_an_expression_fits_a_floating_column() -> None:
    assert fitted("c", pa.scalar(Decimal("0.1")), parse_type("double"), 2).to_pylist() == [0.1, 0.1]
    assert fitted("c", pa.scalar(Decimal("0.5")), parse_type("float"), 1).to_pylist() == [0.5]
    with pytest.raises(BadDataError):
        column(pa.array([Decimal("0.1")]), "double")


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64()])
def test_an_integer_fits_a_decimal_with_room_for_it(kind: pa.DataType) -> None:
    assert column(pa.array([99, None], kind), "decimal(4,2)").to_pylist() == [Decimal("99.00"), None]
    assert column(pa.array([3], kind), "decimal(38,37)").to_pylist() == [Decimal(3)]
    with pytest.raises(BadDataError, match=r"row 2 .* decimal\(4,2\) and cannot hold '100'"):
        column(pa.array([99, 100, 101], kind), "decimal(4,2)")


def test_the_first_nested_value_that_does_not_fit_is_named() -> None:
    for values in ([[1], [], None, [2, 1 << 40]], [{"x": 1}, {"x": 2}, None, {"x": 1 << 40}]):
        with pytest.raises(BadDataError, match=r"row 4 .* cannot hold .*1099511627776"):
            column(pa.array(values), "array<int>" if isinstance(values[0], list) else "struct<x:int>")
