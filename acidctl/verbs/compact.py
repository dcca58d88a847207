"""Merge deltas: a minor or a major compaction, a rebalance, or the one that thresholds ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace

from acidctl.acid.reasons import Code, Reason, reason
from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, BadDataError, RefusedError, unexpected
from acidctl.compaction.request import (
    CompactionRequest,
    Mode,
    Planned,
    PlanRefused,
    PlanResult,
    of_changed_tables,
    plan_location,
)
from acidctl.compaction.run import Compacted, Engine, refuse_before_work
from acidctl.compaction.tasks import BucketTask, JoinTask, Task
from acidctl.hive.compacting import compact_locations, is_under_hive
from acidctl.location.table_location import TableLocation
from acidctl.outcome import TIME_IS_UP, Outcome, Result
from acidctl.verbs.compact_options import CompactOptions
from acidctl.verbs.engine import RunEngine
from acidctl.verbs.events import Events, Progress
from acidctl.verbs.policy import Policies, TablePolicy
from acidctl.verbs.reading.validate import errors_in
from acidctl.verbs.selection import Selection
from acidctl.wording import human_count

PORTION = 200
"""The most plans in memory at the same time, with their listings; other plans are made again when they are due."""

_TASKS_A_CORE, _AT_ONCE = 4, 50
"""In order of gain, enough is compacted together that no core waits, and no more."""


@dataclass(frozen=True, slots=True)
class DueLocation:
    """A location that waits for its compaction.

    Attributes:
        found: the location, without its listing, which would stay in memory.
        weight: how many bytes the tasks read.
        priority: locations with a higher priority come first.
        planned: the plan; None if it will be made again.
    """

    found: TableLocation
    location: str
    input_bytes: int
    tasks: int
    weight: int
    gain: float
    queue: str
    priority: int
    planned: Planned | None

    @classmethod
    def of(cls, found: TableLocation, planned: Planned, priority: int, *, is_kept: bool) -> DueLocation:
        """Return a location with its plan, which is kept or not."""
        plan = planned.plan
        tasks, weight = len(plan.tasks), sum(task.weight for task in plan.tasks)
        figures = plan.input_bytes, tasks, weight, planned.gain, planned.queue, priority
        return cls(found.reload(), planned.location, *figures, planned if is_kept else None)

    @property
    def rank(self) -> tuple[int, float, str]:
        """Return a sort key: the highest priority first, then the highest gain."""
        return -self.priority, -self.gain, self.location


def compact(
    selection: Selection,
    options: CompactOptions,
    events: Events,
    engine: Engine | None = None,
    *,
    policies: Policies | None = None,
    run_id: str = "",
) -> Iterator[Outcome]:
    """Yield the outcome of every location.

    Args:
        engine: runs the tasks, instead of the engine of the options.
        policies: the policies of some tables. The locations are compacted in the order of priority and gain.
        run_id: the id of the nightly run that this is a part of.

    Raises:
        RefusedError: nobody says which write ids are committed, or a place may not be changed.
    """
    request = options.request(events, selection.table_type, selection.resolver.spec.age, run_id)
    options.tasks.check("--jobs", options.tasks.jobs)
    if not selection.resolver.decides:
        raise RefusedError(
            "compact must be told which write ids are committed",
            "no list of Hive's was given",
            "name the metastore, --metastore URI or uris below [metastore] of the configuration; or give "
            "--snapshot, or --assume-committed 1h if all that is older is committed",
        )
    if options.force and (assumption := selection.resolver.spec.assumption):
        selection = replace(selection, resolver=selection.resolver.assuming(replace(assumption, force=True)))
    until = Deadline.after(options.deadline)
    # Only after all locations are found is it known whether one list, or one type, was given for several tables.
    is_held = bool(options.max_bytes or selection.table_type or policies) or selection.resolver.spec.is_of_one_table
    with (
        selection.resolver.limited(until),
        closing(_Compactions(request, options, events, until, engine, policies)) as run,
    ):
        due: list[DueLocation] = []
        for found in selection.changeable(events):
            if until.is_over and not options.dry_run:
                yield postponed(found.shown, TIME_IS_UP)
                continue
            answer = run.plan(found)
            if isinstance(answer, Planned):
                due.append(DueLocation.of(found, answer, run.policy(found).priority or 0, is_kept=len(due) < PORTION))
            else:
                yield answer
            if len(due) == PORTION and not is_held:
                yield from run.carry_out(due, is_last=False)
                due = []
        if policies or options.max_bytes is not None:
            due.sort(key=lambda location: location.rank)
        if options.max_bytes is not None:
            due, beyond = _within_budget(due, options.max_bytes)
            yield from (
                postponed(location.location, reason(Code.BUDGET_IS_USED, bytes=location.input_bytes))
                for location in beyond
            )
        yield from run.carry_out(due, is_last=True)


def postponed(location: str, why: Reason) -> Outcome:
    """Return the outcome of a location that is left for another run."""
    return Outcome(location=location, result=Result.POSTPONED, reasons=(why,))


def _within_budget(due: Iterable[DueLocation], budget: int) -> tuple[list[DueLocation], list[DueLocation]]:
    """Split locations, in order, into those that fit a budget of input bytes and the rest."""
    chosen: list[DueLocation] = []
    beyond: list[DueLocation] = []
    for location in due:
        fits = location.input_bytes <= budget
        budget -= location.input_bytes if fits else 0
        (chosen if fits else beyond).append(location)
    return chosen, beyond


@dataclass(slots=True)
class _Compactions:
    """Plans and carries out, a few hundred locations at a time, so that no more listings are in memory."""

    request: CompactionRequest
    options: CompactOptions
    events: Events
    until: Deadline
    given_engine: Engine | None
    policies: Policies | None
    _screen: ExitStack = field(default_factory=ExitStack)
    _engine: RunEngine = field(init=False)
    _bar: _Bytes | None = None

    def __post_init__(self) -> None:
        self._engine = RunEngine(self.options.tasks, self.until, self.events, self.given_engine)

    def close(self) -> None:
        """End the engine."""
        with self._screen:
            self._engine.close()

    def policy(self, found: TableLocation) -> TablePolicy:
        """Return the policy of a location."""
        return self.policies.of(found.location.table, found.location.partition)[0] if self.policies else TablePolicy()

    def plan(self, found: TableLocation) -> PlanResult:
        """Plan one location by its policy, and report what was seen there."""
        try:
            return self._planned(found)
        except Exception as error:  # noqa: BLE001 - the other locations go on
            return PlanRefused(location=found.shown, error=unexpected(error, "while it was planned"))

    def _planned(self, found: TableLocation) -> PlanResult:
        request, policy = self.request, self.policy(found)
        if policy.max_ratio is not None:
            request = replace(request, thresholds=replace(request.thresholds, delta_ratio=policy.max_ratio))
        if (least := policy.min_deltas) is not None:
            thresholds = replace(request.thresholds, delta_count=least - 1)
            request = replace(request, min_deltas=least, thresholds=thresholds)
        answer: PlanResult = plan_location(found, request)
        if isinstance(answer, Planned) and policy.kind not in (None, answer.plan.kind):
            found = found.reload() if answer.finished else found
            due, answer = answer, plan_location(found, replace(request, mode=Mode(policy.kind)))
            if isinstance(answer, Planned):
                answer = replace(answer, figures=due.figures, reasons=due.reasons)
            answer = replace(answer, finished=(*due.finished, *answer.finished))
        if answer.finished:
            self.events.note(f"{answer.location}: finished an interrupted compaction: {', '.join(answer.finished)}")
        if answer.snapshot:
            self.events.saw(answer.snapshot)
        return answer

    def show(self, due: Sequence[DueLocation]) -> Iterator[Outcome]:
        """Yield all plans of a dry run, made again if they were not kept."""
        for start in range(0, len(due), PORTION):
            ready, others = self._ready(due[start : start + PORTION])
            yield from others
            for location, planned in ready:
                try:
                    if not is_under_hive(location.found, self.request):
                        refuse_before_work(planned.plan, self.request.offline)
                except AcidctlError as error:
                    yield PlanRefused(location=planned.location, error=error)
                else:
                    yield planned

    def carry_out(self, due: Sequence[DueLocation], *, is_last: bool) -> Iterator[Outcome]:
        """Carry out the plans, or only show them in a dry run; an interruption leaves nothing staged."""
        if self.request.changes_nothing:
            yield from self.show(due)
            return
        request = replace(self.request, min_deltas=0) if self.policies else self.request  # it is decided already
        bar = self._begin(due, len(due) if is_last else PORTION) if due else None
        while due and bar:
            if self.until.is_over and self.policies:
                yield from (postponed(location.location, TIME_IS_UP) for location in due)
                return
            batch = self._next(due) if self.policies else due[:PORTION]
            due = due[len(batch) :]
            ready, others = self._ready(batch)
            yield from others
            bar.skip(sum(location.weight for location in batch) - sum(location.weight for location, _ in ready))
            if not ready:
                continue
            names = {planned.location: location.found.hive_name for location, planned in ready}
            plans = [(location.found.reload(), planned) for location, planned in ready]
            with closing(compact_locations(plans, request, self._engine.get(bar.bytes), bar.ended)) as outcomes:
                for outcome in outcomes:
                    if not isinstance(outcome, Compacted):
                        yield outcome
                        continue
                    for task in outcome.plan.tasks if outcome.error else ():
                        bar.ended(task)  # no task of a location that somebody else holds has begun
                    yield replace(outcome, hive_name=names.get(outcome.location, ""))

    def _begin(self, due: Sequence[DueLocation], coming: int) -> _Bytes:
        """Count the bytes of some locations as to be done, and decide which engine they need.

        Args:
            coming: how many outcomes follow at most.
        """
        if self._bar is None:
            doing = f"compacting {human_count(sum(location.tasks for location in due), 'bucket')}"
            progress = self.events.progress(doing, 0, is_bytes=True, coming=coming)
            self._bar = _Bytes(self._screen.enter_context(progress))
        self._bar.begin(sum(location.weight for location in due))
        self._engine.prepare(
            [location.queue for location in due],
            [location.found.fs.spec for location in due],
            [location.found.location.path for location in due],
        )
        return self._bar

    def _next(self, due: Sequence[DueLocation]) -> Sequence[DueLocation]:
        """Return the next locations of a list in order, which are compacted together."""
        cores, tasks = self._engine.get(self._bar.bytes if self._bar else None).cores, 0
        for number, location in enumerate(due[:_AT_ONCE]):
            if tasks >= cores * _TASKS_A_CORE:
                return due[:number]
            tasks += location.tasks
        return due[:_AT_ONCE]

    def _ready(self, due: Sequence[DueLocation]) -> tuple[list[tuple[DueLocation, Planned]], list[Outcome]]:
        """Return the plans, made again if they were not kept; and the outcomes of locations that are not due now."""
        ready: list[tuple[DueLocation, Planned]] = []
        others: list[Outcome] = []
        for location in due:
            answer = location.planned or self.plan(location.found.reload())
            if isinstance(answer, Planned):
                ready.append((location, answer))
            else:
                others.append(answer)
        if ready:
            resolver = ready[0][0].found.resolver
            others += of_changed_tables([(location.found, planned) for location, planned in ready], resolver)
        ready = _without(ready, others)
        if self.options.writing.checks_inputs:  # a compaction would make an error permanent, or could not read the file
            snapshots = [planned.plan.snapshot for _, planned in ready]
            problems = errors_in(snapshots, self.options.tasks.jobs, self.events)
            for (_, answer), why in zip(ready, problems, strict=True):
                if why:
                    hint = f"see `{self.events.line_for(('validate', '--deep'), [answer.location])}`"
                    error = BadDataError(f"will not compact {answer.location}", why, hint)
                    others.append(Outcome(location=answer.location, result=Result.FAILED, error=error))
        return _without(ready, others), others


def _without(
    ready: Sequence[tuple[DueLocation, Planned]], others: Iterable[Outcome]
) -> list[tuple[DueLocation, Planned]]:
    gone = {outcome.location for outcome in others}
    return [(location, planned) for location, planned in ready if planned.location not in gone]


class _Bytes:
    """How far the tasks of compactions are, in bytes of their inputs; on a cluster a task counts at its end."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._done: dict[int, int] = {}

    def begin(self, weight: int) -> None:
        """Start on further locations, after all earlier ones have ended."""
        self._done.clear()
        self._bar.grow(weight)

    def skip(self, weight: int) -> None:
        """Count bytes of locations with nothing left to do as done."""
        self._bar.advance(weight)

    def bytes(self, task: Task, count: int) -> None:
        """Count more bytes of one task as done."""
        is_new = isinstance(task, JoinTask) or (isinstance(task, BucketTask) and task.is_spread)
        if id(task) not in self._done and is_new:  # its weight was not known before
            self._bar.grow(task.weight)
        done = self._done.get(id(task), 0)
        count = min(count, task.weight - done)
        self._done[id(task)] = done + count
        self._bar.advance(count)

    def ended(self, task: Task) -> None:
        """Count all bytes of a task as done."""
        self.bytes(task, task.weight)
