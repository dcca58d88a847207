"""`acidctl validate`: Check names, files and rows by the rules of the format."""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.verbs.reading.validate import ValidateOptions, validate


@verb_command(
    "validate",
    ValidateOptions,
    source=shared.snapshot_of("exclude", "read_lock"),
    extras=(
        shared.table_type_option,
        click.option(
            "--fail-on",
            type=click.Choice(["error", "warning"]),
            default="error",
            show_default=True,
            help="The lowest severity for which the exit status is 14.",
        ),
    ),
    forms=("table", "json", "jsonl"),
    records=True,
    isolates=True,
)
def command(call: Call[ValidateOptions], *, fail_on: str) -> int:
    """Check every location at or below LOCATION against the rules of Hive's ACID format; change nothing.

    Without options only names, sizes and times are checked, from one listing per location. --footers reads the
    footers of the current data files, --deep all of their rows. `acidctl explain rules` prints the rules.

    Files are read in separate processes: a file that crashes its reader is a finding, and the check continues. With
    --engine spark these processes run beside Spark's workers; locations are listed, and files compared with each other,
    on this machine.
    """
    from acidctl.cli.check.validate_screen import ValidateScreen

    if not (call.options.deep or call.options.footers or call.options.readers):
        shared.refuse_unused("a check of names alone", "jobs", "timeout", "all_directories", "schema")
    screen = ValidateScreen(call.output, call.run)
    screen.show(validate(call.selection, call.options, screen))
    return screen.exit_status(fail_on)
