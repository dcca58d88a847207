"""`acidctl hive locks`: who holds which lock, and who waits for whom."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import view_options


@shared.command(
    "locks",
    "acidctl hive locks",
    "acidctl hive locks --waiting",
    "acidctl hive locks --table sales.orders -o jsonl",
)
@shared.typed_option("--table", metavar="DB.TABLE", help="Only those on this table and its partitions.")
@click.option("--waiting", is_flag=True, help="Only those that are not held yet, each with the one it waits for.")
@view_options
@shared.by_work(pages=True)
def command() -> None:
    """List the locks of a metastore: who holds what, since when, and who waits for whom."""
