"""The status of one location, from one listing and the rules of compaction, cleaning and publication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import LAST_SECONDS
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import State
from acidctl.acid.triggers import NO_COST, Advice, Decision, advise
from acidctl.acid.unfinished import LayoutProblem, layout_problems
from acidctl.base.errors import AcidctlError, BadDataError, RefusedError
from acidctl.cleaning.freeable import Freeable, freeable_of, freeable_together
from acidctl.cleaning.plan import CleaningPlan, plan_cleaning
from acidctl.cleaning.retention import Policy
from acidctl.cleaning.trash import TRASH, TrashRun
from acidctl.compaction.due import due_compaction
from acidctl.location.change.publication import half_published
from acidctl.location.change.work_log import logged_at
from acidctl.location.evidence import Evidence
from acidctl.location.resolved import ResolvedLocation
from acidctl.location.snapshot import Child, Snapshot, SnapshotSource, children_of, superseded_since
from acidctl.rows.scan.odd_layout import odd_layout
from acidctl.wording import iso_time, text_of

if TYPE_CHECKING:  # its dependencies are optional
    from acidctl.hive.waiting import Waiting

DAY_SECONDS = 86400
"""Bytes that can be freed within this time count as `soon`."""

NOTHING = Freeable()
OK, UNSAFE = "ok", "unsafe"
"""Verdicts: nothing is due; Hive never writes such a layout, or the metastore is older than the files."""


class Use(StrEnum):
    """The purposes of bytes on disk."""

    CURRENT = "current"
    OBSOLETE = "obsolete"
    ABORTED = "aborted"
    IGNORED = "ignored"
    TRASH = "trash"


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers of locations, which can be added.

    Attributes:
        entries: directories and files at the top of a location, by state.
        uses: bytes by purpose.
        files: all files but those in the trash.
        deltas: current deltas and delete deltas.
        reading: the cost for readers; zero for a location that cannot be read.
        soon: the part of the bytes of `free.later` that can be freed within a day.
        due: compactions that the thresholds ask for.
        helped: locations in which a compaction would save reads, though none is due.
    """

    locations: int = 0
    entries: Counter[State] = field(default_factory=Counter)
    uses: Counter[Use] = field(default_factory=Counter)
    files: int = 0
    deltas: int = 0
    reading: Advice = NO_COST
    free: Freeable = NOTHING
    soon: int = 0
    due: Counter[CompactionKind] = field(default_factory=Counter)
    helped: int = 0

    def __add__(self, other: Figures) -> Figures:
        sums = {
            one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self) if one.name != "free"
        }
        return Figures(**sums, free=freeable_together((self.free, other.free)))

    @property
    def bytes(self) -> int:
        """Return all bytes except those of the trash."""
        return self.uses.total() - self.uses[Use.TRASH]

    def record(self) -> dict[str, Any]:
        """Return the JSON form, the same for a location, a table and a warehouse."""
        return {
            "locations": self.locations,
            "deltas": self.deltas,
            **{state.value: self.entries[state] for state in State},
            "files": self.files,
            "bytes": self.bytes,
            **{f"{use.value}Bytes": self.uses[use] for use in Use},
            "freeBytes": self.free.now,
            "soonBytes": self.soon,
            "laterBytes": self.free.later - self.soon,
            "due": self.due.total(),
            "helped": self.helped,
            **reading_record(self.reading),
        }


def reading_record(reading: Advice) -> dict[str, Any]:
    """Return what a full read costs now, and after the compaction that saves most of it for each byte it rewrites."""
    return {
        "score": reading.score,
        "cost": reading.cost,
        "directoriesRead": reading.directories,
        "filesRead": reading.files,
        "smallFiles": reading.small_files,
        "deleteBytes": reading.delete_bytes,
        "helps": reading.kind.value if reading.kind else None,
        "rewritten": reading.rewritten,
        "saved": reading.saved,
        "gain": round(reading.gain, 4),
        "filesAfter": reading.files_after,
        "seconds": round(reading.seconds, 3),
        "secondsAfter": round(reading.seconds_after, 3),
    }


class Kept(NamedTuple):
    """An entry that readers do not need, but that the rules of cleaning keep.

    Attributes:
        since: when it was superseded, else written, in seconds since the epoch; None if unknown.
    """

    reason: Reason
    bytes: int
    since: float | None


@dataclass(frozen=True, slots=True)
class LocationStatus:
    """The content of a location, its cost for readers, and its pending work.

    Attributes:
        name: its name in the metastore, if it was asked for by such a name; else empty.
        verdict: ``major due``, ``minor due``, `unsafe` (the metastore is older than the files, or Hive never writes the
            layout), `unreadable` (not enough history), `unknown` (nobody knows that it is transactional), `unfinished`
            (a publication was interrupted), `refused` (it cannot be compacted or cleaned), `left alone` (by its owner)
            or `ok`.
        root: the directory of its table, with its store.
        table: the name of its table in the metastore, else its directory.
        base: the name of the base that is read.
        compaction: what the thresholds ask for, or why they ask for nothing.
        kept_back: entries that readers do not need, but that the rules of cleaning keep.
        trash_runs: the names of cleanings whose files are in its trash.
        unfinished: staging directories of interrupted publications.
        refused: why it cannot be compacted, or cleaned, in its present state.
        waiting: what waits for cleaning, if a metastore has its table; else None.
        last_done: when acidctl changed it last, seconds since the epoch; None without a log.
        history_problem: why the snapshot cannot be read.
        ahead: why the files are newer than the metastore.
        notes: what was assumed.
        warnings: sentences on layouts because of which rows may come twice, and on files ahead of the metastore.
        is_free_known: whether it is known what a cleaning would free.
    """

    location: str
    name: str
    root: tuple[str, str]
    table: str
    verdict: str
    evidence: Evidence
    source: SnapshotSource
    base: str | None
    figures: Figures
    compaction: Decision
    kept_back: tuple[Kept, ...]
    unfinished: tuple[str, ...]
    trash_runs: tuple[TrashRun, ...]
    refused: tuple[AcidctlError, ...]
    waiting: Waiting | None
    last_done: float | None
    history_problem: Reason | None
    ahead: tuple[Reason, ...]
    notes: tuple[Reason, ...]
    warnings: tuple[str, ...]
    is_free_known: bool = True

    @property
    def shown(self) -> str:
        """Return the name by which it was asked for."""
        return self.name or self.location

    @property
    def why(self) -> str:
        """Return the reason for the verdict; empty for `ok`."""
        if self.verdict == OK:
            return ""
        if self.verdict == "unfinished":
            return f"{self.unfinished[0]} is half published"
        if self.verdict == "refused":
            return str(self.refused[0])
        return "; ".join(map(text_of, self.ahead)) or text_of(self.history_problem or self.compaction.reason)

    def record(self) -> dict[str, Any]:
        """Return the JSON form, from which tables and CSV are made, too."""
        figures = self.figures.record()
        if self.history_problem:
            figures |= dict.fromkeys(reading_record(NO_COST))
        if not self.is_free_known:
            figures |= dict.fromkeys(("freeBytes", "soonBytes", "laterBytes"))
        return {
            "location": self.location,
            "name": self.name or None,
            "table": self.table,
            "verdict": self.verdict,
            "why": self.why,
            "base": self.base,
            **figures,
            "compaction": self.compaction.kind.value if self.compaction.kind else None,
            "compactionReason": text_of(self.compaction.reason),
            "compactionReasonCode": self.compaction.reason.code,
            "problem": str(self.refused[0]) if self.refused else None,
            "transactional": {
                "known": self.evidence.is_known,
                "type": self.evidence.table_type.value if self.evidence.table_type else None,
                "code": self.evidence.reason.code,
                "reason": self.evidence.text,
            },
            "snapshotSource": self.source.record,
            "historyProblem": text_of(self.history_problem) if self.history_problem else None,
            "disagreements": [
                {"code": why.code, "reason": text_of(why), "directories": list(why.by)} for why in self.ahead
            ],
            "notes": list(map(text_of, self.notes)),
            "warnings": list(self.warnings),
        }


def entry_record(child: Child, rows: int | None = None) -> dict[str, Any]:
    """Return the JSON form of a directory or file at the top of a location."""
    return {**child.record(), "rows": rows, "modified": iso_time(child.amount.modified)}


@dataclass(frozen=True, slots=True)
class Pending:
    """The work that the rules of the packages below find in a location.

    Attributes:
        problems: of the layout that a reader sees.
        unfinished: staging directories of interrupted publications.
        cleaning: what a cleaning would do; None if there is nothing to clean, or nothing is known of that.
        compaction: what `acidctl compact --auto` would do.
        refused: why it cannot be cleaned, or compacted.
    """

    problems: tuple[LayoutProblem, ...]
    unfinished: tuple[str, ...]
    cleaning: CleaningPlan | None
    compaction: Decision
    refused: tuple[AcidctlError, ...]


def pending_of(location: ResolvedLocation, policy: Policy | None, now: float) -> Pending:
    """Return the pending work of a location from its snapshots; it is not listed again.

    Args:
        location: with the snapshots of a reader and of a compaction, and with evidence.
        policy: decides what a cleaning may remove; None if nothing is known of that.
        now: seconds since the epoch.
    """
    assert location.evidence  # it was asked for
    snapshot, may_change = location.for_reader(), location.evidence.may_change
    problems = tuple(layout_problems(snapshot.listing, snapshot.state))
    unfinished = tuple(staging for staging, _ in half_published(snapshot))
    refused: dict[str, AcidctlError] = {}
    plan = None
    # An interrupted publication is finished before anything is cleaned.
    if may_change and policy and not unfinished:
        try:
            snapshot.require_agreement()  # first: it is the reason for the missing history
            snapshot.require_history()
            if problems or snapshot.state.removable:
                plan = plan_cleaning(snapshot, policy, now)
        except AcidctlError as error:
            refused[str(error)] = error
    try:
        decision = due_compaction(location, is_sound=not problems)
    except (BadDataError, RefusedError) as error:
        if may_change:
            refused[str(error)] = error
        decision = Decision(None, reason(Code.REFUSED, how="error", why=str(error)))
    if problems:
        decision = Decision(None, reason(Code.LAYOUT_REFUSED, *(problem.reason for problem in problems)))
    if not may_change:
        decision = Decision(None, reason(Code.NOT_TRANSACTIONAL, decision.reason))
    return Pending(problems, unfinished, plan, decision, tuple(refused.values()))


def status_of(
    location: ResolvedLocation, pending: Pending, now: float, name: str = "", *, is_free_known: bool = True
) -> LocationStatus:
    """Return the status of a location from its pending work.

    Args:
        location, now: see :func:`pending_of`.
        name: the name in the metastore by which it was asked for.
        is_free_known: see :class:`LocationStatus`.
    """
    assert location.evidence  # it was asked for
    snapshot, plan, compaction = location.for_reader(), pending.cleaning, pending.compaction
    state, children = snapshot.state, children_of(snapshot)
    reading = NO_COST if state.history_problem else advise(snapshot.listing, state, is_sound=not pending.problems)
    verdict = _verdict(snapshot, pending, location.evidence)
    sizes = {child.verdict.name: child.amount.bytes for child in children}
    figures = Figures(
        locations=1,
        entries=Counter(child.verdict.state for child in children),
        uses=_uses(children),
        files=sum(child.amount.files for child in children if child.verdict.name != TRASH),
        deltas=len(state.deltas),
        reading=reading,
        free=freeable_of(plan) if plan else NOTHING,
        soon=_soon(plan, sizes, now) if plan else 0,
        due=Counter([compaction.kind] if compaction.kind else []),
        helped=int(verdict == OK and reading.kind is not None),
    )
    table = location.metastore.table
    return LocationStatus(
        location=location.shown,
        name=name,
        root=(location.fs.url, location.location.table_path),
        table=table.full_name if table else location.fs.display(location.location.table_path),
        verdict=verdict,
        evidence=location.evidence,
        source=snapshot.source,
        base=state.base.name if state.base else None,
        figures=figures,
        compaction=compaction,
        kept_back=tuple(_kept_back(plan, sizes)) if plan else (),
        unfinished=pending.unfinished,
        trash_runs=_trash_runs(snapshot),
        refused=pending.refused,
        waiting=_waiting(location, snapshot),
        last_done=logged_at(location.listing.log),
        history_problem=state.history_problem,
        ahead=snapshot.ahead,
        notes=tuple(state.notes),
        warnings=tuple(odd_layout(snapshot, pending.problems)),
        is_free_known=is_free_known,
    )


def _verdict(snapshot: Snapshot, pending: Pending, evidence: Evidence) -> str:
    compaction, code = pending.compaction, pending.compaction.reason.code
    verdicts = (
        (UNSAFE, bool(snapshot.ahead)),
        ("unreadable", snapshot.state.history_problem is not None),
        (UNSAFE, code is Code.LAYOUT_REFUSED),
        (f"{compaction.kind} due", compaction.kind is not None),
        ("unknown", not evidence.may_change),
        ("unfinished", bool(pending.unfinished)),
        ("refused", bool(pending.refused)),
        ("left alone", code in (Code.AUTO_IS_OFF, Code.REFUSED)),
    )
    return next((word for word, holds in verdicts if holds), OK)


def _uses(children: Iterable[Child]) -> Counter[Use]:
    uses: Counter[Use] = Counter()
    for child in children:
        verdict = child.verdict
        uses[Use.TRASH if verdict.name == TRASH else Use(verdict.state.value)] += child.amount.bytes
    return uses


def _soon(plan: CleaningPlan, sizes: Mapping[str, int], now: float) -> int:
    """Return the bytes that can be freed within a day."""
    times = {entry.name: LAST_SECONDS if entry.until is None else entry.until for entry in plan.waiting}
    return sum(sizes.get(name, 0) for name, until in times.items() if until <= now + DAY_SECONDS)


def _kept_back(plan: CleaningPlan, sizes: Mapping[str, int]) -> Iterator[Kept]:
    since = superseded_since(plan.snapshot) if plan.kept_back else {}
    for name, why in plan.kept_back:
        yield Kept(why, sizes.get(name, 0), since.get(name))


def _trash_runs(snapshot: Snapshot) -> tuple[TrashRun, ...]:
    runs: dict[str, None] = {}
    for path, _, _, is_dir in snapshot.listing.by_child.get(TRASH, ()):
        run, _, below = path.partition("/")[2].partition("/")
        if run and (is_dir or below):
            runs[run] = None
    return tuple(TrashRun(snapshot.path, run) for run in runs)


def _waiting(location: ResolvedLocation, snapshot: Snapshot) -> Waiting | None:
    table = location.metastore.table
    if table is None:
        return None
    from acidctl.hive.waiting import Waiting, amount_waiting  # noqa: PLC0415 - with thrift: only for a metastore

    size, replaced = amount_waiting(snapshot)
    partition = "/".join(f"{key}={value}" for key, value in location.location.partition)
    return Waiting(table.database, table.name, partition, None, size, replaced) if size else None
