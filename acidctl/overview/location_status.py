"""The status of one location, from one listing and the rules of compaction, cleaning and publication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import LAST_SECONDS
from acidctl.acid.reasons import Reason
from acidctl.acid.triggers import NO_COST, Advice, advise
from acidctl.base.errors import AcidctlError, BadDataError, RefusedError
from acidctl.cleaning.plan import CleaningPlan, plan_cleaning
from acidctl.cleaning.retention import Policy
from acidctl.cleaning.trash import TRASH, TrashRun
from acidctl.location.change.publication import half_published
from acidctl.location.change.work_log import logged_at
from acidctl.location.find import table_path
from acidctl.location.resolved import ResolvedLocation, resolve
from acidctl.location.snapshot import Child, Snapshot, children_of
from acidctl.location.table_location import TableLocation

if TYPE_CHECKING:  # its dependencies are optional
    from acidctl.hive.ready_entries import Waiting

DAY_SECONDS = 86400
"""Bytes that can be freed within this time count as `soon`."""


class Use(StrEnum):
    """The purposes of bytes on disk."""

    CURRENT = "current"
    OBSOLETE = "obsolete"
    ABORTED = "aborted"
    IGNORED = "ignored"
    TRASH = "trash"


@dataclass(frozen=True, slots=True)
class DueCompaction:
    """A compaction that the thresholds request.

    Attributes:
        gain: bytes that every full read saves for each byte that is rewritten once.
    """

    location: str
    kind: CompactionKind
    gain: float
    reason: Reason


@dataclass(frozen=True, slots=True)
class KeptBack:
    """Entries that readers do not need, but that the rules of cleaning keep for one reason."""

    reason: Reason
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class InTheTrash:
    """The trash of a location, judged by names and sizes alone.

    Attributes:
        oldest: when the first of the runs began, seconds since the epoch; None if no name shows it.
    """

    runs: int = 0
    bytes: int = 0
    oldest: float | None = None


@dataclass(frozen=True, slots=True)
class LocationStatus:
    """The content of a location, its cost for readers, and its pending work.

    Attributes:
        root: the directory of its table, with its store.
        table: the name of its table in the metastore, else its directory.
        uses: bytes by purpose; `bytes` excludes the trash.
        reading: what it costs its readers; zero if it cannot be read.
        deltas: number of current deltas and delete deltas.
        source: the kind of source that decides which write ids count.
        due: None if no compaction is due.
        free: bytes that a cleaning can free now; `soon`: within a day; `later`: after that, or at an unknown time.
        aborted: bytes of aborted directories.
        unfinished: staging directories of interrupted publications.
        refused: why it cannot be compacted, or cleaned, in its present state.
        waiting: what waits for cleaning, if a metastore has its table; else None.
        last_done: when acidctl changed it last, seconds since the epoch; None without a log.
    """

    location: str
    root: tuple[str, str]
    table: str
    hive_name: str
    uses: Counter[Use]
    reading: Advice
    deltas: int
    source: str
    due: DueCompaction | None
    free: int
    soon: int
    later: int
    aborted: int
    kept_back: tuple[KeptBack, ...]
    unfinished: tuple[str, ...]
    trash: InTheTrash
    refused: tuple[AcidctlError, ...]
    waiting: Waiting | None
    last_done: float | None

    @property
    def bytes(self) -> int:
        """Return all bytes except those of the trash."""
        return self.uses.total() - self.uses[Use.TRASH]

    @property
    def helped(self) -> bool:
        """Return whether a compaction would save reads, although no threshold requests it."""
        return bool(self.reading.kind and not self.due and not self.refused)


def shown_table(found: TableLocation) -> str:
    """Return the name of a location's table in the metastore, or the path of the table."""
    return found.hive.full_name if found.hive else found.fs.display(table_path(found))


def status_of(found: TableLocation, policy: Policy, now: float) -> LocationStatus:
    """Return the status of a location, from one listing.

    Args:
        policy: decides what a cleaning may remove.
        now: seconds since the epoch.

    Raises:
        AcidctlError: it cannot be listed, or its snapshot is not known.
    """
    location = resolve(found, reader=True, compactor=True)
    snapshot = location.for_reader()
    state, children = snapshot.state, children_of(snapshot)
    sizes = {child.verdict.name: child.amount.bytes for child in children}
    uses = _uses(children)
    unfinished = tuple(staging for staging, _ in half_published(snapshot))
    refused: dict[str, AcidctlError] = {}
    due = plan = None
    try:
        snapshot.require_history()
        snapshot.require_agreement()
        plan = plan_cleaning(snapshot, policy, now)
    except AcidctlError as error:
        if not unfinished:  # otherwise that is the reason for the refusal
            refused[str(error)] = error
    try:
        due = _due(location)
    except (BadDataError, RefusedError) as error:
        refused[str(error)] = error
    soon, later = _waiting_bytes(plan, sizes, now)
    root = found.fs.url, table_path(found)
    return LocationStatus(
        location=found.shown,
        root=root,
        table=shown_table(found),
        hive_name=found.hive.full_name if found.hive else "",
        uses=uses,
        reading=NO_COST if state.history_problem else advise(snapshot.listing, state),
        deltas=len(state.deltas),
        source=snapshot.source.kind,
        due=due,
        free=plan.bytes if plan else 0,
        soon=soon,
        later=later,
        aborted=uses[Use.ABORTED],
        kept_back=_kept_back(plan, sizes),
        unfinished=unfinished,
        trash=_trash_of(snapshot),
        refused=tuple(refused.values()),
        waiting=_held_up(found, snapshot),
        last_done=logged_at(location.listing.log),
    )


def _due(location: ResolvedLocation) -> DueCompaction | None:
    """Return the compaction that `acidctl compact --auto` would do."""
    from acidctl.compaction.refusals import refuse_layout  # noqa: PLC0415 - with Arrow: --help has none
    from acidctl.compaction.request import (  # noqa: PLC0415 - as above
        CompactionRequest,
        decide_resolved,
        request_for_table,
    )

    try:
        request = request_for_table(location.shown, CompactionRequest(), location.metastore)
    except RefusedError:  # Hive does not compact it, either
        return None
    if location.for_compactor().state.history_problem:
        return None
    decided = decide_resolved(location, request)
    snapshot, kind = decided.snapshot, decided.decision.kind
    refuse_layout(snapshot)
    if kind is None or decided.idle:
        return None
    gain = advise(snapshot.listing, snapshot.state).gain
    return DueCompaction(location.shown, kind, gain, decided.decision.reason)


def _uses(children: Iterable[Child]) -> Counter[Use]:
    uses: Counter[Use] = Counter()
    for child in children:
        verdict = child.verdict
        uses[Use.TRASH if verdict.name == TRASH else Use(verdict.state.value)] += child.amount.bytes
    return uses


def _waiting_bytes(plan: CleaningPlan | None, sizes: dict[str, int], now: float) -> tuple[int, int]:
    """Return the bytes that can be freed within a day, and those after that."""
    soon = later = 0
    for entry in plan.waiting if plan else ():
        size = sizes.get(entry.name, 0)
        if (LAST_SECONDS if entry.until is None else entry.until) <= now + DAY_SECONDS:
            soon += size
        else:
            later += size
    return soon, later


def _kept_back(plan: CleaningPlan | None, sizes: dict[str, int]) -> tuple[KeptBack, ...]:
    by_reason: dict[str, KeptBack] = {}
    for name, why in plan.kept_back if plan else ():
        key = f"{why.code} {why.ids}"
        before = by_reason.get(key, KeptBack(why, 0, 0))
        by_reason[key] = KeptBack(before.reason, before.entries + 1, before.bytes + sizes.get(name, 0))
    return tuple(by_reason.values())


def _trash_of(snapshot: Snapshot) -> InTheTrash:
    runs: dict[str, None] = {}
    size = 0
    for path, length, _, is_dir in snapshot.listing.by_child.get(TRASH, ()):
        _, _, below = path.partition("/")
        if not is_dir:
            size += length
        if below and (is_dir or "/" in below):
            runs[below.partition("/")[0]] = None
    began = [when for run in runs if (when := TrashRun(snapshot.path, run).began) is not None]
    return InTheTrash(len(runs), size, min(began, default=None))


def _held_up(found: TableLocation, snapshot: Snapshot) -> Waiting | None:
    if found.hive is None:
        return None
    from acidctl.hive.ready_entries import Waiting, amount_waiting  # noqa: PLC0415 - with thrift: only for a metastore

    size, replaced = amount_waiting(snapshot)
    partition = "/".join(f"{key}={value}" for key, value in found.location.partition)
    return Waiting(found.hive.database, found.hive.name, partition, None, size, replaced) if size else None
