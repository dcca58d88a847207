"""Refuse tables that acidctl must not write to, with the reason and what to do instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from acidctl.acid.listing import TableType
from acidctl.base.errors import RefusedError
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import GET_DATABASE, Operation
from acidctl.metastore.lossless import RawStruct
from acidctl.metastore.tables import HiveTable
from acidctl.orc.types import OrcType, parse_type
from acidctl.writing.definition import NOT_WRITTEN
from acidctl.writing.insert_only.plain_files import format_reasons
from acidctl.writing.rows.bucket_hashes import VERSIONS, check_bucket_type
from acidctl.writing.transaction import raw_table

_TABLE_TYPE, _CATALOG, _ACCESS, _STORAGE = 12, 17, 22, 7
_SKEWED, _AS_DIRECTORIES = 11, 12
_READ_WRITE = 8
"""Numbers of fields of a table and of its storage descriptor, and the access type of a table that may be written."""


def require_writable(metastore: Metastore, table: HiveTable, operation: Operation, *, replaces: bool = False) -> None:
    """Refuse a statement on a table that Hive would refuse as well, or that acidctl cannot write as Hive does.

    Raises:
        RefusedError: the table cannot be written, or not by this statement.
    """
    for why, hint in _reasons(metastore, table, operation, replaces=replaces):
        raise RefusedError(f"will not write to {table.full_name}", why, hint)


def _reasons(
    metastore: Metastore, table: HiveTable, operation: Operation, *, replaces: bool
) -> Iterator[tuple[str, str]]:
    raw = raw_table(metastore, table)
    parameters = {key.lower(): value for key, value in table.parameters.items()}
    if not metastore.features.write_ids:
        yield "the metastore is older than Hive 3 and has no write ids", "write it with Hive"
    kind = raw.text(_TABLE_TYPE)
    if "VIEW" in kind:
        yield f"it is a {kind.lower().replace('_', ' ')}", "write to the table that it shows"
    if storage := parameters.get("storage_handler") or parameters.get("table_type", ""):
        yield f"its rows are stored by {storage.rpartition('.')[2]}", "write it with a tool for that format"
    if kind == "EXTERNAL_TABLE" or parameters.get("external", "").lower() == "true":
        yield "it is an external table", "write its files with Spark or Hive: it has no transactions"
    if table.table_type is None:
        yield "it is not transactional", "write its files with Spark or Hive"
    if raw.text(_CATALOG) not in ("", "hive"):
        yield (
            f"it is in the catalog {raw.text(_CATALOG)}",
            "write it with Hive: acidctl writes to the catalog hive only",
        )
    if parameters.get("transactional_properties", "default") not in ("default", "insert_only"):
        yield f"its transactional_properties are {parameters['transactional_properties']}", "write it with Hive"
    if table.table_type is TableType.INSERT_ONLY and operation is not Operation.INSERT and not replaces:
        yield "it is insert-only: rows can be added, not changed", "use a full-ACID table, or overwrite"
    if table.table_type is TableType.FULL_ACID and table.stored_as.format != "ORC":
        yield f"it is a full-ACID table in {table.stored_as.format}", "write it with Hive"
    yield from _layout_reasons(table, raw, parameters)
    if raw.number(_ACCESS) not in (0, _READ_WRITE):
        why = "the metastore gives this client no right to write"
        yield why, "give the setting `capabilities` of the metastore, e.g. HIVEFULLACIDWRITE"
    database = metastore.call(GET_DATABASE, table.database).parameters
    for key, why in (("repl.target.for", "is written by replication alone"), ("repl.source.for", "is replicated")):
        if database.get(key):
            yield f"the database {table.database} {why}", "write it with Hive, which records the change for replication"


def _layout_reasons(table: HiveTable, raw: RawStruct, parameters: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if table.table_type is TableType.INSERT_ONLY:
        yield from format_reasons(table)
    if table.sort_columns:
        yield f"its files are sorted by {', '.join(table.sort_columns)}", "write it with Hive"
    storage = raw.struct(_STORAGE)
    skewed = storage.struct(_SKEWED)
    if skewed.text_list(1) and storage.number(_AS_DIRECTORIES):
        yield "skewed values have directories of their own", "write it with Hive"
    if any(key.startswith("spark.sql.sources.") for key in parameters) and table.buckets:
        yield "Spark bucketed it, by another hash than Hive's", "write it with Spark"
    for key in ("orc.encrypt", "orc.mask"):
        if key in parameters:
            yield f"its files are encrypted: {key}", "write it with Hive"
    for column in (*table.columns, *table.partition_keys):
        for node in parse_type(column.type).walk():
            if node.kind in NOT_WRITTEN:
                yield f"column {column.name} has the type {node.kind}", "write it with Hive"
    if table.buckets:
        yield from _bucket_reasons(table)


def _bucket_reasons(table: HiveTable) -> Iterator[tuple[str, str]]:
    version = table.parameters.get("bucketing_version", "1")
    if version not in map(str, VERSIONS):
        yield f"its bucketing_version is {version}", "write it with Hive"
    types: dict[str, OrcType] = {column.name: parse_type(column.type) for column in table.columns}
    for name in table.bucket_columns:
        check_bucket_type(types[name], int(version))
