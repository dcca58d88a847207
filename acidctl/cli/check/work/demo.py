"""What `acidctl demo` does: write the walk-through, or generated rows."""

from __future__ import annotations

from typing import Any

from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import note, put_line
from acidctl.demo.big import BigOptions, write_big
from acidctl.demo.walkthrough import write_walkthrough
from acidctl.errors import ConflictError
from acidctl.storage.registry import open_location


def work(*, directory: str, big: bool, partitions: int, seed: int, storage: dict[str, str], **shape: Any) -> None:
    """Write the table.

    Args:
        shape: further attributes of :class:`BigOptions`.
    """
    if not big:
        refuse_unused("the walk-through, without --big,", "partitions", "seed", *shape)
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
        write_big(fs, target, BigOptions(seed=seed + place, **shape))
        put_line(fs.display(target))
