"""The plain model of JSON lines is itself right about calendars and digits."""

from __future__ import annotations

from decimal import Decimal

import pytest
from support.files.export_model import date_text, decimal_text, float_text


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "1970-01-01"),
        (-719162, "0001-01-01"),
        (-719163, "0000-12-31"),
        (-719528 - 1, "-0001-12-31"),
        (2932897, "10000-01-01"),
        (2**31 - 1, "5881580-07-11"),
        (-(2**31), "-5877641-06-23"),
    ],
)
def test_the_model_knows_the_calendar(days: int, text: str) -> None:
    assert date_text(days) == text


def test_the_model_knows_the_digits() -> None:
    assert [float_text(v, False) for v in (0.1, 1e300, 15.0, 1e-5, 1e-7, 2.0**33, 1e10, -0.0)] == [
        "0.1", "1e+300", "15.0", "0.00001", "1e-7", "8589934592.0", "1e+10", "-0.0",
    ]  # fmt: skip
    assert float_text(0.1, True) == "0.1"
    assert decimal_text(Decimal("100.00")) == "100"
    assert decimal_text(Decimal("0E-10")) == "0"
