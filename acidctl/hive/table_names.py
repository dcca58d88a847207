"""Names of tables under `acidctl hive`, ``db.table`` with or without ``hive:``, and the locations that they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from acidctl.acid.names import partition_name
from acidctl.acid.reasons import Code
from acidctl.base.errors import AcidctlError, NotFoundError, RefusedError
from acidctl.base.parallel import in_order
from acidctl.location.arguments import HIVE, HiveName, at_its_line, is_hive_name, partition_values
from acidctl.location.find import find, find_named
from acidctl.location.snapshot import files_ahead
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.location.walk import Observer
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.activity import key_of, spelled_alike
from acidctl.metastore.interface import QueueEntry
from acidctl.metastore.queue import Compaction, Wish, entry_name
from acidctl.metastore.tables import HiveTable, is_excluded, partition_names

_PATTERN = re.compile(r"[*?\[]")


def as_hive_names(names: Sequence[str]) -> list[str]:
    """Return names of tables with the prefix ``hive:``."""
    prefixed = [name if is_hive_name(name) else HIVE + name for name in names]
    for name in prefixed:
        HiveName.parse(name)
    return prefixed


def is_named(names: Sequence[str], database: str, table: str, partition: str = "", *, of_table: bool = False) -> bool:
    """Return whether one of the names, by :func:`as_hive_names`, is that of a table, or includes its partition.

    Args:
        of_table: what lies on the whole table lies on each of its partitions, too.
    """
    return any(
        is_excluded(f"{database}.{table}".lower(), [f"{name.database}.{name.table}"])
        and (not name.partition or of_table or name.partition.items() <= partition_values(partition).items())
        for name in map(HiveName.parse, names)
    )


def partition_of(found: TableLocation) -> str:
    """Return Hive's name of a location's partition; empty for a whole table."""
    return "/".join(partition_name(key, value) for key, value in found.location.partition)


def names_of(found: TableLocation) -> tuple[str, str, str]:
    """Return database, table and partition of a location."""
    database, _, table = found.location.table.partition(".")
    return database, table, partition_of(found)


def location_key(found: TableLocation) -> tuple[str, str, str]:
    """Return a key that is equal for two spellings of a location's table and partition."""
    return key_of(*names_of(found))


def location_of(
    entry: QueueEntry | Compaction, storage: Mapping[str, str], resolver: SnapshotResolver
) -> TableLocation:
    """Return the location of an entry of the queue, before any list is read."""
    name = entry.name if isinstance(entry, Compaction) else entry_name(entry)
    if _PATTERN.search(entry.database + entry.table):
        raise NotFoundError(f"{name} is not one location", "it is not the name of a table", "")
    locations = list(islice(find_named(f"{HIVE}{name}", storage, resolver), 2))
    if len(locations) == 1 and spelled_alike(partition_of(locations[0])) == spelled_alike(entry.partition or ""):
        return locations[0]
    why = "the table has partitions, and this is not one of them" if locations else "it has no location"
    raise NotFoundError(f"{name} is not one location", why, "")


def newer_than_metastore(
    warehouse: Warehouse, names: Sequence[str], storage: Mapping[str, str], on_error: Callable[[AcidctlError], None]
) -> dict[tuple[str, str, str], RefusedError]:
    """Return the locations of some tables that must not be compacted: Hive never gave ids of their files.

    Args:
        names: ``db.table``, with or without ``hive:``.
        on_error: takes the error of each location that cannot be listed, or of whose ids the metastore says nothing.

    Returns:
        Errors by :func:`acidctl.metastore.activity.key_of`.
    """

    def problem(found: TableLocation) -> AcidctlError | None:
        try:
            ahead = tuple(why for why in found.ids_above_metastore() if why.code is Code.ABOVE_GIVEN)
        except NotFoundError:  # it is empty until its first row
            return None
        except AcidctlError as error:
            return error
        return files_ahead(found.shown, ahead) if ahead else None

    places: list[TableLocation] = []
    try:
        places += find(
            as_hive_names(names), storage, SnapshotResolver(warehouse=warehouse), Observer(on_error), looks=False
        )
    except AcidctlError as error:
        on_error(error)
    refused = {}
    for found, why_not in in_order(places, problem):
        if isinstance(why_not, RefusedError):
            refused[location_key(found)] = why_not
        elif why_not:
            on_error(why_not)
    return refused


def wishes_for(
    warehouse: Warehouse, names: Sequence[str], template: Wish, on_sorted: Callable[[HiveTable], None] = lambda _: None
) -> Iterator[Wish]:
    """Yield a request for each named location, without duplicates.

    Args:
        template: supplies all fields but the names.
        on_sorted: called for each sorted table: Hive's workers refuse these.
    """
    wishes: dict[str, Wish] = {}
    for text in names:
        try:
            name = HiveName.parse(text if is_hive_name(text) else HIVE + text)
            tables = list(warehouse.tables(name))
        except AcidctlError as error:
            raise at_its_line(error, text) from error
        for table in tables:
            if table.sort_columns:
                on_sorted(table)
            parts = [""]
            if table.partition_keys or name.partition:
                parts = partition_names(warehouse.metastore, table, name.partition)
            for part in parts:
                wish = replace(template, database=table.database, table=table.name, partition=part)
                wishes.setdefault(wish.name, wish)
    yield from wishes.values()
