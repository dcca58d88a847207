"""`acidctl purge`: delete the trash of earlier cleaning runs for good."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.local_completion import complete_trash_runs
from acidctl.cli.options.param_types import DURATION


@shared.command(
    "purge",
    "acidctl purge --dry-run /warehouse/sales.db",
    "acidctl purge --yes --older-than 7d /warehouse/sales.db",
    "acidctl purge --yes --run 20261121T222431.512Z-0d9b0f3a orders",
)
@shared.report_options
@shared.locations_argument()
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be deleted and stop.")
@shared.yes_option
@shared.typed_option(
    "--run",
    "run_id",
    metavar="ID",
    shell_complete=complete_trash_runs,
    help="Delete only this run: its id, or a unique beginning of it; see `acidctl restore --list` or `acidctl log`.",
)
@click.option("--older-than", type=DURATION, help="Only runs that began at least this long ago: 7d. Default: all.")
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
    """Delete what cleaning runs moved to the trash of every location at or below LOCATION. This cannot be undone."""
