"""`acidctl truncate`: Delete all rows of a table, or of some partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.cli.write.statement_command import statement_command
from acidctl.verbs.writing.options import TruncateOptions

if TYPE_CHECKING:
    from acidctl.cli.options.verb_command import Call


@statement_command("truncate", TruncateOptions)
def command(call: Call[TruncateOptions]) -> int:
    """Delete all rows of TABLE, or of the partitions that --partition names, in one Hive transaction.

    TABLE is hive:db.table. Each location gets a base without rows, as with Hive 4's own TRUNCATE. The old files stay
    for running queries until they are cleaned.
    """
    from acidctl.verbs.writing.statements import truncate

    screen = call.screen(is_plan=call.options.dry_run)
    return screen.show(truncate(call.selection, call.options, screen))
