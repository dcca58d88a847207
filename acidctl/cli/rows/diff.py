"""`acidctl diff`: the rows that appeared and disappeared between two write ids."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import LOCATION, NEW_FILE, WRITE_ID


@shared.command(
    "diff",
    "acidctl diff orders --from 11 --to 12",
    "acidctl diff orders --from 11 --key id --columns id,status",
    "acidctl diff orders --from 11 --to 12 --count",
)
@click.argument("location", metavar="LOCATION|TABLE", type=LOCATION)
@click.option("--from", "start", type=WRITE_ID, required=True, help="What was.")
@click.option("--to", "end", type=WRITE_ID, help="What is; without it the newest.")
@click.option("--key", metavar="COLUMNS", help="Columns that tell a row: what went and came of one key is an update.")
@click.option("--row-id", is_flag=True, help="Put ROW__ID after the change.")
@shared.columns_option
@click.option("--count", is_flag=True, help="Print the number of rows that went and came only.")
@shared.reading_options(*shared.ROW_FORMS, default="jsonl")
@click.option("--out", "to_file", type=NEW_FILE, metavar="PATH", help=shared.WHOLE_FILE)
@shared.by_work(pages=True, isolates=False)
def command() -> None:
    """Print the rows of a LOCATION or a TABLE that disappeared (-) and appeared (+) between two write ids, as
    `acidctl cat --at` would print them at either.

    An UPDATE takes away the old row and adds the new one. With --key the two are one line (~) with `old` and `new`, and
    all changed rows are held in memory. Status 10 once a compaction destroyed one of the snapshots.
    """
