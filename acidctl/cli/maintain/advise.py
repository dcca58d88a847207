"""`acidctl advise`: which locations cost their readers most, and what compaction would save."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.list_options import list_options
from acidctl.cli.options.param_types import COUNT, SIZE

_SHOWN = 20
"""Locations in the table, unless --limit says more."""


def _columns() -> dict[str, str]:
    from acidctl.cli.maintain.work.advise import ADVICE_COLUMNS  # noqa: PLC0415 - only for shells

    return ADVICE_COLUMNS


@shared.command(
    "advise",
    "acidctl advise /warehouse",
    "acidctl advise --sort gain --limit 5 hdfs://nn/warehouse/sales.db",
    "acidctl advise --max-bytes 500g 'hive:*.*'",
    "acidctl advise --rows --sort deletes orders",
    "acidctl advise --where 'score < 50' --columns location,score,command /warehouse",
    "acidctl advise -o jsonl /warehouse | jq -r 'select(.gain > 1) | .command'",
)
@shared.locations_argument()
@list_options("gain > 1", _columns, "cost (the usual one), gain, files, small-files, deletes")
@click.option(
    "--limit",
    type=COUNT,
    help=f"Show the first N locations; without it {_SHOWN} in the table, and all in the other forms.",
)
@click.option("--max-bytes", type=SIZE, help="What fits if so much may be rewritten: those that gain most for it.")
@click.option("--rows", is_flag=True, help="Count the delete events too, from the files' footers.")
@shared.reading_options("table", "json", "jsonl", "csv", default="table")
@shared.by_work(pages=True, shown=_SHOWN)
def command() -> None:
    """Rank the locations at or below LOCATION by what they cost their readers.

    A reader lists every directory, opens every file, and holds the delete events while it reads rows. The cost counts 4
    MiB for each directory and file beyond the fewest that there can be, and the bytes of the delete events once for
    each file of rows. The score is the part of a full read that is of use; seconds are those of one reader of 100 MiB a
    second, to whom opening a file is 40 ms. The gain is what the better of the two compactions saves at every full
    read, for each byte that it rewrites once.

    The command to run, in the forms for programs, says what was said here of the snapshot and of the storage (of
    secrets the names only), or else that what is older than an hour is committed. With --offline it is one for a time
    when nothing reads the table.

    Only listings are read, unless --rows asks for the footers of delete deltas.
    """
