"""`acidctl restore`: bring back what a cleaning run moved to the trash."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.local_completion import complete_trash_runs


@shared.command(
    "restore",
    "acidctl restore orders",
    "acidctl restore --list /warehouse/sales.db",
    "acidctl restore --dry-run /warehouse/sales.db",
    "acidctl restore --yes --run 20261121T2224 /warehouse/sales.db",
)
@shared.report_options
@shared.locations_argument()
@shared.typed_option("--list", "list_only", is_flag=True, help="List the runs in the trash and stop.")
@shared.typed_option(
    "--run",
    "run_id",
    metavar="ID",
    shell_complete=complete_trash_runs,
    help="Which run, or how its id begins; the newest by default.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be restored and stop.")
@shared.yes_option
@shared.lock_options
@shared.deadline_option
@shared.jobs_option
@shared.named_locations
@shared.changed_storage_options
@shared.verbosity_options
@shared.output_option("table", "json", "jsonl", default="table")
@shared.procedure
@shared.by_work()
def command() -> None:
    """Undo a cleaning: move back what it took from every location at or below LOCATION.

    A cleaning of many locations has one id in all of them, and all of it is brought back; that is asked about, where
    one location that was named itself is restored at once. With --run, it is the newest run of each location whose id
    begins so.

    The files are compared with those that were moved, and the state of the location with the one before the cleaning;
    where others wrote meanwhile, the difference is told.
    """
