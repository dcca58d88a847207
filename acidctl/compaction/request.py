"""The safe order of a compaction, from what is asked for to what became of it; nothing here prints or asks.

Of each location: finish what a run that died has half shown, list, decide, refuse what cannot be proven to be safe, and
plan (:func:`plan_location`). Then of all plans together: lock, run the tasks, prove their results, list again, publish
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
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.plan import (
    CompactionPlan,
    below_straddlers,
    nothing_to_do,
    plan_compaction,
    refuse_unsafe,
)
from acidctl.compaction.publish import remove_dead_staging
from acidctl.compaction.rebalance.order import parse_order
from acidctl.compaction.run import Compacted, Engine, compact, failed, refuse_before_work
from acidctl.compaction.spread import Rebalance, refuse_old_ids, refuse_without_lock
from acidctl.compaction.tasks import BucketTask, Task
from acidctl.errors import AcidctlError, RefusedError
from acidctl.location.change.lock import Locking
from acidctl.location.change.publication import (
    finish_half_published,
    half_published,
    refuse_half_published,
    shows_by_copies,
)
from acidctl.location.declared import Wishes
from acidctl.location.find import Found
from acidctl.location.lists import SnapshotLists
from acidctl.location.snapshot import Snapshot
from acidctl.nearest import member
from acidctl.outcome import Outcome, Result

if TYPE_CHECKING:
    from acidctl.metastore.tables import HiveTable

_SINGLE = "acidctl-"
"""With this the pools of single compactions begin."""
_INITIATED = "initiated"
"""The state of an entry of Hive's queue that no worker has."""


class Mode(StrEnum):
    """Which compaction is asked for."""

    MAJOR = "major"
    MINOR = "minor"
    REBALANCE = "rebalance"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """What is asked for, the same for every location.

    Attributes:
        mode: a type of compaction, or the one that the thresholds ask for.
        is_auto_off: the table's properties say that nothing is compacted by thresholds.
        min_deltas: fewer are left alone, whatever else is said.
        visibility_txn: of the compaction's own transaction; 0 without one.
        table_type: what the table is known to be; without it the files decide.
        force: go on although a writer seems to be at work.
        offline: nothing reads the locations meanwhile.
        changes_nothing: planning finishes nothing and clears nothing away.
        in_queue: the location's turn in Hive's queue has come: no worker of Hive's is in the way.
        take_over: an entry of Hive's queue for the location that no worker has taken yet is taken out of it.
        wait: so many seconds another compaction in Hive's queue is waited for.
        writing: how results are written and proven.
        locking: how others are kept away.
        buckets: of a rebalance; 0 for as many as there are.
        order_by: of a rebalance: what its rows are sorted by.
        night: the id of the night that it is a part of; empty without one.
        auto_off_by: whose properties say so, ``table`` or ``database``, where a metastore knows them.
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
        """Names are taken for the values that they are of: ``CompactionRequest("major")``."""
        object.__setattr__(self, "mode", member(Mode, self.mode, "type of compaction"))
        if self.table_type is not None:
            object.__setattr__(self, "table_type", member(TableType, self.table_type, "type of table"))


@dataclass(frozen=True, kw_only=True)
class Answer(Outcome):
    """What planning says of a location: :class:`Planned`, :class:`Nothing` or :class:`Refused`.

    Attributes:
        snapshot: the location as it was seen; None where it could not be.
        figures: that decided; None where they were not looked at.
        finished: directories of an interrupted compaction that were shown to their end first.
    """

    snapshot: Snapshot | None = None
    figures: Figures | None = None
    finished: tuple[str, ...] = ()

    def facts(self) -> Mapping[str, Any]:
        """Who says what counts, and the figures that decided."""
        figures = self.figures
        said = {"snapshotSource": self.snapshot.source.record} if self.snapshot else {}
        if figures is None:
            return said
        ratio = figures.delta_bytes / figures.base_bytes if figures.base_bytes else None
        return {
            **said,
            "figures": {
                "baseBytes": figures.base_bytes,
                "deltaBytes": figures.delta_bytes,
                "deltaRatio": ratio,
                "deltas": figures.deltas,
                "abortedTxns": figures.aborted_txns,
            },
        }


@dataclass(frozen=True, kw_only=True)
class Planned(Answer):
    """A location with work to do; `reason` is what decided where thresholds did."""

    plan: CompactionPlan
    result: Result = Result.PLANNED

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()

    @property
    def is_decided(self) -> bool:
        """Whether thresholds decided, and not the user."""
        return self.figures is not None

    @property
    def gain(self) -> float:
        """Bytes that every full read saves for each byte that is rewritten once."""
        return advise(self.plan.snapshot.listing, self.plan.snapshot.state).gain

    @property
    def buckets(self) -> int:
        """How many the result has at most."""
        return self.plan.buckets

    @property
    def segments(self) -> int:
        """Into how many parts big buckets are cut, at most."""
        tasks = [task for task in self.plan.tasks if isinstance(task, BucketTask)]
        return sum(1 if task.segment is not None else len(task.pieces) for task in tasks)

    def reported(self) -> Mapping[str, Any]:
        """The type of compaction."""
        return {"kind": self.plan.asked}

    def facts(self) -> Mapping[str, Any]:
        """What would be read and written."""
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
class Nothing(Answer):
    """A location that needs no compaction."""

    result: Result = Result.NOTHING_TO_DO


@dataclass(frozen=True, kw_only=True)
class Refused(Answer):
    """A location that cannot be compacted, or cannot be seen."""

    error: AcidctlError
    result: Result = Result.FAILED


def plan_location(
    found: Found, lists: SnapshotLists, request: CompactionRequest, *, is_table_checked: bool = True
) -> Planned | Nothing | Refused:
    """What is to be done in one location, by a snapshot that is taken now.

    Args:
        lists: what was said of the snapshot.
        is_table_checked: ask whether its table is still the one that the lists are of; who does not, asks for many at
            once by :func:`of_changed_tables`, before anything is done.
    """
    snapshot: Snapshot | None = None
    finished: tuple[str, ...] = ()
    beside: RefusedError | None = None
    is_rebalance = request.mode is Mode.REBALANCE
    try:
        if is_rebalance:
            is_given = bool(request.visibility_txn) and not request.in_queue
            refuse_without_lock(found, lists, is_of_user=is_given)
        if found.hive:
            request = _for_its_hive(request, lists)
            request = as_its_owner_wishes(request, found.hive, lists.wishes_of(found.hive))
            beside = _in_hives_queue(found, lists, request)
        snapshot, finished = _finished(found, lists, request) if beside is None else _as_it_is(found, lists)
        snapshot = below_straddlers(snapshot)
        if is_rebalance:
            refuse_old_ids(snapshot, found, lists)
        decision, figures = decision_on(snapshot, request)
        if idle := why_idle(snapshot, decision, rebalanced=is_rebalance):
            return Nothing(location=found.shown, reasons=idle, snapshot=snapshot, figures=figures, finished=finished)
        assert decision.kind is not None  # it would be idle
        if beside is not None:
            raise beside
        if is_table_checked:
            lists.require_same(found.hive)
        refuse_unsafe(snapshot, time.time(), force=request.force)
        plan = plan_compaction(
            snapshot,
            decision.kind,
            f"_tmp_{uuid.uuid4()}",
            request.writing,
            request.visibility_txn,
            table_type=request.table_type,
            rebalance=_rebalance(found, request) if is_rebalance else None,
        )
    except AcidctlError as error:
        return Refused(location=found.shown, error=error, snapshot=snapshot, finished=finished)
    return Planned(
        location=found.shown,
        plan=plan,
        snapshot=plan.snapshot,
        figures=figures,
        finished=finished,
        reasons=(decision.reason,),
    )


def _for_its_hive(request: CompactionRequest, lists: SnapshotLists) -> CompactionRequest:
    """The request with the Hive version of the table's metastore, judged by the methods that it offers."""
    assert lists.warehouse  # which knows the table
    known, said = lists.warehouse.metastore.features.hive, request.writing.reader
    both = said is not known and {said, known} == {Hive.HIVE3, Hive.HIVE4}  # a metastore is often upgraded first
    if said not in (None, known) and not both:
        raise RefusedError(f"{said} does not read the table", f"the metastore is that of {known}", "leave `reader` out")
    return replace(request, writing=replace(request.writing, reader=None if both else known))


def _rebalance(found: Found, request: CompactionRequest) -> Rebalance:
    assert found.hive  # else it is refused
    columns = [column.name for column in found.hive.columns]
    return Rebalance(request.buckets, parse_order(request.order_by, columns) if request.order_by else ())


def of_changed_tables(planned: Sequence[tuple[Found, Planned]], lists: SnapshotLists) -> list[Refused]:
    """Those whose table was dropped and created again, or moved, since the lists were taken."""
    problems = lists.changed([found.hive for found, _ in planned])
    return [
        Refused(location=one.location, error=error, snapshot=one.snapshot, finished=one.finished)
        for (_, one), error in zip(planned, problems, strict=True)
        if error
    ]


def refuse_beside_hive(found: Found, lists: SnapshotLists) -> None:
    """Raises RefusedError while Hive itself compacts a location, or is about to."""
    if error := _beside_hive(found, lists):
        raise error


def _in_hives_queue(found: Found, lists: SnapshotLists, request: CompactionRequest) -> RefusedError | None:
    """What a compaction that does not wait is refused with for what Hive's queue holds, if there is something to do."""
    if request.in_queue or request.wait:
        return None
    may_be_left = lists.asks_metastore and not request.visibility_txn
    return _beside_hive(found, lists, but=_SINGLE if may_be_left else None, take_over=request.take_over)


def _beside_hive(
    found: Found, lists: SnapshotLists, *, but: str | None = None, take_over: bool = False
) -> RefusedError | None:
    """The error for a location that Hive itself compacts, or is about to; None where it does not.

    Args:
        but: entries in pools that begin so are looked at in their turn: whose process was killed is in nobody's way.
        take_over: entries that no worker has are in nobody's way, where the server lets them be taken out.
    """
    entry = lists.compaction_of(found.hive, found.location.partition)
    if entry is None or (but and (entry.pool or "").startswith(but)):
        return None
    can_take_over = lists.warehouse is not None and lists.warehouse.metastore.features.txn_types
    if take_over and can_take_over and entry.state == _INITIATED:
        return None
    return in_the_way(found.shown, entry.id or 0, entry.state, entry.worker or "", can_take_over=can_take_over)


def in_the_way(shown: str, id_: int, state: str, worker: str = "", *, can_take_over: bool = True) -> RefusedError:
    """The error for an entry of Hive's queue that is there before ours.

    Args:
        can_take_over: the server lets an entry be taken out of it, as Hive 4 does.
    """
    by = f", by {worker}" if worker else ""
    hint = (
        "`compact()` with `take_over` takes it out of the queue"
        if state == _INITIATED and can_take_over
        else "`compact()` with `wait` waits until it has ended"
    )
    return RefusedError(
        f"{shown} is not compacted beside Hive", f"the compaction {id_} of Hive's queue is {state}{by}", hint
    )


def as_its_owner_wishes(request: CompactionRequest, table: HiveTable, wishes: Wishes) -> CompactionRequest:
    """The request by what the metastore knows of a table: its type, and its properties where the user says nothing.

    Args:
        wishes: of the owners of the table and of its database.

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
    said = {field.name: getattr(ours, field.name) for field in fields(Thresholds)}
    changed = {name: value for name, value in said.items() if value != getattr(default, name)}
    return replace(
        request,
        thresholds=replace(wishes.thresholds, **changed),
        is_auto_off=request.is_auto_off or bool(wishes.auto_off_by),
        auto_off_by="" if request.is_auto_off else wishes.auto_off_by,
        table_type=request.table_type or table.table_type,
    )


def _as_it_is(found: Found, lists: SnapshotLists) -> tuple[Snapshot, tuple[str, ...]]:
    """The snapshot of a location that Hive may be at work in: only looked at."""
    return found.snapshot(lists, compactor=True), ()


def _finished(found: Found, lists: SnapshotLists, request: CompactionRequest) -> tuple[Snapshot, tuple[str, ...]]:
    """The snapshot, after what was interrupted half-way was shown to its end; and what that was."""
    snapshot = found.snapshot(lists, compactor=True)
    if request.changes_nothing:
        refuse_half_published(snapshot)
        return snapshot, ()
    remove_dead_staging(snapshot)
    if not half_published(snapshot):
        return snapshot, ()
    with request.locking.at(snapshot.fs, snapshot.path, always=shows_by_copies(snapshot.fs)):
        # Looked at again: whoever held the lock until now may have finished it.
        finished = finish_half_published(found.afresh().snapshot(lists, compactor=True))
    return found.afresh().snapshot(lists, compactor=True), finished


def decision_on(snapshot: Snapshot, request: CompactionRequest) -> tuple[Decision, Figures | None]:
    """The type of compaction that a request asks for in a location, and why; with the figures, where they decided.

    Args:
        snapshot: as a compaction sees it.
    """
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
    """Why there is nothing to do; empty when there is something: a rebalance always has, where there is data."""
    idle = decision.reason if decision.kind is None else nothing_to_do(snapshot, decision.kind)
    if rebalanced and idle and idle.code is not Code.NO_DATA:
        idle = None
    if decision.kind is not None and not idle and not _waits(snapshot):
        return ()
    stop = snapshot.assumed.stop if snapshot.assumed else _more_above(snapshot)
    return tuple(filter(None, (idle, stop)))


def _more_above(snapshot: Snapshot) -> Reason | None:
    """What an open write id holds back; None where there is nothing."""
    above = sum(verdict.reason.code is Code.ABOVE_HIGH_WATERMARK for verdict in snapshot.state.verdicts)
    last = snapshot.write_ids.high_watermark
    return reason(Code.MORE_ABOVE, count=above, high_watermark=last) if above else None


def _waits(snapshot: Snapshot) -> bool:
    """Whether original files are so young that they may still be written: their order numbers all of their rows."""
    assumed = snapshot.assumed
    return bool(assumed and snapshot.state.originals and any(u.is_original for u in assumed.undecided))


PORTION = 200
"""The most plans in memory at once, with their listings; further plans are made again in their turn."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A location with work to do, until its turn comes.

    Attributes:
        found: the location; list it again through :meth:`Found.afresh`, or its listing would be kept here.
        input_bytes: of all files that are read.
        tasks, weight: how many tasks there are, and how many bytes they read.
        gain: bytes that every full read saves for each byte that is rewritten once.
        priority: locations with a higher one come first.
        planned: the plan; None where it is made again.
    """

    found: Found
    location: str
    input_bytes: int
    tasks: int
    weight: int
    gain: float
    priority: int = 0
    planned: Planned | None = None

    @classmethod
    def of(cls, found: Found, planned: Planned, *, is_kept: bool, priority: int = 0) -> Waiting:
        """Return a location with its plan, which is kept or not."""
        plan = planned.plan
        tasks, weight = len(plan.tasks), sum(task.weight for task in plan.tasks)
        sizes = plan.input_bytes, tasks, weight, planned.gain, priority
        return cls(found.afresh(), planned.location, *sizes, planned if is_kept else None)

    @property
    def rank(self) -> tuple[int, float, str]:
        """For sorting: the highest priority first, then what readers gain most from."""
        return -self.priority, -self.gain, self.location


def within_budget(waiting: Iterable[Waiting], budget: int) -> tuple[list[Waiting], list[Waiting]]:
    """Split locations into those that fit a budget of input bytes, taken in order, and the rest."""
    chosen: list[Waiting] = []
    left: list[Waiting] = []
    for one in waiting:
        fits = one.input_bytes <= budget
        budget -= one.input_bytes if fits else 0
        (chosen if fits else left).append(one)
    return chosen, left


def refused_before_work(planned: Planned, request: CompactionRequest) -> AcidctlError | None:
    """What running a plan would be refused with before any work, for who only shows it."""
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
    """Lock the locations, run the plans, and publish each result once it is proven.

    Closed early, or interrupted, it removes what was staged and lets the locks go.

    Args:
        engine: where the tasks run; without one in this process.
        on_task: called when a task has ended.
        check: as of :func:`acidctl.compaction.run.compact`.

    Yields:
        One outcome per plan, as soon as it is there; those whose location somebody else holds come first.
    """
    with ExitStack() as held:
        free = []
        for one in planned:
            fs, path = one.plan.snapshot.fs, one.plan.snapshot.path
            try:
                held.enter_context(request.locking.at(fs, path, always=shows_by_copies(fs)))
                free.append(one.plan)
            except AcidctlError as error:
                yield failed(one.plan, error)
        if free:
            running = compact(free, engine, offline=request.offline, on_task=on_task, check=check)
            yield from held.enter_context(closing(running))
