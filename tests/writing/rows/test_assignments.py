"""The expressions of an UPDATE, each with the value that its column gets."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.orc.read.wide_timestamps import parts
from acidctl.orc.types import arrow_type, parse_type, row_of
from acidctl.writing.rows.assignments import parse_assignments
from acidctl.writing.rows.conform import fitted

TYPES = {
    "f": "float", "d": "double", "n": "decimal(38,10)", "b": "bigint", "i": "tinyint", "t": "timestamp", "a": "date",
    "s": "string", "y": "boolean",
}  # fmt: skip
OLD = {"f": 1.5, "d": 2.5, "n": Decimal("1.5"), "b": 5, "i": 100, "t": 0, "a": 3, "s": "x", "y": True}
ROW = row_of((name, parse_type(text)) for name, text in TYPES.items())


def new_value(text: str) -> pa.Array:
    """The new column of a table with two rows, the second of NULLs."""
    columns = [pa.array([OLD[name], None], arrow_type(kind)) for name, kind in ROW.fields()]
    ((name, value),) = parse_assignments(text, ROW, {}).values(pa.record_batch(columns, names=list(TYPES))).items()
    return fitted(name, value, ROW.children[ROW.names.index(name)], 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f = 0.5", [0.5, 0.5]),
        ("f = f * 2", [3.0, None]),
        ("d = d + 0.5", [3.0, None]),
        ("d = 1e3", [1000.0, 1000.0]),
        ("d = n * 2", [3.0, None]),
        ("n = n * 0 + 2", [Decimal(2), None]),
        ("n = n + 0.5", [Decimal(2), None]),
        ("n = 99999999999999999999", [Decimal(99999999999999999999)] * 2),
        ("b = -9223372036854775808", [-(2**63)] * 2),
        ("b = -b", [-5, None]),
        ("i = i - 1", [99, None]),
        ("a = date '9999-12-31'", [datetime.date(9999, 12, 31)] * 2),
        ("s = s || '!'", ["x!", None]),
        ("s = s || NULL", [None, None]),
        ("s = NULL || NULL || s", [None, None]),
        ("f = f + 0.25", [1.75, None]),
        ("f = f + 0.1", [float(np.float32(1.6)), None]),
        ("f = f * d", [3.75, None]),
        ("d = d * 0.5 - f", [-0.25, None]),
        ("d = 1e300", [1e300, 1e300]),
        ("d = -1e-300 * d", [-2.5e-300, None]),
        ("f = 1e-300", [0.0, 0.0]),
        ("y = null", [None, None]),
    ],
)
def test_an_expression_has_its_value_in_sql(text: str, expected: list[Any]) -> None:
    assert new_value(text).to_pylist() == expected


@pytest.mark.parametrize(
    ("text", "second", "nano"),
    [
        ("t = timestamp '9999-12-31 23:59:59'", 253402300799, 0),
        ("t = timestamp '2020-01-01 00:00:00.123456789'", 1577836800, 123456789),
        ("t = '9999-12-31 23:59:59.999999999'", 253402300799, 999999999),
        ("t = timestamp '1960-01-01 00:00:00.5'", -315619200, 500000000),
    ],
)
def test_a_timestamp_has_nine_digits_and_any_year(text: str, second: int, nano: int) -> None:
    seconds, nanos = parts(new_value(text))
    assert (seconds[0], nanos[0]) == (second, nano)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("t = timestamp 'x'", UsageProblem),
        ("i = i + 28", BadDataError),
        ("b = 0.5", BadDataError),
        ("f = d", BadDataError),
        ("f = 1e300", UsageProblem),
        ("d = 1e400", UsageProblem),
        ("n = 1e300", BadDataError),
        ("b = 1e30", BadDataError),
    ],
)
def test_what_does_not_fit_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error) as refused:
        new_value(text)
    assert "row 1" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "-- b = 1", "WHERE b = 1", "LIMIT 1", ";", "b = 1; b = 2",
        "b = 1, B = 2", "b = 1 WHERE i = 2", "b = 1 LIMIT 1", "b = 1 ORDER BY i", "b = u.b FROM u",
    ],
)  # fmt: skip
def test_a_text_that_is_not_assignments_alone_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem, match="cannot use"):
        parse_assignments(text, ROW, {})
