"""What `acidctl demo` does: write the walk-through, or generated rows."""

from __future__ import annotations

from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import note, put_line
from acidctl.demo.big import BigOptions, write_big
from acidctl.demo.walkthrough import write_walkthrough
from acidctl.errors import ConflictError
from acidctl.storage.registry import open_location


def work(
    *,
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
    """Write the table."""
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
