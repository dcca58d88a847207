"""`acidctl blame`: Show where a row was inserted, rewritten and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acidctl.base.printable import printable
from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.console import console, note, put_json, warn, warn_of
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.verbs.reading.blame import BlameOptions, RowLife, blame
from acidctl.wording import text_of

if TYPE_CHECKING:
    from acidctl.rows.past.blame import Blame, Sighting

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
def command(call: Call[BlameOptions]) -> None:
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
        put_json(_record(life), lines=False)
    else:
        _print(life.blame)


def _record(life: RowLife) -> dict[str, Any]:
    row = life.blame
    return {
        "location": life.location,
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


def _print(row: Blame) -> None:
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
