"""Compact what is due, clean what is obsolete and purge what is old: three verbs under one deadline and one id."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from acidctl.acid.reasons import Code, reason
from acidctl.base.deadline import Deadline
from acidctl.base.errors import RefusedError, unexpected
from acidctl.compaction.run import Engine
from acidctl.location.change.own_files import new_run_id
from acidctl.location.table_location import TableLocation
from acidctl.outcome import TIME_IS_UP, NextCommand, Outcome, Remark, Result
from acidctl.verbs.clean import clean
from acidctl.verbs.compact import compact, postponed
from acidctl.verbs.compact_options import CompactOptions, RunOptions
from acidctl.verbs.events import Events, Question
from acidctl.verbs.maintain_options import CleanOptions, NightlyOptions, PurgeOptions
from acidctl.verbs.nightly_state import NightlyState
from acidctl.verbs.options import WorkOptions
from acidctl.verbs.policy import Policies
from acidctl.verbs.purge import purge
from acidctl.verbs.selection import Selection

_SHARE, _MOST_SECONDS = 0.1, 1800.0
"""This share of the time is kept for cleaning and purging, and no more than this."""

_PORTION = 200
"""Locations that are cleaned together: their listings are in memory."""


def time_to_compact(left: float) -> float:
    """Return the seconds that compactions may take; the rest is kept for cleaning, which gives back space."""
    return left - min(left * _SHARE, _MOST_SECONDS)


class Part(StrEnum):
    """The parts of a run, in their order."""

    COMPACT = "compact"
    CLEAN = "clean"
    PURGE = "purge"


@dataclass(frozen=True, kw_only=True)
class Step(Outcome):
    """The outcome of a compaction, a cleaning or a purge, as a part of a nightly run.

    Attributes:
        part: the verb.
        of: the outcome itself.
        run: the id of the run; the cleaning runs in the trash have it.
        policy: the patterns of policies that match the table, the most specific first.
    """

    part: Part = field()
    of: Outcome
    run: str
    policy: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Return whether the location was changed."""
        return self.of.is_changed

    @property
    def is_unfinished(self) -> bool:
        """Return whether work is left for a later run."""
        return self.of.is_unfinished

    @property
    def seconds(self) -> float | None:
        """Return the seconds of work; None if they are not measured."""
        return self.of.seconds

    @property
    def heading(self) -> str:
        return f"{self.part}: {self.of.heading}"

    def line(self) -> str:
        """Return the line of the outcome itself; empty if there was nothing to do."""
        is_idle = self.result in (Result.NOTHING_TO_DO, Result.SKIPPED)
        line = "" if is_idle else self.of.line()
        return f"{self.part}: {line}" if line else ""

    def remarks(self) -> Iterable[Remark]:
        is_shown = self.is_changed or self.error or self.result is Result.PLANNED
        return self.of.remarks() if is_shown else ()

    def next_command(self) -> NextCommand | None:
        """Return what undoes a cleaning; a later run cleans after a compaction."""
        return self.of.next_command() if self.part is Part.CLEAN else None

    def amounts(self) -> Mapping[str, int]:
        return self.of.amounts()

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return bytes by what was done with them."""
        return self.of.bytes_by_use()

    def facts(self) -> Mapping[str, Any]:
        """Return the part, the run, the policies that match, and the facts of the outcome itself."""
        return {"part": self.part.value, "run": self.run, "policy": list(self.policy), **self.of.facts()}


def nightly(
    selection: Selection,
    options: NightlyOptions,
    events: Events,
    engine: Engine | None = None,
    *,
    policies: Policies | None = None,
    on_begin: Callable[[str], None] = lambda _: None,
) -> Iterator[Step]:
    """Yield the outcome of each part in each location; if a part fails, the others still run.

    Args:
        engine: runs compactions, instead of the engine of the options.
        policies: the policies of some tables.
        on_begin: called with the id of the run.

    Raises:
        RefusedError: nobody says which write ids are committed, a place may not be changed, or it was not confirmed.
        ConflictError: another run works with the same folder.
    """
    if not selection.resolver.decides:
        raise RefusedError(
            "nightly must be told which write ids are committed",
            "no list of Hive's was given, and no metastore is known",
            "give --metastore, --snapshot, or --assume-committed 1h if all that is older is committed",
        )
    options.tasks.check("--jobs", options.tasks.jobs)
    options.writing.writing()  # refuses wrong properties before the first part
    wanted = (policies or Policies()).by_default(options.policy)
    until = Deadline.after(options.deadline)
    run_id = new_run_id()
    on_begin(run_id)
    state = NightlyState(Path(options.state), events.warn) if options.state else None
    alone = state.alone(options.locks.lock_wait) if state and not options.dry_run else nullcontext()
    with selection.resolver.limited(until), alone:
        known: list[TableLocation] = []
        for found in selection.changeable(events, state.looked if state else lambda _: None):
            if pattern := wanted.excluding(found.location.table, found.location.partition):
                why = reason(Code.EXCLUDED, pattern=pattern)
                outcome = Outcome(location=found.shown, result=Result.SKIPPED, reasons=(why,))
                yield _step(Part.COMPACT, outcome, run_id, wanted.of(found.location.table, found.location.partition)[1])
            else:
                known.append(found.reload())
        parts = _Parts(replace(selection, known=tuple(known)), options, engine, wanted, run_id, until, events)
        if options.dry_run:
            yield from parts.steps(dry_run=True)
            return
        if events.shows_plans:
            planned = [step for step in parts.steps(dry_run=True) if step.result is Result.PLANNED]
            yield from planned
            if planned:
                places = tuple(step.location for step in planned)
                what, text = "work is planned for this run", "Do all of this?"
                events.confirm(Question(what, text, "nothing was done", places, options.no_trash))
        yield from parts.steps(dry_run=False)
        if state and events.looked:
            state.keep(events.looked)


def _step(part: Part, of: Outcome, run_id: str, policy: tuple[str, ...] = ()) -> Step:
    return Step(
        location=of.location,
        result=of.result,
        reasons=of.reasons,
        error=of.error,
        part=part,
        of=of,
        run=run_id,
        policy=policy,
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """Runs the three verbs, each within the rest of the time."""

    selection: Selection
    options: NightlyOptions
    engine: Engine | None
    policies: Policies
    run_id: str
    until: Deadline
    events: Events

    def steps(self, *, dry_run: bool) -> Iterator[Step]:
        """Yield the steps of all parts, and report an error that ends a part."""
        known = self.selection.known or ()
        patterns = {one.shown: self.policies.of(one.location.table, one.location.partition)[1] for one in known}
        for part, verb in ((Part.COMPACT, self._compact), (Part.CLEAN, self._clean), (Part.PURGE, self._purge)):
            outcomes: Iterable[Outcome] = verb(dry_run=dry_run)
            if self.until.is_over and not dry_run:
                outcomes = (postponed(one.shown, TIME_IS_UP) for one in known)
            try:
                for of in outcomes:
                    if dry_run or of.result is not Result.PLANNED:
                        yield _step(part, of, self.run_id, patterns.get(of.location, ()))
            except Exception as error:  # noqa: BLE001 - of the engine or the metastore: other parts may do without
                self.events.failed("", unexpected(error))

    def _compact(self, *, dry_run: bool) -> Iterator[Outcome]:
        left = time_to_compact(max(0.0, self.until.at - time.monotonic()))
        shared = {field.name: getattr(self.options, field.name) for field in fields(RunOptions)}
        mine = {"dry_run": dry_run, "deadline": self._seconds(left), "min_deltas": None}  # policies have the latter
        options = CompactOptions(**shared | mine, auto=True)
        return compact(self.selection, options, self.events, self.engine, policies=self.policies, run_id=self.run_id)

    def _clean(self, *, dry_run: bool) -> Iterator[Outcome]:
        selection = replace(self.selection, resolver=self.selection.resolver.refreshed().opened())
        for some in self._portions():
            options = CleanOptions(
                dry_run=dry_run,
                leftovers=self.options.leftovers,
                no_trash=self.options.no_trash,
                locks=self.options.locks,
                work=self._work(),
            )
            places = replace(selection, known=some)
            yield from clean(places, options, self.events, policies=self.policies, run_id=self.run_id)

    def _purge(self, *, dry_run: bool) -> Iterator[Outcome]:
        for some in self._portions():
            options = PurgeOptions(dry_run=dry_run, locks=self.options.locks, work=self._work())
            places = replace(self.selection, known=some)
            yield from purge(places, options, self.events, policies=self.policies, run_id=self.run_id)

    def _work(self) -> WorkOptions:
        return WorkOptions(deadline=self._seconds(max(0.0, self.until.at - time.monotonic())))

    @staticmethod
    def _seconds(left: float) -> float | None:
        return None if left == float("inf") else left

    def _portions(self) -> Iterable[tuple[TableLocation, ...]]:
        known = self.selection.known or ()
        return (known[start : start + _PORTION] for start in range(0, len(known), _PORTION))
