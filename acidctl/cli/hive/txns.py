"""`acidctl hive txns`: the transactions of a metastore, and which of them hold back which cleaning."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import view_options
from acidctl.cli.options.param_types import DURATION


@shared.command(
    "txns",
    "acidctl hive txns --open",
    "acidctl hive txns --open --older-than 1h --user etl",
    "acidctl hive txns --blocking",
    "acidctl hive txns --blocking hive:sales.orders",
    "acidctl hive txns --blocking --exit-code -o jsonl | jq -r '.id, .user, .bytes'",
)
@shared.places_argument("tables", "[TABLE...]", required=False, only_names=True)
@click.option("--open", "only", flag_value="open", help="Only open ones.")
@click.option("--aborted", "only", flag_value="aborted", help="Only aborted ones that are not forgotten yet.")
@click.option("--older-than", type=DURATION, metavar="TIME", help="Only those that began so long ago: 1h, 2d.")
@click.option("--user", metavar="NAME", help="Only those of this user.")
@click.option("--blocking", is_flag=True, help="Only those for which a cleaning waits, with what waits for them.")
@click.option(
    "--sizes/--no-sizes",
    default=True,
    help="With --blocking: list the locations to tell how many bytes wait, or leave that out.",
)
@shared.storage_options
@view_options
@shared.by_work(pages=True)
def command() -> None:
    """List the transactions that are open, or aborted and not forgotten, with their locks.

    --blocking says what holds back cleaning, the transaction first for which most bytes wait: of every compaction that
    is ready for cleaning in the metastore's queue; of TABLE, hive:db.table, whatever is obsolete or aborted on disk,
    whether it is in the queue or not. On Hive 4 every open transaction that began before a compaction was committed
    holds back its cleaning, whatever it reads; on Hive 3 the locks on the table do.

    Ages are by the clock of this machine, or by the newest time of the server where that is ahead.
    """
