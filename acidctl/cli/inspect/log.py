"""`acidctl log`: what acidctl did to tables, and who had it done."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import COUNT, DURATION

_SHOWN = 20
"""Operations in the table, unless -n says more."""


@shared.command(
    "log",
    "acidctl log orders",
    "acidctl log --since 7d /warehouse/sales.db",
    "acidctl log -n 100 'hive:sales.*'",
    "acidctl log -o jsonl /warehouse | jq -r 'select(.verb == \"clean\") | .location'",
)
@shared.locations_argument()
@click.option(
    "-n",
    "--limit",
    type=COUNT,
    help=f"Show the newest N operations; without it {_SHOWN} in the table, and all in the other forms.",
)
@click.option("--since", type=DURATION, help="Only what ended at most so long ago: 7d, 24h.")
@shared.named_locations
@shared.storage_options
@shared.output_option("table", "json", "jsonl", default="table")
@shared.by_work(pages=True, shown=_SHOWN)
def command() -> None:
    """Show what acidctl did to every location at or below LOCATION, newest first: compactions, cleanings, what was
    restored, purged or repaired; when, by whom, and with which result.

    Each location has a log of its own, in a hidden file beside its data, with the newest 200 operations. What was done
    before there was one is told from the trash and from the backups of repairs, as long as they are there.

    A log is for people, and nothing rests on it: whoever may write into the table may write into it, too. Where the
    store knows to whom its file belongs, `owner` says so in the forms for programs.
    """
