"""`acidctl delete`: Delete rows that meet a condition, or whose keys are in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.cli.write.row_files import from_files
from acidctl.cli.write.statement_command import statement_command
from acidctl.verbs.writing.options import DeleteOptions

if TYPE_CHECKING:
    from acidctl.cli.options.verb_command import Call


@statement_command("delete", DeleteOptions)
def command(call: Call[DeleteOptions]) -> int:
    """Delete the rows of TABLE that meet a condition, or whose key is in a file, in one Hive transaction.

    TABLE is hive:db.table. Files keep the rows until a major compaction and a cleaning; `acidctl erase`
    does all of that. If another writer changes the same rows meanwhile, the delete starts again, up to five times.
    """
    from acidctl.verbs.writing.statements import delete

    keys = from_files(call, (call.options.keys,), None) if call.options.keys else None
    screen = call.screen(is_plan=call.options.dry_run)
    return screen.show(delete(call.selection, call.options, screen, keys))
