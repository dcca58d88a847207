"""`acidctl repair`: mend what is wrong on disk, after showing what is wrong and what will be done."""

from __future__ import annotations

from typing import Any

import click

from acidctl.cli.options import shared
from acidctl.cli.options.local_completion import complete_repairs
from acidctl.cli.options.param_types import DIRECTORY

_dry_run = click.option("-n", "--dry-run", is_flag=True, help="Show what would be done and stop.")
_output = shared.output_option("table", "json", "jsonl", default="table")
_force = shared.typed_option("--force", is_flag=True, help="Count whoever wrote within the last hour as dead.")
_common = shared.together(
    shared.unrecorded,
    shared.locations_argument(),
    _dry_run,
    shared.yes_option,
    shared.lock_options,
    shared.table_type_option,
    shared.named_locations,
    shared.changed_storage_options,
    _output,
)
"""The options that all repairs share."""


@click.group(
    "repair",
    epilog=shared.examples(
        "acidctl repair key-index --dry-run /warehouse/sales.db",
        "acidctl repair flush-length --yes orders/delta_0000007_0000016",
        "acidctl repair undo orders",
    ),
    no_args_is_help=True,
)
def command() -> None:
    """Mend what `acidctl validate` finds broken and what can be mended safely; say of the rest why it cannot.

    What is wrong and what will be done is shown first. New files are written into a hidden directory of the location,
    .acidctl-backup, and read again before they take the place of the old ones, in one step of the store. The old ones
    stay there: `acidctl repair undo` brings them back, `acidctl repair forget` deletes them.

    Queries that read a file at the moment it is replaced may fail, and succeed when they are run again. New files
    belong to whoever runs the repair; for a while each needs its size twice in free space.
    """


def _repair(kind: str, given: dict[str, Any]) -> int:
    from acidctl.cli.check.repair_run import work  # noqa: PLC0415 - --help does without

    return work(kind=kind, **given)


@shared.command(
    "key-index",
    "acidctl repair key-index --dry-run /warehouse/sales.db",
    "acidctl repair key-index --yes orders",
    "acidctl repair key-index orders/base_0000012/bucket_00000",
    group=command,
    short_help="Write the key index of a file anew from its rows.",
)
@_common
@shared.runs()
def key_index_command(**given: Any) -> int | None:
    """Write hive.acid.key.index anew where it is missing or wrong (rule V30), as Hive's fixacidkeyindex does.

    Stripes are copied byte for byte, and of the footer nothing but this entry changes. LOCATION may also be a
    directory of a location, or one file.
    """
    return _repair("key-index", given)


@shared.command(
    "flush-length",
    "acidctl repair flush-length --dry-run /warehouse/sales.db",
    "acidctl repair flush-length --yes orders",
    "acidctl repair flush-length orders/delta_0000007_0000016/bucket_00000",
    group=command,
    short_help="Cut a dead streaming writer's file to what it committed.",
)
@_common
@_force
@shared.runs()
def flush_length_command(**given: Any) -> int | None:
    """Cut files of dead streaming writers to their last committed length, and take the side files away (rule V36).

    Rows beyond that length were never committed, and no reader returns them. A file that was written within the last
    hour is left alone: its writer may be alive. LOCATION may also be a directory of a location, or one file.
    """
    return _repair("flush-length", given)


@shared.command(
    "nested",
    "acidctl repair nested --dry-run /warehouse/sales.db",
    "acidctl repair nested --yes orders",
    "acidctl repair nested --yes --offline orders/base_0000012",
    group=command,
    short_help="Mend a directory that was renamed into another.",
)
@shared.typed_option("--offline", is_flag=True, help="Nothing reads the table now: two renames may be needed.")
@_common
@_force
@shared.runs()
def nested_command(**given: Any) -> int | None:
    """Mend directories that a rename put into another of the same name (rule V17, HIVE-25600).

    Where the outer directory holds the same events, the inner one goes into the backup. Where the outer one holds no
    data, the inner one takes its place: between two renames readers see neither of them, so that asks for --offline.
    """
    return _repair("nested", given)


@shared.command(
    "empty-result",
    "acidctl repair empty-result --dry-run /warehouse/sales.db",
    "acidctl repair empty-result --force --yes orders/city=Berlin",
    group=command,
    short_help="Bring back rows that a compaction lost.",
)
@_common
@_force
@shared.runs()
def empty_result_command(**given: Any) -> int | None:
    """Take away the result of a compaction that has no file while what it replaced has rows (rule V43).

    Hive 4 makes such a one where the path of a partition is not ASCII and it compacts by MapReduce. Readers see the
    rows again, as long as no cleaning has removed them. Files do not tell whether its transaction is committed: what
    was made in one (base_3_v26) asks for --force, once no compaction of it is at work.
    """
    return _repair("empty-result", given)


@shared.command(
    "version-file",
    "acidctl repair version-file --dry-run /warehouse/sales.db",
    "acidctl repair version-file orders",
    group=command,
    short_help="Write a missing _orc_acid_version.",
)
@_common
@_force
@shared.runs()
def version_file_command(**given: Any) -> int | None:
    """Write _orc_acid_version where it is missing or torn and the files are of version 2 beyond doubt (rule V13).

    Directories of ACID version 1 get none: they need a major compaction first.
    """
    return _repair("version-file", given)


@shared.command(
    "undo",
    "acidctl repair undo --list orders",
    "acidctl repair undo orders",
    "acidctl repair undo orders --run 20261121T2224",
    group=command,
    short_help="Take a repair back.",
)
@shared.unrecorded
@click.argument("location", metavar="LOCATION", type=DIRECTORY)
@shared.typed_option("--list", "list_only", is_flag=True, help="List the repairs and stop.")
@shared.typed_option(
    "--run",
    "run_id",
    metavar="ID",
    shell_complete=complete_repairs,
    help="Which repair, or how its id begins; the newest by default.",
)
@shared.lock_options
@shared.changed_storage_options
@_output
@shared.runs()
def undo_command(**given: Any) -> None:
    """Take a repair of one LOCATION back: what was there before it is there again."""
    from acidctl.cli.check.repair_run import undo_one  # noqa: PLC0415 - --help does without

    undo_one(**given)


@shared.command(
    "forget",
    "acidctl repair forget --dry-run /warehouse/sales.db",
    "acidctl repair forget --yes orders",
    group=command,
    short_help="Delete the backups of repairs for good.",
)
@shared.unrecorded
@shared.locations_argument()
@_dry_run
@shared.yes_option
@shared.lock_options
@shared.named_locations
@shared.changed_storage_options
@shared.runs()
def forget_command(**given: Any) -> int | None:
    """Delete the backups of repairs in every location at or below LOCATION. This cannot be undone."""
    from acidctl.cli.check.repair_run import forget_all  # noqa: PLC0415 - --help does without

    return forget_all(**given)
