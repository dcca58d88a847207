"""Commands that check and mend tables.

`acidctl validate`: Check names, files and rows by the rules of the format.
`acidctl repair`: Mend what validate finds.
"""

from __future__ import annotations

import click

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.verbs.reading.validate import ValidateOptions, validate
from acidctl.verbs.repair import RepairOptions, repair


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
def validate_command(call: Call[ValidateOptions], *, fail_on: str) -> int:
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


@verb_command(
    "repair", RepairOptions, source=shared.named_locations, extras=(shared.table_type_option,), changes=True, asks=True
)
def repair_command(call: Call[RepairOptions]) -> int:
    """Mend what `acidctl validate` finds broken, if that can be done safely; say why the rest cannot be mended.

    \b
    key-index     rewrite hive.acid.key.index from the rows of a file (rule V30), as Hive's fixacidkeyindex does
    flush-length  cut the file of a dead streaming writer to its last committed length (rule V36)
    nested        mend a directory that a rename put into another of the same name (rule V17, HIVE-25600)
    empty-result  take away an empty compaction result, so that readers see the rows that it hides (rule V43)
    version-file  write a missing or torn _orc_acid_version if the files are certainly of version 2 (rule V13)

    The plan is shown first. New files are written into a hidden directory of the location, .acidctl-backup, and read
    again before one step of the store swaps them in. The old ones stay there: `acidctl restore` brings them back,
    `acidctl purge` deletes them.

    A file that was written within the last hour is left alone, because its writer may be alive; --force overrides that.
    A nested directory that takes the place of an empty one needs two renames, between which readers see neither: that
    needs --offline. An empty result that was made in a transaction (base_3_v26) needs --force, because files do not
    show whether the transaction is committed.

    Queries that read a file while it is replaced may fail, and succeed when they are run again. New files belong to
    whoever runs the repair. Each needs its size twice in free space for a while.
    """
    return call.show(repair)
