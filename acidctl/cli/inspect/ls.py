"""`acidctl ls`: every directory of a location with its state and the reason."""

from __future__ import annotations

import click

from acidctl.cli.options import shared


@shared.command(
    "ls",
    "acidctl ls /warehouse/sales.db/orders",
    "acidctl ls --state obsolete --sort size webhdfs://namenode:9870/warehouse/sales.db",
    "acidctl ls --write-ids 'sales.orders:12:9:9:7' --timeline orders",
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
@click.option(
    "--sort",
    "sort_key",
    type=click.Choice(["name", "write-id", "size", "time", "state"]),
    help="Order of the entries in each location.",
)
@click.option("-r", "--recursive", is_flag=True, help="List the entries of every location of a tree.")
@click.option("--rows", is_flag=True, help="Count rows, from the files' footers only.")
@click.option("--timeline", is_flag=True, help="Draw each directory as a bar over the write ids.")
@click.option("-a", "--all", "show_all", is_flag=True, help="Show hidden entries in the table too.")
@shared.reading_options("table", "json", "jsonl", "csv", default="table")
@shared.by_work()
def command() -> None:
    """List the directories of ACID tables with kind, write ids, state and the reason for it.

    PATH is a location, a partitioned table, a database or a warehouse; the current directory by default. A tree of
    several locations gives one line per location, and with --recursive every entry of each.

    Without --write-ids every write id on disk counts as committed.
    """
