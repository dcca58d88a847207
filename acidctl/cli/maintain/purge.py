"""`acidctl purge`: delete the trash of earlier cleaning runs for good."""

from __future__ import annotations

from typing import Any

import click

from acidctl.cli.options.amounts import DURATION
from acidctl.cli.options.shared import (
    changed_storage_options,
    examples,
    locations_argument,
    lock_options,
    output_option,
    report_options,
    typed_option,
)
from acidctl.cli.options.unattended import deadline_option, jobs_option


@click.command(
    "purge",
    epilog=examples(
        "acidctl purge --dry-run /warehouse/sales.db",
        "acidctl purge --yes orders",
        "acidctl purge --yes --older-than 7d /warehouse/sales.db",
    ),
)
@report_options
@locations_argument()
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be deleted and stop.")
@typed_option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--older-than", type=DURATION, metavar="TIME", help="Only runs that began so long ago: 7d, 24h. Without it all."
)
@lock_options
@deadline_option
@jobs_option
@changed_storage_options
@output_option("table", "json", "jsonl", default="table")
def command(**asked: Any) -> int:
    """Delete what cleaning runs moved to the trash of every location at or below LOCATION. This cannot be undone."""
    from acidctl.cli.maintain.work.purge import work  # noqa: PLC0415 - loaded when it runs

    return work(**asked)
