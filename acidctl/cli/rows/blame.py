"""`acidctl blame`: Show where a row was inserted, rewritten and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from acidctl.base.errors import NotFoundError, UsageProblem
from acidctl.base.printable import printable
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import LOCATION
from acidctl.cli.output.console import console, note, put_json, warn, warn_of
from acidctl.location.find import find
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.wording import text_of

if TYPE_CHECKING:
    from acidctl.rows.past.blame import Blame, Sighting, Status

_MEANING = {
    "live": "readers see it",
    "deleted": "a delete or an update removed it",
    "invisible": "this snapshot does not see the write ids of it",
    "gone": "what readers use does not hold it any more",
}


@shared.command(
    "blame",
    "acidctl blame orders 1:536870912:2",
    """acidctl blame orders '{"writeid":1,"bucketid":536870912,"rowid":2}'""",
)
@click.argument("location", metavar="LOCATION", type=LOCATION)
@click.argument("row", metavar="ROWID")
@shared.reading_options("text", "json", default="text", more=("read_lock",))
@shared.runs(pages=True, isolates=False)
def command(
    *,
    location: str,
    row: str,
    resolver: SnapshotResolver,
    storage: dict[str, str],
    output: str,
) -> None:
    """Show where the row ROWID of a LOCATION was inserted, which compactions rewrote it, and what deleted it.

    ROWID is writeid:bucketid:rowid, where bucketid is the encoded number of ROW__ID; or ROW__ID as `cat --row-id`
    prints it. Obsolete and aborted directories are searched too.
    """
    from acidctl.rows.past.blame import blame, parse_row_id  # noqa: PLC0415 - --help does without

    wanted = parse_row_id(row)
    places = list(find((location,), storage, resolver))
    if len(places) != 1:
        raise UsageProblem(
            f"{location} holds {len(places) or 'no'} locations",
            "row ids are numbered by location",
            f"give one of them: {places[0].shown}" if places else "",
        )
    snapshot = places[0].snapshot()
    for text in map(text_of, snapshot.state.notes):
        note(text)
    warn_of(odd_layout(snapshot))
    found = blame(snapshot, wanted)
    for problem in found.problems:
        warn(f"not looked at: {problem}")
    if not found.status:
        why = f"no event of it is in any directory that is there ({found.stripes_read} of {found.stripes} stripes read)"
        base = found.hidden_by[0] if found.hidden_by else ""
        hint = f"if there was one, it was deleted before {base} was compacted, and its traces cleaned" if base else ""
        raise NotFoundError(f"no row {found.row} in {places[0].shown}", why, hint)
    if output == "json":
        report = {
            "location": places[0].shown,
            "rowId": dict(zip(("writeid", "bucketid", "rowid"), found.row, strict=True)),
            "status": found.status.value,
            "inserts": list(map(_record, found.inserts)),
            "changes": [{**_record(event), "maybeUpdate": _may_be_update(event, found)} for event in found.changes],
            "stripes": found.stripes,
            "stripesRead": found.stripes_read,
            "snapshotSource": snapshot.source.record,
        }
        put_json(report, lines=False)
    else:
        _print(found, found.status)


def _record(event: Sighting) -> dict[str, Any]:
    return {
        "operation": event.operation,
        "writeId": event.write_id,
        "directory": event.directory or None,
        "file": event.file,
        "state": event.state.value,
        "rewritten": event.is_rewritten,
    }


def _may_be_update(event: Sighting, found: Blame) -> bool:
    return event.operation == "delete" and event.write_id in found.rewritten_changes


def _print(found: Blame, status: Status) -> None:
    screen = console()

    def say(text: str) -> None:
        screen.print(printable(text), soft_wrap=True)

    screen.print(str(found.row), style="bold")
    say(f"  {status.value}: {_MEANING[status.value]}")
    if found.inserts and found.inserts[0].is_rewritten:
        say(f"  inserted by write id {found.inserts[0].write_id}, whose own directory is gone")
    elif not found.inserts:
        say("  its insert is in no directory that is there")
    for event in found.inserts:
        verb = "rewritten into" if event.is_rewritten else f"inserted by write id {event.write_id}:"
        say(f"  {verb} {event.file} ({event.state.value})")
    for event in found.changes:
        verb = {"update": "updated", "delete": "deleted"}[event.operation]
        if _may_be_update(event, found):
            verb = "deleted, or updated (it inserted rows as well),"
        copy = "copy, " if event.is_rewritten else ""
        say(f"  {verb} by write id {event.write_id}: {event.file} ({copy}{event.state.value})")
