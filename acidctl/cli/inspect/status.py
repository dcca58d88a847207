"""`acidctl status`: what a warehouse needs, on one screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.reasons import Code
from acidctl.cleaning.retention import Policy
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import DIRECTORY
from acidctl.cli.output.console import put_json, put_text
from acidctl.cli.output.progress import progress
from acidctl.cli.report.looked_over import everything, queue_seen
from acidctl.cli.report.outcomes import Visits
from acidctl.errors import ExitStatus
from acidctl.location.find import find, once
from acidctl.location.lists import SnapshotLists
from acidctl.overview.location_status import Use
from acidctl.overview.warehouse_status import NAMED, Condition, WarehouseStatus, look_over, overall_condition
from acidctl.verbs.nightly_state import NightlyState, usual_folder
from acidctl.wording import age_text, human_bytes, human_count, text_of, time_of, utc

if TYPE_CHECKING:  # what these need is there only where a metastore is used
    from acidctl.hive.blocking import Blocker
    from acidctl.metastore.queue.stuck import Stuck
    from acidctl.overview.queue_view import QueueView

Record = dict[str, Any]


@shared.command(
    "status",
    "acidctl status",
    "acidctl status 'hive:sales.*' || mail -s 'acidctl: something needs attention' ops",
    "acidctl status --fail-on due -o json 'hive:*.*' | jq '.cleaning.freeBytes'",
)
@shared.places_argument("locations", "[WHERE...]", required=False)
@shared.retention_option()
@click.option(
    "--fail-on",
    type=click.Choice(["trouble", "due"]),
    default="trouble",
    show_default=True,
    help="What ends the command with status 14: trouble that nobody mends by itself, or also work that is due.",
)
@click.option(
    "--state",
    "state",
    type=DIRECTORY,
    metavar="DIR",
    help="The --state of `acidctl nightly`, if it is not the usual folder.",
)
@shared.reading_options("table", "json", default="table")
@shared.runs()
def command(
    *,
    locations: tuple[str, ...],
    older_than: float,
    fail_on: str,
    state: str | None,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
) -> int:
    """Show on one screen what tables need: compactions that are due, what cleaning can free, what holds it back,
    trash, and what was interrupted or is stuck.

    WHERE is a location, a table, a database, a warehouse, or names of a metastore: hive:db.table, hive:db.*. Without
    one, where a metastore is configured, it is all of its tables. At most five of each kind are named, the worst
    first; `acidctl ls --sort gain`, `clean --dry-run`, `txns --blocking` and `compactions --stuck` have the rest.

    Trouble is: a publication that was interrupted half-way; a location that cannot be compacted, cleaned or read as it
    is; an entry of Hive's queue that is stuck; a transaction or lock that has held back a cleaning for longer than
    --older-than. Nothing is changed, no file of data is opened, and each location is listed once.
    """
    where = locations or everything(lists)
    visits = Visits()
    last_run = NightlyState(Path(state) if state else usual_folder())
    with progress("looking at locations") as bar:
        places = visits.known(once(find(where, storage, lists, visits.observer)))
        status = look_over(places, lists, Policy(older_than), visits.failed, lambda _: bar.advance())
    visits.looked_through(last_run.looked)
    queue = queue_seen(lists, status, where, visits)
    verdict = overall_condition(status, failed=visits.status > 0, held_up=bool(queue and queue.is_trouble(older_than)))
    ended = last_run.written
    if output == "json":
        record = status_record(where, status, queue, verdict)
        record |= {"notLookedAt": visits.coverage.as_json(), "lastNightly": ended and time_of(ended)}
        put_json(record, lines=False)
    else:
        for line in _screen(where, status, queue, ended, verdict, older_than):
            put_text(line, _LABEL + 2 * line.startswith(" "))
    visits.tell_strangers()
    wanted = verdict is Condition.TROUBLE or (verdict is Condition.DUE and fail_on == "due")
    return visits.status or (ExitStatus.FINDINGS if wanted else ExitStatus.DONE)


# --- for programs ---------------------------------------------------------------------------------------------------


def status_record(where: Sequence[str], status: WarehouseStatus, queue: QueueView | None, verdict: Condition) -> Record:
    """What was looked over, as JSON has it, but for what the last night left."""
    whole = status.whole
    by_kind = {kind.value: status.due[kind] for kind in CompactionKind}
    return {
        "where": list(where),
        "verdict": verdict,
        "tables": len(status.tables),
        "locations": whole.locations,
        "bytes": whole.bytes - whole.uses[Use.TRASH],
        "compaction": {
            "due": status.due.total(),
            **by_kind,
            "helped": status.helped,
            "worst": [
                {
                    "location": one.location,
                    "kind": one.kind.value,
                    "gain": round(one.gain, 4),
                    "reason": text_of(one.reason),
                    "reasonCode": one.reason.code,
                }
                for one in status.worst
            ],
        },
        "cleaning": {
            "locations": status.to_clean,
            "freeBytes": whole.free,
            "soonBytes": whole.soon,
            "laterBytes": status.later,
            "abortedBytes": status.aborted,
            "keptBack": [
                {
                    "code": kept.reason.code,
                    "reason": text_of(kept.reason),
                    "locations": places,
                    "entries": kept.entries,
                    "bytes": kept.bytes,
                }
                for kept, places in _kept_back(status)
            ],
        },
        "trash": {
            "locations": status.in_trash,
            "runs": status.trash.runs,
            "bytes": status.trash.bytes,
            "oldest": time_of(status.trash.oldest),
        },
        "unfinished": {
            "count": status.unfinished_count,
            "first": [{"location": location, "staging": name} for location, name in status.unfinished],
        },
        "refused": {
            "locations": status.refused_count,
            "first": [
                {"location": location, "code": error.code, "what": error.what, "why": error.why, "hint": error.hint}
                for location, error in status.refused
            ],
        },
        "blocked": _blocked_record(queue),
        "stuck": _stuck_record(queue),
        "lastDone": time_of(status.last_done),
    }


def _kept_back(status: WarehouseStatus) -> list[Any]:
    return sorted(status.kept_back.values(), key=lambda pair: -pair[0].bytes)[:NAMED]


def _blocked_record(queue: QueueView | None) -> Record | None:
    if queue is None:
        return None
    from acidctl.cli.report.waits import what_to_do, who_blocks  # noqa: PLC0415 - with thrift: where a metastore is

    return {
        "count": len(queue.blockers),
        "first": [
            {**who_blocks(one), "advice": what_to_do(one, queue.known, queue.switches)}
            for one in queue.blockers[:NAMED]
        ],
    }


def _stuck_record(queue: QueueView | None) -> Record | None:
    if queue is None:
        return None
    from acidctl.cli.report.waits import what_frees, why_stuck  # noqa: PLC0415 - with thrift: where a metastore is

    return {
        "count": len(queue.stuck),
        "first": [
            {
                "id": one.entry.id,
                "on": one.entry.name,
                "kind": one.entry.kind,
                "state": one.entry.state,
                "cause": one.cause.value,
                "why": why_stuck(one, queue.switches),
                "frees": what_frees(one, queue.switches),
            }
            for one in queue.stuck[:NAMED]
        ],
    }


# --- for people -----------------------------------------------------------------------------------------------------

_LABEL = 12
VERDICTS = {
    Condition.FINE: "fine: nothing to do",
    Condition.DUE: "due: there is work, and nothing is wrong",
    Condition.TROUBLE: "trouble: something needs attention",
}
"""The verdict in a line."""


def _screen(
    where: Sequence[str],
    status: WarehouseStatus,
    queue: QueueView | None,
    ended: float | None,
    verdict: Condition,
    older_than: float,
) -> Iterator[str]:
    whole = status.whole
    tables, places = human_count(len(status.tables), "table"), human_count(whole.locations, "location")
    more = f" and {len(where) - 1:,} more" if len(where) > 1 else ""
    yield f"{where[0]}{more}: {tables}, {places}, {human_bytes(whole.bytes - whole.uses[Use.TRASH])}"
    yield _line("verdict", VERDICTS[verdict])
    yield from _compaction(status)
    yield from _cleaning(status, has_queue=queue is not None)
    if queue:
        yield from _queue(queue, older_than)
    yield from _trash(status)
    yield from _named(
        "unfinished",
        human_count(status.unfinished_count, "half-published compaction") if status.unfinished_count else "",
        status.unfinished,
        status.unfinished_count,
        lambda pair: f"{pair[0]}: {pair[1]} is half published: acidctl compact finishes it",
    )
    yield from _named(
        "refused",
        f"{human_count(status.refused_count, 'location')} as they are" if status.refused_count else "",
        status.refused,
        status.refused_count,
        lambda pair: str(pair[1]) if pair[0] in pair[1].what else f"{pair[0]}: {pair[1]}",
    )
    if status.last_done is not None:
        yield _line("last run", f"{utc(status.last_done)}: acidctl log tells of what was done")
    if ended is not None:
        yield _line("last nightly", utc(ended))


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}".rstrip()


def _named(label: str, first: str, some: Sequence[Any], count: int, text: Callable[[Any], str]) -> Iterator[str]:
    """A line, and below it the first of so many; nothing where the line is empty."""
    if not first:
        return
    yield _line(label, first)
    for one in some[:NAMED]:
        yield _line("", text(one))
    if count > len(some[:NAMED]):
        yield _line("", f"and {count - len(some[:NAMED]):,} more")


def _compaction(status: WarehouseStatus) -> Iterator[str]:
    total = status.due.total()
    # The thresholds count directories and bytes, and not what readers would gain.
    helped = f"; no threshold asks for {status.helped:,} that would save reads: acidctl ls --sort gain"
    helped = helped if status.helped else ""
    kinds = ", ".join(f"{status.due[kind]:,} {kind.value}" for kind in CompactionKind if status.due[kind])
    yield from _named(
        "compaction",
        (f"{total:,} due: {kinds}" if total else "none due") + helped,
        status.worst,
        total,
        lambda one: f"{one.location}: {one.kind.value}: {text_of(one.reason)}",
    )


def _cleaning(status: WarehouseStatus, *, has_queue: bool) -> Iterator[str]:
    whole = status.whole
    parts = [f"{human_bytes(whole.free)} can go now" + (_in(status.to_clean) if whole.free else "")]
    parts += [f"{human_bytes(whole.soon)} within a day"] * (whole.soon > 0)
    parts += [f"{human_bytes(status.later)} later"] * (status.later > 0)
    yield _line("cleaning", ", ".join(parts))
    if status.aborted:
        yield _line("aborted", f"{human_bytes(status.aborted)} of aborted writes, among it or still to come")
    kept = [pair for pair in _kept_back(status) if not (has_queue and pair[0].reason.code is Code.READER_HOLDS)]
    for number, (one, places) in enumerate(kept):
        yield _line("" if number else "kept back", f"{human_bytes(one.bytes)}{_in(places)}: {text_of(one.reason)}")


def _in(places: int) -> str:
    return f" in {human_count(places, 'location')}"


def _queue(queue: QueueView, older_than: float) -> Iterator[str]:
    overdue = len(queue.overdue(older_than))
    late = f", {overdue:,} for longer than {age_text(older_than)}" if overdue else ""
    yield from _named(
        "blocked",
        f"by {human_count(len(queue.blockers), 'transaction or lock', 'transactions or locks')}{late}"
        if queue.blockers
        else "",
        queue.blockers,
        len(queue.blockers),
        lambda one: _blocker(one, queue),
    )
    yield from _named(
        "stuck",
        f"{human_count(len(queue.stuck), 'entry', 'entries')} of Hive's queue" if queue.stuck else "",
        queue.stuck,
        len(queue.stuck),
        lambda one: _stuck(one, queue),
    )


def _blocker(one: Blocker, queue: QueueView) -> str:
    from acidctl.cli.report.waits import what_to_do  # noqa: PLC0415 - with thrift: where a metastore is

    what = f"transaction {one.txn.id}" if one.txn else f"lock {one.locks[0].id}"
    size = f", {human_bytes(one.bytes)}" if one.bytes is not None else ""
    since = f" since {age_text(queue.known.age(one.started))}" if one.started is not None else ""
    advice = what_to_do(one, queue.known, queue.switches)
    return f"{what} of {one.user}@{one.host}{since}: {human_count(one.count, 'location')}{size}; {advice}"


def _stuck(one: Stuck, queue: QueueView) -> str:
    from acidctl.cli.report.waits import why_stuck  # noqa: PLC0415 - with thrift: where a metastore is

    return f"{one.entry.id} {one.entry.kind} of {one.entry.name}: {why_stuck(one, queue.switches)}"


def _trash(status: WarehouseStatus) -> Iterable[str]:
    trash = status.trash
    if not trash.runs:
        return
    oldest = f", the oldest of {utc(trash.oldest)}" if trash.oldest is not None else ""
    runs = human_count(trash.runs, "cleaning run")
    yield _line("trash", f"{human_bytes(trash.bytes)}{_in(status.in_trash)}, {runs}{oldest}")
