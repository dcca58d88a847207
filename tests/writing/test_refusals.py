"""Tables that acidctl must not write to: each is refused with its reason, before a transaction is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.metastore.writable import INPUTS, INSERT_ONLY, SERDES
from support.writing import WrittenTable, written_table
from thrift.Thrift import TType

from acidctl.base.errors import RefusedError
from acidctl.metastore import interface as wire
from acidctl.metastore.lossless import RawStruct, Value
from acidctl.verbs.writing.writable_table import WritableTable
from acidctl.writing import refusals


def table_with(**changes: Any) -> Callable[[WrittenTable], None]:
    def change(table: WrittenTable) -> None:
        table.hive.tables["db", "t"] = replace(table.hive.tables["db", "t"], **changes)

    return change


def parameters(**changes: str) -> Callable[[WrittenTable], None]:
    return table_with(parameters={"transactional": "true", **{key.replace("__", "."): changes[key] for key in changes}})


def storage_with(**changes: Any) -> Callable[[WrittenTable], None]:
    def change(table: WrittenTable) -> None:
        storage = table.hive.tables["db", "t"].storage
        assert storage
        table_with(storage=replace(storage, **changes))(table)

    return change


def in_turn(*changes: Callable[[WrittenTable], None]) -> Callable[[WrittenTable], None]:
    def change(table: WrittenTable) -> None:
        for each in changes:
            each(table)

    return change


def replicated(key: str) -> Callable[[WrittenTable], None]:
    def change(table: WrittenTable) -> None:
        table.hive.databases["db"] = replace(table.hive.databases["db"], parameters={key: "other"})

    return change


BUCKETED = storage_with(buckets=2, bucket_columns=("a",))

CASES: dict[str, tuple[Callable[[WrittenTable], None], str]] = {
    "a view": (table_with(table_type="MATERIALIZED_VIEW"), "materialized view"),
    "of a storage handler": (parameters(storage_handler="org.x.HBaseStorageHandler"), "stored by HBaseStorageHandler"),
    "of Iceberg": (parameters(table_type="ICEBERG"), "stored by ICEBERG"),
    "external": (table_with(table_type="EXTERNAL_TABLE"), "external"),
    "external by its parameter": (parameters(EXTERNAL="TRUE"), "external"),
    "not transactional": (parameters(transactional="false"), "not transactional"),
    "of another catalog": (table_with(catalog="spark"), "catalog spark"),
    "of unknown properties": (parameters(transactional_properties="rows"), "transactional_properties are rows"),
    "of full ACID in another format": (
        storage_with(serde=wire.SerDeInfo(None, SERDES["parquet"]), input_format=INPUTS["ParquetHiveSerDe"]),
        "full-ACID table in Parquet",
    ),
    "sorted": (storage_with(sort_columns=(wire.Order("a"),)), "sorted by a"),
    "bucketed by Spark": (in_turn(parameters(spark__sql__sources__schema="{}"), BUCKETED), "Spark bucketed it"),
    "bucketed in a later version": (in_turn(parameters(bucketing_version="3"), BUCKETED), "bucketing_version is 3"),
    "encrypted": (parameters(orc__encrypt="key:a"), "orc.encrypt"),
    "with a union": (storage_with(columns=(wire.FieldSchema("a", "uniontype<int,string>"),)), "uniontype"),
    "replicated": (replicated("repl.source.for"), "is replicated"),
    "written by replication": (replicated("repl.target.for"), "by replication alone"),
}


def insert(door: WritableTable) -> None:
    door.insert(pa.table({"a": [1]}))


def refused(table: WrittenTable, statement: Callable[[WritableTable], object] = insert) -> str:
    """Return the reason why a statement is refused, after a look at what that left."""
    before = table.names
    with pytest.raises(RefusedError) as refusal:
        statement(table.door.table("db.t"))
    assert refusal.value.hint
    assert (table.names, table.hive.calls.count("open_txns")) == (before, 0)
    return refusal.value.why or ""


@pytest.fixture
def table(tmp_path: Path) -> Any:
    with written_table(tmp_path / "t", {"a": "int"}) as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_a_table_that_acidctl_cannot_write_as_hive_does_is_refused(table: WrittenTable, name: str) -> None:
    change, why = CASES[name]
    change(table)
    assert why in refused(table)


@pytest.mark.parametrize("statement", [lambda door: door.delete("true"), lambda door: door.update("a = 2", "true")])
def test_rows_of_an_insert_only_table_are_not_changed(
    table: WrittenTable, statement: Callable[[WritableTable], object]
) -> None:
    parameters(**INSERT_ONLY)(table)
    assert "insert-only" in refused(table, statement)


def test_a_metastore_before_write_ids_is_refused(tmp_path: Path) -> None:
    with written_table(tmp_path / "t", {"a": "int"}, version=2) as table:
        assert "older than Hive 3" in refused(table)


@pytest.mark.parametrize("access", [1, 2, 4])
def test_a_table_that_the_client_may_only_read_is_refused(
    table: WrittenTable, access: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(raw: RawStruct) -> None:
        raw.fields[22] = Value(TType.BYTE, access)

    with_raw_fields(monkeypatch, change)
    assert "no right to write" in refused(table)


def test_skewed_values_with_directories_of_their_own_are_refused(
    table: WrittenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(raw: RawStruct) -> None:
        skewed = RawStruct({1: Value(TType.LIST, (TType.STRING, [b"a"]))})
        raw.fields[7].payload.fields |= {11: Value(TType.STRUCT, skewed), 12: Value(TType.BOOL, True)}

    with_raw_fields(monkeypatch, change)
    assert "skewed" in refused(table)


def with_raw_fields(monkeypatch: pytest.MonkeyPatch, change: Callable[[RawStruct], None]) -> None:
    """Change the fields of the table that only Hive's own struct has."""
    read = refusals.raw_table

    def changed(*arguments: Any) -> RawStruct:
        raw = read(*arguments)
        change(raw)
        return raw

    monkeypatch.setattr(refusals, "raw_table", changed)
