"""`acidctl hive compactions`: the metastore's queue of compactions, its history, and what is stuck there."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import view_options

_STATES = (
    "initiated", "working", "ready for cleaning", "succeeded", "failed", "did not initiate", "refused", "aborted",
)  # fmt: skip


@shared.command(
    "compactions",
    "acidctl hive compactions",
    "acidctl hive compactions --state 'ready for cleaning' --table sales.orders",
    "acidctl hive compactions --stuck --exit-code",
    "acidctl hive compactions --stuck -o jsonl | jq -r '.frees'",
)
@click.option("--state", type=click.Choice(_STATES), help="Only entries in this state.")
@shared.typed_option("--table", metavar="DB.TABLE", help="Only those of this table and its partitions.")
@click.option("--pool", metavar="NAME", help="Only those of this pool of workers (Hive 4).")
@click.option("--stuck", is_flag=True, help="Only those that will not go on by themselves, and what frees each.")
@view_options
@shared.by_work(pages=True)
def command() -> None:
    """List the queue of compactions and its history, as Hive's SHOW COMPACTIONS does, with ages.

    What waits comes first, then the history, newest first. With --stuck: entries whose worker is lost or that are
    worked on for too long, that no worker takes, whose cleaning is held back or whose transaction was aborted, and
    locations that the initiator has given up after failures.
    """
