"""`acidctl ls`: List directories with their state: current, obsolete, aborted, ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError
from acidctl.cli.options import shared
from acidctl.cli.options.asked_metastore import list_options

if TYPE_CHECKING:
    from acidctl.cli.output.list_choice import ListChoice
    from acidctl.location.snapshot_resolver import SnapshotResolver


def _columns() -> Mapping[str, str]:
    from acidctl.cli.report.location_list import ENTRY_COLUMNS, LOCATION_COLUMNS  # noqa: PLC0415 - for completion

    return LOCATION_COLUMNS | ENTRY_COLUMNS


@shared.command(
    "ls",
    "acidctl ls /warehouse/sales.db/orders",
    "acidctl ls --state obsolete --sort size webhdfs://namenode:9870/warehouse/sales.db",
    "acidctl ls --snapshot 'sales.orders:12:9:9:7' --timeline orders",
    "acidctl ls --where 'deltas > 50' --sort deltas --columns location,deltas,bytes /warehouse",
    "acidctl ls --sort gain --columns location,score,seconds,secondsAfter,helps,rewritten /warehouse",
    "acidctl ls --tables nightly.txt",
    "acidctl ls -o jsonl --recursive /warehouse | jq '.summary.obsolete.bytes'",
)
@shared.places_argument("paths", "[PATH...]", required=False)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(["current", "obsolete", "aborted", "ignored"]),
    help="Only entries in this state. Repeatable.",
)
@list_options("deltas > 50", _columns, "name, write-id, size, time, state")
@click.option("-r", "--recursive", is_flag=True, help="List the entries of every location of a tree.")
@click.option("--rows", is_flag=True, help="Count rows, from the files' footers only.")
@click.option(
    "--timeline",
    is_flag=True,
    help="Draw bases, deltas and delete deltas over the write ids.",
)
@click.option("-a", "--all", "show_all", is_flag=True, help="Show hidden entries in the table too.")
@shared.verbosity_options
@shared.reading_options("table", "json", "jsonl", "csv", default="table")
@shared.runs(pages=True)
def command(
    *,
    paths: tuple[str, ...],
    states: tuple[str, ...],
    recursive: bool,
    rows: bool,
    timeline: bool,
    show_all: bool,
    choice: ListChoice,
    resolver: SnapshotResolver,
    storage: dict[str, str],
    output: str,
) -> int:
    """List the directories of ACID tables with kind, write ids, state and the reason for it.

    PATH is a location, a partitioned table, a database or a warehouse; the current directory by default. A tree of
    several locations gives one line per location, and with --recursive every entry of each. Of a table with many
    partitions, and of many entries in the same state, -v gives all lines.

    --where, --sort and --columns go by the columns of the list: those of locations in a tree (location, verdict,
    deltas, bytes...), else those of entries (name, kind, state, reason, files, bytes...).

    A reader lists every directory, opens every file, and holds the delete events while it reads rows. The `cost` of a
    location counts 4 MiB for each directory and file beyond the fewest that there can be, and the bytes of the delete
    events once for each file of rows. The `score` is the part of a full read that is of use, 0 to 100; `seconds` are
    those of one reader of 100 MiB a second, to whom opening a file is 40 ms. `helps` is the compaction, minor or major,
    with the greater `gain`: what it saves at every full read for each byte that it rewrites once. It may help though no
    threshold asks for one, and nothing is due.

    Without --snapshot every write id on disk counts as committed. A timeline is as high as the bytes of what it shows:
    a step lower is four times less.
    """
    from acidctl.acid.triggers import advise  # noqa: PLC0415 - --help does without
    from acidctl.cli.inspect.location_lines import (  # noqa: PLC0415 - as above
        Chosen,
        Tables,
        as_compacted,
        free_bytes,
        location_report,
    )
    from acidctl.cli.output.console import Records  # noqa: PLC0415 - as above
    from acidctl.cli.report.location_list import ENTRY_COLUMNS  # noqa: PLC0415 - as above
    from acidctl.cli.report.outcomes import RunReporter  # noqa: PLC0415 - as above
    from acidctl.cli.report.verdicts import Freeable  # noqa: PLC0415 - as above
    from acidctl.location.find import find  # noqa: PLC0415 - as above

    if output != "table":
        shared.refuse_unused(f"-o {output}", "timeline")
    visits = RunReporter()
    chosen = Chosen(choice, output)
    tables = Tables(chosen, show_all=show_all, timeline=timeline, rows=rows)
    columns = chosen.entries.columns if output == "csv" else None
    records = Records(output, columns or tuple(ENTRY_COLUMNS), "entries", has_headings=choice.has_headings)
    for found in find(paths or (".",), storage, resolver, visits.observer):
        try:
            seen = visits.readable(found)
            snapshot = seen.snapshot()
            wishes = found.table_properties
            evidence = seen.evidence()
            reading = None if snapshot.state.history_problem else advise(snapshot.listing, snapshot.state)
            report = location_report(
                snapshot,
                evidence,
                compacting=as_compacted(seen, snapshot),
                reading=reading,
                rows=rows,
                wishes=wishes,
                on_error=visits.gap,
            )
            free = free_bytes(seen, snapshot, evidence, visits) if chosen.needs_free else Freeable()
        except AcidctlError as error:
            visits.failed(found.shown, error)
            continue
        detail = recursive or found.is_given or output == "csv"
        if states:
            report["entries"] = [entry for entry in report["entries"] if entry["state"] in states]
            if not (report["entries"] or found.is_given):
                continue  # in a tree, only locations with such entries are listed
        if not chosen.apply(report, free, reading, detail=detail):
            continue
        if output in ("table", "csv"):
            visits.remember(report["summary"]["notes"] if output == "table" else (), report["summary"]["warnings"])
        if output == "table":
            tables.location(snapshot, report, free, reading, detail=detail)
        records.put(report)
    records.put_header()
    visits.looked_through()
    if output == "table":
        tables.close(visits.status)
    visits.tell_notes()
    visits.tell_strangers()
    return visits.status
