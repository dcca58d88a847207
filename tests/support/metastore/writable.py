"""Make tables in a metastore of this process for statements to write to, and read them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import acidctl
from acidctl.location.walk import is_log
from acidctl.metastore import interface as wire
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import HiveTable, get_table
from support.metastore.fake_hive import FakeHive

INPUTS = {
    "OrcSerde": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    "ParquetHiveSerDe": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "LazySimpleSerDe": "org.apache.hadoop.mapred.TextInputFormat",
}
SERDES = {
    "orc": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    "parquet": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "text": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    "csv": "org.apache.hadoop.hive.serde2.OpenCSVSerde",
}
INSERT_ONLY = {"transactional_properties": "insert_only"}


def writable(
    hive: FakeHive,
    path: Path,
    columns: str | Mapping[str, str] = "a int, b string",
    keys: str | Mapping[str, str] = "",
    *,
    stored_as: str = "orc",
    parameters: Mapping[str, str] | None = None,
    delimiters: Mapping[str, str] | None = None,
    **storage: Any,
) -> None:
    """Make the table `db.t`.

    Args:
        columns, keys: types by name, or simple types as in CREATE TABLE.
        stored_as: a key of :data:`SERDES`.
        delimiters: properties of the SerDe.
    """
    serde = wire.SerDeInfo("", SERDES[stored_as], dict(delimiters or {}))
    input_format = INPUTS.get(SERDES[stored_as].rpartition(".")[2], INPUTS["LazySimpleSerDe"])
    hive.table("db", "t", str(path), parameters=parameters, serde=serde, **{"input_format": input_format, **storage})
    made = hive.tables["db", "t"]
    assert made.storage
    whole = replace(made.storage, columns=_fields(columns))
    hive.tables["db", "t"] = replace(made, storage=whole, partition_keys=_fields(keys))
    if "transactional_properties" in made.parameters:
        hive.answers["get_partitions_by_names"] = lambda _, __, names: _with_files(hive, names)
    path.mkdir(parents=True, exist_ok=True)


def _fields(columns: str | Mapping[str, str]) -> tuple[wire.FieldSchema, ...]:
    if isinstance(columns, str):
        columns = dict(column.split(" ", 1) for column in columns.split(", ") if column)
    return tuple(wire.FieldSchema(*column) for column in columns.items())


def _with_files(hive: FakeHive, names: Sequence[str]) -> list[wire.PartitionWithFiles]:
    """Return partitions stored as their table, except those to which a test gave other files."""
    of_table = hive.tables["db", "t"].storage
    assert of_table
    found = []
    for partition in (known for name in names if (known := hive.partitions["db", "t"].get(name))):
        storage: Any = partition.storage
        if isinstance(storage, wire.PartitionStorage):
            storage = wire.PartitionFiles(of_table.columns, storage.location, of_table.input_format, of_table.serde)
        found.append(wire.PartitionWithFiles(partition.values, storage, partition.parameters))
    return found


def client(hive: FakeHive) -> Metastore:
    """Return a client of the metastore."""
    settings = find_settings({"uris": hive.address, "timeout": "5"}, {})
    assert settings
    return Metastore(settings)


def table_of(hive: FakeHive) -> HiveTable:
    """Return the table `db.t` as it is now."""
    return get_table(client(hive), "db", "t")


def rows_of(hive: FakeHive) -> list[tuple[Any, ...]]:
    """Return the rows of `db.t` that a new reader sees, sorted by their texts."""
    found = acidctl.open_table("hive:db.t", metastore=hive.address).scan().to_table()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=str)


def files_of(path: Path) -> list[str]:
    """Return the paths of all files below a directory but acidctl's log."""
    files = [file for file in path.rglob("*") if file.is_file() and not is_log(file.name)]
    return sorted(str(file.relative_to(path)) for file in files)


def writers_locks(hive: FakeHive) -> list[wire.LockComponent]:
    """Return the locks of statements that replace rows, without that under which counts are restored."""
    return [lock for lock in hive.wanted_locks if lock.type == wire.LockType.EXCLUSIVE]
