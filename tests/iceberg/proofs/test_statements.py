"""Statements by which engines compare both tables."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from support.command_line import Result as Run
from support.files.acid_files import insert, struct, write_acid, write_delta
from support.made.random_values import everything, random_array
from support.migrating import copy

from acidctl.base.errors import NotFoundError, RefusedError
from acidctl.iceberg.fields import fields_for
from acidctl.iceberg.proofs.statements import EngineSums
from acidctl.orc.types import OrcType, row_of


def expected(sums: EngineSums) -> dict[str, int]:
    """Return the numbers in a statement, by their names."""
    found = re.findall(r"'([^']*)', s[0-9]+, '(-?[0-9]+)'", sums.statement("x", "copy"))
    return {name: int(number) for name, number in found}


def test_checksums_of_texts_are_those_of_both_engines() -> None:
    choice = random.Random(1)
    texts = [None, "", "a", *("é" * choice.randrange(40) + str(at) for at in range(300))]
    sums = EngineSums("spark", fields_for(row_of([("s", OrcType("string"))])))
    sums.add({"s": pa.array(texts[:100])})
    sums.add({"s": pa.array(texts).slice(100)})
    whole = sum(zlib.crc32(text.encode()) for text in texts if text is not None)
    assert expected(sums) == {"rows": 303, "s values": 302, "s crc32": whole}


def test_sums_of_every_type_do_not_depend_on_stripes(tmp_path: Path) -> None:
    choice = random.Random(4)
    pairs = [(name, kind) for name, kind in everything(unions=False).fields() if name != "e"]
    row = struct(**dict(pairs))
    batch = pa.RecordBatch.from_arrays([random_array(kind, 300, choice) for kind in row.children], list(row.names))
    write_delta(tmp_path / "t", 1, batch, row=row)
    write_delta(tmp_path / "u", 1, batch.slice(0, 77), batch.slice(77), row=row)
    found = []
    for name in ("t", "u"):
        copy(tmp_path / name, tmp_path / f"copy_{name}")
        done = copy(tmp_path / name, tmp_path / f"copy_{name}", prove="trino")
        found.append(re.findall(r"ROW\(.*\)", done.statements))
    assert found[0] == found[1]
    assert any("times" in one for one in found[0])


def test_sql_is_printed_for_a_copy_that_is_up_to_date(tmp_path: Path, acidctl: Callable[..., Run]) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    write_acid(table / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, "a")))
    line = ("migrate", "--assume-committed=0s", table, "--to", to)
    assert acidctl(*line, "--prove=spark").status == NotFoundError.exit_status
    assert acidctl(*line, "--yes").status == 0
    found = acidctl(*line, "--prove=spark")
    assert (found.status, found.out.count("WITH sums AS"), found.out.count("'a sum', s2, '1'")) == (0, 2, 2)
    assert found.out.startswith(f"-- source: {table}")
    write_acid(table / "delta_0000002_0000002_0000" / "bucket_00000", insert(2, 0, (2, "b")))
    with pytest.raises(RefusedError, match="lacks what the Hive table has now"):
        copy(table, to, prove="trino")


def test_names_do_nothing_to_a_terminal(tmp_path: Path, acidctl: Callable[..., Run]) -> None:
    row = struct(**{"a\x1b[2J": OrcType("int")})
    write_acid(tmp_path / "t" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1,)), row=row)
    copy(tmp_path / "t", tmp_path / "copy")
    found = acidctl("migrate", "--assume-committed=0s", tmp_path / "t", "--to", tmp_path / "copy", "--prove=spark")
    assert "count(`a\\x1b[2j`)" in found.out
    assert "\x1b" not in found.out


def test_floors_of_the_least_decimals_are_added() -> None:
    sums = EngineSums("trino", fields_for(row_of([("n", OrcType("decimal", precision=9, scale=2))])))
    sums.add({"n": pa.array([Decimal("-9999999.99"), Decimal("1.50"), None], pa.decimal128(9, 2))})
    assert expected(sums) == {"rows": 3, "n values": 2, "n sum of floors": -9999999}


def test_names_are_quoted_as_the_engine_does() -> None:
    field = fields_for(row_of([("o'k \\", OrcType("int"))]))
    spark, trino = (EngineSums(engine, field).statement("hive:db.t", "source") for engine in ("spark", "trino"))
    assert "FROM db.t)" in spark
    assert 'FROM "db"."t")' in trino
    assert "`o'k \\`" in spark
    assert "'o\\'k \\\\ sum'" in spark
    assert "'o''k \\ sum'" in trino


def test_char_is_read_without_padding_in_hive_alone() -> None:
    sums = EngineSums("trino", fields_for(row_of([("c", OrcType("char", max_length=5))])), {"c"})
    assert 'crc32(to_utf8(rtrim("c")))' in sums.statement("hive:db.t", "source")
    assert "rtrim" not in sums.statement("hive:db.t_ice", "copy")
