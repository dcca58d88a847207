"""Arguments of library calls: values that are taken, and errors that name the argument."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from acidctl.base.arguments import (
    as_columns,
    as_count,
    as_flag,
    as_pairs,
    as_size,
    as_text,
    as_texts,
    as_write_id_or_time,
)
from acidctl.base.errors import UsageProblem


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"), (7, "7"), (np.int64(7), "7"), (True, "true"), (Decimal("1.50"), "1.50"), (0.5, "0.5"),
        (datetime.date(2026, 1, 2), "2026-01-02"), (datetime.datetime(2026, 1, 2), "2026-01-02 00:00:00"),
    ],
)  # fmt: skip
def test_the_value_of_a_column_becomes_its_text(value: object, text: str) -> None:
    assert as_columns({"q": value}, "partition") == (("q", text),)


@pytest.mark.parametrize(
    "given",
    [
        {"q": None}, {"q": b"x"}, {"q": [1]}, {"q": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)},
        {7: "x"}, [("q", "1"), ("Q", "2")], [("q", "1"), ("q", "1")], "q=1", [1],
    ],
)  # fmt: skip
def test_other_values_and_a_column_that_is_given_twice_are_refused(given: object) -> None:
    with pytest.raises(UsageProblem, match="partition"):
        as_columns(given, "partition")


def test_a_partition_by_null_is_refused_with_what_to_do() -> None:
    with pytest.raises(UsageProblem, match="gives p no value") as refused:
        as_columns({"q": 1, "p": None}, "partition")
    assert "leave it out" in refused.value.hint


@pytest.mark.parametrize(
    ("taken", "value", "expected"),
    [
        (lambda value: as_count(value, "x", 0, 7), np.int64(7), 7),
        (lambda value: as_count(value, "x", 0, None), 10, 10),
        (lambda value: as_size(value, "x"), "2k", 2048), (lambda value: as_size(value, "x"), np.int64(5), 5),
        (lambda value: as_texts(value, "x"), "ab", ("ab",)),
        (lambda value: as_texts(value, "x"), ["a", "b"], ("a", "b")),
        (lambda value: as_pairs(value, "x"), {"a": "b"}, (("a", "b"),)),
    ],
)  # fmt: skip
def test_a_value_is_taken_in_each_form(taken: Callable[[Any], Any], value: Any, expected: Any) -> None:
    assert taken(value) == expected


@pytest.mark.parametrize(
    ("taken", "values"),
    [
        (lambda value: as_count(value, "x", 1, 7), [True, 0, 8, "5", 1.0, None]),
        (lambda value: as_size(value, "x"), [True, 0, -1, "0", "many", 1.5, None]),
        (lambda value: as_write_id_or_time(value, "x"), [True, -1, "10:30", "9999-12-31T23:59-23:00"]),
        (lambda value: as_flag(value, "x"), [1, "false", None]),
        (lambda value: as_text(value, "x"), [1, b"a", None]),
        (lambda value: as_texts(value, "x"), [b"a", [1], {"a": 1}, None]),
        (lambda value: as_pairs(value, "x"), ["ab", {"a": 1}, ["ab"], [("a", "b", "c")], None]),
    ],
)
def test_another_value_is_refused_by_its_name(taken: Callable[[Any], Any], values: list[Any]) -> None:
    for value in values:
        with pytest.raises(UsageProblem, match="x cannot be"):
            taken(value)


def test_a_long_value_is_shown_in_part() -> None:
    with pytest.raises(UsageProblem) as refused:
        as_flag("y" * 10_000, "x")
    assert len(refused.value.what) < 300
