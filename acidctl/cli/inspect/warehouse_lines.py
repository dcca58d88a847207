"""The status of many locations as an object, and as the screen of `acidctl status`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.reasons import Code
from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.cleaning.retention import Policy
from acidctl.cli.output.progress import progress
from acidctl.cli.report.outcomes import RunReporter
from acidctl.cli.report.status_lines import blocked_lines, moment_text, trouble_lines, where_text
from acidctl.location.arguments import is_hive_name
from acidctl.location.find import find, once
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.overview.location_status import Use
from acidctl.overview.warehouse_status import NAMED, Condition, WarehouseStatus, look_over, overall_condition
from acidctl.wording import age_text, human_bytes, human_count, text_of, time_of, utc

if TYPE_CHECKING:  # needs packages that are installed only for a metastore
    from collections.abc import Callable

    from acidctl.hive.queue_view import QueueView

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Overview:
    """The status of all locations at some places.

    Attributes:
        queue: the metastore's view; None without a metastore.
        older_than: the retention in seconds.
    """

    where: Sequence[str]
    status: WarehouseStatus
    queue: QueueView | None
    condition: Condition
    older_than: float

    def record(self) -> Record:
        """Return the JSON form, without the keys about earlier runs."""
        return status_record(self.where, self.status, self.queue, self.condition, self.older_than)


def overview_of(
    where: Sequence[str],
    storage: Mapping[str, str],
    resolver: SnapshotResolver,
    older_than: float,
    visits: RunReporter,
    on_record: Callable[[WarehouseStatus, str], int | None],
) -> Overview:
    """List every location at these places once, and ask the metastore what waits there.

    Args:
        visits: what fails, and what was passed over, is reported to it.
        on_record: returns how many locations the last run found at the same places.
    """
    with progress("looking at locations") as bar:
        places = visits.known(once(find(where, storage, resolver, visits.observer)))
        status = look_over(places, Policy(older_than), visits.failed, lambda _: bar.advance())
    visits.looked_through(lambda key: on_record(status, key))
    queue = _queue_seen(resolver, status, where, visits)
    held_up = bool(queue and queue.is_trouble(older_than))
    condition = overall_condition(status, failed=visits.status > 0, held_up=held_up)
    return Overview(where, status, queue, condition, older_than)


def everything(resolver: SnapshotResolver) -> tuple[str, ...]:
    """Return the name of all tables of the metastore, for a command line without locations.

    Raises:
        UsageProblem: no metastore is configured.
    """
    if resolver.warehouse is None:
        raise UsageProblem(
            "nothing says where to look",
            "no WHERE is given, and no metastore is known of which all tables could be meant",
            "give a table, a database or a warehouse; or give --metastore",
        )
    return ("hive:*.*",)


def _queue_seen(
    resolver: SnapshotResolver, status: WarehouseStatus, where: Sequence[str], visits: RunReporter
) -> QueueView | None:
    """Return the metastore's view of these places; None without a metastore, or if it fails, which is reported."""
    if resolver.warehouse is None:
        return None
    from acidctl.hive.queue_view import look_at_queue  # noqa: PLC0415 - with thrift: only for a metastore

    try:
        names = [name for name in where if is_hive_name(name)]
        return look_at_queue(resolver.warehouse.metastore, status.waiting, status.holds, names)
    except AcidctlError as error:  # what was found on disk is shown nevertheless
        visits.failed("", error)
        return None


# --- for programs ---------------------------------------------------------------------------------------------------


def status_record(
    where: Sequence[str], status: WarehouseStatus, queue: QueueView | None, verdict: Condition, older_than: float
) -> Record:
    """Return the JSON form of a status, without the keys about the last nightly run."""
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
                    "location": worst.location,
                    "kind": worst.kind.value,
                    "gain": round(worst.gain, 4),
                    "reason": text_of(worst.reason),
                    "reasonCode": worst.reason.code,
                }
                for worst in status.worst
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
                for kept, places in sorted(status.kept_back.values(), key=lambda pair: -pair[0].bytes)[:NAMED]
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
        "blocked": _blocked_record(queue, older_than),
        "stuck": _stuck_record(queue),
        "lastDone": time_of(status.last_done),
    }


def _blocked_record(queue: QueueView | None, older_than: float) -> Record | None:
    if queue is None:
        return None
    from acidctl.cli.report.waits import what_to_do, who_blocks  # noqa: PLC0415 - with thrift: where a metastore is

    return {
        "count": len(queue.blockers),
        "overdue": len(queue.overdue(older_than)),
        "first": [
            {**who_blocks(blocker), "advice": what_to_do(blocker, queue.known, queue.switches)}
            for blocker in queue.blockers[:NAMED]
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
                "id": stuck.entry.id,
                "on": stuck.entry.name,
                "kind": stuck.entry.kind,
                "state": stuck.entry.state,
                "cause": stuck.cause.value,
                "why": why_stuck(stuck, queue.switches),
                "frees": what_frees(stuck, queue.switches),
            }
            for stuck in queue.stuck[:NAMED]
        ],
    }


# --- for people -----------------------------------------------------------------------------------------------------

LABEL = 12
_VERDICTS = {
    Condition.FINE: "fine: nothing to do",
    Condition.DUE: "due: maintenance is due, and there are no problems",
    Condition.TROUBLE: "trouble: something needs attention",
}


def status_screen(record: Record, ended: float | None, older_than: float) -> Iterator[str]:
    tables, places = human_count(record["tables"], "table"), human_count(record["locations"], "location")
    yield f"{where_text(record)}: {tables}, {places}, {human_bytes(record['bytes'])}"
    yield from _labelled("verdict", [_VERDICTS[record["verdict"]]])
    yield from _labelled("compaction", _compaction(record["compaction"]))
    cleaning = record["cleaning"]
    yield from _labelled("cleaning", [_when(cleaning)])
    if size := cleaning["abortedBytes"]:
        yield from _labelled("aborted", [f"{human_bytes(size)} of aborted writes, among it or still to come"])
    kept = [part for part in cleaning["keptBack"] if not (record["blocked"] and part["code"] == Code.READER_HOLDS)]
    texts = (f"{human_bytes(part['bytes'])}{_in(part['locations'])}: {part['reason']}" for part in kept)
    yield from _labelled("kept back", texts)
    yield from _labelled("blocked", _blocked(record, older_than))
    yield from _labelled("trash", _trash(record["trash"]))
    yield from _labelled("trouble", trouble_lines(record))
    if record["lastDone"]:
        yield from _labelled("last run", [f"{moment_text(record['lastDone'])}: see `acidctl log`"])
    if ended is not None:
        yield from _labelled("last nightly", [utc(ended)])


def _labelled(label: str, texts: Iterable[str]) -> Iterator[str]:
    for place, text in enumerate(texts):
        yield f"{'' if place else label:<{LABEL}}{text}".rstrip()


def _compaction(record: Record) -> Iterator[str]:
    kinds = ", ".join(f"{record[kind.value]:,} {kind.value}" for kind in CompactionKind if record[kind.value])
    due = f"{record['due']:,} due: {kinds}" if kinds else "none due"
    # The thresholds count directories and bytes, and not what readers would gain.
    more = f", but {record['helped']:,} {'more ' * bool(kinds)}would save reads: acidctl ls --sort gain"
    yield due + more if record["helped"] else due
    for location in record["worst"]:
        yield f"{location['location']}: {location['kind']}: {location['reason']}"
    if left := record["due"] - len(record["worst"]):
        yield f"and {left:,} more"


def _when(cleaning: Record) -> str:
    free, soon, later = (cleaning[key] for key in ("freeBytes", "soonBytes", "laterBytes"))
    parts = [f"{human_bytes(free)} can go now" + (_in(cleaning["locations"]) if free else "")]
    parts += [f"{human_bytes(soon)} within a day"] * (soon > 0)
    parts += [f"{human_bytes(later)} later"] * (later > 0)
    return ", ".join(parts)


def _in(places: int) -> str:
    return f" in {human_count(places, 'location')}"


def _blocked(record: Record, older_than: float) -> Iterator[str]:
    blocked = record["blocked"]
    if blocked and blocked["count"]:
        overdue = f", {blocked['overdue']:,} for longer than {age_text(older_than)}" if blocked["overdue"] else ""
        yield f"by {human_count(blocked['count'], 'transaction or lock', 'transactions or locks')}{overdue}"
        yield from blocked_lines(record)


def _trash(trash: Record) -> Iterator[str]:
    if trash["runs"]:
        oldest = f", the oldest of {moment_text(trash['oldest'])}" if trash["oldest"] else ""
        runs = human_count(trash["runs"], "cleaning run")
        yield f"{human_bytes(trash['bytes'])}{_in(trash['locations'])}, {runs}{oldest}"
