"""A compaction from request to outcome, in its safe order; nothing here prints or prompts.

For each location: finish an interrupted publication, list, decide, refuse what cannot be proven to be safe, and plan
(:func:`plan_location`). Then for all plans together: lock, run the tasks, prove their results, list again, and publish
(:func:`carry_out`).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.acid.listing import TableType
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.triggers import Decision, Figures, Thresholds, advise, decide, figures_of
from acidctl.base.errors import AcidctlError, RefusedError
from acidctl.base.nearest import member
from acidctl.compaction.beside_hive import busy, refuse_old_ids, refuse_rebalance
from acidctl.compaction.due import below_straddlers, refuse_sorted, why_idle
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.plan import CompactionPlan, open_inputs, plan_compaction
from acidctl.compaction.refusals import refuse_lost_rows, refuse_unsafe
from acidctl.compaction.run import Compacted, Engine, compact, failed
from acidctl.compaction.tasks import BucketTask, Task
from acidctl.location.change.lock import Locking
from acidctl.location.change.publication import (
    finish_interrupted,
    refuse_half_published,
    shows_by_copies,
)
from acidctl.location.resolved import MetastoreFacts, ResolvedLocation, metastore_facts, resolve
from acidctl.location.snapshot import Snapshot
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.outcome import Outcome, Remark, Result
from acidctl.wording import human_bytes, human_count


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
        night: the id of the nightly run that it is a part of; empty without one.
        auto_off_by: whose property forbids compaction by thresholds: ``user``, ``table`` or ``database``; else empty.
    """

    mode: Mode = Mode.AUTO
    thresholds: Thresholds = field(default_factory=Thresholds)
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
            },
        }


@dataclass(frozen=True, kw_only=True)
class Planned(PlanResult):
    """A location with work to do; its reason says which threshold decided.

    Attributes:
        queue: the YARN queue that the table's properties name for the job; empty if they name none.
    """

    plan: CompactionPlan
    queue: str = ""
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
    def segments(self) -> int:
        """Return the most segments into which big buckets are cut."""
        tasks = [task for task in self.plan.tasks if isinstance(task, BucketTask)]
        return sum(1 if task.segment is not None else len(task.pieces) for task in tasks)

    @property
    def heading(self) -> str:
        return f"to compact, {self.plan.asked}"

    def line(self) -> str:
        plan = self.plan
        because = f" ({self.reason})" if self.is_decided else ""
        most = "" if plan.cut_buckets else "at most "
        cut = f" in {most}{human_count(self.segments, 'segment')}" if self.segments else ""
        return (
            f"{self.location}: {plan.asked}{because}: {human_count(len(plan.inputs), 'input')}, "
            f"{human_count(plan.buckets, 'bucket')}{cut}, "
            f"{human_count(plan.rows, 'row')} and {human_count(plan.delete_events, 'delete event')}, "
            f"{human_bytes(plan.input_bytes)} -> {' + '.join(plan.output_names)}"
        )

    def remarks(self) -> Iterator[Remark]:
        """Yield what is known only when rows are read."""
        for question in self.plan.questions:
            yield Remark(f"known only when rows are read: {question}", is_warning=True)

    def amounts(self) -> Mapping[str, int]:
        return {"inputs": len(self.plan.inputs), "read": self.plan.input_bytes}

    def facts(self) -> Mapping[str, Any]:
        """Return what would be read and written."""
        return {
            "kind": self.plan.asked,
            **super().facts(),
            "inputs": list(self.plan.inputs),
            "outputs": list(self.plan.output_names),
            "buckets": self.plan.buckets,
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


def plan_location(found: TableLocation, request: CompactionRequest) -> Planned | NoWork | PlanRefused:
    """Resolve one location, finish a publication that was interrupted there, and plan its compaction.

    Whoever carries the plan out checks first that the lists are those of the table: :func:`of_changed_tables`.
    """
    snapshot: Snapshot | None = None
    finished: tuple[str, ...] = ()
    with_queue = not (request.in_queue or request.wait)
    try:
        request = request_for_table(found.shown, request, metastore_facts(found))
        location = resolve(found, compactor=True, queue=with_queue)
        # If Hive is at work in the location, or nothing may be changed, an interrupted publication waits.
        if not request.changes_nothing and _busy(location, request) is None:
            snapshot = location.for_compactor()
            names = finish_interrupted(snapshot, request.locking)
            if names is not None:
                finished = names
                location = resolve(found.reload(), compactor=True, queue=with_queue)
    except AcidctlError as error:
        return PlanRefused(location=found.shown, error=error, snapshot=snapshot, finished=finished)
    return replace(plan_resolved(location, request), finished=finished)


def plan_resolved(location: ResolvedLocation, request: CompactionRequest) -> Planned | NoWork | PlanRefused:
    """Plan the compaction of one location from its resolved state; only footers are read besides.

    Args:
        request: with the properties of the table, see :func:`request_for_table`.
    """
    snapshot: Snapshot | None = None
    try:
        busy_error, snapshot = _busy(location, request), location.for_compactor()
        if busy_error is None:
            refuse_half_published(snapshot)
        decided = decide_resolved(location, request)
        snapshot, decision, figures = decided.snapshot, decided.decision, decided.figures
        if decided.idle:
            return NoWork(location=location.shown, reasons=decided.idle, snapshot=snapshot, figures=figures)
        assert decision.kind is not None  # else it is idle
        if busy_error is not None:
            raise busy_error
        refuse_unsafe(snapshot, time.time(), force=request.force)
        refuse_lost_rows(snapshot)
        sources, table_type = open_inputs(snapshot, decision.kind, request.table_type)
        plan = plan_compaction(
            snapshot,
            sources,
            table_type,
            decision.kind,
            staging_name=f"_tmp_{uuid.uuid4()}",
            writing=request.writing,
            visibility_txn=request.visibility_txn,
            rebalance=request.buckets if request.mode is Mode.REBALANCE else None,
        )
    except AcidctlError as error:
        return PlanRefused(location=location.shown, error=error, snapshot=snapshot)
    return Planned(
        location=location.shown,
        plan=plan,
        queue=location.metastore.properties.queue,
        snapshot=plan.snapshot,
        figures=figures,
        reasons=(decision.reason,),
    )


@dataclass(frozen=True, slots=True)
class Decided:
    """The compaction that is due in a location.

    Attributes:
        snapshot: what is compacted.
        figures: the figures that decided; None if they did not matter.
        idle: why there is nothing to do; empty if there is work.
    """

    snapshot: Snapshot
    decision: Decision
    figures: Figures | None
    idle: tuple[Reason, ...]


def decide_resolved(location: ResolvedLocation, request: CompactionRequest) -> Decided:
    """Decide which compaction is due in a location; the request has the properties of the table.

    Raises:
        RefusedError, BadDataError: it has no snapshot for a compaction, or nothing can be compacted below a directory
            that lies across the last write id.
    """
    snapshot = below_straddlers(location.for_compactor())
    if request.mode is Mode.REBALANCE:
        refuse_old_ids(snapshot, location.metastore.open_write_ids)
    decision, figures = _decision(snapshot, request)
    idle = why_idle(snapshot, decision, rebalanced=request.mode is Mode.REBALANCE)
    return Decided(snapshot, decision, figures, idle)


def _busy(location: ResolvedLocation, request: CompactionRequest) -> RefusedError | None:
    skips_single = location.metastore.decides and not request.visibility_txn
    return busy(location.shown, location.metastore, skips_single=skips_single, take_over=request.take_over)


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


def request_for_table(shown: str, request: CompactionRequest, facts: MetastoreFacts) -> CompactionRequest:
    """Return the request with the type, the Hive version and, for options that the user has not set, the properties
    that a metastore has for the table.

    Raises:
        RefusedError: Hive itself would not compact it, or the user names another version of Hive.
    """
    if request.mode is Mode.REBALANCE:
        refuse_rebalance(shown, facts, is_of_user=bool(request.visibility_txn) and not request.in_queue)
    table, properties, hive, reader = facts.table, facts.properties, facts.hive, request.writing.reader
    if table is None:
        return request
    both = reader is not hive and {reader, hive} == {Hive.HIVE3, Hive.HIVE4}  # a metastore is often upgraded first
    if reader not in (None, hive) and not both:
        why = f"the metastore is that of {hive}"
        raise RefusedError(f"{reader} does not read the table", why, "leave --for out")
    refuse_sorted(table)
    ours, default = request.thresholds, Thresholds()
    values = {field.name: getattr(ours, field.name) for field in fields(Thresholds)}
    changed = {name: value for name, value in values.items() if value != getattr(default, name)}
    return replace(
        request,
        writing=replace(request.writing, reader=None if both else hive),
        thresholds=replace(properties.thresholds, **changed),
        auto_off_by=request.auto_off_by or properties.auto_off_by,
        table_type=request.table_type or table.table_type,
    )


def _decision(snapshot: Snapshot, request: CompactionRequest) -> tuple[Decision, Figures | None]:
    """Return the type of compaction for a location, with the reason, and with the figures if they decided."""
    figures = figures_of(snapshot.listing, snapshot.state)
    if figures.deltas < request.min_deltas:
        why = reason(Code.FEW_DELTAS, how="min-deltas", deltas=figures.deltas, limit=request.min_deltas)
        return Decision(None, why), figures
    if request.mode is not Mode.AUTO:
        kind = CompactionKind.MAJOR if request.mode is Mode.REBALANCE else CompactionKind(request.mode)
        return Decision(kind, reason(Code.ASKED_FOR)), None
    if by := request.auto_off_by:
        return Decision(None, reason(Code.AUTO_IS_OFF, who=by, how="asked" if by == "user" else "owner")), None
    return decide(figures, request.thresholds), figures


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
