"""`acidctl history`: what every write id did to a location."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import LOCATION


@shared.command(
    "history",
    "acidctl history orders",
    "acidctl history --write-ids 'sales.orders:12:9:9:7' orders",
    "acidctl history -o json orders | jq '.[].writeIds[] | select(.deleted > 1000)'",
)
@click.argument("location", metavar="LOCATION|TABLE", type=LOCATION)
@shared.reading_options("table", "json", "jsonl", "csv", default="table")
@shared.by_work(pages=True, isolates=False)
def command() -> None:
    """Show what every write id did to a LOCATION: rows inserted, updated and deleted, and where its directories went.

    An UPDATE is stored as a delete and an insert: as many rows as one write id has of both count as updated, and what
    remains of either as inserted or deleted. Obsolete and aborted directories count as long as they are there. Below a
    base whose deltas are gone only the rows that were left can be counted: `?` stands for the rest.

    What acidctl did there stands between, at its time, as `acidctl log` has it.
    """
