"""`acidctl hive initiator`: asks for the compactions that are due, as Hive's own initiator does."""

from __future__ import annotations

from typing import Any

import click

from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.metastore import exclude_option
from acidctl.cli.options.param_types import COUNT, DURATION


@shared.command(
    "initiator",
    "acidctl hive initiator --dry-run",
    "acidctl hive initiator --once --most 50 --exclude 'sales.tmp_*' 'hive:sales.*'",
    "acidctl hive initiator -o jsonl --every 10m --pool nightly --listen 9465",
)
@shared.places_argument("names", "[TABLE...]", required=False, only_names=True)
@click.option("--every", type=DURATION, default="5m", show_default=True, help="Begin a look so often.")
@click.option("--once", is_flag=True, help="End after one look.")
@click.option("--standby", is_flag=True, help="While another one is at work, wait to take its place.")
@click.option("--most", type=COUNT, help="Ask for so many at each look, those first whose readers gain most.")
@click.option("--pool", metavar="NAME", help="For the workers of this pool; without it that of the table or database.")
@click.option("--listen", metavar="[HOST:]PORT", help="Serve /metrics and /healthz there, on 127.0.0.1 without HOST.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be asked for and stop.")
@exclude_option
@asked_metastore
@shared.storage_options
@shared.output_option("table", "jsonl", default="table")
def command(**asked: Any) -> int:
    """Look where a compaction is due, and ask for it in the metastore's queue: Hive's workers or acidctl's do it then.

    TABLE is hive:db.table or hive:db.*; without any it is the whole warehouse. What is due is decided by the files that
    are there and the thresholds of the tables, as `acidctl compact --auto` does. Those come first whose readers gain
    most. Left alone is what Hive's initiator leaves alone: what waits in the queue already, tables and databases with
    no_auto_compaction, locations whose last compactions failed, databases that are replicated from elsewhere.

    One works in a warehouse at a time: it holds a lock on acidctl.initiator, which SHOW LOCKS shows. One in standby
    takes over when the other one has ended, or died and given no sign of life for the metastore's time-out.
    """
    from acidctl.cli.hive.work.initiator import work  # noqa: PLC0415 - loaded when it runs

    return work(**asked)
