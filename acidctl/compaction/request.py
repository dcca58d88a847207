"""A compaction from request to outcome, in its safe order; nothing here prints or prompts.

For each location: finish an interrupted publication, list, decide, refuse what cannot be proven to be safe, and plan
(:func:`plan_location`). Then for all plans together: lock, run the tasks, prove their results, list again, and publish
(:func:`carry_out`).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.acid.listing import TableType
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.triggers import Decision, Figures, Thresholds, advise, decide, figures_of
from acidctl.base.errors import AcidctlError, RefusedError
from acidctl.base.nearest import member
from acidctl.compaction.metastore_facts import MetastoreFacts, refuse_old_ids
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.plan import (
    CompactionPlan,
    below_straddlers,
    nothing_to_do,
    plan_compaction,
)
from acidctl.compaction.plan_tasks import Rebalance
from acidctl.compaction.rebalance.order import parse_order
from acidctl.compaction.refusals import refuse_unsafe
from acidctl.compaction.run import Compacted, Engine, compact, failed, refuse_before_work
from acidctl.compaction.tasks import BucketTask, Task
from acidctl.location.change.interrupted import finish_interrupted
from acidctl.location.change.lock import Locking
from acidctl.location.change.publication import refuse_half_published, shows_by_copies
from acidctl.location.metastore_schema import TableProperties
from acidctl.location.snapshot import Snapshot
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.outcome import Outcome, Result

if TYPE_CHECKING:
    from acidctl.metastore.tables import HiveTable


class Mode(StrEnum):
    """The requested type of compaction."""

    MAJOR = "major"
    MINOR = "minor"
    REBALANCE = "rebalance"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """The options of a compaction, the same for every location.

    Attributes:
        mode: a type of compaction, or AUTO for the type that the thresholds choose.
        is_auto_off: the table's properties forbid compaction by thresholds.
        min_deltas: locations with fewer deltas are never compacted.
        visibility_txn: id of the compaction's own transaction; 0 without one.
        table_type: the type of the table, if it is known; by default the files show it.
        force: compact although a writer seems to be at work.
        offline: nothing reads the locations meanwhile.
        changes_nothing: planning neither finishes an interrupted publication nor removes stale staging.
        in_queue: the compaction holds the location's entry in Hive's queue.
        take_over: replace an entry of Hive's queue for the location that no worker has taken yet.
        wait: seconds to wait for another compaction in Hive's queue.
        buckets: number of buckets after a rebalance; 0 keeps the present number.
        order_by: the columns by which a rebalance sorts.
        night: the id of the nightly run that it is a part of; empty without one.
        auto_off_by: whose properties forbid it, ``table`` or ``database``, according to the metastore.
    """

    mode: Mode = Mode.AUTO
    thresholds: Thresholds = field(default_factory=Thresholds)
    is_auto_off: bool = False
    min_deltas: int = 0
    visibility_txn: int = 0
    table_type: TableType | None = None
    force: bool = False
    offline: bool = False
    changes_nothing: bool = False
    in_queue: bool = False
    take_over: bool = False
    wait: float = 0.0
    writing: Writing = field(default_factory=Writing)
    locking: Locking = field(default_factory=Locking)
    auto_off_by: str = ""
    buckets: int = 0
    order_by: str = ""
    night: str = ""

    def __post_init__(self) -> None:
        """Accept names in place of enum values: ``CompactionRequest("major")``."""
        object.__setattr__(self, "mode", member(Mode, self.mode, "type of compaction"))
        if self.table_type is not None:
            object.__setattr__(self, "table_type", member(TableType, self.table_type, "type of table"))


@dataclass(frozen=True, kw_only=True)
class PlanResult(Outcome):
    """The result of planning a location: :class:`Planned`, :class:`NoWork` or :class:`PlanRefused`.

    Attributes:
        snapshot: None if the location could not be listed.
        figures: the figures that decided; None if they did not matter.
        finished: directories of an interrupted compaction that were published first.
    """

    snapshot: Snapshot | None = None
    figures: Figures | None = None
    finished: tuple[str, ...] = ()

    def facts(self) -> Mapping[str, Any]:
        """Return the source of the snapshot, and the figures that decided."""
        figures = self.figures
        source = {"snapshotSource": self.snapshot.source.record} if self.snapshot else {}
        if figures is None:
            return source
        ratio = figures.delta_bytes / figures.base_bytes if figures.base_bytes else None
        return {
            **source,
            "figures": {
                "baseBytes": figures.base_bytes,
                "deltaBytes": figures.delta_bytes,
                "deltaRatio": ratio,
                "deltas": figures.deltas,
                "abortedTxns": figures.aborted_txns,
            },
        }


@dataclass(frozen=True, kw_only=True)
class Planned(PlanResult):
    """A location with work to do; its reason says which threshold decided."""

    plan: CompactionPlan
    result: Result = Result.PLANNED

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()

    @property
    def is_decided(self) -> bool:
        """Say if thresholds decided, and not the user."""
        return self.figures is not None

    @property
    def gain(self) -> float:
        """Return how many bytes every full read saves for each byte that is rewritten once."""
        return advise(self.plan.snapshot.listing, self.plan.snapshot.state).gain

    @property
    def buckets(self) -> int:
        """Return the most buckets that the result can have."""
        return self.plan.buckets

    @property
    def segments(self) -> int:
        """Return the most segments into which big buckets are cut."""
        tasks = [task for task in self.plan.tasks if isinstance(task, BucketTask)]
        return sum(1 if task.segment is not None else len(task.pieces) for task in tasks)

    def reported(self) -> Mapping[str, Any]:
        """Return the type of compaction."""
        return {"kind": self.plan.asked}

    def facts(self) -> Mapping[str, Any]:
        """Return what would be read and written."""
        return {
            "kind": self.plan.asked,
            **super().facts(),
            "inputs": list(self.plan.inputs),
            "outputs": list(self.plan.output_names),
            "buckets": self.buckets,
            "segments": self.segments,
            "inputBytes": self.plan.input_bytes,
            "inputRows": self.plan.rows,
            "deleteEvents": self.plan.delete_events,
            "gain": round(self.gain, 4),
        }


@dataclass(frozen=True, kw_only=True)
class NoWork(PlanResult):
    """A location that needs no compaction."""

    result: Result = Result.NOTHING_TO_DO


@dataclass(frozen=True, kw_only=True)
class PlanRefused(PlanResult):
    """A location that cannot be compacted or listed."""

    error: AcidctlError
    result: Result = Result.FAILED


def plan_location(
    found: TableLocation, request: CompactionRequest, *, is_table_checked: bool = True
) -> Planned | NoWork | PlanRefused:
    """Plan the compaction of one location from a new snapshot.

    Args:
        is_table_checked: check that the lists are still those of the table; a caller who passes False checks many
            tables at once by :func:`of_changed_tables`, before anything is done.
    """
    snapshot: Snapshot | None = None
    finished: tuple[str, ...] = ()
    try:
        facts = MetastoreFacts.of(found, with_queue=not (request.in_queue or request.wait))
        request = _for_table(found.shown, request, facts)
        skips_single = facts.decides and not request.visibility_txn
        busy = facts.busy(found.shown, skips_single=skips_single, take_over=request.take_over)
        if busy is None and not request.changes_nothing:  # if it is busy, Hive may be at work in the location
            snapshot, finished = finish_interrupted(found, request.locking)
        else:
            snapshot = found.snapshot(compactor=True)
            if busy is None:
                refuse_half_published(snapshot)
        snapshot = below_straddlers(snapshot)
        is_rebalance = request.mode is Mode.REBALANCE
        if is_rebalance:
            refuse_old_ids(snapshot, found)
        decision, figures = decision_on(snapshot, request)
        if idle := why_idle(snapshot, decision, rebalanced=is_rebalance):
            return NoWork(location=found.shown, reasons=idle, snapshot=snapshot, figures=figures, finished=finished)
        assert decision.kind is not None  # else it is idle
        if busy is not None:
            raise busy
        if is_table_checked:
            found.require_same_table()
        refuse_unsafe(snapshot, time.time(), force=request.force)
        plan = plan_compaction(
            snapshot,
            decision.kind,
            f"_tmp_{uuid.uuid4()}",
            request.writing,
            request.visibility_txn,
            table_type=request.table_type,
            rebalance=_rebalance(request, facts) if is_rebalance else None,
        )
    except AcidctlError as error:
        return PlanRefused(location=found.shown, error=error, snapshot=snapshot, finished=finished)
    return Planned(
        location=found.shown,
        plan=plan,
        snapshot=plan.snapshot,
        figures=figures,
        finished=finished,
        reasons=(decision.reason,),
    )


def _for_table(shown: str, request: CompactionRequest, facts: MetastoreFacts) -> CompactionRequest:
    """Return the request with the type and properties of the table, and with the Hive version of its metastore."""
    if request.mode is Mode.REBALANCE:
        facts.refuse_rebalance(shown, is_of_user=bool(request.visibility_txn) and not request.in_queue)
    if facts.table is None:
        return request
    hive, reader = facts.hive, request.writing.reader
    both = reader is not hive and {reader, hive} == {Hive.HIVE3, Hive.HIVE4}  # a metastore is often upgraded first
    if reader not in (None, hive) and not both:
        why = f"the metastore is that of {hive}"
        raise RefusedError(f"{reader} does not read the table", why, "leave --for out")
    writing = replace(request.writing, reader=None if both else hive)
    return as_its_owner_wishes(replace(request, writing=writing), facts.table, facts.properties)


def _rebalance(request: CompactionRequest, facts: MetastoreFacts) -> Rebalance:
    assert facts.table  # else it is refused
    columns = [column.name for column in facts.table.columns]
    return Rebalance(request.buckets, parse_order(request.order_by, columns) if request.order_by else ())


def of_changed_tables(
    planned: Sequence[tuple[TableLocation, Planned]], resolver: SnapshotResolver
) -> list[PlanRefused]:
    """Return a refusal for each table that was recreated or moved since the lists were taken."""
    problems = resolver.changed([found.hive for found, _ in planned])
    return [
        PlanRefused(location=plan.location, error=error, snapshot=plan.snapshot, finished=plan.finished)
        for (_, plan), error in zip(planned, problems, strict=True)
        if error
    ]


def as_its_owner_wishes(request: CompactionRequest, table: HiveTable, wishes: TableProperties) -> CompactionRequest:
    """Return the request with a table's type, and with its properties for options that the user has not set.

    Args:
        wishes: the properties of the table and of its database.

    Raises:
        RefusedError: Hive itself would not compact it.
    """
    if table.sort_columns:
        raise RefusedError(
            f"{table.full_name} is not compacted",
            f"its rows are sorted by {', '.join(table.sort_columns)}, and would not be any more",
            "Hive refuses it, too",
        )
    ours, default = request.thresholds, Thresholds()
    values = {field.name: getattr(ours, field.name) for field in fields(Thresholds)}
    changed = {name: value for name, value in values.items() if value != getattr(default, name)}
    return replace(
        request,
        thresholds=replace(wishes.thresholds, **changed),
        is_auto_off=request.is_auto_off or bool(wishes.auto_off_by),
        auto_off_by="" if request.is_auto_off else wishes.auto_off_by,
        table_type=request.table_type or table.table_type,
    )


def decision_on(snapshot: Snapshot, request: CompactionRequest) -> tuple[Decision, Figures | None]:
    """Return the type of compaction for a location, with the reason, and with the figures if they decided."""
    figures = figures_of(snapshot.listing, snapshot.state)
    if figures.deltas < request.min_deltas:
        why = reason(Code.FEW_DELTAS, how="min-deltas", deltas=figures.deltas, limit=request.min_deltas)
        return Decision(None, why), figures
    if request.mode is not Mode.AUTO:
        kind = CompactionKind.MAJOR if request.mode is Mode.REBALANCE else CompactionKind(request.mode)
        return Decision(kind, reason(Code.ASKED_FOR)), None
    if request.is_auto_off:
        how = "owner" if request.auto_off_by else "asked"
        return Decision(None, reason(Code.AUTO_IS_OFF, who=request.auto_off_by, how=how)), None
    return decide(figures, request.thresholds), figures


def why_idle(snapshot: Snapshot, decision: Decision, *, rebalanced: bool = False) -> tuple[Reason, ...]:
    """Say why there is nothing to do; empty if there is work: a rebalance always has work if there is data."""
    idle = decision.reason if decision.kind is None else nothing_to_do(snapshot, decision.kind)
    if rebalanced and idle and idle.code is not Code.NO_DATA:
        idle = None
    if decision.kind is not None and not idle and not _may_be_written(snapshot):
        return ()
    stop = snapshot.assumed.stop if snapshot.assumed else _more_above(snapshot)
    return tuple(filter(None, (idle, stop)))


def _more_above(snapshot: Snapshot) -> Reason | None:
    above = sum(verdict.reason.code is Code.ABOVE_HIGH_WATERMARK for verdict in snapshot.state.verdicts)
    last = snapshot.write_ids.high_watermark
    return reason(Code.MORE_ABOVE, count=above, high_watermark=last) if above else None


def _may_be_written(snapshot: Snapshot) -> bool:
    """Say if an original file may still be written: one more file would change the row ids of those after it."""
    assumed = snapshot.assumed
    return bool(assumed and snapshot.state.originals and any(u.is_original for u in assumed.undecided))


PORTION = 200
"""The most plans in memory at the same time, with their listings; other plans are made again when they are due."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A location that waits for its compaction.

    Attributes:
        found: the location; list it through :meth:`TableLocation.reload`, or its listing would stay in memory.
        input_bytes: size of all files that are read.
        tasks, weight: number of tasks, and how many bytes they read.
        gain: bytes that every full read saves for each byte that is rewritten once.
        priority: locations with a higher priority come first.
        planned: the plan; None if it will be made again.
    """

    found: TableLocation
    location: str
    input_bytes: int
    tasks: int
    weight: int
    gain: float
    priority: int = 0
    planned: Planned | None = None

    @classmethod
    def of(cls, found: TableLocation, planned: Planned, *, is_kept: bool, priority: int = 0) -> Waiting:
        """Return a location with its plan, which is kept or not."""
        plan = planned.plan
        tasks, weight = len(plan.tasks), sum(task.weight for task in plan.tasks)
        sizes = plan.input_bytes, tasks, weight, planned.gain, priority
        return cls(found.reload(), planned.location, *sizes, planned if is_kept else None)

    @property
    def rank(self) -> tuple[int, float, str]:
        """Return a sort key: the highest priority first, then the highest gain."""
        return -self.priority, -self.gain, self.location


def within_budget(waiting: Iterable[Waiting], budget: int) -> tuple[list[Waiting], list[Waiting]]:
    """Split locations, in order, into those that fit a budget of input bytes and the rest."""
    chosen: list[Waiting] = []
    postponed: list[Waiting] = []
    for location in waiting:
        fits = location.input_bytes <= budget
        budget -= location.input_bytes if fits else 0
        (chosen if fits else postponed).append(location)
    return chosen, postponed


def refused_before_work(planned: Planned, request: CompactionRequest) -> AcidctlError | None:
    """Return the error with which running a plan would be refused before any work, to show it with the plan."""
    try:
        refuse_before_work(planned.plan, request.offline)
    except AcidctlError as error:
        return error
    return None


def carry_out(
    planned: Sequence[Planned],
    request: CompactionRequest,
    engine: Engine | None = None,
    on_task: Callable[[Task], None] | None = None,
    check: Callable[[CompactionPlan], None] | None = None,
) -> Generator[Compacted, None, None]:
    """Lock the locations, run the plans, and publish each result once it is proven; yield one outcome per plan.

    Outcomes of locations that are locked by others come first. If it is closed early, or interrupted, it removes staged
    files and releases the locks.

    For other arguments see :func:`acidctl.compaction.run.compact`.
    """
    with ExitStack() as stack:
        locked = []
        for plan in (item.plan for item in planned):
            fs, path = plan.snapshot.fs, plan.snapshot.path
            try:
                stack.enter_context(request.locking.at(fs, path, always=shows_by_copies(fs)))
                locked.append(plan)
            except AcidctlError as error:
                yield failed(plan, error)
        if locked:
            running = compact(locked, engine, offline=request.offline, on_task=on_task, check=check)
            yield from stack.enter_context(closing(running))
