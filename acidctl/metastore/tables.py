"""Transactional tables and their partitions, as the metastore has them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from acidctl.acid.listing import TableType
from acidctl.acid.names import partition_name, unescape
from acidctl.errors import AcidctlError, NotFoundError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore, batches
from acidctl.metastore.errors import MetastoreError, Unreachable
from acidctl.nearest import asked, did_you_mean, near_names
from acidctl.printable import printable

_T = TypeVar("_T")
_K = TypeVar("_K", bound=Hashable)

BATCH = 300
"""Tables or partitions that are asked for at once: Hive's own ``metastore.batch.retrieve.max``."""

_IN_PATTERNS = re.compile(r"[^\w .:,%=/@-]|^$")
"""What may not find itself where a value is taken for a pattern."""

_MOST_NEAR = 10_000
"""Names of partitions that are compared with a mistyped one."""

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
    """A column, or a key of partitions; its type as Hive writes it, ``decimal(10,2)``."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class StoredAs:
    """How rows lie in the files of a table or a partition.

    Attributes:
        format: ORC, Parquet, text..., or the class of an unknown one.
        serde, input_format: Hive's classes.
        properties: of the serde: delimiters and the like.
        columns: as they were when the files' directory was made; a table's own are the newest.
    """

    format: str = ""
    serde: str = ""
    input_format: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class HiveTable:
    """A table that the metastore has.

    Attributes:
        location: the URL of its directory; empty for one without, such as a view.
        table_type: None where it is not transactional.
        format: of its files: ORC, Parquet, text..., or the class of an unknown one.
        columns: without the keys of partitions.
        parameters: the table's properties.
        buckets: that it is clustered into; 0 where it is not.
        sort_columns: that its rows are sorted by.
        stored_as: how its own files, and those of new partitions, are written.
        made: when it was created, seconds since the epoch by the server's clock, and its number (Hive 4): a table that
            is dropped and created again has others.
    """

    database: str
    name: str
    location: str
    table_type: TableType | None
    format: str
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
        """``database.table``, as the lists of write ids have it."""
        return f"{self.database}.{self.name}"


@dataclass(frozen=True, slots=True)
class HivePartition:
    """A partition.

    Attributes:
        values: by the keys of its table, unescaped, as texts.
        location: the URL of its directory, which need not lie in that of its table.
        parameters: its own properties.
        stored_as: how its files are written, which need not be as its table says now; of full-ACID tables, whose files
            are all alike, it is not asked for.
    """

    values: tuple[tuple[str, str], ...]
    location: str
    parameters: Mapping[str, str]
    stored_as: StoredAs = StoredAs()


def get_table(metastore: Metastore, database: str, name: str) -> HiveTable:
    """One table.

    Raises:
        NotFoundError: there is none of that name.
        MetastoreError: the metastore cannot be reached, or failed.
    """
    settings = metastore.settings
    request = interface.GetTableRequest(
        database,
        name,
        processor_capabilities=settings.capabilities or None,
        processor=settings.processor or None,
    )
    result = None
    with suppress(NotFoundError):
        result = metastore.call(interface.GET_TABLE, request)
    if result is None or result.table is None:
        raise NotFoundError(f"there is no table {database}.{name} in {metastore.shown}", "", "check its name")
    found = _hive_table(result.table)
    if found.full_name.lower() != f"{database}.{name}".lower():
        raise MetastoreError(
            f"the metastore {metastore.shown} gave another table than {database}.{name}",
            f"it gave {printable(found.full_name[:_MOST_SHOWN])}",
            "see the metastore's log",
        )
    return found


def find_tables(
    metastore: Metastore, databases: str = "*", names: str = "*", exclude: Sequence[str] = ()
) -> Iterator[HiveTable]:
    """The transactional tables whose names match, by database and name.

    Args:
        databases, names: with ``*`` and ``?`` for what may stand there.
        exclude: of which none may match, ``db.table`` or ``db.*``.
    """
    databases, names = databases.lower(), names.lower()
    for database in sorted(metastore.call(interface.GET_ALL_DATABASES)):
        if not fnmatch.fnmatchcase(database, databases):
            continue
        with suppress(NotFoundError):  # the database was dropped meanwhile
            found = [name for name in _transactional(metastore, database) if fnmatch.fnmatchcase(name, names)]
            kept = [name for name in found if not is_excluded(f"{database}.{name}", exclude)]
            yield from tables_named(metastore, database, kept)


def near_tables(metastore: Metastore, database: str, name: str) -> str:
    """A question for the hint of an error about a table that does not exist; empty if no transactional one is near.

    :func:`get_table` does not ask it, as most who look for a table in vain are programs, which do so often.
    """
    with suppress(AcidctlError):
        databases = metastore.call(interface.GET_ALL_DATABASES)
        near = [database] if database in databases else near_names(database, databases)
        return asked([f"{one}.{table}" for one in near for table in near_names(name, _transactional(metastore, one))])
    return ""


def is_excluded(full_name: str, patterns: Sequence[str]) -> bool:
    """Whether a table, ``db.table``, is one of those that are left out."""
    return any(fnmatch.fnmatchcase(full_name, pattern.lower().removeprefix("hive:")) for pattern in patterns)


def _transactional(metastore: Metastore, database: str) -> list[str]:
    """The names of the transactional tables of a database, sorted; of all of them where a server cannot tell."""
    key = "hive_filter_field_params__transactional"
    names: set[str] = set()
    try:
        # The property is kept as it was typed: Hive writes it in lower case, others do not.
        for value in ("true", "TRUE"):
            condition = f'{key} like "{value}"'
            names.update(metastore.call(interface.GET_TABLE_NAMES_BY_FILTER, database, condition, -1))
    except Unreachable:
        raise
    except MetastoreError:
        found = metastore.call(interface.GET_TABLE_META, database, "*", ("MANAGED_TABLE",))
        names.update(one.name for one in found if one.database == database)
    return sorted(names)


def tables_named(metastore: Metastore, database: str, names: Sequence[str]) -> Iterator[HiveTable]:
    """Those tables of a database that are there and transactional, by name.

    Raises:
        NotFoundError: there is no such database.
        MetastoreError: the metastore cannot be reached, or failed.
    """
    yield from (table for table in _named(metastore, database, names) if table.table_type)


def _named(metastore: Metastore, database: str, names: Sequence[str]) -> Iterator[HiveTable]:
    settings = metastore.settings
    for some in batches(names, BATCH):
        request = interface.GetTablesRequest(
            database,
            tuple(some),
            processor_capabilities=settings.capabilities or None,
            processor=settings.processor or None,
        )
        result = metastore.call(interface.GET_TABLES, request)
        wanted = {(database.lower(), name.lower()) for name in some}
        tables = _asked_for(result.tables, wanted, lambda one: (one.database.lower(), one.name.lower()))
        yield from sorted(map(_hive_table, tables), key=lambda table: table.name)


def find_partitions(
    metastore: Metastore, table: HiveTable, wanted: Mapping[str, str] | None = None
) -> Iterator[HivePartition]:
    """The partitions of a table, by name; all of them, or those of some values.

    Args:
        wanted: values by keys, unescaped; not every key must be given.

    Raises:
        NotFoundError: a key that the table does not have, or no partition of these values.
    """
    if exact := list(partitions_of_values(metastore, table, [wanted] if wanted else [])):
        yield from exact
        return
    names = partition_names(metastore, table, wanted)
    is_there = False
    for one in _partitions_named(metastore, table, names):
        is_there = True
        yield one
    if names and wanted and not is_there:
        raise NotFoundError(f"{table.full_name} has no partition {names[0]} any more", "it was dropped meanwhile", "")


def partitions_of_values(
    metastore: Metastore, table: HiveTable, wanted: Sequence[Mapping[str, str]]
) -> Iterator[HivePartition]:
    """Those partitions of a table that are called after their values, as nearly all are: many in one call.

    Args:
        wanted: of each its values by keys, unescaped; where not every key is given none is found.
    """
    keys = [column.name for column in table.partition_keys]
    lower = [{key.lower(): value for key, value in one.items()} for one in wanted]
    names = ["/".join(partition_name(key, one[key]) for key in keys) for one in lower if set(one) == set(keys)]
    return _partitions_named(metastore, table, names)


def _partitions_named(metastore: Metastore, table: HiveTable, names: Sequence[str]) -> Iterator[HivePartition]:
    """Those of some names that are there, by their values, so many at once."""
    keys = [column.name for column in table.partition_keys]
    full = table.table_type is TableType.FULL_ACID
    method = interface.GET_PARTITIONS_BY_NAMES if full else interface.GET_PARTITIONS_WITH_FILES
    for some in batches(names, BATCH):
        found = metastore.call(method, table.database, table.name, tuple(some))
        made = [_hive_partition(keys, one) for one in _asked_for(found, map(_values_of, some), lambda one: one.values)]
        yield from sorted(made, key=lambda one: one.values)


def partition_names(metastore: Metastore, table: HiveTable, wanted: Mapping[str, str] | None = None) -> list[str]:
    """The names of the partitions of a table, ``day=2026-11-20/hour=1``, in their order; of all, or of some values.

    Raises:
        NotFoundError: a key that the table does not have, or no partition of these values.
    """
    keys = [column.name for column in table.partition_keys]
    lower = {key.lower(): value for key, value in (wanted or {}).items()}
    if unknown := sorted(set(lower) - set(keys)):
        raise NotFoundError(
            f"{table.full_name} has no partition column {unknown[0]}",
            f"its partition columns are {', '.join(keys)}" if keys else "it has no partitions",
            did_you_mean(unknown[0], keys),
        )
    names = [name for name in _partition_names(metastore, table, keys, lower) if _has(name, lower)]
    if wanted and not names:
        shown = "/".join(f"{key}={value}" for key, value in lower.items())
        near = did_you_mean(shown, _first_names(metastore, table), "check the values")
        raise NotFoundError(f"{table.full_name} has no partition {shown}", "", near)
    return sorted(names)


def _partition_names(
    metastore: Metastore, table: HiveTable, keys: Sequence[str], wanted: Mapping[str, str]
) -> Sequence[str]:
    """At least the names of the partitions that are wanted.

    Hive makes a pattern of values that it is given: a dot stands for anything, and so does no value at all.
    """
    if not wanted or any(_IN_PATTERNS.search(value) for value in wanted.values()):
        return _first_names(metastore, table, -1)
    values = tuple(wanted.get(key, "") for key in keys)
    return tuple(metastore.call(interface.GET_PARTITION_NAMES_PS, table.database, table.name, values, -1))


def _first_names(metastore: Metastore, table: HiveTable, most: int = _MOST_NEAR) -> Sequence[str]:
    """The first names of the partitions of a table; -1 for all."""
    is_hive2 = not metastore.features.write_ids
    method = interface.GET_PARTITION_NAMES_BEFORE_3 if is_hive2 else interface.GET_PARTITION_NAMES
    return tuple(metastore.call(method, table.database, table.name, most))


def _has(name: str, wanted: Mapping[str, str]) -> bool:
    """Whether a partition has exactly the values that are wanted."""
    if not wanted:
        return True
    parts = (part.partition("=") for part in name.split("/"))
    values = {unescape(key).lower(): unescape(value) for key, _, value in parts}
    return all(values.get(key) == value for key, value in wanted.items())


def _asked_for(found: Iterable[_T], asked: Iterable[_K], key: Callable[[_T], _K]) -> Iterator[_T]:
    """Of an answer what was asked for, and that once: some databases below a metastore do not tell a from A."""
    left = set(asked)
    for one in found:
        if key(one) in left:
            left.remove(key(one))
            yield one


def _values_of(name: str) -> tuple[str, ...]:
    """The values in the name of a partition; its keys may have been called otherwise once."""
    return tuple(unescape(part.partition("=")[2]) for part in name.split("/"))


def _hive_table(table: interface.Table) -> HiveTable:
    storage = table.storage or interface.StorageDescriptor()
    parameters = dict(table.parameters)
    return HiveTable(
        database=table.database,
        name=table.name,
        location=storage.location or "",
        table_type=_table_type(parameters),
        format=_format(storage),
        columns=_columns(storage.columns),
        partition_keys=_columns(table.partition_keys),
        parameters=parameters,
        owner=table.owner or "",
        buckets=max(storage.buckets, 0),
        bucket_columns=tuple(storage.bucket_columns),
        sort_columns=tuple(order.column for order in storage.sort_columns),
        stored_as=_stored_as(storage),
        made=(table.created, table.id),
    )


def _stored_as(storage: interface.StorageDescriptor | interface.PartitionFiles) -> StoredAs:
    serde = storage.serde or interface.SerDeInfo()
    return StoredAs(
        format=_format(storage),
        serde=serde.serialization_lib or "",
        input_format=storage.input_format or "",
        properties=dict(serde.parameters),
        columns=_columns(storage.columns),
    )


def _table_type(parameters: Mapping[str, str]) -> TableType | None:
    by_key = {key.lower(): value.lower() for key, value in parameters.items()}
    if by_key.get("transactional") != "true":
        return None
    is_insert_only = by_key.get("transactional_properties") == "insert_only"
    return TableType.INSERT_ONLY if is_insert_only else TableType.FULL_ACID


def _format(storage: interface.StorageDescriptor | interface.PartitionFiles) -> str:
    name = (storage.serde.serialization_lib or "") if storage.serde else ""
    return _FORMATS.get(name, name.rpartition(".")[2])


def _columns(fields: Sequence[interface.FieldSchema]) -> tuple[Column, ...]:
    return _shared(tuple((one.name, one.type) for one in fields))


@lru_cache(maxsize=1024)
def _shared(pairs: tuple[tuple[str, str], ...]) -> tuple[Column, ...]:
    """Columns: of the thousands of partitions of a table the same ones."""
    return tuple(Column(*pair) for pair in pairs)


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
