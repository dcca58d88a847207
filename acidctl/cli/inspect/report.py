"""`acidctl report`: the state of a warehouse as one page, to be mailed or put on a server."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import NEW_FILE


@shared.command(
    "report",
    "acidctl report --out report.html /warehouse/sales.db",
    "acidctl report --history report.jsonl --out report.html 'hive:*.*'",
    "acidctl report -o md 'hive:sales.*' | mail -s 'tables of sales' ops",
    "acidctl report -o json /warehouse | jq '.cleaning.freeBytes'",
)
@shared.places_argument("locations", "[WHERE...]", required=False)
@shared.retention_option()
@click.option(
    "--history",
    type=NEW_FILE,
    metavar="FILE",
    help="Show the reports of the same places before this one, from a file with a line for each, and add this one.",
)
@click.option(
    "--out",
    type=NEW_FILE,
    metavar="FILE",
    help="Write to a file, in place of the report that was there, not to stdout.",
)
@shared.reading_options("html", "md", "json", default="html")
@shared.by_work()
def command() -> None:
    """Write a report on tables: one page of HTML that needs nothing else, Markdown, or JSON.

    It has the bytes of every table by what they are for (current, obsolete, aborted, trash); the tables that are read
    worst; what cleaning can free now, within a day or later, and what holds back the rest; what was written and
    compacted in the last 30 days; and, with --history, the reports before it.

    The page loads nothing, runs no script, and adapts to light, dark, a small screen and paper. At most 40 tables are
    named, the largest first; the rest are one. Each location is listed once, and no file of data is opened.
    """
