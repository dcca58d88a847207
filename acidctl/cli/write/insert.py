"""`acidctl insert`: Insert rows of files or standard input into a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.cli.write.row_files import file_options, from_files
from acidctl.cli.write.statement_command import statement_command
from acidctl.verbs.writing.options import InsertOptions

if TYPE_CHECKING:
    from acidctl.cli.options.verb_command import Call


@statement_command("insert", InsertOptions, extras=file_options)
def command(call: Call[InsertOptions], files: tuple[str, ...], form: str | None) -> int:
    """Insert the rows of every FILE into TABLE, in one Hive transaction: readers see all of them or none.

    TABLE is hive:db.table. FILE is Parquet, ORC, Arrow, CSV with a header line, or JSON lines; `-` is standard input.
    Columns are matched by name, in any case and order; a column that FILE lacks is NULL. A value that its column cannot
    hold exactly is refused with the number of its row. Missing partitions are created.
    """
    from acidctl.verbs.writing.statements import insert

    screen = call.screen(is_plan=call.options.dry_run)
    return screen.show(insert(call.selection, call.options, screen, from_files(call, files, form)))
