"""`acidctl hive housekeep`: end transactions and locks of dead clients, where the metastore does not do it."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import asked_metastore
from acidctl.cli.options.param_types import DURATION


@shared.command(
    "housekeep",
    "acidctl hive housekeep --dry-run",
    "acidctl hive housekeep --yes",
    "acidctl hive housekeep --yes --older-than 1h --exit-code -o jsonl",
)
@click.option(
    "--older-than", type=DURATION, metavar="TIME", help="Only those that are silent for so long; the server's time-out."
)
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be ended and stop.")
@shared.yes_option
@shared.typed_option("--force", is_flag=True, help="Do it even though the server says that it does it itself.")
@shared.exit_code_option
@asked_metastore
@shared.output_option("table", "json", "jsonl", default="table")
@shared.by_work()
def command() -> None:
    """Abort transactions and release locks that gave no sign of life for the server's time-out.

    Hive's own house keeper does this where it runs; a metastore that stands alone, or Hive 4 without
    metastore.housekeeping.threads.on, has none, and what a client leaves that dies holds back cleaning for ever.
    Refused where one of the metastore's servers says that it keeps house.

    The time is the server's, read from a transaction that is opened and committed for that. Transactions of a
    replication are left alone; before Hive 4, where nobody tells which those are, transactions without locks are left
    alone too, if anything is replicated into this warehouse.
    """
