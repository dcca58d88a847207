"""The files from which rows are written, as arguments of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from acidctl.base.errors import UsageProblem
from acidctl.cli.options.param_types import LOCATION
from acidctl.cli.output.console import note_if_typed
from acidctl.storage.options import StorageOptions

if TYPE_CHECKING:
    from acidctl.cli.options.verb_command import Call
    from acidctl.writing.rows.sources import FileSource

STDIN = "-"

file_options = (
    click.argument("files", metavar="FILE...", nargs=-1, required=True, type=LOCATION),
    click.option(
        "--format",
        "form",
        type=click.Choice(["parquet", "orc", "arrow", "csv", "jsonl"]),
        help="Format of every FILE. Default: detected by the end of its name or its first bytes.",
    ),
)
"""The files and their format; the command gets them as `files` and `form`."""


def from_files(call: Call[Any], files: tuple[str, ...], form: str | None) -> FileSource:
    """Return the rows of files.

    Raises:
        UsageProblem: standard input has rows, so that the command cannot ask there for confirmation.
    """
    from acidctl.writing.rows.sources import FileSource

    if STDIN in files:
        if not (call.yes or call.options.dry_run):
            raise UsageProblem("cannot ask for confirmation", "standard input has the rows", "give --yes or --dry-run")
        note_if_typed("rows")
    storage = call.selection.storage
    # Unlike files of tables, the user's may be behind links.
    below = storage.below if isinstance(storage, StorageOptions) else None
    return FileSource(files, form, StorageOptions(storage, below))
