"""Texts of partition values, as Hive 3.1.3 and 4.0.1 write them in the names of partitions."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from acidctl.base.errors import RefusedError, UsageProblem
from acidctl.orc.types import arrow_type, parse_type
from acidctl.writing.rows.partition_values import fixed_text, partition_texts

TEXTS = [
    ("int", -3, "-3"),
    ("boolean", True, "true"),
    ("date", datetime.date(1899, 12, 31), "1899-12-31"),
    ("char(5)", "cd", "cd   "),
    ("varchar(5)", "cd", "cd"),
    ("decimal(10,2)", Decimal("1.50"), "1.5"),
    ("decimal(10,2)", Decimal("0.00"), "0"),
    ("decimal(10,2)", Decimal("100.00"), "100"),
    ("decimal(10,2)", Decimal("-0.01"), "-0.01"),
    ("decimal(38,0)", Decimal("9" * 38), "9" * 38),
    ("timestamp", datetime.datetime(2020, 1, 1), "2020-01-01 00:00:00"),
    ("timestamp", datetime.datetime(1969, 12, 31, 23, 59, 58, 500000), "1969-12-31 23:59:58.5"),
    ("string", None, "__HIVE_DEFAULT_PARTITION__"),
    ("char(5)", None, "__HIVE_DEFAULT_PARTITION__"),
    ("timestamp", None, "__HIVE_DEFAULT_PARTITION__"),
]


@pytest.mark.parametrize(("kind", "value", "text"), TEXTS)
def test_a_value_has_hive_s_text(kind: str, value: Any, text: str) -> None:
    node = parse_type(kind)
    assert partition_texts(pa.array([value], arrow_type(node)), node).to_pylist() == [text]


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        ("int", "01", "1"),
        ("char(5)", "cd", "cd   "),
        ("char(5)", "cd      ", "cd   "),
        ("boolean", "TRUE", "true"),
        ("decimal(10,2)", "1.50", "1.5"),
        ("timestamp", "2020-01-01 00:00:00.0", "2020-01-01 00:00:00"),
        ("float", "0.5", "0.5"),
    ],
)
def test_a_given_text_becomes_hive_s_text(kind: str, given: str, text: str) -> None:
    assert fixed_text(given, parse_type(kind), "p") == text


@pytest.mark.parametrize(("kind", "given"), [("int", "x"), ("varchar(2)", "xyz"), ("char(2)", "xyz"), ("date", "1")])
def test_a_text_that_is_no_value_of_its_key_is_refused(kind: str, given: str) -> None:
    with pytest.raises(UsageProblem) as refused:
        fixed_text(given, parse_type(kind), "p")
    assert f"p={given}" in refused.value.what


@pytest.mark.parametrize(
    ("kind", "value"), [("string", ""), ("string", "__HIVE_DEFAULT_PARTITION__"), ("char(5)", "  "), ("double", 1.5)]
)
def test_an_empty_text_the_text_for_null_and_a_floating_number_are_refused(kind: str, value: Any) -> None:
    node = parse_type(kind)
    with pytest.raises(RefusedError):
        partition_texts(pa.array([value], arrow_type(node)), node)


@pytest.mark.parametrize("kind", ["string", "int", "double", "char(40)"])
def test_the_text_for_null_is_no_given_value(kind: str) -> None:
    with pytest.raises(RefusedError, match="__HIVE_DEFAULT_PARTITION__"):
        fixed_text("__HIVE_DEFAULT_PARTITION__", parse_type(kind), "p")
