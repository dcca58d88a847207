"""`acidctl demo`: Write a table to try things on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from acidctl.base.errors import ConflictError
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import DIRECTORY, NumberType
from acidctl.cli.options.shared import F


def _count(option: str, least: int, default: int, text: str, *name: str, most: int | None = None) -> Callable[[F], F]:
    kind = NumberType("N", least, most)
    return click.option(option, *name, type=kind, default=default, show_default=True, help=text)


@shared.command(
    "demo",
    "acidctl demo crud_table",
    "acidctl demo --big --rows 5000000 --inserts 20 --deletes 1000 big_table",
    "acidctl demo --big --base --partitions 8 --buckets 4 --seed 7 orders",
)
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@click.option(
    "--big", is_flag=True, help="Write generated rows instead of the walk-through; the options below shape them."
)
@_count("--rows", 0, 1_000_000, "Rows of each location.")
@_count("--inserts", 1, 10, "Write ids that insert, one delta each.", "write_ids")
@_count("--deletes", 0, 1_000, "Rows to delete, chosen at random.")
@_count("--delete-write-ids", 1, 1, "Write ids that delete, one delete delta each.")
@_count("--buckets", 1, 1, "Bucket files of each directory.", most=4096)
@_count("--partitions", 0, 0, "Partitions p=0, p=1 and so on; 0 for none.")
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
def command(directory: str, big: bool, partitions: int, seed: int, storage: dict[str, str], **shape: Any) -> None:
    """Write a demo table to DIR, which must not exist or be empty.

    Without --big it is `crud_table (id INT, value STRING)` as Hive leaves it after inserting three rows, updating one
    and deleting it: two deltas and two delete deltas.
    """
    from acidctl.cli.output.console import note, put_line  # noqa: PLC0415 - --help does without
    from acidctl.demo.big import BigOptions, write_big  # noqa: PLC0415 - --help does without
    from acidctl.demo.walkthrough import write_walkthrough  # noqa: PLC0415 - --help does without
    from acidctl.storage.registry import open_location  # noqa: PLC0415 - --help does without

    if not big:
        shared.refuse_unused("the walk-through, without --big,", "partitions", "seed", *shape)
    fs, path = open_location(directory, storage)
    if fs.exists(path) and fs.list_dir(path).entries:
        raise ConflictError(f"{fs.display(path)} is not empty", "", "give a directory that does not exist yet")
    if not big:
        for name in write_walkthrough(fs, path):
            put_line(fs.display(f"{path}/{name}"))
        note(f"try: acidctl ls --timeline {directory}")
        return
    for partition in range(max(1, partitions)):
        target = f"{path}/p={partition}" if partitions else path
        write_big(fs, target, BigOptions(seed=seed + partition, **shape))
        put_line(fs.display(target))
