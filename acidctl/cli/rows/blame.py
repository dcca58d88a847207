"""`acidctl blame`: where one row was inserted, rewritten and deleted."""

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
    from acidctl.rows.past.blame import Blame, RowId, RowLife, Sighting

_MEANING = {
    "live": "readers see it",
    "deleted": "a delete or an update removed it",
    "invisible": "this snapshot does not see the write ids of it",
    "gone": "what readers use does not hold it any more",
}


@shared.command(
    "blame",
    "acidctl blame orders 1:536870912:2",
    "acidctl blame orders 1:bucket=0:2",
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

    ROWID is writeid:bucketid:rowid, where bucketid is the encoded number of ROW__ID; or writeid:bucket=N:rowid with the
    number of the bucket file, whatever the statement; or ROW__ID as `cat --row-id` prints it. Obsolete and aborted
    directories are looked at too.
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
    if not found.rows:
        raise _never_seen(places[0].shown, wanted, found)
    if output == "json":
        put_json({**_report(places[0].shown, found), "snapshotSource": snapshot.source.record}, lines=False)
        return
    for life in found.rows:
        _print(life, found)


def _never_seen(location: str, wanted: RowId, found: Blame) -> Exception:
    why = f"no event of it is in any directory that is there ({found.stripes_read} of {found.stripes} stripes read)"
    hint = ""
    if found.hidden_by:
        hint = f"if there was one, it was deleted before {found.hidden_by[0]} was compacted, and its traces cleaned"
    return NotFoundError(f"no row {wanted} in {location}", why, hint)


def _report(location: str, found: Blame) -> dict[str, Any]:
    def seen(event: Sighting) -> dict[str, Any]:
        return {
            "operation": event.operation,
            "writeId": event.write_id,
            "directory": event.directory or None,
            "file": event.file,
            "state": event.state.value,
            "rewritten": event.is_rewritten,
        }

    return {
        "location": location,
        "rows": [
            {
                "rowId": dict(zip(("writeid", "bucketid", "rowid"), life.key, strict=True)),
                "status": life.status.value,
                "inserts": [seen(event) for event in life.inserts],
                "changes": [{**seen(event), "maybeUpdate": _may_be_update(event, found)} for event in life.changes],
            }
            for life in found.rows
        ],
        "stripes": found.stripes,
        "stripesRead": found.stripes_read,
    }


def _may_be_update(event: Sighting, found: Blame) -> bool:
    return event.operation == "delete" and event.write_id in found.rewritten_changes


def _print(life: RowLife, found: Blame) -> None:
    screen = console()

    def say(text: str) -> None:
        screen.print(printable(text), soft_wrap=True)

    screen.print(":".join(map(str, life.key)), style="bold")
    say(f"  {life.status.value}: {_MEANING[life.status.value]}")
    if life.inserts and life.inserts[0].is_rewritten:
        say(f"  inserted by write id {life.inserts[0].write_id}, whose own directory is gone")
    elif not life.inserts:
        say("  its insert is in no directory that is there")
    for event in life.inserts:
        verb = "rewritten into" if event.is_rewritten else f"inserted by write id {event.write_id}:"
        say(f"  {verb} {event.file} ({event.state.value})")
    for event in life.changes:
        verb = {"update": "updated", "delete": "deleted"}[event.operation]
        if _may_be_update(event, found):
            verb = "deleted, or updated (it inserted rows as well),"
        copy = "copy, " if event.is_rewritten else ""
        say(f"  {verb} by write id {event.write_id}: {event.file} ({copy}{event.state.value})")
