"""`acidctl update`: Update the rows that meet a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.cli.write.statement_command import statement_command
from acidctl.verbs.writing.options import UpdateOptions

if TYPE_CHECKING:
    from acidctl.cli.options.verb_command import Call


@statement_command("update", UpdateOptions)
def command(call: Call[UpdateOptions]) -> int:
    """Update the rows of TABLE that meet a condition, in one Hive transaction.

    TABLE is hive:db.table. Columns by which the table is partitioned or bucketed cannot be changed. If another writer
    changes the same rows meanwhile, the update starts again, up to five times.
    """
    from acidctl.verbs.writing.statements import update

    screen = call.screen(is_plan=call.options.dry_run)
    return screen.show(update(call.selection, call.options, screen))
