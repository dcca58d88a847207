"""Constraints that Hive enforces: rows that break one are refused, and the table stays as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.writing import WrittenTable, written_table

from acidctl.base.errors import AcidctlError, BadDataError, RefusedError, UsageProblem
from acidctl.metastore.interface import ColumnConstraint, NotNull
from acidctl.verbs.writing.writable_table import WritableTable

OLD = [(1, "x")]


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WrittenTable]:
    with written_table(tmp_path / "t", {"a": "int", "b": "string"}, version=request.param) as made:
        made.door.table("db.t").insert(pa.table({"a": [1], "b": ["x"]}))
        yield made


def rows(a: list[int | None], b: list[str | None]) -> pa.Table:
    return pa.table({"a": pa.array(a, pa.int32()), "b": pa.array(b, pa.string())})


@pytest.mark.parametrize(
    "statement",
    [
        lambda door: door.insert(rows([2, None], ["y", "z"])),
        lambda door: door.insert(pa.table({"b": ["y"]})),
        lambda door: door.insert(rows([None], ["y"]), overwrite=True),
        lambda door: door.update("a = NULL", "b = 'x'"),
        lambda door: door.merge(rows([2, None], ["x", "new"]), "b"),
        lambda door: door.merge(pa.table({"b": ["new"]}), "b"),
    ],
)
def test_null_in_a_column_that_is_not_null_is_refused(table: WrittenTable, statement: Any) -> None:
    table.hive.not_null = (NotNull("A", is_enabled=True),)
    before = table.names
    with pytest.raises(BadDataError, match="no value in a"):
        statement(table.door.table("db.t"))
    assert (table.rows(), table.names) == (OLD, before)
    table.hive.not_null = (NotNull("a", is_enabled=False),)
    statement(table.door.table("db.t"))


def test_rows_that_keep_every_constraint_are_written(table: WrittenTable) -> None:
    table.hive.not_null = (NotNull("a", is_enabled=True),)
    table.hive.defaults = (ColumnConstraint("b", "'x'", is_enabled=True),)
    door = table.door.table("db.t")
    door.insert(rows([2], [None]))
    door.update("b = NULL", "a = 1")
    door.merge(rows([2, 3], ["y", "z"]), "a")
    assert table.rows() == [(1, None), (2, "y"), (3, "z")]


def test_rows_without_a_column_that_has_a_default_are_refused(table: WrittenTable) -> None:
    table.hive.defaults = (ColumnConstraint("B", "'x'", is_enabled=True),)
    for statement in (WritableTable.insert, lambda door, given: door.merge(given, "a")):
        with pytest.raises(UsageProblem, match="no column b") as refusal:
            statement(table.door.table("db.t"), pa.table({"a": [2]}))
        assert refusal.value.hint
    assert table.rows() == OLD


def test_a_table_with_checks_takes_deletes_only(table: WrittenTable) -> None:
    table.hive.checks = (ColumnConstraint("a", "a > 0", is_enabled=True),)
    door = table.door.table("db.t")
    statements: list[Any] = [
        lambda: door.insert(rows([2], ["y"])), lambda: door.update("b = 'y'", "true"),
        lambda: door.merge(rows([2], ["y"]), "a"),
    ]  # fmt: skip
    for statement in statements:
        with pytest.raises(RefusedError) as refusal:
            statement()
        assert "a > 0" in (refusal.value.why or "")
    assert table.rows() == OLD
    door.delete("a = 1")
    assert table.rows() == []


def test_a_metastore_that_cannot_answer_stops_the_statement(table: WrittenTable) -> None:
    table.hive.fault("get_check_constraints", "failed", times=9)
    with pytest.raises(AcidctlError):
        table.door.table("db.t").insert(rows([2], ["y"]))
    assert table.rows() == OLD
