"""`acidctl ls`: every directory of a location with its state and the reason."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.list_options import list_options


def _columns() -> dict[str, str]:
    from acidctl.cli.report.entry_list import ENTRY_COLUMNS  # noqa: PLC0415 - only for shells
    from acidctl.cli.report.location_list import LOCATION_COLUMNS  # noqa: PLC0415 - only for shells

    return LOCATION_COLUMNS | ENTRY_COLUMNS


@shared.command(
    "ls",
    "acidctl ls /warehouse/sales.db/orders",
    "acidctl ls --state obsolete --sort size webhdfs://namenode:9870/warehouse/sales.db",
    "acidctl ls --write-ids 'sales.orders:12:9:9:7' --timeline orders",
    "acidctl ls --where 'deltas > 50' --sort deltas --columns location,deltas,bytes /warehouse",
    "acidctl ls -o svg orders > orders.svg",
    "acidctl ls --tables nightly.txt",
    "acidctl ls -o jsonl --recursive /warehouse | jq '.summary.obsolete.bytes'",
)
@shared.places_argument("paths", "[PATH...]", required=False)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(["current", "obsolete", "aborted", "ignored"]),
    help="Only entries in this state. Repeatable.",
)
@list_options("deltas > 50", _columns, "name, write-id, size, time, state")
@click.option("-r", "--recursive", is_flag=True, help="List the entries of every location of a tree.")
@click.option("--rows", is_flag=True, help="Count rows, from the files' footers only.")
@click.option(
    "--timeline",
    is_flag=True,
    help="Draw bases, deltas and delete deltas over the write ids.",
)
@click.option("-a", "--all", "show_all", is_flag=True, help="Show hidden entries in the table too.")
@shared.verbosity_options
@shared.reading_options("table", "json", "jsonl", "csv", "svg", default="table")
@shared.by_work(pages=True)
def command() -> None:
    """List the directories of ACID tables with kind, write ids, state and the reason for it.

    PATH is a location, a partitioned table, a database or a warehouse; the current directory by default. A tree of
    several locations gives one line per location, and with --recursive every entry of each. Of a table with many
    partitions, and of many entries in the same state, -v gives all lines.

    --where, --sort and --columns go by the columns of the list: those of locations in a tree (location, verdict,
    deltas, bytes...), else those of entries (name, kind, state, reason, files, bytes...).

    Without --write-ids every write id on disk counts as committed. A timeline is as high as the bytes of what it shows:
    a step lower is four times less; -o svg draws that of one location as a picture.
    """
