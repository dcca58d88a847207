"""`acidctl hive cleaner`: cleans after compactions, as Hive's own cleaner does, through the trash."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.metastore import exclude_option
from acidctl.cli.options.param_types import DURATION
from acidctl.cli.options.removal import how_options


@shared.command(
    "cleaner",
    "acidctl hive cleaner --dry-run",
    "acidctl hive cleaner --once --yes 'hive:sales.*'",
    "acidctl hive cleaner -o jsonl --yes --every 5m --listen 9466",
)
@shared.places_argument("names", "[TABLE...]", required=False, only_names=True)
@click.option("--every", type=DURATION, default="5m", show_default=True, help="Begin a look so often.")
@click.option("--once", is_flag=True, help="End after one look.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be cleaned and stop.")
@how_options
@click.option(
    "--older-than",
    type=DURATION,
    default="1h",
    show_default=True,
    help="Keep what was superseded less than this long ago, for readers that Hive knows nothing of.",
)
@shared.typed_option(
    "--unsafe-retention", is_flag=True, help="Allow --older-than below 1h: everybody reads under Hive's transactions."
)
@click.option("--listen", metavar="[HOST:]PORT", help="Serve /metrics and /healthz there, on 127.0.0.1 without HOST.")
@exclude_option
@asked_metastore
@shared.changed_storage_options
@shared.output_option("table", "jsonl", default="table")
@shared.by_work()
def command() -> None:
    """Remove what compactions replaced, entry by entry of Hive's queue, and tell the metastore so (Hive 4).

    For metastores without a cleaner of their own, and for cleanings that can be undone: what is removed moves to the
    trash of its location, from which `acidctl restore` brings it back and `acidctl purge` deletes it.

    An entry is cleaned when no transaction is open any more that began before its compaction was committed, of whatever
    table, and marked when nothing is left of what it replaced and no row of an aborted transaction could appear. In
    doubt it is left to Hive's own cleaner, with the reason; the two do each other no harm.
    """
