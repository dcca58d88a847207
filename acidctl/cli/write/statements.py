"""Commands that change the rows of one table.

`acidctl create`: Create an empty transactional table.
`acidctl insert`: Insert rows of files or standard input into a table.
`acidctl update`: Update the rows that meet a condition.
`acidctl delete`: Delete rows that meet a condition, or whose keys are in a file.
`acidctl erase`: Erase rows from all files of a table, and prove it.
`acidctl merge`: Replace, insert or delete rows of a table by key.
`acidctl truncate`: Delete all rows of a table, or of some partitions.
`acidctl stream`: Insert JSON lines of standard input as they come.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from acidctl.base.errors import UsageProblem
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import LOCATION
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.console import Records, note_if_typed, put_text
from acidctl.cli.output.streams import uninterrupted
from acidctl.storage.options import StorageOptions
from acidctl.verbs.writing.options import (
    CreateOptions,
    DeleteOptions,
    EraseOptions,
    InsertOptions,
    MergeOptions,
    StreamOptions,
    TruncateOptions,
    UpdateOptions,
)

if TYPE_CHECKING:
    from acidctl.writing.rows.sources import FileSource

statement_command = partial(
    verb_command, place=shared.one_place("TABLE"), source=shared.table_options, changes=True, asks=True
)
"""As :func:`~acidctl.cli.options.verb_command.verb_command`, with TABLE, the options of a metastore, and ``--yes``."""

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


@statement_command("create", CreateOptions)
def create_command(call: Call[CreateOptions]) -> int:
    """Create TABLE, as Hive's CREATE TABLE ... TBLPROPERTIES ('transactional'='true') does on the same version.

    TABLE is hive:db.table. Its directory must be empty, and the metastore creates it. With --like, columns that are
    partition keys, too, are left out of the table's own columns.
    """
    from acidctl.verbs.writing.create import create
    from acidctl.writing.definition import columns_of_file

    columns = columns_of_file(from_files(call, (call.options.like,), None)) if call.options.like else None
    return call.show(create, columns)


@statement_command("insert", InsertOptions, extras=file_options)
def insert_command(call: Call[InsertOptions], files: tuple[str, ...], form: str | None) -> int:
    """Insert the rows of every FILE into TABLE, in one Hive transaction: readers see all of them or none.

    TABLE is hive:db.table. FILE is Parquet, ORC, Arrow, CSV with a header line, or JSON lines; `-` is standard input.
    Columns are matched by name, in any case and order; a column that FILE lacks is NULL. A value that its column cannot
    hold exactly is refused with the number of its row. Missing partitions are created.
    """
    from acidctl.verbs.writing.statements import insert

    return call.show(insert, from_files(call, files, form))


@statement_command("update", UpdateOptions)
def update_command(call: Call[UpdateOptions]) -> int:
    """Update the rows of TABLE that meet a condition, in one Hive transaction.

    TABLE is hive:db.table. Columns by which the table is partitioned or bucketed cannot be changed. If another writer
    changes the same rows meanwhile, the update starts again, up to five times.
    """
    from acidctl.verbs.writing.statements import update

    return call.show(update)


@statement_command("delete", DeleteOptions)
def delete_command(call: Call[DeleteOptions]) -> int:
    """Delete the rows of TABLE that meet a condition, or whose key is in a file, in one Hive transaction.

    TABLE is hive:db.table. Files keep the rows until a major compaction and a cleaning; `acidctl erase`
    does all of that. If another writer changes the same rows meanwhile, the delete starts again, up to five times.
    """
    from acidctl.verbs.writing.statements import delete

    keys = from_files(call, (call.options.keys,), None) if call.options.keys else None
    return call.show(delete, keys)


@statement_command("erase", EraseOptions)
def erase_command(call: Call[EraseOptions]) -> int:
    """Delete the rows of TABLE that meet a condition, or whose key is in a file, and all files that hold them.

    TABLE is hive:db.table. The steps are those that `acidctl erasure` names: a delete, a major compaction of what
    holds such rows, a cleaning without trash and, if needed, a purge of the trash and of repair backups. Running
    queries may need the old files: until --older-than has passed, the exit status is 14, and the same command continues
    later, as it does after an interruption. At the end every file is read whole: the status is 0 only if none holds
    such a row, and `-o json` lists each with its checksum. `acidctl erasure --help` says where values can survive
    outside of the table.
    """
    from acidctl.verbs.writing.erase import erase

    keys = from_files(call, (call.options.keys,), None) if call.options.keys else None
    screen = call.screen(is_plan=call.options.dry_run)
    screen.shows_next = False
    return screen.show(erase(call.selection, call.options, screen, keys))


@statement_command("merge", MergeOptions, extras=file_options)
def merge_command(call: Call[MergeOptions], files: tuple[str, ...], form: str | None) -> int:
    """Replace the rows of TABLE that have the key of a row in FILE, and insert the rows with new keys.

    All of it is one Hive transaction.

    TABLE is hive:db.table; FILE is as for `acidctl insert`. A column that FILE lacks keeps its value in replaced rows.
    With --operation-column rows of FILE can also delete; with --order-by the last row of each key counts. Together they
    apply an exported log of changes. All rows of the files are held in memory.
    """
    from acidctl.verbs.writing.statements import merge

    return call.show(merge, from_files(call, files, form))


@statement_command("truncate", TruncateOptions)
def truncate_command(call: Call[TruncateOptions]) -> int:
    """Delete all rows of TABLE, or of the partitions that --partition names, in one Hive transaction.

    TABLE is hive:db.table. Each location gets a base without rows, as with Hive 4's own TRUNCATE. The old files stay
    for running queries until they are cleaned.
    """
    from acidctl.verbs.writing.statements import truncate

    return call.show(truncate)


@statement_command("stream", StreamOptions, asks=False, forms=("table", "jsonl"))
def stream_command(call: Call[StreamOptions]) -> int:
    """Insert JSON lines of standard input into TABLE as they come, in one Hive transaction for each interval.

    TABLE is hive:db.table. Values are taken as by `acidctl insert`. It ends with the input, or with Ctrl-C or SIGTERM,
    after it has written all whole lines that it has read. A line that cannot be written ends it with status 4 and the
    number of the line, after all lines before it have been written.

    With --offset-key it can be started again at any time, also after it was killed, with input that begins earlier:
    the transaction also records the highest offset, and lines up to it are passed over. Each transaction adds a
    directory to every partition that gets rows: run compactions beside it, as `acidctl hive initiator` and `worker` do.
    """
    from acidctl.verbs.writing.stream import stream

    note_if_typed("rows")
    screen, records = call.screen(is_plan=False), Records(call.output)
    for written in stream(call.selection, call.options, screen, sys.stdin.fileno(), uninterrupted):
        if call.output == "table":
            put_text(written.line())
        else:
            records.put(written.record())
    return 0
