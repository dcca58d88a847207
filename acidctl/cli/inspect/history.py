"""`acidctl history`: what every write id did to a location."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options.places import DIRECTORY
from acidctl.cli.options.shared import examples, output_option, snapshot_options, storage_options

if TYPE_CHECKING:
    from acidctl.location.lists import SnapshotLists
    from acidctl.rows.past.history import History, WriteIdHistory

SCHEMA_VERSION = 1

_COLUMNS = (
    "location", "writeId", "state", "inserted", "updated", "deleted", "complete", "modified", "directories",
    "compactedInto", "heldIn",
)  # fmt: skip


@click.command(
    "history",
    epilog=examples(
        "acidctl history orders",
        "acidctl history --write-ids 'sales.orders:12:9:9:7' orders",
        "acidctl history -o json orders | jq '.[].writeIds[] | select(.deleted > 1000)'",
    ),
)
@click.argument("location", metavar="LOCATION|TABLE", type=DIRECTORY)
@snapshot_options
@storage_options
@output_option("table", "json", "jsonl", "csv", default="table")
def command(location: str, lists: SnapshotLists, storage: dict[str, str], output: str) -> int:
    """Show what every write id did to a LOCATION: rows inserted, updated and deleted, and where its directories went.

    An UPDATE is stored as a delete and an insert: as many rows as one write id has of both count as updated, and what
    remains of either as inserted or deleted. Obsolete and aborted directories count as long as they are there. Below a
    base whose deltas are gone only the rows that were left can be counted: `?` stands for the rest.
    """
    from acidctl.cli.output.console import Records, note, put_csv
    from acidctl.cli.output.odd_layouts import OddLayouts
    from acidctl.cli.output.strangers import Strangers
    from acidctl.cli.report.failures import Failures
    from acidctl.errors import AcidctlError
    from acidctl.location.find import find
    from acidctl.rows.past.history import read_history
    from acidctl.rows.scan.odd_layout import odd_layout
    from acidctl.wording import text_of

    failures = Failures()
    header: tuple[str, ...] | None = _COLUMNS
    known = lists.is_told
    notes: dict[str, None] = {}
    odd = OddLayouts()
    records = Records(output)
    strangers = Strangers(failures.add)
    for found in find((location,), storage, lists, strangers.observer):
        try:
            snapshot = found.snapshot(lists)
            history = read_history(snapshot)
        except AcidctlError as error:
            if found.is_given:
                raise
            failures.add(error, found.shown)
            continue
        notes |= dict.fromkeys(map(text_of, snapshot.state.notes))
        odd.add(odd_layout(snapshot))
        for problem in history.problems:
            failures.warn(problem)
        if output == "table":
            _print(found.shown, history, known=known)
        elif output == "csv":
            report = _report(found.shown, history, known=known)
            rows = [[found.shown, *(_cell(line[name]) for name in _COLUMNS[1:])] for line in report["writeIds"]]
            put_csv(header, rows)
            header = None
        else:
            records.put(_report(found.shown, history, known=known))
    for text in notes:
        note(text)
    odd.tell()
    strangers.tell()
    return failures.worst


def _report(location: str, history: History, *, known: bool) -> dict[str, Any]:
    """The JSON form."""
    from acidctl.cli.output.console import iso_time

    return {
        "schema_version": SCHEMA_VERSION,
        "location": location,
        "unknownBelow": history.unknown_below,
        "writeIds": [
            {
                "writeId": line.write_id,
                "state": line.state if known else None,
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


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else value


def _print(location: str, history: History, *, known: bool) -> None:
    from acidctl.cli.output.console import console, iso_time
    from acidctl.cli.output.screen import Column, FittedTable, Row
    from acidctl.printable import printable

    screen = console()
    screen.print(printable(location), style="bold", soft_wrap=True)
    columns = (
        Column("write id", right=True),
        *([Column("state")] if known else []),
        *(Column(name, right=True) for name in ("inserted", "updated", "deleted")),
        Column("written (UTC)"),
    )

    def row(line: WriteIdHistory) -> Row:
        inserted = f"{line.inserted:,}" + ("" if line.is_complete else " left")
        written = (iso_time(line.modified) or "-").replace("T", " ").rstrip("Z")
        where = " ".join(line.directories) or "compacted into " + " ".join(line.compacted_into)
        if line.held_in:
            where = f"in {' '.join(line.held_in)}, which was compacted or streamed"
        changed = ["?" if count is None else f"{count:,}" for count in (line.updated, line.deleted)]
        return Row((str(line.write_id), *([line.state or ""] if known else []), inserted, *changed, written), where)

    FittedTable(columns, "directories", tuple(map(row, history.write_ids))).print(screen)
    if history.unknown_below is not None:
        screen.print(f"rows: unknown below {history.unknown_below}, where a compaction merged what was deleted")
