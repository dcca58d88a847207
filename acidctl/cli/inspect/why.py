"""`acidctl why`: the proof of a verdict, and what must happen before cleaning may take an entry."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.local_completion import complete_entries
from acidctl.cli.options.param_types import LOCATION


@shared.command(
    "why",
    "acidctl why /warehouse/sales.db/orders",
    "acidctl why orders delta_0000003_0000003_0000",
    "acidctl why --write-ids 'sales.orders:12:9:9:7' --valid-txns '900:880:880:' orders base_0000010",
    "acidctl why -o json orders | jq '.[].proofs[] | select(.cleaning.may == \"kept-back\") | .cleaning.next'",
)
@click.argument("location", metavar="LOCATION", type=LOCATION)
@click.argument("names", nargs=-1, metavar="[NAME...]", shell_complete=complete_entries)
@shared.reading_options("table", "json", "jsonl", default="table")
@shared.by_work(pages=True)
def command() -> None:
    """Explain the state of every directory of LOCATION, or in more detail of those that are named.

    It says which base is read and why no other, what takes a directory's place, which write id, transaction or missing
    history blocks it, and whether cleaning may take it, or what must happen first. A snapshot that is refused for "not
    enough history" is explained, too.

    NAME is a directory or a file of the location; its numbers may be written without zeros.
    """
