"""`acidctl hive abort`: end transactions, and take compactions out of the queue."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.param_types import NumberType

_ids = click.argument("ids", nargs=-1, required=True, type=NumberType("ID", 1))
_common = shared.together(
    click.option("-n", "--dry-run", is_flag=True, help="Show what would be ended and stop."),
    shared.yes_option,
    asked_metastore,
    shared.output_option("table", "json", "jsonl", default="table"),
)


@click.group(
    "abort",
    epilog=shared.examples("acidctl hive abort txn 812", "acidctl hive abort compaction --yes 17 18"),
    no_args_is_help=True,
)
def command() -> None:
    """End transactions, or take compactions that wait out of the queue, after showing what they are."""


@shared.command(
    "txn",
    "acidctl hive abort txn 812",
    "acidctl hive abort txn --dry-run 812 813",
    group=command,
    short_help="Abort transactions by their ids.",
)
@_ids
@_common
@shared.by_work("abort_txns")
def txn_command() -> None:
    """Abort open transactions: nothing of what they wrote will ever be read, and their locks go.

    What each is doing is shown first. Where an id is not that of an open transaction, none is aborted. A query that is
    at work fails when it next asks the metastore.
    """


@shared.command(
    "compaction",
    "acidctl hive abort compaction 17",
    "acidctl hive abort compaction --yes -o json 17 18",
    group=command,
    short_help="Take compactions that wait out of the queue (Hive 4).",
)
@_ids
@_common
@shared.by_work("take_compactions_out")
def compaction_command() -> None:
    """Take entries that are initiated, and that no worker has taken, out of the metastore's queue.

    Entries in other states cannot be taken out, and what can be done about them is said. Servers before Hive 4 cannot
    do it at all.
    """
