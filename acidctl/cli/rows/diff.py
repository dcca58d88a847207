"""`acidctl diff`: Print the rows that changed between two write ids."""

from __future__ import annotations

import click

from acidctl.base.errors import UsageProblem
from acidctl.cli.options import shared
from acidctl.cli.options.shared import ROW_FORMS, refuse_unused
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.console import note, put_json, warn_of
from acidctl.verbs.reading.diff import DiffOptions, diff
from acidctl.wording import text_of


@verb_command(
    "diff",
    DiffOptions,
    place=shared.one_place("LOCATION|TABLE"),
    forms=ROW_FORMS,
    source=shared.snapshot_of("read_lock"),
    extras=(
        click.option("--count", is_flag=True, help="Print only the numbers of removed and added rows."),
        shared.table_type_option,
    ),
)
def command(call: Call[DiffOptions], *, count: bool) -> None:
    """Print the rows of a LOCATION or a TABLE that disappeared (-) and appeared (+) between two write ids, as
    `acidctl cat --at` would print them at either.

    An UPDATE takes away the old row and adds the new one. With --key the two are one line (~) with `old` and `new`, and
    all changed rows are held in memory. Status 10 once a compaction destroyed one of the snapshots.
    """
    from acidctl.cli.rows.rows_out import begin_document, write_rows

    options = call.options
    if count and (options.key is not None or options.columns is not None or options.row_id):
        raise UsageProblem("--count prints two numbers", "", "leave --key, --columns and --row-id out")
    if count:
        refuse_unused("--count", "output")
    begin_document("" if count else call.output)
    changes = diff(call.selection, options)
    for text in map(text_of, changes.notes):
        note(text)
    warn_of(changes.warnings)
    if count:
        gone, new = changes.count()
        put_json({"disappeared": gone, "appeared": new, "snapshotSource": changes.source.record}, lines=True)
    elif options.key:
        write_rows(changes.paired(options.key), call.output, changes.paired_type)
    else:
        write_rows(changes.listed(), call.output, changes.listed_type)
