"""Commands that show the past of rows.

`acidctl blame`: Show where a row was inserted, rewritten and deleted.
`acidctl history`: Show what every write id did: rows inserted, updated, deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acidctl.base.printable import printable
from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.console import Records, console, note, put_json, warn, warn_of
from acidctl.cli.output.screen import Column, Layout, on_screen, print_table
from acidctl.cli.report.outcomes import RunReporter
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.verbs.reading.past import BlameOptions, RowLife, blame, history
from acidctl.wording import iso_time, text_of

if TYPE_CHECKING:
    from acidctl.location.snapshot import Snapshot
    from acidctl.rows.past.blame import Blame, Sighting
    from acidctl.rows.past.history import History, WriteIdHistory

_MEANING = {
    "live": "readers see it",
    "deleted": "a delete or an update removed it",
    "invisible": "this snapshot does not include its write ids",
    "gone": "the files that readers use no longer hold it",
}


@verb_command(
    "blame",
    BlameOptions,
    place=shared.one_place("LOCATION"),
    forms=("text", "json"),
    source=shared.snapshot_of("read_lock"),
    extras=(shared.table_type_option,),
)
def blame_command(call: Call[BlameOptions]) -> None:
    """Show where the row ROWID of a LOCATION was inserted, which compactions rewrote it, and what deleted it.

    ROWID is writeid:bucketid:rowid, where bucketid is the encoded number of ROW__ID; or ROW__ID as `cat --row-id`
    prints it. Obsolete and aborted directories are searched too.
    """
    life = blame(call.selection, call.options)
    for text in map(text_of, life.snapshot.state.notes):
        note(text)
    warn_of(odd_layout(life.snapshot))
    for problem in life.blame.problems:
        warn(f"not looked at: {problem}")
    life.require_found()
    if call.output == "json":
        put_json(_life_record(life), lines=False)
    else:
        _print_life(life.blame)


def _life_record(life: RowLife) -> dict[str, Any]:
    row = life.blame
    return {
        "location": life.snapshot.shown,
        "rowId": dict(zip(("writeid", "bucketid", "rowid"), row.row, strict=True)),
        "status": row.status,
        "inserts": list(map(_event, row.inserts)),
        "changes": [{**_event(event), "maybeUpdate": row.may_be_update(event)} for event in row.changes],
        "stripes": row.stripes,
        "stripesRead": row.stripes_read,
        "snapshotSource": life.snapshot.source.record,
    }


def _event(event: Sighting) -> dict[str, Any]:
    return {
        "operation": event.operation,
        "writeId": event.write_id,
        "directory": event.directory or None,
        "file": event.file,
        "state": event.state.value,
        "rewritten": event.is_rewritten,
    }


def _print_life(row: Blame) -> None:
    lines = [f"{row.status}: {_MEANING[row.status or '']}"]
    if row.inserts and row.inserts[0].is_rewritten:
        lines.append(f"inserted by write id {row.inserts[0].write_id}, whose own directory is gone")
    elif not row.inserts:
        lines.append("no directory that is left has its insert")
    for event in row.inserts:
        verb = "rewritten into" if event.is_rewritten else f"inserted by write id {event.write_id}:"
        lines.append(f"{verb} {event.file} ({event.state.value})")
    for event in row.changes:
        verb = {"update": "updated", "delete": "deleted"}[event.operation]
        if row.may_be_update(event):
            verb = "deleted, or updated (it inserted rows as well),"
        copy = "copy, " if event.is_rewritten else ""
        lines.append(f"{verb} by write id {event.write_id}: {event.file} ({copy}{event.state.value})")
    screen = console()
    screen.print(str(row.row), style="bold")
    for line in lines:
        screen.print(printable(f"  {line}"), soft_wrap=True)


_COLUMNS = (
    "location", "writeId", "state", "inserted", "updated", "deleted", "complete", "modified", "directories",
    "compactedInto", "heldIn",
)  # fmt: skip


@verb_command(
    "history",
    None,
    place=shared.one_place("LOCATION|TABLE"),
    source=shared.snapshot_of("read_lock"),
    extras=(shared.table_type_option,),
)
def history_command(call: Call[None]) -> int:
    """Show what every write id did to a LOCATION: rows inserted, updated and deleted, and where its directories went.

    An UPDATE is stored as a delete and an insert: as many rows as one write id has of both count as updated, and what
    remains of either as inserted or deleted. Obsolete and aborted directories count as long as they are there. Below a
    base whose deltas are gone only the rows that were left can be counted: `?` stands for the rest.

    What acidctl did is shown by `acidctl log`.
    """
    events, records = RunReporter(), Records(call.output, _COLUMNS, "writeIds")
    is_known = call.selection.resolver.decides
    for snapshot, past in history(call.selection, events):
        events.remember(map(text_of, snapshot.state.notes), odd_layout(snapshot))
        for problem in past.problems:
            events.gap(problem)
        if call.output == "table":
            _print_history(snapshot, past, is_known=is_known)
        else:
            records.put(_history_record(snapshot, past, is_known=is_known))
    events.tell_notes()
    events.tell_strangers()
    return events.status


def _history_record(snapshot: Snapshot, past: History, *, is_known: bool) -> dict[str, Any]:
    return {
        "location": snapshot.shown,
        "unknownBelow": past.unknown_below,
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
            for line in past.write_ids
        ],
        "problems": [str(problem) for problem in past.problems],
        "snapshotSource": snapshot.source.record,
    }


def _print_history(snapshot: Snapshot, past: History, *, is_known: bool) -> None:
    def where(line: WriteIdHistory) -> str:
        if line.held_in:
            return f"in {' '.join(line.held_in)}, which was compacted or streamed"
        return " ".join(line.directories) or "compacted into " + " ".join(line.compacted_into)

    def count(value: int | None) -> str:
        return "?" if value is None else f"{value:,}"

    layout: Layout[WriteIdHistory] = Layout(
        (
            Column("write id", lambda line: str(line.write_id), right=True),
            Column("state", lambda line: line.state or "" if is_known else "", optional=True),
            Column("inserted", lambda line: f"{line.inserted:,}{'' if line.is_complete else ' left'}", right=True),
            Column("updated", lambda line: count(line.updated), right=True),
            Column("deleted", lambda line: count(line.deleted), right=True),
            Column("written (UTC)", lambda line: on_screen(iso_time(line.modified))),
        ),
        "directories",
        where,
    )
    screen = console()
    screen.print(printable(snapshot.shown), style="bold", soft_wrap=True)
    print_table(layout, past.write_ids)
    if past.unknown_below is not None:
        below = past.unknown_below
        screen.print(f"rows: unknown below {below}, where a compaction merged what was deleted")
