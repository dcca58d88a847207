"""Hashes of bucket columns, by both of Hive's versions; tests/oracle compares many more with a real Hive's."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acidctl.base.errors import RefusedError
from acidctl.orc.types import arrow_type, parse_type
from acidctl.writing.rows.bucket_hashes import buckets_of, check_bucket_type, hash_column

SECOND = 10**9
HASHES: list[tuple[str, list[Any], list[int] | None, list[int]]] = [
    ("boolean", [True], [1], [1]),
    ("tinyint", [-5], [-5], [-5]),
    ("int", [-5], [-5], [-371755554]),
    ("bigint", [(1 << 32) + 7], [6], [-1380162952]),
    ("float", [-0.5], [-1090519040], [-608639994]),
    ("double", [1.5, float("nan")], [1073217536, 2146959360], [76905473, 1138026565]),
    ("string", ["abc", "long, with é"], [96354, 30160624], [-885266671, 81106985]),
    ("varchar(9)", ["abc"], [126145], [-885266671]),
    ("char(9)", ["abc  "], [126145], [-885266671]),
    ("date", [datetime.date(1969, 12, 31)], [-1], [1626716813]),
    ("timestamp", [0, 1500000000 * SECOND + SECOND // 2, -SECOND], None, [1362653161, -928963406, -2005195780]),
    ("decimal(5,2)", [Decimal("1.50"), Decimal("-128.00")], [466, -3968], [864210675, 1104592682]),
    (
        "decimal(38,2)", [Decimal("1.50"), Decimal("-1234567890123456789012.34")],
        [466, 2118206904], [864210675, -327022819],
    ),
    ("array<int>", [[1, None, 3], []], [964, 0], [-499112669, 0]),
    ("map<string,int>", [[("a", 1), ("b", None)]], [194], [1048431051]),
    ("struct<a:int,b:string>", [{"a": 1, "b": "x"}], [151], [-1375925603]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "values", "java", "murmur"), HASHES)
def test_a_value_has_hive_s_hash_and_null_has_0(
    text: str, values: list[Any], java: list[int] | None, murmur: list[int]
) -> None:
    kind = parse_type(text)
    column = pa.array([values[-1], None, *values], arrow_type(kind))[1:]
    for version, hashes in ((1, java), (2, murmur)):
        if hashes is not None:
            assert hash_column(column, kind, version).view(np.int32).tolist() == [0, *hashes]


def test_a_bucket_is_the_remainder_of_the_hash_of_all_columns_without_its_sign() -> None:
    kinds = [parse_type("int"), parse_type("string")]
    columns = [pa.array([-5, 1], pa.int32()), pa.array(["abc", None])]
    assert buckets_of(columns, kinds, 7, 1).tolist() == [(31 * -5 + 96354) % 2**31 % 7, 31 % 7]
    assert buckets_of(columns[:1], kinds[:1], 7, 1).tolist() == [(2**31 - 5) % 7, 1]


@pytest.mark.parametrize(
    ("text", "version"), [("binary", 2), ("array<binary>", 1), ("timestamp", 1), ("uniontype<int>", 2), ("int", 3)]
)
def test_a_type_whose_hash_is_unknown_is_refused(text: str, version: int) -> None:
    with pytest.raises(RefusedError):
        check_bucket_type(parse_type(text), version)
