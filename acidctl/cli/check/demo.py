"""`acidctl demo`: a table to try things on."""

from __future__ import annotations

import click

from acidctl.cli.options.places import DIRECTORY
from acidctl.cli.options.shared import examples, storage_options


@click.command(
    "demo",
    epilog=examples(
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
@storage_options
def command(
    directory: str,
    big: bool,
    rows: int,
    write_ids: int,
    deletes: int,
    delete_write_ids: int,
    buckets: int,
    partitions: int,
    seed: int,
    base: bool,
    compression: str,
    storage: dict[str, str],
) -> None:
    """Write a demo table to DIR, which must not exist or be empty.

    Without --big it is `crud_table (id INT, value STRING)` as Hive leaves it after inserting three rows, updating one
    and deleting it: two deltas and two delete deltas.
    """
    from acidctl.cli.options.shared import refuse_unused
    from acidctl.cli.output.console import note, put_line
    from acidctl.demo.big import BigOptions, write_big
    from acidctl.demo.walkthrough import write_walkthrough
    from acidctl.errors import ConflictError
    from acidctl.storage.registry import open_location

    if not big:
        # They shape generated rows.
        shapes = ("rows", "write_ids", "deletes", "delete_write_ids", "buckets", "partitions", "seed", "base")
        refuse_unused("the walk-through, without --big,", *shapes, "compression")
    fs, path = open_location(directory, storage)
    if fs.exists(path) and fs.list_dir(path).entries:
        raise ConflictError(f"{fs.display(path)} is not empty", "", "give a directory that does not exist yet")
    if not big:
        for name in write_walkthrough(fs, path):
            put_line(fs.display(f"{path}/{name}"))
        note(f"try: acidctl ls --timeline {directory}")
        return
    for place in range(max(1, partitions)):
        target = f"{path}/p={place}" if partitions else path
        options = BigOptions(rows, write_ids, deletes, delete_write_ids, buckets, seed + place, base, compression)
        write_big(fs, target, options)
        put_line(fs.display(target))
