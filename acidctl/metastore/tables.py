"""Transactional tables and their partitions in the metastore."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.listing import TableType
from acidctl.acid.names import partition_name, unescape
from acidctl.base.errors import AcidctlError, NotFoundError
from acidctl.base.nearest import asked, did_you_mean, near_names
from acidctl.base.printable import printable
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore, batches
from acidctl.metastore.errors import MetastoreError, Unreachable

_T = TypeVar("_T")
_K = TypeVar("_K", bound=Hashable)

BATCH = 300
"""Tables or partitions per call: Hive's own ``metastore.batch.retrieve.max``."""

_PATTERN_CHARACTERS = re.compile(r"[^\w .:,%=/@-]|^$")
"""Values that might not match themselves if a server takes them for a pattern."""

_MOST_NEAR = 10_000
"""Names of partitions that are compared with a mistyped name."""

_MOST_SHOWN = 100
"""Characters of a name, in a message."""

_FORMATS = {
    "org.apache.hadoop.hive.ql.io.orc.OrcSerde": "ORC",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe": "Parquet",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe": "text",
    "org.apache.hadoop.hive.serde2.OpenCSVSerde": "CSV",
    "org.apache.hive.hcatalog.data.JsonSerDe": "JSON",
    "org.apache.hadoop.hive.serde2.JsonSerDe": "JSON",
    "org.apache.hadoop.hive.serde2.avro.AvroSerDe": "Avro",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column or partition key; its type in Hive's spelling, ``decimal(10,2)``."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class StoredAs:
    """File format of a table or a partition.

    Attributes:
        format: ORC, Parquet, text..., or the class of an unknown format.
        columns: as they were when the partition was created; those of the table are the newest.
    """

    format: str = ""
    serde: str = ""
    input_format: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class HiveTable:
    """A table of the metastore.

    Attributes:
        location: the URL of its directory; empty for a table without one, such as a view.
        table_type: None if it is not transactional.
        buckets: number of buckets; 0 if it is not bucketed.
        stored_as: format of its own files, and of those of new partitions.
        made: when it was created, in seconds since the epoch by the server's clock, and its id (Hive 4); both change if
            the table is dropped and created again.
    """

    database: str
    name: str
    location: str
    table_type: TableType | None
    columns: tuple[Column, ...]
    partition_keys: tuple[Column, ...]
    parameters: Mapping[str, str]
    owner: str
    buckets: int = 0
    bucket_columns: tuple[str, ...] = ()
    sort_columns: tuple[str, ...] = ()
    stored_as: StoredAs = StoredAs()
    made: tuple[int, int] = (0, 0)

    @property
    def full_name(self) -> str:
        """``database.table``, the form of the lists of write ids."""
        return f"{self.database}.{self.name}"


@dataclass(frozen=True, slots=True)
class HivePartition:
    """A partition of a table.

    Attributes:
        values: pairs of key and value, unescaped, as texts.
        location: the URL of its directory, which may be outside the table's.
        stored_as: its file format, which may differ from the table's; empty for full-ACID tables, which are all ORC.
    """

    values: tuple[tuple[str, str], ...]
    location: str
    parameters: Mapping[str, str]
    stored_as: StoredAs = StoredAs()


# --- tables -----------------------------------------------------------------------------------------------------------


def get_table(metastore: Metastore, database: str, name: str) -> HiveTable:
    """Return a table, transactional or not.

    Raises:
        NotFoundError: the table does not exist.
    """
    result = None
    with suppress(NotFoundError):
        result = metastore.call(
            interface.GET_TABLE, interface.GetTableRequest(database, name, **metastore.settings.translation)
        )
    if result is None or result.table is None:
        raise NotFoundError(f"there is no table {database}.{name} in {metastore.shown}", "", "check its name")
    table = _hive_table(result.table)
    if table.full_name.lower() != f"{database}.{name}".lower():
        raise MetastoreError(
            f"the metastore {metastore.shown} gave another table than {database}.{name}",
            f"it gave {printable(table.full_name[:_MOST_SHOWN])}",
            "see the metastore's log",
        )
    return table


def create_table(metastore: Metastore, new: interface.NewTable, capabilities: Iterable[str] = ()) -> None:
    """Create a table by the call that the metastore's version has.

    Args:
        capabilities: further ones to claim, beside those of the settings (Hive 4).

    Raises:
        AlreadyExists: a table has this name.
        MetastoreError: the metastore refused the definition, with its reason.
    """
    if metastore.features.hive is not Hive.HIVE4:
        metastore.call(interface.CREATE_TABLE_BEFORE_4, new)
        return
    settings = metastore.settings
    claimed = tuple(dict.fromkeys((*settings.capabilities, *capabilities)))
    metastore.call(interface.CREATE_TABLE, interface.CreateTableRequest(new, claimed, settings.processor or None))


def find_tables(
    metastore: Metastore, databases: str = "*", names: str = "*", exclude: Sequence[str] = ()
) -> Iterator[HiveTable]:
    """Yield the transactional tables that match, sorted by database and name.

    Args:
        databases, names: patterns with ``*`` and ``?``.
    """
    databases, names = databases.lower(), names.lower()
    for database in sorted(metastore.call(interface.GET_ALL_DATABASES)):
        if fnmatch.fnmatchcase(database, databases):
            with suppress(NotFoundError):  # the database was dropped meanwhile
                matching = [name for name in _transactional(metastore, database) if fnmatch.fnmatchcase(name, names)]
                kept = [name for name in matching if not is_excluded(f"{database}.{name}", exclude)]
                yield from tables_named(metastore, database, kept)


def near_tables(metastore: Metastore, database: str, name: str) -> str:
    """Return a "did you mean" for a table that does not exist; empty if no transactional table has a similar name.

    :func:`get_table` does not call this: it takes many calls, and mostly programs ask for missing tables.
    """
    with suppress(AcidctlError):
        databases = metastore.call(interface.GET_ALL_DATABASES)
        near = [database] if database in databases else near_names(database, databases)
        return asked(
            [f"{each}.{table}" for each in near for table in near_names(name, _transactional(metastore, each))]
        )
    return ""


def is_excluded(full_name: str, patterns: Sequence[str]) -> bool:
    """Return whether a table, ``db.table``, matches one of the patterns."""
    return any(fnmatch.fnmatchcase(full_name, pattern.lower().removeprefix("hive:")) for pattern in patterns)


def _transactional(metastore: Metastore, database: str) -> list[str]:
    """Return the sorted names of a database's transactional tables; of all managed ones if the server cannot filter."""
    names: set[str] = set()
    try:
        # The metastore keeps the property as it was typed: Hive writes it in lower case, other programs do not.
        for value in ("true", "TRUE"):
            condition = f'hive_filter_field_params__transactional like "{value}"'
            names.update(metastore.call(interface.GET_TABLE_NAMES_BY_FILTER, database, condition, -1))
    except Unreachable:
        raise
    except MetastoreError:
        tables = metastore.call(interface.GET_TABLE_META, database, "*", ("MANAGED_TABLE",))
        names.update(table.name for table in tables if table.database == database)
    return sorted(names)


def tables_named(metastore: Metastore, database: str, names: Sequence[str]) -> Iterator[HiveTable]:
    """Yield those of the named tables that exist and are transactional, sorted by name within each batch.

    Raises:
        NotFoundError: the database does not exist.
    """
    for batch in batches(names, BATCH):
        result = metastore.call(
            interface.GET_TABLES, interface.GetTablesRequest(database, tuple(batch), **metastore.settings.translation)
        )
        wanted = {(database.lower(), name.lower()) for name in batch}
        requested = _requested(result.tables, wanted, lambda table: (table.database.lower(), table.name.lower()))
        tables = sorted(map(_hive_table, requested), key=lambda table: table.name)
        yield from (table for table in tables if table.table_type)


# --- partitions -------------------------------------------------------------------------------------------------------


def find_partitions(
    metastore: Metastore, table: HiveTable, wanted: Mapping[str, str] | None = None
) -> Iterator[HivePartition]:
    """Yield all partitions of a table, or those with the wanted values, sorted by name.

    Raises:
        NotFoundError: a key that the table does not have, or no partition with these values.
    """
    if exact := list(partitions_of_values(metastore, table, [wanted] if wanted else [])):
        yield from exact
        return
    names = partition_names(metastore, table, wanted)
    partition = None
    for partition in _partitions_named(metastore, table, names):
        yield partition
    if names and wanted and partition is None:
        raise NotFoundError(f"{table.full_name} has no partition {names[0]} any more", "it was dropped meanwhile", "")


def partitions_of_values(
    metastore: Metastore, table: HiveTable, wanted: Sequence[Mapping[str, str]]
) -> Iterator[HivePartition]:
    """Yield partitions by the names that their values give, in few calls: nearly all partitions have these names.

    Args:
        wanted: unescaped values by keys of each partition; one without all keys is skipped.
    """
    keys = [column.name for column in table.partition_keys]
    lower = [{key.lower(): value for key, value in values.items()} for values in wanted]
    names = ["/".join(partition_name(key, values[key]) for key in keys) for values in lower if set(values) == set(keys)]
    return _partitions_named(metastore, table, names)


def _partitions_named(metastore: Metastore, table: HiveTable, names: Sequence[str]) -> Iterator[HivePartition]:
    """Yield the named partitions that exist, sorted by their values within each batch."""
    keys = [column.name for column in table.partition_keys]
    full = table.table_type is TableType.FULL_ACID
    method = interface.GET_PARTITIONS_BY_NAMES if full else interface.GET_PARTITIONS_WITH_FILES
    for batch in batches(names, BATCH):
        # The keys in a partition's name may have been renamed.
        wanted = [tuple(unescape(part.partition("=")[2]) for part in name.split("/")) for name in batch]
        answer = metastore.call(method, table.database, table.name, tuple(batch))
        requested = _requested(answer, wanted, lambda partition: partition.values)
        partitions = (_hive_partition(keys, partition) for partition in requested)
        yield from sorted(partitions, key=lambda partition: partition.values)


def partition_names(metastore: Metastore, table: HiveTable, wanted: Mapping[str, str] | None = None) -> list[str]:
    """Return the sorted names, ``day=2026-11-20/hour=1``, of all partitions or of those with the wanted values."""
    keys = [column.name for column in table.partition_keys]
    lower = {key.lower(): value for key, value in (wanted or {}).items()}
    if unknown := sorted(set(lower) - set(keys)):
        raise NotFoundError(
            f"{table.full_name} has no partition column {unknown[0]}",
            f"its partition columns are {', '.join(keys)}" if keys else "it has no partitions",
            did_you_mean(unknown[0], keys),
        )
    # Hive turns values into a pattern, in which a dot and an empty value match anything.
    if not lower or any(_PATTERN_CHARACTERS.search(value) for value in lower.values()):
        some = _first_names(metastore, table, -1)
    else:
        values = tuple(lower.get(key, "") for key in keys)
        some = metastore.call(interface.GET_PARTITION_NAMES_PS, table.database, table.name, values, -1)

    def has_values(name: str) -> bool:
        parts = (part.partition("=") for part in name.split("/"))
        found = {unescape(key).lower(): unescape(value) for key, _, value in parts}
        return all(found.get(key) == value for key, value in lower.items())

    names = sorted(name for name in some if not lower or has_values(name))
    if wanted and not names:
        shown = "/".join(f"{key}={value}" for key, value in lower.items())
        near = did_you_mean(shown, _first_names(metastore, table, _MOST_NEAR), "check the values")
        raise NotFoundError(f"{table.full_name} has no partition {shown}", "", near)
    return names


def _first_names(metastore: Metastore, table: HiveTable, most: int) -> Sequence[str]:
    """Return the names of a table's first partitions; -1 for all."""
    is_hive2 = not metastore.features.write_ids
    method = interface.GET_PARTITION_NAMES_BEFORE_3 if is_hive2 else interface.GET_PARTITION_NAMES
    return tuple(metastore.call(method, table.database, table.name, most))


# --- values of answers ------------------------------------------------------------------------------------------------


def _requested(answer: Iterable[_T], keys: Iterable[_K], key: Callable[[_T], _K]) -> Iterator[_T]:
    """Yield each requested item of an answer once: a metastore on a case-insensitive database may return more."""
    missing = set(keys)
    for item in answer:
        if key(item) in missing:
            missing.remove(key(item))
            yield item


def _hive_table(table: interface.Table) -> HiveTable:
    storage = table.storage or interface.StorageDescriptor()
    by_key = {key.lower(): value.lower() for key, value in table.parameters.items()}
    table_type = TableType.FULL_ACID if by_key.get("transactional") == "true" else None
    if table_type and by_key.get("transactional_properties") == "insert_only":
        table_type = TableType.INSERT_ONLY
    return HiveTable(
        database=table.database,
        name=table.name,
        location=storage.location or "",
        table_type=table_type,
        columns=_columns(storage.columns),
        partition_keys=_columns(table.partition_keys),
        parameters=dict(table.parameters),
        owner=table.owner or "",
        buckets=max(storage.buckets, 0),
        bucket_columns=tuple(storage.bucket_columns),
        sort_columns=tuple(order.column for order in storage.sort_columns),
        stored_as=_stored_as(storage),
        made=(table.created, table.id),
    )


def _hive_partition(
    keys: Sequence[str], partition: interface.Partition | interface.PartitionWithFiles
) -> HivePartition:
    storage = partition.storage
    return HivePartition(
        tuple(zip(keys, partition.values, strict=False)),
        (storage.location or "") if storage else "",
        dict(partition.parameters),
        _stored_as(storage) if isinstance(storage, interface.PartitionFiles) else StoredAs(),
    )


def _stored_as(storage: interface.StorageDescriptor | interface.PartitionFiles) -> StoredAs:
    serde = storage.serde or interface.SerDeInfo()
    name = serde.serialization_lib or ""
    return StoredAs(
        format=_FORMATS.get(name, name.rpartition(".")[2]),
        serde=name,
        input_format=storage.input_format or "",
        properties=dict(serde.parameters),
        columns=_columns(storage.columns),
    )


def _columns(fields: Sequence[interface.FieldSchema]) -> tuple[Column, ...]:
    return _shared(tuple((each.name, each.type) for each in fields))


@lru_cache(maxsize=1024)
def _shared(pairs: tuple[tuple[str, str], ...]) -> tuple[Column, ...]:
    """Return one object for equal columns, as a table may have thousands of partitions with the same columns."""
    return tuple(Column(*pair) for pair in pairs)
