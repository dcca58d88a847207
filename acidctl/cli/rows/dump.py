"""`acidctl dump`: the events of ORC files with their synthetic columns."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import COUNT_OR_NONE, FILE


@shared.command(
    "dump",
    "acidctl dump delta_0000001_0000001_0000/bucket_00000",
    "acidctl dump --decode --where 'operation = 2 AND originalTransaction >= 10' orders",
    "acidctl dump --columns rowId,row.id -o csv base_0000003",
)
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR...", type=FILE)
@click.option("--decode", is_flag=True, help="Add the operation's name, and the bucket and statement id of `bucket`.")
@shared.columns_option
@click.option("--where", metavar="CONDITION", help="Only events whose synthetic columns meet a condition in SQL.")
@shared.limit_option
@click.option("--offset", type=COUNT_OR_NONE, default=0, help="Skip the first N rows.")
@shared.storage_options
@shared.output_option(*shared.ROW_FORMS, default="jsonl")
@shared.by_work(pages=True, isolates=False)
def command() -> None:
    """Print every event of the files at FILE or below DIR, deleted and aborted ones included.

    The lines are those of `hive --orcfiledump -d`. Files without synthetic columns (originals, LOAD DATA) get those
    that readers would give them. What a reader would see is printed by `acidctl cat`.
    """
