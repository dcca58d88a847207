"""`acidctl hive tables`: List transactional tables: type, location, owner, settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import NotFoundError, UsageProblem
from acidctl.cli.hive.records import Record, tables_argument
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import chosen_view_options
from acidctl.cli.options.metastore import exclude_option
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn, fitted

if TYPE_CHECKING:
    from acidctl.cli.output.list_choice import View
    from acidctl.metastore.client import Metastore
    from acidctl.metastore.tables import HiveTable

COLUMNS = {
    "database": "string", "table": "string", "type": "string", "format": "string", "partitionKeys": "string",
    "partitions": "bigint", "location": "string", "owner": "string", "buckets": "bigint", "bucketColumns": "string",
    "sortColumns": "string", "noAutoCompaction": "boolean", "noCleanup": "boolean", "pool": "string",
    "thresholds": "string", "job": "string",
}  # fmt: skip
_THRESHOLD = "compactorthreshold."


@shared.command(
    "tables",
    "acidctl hive tables",
    "acidctl hive tables --partitions 'sales.*'",
    "acidctl hive tables -o csv --exclude 'sales.tmp_*' 'sales.*'",
    "acidctl hive tables --where \"owner = 'etl'\" --columns table,location",
    "acidctl hive tables -o jsonl | jq -r 'select(.noAutoCompaction) | .table'",
)
@tables_argument
@click.option(
    "--partitions",
    "counts_partitions",
    is_flag=True,
    help="Count the partitions of each table, which takes a call each.",
)
@exclude_option
@chosen_view_options("owner = 'etl'", lambda: COLUMNS)
def command(
    names: tuple[str, ...], counts_partitions: bool, exclude: tuple[str, ...], metastore: Metastore, view: View
) -> int:
    """List the transactional tables of a metastore: what they are, where they lie, and what is set for them.

    TABLE is db.table, or a pattern of tables such as db.*; all tables by default.
    """
    found = [_record(metastore, table, of, counts_partitions) for table, of in _tables(metastore, names, exclude)]
    return view.show(found, COLUMNS, _table, "no transactional tables")


def _tables(
    metastore: Metastore, names: Sequence[str], exclude: Sequence[str]
) -> Iterator[tuple[HiveTable, Mapping[str, str]]]:
    """Yield each table once, with the properties of its database."""
    from acidctl.hive.table_names import as_hive_names
    from acidctl.location.arguments import HiveName
    from acidctl.metastore.tables import find_tables

    seen: set[str] = set()
    databases: dict[str, Mapping[str, str]] = {}
    for name in map(HiveName.parse, as_hive_names(names or ("*.*",))):
        if name.partition:
            raise UsageProblem(f"{name.database}.{name.table} is named with a partition", "", "leave the partition out")
        for table in find_tables(metastore, name.database, name.table, exclude):
            if table.full_name not in seen:
                seen.add(table.full_name)
                if table.database not in databases:
                    databases[table.database] = _properties(metastore, table.database)
                yield table, databases[table.database]


def _properties(metastore: Metastore, database: str) -> Mapping[str, str]:
    from acidctl.metastore import interface

    try:
        parameters: Mapping[str, str] = metastore.call(interface.GET_DATABASE, database).parameters
    except NotFoundError:  # dropped meanwhile
        return {}
    return parameters


def _record(metastore: Metastore, table: HiveTable, database: Mapping[str, str], partitions: bool) -> Record:
    from acidctl.location.metastore_schema import table_properties
    from acidctl.metastore.tables import partition_names

    settings = table.parameters
    wishes = table_properties(settings, database, database_wins=metastore.features.txn_types)
    return {
        "database": table.database,
        "table": table.name,
        "type": table.table_type.value if table.table_type else None,
        "format": table.format,
        "partitionKeys": [key.name for key in table.partition_keys],
        "partitions": len(partition_names(metastore, table)) if partitions and table.partition_keys else None,
        "location": table.location,
        "owner": table.owner,
        "buckets": table.buckets,
        "bucketColumns": list(table.bucket_columns),
        "sortColumns": list(table.sort_columns),
        "noAutoCompaction": bool(wishes.auto_off_by),
        "noCleanup": bool(wishes.no_cleanup_by),
        "pool": wishes.pool or None,
        "thresholds": {
            key.removeprefix(_THRESHOLD): value for key, value in settings.items() if key.startswith(_THRESHOLD)
        },
        "job": dict(wishes.job),
    }


def _table(found: Sequence[Record]) -> FittedTable:
    return fitted(
        [
            (ScreenColumn("table"), lambda table: f"{table['database']}.{table['table']}"),
            (ScreenColumn("type"), itemgetter("type")),
            (ScreenColumn("format", worth=5), itemgetter("format")),
            (ScreenColumn("partitions", worth=3, is_clear=False), _partitions),
            (ScreenColumn("owner", worth=2, beside=True), itemgetter("owner")),
            (ScreenColumn("location", worth=4), itemgetter("location")),
        ],
        "set",
        found,
        lambda table, cells: Row(cells, "; ".join(_set(table))),
    )


def _partitions(table: Record) -> str:
    keys = ", ".join(table["partitionKeys"])
    return keys if table["partitions"] is None else f"{table['partitions']:,} by {keys}"


def _set(table: Record) -> Iterator[str]:
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
