"""`acidctl erasure`: Find files that still hold certain rows."""

from __future__ import annotations

import time

from acidctl.base.errors import ExitStatus, NotFoundError
from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.command_lines import line_for
from acidctl.cli.output.console import put_json
from acidctl.cli.output.progress import progress
from acidctl.cli.output.terminal import VERBOSITY
from acidctl.cli.report.outcomes import RunReporter
from acidctl.verbs.reading.erasure import ErasureOptions, erasure
from acidctl.wording import human_count


@verb_command(
    "erasure",
    ErasureOptions,
    place=shared.places_argument("locations", "WHERE..."),
    forms=("table", "json"),
    source=shared.snapshot_of("exclude", "read_lock"),
    extras=(shared.table_type_option,),
)
def command(call: Call[ErasureOptions]) -> int:
    """Find the files of a table that physically hold rows that meet a condition, what removes them, and when.

    All files count, in any state: current, obsolete, aborted, of open transactions, in acidctl's trash, in backups of
    repairs, in staging, in partitions that the metastore does not know, and in the trashes of HDFS; and all events:
    rows that are read, their older versions, and deleted rows. WHERE is a location, a table, a database, or a name of a
    metastore. Nothing is changed.

    The exit status is 0 only if every file could be read and none holds such a row. It is 14 if some do, and 15 if none
    was found but something could not be read, or lacks a column. `-o json` is a proof to keep, with
    size, time and, with --prove, checksum of each file.
    """
    from acidctl.cli.rows.erasure_report import document, put_document

    events, began, tables = RunReporter(), time.time(), []
    with progress("searching tables") as bar:
        for table in erasure(call.selection, call.options, events):
            tables.append(table)
            bar.reach(len(tables), len(tables))
    if not (tables or events.status):
        raise NotFoundError("no table was found there", "", "`acidctl ls` shows what is there")
    if not events.status and all(table.lacks for table in tables):
        count = human_count(len(tables), "table")
        columns = line_for(("cat", "--limit", "1"), [tables[0].place])
        raise NotFoundError(tables[0].lacks, f"{count} looked at", f"see the columns: `{columns}`")
    proof = document(tables, call.options, began, events.coverage.passed, is_whole=events.is_whole)
    if call.output == "json":
        put_json({**proof, "locations": [*proof["locations"]]}, lines=False)
    else:
        put_document(proof, is_verbose=VERBOSITY.is_verbose)
    if proof["result"] == "held":
        return ExitStatus.FINDINGS
    return events.status or (ExitStatus.UNCHECKED if proof["result"] == "not-known" else 0)
