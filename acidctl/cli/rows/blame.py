"""`acidctl blame`: the life of one row."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import LOCATION


@shared.command(
    "blame",
    "acidctl blame orders 1:536870912:2",
    "acidctl blame orders 1:bucket=0:2",
    """acidctl blame orders '{"writeid":1,"bucketid":536870912,"rowid":2}'""",
)
@click.argument("location", metavar="LOCATION", type=LOCATION)
@click.argument("row", metavar="ROWID")
@shared.reading_options("text", "json", default="text")
@shared.by_work(pages=True, isolates=False)
def command() -> None:
    """Show where the row ROWID of a LOCATION was inserted, which compactions rewrote it, and what deleted it.

    ROWID is writeid:bucketid:rowid, where bucketid is the encoded number of ROW__ID; or writeid:bucket=N:rowid with the
    number of the bucket file, whatever the statement; or ROW__ID as `cat --row-id` prints it. Obsolete and aborted
    directories are looked at too.
    """
