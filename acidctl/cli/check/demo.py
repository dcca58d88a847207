"""`acidctl demo`: a table to try things on."""

from __future__ import annotations

from typing import Any

import click

from acidctl.cli.options import shared
from acidctl.cli.options.param_types import DIRECTORY


@click.command(
    "demo",
    epilog=shared.examples(
        "acidctl demo crud_table",
        "acidctl demo --big --rows 5000000 --inserts 20 --deletes 1000 big_table",
        "acidctl demo --big --base --partitions 8 --buckets 4 --seed 7 orders",
    ),
)
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@click.option(
    "--big", is_flag=True, help="Write generated rows instead of the walk-through; the options below shape them."
)
@click.option(
    "--rows",
    type=click.IntRange(min=0),
    metavar="N",
    default=1_000_000,
    show_default=True,
    help="Rows of each location.",
)
@click.option(
    "--inserts",
    "write_ids",
    type=click.IntRange(min=1),
    metavar="N",
    default=10,
    show_default=True,
    help="Write ids that insert, a delta each.",
)
@click.option(
    "--deletes",
    type=click.IntRange(min=0),
    metavar="N",
    default=1_000,
    show_default=True,
    help="Rows to delete, chosen at random.",
)
@click.option(
    "--delete-write-ids",
    type=click.IntRange(min=1),
    metavar="N",
    default=1,
    show_default=True,
    help="Write ids that delete, a delete delta each.",
)
@click.option(
    "--buckets",
    type=click.IntRange(1, 4096),
    metavar="N",
    default=1,
    show_default=True,
    help="Bucket files of each directory.",
)
@click.option(
    "--partitions",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    show_default=True,
    help="Partitions p=0, p=1 and so on; 0 for none.",
)
@click.option("--seed", type=int, metavar="N", default=0, show_default=True, help="The same seed gives the same rows.")
@click.option("--base", is_flag=True, help="Put the rows of the first write id into a compacted base.")
@click.option(
    "--compression",
    type=click.Choice(["none", "zlib", "snappy", "lz4", "zstd"]),
    default="zlib",
    show_default=True,
    help="Compression of the ORC files.",
)
@shared.storage_options
def command(**asked: Any) -> None:
    """Write a demo table to DIR, which must not exist or be empty.

    Without --big it is `crud_table (id INT, value STRING)` as Hive leaves it after inserting three rows, updating one
    and deleting it: two deltas and two delete deltas.
    """
    from acidctl.cli.check.work.demo import work  # noqa: PLC0415 - loaded when it runs

    work(**asked)
