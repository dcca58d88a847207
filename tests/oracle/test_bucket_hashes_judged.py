"""Bucket hashes of every type, judged by `hash` and `murmur_hash` of Hive 4.0.1."""

from __future__ import annotations

import datetime
import random
import string
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.files.acid_files import struct as row_of
from support.files.acid_files import write_plain
from support.servers.hive_server import HiveServer

from acidctl.orc.types import arrow_type, parse_type
from acidctl.writing.rows.bucket_hashes import hash_column

ROWS = 300
TYPES = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "varchar(40)", "char(12)", "date",
    "timestamp", "decimal(5,2)", "decimal(18,6)", "decimal(18,0)", "decimal(38,10)", "decimal(38,0)",
    "array<int>", "array<string>", "map<string,int>", "map<int,double>", "struct<a:int,b:string>",
    "struct<a:array<bigint>,b:struct<c:decimal(10,2),d:date>>",
)  # fmt: skip

pytestmark = pytest.mark.server


def value_of(chance: random.Random, kind: Any, depth: int = 0) -> Any:
    """A value of a type, often one at its limits; NULL now and then."""
    if chance.random() < 0.08:
        return None
    bits = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}.get(kind.kind)
    if bits:
        limit = 1 << (bits - 1)
        return chance.choice([0, -1, limit - 1, -limit, chance.randrange(-limit, limit)])
    if kind.kind == "boolean":
        return chance.random() < 0.5
    if kind.kind in ("float", "double"):
        number = chance.choice([0.0, -0.0, 1.5, -0.1, float("inf"), float("nan"), 5e-324, chance.gauss(0, 1e6)])
        return struct.unpack("f", struct.pack("f", number))[0] if kind.kind == "float" else number
    if kind.kind in ("string", "varchar", "char"):
        letters = string.ascii_letters + "é€漢 "
        text = "".join(chance.choice(letters) for _ in range(chance.choice([0, 1, 2, 3, 4, 7, 12])))
        return text + "x" * chance.choice([0, 20]) if kind.kind == "string" else text
    if kind.kind == "date":
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=chance.randrange(-100_000, 200_000) // 3)
    if kind.kind == "timestamp":
        nanos = chance.choice([0, 1, 100, 123_456_789, 999_999_999, 500_000_000])
        seconds = chance.choice([0, 1, -2, 0x7FFFFFFF, 0x80000000, chance.randrange(-(2**31), 2**32)])
        return seconds * 10**9 + nanos
    if kind.kind == "decimal":
        number = chance.choice([0, 1, -1, 10, 128, -128, 1200, chance.randrange(10**kind.precision)])
        whole = number % 10**kind.precision * chance.choice([1, -1])
        return Decimal(whole).scaleb(-kind.scale, Context(prec=40))
    if kind.kind == "array":
        return [value_of(chance, kind.children[0]) for _ in range(chance.randrange(4))]
    if kind.kind == "map":
        keys = {value_of(chance, kind.children[0]) for _ in range(chance.randrange(4))} - {None}
        return [(key, value_of(chance, kind.children[1])) for key in keys]
    return {name: value_of(chance, child) for name, child in kind.fields()}


@pytest.mark.parametrize("text", TYPES)
def test_hashes_are_hive_s(text: str, real_hives: Callable[[int], HiveServer], tmp_path: Path) -> None:
    hive = real_hives(4)
    kind = parse_type(text)
    chance = random.Random(text)
    values = pa.array([value_of(chance, kind) for _ in range(ROWS)], arrow_type(kind))
    types = row_of(n=parse_type("int"), c=kind)
    write_plain(
        tmp_path / "000000_0", pa.record_batch([pa.array(range(ROWS), pa.int32()), values], ["n", "c"]), row=types
    )
    hive.sql(
        "drop table if exists hashed",
        f"create external table hashed (n int, c {text}) stored as orc location 'file://{tmp_path}'",
    )
    rows = sorted(
        (int(n), int(java), int(murmur))
        for n, java, murmur in hive.sql("select n, hash(c), murmur_hash(c) from hashed")
    )
    assert len(rows) == ROWS
    for version, place in ((2, 2), (1, 1)):
        if version == 1 and text == "timestamp":
            continue  # hashed in the zone of Hive's Java
        ours = hash_column(values, kind, version).view(np.int32)
        wrong = [(values[n], row[place], int(ours[n])) for n, row in enumerate(rows) if row[place] != int(ours[n])]
        assert not wrong, f"version {version}: {len(wrong)} of {ROWS}: {wrong[:5]}"
