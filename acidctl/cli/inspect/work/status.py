"""What `acidctl status` does: look over every location, ask the metastore, and put it on one screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.reasons import Code
from acidctl.cleaning.retention import Policy
from acidctl.cli.output.console import put_json, put_text
from acidctl.cli.output.progress import progress
from acidctl.cli.report.looked_over import everything, queue_seen
from acidctl.cli.report.outcomes import Visits
from acidctl.errors import ExitStatus
from acidctl.location.find import find, once
from acidctl.location.lists import SnapshotLists
from acidctl.night.memory import Memory, usual_folder
from acidctl.overview.overview import (
    NAMED,
    Condition,
    Overview,
    look_over,
    overall_condition,
)
from acidctl.overview.place import LocationNeeds
from acidctl.wording import age_text, human_bytes, human_count, text_of, time_of, utc

if TYPE_CHECKING:  # what these need is there only where a metastore is used
    from acidctl.hive.blocking import Blocker
    from acidctl.metastore.queue.stuck import Stuck
    from acidctl.overview.queue_view import QueueView

Record = dict[str, Any]


def work(
    *,
    locations: tuple[str, ...],
    older_than: float,
    fail_on: str,
    state: str | None,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
) -> int:
    """Look, and show; the exit status."""
    where = locations or everything(lists)
    visits = Visits()
    night = _LastNight(Memory(Path(state) if state else usual_folder()))
    with progress("looking at locations") as bar:

        def looked(one: LocationNeeds) -> None:
            bar.advance()
            night.met(one.location)

        places = visits.known(once(find(where, storage, lists, visits.observer)))
        overview = look_over(places, lists, Policy(older_than), visits.failed, looked)
    visits.looked_through(night.looked)
    queue = queue_seen(lists, overview, where, visits)
    verdict = overall_condition(
        overview, failed=visits.status > 0, held_up=bool(queue and queue.is_trouble(older_than))
    )
    if output == "json":
        record = status_record(where, overview, queue, verdict)
        put_json({**record, "notLookedAt": visits.coverage.as_json(), "night": night.record}, lines=False)
    else:
        for line in _screen(where, overview, queue, night, verdict, older_than):
            put_text(line, _LABEL + 2 * line.startswith(" "))
    visits.tell_strangers()
    wanted = verdict is Condition.TROUBLE or (verdict is Condition.DUE and fail_on == "due")
    return visits.status or (ExitStatus.FINDINGS if wanted else ExitStatus.DONE)


class _LastNight:
    """What the last `acidctl nightly` of this user left for later in the locations that were met."""

    def __init__(self, memory: Memory) -> None:
        self.ended, self._memory = memory.written, memory
        self._postponed = memory.recalled() if self.ended is not None else {}
        self.left = 0

    @property
    def record(self) -> Record | None:
        return None if self.ended is None else {"ended": time_of(self.ended), "left": self.left}

    def looked(self, where: str) -> int | None:
        """How many locations the last nightly run found at these places."""
        return self._memory.looked(where)

    def met(self, location: str) -> None:
        self.left += location in self._postponed


# --- for programs ---------------------------------------------------------------------------------------------------


def status_record(where: Sequence[str], overview: Overview, queue: QueueView | None, verdict: Condition) -> Record:
    """What was looked over, as JSON has it, but for what the last night left."""
    by_kind = {kind.value: overview.due[kind] for kind in CompactionKind}
    return {
        "where": list(where),
        "verdict": verdict,
        "tables": overview.tables,
        "locations": overview.locations,
        "bytes": overview.bytes,
        "compaction": {
            "due": overview.due.total(),
            **by_kind,
            "worst": [
                {
                    "location": one.location,
                    "kind": one.kind.value,
                    "gain": round(one.gain, 4),
                    "reason": text_of(one.reason),
                    "reasonCode": one.reason.code,
                }
                for one in overview.worst
            ],
        },
        "cleaning": {
            "locations": overview.to_clean,
            "freeBytes": overview.free,
            "soonBytes": overview.soon,
            "laterBytes": overview.later,
            "abortedBytes": overview.aborted,
            "keptBack": [
                {
                    "code": kept.reason.code,
                    "reason": text_of(kept.reason),
                    "locations": places,
                    "entries": kept.entries,
                    "bytes": kept.bytes,
                }
                for kept, places in _kept_back(overview)
            ],
        },
        "trash": {
            "locations": overview.in_trash,
            "runs": overview.trash.runs,
            "bytes": overview.trash.bytes,
            "oldest": time_of(overview.trash.oldest),
        },
        "unfinished": {
            "count": overview.unfinished_count,
            "first": [{"location": location, "staging": name} for location, name in overview.unfinished],
        },
        "refused": {
            "locations": overview.refused_count,
            "first": [
                {"location": location, "code": error.code, "what": error.what, "why": error.why, "hint": error.hint}
                for location, error in overview.refused
            ],
        },
        "blocked": _blocked_record(queue),
        "stuck": _stuck_record(queue),
        "lastDone": time_of(overview.last_done),
    }


def _kept_back(overview: Overview) -> list[Any]:
    return sorted(overview.kept_back.values(), key=lambda pair: -pair[0].bytes)[:NAMED]


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
    overview: Overview,
    queue: QueueView | None,
    night: _LastNight,
    verdict: Condition,
    older_than: float,
) -> Iterator[str]:
    tables, places = human_count(overview.tables, "table"), human_count(overview.locations, "location")
    more = f" and {len(where) - 1:,} more" if len(where) > 1 else ""
    yield f"{where[0]}{more}: {tables}, {places}, {human_bytes(overview.bytes)}"
    yield _line("verdict", VERDICTS[verdict])
    yield from _compaction(overview)
    yield from _cleaning(overview, has_queue=queue is not None)
    if queue:
        yield from _queue(queue, older_than)
    yield from _trash(overview)
    yield from _named(
        "unfinished",
        human_count(overview.unfinished_count, "half-published compaction") if overview.unfinished_count else "",
        overview.unfinished,
        overview.unfinished_count,
        lambda pair: f"{pair[0]}: {pair[1]} is half published: acidctl compact finishes it",
    )
    yield from _named(
        "refused",
        f"{human_count(overview.refused_count, 'location')} as they are" if overview.refused_count else "",
        overview.refused,
        overview.refused_count,
        lambda pair: str(pair[1]) if pair[0] in pair[1].what else f"{pair[0]}: {pair[1]}",
    )
    if overview.last_done is not None:
        yield _line("last run", f"{utc(overview.last_done)}: acidctl log tells of what was done")
    if night.ended is not None:
        left = f", {human_count(night.left, 'location')} of these left for later" if night.left else ""
        yield _line("last night", f"{utc(night.ended)}{left}")


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


def _compaction(overview: Overview) -> Iterator[str]:
    total = overview.due.total()
    kinds = ", ".join(f"{overview.due[kind]:,} {kind.value}" for kind in CompactionKind if overview.due[kind])
    yield from _named(
        "compaction",
        f"{total:,} due: {kinds}" if total else "none due",
        overview.worst,
        total,
        lambda one: f"{one.location}: {one.kind.value}: {text_of(one.reason)}",
    )


def _cleaning(overview: Overview, *, has_queue: bool) -> Iterator[str]:
    parts = [f"{human_bytes(overview.free)} can go now" + (_in(overview.to_clean) if overview.free else "")]
    parts += [f"{human_bytes(overview.soon)} within a day"] * (overview.soon > 0)
    parts += [f"{human_bytes(overview.later)} later"] * (overview.later > 0)
    yield _line("cleaning", ", ".join(parts))
    if overview.aborted:
        yield _line("aborted", f"{human_bytes(overview.aborted)} of aborted writes, among it or still to come")
    kept = [pair for pair in _kept_back(overview) if not (has_queue and pair[0].reason.code is Code.READER_HOLDS)]
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


def _trash(overview: Overview) -> Iterable[str]:
    trash = overview.trash
    if not trash.runs:
        return
    oldest = f", the oldest of {utc(trash.oldest)}" if trash.oldest is not None else ""
    runs = human_count(trash.runs, "cleaning run")
    yield _line("trash", f"{human_bytes(trash.bytes)}{_in(overview.in_trash)}, {runs}{oldest}")
