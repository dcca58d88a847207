"""Remove what is obsolete or aborted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError, GoneError, RefusedError
from acidctl.verbs.options import Kind, LockOptions, TrashOptions, WorkOptions, group, option

if TYPE_CHECKING:
    from acidctl.base.parallel import Stop
    from acidctl.cleaning.outcomes import PlannedCleaning
    from acidctl.cleaning.plan import CleaningPlan
    from acidctl.cleaning.request import RefusedCleaning
    from acidctl.cleaning.retention import Policy
    from acidctl.cleaning.saved import SavedPlan
    from acidctl.location.table_location import TableLocation
    from acidctl.outcome import Outcome
    from acidctl.verbs.events import Events
    from acidctl.verbs.policy import Policies
    from acidctl.verbs.selection import Selection

_CHECKED_AT_ONCE = 100
"""Locations for whose tables a metastore is asked at once whether they are still the same."""

_VERBS = {"trash": "Move to the trash", "hdfs": "Move to the trash of HDFS", "delete": "Delete for good"}


@dataclass(frozen=True, kw_only=True)
class CleanOptions(TrashOptions):
    """What is removed, and how."""

    dry_run: bool = option(False, "-n", "--dry-run", help="Show the plan and stop.")
    older_than: float = option(
        86400.0,
        "--older-than",
        kind=Kind.DURATION,
        shown="24h",
        help="Keep what was superseded, or written, less than this long ago: 24h, 90m, 7d, 0.",
    )
    unsafe_retention: bool = option(
        False, "--unsafe-retention", typed=True, help="Allow --older-than below 1h: nothing reads the tables."
    )
    leftovers: bool = option(False, "--leftovers", help="Remove abandoned _tmp_*, -tmp.delta_* and .hive-staging* too.")
    plan: str | None = option(
        None, "--plan", kind=Kind.NEW_FILE, metavar="FILE", typed=True, help="Save the plan for --apply, and stop."
    )
    apply: str | None = option(
        None,
        "--apply",
        kind=Kind.FILE,
        metavar="FILE",
        typed=True,
        help="Carry out the plan of FILE in every location that has not changed. FILE holds no credentials: give --set "
        "storage.* again. Without --snapshot, --assume-committed or a metastore, the snapshot of FILE counts if only "
        "you and root can have written it.",
    )
    max_bytes: int | None = option(
        None, "--max-bytes", kind=Kind.SIZE, help="Remove at most so much; the rest is left for later."
    )
    locks: LockOptions = group(LockOptions)
    work: WorkOptions = group(WorkOptions)


def clean(
    selection: Selection, options: CleanOptions, events: Events, *, policies: Policies | None = None, run_id: str = ""
) -> Iterator[Outcome]:
    """Yield the plan of every location, then, after a yes, what was removed from each.

    Args:
        policies: what is wanted of some tables.
        run_id: of the nightly run that this is a part of, which was confirmed.

    Raises:
        RefusedError: a retention below an hour, a place that may not be changed, or it was not confirmed.
        BadDataError: the file of plans cannot be used.
    """
    from acidctl.base.deadline import Deadline
    from acidctl.base.parallel import Stop
    from acidctl.cleaning.outcomes import PlannedCleaning
    from acidctl.cleaning.saved import write_plans
    from acidctl.wording import human_count

    stop = Stop.after(options.work.deadline)
    if stop.until is not None:
        selection.resolver.end_by(Deadline(stop.until))
    plans: list[CleaningPlan] = []
    of_hive: dict[str, TableLocation] = {}
    if options.apply is None:
        planned = _planned(selection, options, stop, events, of_hive=of_hive, policies=policies)
    else:
        planned = _still_holding(selection, options, stop, events)
    for answer in _within(planned, options.max_bytes):
        if isinstance(answer, PlannedCleaning):
            if not run_id:  # a nightly run looked before it compacted
                events.saw(answer.plan.snapshot)
            plans += [answer.plan] * bool(answer.plan.removals)
        yield answer
    if options.plan is not None:
        write_plans(options.plan, plans)
        events.note(f"saved {human_count(len(plans), 'plan')}: acidctl clean --apply {options.plan}")
    elif plans and not options.dry_run:
        cleaned: list[TableLocation] = []
        if options.work.deadline is not None:
            plans.sort(key=lambda plan: -plan.bytes)
        for outcome in _carried_out(plans, options, stop, events, run_id):
            if outcome.is_changed and outcome.location in of_hive:
                cleaned.append(of_hive[outcome.location])
            yield outcome
        _tell_of_queue(selection, cleaned, events)


def _require_safe(policies: Iterable[Policy], options: CleanOptions) -> None:
    if not (options.dry_run or options.unsafe_retention):
        for policy in policies:
            policy.require_safe()


def _carried_out(
    plans: list[CleaningPlan], options: CleanOptions, stop: Stop, events: Events, run_id: str
) -> Iterator[Outcome]:
    """Ask, unless a nightly run has asked, and carry out the plans."""
    from acidctl.base.parallel import each
    from acidctl.cleaning import request
    from acidctl.cleaning.apply import How
    from acidctl.cleaning.outcomes import Cleaned
    from acidctl.location.change.own_files import new_run_id
    from acidctl.outcome import Outcome, Result
    from acidctl.verbs.events import Question
    from acidctl.wording import human_bytes, human_count

    count, size = sum(len(plan.removals) for plan in plans), human_bytes(sum(plan.bytes for plan in plans))
    entries = human_count(count, "entry", "entries")
    how = How(options.how)
    places = tuple(plan.shown for plan in plans)
    what, text = f"{entries} ({size}) would be removed", f"{_VERBS[how.value]}: {entries}, {size}?"
    if not run_id:
        events.confirm(Question(what, text, "nothing was removed", places, is_for_good=how is How.DELETE))
    age = min(filter(None, (plan.policy.older_than for plan in plans)), default=0.0)
    with events.progress("cleaning", count) as bar:
        clean_one = partial(
            request.carry_out,
            how=how,
            locking=options.locks.locking(events.warn, age),
            run_id=run_id
            or new_run_id(),  # in the trash of every location, so that `restore` finds what was cleaned together
            night=run_id,
            should_stop=stop.is_due,
            on_removed=lambda _: bar.advance(),
        )
        for plan, done in each(plans, clean_one, options.work.jobs, stop):
            if isinstance(done, AcidctlError):
                yield Outcome(location=plan.shown, result=Result.FAILED, error=done)
            else:
                yield done or Cleaned.after(plan)


def _planned(
    selection: Selection,
    options: CleanOptions,
    stop: Stop,
    events: Events,
    *,
    of_hive: dict[str, TableLocation],
    policies: Policies | None,
) -> Iterator[Outcome]:
    """Yield the plans of all locations, or why there is none, as they are made.

    Args:
        of_hive: takes the locations that a metastore knows, by how they are shown.
    """
    from acidctl.cleaning.outcomes import PlannedCleaning
    from acidctl.cleaning.retention import Policy
    from acidctl.outcome import TIME_IS_UP, Outcome, Result

    usual = Policy(options.older_than, options.leftovers)
    _require_safe([usual], options)
    known = selection.changeable(events)
    places = selection.with_tables(known) if options.leftovers else ((found, False) for found in known)
    while some := list(islice(places, _CHECKED_AT_ONCE if selection.resolver.asks_metastore else 1)):
        answers: list[tuple[TableLocation, PlannedCleaning | RefusedCleaning]] = []
        for found, is_table in some:
            if found.hive:
                of_hive[found.shown] = found.reload()
            if stop.is_due():
                yield Outcome(location=found.shown, result=Result.POSTPONED, reasons=(TIME_IS_UP,))
                continue
            policy = usual
            if policies and (kept := policies.of(found.location.table)[0].older_than) is not None:
                policy = Policy(kept, options.leftovers)
            answer = plan_location(found, policy, is_table=is_table)
            is_idle = isinstance(answer, PlannedCleaning) and not (answer.plan.removals or answer.plan.waiting)
            if not (is_table and is_idle):
                answers.append((found, answer))
        yield from _unless_changed(answers, selection)


def plan_location(found: TableLocation, policy: Policy, *, is_table: bool = False) -> PlannedCleaning | RefusedCleaning:
    """Plan the cleaning of one location from a new snapshot.

    Args:
        is_table: the location is the directory of a partitioned table, where only staging of queries is cleaned.
    """
    from acidctl.cleaning.leftovers import query_staging
    from acidctl.cleaning.outcomes import PlannedCleaning
    from acidctl.cleaning.plan import plan_cleaning
    from acidctl.cleaning.request import RefusedCleaning

    try:
        snapshot = query_staging(found.fs, found.location.path) if is_table else found.snapshot(readers=True)
        snapshot.require_agreement()
        return PlannedCleaning.of(plan_cleaning(snapshot, policy))
    except AcidctlError as error:
        return RefusedCleaning(location=found.shown, error=error)


def _unless_changed(
    answers: list[tuple[TableLocation, PlannedCleaning | RefusedCleaning]], selection: Selection
) -> Iterator[PlannedCleaning | RefusedCleaning]:
    """Yield the answers, with a refusal for each plan whose table was recreated or moved since the lists were taken."""
    from acidctl.cleaning.outcomes import PlannedCleaning
    from acidctl.cleaning.request import RefusedCleaning

    tables = [
        found.hive if isinstance(answer, PlannedCleaning) and answer.plan.removals else None
        for found, answer in answers
    ]
    for (_, answer), error in zip(answers, selection.resolver.changed(tables), strict=True):
        yield RefusedCleaning(location=answer.location, error=error) if error else answer


def _still_holding(selection: Selection, options: CleanOptions, stop: Stop, events: Events) -> Iterator[Outcome]:
    """Yield the plans of a file that still hold, each made again, and why the others do not."""
    from acidctl.base.parallel import each
    from acidctl.cleaning.outcomes import PlannedCleaning
    from acidctl.cleaning.saved import read_plans
    from acidctl.location.other_formats import FormatDetector
    from acidctl.outcome import TIME_IS_UP, Outcome, Result

    saved = read_plans(str(options.apply))
    if not saved:
        events.note(f"nothing to clean: {options.apply} holds no plan of a location")
        return
    _require_safe((one.policy for one in saved), options)
    if not selection.resolver.decides and any(one.has_snapshot for one in saved):
        _trust(str(options.apply), events)
    around = FormatDetector()
    for one in saved:
        events.coverage.begin(one.url)

    def again(one: SavedPlan) -> CleaningPlan:
        return one.plan(selection.storage, selection.resolver, selection.table_type, around)

    for one, plan in each(saved, again, options.work.jobs, stop):
        if isinstance(plan, AcidctlError):
            if not isinstance(plan, GoneError):  # the coverage reports what is gone
                events.coverage.failed.add(one.url)
            yield Outcome(location=one.url, result=Result.FAILED, error=plan)
            continue
        events.coverage.met(one.url)
        if plan is None:
            yield Outcome(location=one.url, result=Result.POSTPONED, reasons=(TIME_IS_UP,))
        else:
            yield PlannedCleaning.of(plan)
    events.looked_through()


def _trust(file: str, events: Events) -> None:
    """Say that the snapshot is that of the file.

    Raises:
        RefusedError: others may have written it.
    """
    from acidctl.cleaning.saved import who_may_change

    if why := who_may_change(file):
        raise RefusedError(
            f"will not take from {file} which transactions are committed",
            why,
            "give --snapshot or --assume-committed, or let nobody else write to it",
        )
    events.note(f"what is committed is taken from {file}; --snapshot or --assume-committed overrides it")


def _within(answers: Iterable[Outcome], budget: int | None) -> Iterator[Outcome]:
    """Yield the answers; each plan is cut to what the earlier ones leave of a budget of bytes."""
    from acidctl.cleaning.outcomes import PlannedCleaning

    for answer in answers:
        if budget is None or not isinstance(answer, PlannedCleaning):
            yield answer
            continue
        cut = answer.plan.within(budget)
        budget -= cut.bytes
        yield PlannedCleaning.of(cut)


def _tell_of_queue(selection: Selection, cleaned: list[TableLocation], events: Events) -> None:
    """Say that entries of Hive's queue wait for more than what was removed."""
    if not cleaned or not selection.resolver.warehouse:
        return
    from acidctl.hive.ready_entries import count_ready, place_key
    from acidctl.wording import human_count

    try:
        count = count_ready(selection.resolver.warehouse.metastore, {place_key(found) for found in cleaned})
    except AcidctlError:  # the files are gone, and that was asked for
        return
    if count:
        entries = human_count(count, "entry of Hive's queue is", "entries of Hive's queue are")
        events.note(
            f"{entries} ready for cleaning there: `acidctl hive cleaner --once`, or Hive's own cleaner, takes them out"
        )
