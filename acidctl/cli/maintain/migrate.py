"""`acidctl migrate`: Copy a table to Iceberg, and keep the copy up to date."""

from __future__ import annotations

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.console import put_line
from acidctl.verbs.iceberg.options import MigrateOptions


@verb_command(
    "migrate",
    MigrateOptions,
    place=shared.one_place("LOCATION|TABLE"),
    extras=(shared.table_type_option,),
    changes=True,
    asks=True,
)
def command(call: Call[MigrateOptions]) -> int:
    """Copy the rows of a transactional TABLE to an Iceberg table, at the speed of copying files, while writers go on.

    Columns are copied without decoding them, deleted rows become position deletes, and all is visible at once. A column
    that Iceberg's readers would misread is encoded again, and the plan says so. Both tables are compared before the
    commit, which takes longer than the copy. The Hive table is only read; --cut-over renames it.

    The data files are ORC, or Parquet with all rows encoded again: where files or old days demand it, or by --format
    parquet, for readers without ORC. --engine spark writes them on Spark.

    --catch-up brings the copy up to date, as often as you like: it compares the ids of rows, so that compactions and
    cleanings in between do no harm. A run with nothing new makes no snapshot. It compares the values of what is new;
    --proof full compares all. --every repeats it.

    TABLE may be a pattern, `hive:sales.*`, with `{table}` in the target: one question, then one table after the other;
    a table that cannot be copied is reported, and the next one follows.

    --cut-over gives the name of the Hive table to a copy in the same metastore: it catches up, locks the table, catches
    up a last time, and renames both; the Hive table becomes TABLE_acid. Statements that wait for it meanwhile fail.
    --back returns, unless somebody has written to the Iceberg table since. The plan comes first, and a question.
    """
    from acidctl.verbs.iceberg.migrate import migrate

    screen = call.screen(is_plan=call.options.dry_run)
    outcomes = migrate(call.selection, call.options, screen)
    if call.options.prove and call.output == "table":
        for outcome in outcomes:
            for line in outcome.statements.splitlines():
                put_line(line, is_answer=True)
        return screen.status
    return screen.show(outcomes)
