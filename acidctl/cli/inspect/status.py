"""`acidctl status`: what a warehouse needs, on one screen."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import DIRECTORY


@shared.command(
    "status",
    "acidctl status",
    "acidctl status 'hive:sales.*' || mail -s 'acidctl: something needs attention' ops",
    "acidctl status --fail-on due -o json 'hive:*.*' | jq '.cleaning.freeBytes'",
)
@shared.places_argument("locations", "[WHERE...]", required=False)
@shared.retention_option()
@click.option(
    "--fail-on",
    type=click.Choice(["trouble", "due"]),
    default="trouble",
    show_default=True,
    help="What ends the command with status 14: trouble that nobody mends by itself, or also work that is due.",
)
@click.option(
    "--state",
    "state",
    type=DIRECTORY,
    metavar="DIR",
    help="The --state of `acidctl nightly`, if it is not the usual folder.",
)
@shared.reading_options("table", "json", default="table")
@shared.by_work()
def command() -> None:
    """Show on one screen what tables need: compactions that are due, what cleaning can free, what holds it back,
    trash, and what was interrupted or is stuck.

    WHERE is a location, a table, a database, a warehouse, or names of a metastore: hive:db.table, hive:db.*. Without
    one, where a metastore is configured, it is all of its tables. At most five of each kind are named, the worst
    first; `acidctl advise`, `clean --dry-run`, `txns --blocking` and `compactions --stuck` have the rest.

    Trouble is: a publication that was interrupted half-way; a location that cannot be compacted, cleaned or read as it
    is; an entry of Hive's queue that is stuck; a transaction or lock that has held back a cleaning for longer than
    --older-than. Nothing is changed, no file of data is opened, and each location is listed once.
    """
