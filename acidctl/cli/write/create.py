"""`acidctl create`: Create an empty transactional table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.cli.write.row_files import from_files
from acidctl.cli.write.statement_command import statement_command
from acidctl.verbs.writing.options import CreateOptions

if TYPE_CHECKING:
    from acidctl.cli.options.verb_command import Call


@statement_command("create", CreateOptions)
def command(call: Call[CreateOptions]) -> int:
    """Create TABLE, as Hive's CREATE TABLE ... TBLPROPERTIES ('transactional'='true') does on the same version.

    TABLE is hive:db.table. Its directory must be empty, and the metastore creates it. With --like, columns that are
    partition keys, too, are left out of the table's own columns.
    """
    from acidctl.verbs.writing.create import create
    from acidctl.writing.definition import columns_of_file

    columns = columns_of_file(from_files(call, (call.options.like,), None)) if call.options.like else None
    screen = call.screen(is_plan=call.options.dry_run)
    return screen.show(create(call.selection, call.options, screen, columns))
