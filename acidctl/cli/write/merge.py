"""`acidctl merge`: Replace, insert or delete rows of a table by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.cli.write.row_files import file_options, from_files
from acidctl.cli.write.statement_command import statement_command
from acidctl.verbs.writing.options import MergeOptions

if TYPE_CHECKING:
    from acidctl.cli.options.verb_command import Call


@statement_command("merge", MergeOptions, extras=file_options)
def command(call: Call[MergeOptions], files: tuple[str, ...], form: str | None) -> int:
    """Replace the rows of TABLE that have the key of a row in FILE, and insert the rows with new keys.

    All of it is one Hive transaction.

    TABLE is hive:db.table; FILE is as for `acidctl insert`. A column that FILE lacks keeps its value in replaced rows.
    With --operation-column rows of FILE can also delete; with --order-by the last row of each key counts. Together they
    apply an exported log of changes. All rows of the files are held in memory.
    """
    from acidctl.verbs.writing.statements import merge

    screen = call.screen(is_plan=call.options.dry_run)
    return screen.show(merge(call.selection, call.options, screen, from_files(call, files, form)))
