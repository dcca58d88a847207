"""One night: what is due is compacted, then what is obsolete cleaned, then what is old in the trash purged.

The verbs themselves decide and do everything (:mod:`acidctl.compaction.request`, :mod:`acidctl.cleaning.request`,
:mod:`acidctl.cleaning.undo`, :mod:`acidctl.hive.compacting`): a night chooses the order, shares out time and bytes, and
goes on where one location fails. Nothing here prints or asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Protocol, TypeVar

from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.triggers import advise
from acidctl.cleaning import request as cleaning
from acidctl.cleaning.outcomes import Cleaned, InTrash, PlannedCleaning, in_trash
from acidctl.cleaning.request import RefusedCleaning
from acidctl.cleaning.retention import DEFAULT_SECONDS, Policy
from acidctl.cleaning.trash import TrashRun, trash_runs
from acidctl.cleaning.undo import delete
from acidctl.compaction.request import (
    PORTION,
    Answer,
    Mode,
    Planned,
    Waiting,
    plan_location,
    refused_before_work,
    within_budget,
)
from acidctl.compaction.run import Engine
from acidctl.compaction.tasks import Task
from acidctl.deadline import Deadline
from acidctl.errors import AcidctlError
from acidctl.hive.compacting import compact_locations
from acidctl.location.change.journal import unusable
from acidctl.location.change.own_files import new_run_id
from acidctl.location.find import Found, with_tables
from acidctl.location.lists import SnapshotLists
from acidctl.night.memory import Memory
from acidctl.night.order import Due, NightPlace, NightRequest, ToClean, ToPurge, next_batch
from acidctl.night.step import NightPart, NightStep
from acidctl.outcome import TIME_IS_UP, Outcome, Result

PURGE_SECONDS = 7 * 86400.0
"""What was cleaned stays so long in the trash, where nothing else is said."""

T = TypeVar("T")
R = TypeVar("R")


class Each(Protocol):
    """How things are worked on: one after the other, or several at once."""

    def __call__(
        self, items: Iterable[T], work: Callable[[T], R], failed: Callable[[T, AcidctlError], None]
    ) -> Iterator[tuple[T, R | None]]:
        """Each item with its result; None where the time was up before. `failed` is told of errors, instead."""


class Night:
    """One night over some places, part by part: :meth:`plan`, then :meth:`compact`, :meth:`clean` and :meth:`purge`.

    Args:
        given: the places as they were typed.
        storage: options of stores.
        memory: what the night before left; None where nothing is kept.
        each: how locations are cleaned and purged; without it one after the other.
        check: returns the plans whose inputs are sound; it reports the others, which are left alone.

    Attributes:
        id: the cleaning runs in all trashes have it, so that one restore undoes all of them; logs have it, too.
        until_cleaning: when compactions end.
    """

    def __init__(
        self,
        request: NightRequest,
        lists: SnapshotLists,
        given: Sequence[str],
        *,
        storage: Mapping[str, str] | None = None,
        memory: Memory | None = None,
        each: Each | None = None,
        check: Callable[[Sequence[Planned]], Iterable[Planned]] | None = None,
    ) -> None:
        self.id = new_run_id()
        self.until_cleaning: Deadline = request.until_cleaning()
        self._request, self._lists = request, lists
        self._given, self._storage = given, storage or {}
        self._memory, self._each = memory, each or self._one_by_one
        self._check, self._is_checked = check, False
        self._began = time.time()
        self._places: list[NightPlace] = []
        self._due: list[Due] = []
        self._left: dict[str, float] = {}
        self._lost: list[NightStep] = []

    # -- what is due ---------------------------------------------------------------------------------------------

    @property
    def due(self) -> Sequence[Due]:
        """The locations that will be compacted, in order."""
        return self._due

    @property
    def queues(self) -> list[str]:
        """Of YARN, that the owners of what is due name for it."""
        return [self._lists.wishes_of(one.place.found.hive).queue for one in self._due]

    def plan(
        self,
        found: Iterable[Found],
        *,
        changes_nothing: bool = False,
        on_planned: Callable[[Planned], None] = lambda _: None,
    ) -> Iterator[NightStep]:
        """Decide what is due, and in which order; what is left alone, and what does not fit, is said.

        Args:
            found: locations that may be changed.
            on_planned: told of each plan.
            changes_nothing: what was interrupted is not finished, and it is no matter what time it is.
        """
        recalled = self._memory.recalled() if self._memory else {}
        for one in found:
            place = self._place(one)
            if place.policy.exclude:
                why = reason(Code.EXCLUDED, pattern=self._request.policies.excluding(one.location.table))
                yield self._step(NightPart.COMPACT, place, _outcome(place, Result.SKIPPED, why))
                continue
            self._places.append(place)
            if self.until_cleaning.is_over and not changes_nothing:
                yield self._step(NightPart.COMPACT, place, _outcome(place, Result.POSTPONED, TIME_IS_UP))
                continue
            answer = self._answer(one, place, changes_nothing=changes_nothing)
            if not isinstance(answer, Planned):
                yield self._step(NightPart.COMPACT, place, answer)
                continue
            on_planned(answer)
            gain = advise(answer.plan.snapshot.listing, answer.plan.snapshot.state).gain
            waited = recalled.get(answer.location)
            waiting = Waiting.of(one, answer, is_kept=len(self._due) < PORTION)
            self._due.append(Due(place, waiting, gain, waited is not None and gain >= waited))
        self._due.sort(key=lambda one: one.rank)
        yield from self._beyond_budget()
        if not changes_nothing:  # killed from here on, what was not done comes first in the next night
            self._remember({one.waiting.location: one.gain for one in self._due})

    def _answer(self, found: Found, place: NightPlace, *, changes_nothing: bool) -> Answer:
        asked, policy = replace(self._request.compaction, changes_nothing=changes_nothing), place.policy
        if policy.max_ratio is not None:
            asked = replace(asked, thresholds=replace(asked.thresholds, delta_ratio=policy.max_ratio))
        if (least := policy.min_deltas) is not None:
            asked = replace(asked, min_deltas=least, thresholds=replace(asked.thresholds, delta_count=least - 1))
        answer = plan_location(found, self._lists, asked)
        if not isinstance(answer, Planned) or policy.kind in (None, answer.plan.kind):
            return answer
        other = plan_location(found, self._lists, replace(asked, mode=Mode(policy.kind)))
        if isinstance(other, Planned):
            return replace(other, figures=answer.figures, reasons=answer.reasons, finished=answer.finished)
        return other

    def _beyond_budget(self) -> Iterator[NightStep]:
        if self._request.max_bytes is None:
            return
        chosen, _ = within_budget((one.waiting for one in self._due), self._request.max_bytes)
        kept = {one.location for one in chosen}
        every, self._due = self._due, [one for one in self._due if one.waiting.location in kept]
        for due in every:
            if due.waiting.location not in kept:
                yield self._left_for_later(due, reason(Code.BUDGET_IS_USED, bytes=due.waiting.input_bytes))

    def planned(self) -> Iterator[NightStep]:
        """What is due, in the order in which it would be carried out, or why it would be refused."""
        every, self._due = self._due, []
        for some in portions(every, PORTION):
            ready, others = self._ready(some, changes_nothing=True)
            yield from others
            self._due += [one for one, _ in ready]
            for one, planned in ready:
                outcome: Outcome = planned
                # With a metastore the result may have the name of a transaction, which lets more appear at once.
                is_alone = not (one.place.found.hive and self._lists.asks_metastore)
                if is_alone and (error := refused_before_work(planned, self._request.compaction)):
                    outcome = _outcome(one.place, Result.FAILED, error=error)
                yield self._step(NightPart.COMPACT, one.place, outcome, one.gain)
        self._is_checked = True

    def _ready(
        self, some: Sequence[Due], *, changes_nothing: bool
    ) -> tuple[list[tuple[Due, Planned]], list[NightStep]]:
        """Plans of some due locations, made again if they were not kept; and steps for those no longer due."""
        ready, others = [], []
        for one in some:
            again = one.place.found.afresh()  # a copy keeps the listing, so that the place does not
            answer = one.waiting.planned or self._answer(again, one.place, changes_nothing=changes_nothing)
            if isinstance(answer, Planned):
                ready.append((one, answer))
            else:
                others.append(self._step(NightPart.COMPACT, one.place, answer))
        if self._check and not self._is_checked:
            sound = {one.location for one in self._check([planned for _, planned in ready])}
            ready = [(one, planned) for one, planned in ready if planned.location in sound]
        return ready, others

    # -- what is done --------------------------------------------------------------------------------------------

    def compact(
        self, engine: Engine, on_task: Callable[[Task], None] | None = None
    ) -> Generator[NightStep, None, None]:
        """Carry out what is due, some at a time. Closed early, or interrupted, nothing that was staged stays.

        Args:
            engine: ends when :attr:`until_cleaning` is over.
            on_task: called when a task has ended.
        """
        while self._due:
            some = next_batch(self._due, engine.cores)
            self._due = self._due[len(some) :]
            if self.until_cleaning.is_over:
                for one in some:
                    yield self._left_for_later(one, TIME_IS_UP)
                continue
            ready, others = self._ready(some, changes_nothing=False)
            yield from others
            by_location = {planned.location: one for one, planned in ready}
            planned = [(one.place.found.afresh(), planned) for one, planned in ready]
            request = replace(self._request.compaction, min_deltas=0, night=self.id)  # it is decided
            with closing(compact_locations(planned, self._lists, request, engine, on_task)) as outcomes:
                for outcome in outcomes:
                    due = by_location[outcome.location]
                    if outcome.result is Result.POSTPONED:
                        self._left[outcome.location] = due.gain
                    yield self._step(NightPart.COMPACT, due.place, outcome, due.gain)
        self._remember({})

    def clean(self, *, changes_nothing: bool = False) -> Iterator[NightStep]:
        """Remove what is obsolete, where most bytes are freed first; by lists and listings that are taken now.

        Args:
            changes_nothing: only say what would be removed.
        """
        lists = self._lists.renewed().begun()
        due: list[ToClean] = []
        every = self._everywhere() if self._request.leftovers else ((place, False) for place in self._places)
        for place, is_table in every:
            if self._is_over() and not changes_nothing:
                yield self._step(NightPart.CLEAN, place, _outcome(place, Result.POSTPONED, TIME_IS_UP))
                continue
            one = self._to_clean(place, lists, is_table=is_table)
            if isinstance(one, ToClean):
                due.append(one if len(due) < PORTION else replace(one, planned=None))
            elif not is_table or isinstance(one, RefusedCleaning):
                yield self._step(NightPart.CLEAN, place, one)
        due.sort(key=lambda one: one.rank)
        for some in portions(due, PORTION):
            yield from self._cleaned(some, lists, changes_nothing=changes_nothing)

    def _to_clean(
        self, place: NightPlace, lists: SnapshotLists, *, is_table: bool
    ) -> ToClean | PlannedCleaning | RefusedCleaning:
        """What to remove from a place; its plan, or a refusal, if there is nothing to remove."""
        older_than = DEFAULT_SECONDS if place.policy.older_than is None else place.policy.older_than
        policy = Policy(older_than, self._request.leftovers)
        again = place.found.afresh()
        answer = cleaning.plan_location(again, lists, policy, is_table=is_table, is_table_checked=False)
        if isinstance(answer, RefusedCleaning) or not answer.plan.removals:
            return answer
        return ToClean(place, is_table, answer, answer.plan.bytes, older_than)

    def _cleaned(self, some: Sequence[ToClean], lists: SnapshotLists, *, changes_nothing: bool) -> Iterator[NightStep]:
        """Clean some places; plans that were not kept are made again."""
        planned: list[tuple[ToClean, PlannedCleaning]] = []
        for one in some:
            is_late = self._is_over() and not changes_nothing
            again = one if one.planned or is_late else self._to_clean(one.place, lists, is_table=one.is_table)
            if not isinstance(again, ToClean):
                yield self._step(NightPart.CLEAN, one.place, again)
            elif again.planned:
                planned.append((again, again.planned))
            else:
                yield self._step(NightPart.CLEAN, one.place, _outcome(one.place, Result.POSTPONED, TIME_IS_UP))
        answers = cleaning.unless_changed([(one.place.found, plan) for one, plan in planned], lists)
        due = []
        for (one, plan), answer in zip(planned, answers, strict=True):
            if isinstance(answer, RefusedCleaning) or changes_nothing:
                yield self._step(NightPart.CLEAN, one.place, answer)
            else:
                due.append((one, plan))
        yield from self._carried_out(due)

    def _carried_out(self, due: Sequence[tuple[ToClean, PlannedCleaning]]) -> Iterator[NightStep]:
        def clean(item: tuple[ToClean, PlannedCleaning]) -> Cleaned:
            locking = replace(self._request.compaction.locking, age=item[0].older_than)
            how, plan = self._request.how, item[1].plan
            return cleaning.carry_out(plan, how, locking, run_id=self.id, night=self.id, should_stop=self._is_over)

        def fails(item: tuple[ToClean, PlannedCleaning], error: AcidctlError) -> None:
            self._fails(NightPart.CLEAN, item[0].place, error)

        for (one, planned), done in self._each(due, clean, fails):
            yield from self._told()
            yield self._step(NightPart.CLEAN, one.place, done or Cleaned.after(planned.plan))
        yield from self._told()

    def purge(self, *, changes_nothing: bool = False) -> Iterator[NightStep]:
        """Delete what has been in the trash for long enough, where most bytes are freed first; of this night nothing.

        Args:
            changes_nothing: only say what would be deleted.
        """
        due: list[ToPurge] = []

        def look(place: NightPlace) -> list[TrashRun]:
            return trash_runs(place.found.fs, place.found.location.path)

        def fails(place: NightPlace, error: AcidctlError) -> None:
            self._fails(NightPart.PURGE, place, error)

        for place, runs in self._each((place for place, _ in self._everywhere()), look, fails):
            if runs is None:
                yield self._step(NightPart.PURGE, place, _outcome(place, Result.POSTPONED, TIME_IS_UP))
            for run in runs or ():
                if run.problem:  # it stays, and the others go
                    fails(place, unusable(place.found.fs, run))
            yield from self._told()
            if old := [run for run in runs or () if self._is_old(run, place)]:
                due.append(ToPurge(place, old))
        yield from self._told()
        due.sort(key=lambda one: one.rank)
        if changes_nothing:
            for one in due:
                for run in one.runs:
                    yield self._step(NightPart.PURGE, one.place, in_trash(one.place.found.fs, run, Result.PLANNED))
            return

        def purge(one: ToPurge) -> list[InTrash]:
            locking = replace(self._request.compaction.locking, age=_kept(one.place))
            return delete(one.place.found.fs, one.runs, locking, self._is_over, night=self.id)

        for one, gone in self._each(due, purge, lambda one, error: fails(one.place, error)):
            yield from self._told()
            for outcome in gone or ():
                yield self._step(NightPart.PURGE, one.place, outcome)
            if len(gone or ()) < len(one.runs):
                yield self._step(NightPart.PURGE, one.place, _outcome(one.place, Result.POSTPONED, TIME_IS_UP))
        yield from self._told()

    # -- what the parts share ------------------------------------------------------------------------------------

    def _place(self, found: Found) -> NightPlace:
        return NightPlace(found.afresh(), *self._request.policies.of(found.location.table))

    def _everywhere(self) -> Iterator[tuple[NightPlace, bool]]:
        """The locations, and the directories of tables with partitions, where staging lies."""
        for found, is_table in with_tables((place.found for place in self._places), self._given, self._storage):
            yield self._place(found), is_table

    def _is_old(self, run: TrashRun, place: NightPlace) -> bool:
        is_ours = run.id == self.id
        return not (run.problem or is_ours) and run.is_before(self._began - _kept(place))

    def _is_over(self) -> bool:
        return self._request.until.is_over

    def _step(self, part: NightPart, place: NightPlace, outcome: Outcome, gain: float | None = None) -> NightStep:
        return NightStep.made(part, outcome, self.id, place.patterns, gain)

    def _left_for_later(self, one: Due, why: Reason) -> NightStep:
        self._left[one.waiting.location] = one.gain
        return self._step(NightPart.COMPACT, one.place, _outcome(one.place, Result.POSTPONED, why), one.gain)

    def _fails(self, part: NightPart, place: NightPlace, error: AcidctlError) -> None:
        self._lost.append(self._step(part, place, _outcome(place, Result.FAILED, error=error)))

    def _told(self) -> Iterator[NightStep]:
        """What failed since this was asked last."""
        lost, self._lost = self._lost, []
        yield from lost

    def _remember(self, due: Mapping[str, float]) -> None:
        if self._memory:
            waiting = {**self._left, **due}
            self._memory.keep(waiting, {place.found.shown for place in self._places} - waiting.keys())

    def _one_by_one(
        self, items: Iterable[T], work: Callable[[T], R], failed: Callable[[T, AcidctlError], None]
    ) -> Iterator[tuple[T, R | None]]:
        for item in items:
            try:
                done = None if self._is_over() else work(item)
            except AcidctlError as error:
                failed(item, error)
            else:
                yield item, done


def portions(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in portions of `size`."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _kept(place: NightPlace) -> float:
    """Seconds that what was cleaned there stays in the trash."""
    return PURGE_SECONDS if place.policy.purge_older_than is None else place.policy.purge_older_than


def _outcome(place: NightPlace, result: Result, *reasons: Reason, error: AcidctlError | None = None) -> Outcome:
    return Outcome(location=place.found.shown, result=result, reasons=reasons, error=error)
