"""`acidctl clean`: Remove obsolete and aborted directories, after showing the plan."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.verbs.maintain_options import CleanOptions


@verb_command(
    "clean",
    CleanOptions,
    extras=(shared.table_type_option, shared.exit_code_option),
    place=shared.locations_argument(required=False),
    changes=True,
    asks=True,
    records=True,
)
def command(call: Call[CleanOptions]) -> int:
    """Remove the obsolete and aborted directories of every location at or below LOCATION.

    They move to a hidden directory of the location, .acidctl-trash, from which `acidctl restore` brings them back and
    `acidctl purge` deletes them permanently. What is current, open, or above the high watermark is never touched.

    Queries that are running may still read what is obsolete for new ones. So an entry stays until what supersedes it is
    as old as --older-than, by the newest time in it; that must be longer than the longest query and the
    time that a writer takes from its last file to its commit, together.

    --apply carries out the plan of a file: each location is listed again, and a location that has changed since is
    refused; the others are cleaned.
    """
    from acidctl.verbs.clean import clean

    _refuse_contradictions(call)
    screen = call.screen(is_plan=call.options.dry_run or call.options.plan is not None)
    return screen.show(clean(call.selection, call.options, screen))


def _refuse_contradictions(call: Call[CleanOptions]) -> None:
    options = call.options
    if options.apply is not None:
        shared.refuse_unused("--apply", "locations", "plan", "older_than", "leftovers")
    elif not call.selection.places:
        raise click.UsageError("Missing argument 'LOCATION...': name one, or give --apply FILE.")
    if options.plan is not None:
        from pathlib import Path

        from acidctl.cli.report.run_files import refuse_replacing

        shared.refuse_unused("--plan", "no_trash", "dry_run", "jobs", "lock", "lock_wait", "break_lock")
        refuse_replacing(Path(options.plan), "plan")
