"""`acidctl erase`: Erase rows from all files of a table, and prove it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.cli.write.row_files import from_files
from acidctl.cli.write.statement_command import statement_command
from acidctl.verbs.writing.options import EraseOptions

if TYPE_CHECKING:
    from acidctl.cli.options.verb_command import Call


@statement_command("erase", EraseOptions)
def command(call: Call[EraseOptions]) -> int:
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
