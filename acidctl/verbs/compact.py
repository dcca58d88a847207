"""Merge deltas: a minor or a major compaction, a rebalance, or the one that thresholds ask for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import Any

from acidctl.acid.assumed_commits import Assumption
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.base.deadline import Deadline
from acidctl.base.errors import BadDataError, RefusedError
from acidctl.compaction.request import (
    PORTION,
    CompactionRequest,
    Mode,
    Planned,
    PlanRefused,
    PlanResult,
    Waiting,
    of_changed_tables,
    plan_location,
    refused_before_work,
    within_budget,
)
from acidctl.compaction.run import Compacted, Engine
from acidctl.compaction.tasks import BucketTask, JoinTask, Task
from acidctl.hive.compacting import compact_locations, is_under_hive
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.outcome import TIME_IS_UP, Outcome, Result
from acidctl.storage.port import FileSystemSpec
from acidctl.validation.findings import Depth, Severity
from acidctl.validation.model import Options as ValidateOptions
from acidctl.validation.model import Place, Report
from acidctl.validation.run import validate
from acidctl.verbs.compact_options import CompactOptions
from acidctl.verbs.engine import TaskOptions, open_engine
from acidctl.verbs.events import Events, Progress, Question
from acidctl.verbs.policy import Policies, TablePolicy
from acidctl.verbs.selection import Selection
from acidctl.wording import duration, human_count

_SHOWN = 3

_TASKS_A_CORE, _AT_ONCE = 4, 50
"""In order of gain, enough is compacted together that no core waits, and no more."""


def compact(
    selection: Selection,
    options: CompactOptions,
    events: Events,
    engine: Engine | None = None,
    *,
    policies: Policies | None = None,
    run_id: str = "",
) -> Iterator[Outcome]:
    """Yield what becomes of every location; if nothing else is known, a yes says that everything is committed.

    Args:
        engine: where the tasks run, instead of the engine of the options.
        policies: what is wanted of some tables. The locations are compacted in the order of priority and gain.
        run_id: of the nightly run that this is a part of.

    Raises:
        RefusedError: nobody says which write ids are committed, a place may not be changed, or the answer was no.
    """
    request = options.request(selection, events, run_id)
    options.tasks.check("--jobs", options.tasks.jobs)
    asks = not selection.resolver.decides
    if asks:
        selection = replace(selection, resolver=_assuming(selection.resolver, events))
    if options.force and (assumption := selection.resolver.spec.assumption):
        selection = replace(selection, resolver=selection.resolver.assuming(replace(assumption, force=True)))
    until = Deadline() if options.deadline is None else Deadline(time.monotonic() + options.deadline)
    selection.resolver.end_by(until)
    # Whether something that is good for one table only was said of several is known when all locations were met.
    is_held = (
        asks or bool(options.max_bytes or selection.table_type or policies) or selection.resolver.spec.is_of_one_table
    )
    with closing(_Run(selection.resolver, request, options, events, until, engine, policies)) as run:
        waiting: list[Waiting] = []
        for found in selection.changeable(events):
            if until.is_over and not options.dry_run:
                yield postponed(found.shown, TIME_IS_UP)
                continue
            answer = run.plan(found)
            if isinstance(answer, Planned):
                priority = run.policy(found).priority or 0
                waiting.append(Waiting.of(found, answer, is_kept=len(waiting) < PORTION, priority=priority))
            else:
                yield answer
            if len(waiting) == PORTION and not is_held:
                yield from run.carry_out(waiting, is_last=False)
                waiting = []
        if policies or options.max_bytes is not None:
            waiting.sort(key=lambda one: one.rank)
        if options.max_bytes is not None:
            waiting, left = within_budget(waiting, options.max_bytes)
            for one in left:
                yield postponed(one.location, reason(Code.BUDGET_IS_USED, bytes=one.input_bytes))
        if asks and not options.dry_run:
            yield from run.shown(waiting)
            waiting = run.left
            if waiting:
                events.confirm(_everything_is_committed(waiting))
        yield from run.carry_out(waiting, is_last=True)


def _assuming(resolver: SnapshotResolver, events: Events) -> SnapshotResolver:
    if not events.can_ask:
        raise RefusedError(
            "compact must be told which write ids are committed",
            "no list of Hive's was given, and nobody can be asked",
            "name the metastore, --metastore URI or uris below [metastore] of the configuration; or give "
            "--snapshot, or --assume-committed 1h if all that is older is committed",
        )
    return resolver.assuming(Assumption(0))


def _everything_is_committed(waiting: Sequence[Waiting]) -> Any:
    """Return the question whether everything on disk is committed."""
    lines = ["No list of Hive's write ids was given, so everything on disk would count as committed:"]
    for plan in [one.planned.plan for one in waiting if one.planned][:_SHOWN]:
        newest = plan.snapshot.assumed and plan.snapshot.assumed.newest
        ago = duration(max(0.0, time.time() - newest[1])) if newest else ""
        when = f", the last of it written {ago} ago: {newest[0]}" if newest else ""
        lines.append(f"  {plan.shown}: up to write id {max(0, plan.max_write_id)}{when}")
    if len(waiting) > _SHOWN:
        lines.append(f"  and {human_count(len(waiting) - _SHOWN, 'more location')}")
    lines.append(
        "Rows of an aborted transaction would become visible for ever, and those of an open one would be lost."
    )
    count = human_count(len(waiting), "location")
    return Question(
        f"{count} would be compacted",
        f"Compact {count}?",
        "nothing was compacted",
        tuple(one.location for one in waiting),
        before=tuple(lines),
        instead="give --snapshot, or --assume-committed=AGE",
    )


def postponed(location: str, why: Reason) -> Outcome:
    """Return the outcome of a location that is left for another run."""
    return Outcome(location=location, result=Result.POSTPONED, reasons=(why,))


@dataclass(slots=True)
class _Run:
    """Plans and carries out, a few hundred locations at a time, so that no more listings are in memory.

    Attributes:
        left: the locations that :meth:`shown` found to be still due.
    """

    resolver: SnapshotResolver
    request: CompactionRequest
    options: CompactOptions
    events: Events
    until: Deadline
    engine: Engine | None
    policies: Policies | None
    left: list[Waiting] = field(default_factory=list)
    _is_checked: bool = False
    _shown: ExitStack = field(default_factory=ExitStack)
    _open: ExitStack = field(default_factory=ExitStack)
    _running: Engine | None = None
    _wanted: TaskOptions | None = None
    _stores: frozenset[FileSystemSpec] = frozenset()
    _paths: Sequence[str] = ()
    _bar: _Bytes | None = None

    def policy(self, found: TableLocation) -> TablePolicy:
        """Return what is wanted of the table of a location."""
        return self.policies.of(found.location.table)[0] if self.policies else TablePolicy()

    def plan(self, found: TableLocation) -> PlanResult:
        """Plan one location, and report what was seen there."""
        answer = self._answer(found)
        if answer.finished:
            names = ", ".join(answer.finished)
            self.events.note(f"{answer.location}: finished an interrupted compaction: {names}")
        if answer.snapshot:
            self.events.saw(answer.snapshot)
        return answer

    def _answer(self, found: TableLocation) -> PlanResult:
        asked, policy = self.request, self.policy(found)
        if policy.max_ratio is not None:
            asked = replace(asked, thresholds=replace(asked.thresholds, delta_ratio=policy.max_ratio))
        if (least := policy.min_deltas) is not None:
            asked = replace(asked, min_deltas=least, thresholds=replace(asked.thresholds, delta_count=least - 1))
        answer = plan_location(found, asked, is_table_checked=False)
        if not isinstance(answer, Planned) or policy.kind in (None, answer.plan.kind):
            return answer
        other = plan_location(found, replace(asked, mode=Mode(policy.kind)), is_table_checked=False)
        if isinstance(other, Planned):
            return replace(other, figures=answer.figures, reasons=answer.reasons, finished=answer.finished)
        return other

    def shown(self, waiting: Sequence[Waiting]) -> Iterator[Outcome]:
        """Yield all plans before any is carried out; :attr:`left` has the locations that still have one."""
        self.left = []
        for start in range(0, len(waiting), PORTION):
            ready, others = self._ready(waiting[start : start + PORTION])
            yield from others
            for one, planned in ready:
                error = None
                if self.request.changes_nothing and not is_under_hive(one.found, self.request):
                    error = refused_before_work(planned, self.request)
                if error:
                    yield PlanRefused(location=planned.location, error=error)
                else:
                    self.left.append(one)
                    yield planned
        self._is_checked = True

    def carry_out(self, waiting: Sequence[Waiting], *, is_last: bool) -> Iterator[Outcome]:
        """Carry out the plans, or only show them in a dry run; nothing that was staged stays of what is interrupted."""
        if self.request.changes_nothing:
            yield from self.shown(waiting)
            return
        request = replace(self.request, min_deltas=0) if self.policies else self.request  # it is decided already
        bar = self._begin(waiting, len(waiting) if is_last else PORTION) if waiting else None
        while waiting and bar:
            if self.until.is_over and self.policies:
                yield from (postponed(one.location, TIME_IS_UP) for one in waiting)
                return
            some = self._next(waiting) if self.policies else waiting[:PORTION]
            waiting = waiting[len(some) :]
            ready, others = self._ready(some)
            yield from others
            bar.skip(sum(one.weight for one in some) - sum(one.weight for one, _ in ready))
            if not ready:
                continue
            names = {planned.location: one.found.hive_name for one, planned in ready}
            pairs = [(one.found.reload(), planned) for one, planned in ready]
            with closing(compact_locations(pairs, request, self._engine(), bar.ended)) as outcomes:
                for outcome in outcomes:
                    yield self._named(outcome, names)

    def _named(self, outcome: Outcome, names: dict[str, str]) -> Outcome:
        if not isinstance(outcome, Compacted):
            return outcome
        if outcome.error and self._bar:
            for task in outcome.plan.tasks:  # no task of a location that somebody else holds has begun
                self._bar.ended(task)
        return replace(outcome, hive_name=names.get(outcome.location, ""))

    def _next(self, waiting: Sequence[Waiting]) -> Sequence[Waiting]:
        """Return the next locations of a list in order, which are compacted together."""
        cores, tasks = self._engine().cores, 0
        for number, one in enumerate(waiting[:_AT_ONCE]):
            if tasks >= cores * _TASKS_A_CORE:
                return waiting[:number]
            tasks += one.tasks
        return waiting[:_AT_ONCE]

    def _ready(self, some: Sequence[Waiting]) -> tuple[list[tuple[Waiting, Planned]], list[Outcome]]:
        """Return the plans, made again if they were not kept; and the outcomes of locations that are not due now."""
        ready: list[tuple[Waiting, Planned]] = []
        others: list[Outcome] = []
        for one in some:
            answer = one.planned or self.plan(one.found.reload())
            if isinstance(answer, Planned):
                ready.append((one, answer))
            else:
                others.append(answer)
        others += of_changed_tables([(one.found, planned) for one, planned in ready], self.resolver)
        gone = {one.location for one in others}
        ready = [(one, planned) for one, planned in ready if planned.location not in gone]
        if self.options.writing.checks_inputs and not self._is_checked:
            failed = list(_unsound([planned for _, planned in ready], self.options.tasks.jobs, self.events))
            others += failed
            gone = {one.location for one in failed}
            ready = [(one, planned) for one, planned in ready if planned.location not in gone]
        return ready, others

    def _begin(self, waiting: Sequence[Waiting], coming: int) -> _Bytes:
        """Count the bytes of some locations as to be done, and decide which engine they need.

        Args:
            coming: how many outcomes follow at most.
        """
        if self._bar is None:
            doing = f"compacting {human_count(sum(one.tasks for one in waiting), 'bucket')}"
            shown = self.events.progress(doing, 0, is_bytes=True, coming=coming)
            self._bar = _Bytes(self._shown.enter_context(shown))
        self._bar.begin(sum(one.weight for one in waiting))
        queues = [one.found.table_properties.queue for one in waiting]
        stores = frozenset(one.found.fs.spec for one in waiting)
        wanted = self.options.tasks.in_queue_of(queues)
        if self._wanted != wanted or not stores <= self._stores:  # it needs a session of its own
            self._running = None
            self._open.close()
            self._wanted, self._stores = wanted, stores
            self._paths = [one.found.location.path for one in waiting]
        return self._bar

    def _engine(self) -> Engine:
        """Return the engine, which is opened when it is needed first."""
        if self.engine is not None:
            return self.engine
        if self._running is None:
            assert self._wanted
            on_bytes = self._bar.bytes if self._bar else None
            opened = open_engine(
                self._wanted, self.until, self.events, paths=self._paths, stores=self._stores, on_bytes=on_bytes
            )
            self._running = self._open.enter_context(opened)
        return self._running

    def close(self) -> None:
        """End the engine."""
        with self._shown:
            self._open.close()


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


def _unsound(planned: Sequence[Planned], jobs: int | None, events: Events) -> Iterator[Outcome]:
    """Yield the failure of each location in which `acidctl validate --deep` finds an error.

    Args:
        jobs: processes that read; None for one per core.
    """
    options = ValidateOptions(Depth.DEEP, processes=jobs or len(os.sched_getaffinity(0)), now=time.time())
    snapshots = [one.plan.snapshot for one in planned]
    places = [Place(seen.fs, seen.path, seen.write_ids, seen.txns) for seen in snapshots]
    with events.progress("checking parts", 0, coming=len(planned)) as bar:
        for one, report in zip(planned, validate(places, options, bar.reach), strict=True):
            if why := _against(report):
                hint = f"see `acidctl validate --deep {one.location}`"
                error = BadDataError(f"will not compact {one.location}", why, hint)
                yield Outcome(location=one.location, result=Result.FAILED, error=error)


def _against(report: Report) -> str:
    """Return what a compaction would make permanent, or could not read; empty if there is nothing."""
    found = [f"{one.rule} {one.path}: {one.message}" for one in report.findings if one.severity is Severity.ERROR]
    found += [f"{one.path} could not be checked: {one.error.what}" for one in report.unchecked]
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more
