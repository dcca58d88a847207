"""`acidctl purge`: delete the trash of earlier cleaning runs for good."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import DURATION


@shared.command(
    "purge",
    "acidctl purge --dry-run /warehouse/sales.db",
    "acidctl purge --yes orders",
    "acidctl purge --yes --older-than 7d /warehouse/sales.db",
)
@shared.report_options
@shared.locations_argument()
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be deleted and stop.")
@shared.yes_option
@click.option("--older-than", type=DURATION, help="Only runs that began so long ago: 7d, 24h. Without it all.")
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
