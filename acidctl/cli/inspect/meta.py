"""`acidctl meta`: what an ORC file's tail says."""

from __future__ import annotations

from typing import Any

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import FILE


@click.command(
    "meta",
    epilog=shared.examples(
        "acidctl meta base_0000003/bucket_00000",
        "acidctl meta -o json delta_*/bucket_* | jq '.[].acid.stats'",
    ),
)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", type=FILE)
@shared.storage_options
@shared.output_option("table", "json", "jsonl", default="table")
def command(**asked: Any) -> int:
    """Show the tail of ORC files: types, stripes with the key index, statistics, compression, writer, hive.acid.*."""
    from acidctl.cli.inspect.work.meta import work  # noqa: PLC0415 - loaded when it runs

    return work(**asked)
