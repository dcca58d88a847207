"""`acidctl meta`: what an ORC file's tail says."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import FILE


@shared.command(
    "meta",
    "acidctl meta base_0000003/bucket_00000",
    "acidctl meta -o json delta_*/bucket_* | jq '.[].acid.stats'",
)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", type=FILE)
@shared.storage_options
@shared.output_option("table", "json", "jsonl", default="table")
@shared.by_work(pages=True)
def command() -> None:
    """Show the tail of ORC files: types, stripes with the key index, statistics, compression, writer, hive.acid.*."""
