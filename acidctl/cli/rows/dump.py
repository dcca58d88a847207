"""`acidctl dump`: Print the events of ORC files with synthetic columns."""

from __future__ import annotations

from contextlib import nullcontext

import click

from acidctl.base.guardian import NOTES
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import FILE
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.report.outcomes import RunReporter
from acidctl.verbs.reading.dump import DumpOptions, dump


@verb_command(
    "dump",
    DumpOptions,
    place=click.argument("locations", nargs=-1, required=True, metavar="FILE|DIR...", type=FILE),
    forms=shared.ROW_FORMS,
    source=None,
    extras=(shared.table_type_option, shared.limit_option),
)
def command(call: Call[DumpOptions], *, limit: int | None) -> int:
    """Print every event of the files at FILE or below DIR, deleted and aborted ones included.

    The lines are those of `hive --orcfiledump -d`. Files without synthetic columns (originals, LOAD DATA) get those
    that readers would give them. What a reader would see is printed by `acidctl cat`.
    """
    from acidctl.cli.rows.rows_out import begin_document, write_rows
    from acidctl.rows.read.selection import limited

    begin_document(call.output)
    events = RunReporter()
    with NOTES.isolated():
        dumped = dump(call.selection, call.options, events)
    with NOTES.isolated() if dumped.files > 1 else nullcontext():
        write_rows(limited(dumped.batches(limit), limit), call.output, dumped.types)
    return events.status
