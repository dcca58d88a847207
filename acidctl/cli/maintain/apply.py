"""`acidctl apply`: carry out plans that `acidctl clean --plan` saved."""

from __future__ import annotations

import click

from acidctl.cli.maintain.clean import plan_options
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import FILE
from acidctl.cli.options.removal import how_options


@shared.command(
    "apply",
    "acidctl apply --dry-run monday.json",
    "acidctl apply --yes monday.json",
    "acidctl apply --yes --trash hdfs --storage-option user=hive monday.json",
)
@shared.report_options
@click.argument("plan_file", metavar="FILE", type=FILE)
@click.option("-n", "--dry-run", is_flag=True, help="Show the plans that still hold and stop.")
@how_options
@shared.typed_option(
    "--unsafe-retention", is_flag=True, help="Apply a plan of --older-than below 1h: nothing reads the tables."
)
@plan_options
@shared.by_work()
def command() -> None:
    """Carry out the cleaning that FILE plans, in every location that is still as it was.

    Each is listed again; one in which anything visible came, went or changed since is refused, and the others are gone
    on with. FILE holds no credentials: give the options of the storage here again.

    What is committed is best said here anew, by --write-ids-from or --assume-committed; without, it is what FILE says,
    if nobody but you and root can have written that.
    """
