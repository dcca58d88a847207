"""Names of tables under `acidctl hive`: ``db.table``, with or without ``hive:``, and patterns of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from acidctl.base.errors import AcidctlError
from acidctl.location.arguments import HIVE, HiveName, at_its_line, is_hive_name, partition_values
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.queue.compactions import Wish
from acidctl.metastore.tables import HiveTable, is_excluded, partition_names


def as_hive_names(names: Sequence[str]) -> list[str]:
    """Return names of tables with the prefix ``hive:``.

    Raises:
        UsageProblem: a name is not that of a table.
    """
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


def wishes_for(
    warehouse: Warehouse,
    names: Sequence[str],
    template: Wish,
    on_sorted: Callable[[HiveTable], None] = lambda _: None,
) -> Iterator[Wish]:
    """Yield a request for each named location, without duplicates.

    Args:
        template: supplies all fields but the names.
        on_sorted: called for each sorted table: Hive's workers refuse these.

    Raises:
        NotFoundError: a named table or partition does not exist.
        UsageProblem: a named table is not transactional.
    """
    seen: set[str] = set()
    for text in names:
        try:
            name = HiveName.parse(text if is_hive_name(text) else HIVE + text)
            tables = list(warehouse.tables(name))
        except AcidctlError as error:
            raise at_its_line(error, text) from error
        for table in tables:
            parts = [""]
            if table.partition_keys or name.partition:
                parts = partition_names(warehouse.metastore, table, name.partition)
            if table.sort_columns:
                on_sorted(table)
            for part in parts:
                wish = replace(template, database=table.database, table=table.name, partition=part)
                if wish.name not in seen:
                    seen.add(wish.name)
                    yield wish
