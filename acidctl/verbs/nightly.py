"""Compact what is due, clean what is obsolete and purge what is old: three verbs under one deadline and one id."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acidctl.base.errors import AcidctlError, RefusedError
from acidctl.outcome import Outcome, Result
from acidctl.verbs.clean import CleanOptions, clean
from acidctl.verbs.compact_options import CompactOptions, RunOptions
from acidctl.verbs.events import Events, Question
from acidctl.verbs.options import Kind, TrashOptions, WorkOptions, option
from acidctl.verbs.policy import Policies, TablePolicy
from acidctl.verbs.purge import PurgeOptions, purge

if TYPE_CHECKING:
    from acidctl.acid.reasons import Reason
    from acidctl.base.deadline import DailyWindow, Deadline
    from acidctl.compaction.run import Engine
    from acidctl.location.table_location import TableLocation
    from acidctl.verbs.selection import Selection

_SHARE, _MOST_SECONDS = 0.1, 1800.0
"""This share of the time is kept for cleaning and purging, and no more than this."""

_PORTION = 200
"""Locations that are cleaned together: their listings are in memory."""


@dataclass(frozen=True, kw_only=True)
class NightlyOptions(RunOptions, TrashOptions):
    """What is due, how it is done, and when."""

    older_than: float = option(
        86400.0,
        "--older-than",
        kind=Kind.DURATION,
        shown="24h",
        help="Keep what was superseded, or written, less than this long ago; at least 1h.",
    )
    purge_older_than: float = option(
        7 * 86400.0,
        "--purge-older-than",
        kind=Kind.DURATION,
        shown="7d",
        help="Keep trash and backups of repairs for this long. What this run cleans is never purged.",
    )
    leftovers: bool = option(False, "--leftovers", help="Clean abandoned _tmp_*, -tmp.delta_* and .hive-staging* too.")
    window: DailyWindow | None = option(
        None, "--window", kind=Kind.WINDOW, help="Work only in these hours, e.g. 01:00-05:00, local time."
    )
    state: str | None = option(
        None,
        "--state",
        kind=Kind.DIRECTORY,
        metavar="DIR",
        help="Directory for the number of locations, to notice missing ones (default: systemd's StateDirectory, else "
        "~/.local/state/acidctl). Only one run can use it at a time.",
    )

    @property
    def policy(self) -> TablePolicy:
        """The policy of tables that no other policy matches.

        Raises:
            UsageProblem: a retention below an hour.
        """
        return TablePolicy(
            min_deltas=self.min_deltas,
            older_than=self.older_than,
            purge_older_than=self.purge_older_than,
        )


def _end_of_work(window: DailyWindow | None, deadline: float | None) -> tuple[Deadline, Reason | None]:
    """Return when to end; and why nothing may be done now, if so."""
    from acidctl.acid.reasons import Code, reason
    from acidctl.base.deadline import Deadline

    ends = [] if deadline is None else [deadline]
    if window is not None:
        now = datetime.now()
        left = window.seconds_left(now)
        if left is None:
            return Deadline(), reason(Code.OUT_OF_HOURS, window=str(window), now=f"{now:%H:%M}")
        ends.append(left)
    return (Deadline(time.monotonic() + min(ends)) if ends else Deadline()), None


def time_to_compact(left: float) -> float:
    """Return how many of the seconds of a run are for compactions: cleaning gives back space, and has its share."""
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
        of: the outcome itself.
        run: the id of the run; the cleaning runs in the trash have it.
        policy: the patterns of policies that match the table, the most specific first.
    """

    part: Part
    of: Outcome
    run: str
    policy: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether the location is not what it was."""
        return self.of.is_changed

    @property
    def is_unfinished(self) -> bool:
        """Whether a later run has something left to do."""
        return self.of.is_unfinished

    @property
    def seconds(self) -> float | None:
        """Seconds of work; None if they are not measured."""
        return self.of.seconds

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return bytes by what was done with them; what a purge removed had left the table before."""
        by_use = self.of.bytes_by_use()
        return {"purged": sum(by_use.values())} if self.part is Part.PURGE and by_use else by_use

    def reported(self) -> Mapping[str, Any]:
        """Return nothing: the report of a run has all parts of a location together."""
        return {}

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
    """Yield what each part does in each location; a part that fails leaves the others their work.

    Args:
        engine: where compactions run, instead of the engine of the options.
        policies: what is wanted of some tables.
        on_begin: called with the id of the run.

    Raises:
        RefusedError: nobody says which write ids are committed, a place may not be changed, or it was not confirmed.
        ConflictError: another run works with the same folder.
    """
    from acidctl.location.change.own_files import new_run_id
    from acidctl.verbs.compact import postponed
    from acidctl.verbs.nightly_state import NightlyState

    if not selection.resolver.decides:
        raise RefusedError(
            "nightly must be told which write ids are committed",
            "no list of Hive's was given, and no metastore is known",
            "give --metastore, --snapshot, or --assume-committed 1h if all that is older is committed",
        )
    options.tasks.check("--jobs", options.tasks.jobs)
    options.writing.writing()  # refuses wrong properties before the first part
    wanted = (policies or Policies()).by_default(options.policy)
    until, closed = _end_of_work(options.window, options.deadline)
    selection.resolver.end_by(until)
    run_id = new_run_id()
    on_begin(run_id)
    if closed and not options.dry_run:
        for place in selection.places:
            yield _step(Part.COMPACT, postponed(str(place), closed), run_id)
        return
    state = NightlyState(Path(options.state), events.warn) if options.state else None
    with state.alone(options.locks.lock_wait) if state and not options.dry_run else nullcontext():
        found: list[TableLocation] = []
        for one in selection.changeable(events, state.looked if state else lambda _: None):
            if pattern := wanted.excluding(one.location.table):
                yield _excluded(one, pattern, run_id, wanted)
            else:
                found.append(one.reload())
        parts = _Parts(replace(selection, known=tuple(found)), options, engine, wanted, run_id, until, events)
        if options.dry_run:
            yield from parts.steps(dry_run=True)
            return
        if events.shows_plans:
            planned = [step for step in parts.steps(dry_run=True) if step.result is Result.PLANNED]
            yield from planned
            if planned:
                events.confirm(_question(planned, is_for_good=options.no_trash))
        yield from parts.steps(dry_run=False)
        if state and events.looked:
            state.keep(events.looked)


def _question(planned: Iterable[Step], *, is_for_good: bool) -> Question:
    places = tuple(step.location for step in planned)
    return Question("work is planned for this run", "Do all of this?", "nothing was done", places, is_for_good)


def _excluded(found: TableLocation, pattern: str, run_id: str, policies: Policies) -> Step:
    from acidctl.acid.reasons import Code, reason

    why = reason(Code.EXCLUDED, pattern=pattern)
    outcome = Outcome(location=found.shown, result=Result.SKIPPED, reasons=(why,))
    return _step(Part.COMPACT, outcome, run_id, policies.of(found.location.table)[1])


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
    """The three verbs, each with what is left of the time."""

    selection: Selection
    options: NightlyOptions
    engine: Engine | None
    policies: Policies
    run_id: str
    until: Deadline
    events: Events

    def steps(self, *, dry_run: bool) -> Iterator[Step]:
        """Yield the steps of all parts; an error that ends a part is reported."""
        from acidctl.outcome import TIME_IS_UP
        from acidctl.verbs.compact import postponed

        known = self.selection.known or ()
        patterns = {one.shown: self.policies.of(one.location.table)[1] for one in known}
        for part, verb in ((Part.COMPACT, self._compact), (Part.CLEAN, self._clean), (Part.PURGE, self._purge)):
            outcomes: Iterable[Outcome] = verb(dry_run=dry_run)
            if self.until.is_over and not dry_run:
                outcomes = (postponed(one.shown, TIME_IS_UP) for one in known)
            try:
                for one in outcomes:
                    of = replace(one, result=Result.PLANNED) if one.result is Result.IN_TRASH else one
                    if dry_run or of.result is not Result.PLANNED:
                        yield _step(part, of, self.run_id, patterns.get(of.location, ()))
            except AcidctlError as error:  # of the engine, or of the metastore: the other parts may do without
                self.events.failed("", error)

    def _compact(self, *, dry_run: bool) -> Iterator[Outcome]:
        from acidctl.verbs.compact import compact

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
                trash=self.options.trash,
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
