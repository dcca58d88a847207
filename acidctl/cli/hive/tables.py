"""`acidctl hive tables`: List transactional tables: type, location, owner, settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import UsageProblem
from acidctl.cli.hive.records import Record, sentence, tables_argument
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import view_options
from acidctl.cli.options.metastore import exclude_option
from acidctl.cli.output.screen import Column, Layout, column

if TYPE_CHECKING:
    from acidctl.cli.output.screen import View
    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.tables import HiveTable

COLUMNS = (
    "database", "table", "type", "format", "partitionKeys", "partitions", "location", "owner", "buckets",
    "bucketColumns", "sortColumns", "noAutoCompaction", "noCleanup", "pool", "thresholds", "job",
)  # fmt: skip
_THRESHOLD = "compactorthreshold."


def _partitions(table: Record) -> str:
    keys = ", ".join(table["partitionKeys"])
    return keys if table["partitions"] is None else f"{table['partitions']:,} by {keys}"


def _settings(table: Record) -> Iterator[str]:
    if table["noAutoCompaction"]:
        yield "no_auto_compaction"
    if table["noCleanup"]:
        yield "no_cleanup"
    if table["pool"]:
        yield f"pool {table['pool']}"
    if table["buckets"] and table["bucketColumns"]:
        yield f"{table['buckets']} buckets by {', '.join(table['bucketColumns'])}"
    if table["sortColumns"]:
        yield f"sorted by {', '.join(table['sortColumns'])}"
    yield from (f"{key}={value}" for key, value in table["thresholds"].items())
    yield from (f"compactor.{key}={value}" for key, value in table["job"].items())


_LAYOUT = Layout[Record](
    (
        Column("table", lambda table: f"{table['database']}.{table['table']}"),
        column("type"),
        column("format", worth=5),
        Column("partitions", _partitions, worth=3),
        column("owner", worth=2, beside=True),
        column("location", worth=4),
    ),
    "set",
    lambda table: sentence(*_settings(table)),
)


@shared.command("tables")
@tables_argument
@click.option(
    "--partitions",
    "counts_partitions",
    is_flag=True,
    help="Count the partitions of each table, which takes a call each.",
)
@exclude_option
@view_options
def command(
    names: tuple[str, ...], counts_partitions: bool, exclude: tuple[str, ...], metastore: Metastore, view: View
) -> int:
    """List the transactional tables of a metastore: what they are, where they lie, and what is set for them.

    TABLE is db.table, or a pattern of tables such as db.*; all tables by default.
    """
    from acidctl.hive.table_names import as_hive_names
    from acidctl.location.arguments import HiveName
    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.tables import find_tables

    warehouse = Warehouse(metastore)
    tables: dict[str, HiveTable] = {}
    for name in map(HiveName.parse, as_hive_names(names or ("*.*",))):
        if name.partition:
            raise UsageProblem(f"{name.database}.{name.table} is named with a partition", "", "leave the partition out")
        for table in find_tables(metastore, name.database, name.table, exclude):
            tables.setdefault(table.full_name, table)
    records = [_record(warehouse, table, counts_partitions) for table in tables.values()]
    return view.show(records, COLUMNS, _LAYOUT, "no transactional tables")


def _record(warehouse: Warehouse, table: HiveTable, counts_partitions: bool) -> Record:
    from acidctl.metastore.tables import partition_names

    properties, counts = warehouse.table_properties(table), counts_partitions and table.partition_keys
    return {
        "database": table.database,
        "table": table.name,
        "type": table.table_type.value if table.table_type else None,
        "format": table.stored_as.format,
        "partitionKeys": [key.name for key in table.partition_keys],
        "partitions": len(partition_names(warehouse.metastore, table)) if counts else None,
        "location": table.location,
        "owner": table.owner,
        "buckets": table.buckets,
        "bucketColumns": list(table.bucket_columns),
        "sortColumns": list(table.sort_columns),
        "noAutoCompaction": bool(properties.auto_off_by),
        "noCleanup": bool(properties.no_cleanup_by),
        "pool": properties.pool or None,
        "thresholds": {
            key.removeprefix(_THRESHOLD): value for key, value in table.parameters.items() if key.startswith(_THRESHOLD)
        },
        "job": dict(properties.job),
    }
