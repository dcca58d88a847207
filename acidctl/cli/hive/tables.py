"""`acidctl hive tables`: the transactional tables that a metastore knows."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import chosen_view_options
from acidctl.cli.options.metastore import exclude_option


def _columns() -> dict[str, str]:
    from acidctl.cli.hive.work.tables import TABLE_COLUMNS  # noqa: PLC0415 - only for shells

    return TABLE_COLUMNS


@shared.command(
    "tables",
    "acidctl hive tables",
    "acidctl hive tables --partitions 'sales.*'",
    "acidctl hive tables -o csv --exclude 'sales.tmp_*' sales",
    "acidctl hive tables --where \"owner = 'etl'\" --columns table,location",
    "acidctl hive tables -o jsonl | jq -r 'select(.noAutoCompaction) | .table'",
)
@click.argument("patterns", nargs=-1, metavar="[PATTERN...]")
@click.option(
    "--partitions",
    "counts_partitions",
    is_flag=True,
    help="Count the partitions of each table, which takes a call each.",
)
@exclude_option
@chosen_view_options("owner = 'etl'", _columns)
@shared.by_work(pages=True)
def command() -> None:
    """List the transactional tables of a metastore: what they are, where they lie, and what is set for them.

    PATTERN is db.table with * and ? for what may stand there, or a database; all tables by default.
    """
