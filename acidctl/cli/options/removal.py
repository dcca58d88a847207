"""Options of the commands that remove: whether they ask, and where to things go."""

from __future__ import annotations

import click

from acidctl.cli.options import shared


def _way(no_trash: bool, trash: str) -> str:
    """Where to what is removed goes: trash, hdfs or delete."""
    if no_trash and trash == "hdfs":
        raise click.UsageError("--no-trash deletes at once: leave out --trash hdfs.")
    return "delete" if no_trash else "hdfs" if trash == "hdfs" else "trash"


how_options = shared.together(
    shared.yes_option,
    shared.passed_as(
        "how",
        _way,
        shared.typed_option(
            "--no-trash", is_flag=True, help="Delete at once instead of moving to the location's trash."
        ),
        click.option(
            "--trash",
            type=click.Choice(["location", "hdfs"]),
            default="location",
            show_default=True,
            help="hdfs: move to the user's .Trash instead, from which HDFS deletes by its own times.",
        ),
    ),
)
"""Passed on as the keywords `yes` and `how`."""
