"""`acidctl demo`: Write a table to try things on."""

from __future__ import annotations

from typing import Any

import click

from acidctl.base.errors import ConflictError
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import DIRECTORY
from acidctl.cli.options.verb_command import options_of
from acidctl.demo.options import BigOptions


@shared.command(
    "demo",
)
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@click.option(
    "--big", is_flag=True, help="Write generated rows instead of the walk-through; the options below shape them."
)
@shared.together(*options_of(BigOptions))
@shared.storage_options
def command(directory: str, big: bool, storage: dict[str, str], **shape: Any) -> None:
    """Write a demo table to DIR, which must not exist or be empty.

    Without --big it is `crud_table (id INT, value STRING)` as Hive leaves it after inserting three rows, updating one
    and deleting it: two deltas and two delete deltas.
    """
    from acidctl.cli.output.console import note, put_line
    from acidctl.demo.big import write_big
    from acidctl.demo.walkthrough import write_walkthrough
    from acidctl.storage.registry import open_location

    if not big:
        shared.refuse_unused("the walk-through, without --big,", *shape)
    fs, path = open_location(directory, storage)
    if fs.exists(path) and fs.list_dir(path).entries:
        raise ConflictError(f"{fs.display(path)} is not empty", "", "give a directory that does not exist yet")
    for written in write_big(fs, path, BigOptions(**shape)) if big else write_walkthrough(fs, path):
        put_line(fs.display(written))
    if not big:
        note(f"try: acidctl ls {directory}")
