"""`acidctl erasure`: which files still hold rows that meet a condition, and what makes them go."""

from __future__ import annotations

import click

from acidctl.cli.options import shared


@shared.command(
    "erasure",
    "acidctl erasure --where 'customer_id = 4711' /warehouse/sales.db/orders",
    "acidctl erasure --where \"email = 'ann@example.org'\" 'hive:sales.*'",
    "acidctl erasure --prove -o json --where 'customer_id = 4711' hive:sales.orders > proof.json && echo gone",
)
@shared.places_argument("locations", "WHERE...")
@click.option(
    "--where", "condition", metavar="CONDITION", required=True, help="The rows, by a condition in SQL as of `cat`."
)
@click.option(
    "--prove",
    is_flag=True,
    help="Take checksums of all files, and list locations once more at the end: reads every byte.",
)
@shared.typed_option("--hdfs-trash/--no-hdfs-trash", default=True, help="Look into the trashes of HDFS. [default: do]")
@click.option("-v", "--verbose", is_flag=True, help="Name every file.")
@shared.reading_options("table", "json", default="table")
@shared.by_work(isolates=False)
def command() -> None:
    """Say which files of a table physically hold rows that meet a condition, what makes them go, and when.

    All files count, of whatever state: current, obsolete, aborted, of open transactions, in acidctl's trash, in
    backups of repairs, in staging, in partitions that nobody knows, and in the trashes of HDFS; and all events: rows
    that are read, older versions of them, and deleted ones. WHERE is a location, a table, a database, or a name of a
    metastore. Nothing is changed.

    The exit status is 0 only where every file could be looked at and none holds such a row: it is 14 where some do,
    and 15 where none was found but something could not be read, or lacks a column. `-o json` is a proof to keep, with
    size, time and, with --prove, checksum of each file.
    """
