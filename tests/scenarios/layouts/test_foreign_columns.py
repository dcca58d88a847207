"""Columns of insert-only tables: fields inside columns of Parquet, text that is not UTF-8; NULL in a union."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from support.tables import json_rows, snapshot_of

from acidctl.base.errors import NotFoundError
from acidctl.orc.types import OrcType, arrow_type
from acidctl.rows.convert.conform import all_null
from acidctl.rows.scan.condition import parse_condition
from acidctl.rows.scan.scan import Scan

S = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string()), ("d", pa.list_(pa.int32()))]))])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two Parquet files; the older one lacks a column."""
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "s": pa.array([{"a": 1, "b": {"c": "x", "d": [1, 2]}}, None, {"a": None, "b": None}], S),
            "d.e": pa.array([4, 5, 6], pa.int64()),
        }
    )
    for number, found in ((1, rows), (2, rows.append_column("new", pa.array(["u", "v", "w"])))):
        folder = tmp_path / "t" / f"delta_{number:07}_{number:07}_0000"
        folder.mkdir(parents=True)
        pq.write_table(found, folder / "000000_0")
    return tmp_path / "t"


@pytest.mark.parametrize(
    ("columns", "where", "want"),
    [
        (["s.a"], None, [{"s.a": 1}, {"s.a": None}, {"s.a": None}] * 2),
        (["s.b.c", "S.A"], "id = 1", [{"s.b.c": "x", "s.a": 1}] * 2),
        (["s.b"], "id = 1", [{"s.b": {"c": "x", "d": [1, 2]}}] * 2),
        (["s.b.d", "new"], "s.b.c = 'x'", [{"s.b.d": [1, 2], "new": None}, {"s.b.d": [1, 2], "new": "u"}]),
        (["d.e"], "s.a IS NULL AND new = 'w'", [{"d.e": 6}]),
        (["new"], "s.b.c IS NULL AND new IS NOT NULL", [{"new": "v"}, {"new": "w"}]),
    ],
)
def test_fields_inside_of_parquet_columns_are_read(
    table: Path, columns: list[str], where: str | None, want: list[dict[str, Any]]
) -> None:
    assert json_rows(Scan(snapshot_of(table), columns, where=where)) == want


def test_a_field_that_is_not_there(table: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        Scan(snapshot_of(table), ["s.b.cc"])
    assert caught.value.hint.startswith("did you mean s.b.c")


def test_text_that_is_no_utf8(tmp_path: Path) -> None:
    """JSON shows what is not UTF-8 as U+FFFD; Arrow has the bytes as they are."""
    folder = tmp_path / "delta_0000001_0000001_0000"
    folder.mkdir()
    (folder / "000000_0").write_bytes(b"a\x01b\n\xff\x01c\xe9\n\nlast")
    scan = Scan(snapshot_of(tmp_path))
    odd = "\N{REPLACEMENT CHARACTER}"
    assert [row["line"] for row in json_rows(scan)] == ["a\x01b", f"{odd}\x01c{odd}", "", "last"]
    (batch,) = scan.batches()
    assert batch.column(0).cast(pa.binary()).to_pylist() == [b"a\x01b", b"\xff\x01c\xe9", b"", b"last"]
    assert Scan(snapshot_of(tmp_path), where="line > 'z'").count() == 1


def test_null_in_a_union_equals_null() -> None:
    union = OrcType("uniontype", children=(OrcType("int"), OrcType("string")))
    row = OrcType("struct", children=(union,), names=("u",))
    column = all_null(3, arrow_type(union))
    assert parse_condition("u <=> NULL", row).mask(lambda path: column).to_pylist() == [True] * 3
    assert parse_condition("u IS NULL", row).mask(lambda path: column).to_pylist() == [True] * 3
