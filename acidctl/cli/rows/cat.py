"""`acidctl cat`: the rows that a reader would see."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.local_completion import complete_partitions
from acidctl.cli.options.param_types import LOCATION, NEW_FILE, WRITE_ID


@shared.command(
    "cat",
    "acidctl cat orders --limit 10",
    "acidctl cat orders --partition day=2024-02-29 --columns id,address.city --where 'id > 100'",
    "acidctl cat orders --deleted --row-id --where 'ROW__ID.writeid = 12'",
    "acidctl cat orders --at 11 --count",
    "acidctl cat orders --checksum > before.json",
    "acidctl cat -x --limit 1 orders",
    "acidctl cat --write-ids 'sales.orders:12:9:9:7' -o parquet --out orders.parquet orders",
)
@click.argument("location", metavar="LOCATION|TABLE", type=LOCATION)
@click.option("--row-id", is_flag=True, help="Put ROW__ID first: writeid, bucketid, rowid.")
@shared.columns_option
@click.option("--where", metavar="CONDITION", help="Only rows that meet a condition in SQL.")
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_partitions,
    help="Only partitions of this value. Repeatable.",
)
@click.option("--at", type=WRITE_ID, help="The rows when this write id was the newest.")
@click.option("--deleted", is_flag=True, help="The rows that deletes and updates removed, not those that are left.")
@click.option("--count", is_flag=True, help="Print the number of rows only.")
@click.option(
    "--checksum", is_flag=True, help="Print a checksum of the rows only, the same in whatever order and files they lie."
)
@shared.limit_option
@click.option(
    "-x/-X",
    "--record/--no-record",
    "record",
    default=None,
    help="With -o table: a line for every value, done where rows are wider than the terminal.",
)
@shared.reading_options(*shared.EXPORT_FORMS, default="jsonl")
@click.option("--out", type=NEW_FILE, metavar="PATH", help=shared.WHOLE_FILE)
@click.option("--to", type=NEW_FILE, metavar="PATH", hidden=True, help="What --out was called.")
@click.option("--skip-bad-files", is_flag=True, help="Go on without what cannot be read; say so, and fail, at the end.")
@shared.by_work(pages=True, isolates="skip_bad_files")
def command() -> None:
    """Print the rows of a LOCATION or a TABLE with all its partitions, deletes applied, as a reader of the snapshot
    would return them.

    Without --write-ids every write id on disk counts as committed. The rows come file by file: base, originals, then
    deltas in Hive's order. Partition columns come last; they are numbers or dates if all their values are spelled so.

    Conditions are SQL: = <> < <= > >= IN BETWEEN LIKE IS NULL AND OR NOT, with numbers, 'text', dates and timestamps.
    """
