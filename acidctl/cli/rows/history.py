"""`acidctl history`: Show what every write id did: rows inserted, updated, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from acidctl.base.errors import AcidctlError
from acidctl.base.printable import printable
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import LOCATION
from acidctl.cli.output.console import Records, console
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn, on_screen
from acidctl.cli.report.outcomes import RunReporter
from acidctl.location.find import find
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.wording import iso_time, text_of

if TYPE_CHECKING:
    from acidctl.rows.past.history import History, WriteIdHistory

_COLUMNS = (
    "location", "writeId", "state", "inserted", "updated", "deleted", "complete", "modified", "directories",
    "compactedInto", "heldIn",
)  # fmt: skip


@shared.command(
    "history",
    "acidctl history orders",
    "acidctl history --snapshot 'sales.orders:12:9:9:7' orders",
    "acidctl history -o json orders | jq '.[].writeIds[] | select(.deleted > 1000)'",
)
@click.argument("location", metavar="LOCATION|TABLE", type=LOCATION)
@shared.reading_options("table", "json", "jsonl", "csv", default="table", more=("read_lock",))
@shared.runs(pages=True, isolates=False)
def command(
    *,
    location: str,
    resolver: SnapshotResolver,
    storage: dict[str, str],
    output: str,
) -> int:
    """Show what every write id did to a LOCATION: rows inserted, updated and deleted, and where its directories went.

    An UPDATE is stored as a delete and an insert: as many rows as one write id has of both count as updated, and what
    remains of either as inserted or deleted. Obsolete and aborted directories count as long as they are there. Below a
    base whose deltas are gone only the rows that were left can be counted: `?` stands for the rest.

    What acidctl did is shown by `acidctl log`.
    """
    from acidctl.rows.past.history import read_history  # noqa: PLC0415 - --help does without

    visits = RunReporter()
    is_known = resolver.decides
    records = Records(output, _COLUMNS, "writeIds")
    for found in find((location,), storage, resolver, visits.observer):
        try:
            snapshot = found.snapshot()
            history = read_history(snapshot)
        except AcidctlError as error:
            if found.is_given:
                raise
            visits.failed(found.shown, error)
            continue
        visits.remember(map(text_of, snapshot.state.notes), odd_layout(snapshot))
        for problem in history.problems:
            visits.gap(problem)
        if output == "table":
            _print(found.shown, history, is_known=is_known)
        else:
            report = _report(found.shown, history, is_known=is_known)
            records.put({**report, "snapshotSource": snapshot.source.record})
    visits.looked_through()
    visits.tell_notes()
    visits.tell_strangers()
    return visits.status


def _report(location: str, history: History, *, is_known: bool) -> dict[str, Any]:
    return {
        "location": location,
        "unknownBelow": history.unknown_below,
        "writeIds": [
            {
                "writeId": line.write_id,
                "state": line.state if is_known else None,
                "inserted": line.inserted,
                "updated": line.updated,
                "deleted": line.deleted,
                "complete": line.is_complete,
                "modified": iso_time(line.modified),
                "directories": list(line.directories),
                "compactedInto": list(line.compacted_into),
                "heldIn": list(line.held_in),
            }
            for line in history.write_ids
        ],
        "problems": [str(problem) for problem in history.problems],
    }


def _print(location: str, history: History, *, is_known: bool) -> None:
    screen = console()
    screen.print(printable(location), style="bold", soft_wrap=True)
    columns = (
        ScreenColumn("write id", right=True),
        *([ScreenColumn("state")] if is_known else []),
        *(ScreenColumn(name, right=True) for name in ("inserted", "updated", "deleted")),
        ScreenColumn("written (UTC)"),
    )

    def row(line: WriteIdHistory) -> Row:
        inserted = f"{line.inserted:,}" + ("" if line.is_complete else " left")
        written = on_screen(iso_time(line.modified))
        where = " ".join(line.directories) or "compacted into " + " ".join(line.compacted_into)
        if line.held_in:
            where = f"in {' '.join(line.held_in)}, which was compacted or streamed"
        changed = ["?" if count is None else f"{count:,}" for count in (line.updated, line.deleted)]
        return Row((str(line.write_id), *([line.state or ""] if is_known else []), inserted, *changed, written), where)

    FittedTable(columns, "directories", tuple(map(row, history.write_ids))).print(screen)
    if history.unknown_below is not None:
        screen.print(f"rows: unknown below {history.unknown_below}, where a compaction merged what was deleted")
