"""Remove what is obsolete or aborted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import islice

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, GoneError, RefusedError, unexpected
from acidctl.base.parallel import each
from acidctl.cleaning.apply import How, RefusedCleaning, carry_out, plan_location
from acidctl.cleaning.outcomes import Cleaned, PlannedCleaning
from acidctl.cleaning.plan import CleaningPlan
from acidctl.cleaning.retention import Policy
from acidctl.cleaning.saved import read_plans, who_may_change, write_plans
from acidctl.location.arguments import HIVE
from acidctl.location.change.own_files import new_run_id
from acidctl.location.other_formats import FormatDetector
from acidctl.location.table_location import TableLocation
from acidctl.outcome import TIME_IS_UP, Outcome, Result
from acidctl.verbs.events import Events, Question
from acidctl.verbs.maintain_options import CleanOptions
from acidctl.verbs.policy import Policies
from acidctl.verbs.selection import Selection
from acidctl.wording import human_bytes, human_count

_CHECKED_AT_ONCE = 100
"""Locations for whose tables a metastore is asked at once whether they are still the same."""

_FEW = 3
"""The most tables that a line for a further command names."""

_QUESTIONS = {How.TRASH: "Move to the trash", How.DELETE: "Delete permanently"}


def clean(
    selection: Selection, options: CleanOptions, events: Events, *, policies: Policies | None = None, run_id: str = ""
) -> Iterator[Outcome]:
    """Yield the plan of every location, then, after a yes, what was removed from each.

    Args:
        policies: the policies of some tables.
        run_id: the id of the nightly run that this is a part of, which was confirmed.

    Raises:
        RefusedError: a retention is below an hour, a place may not be changed, or it was not confirmed.
        BadDataError: the file of plans cannot be used.
    """
    stop = Deadline.after(options.work.deadline)
    # A copy, since an interrupt does not end calls of the metastore; in a nightly run, its deadline holds already.
    with nullcontext() if options.work.deadline is None else selection.resolver.limited(Deadline(stop.at)):
        plans: list[CleaningPlan] = []
        in_metastore: dict[str, TableLocation] = {}
        if options.apply is not None:
            answers = _plans_of_file(selection, options, stop, events)
        else:
            answers = _new_plans(selection, options, stop, events, policies=policies, in_metastore=in_metastore)
        for answer in _within(answers, options.max_bytes):
            if isinstance(answer, PlannedCleaning):
                if not run_id:  # a nightly run saw it before it was compacted
                    events.saw(answer.plan.snapshot)
                plans += [answer.plan] * bool(answer.plan.removals)
            yield answer
        if options.plan is not None:
            write_plans(options.plan, plans)
            unsafe = ["--unsafe-retention"] if options.unsafe_retention else []
            line = events.line_for(("clean", *unsafe), [f"--apply={options.plan}"], of_snapshot=True)
            events.note(f"saved {human_count(len(plans), 'plan')}: {line}")
        elif plans and not options.dry_run:
            cleaned: list[TableLocation] = []
            if options.work.deadline is not None:
                plans.sort(key=lambda plan: -plan.bytes)
            for outcome in _carried_out(plans, options, stop, events, run_id):
                if outcome.is_changed and outcome.location in in_metastore:
                    cleaned.append(in_metastore[outcome.location])
                yield outcome
            if cleaned:
                _note_ready_entries(selection, cleaned, events)


def _new_plans(
    selection: Selection,
    options: CleanOptions,
    stop: Deadline,
    events: Events,
    *,
    policies: Policies | None,
    in_metastore: dict[str, TableLocation],
) -> Iterator[Outcome]:
    """Yield the plans of all locations, or why there is none, as they are made.

    Args:
        in_metastore: takes the locations that a metastore has, by the path that users see.
    """
    usual = Policy(options.older_than, options.leftovers)
    _require_safe([usual], options)
    changeable = selection.changeable(events)
    places = selection.with_tables(changeable) if options.leftovers else ((found, False) for found in changeable)
    while portion := list(islice(places, _CHECKED_AT_ONCE if selection.resolver.asks_metastore else 1)):
        answers: list[tuple[TableLocation, PlannedCleaning | RefusedCleaning]] = []
        for found, is_table in portion:
            if found.hive:
                in_metastore[found.shown] = found.reload()
            if stop.is_over:
                yield Outcome(location=found.shown, result=Result.POSTPONED, reasons=(TIME_IS_UP,))
                continue
            retention = policies.of(found.location.table, found.location.partition)[0].older_than if policies else None
            policy = usual if retention is None else Policy(retention, options.leftovers)
            answer = _planned(found, policy, is_table=is_table)
            is_idle = isinstance(answer, PlannedCleaning) and not (answer.plan.removals or answer.plan.waiting)
            if not (is_table and is_idle):
                answers.append((found, answer))
        # The lists are for the tables of that time: one that was created again since has other write ids.
        has_work = [isinstance(answer, PlannedCleaning) and bool(answer.plan.removals) for _, answer in answers]
        tables = [found.hive if due else None for (found, _), due in zip(answers, has_work, strict=True)]
        for (_, answer), error in zip(answers, selection.resolver.changed(tables), strict=True):
            yield RefusedCleaning(location=answer.location, error=error) if error else answer


def _planned(found: TableLocation, policy: Policy, *, is_table: bool) -> PlannedCleaning | RefusedCleaning:
    try:
        return plan_location(found, policy, is_table=is_table)
    except Exception as error:  # noqa: BLE001 - the other locations go on
        return RefusedCleaning(location=found.shown, error=unexpected(error, "while it was planned"))


def _plans_of_file(selection: Selection, options: CleanOptions, stop: Deadline, events: Events) -> Iterator[Outcome]:
    """Yield the plans of a file that still hold, each made again, and why the others do not."""
    file = str(options.apply)
    saved = read_plans(file)
    if not saved:
        events.note(f"nothing to clean: {file} holds no plan of a location")
        return
    _require_safe((plan.policy for plan in saved), options)
    if not selection.resolver.decides and any(plan.has_snapshot for plan in saved):
        if why := who_may_change(file):
            raise RefusedError(
                f"will not take from {file} which transactions are committed",
                why,
                "give --snapshot or --assume-committed, or let nobody else write to it",
            )
        events.note(f"what is committed is taken from {file}; --snapshot or --assume-committed overrides it")
    formats = FormatDetector()
    for plan in saved:
        events.coverage.begin(plan.url)
    replanned = each(
        saved,
        lambda plan: plan.plan(selection.storage, selection.resolver, selection.table_type, formats),
        options.work.jobs,
        stop,
    )
    for before, now in replanned:
        if isinstance(now, AcidctlError):
            if not isinstance(now, GoneError):  # the coverage reports what is gone
                events.coverage.failed.add(before.url)
            yield Outcome(location=before.url, result=Result.FAILED, error=now)
            continue
        events.coverage.met(before.url)
        if now is None:
            yield Outcome(location=before.url, result=Result.POSTPONED, reasons=(TIME_IS_UP,))
        else:
            yield PlannedCleaning.of(now)
    events.looked_through()


def _require_safe(policies: Iterable[Policy], options: CleanOptions) -> None:
    if not (options.dry_run or options.unsafe_retention):
        for policy in policies:
            policy.require_safe()


def _within(answers: Iterable[Outcome], budget: int | None) -> Iterator[Outcome]:
    """Yield the answers; each plan is cut to what the earlier ones leave of a budget of bytes."""
    for answer in answers:
        if budget is not None and isinstance(answer, PlannedCleaning):
            plan = answer.plan.within(budget)
            budget -= plan.bytes
            yield PlannedCleaning.of(plan)
        else:
            yield answer


def _carried_out(
    plans: Sequence[CleaningPlan], options: CleanOptions, stop: Deadline, events: Events, run_id: str
) -> Iterator[Outcome]:
    """Ask, unless a nightly run has asked, and carry out the plans."""
    count, size = sum(len(plan.removals) for plan in plans), human_bytes(sum(plan.bytes for plan in plans))
    how, entries = How(options.how), human_count(count, "entry", "entries")
    if not run_id:
        what, text = f"{entries} ({size}) would be removed", f"{_QUESTIONS[how]}: {entries}, {size}?"
        places = tuple(plan.shown for plan in plans)
        events.confirm(Question(what, text, "nothing was removed", places, is_for_good=how is How.DELETE))
    age = min(filter(None, (plan.policy.older_than for plan in plans)), default=0.0)
    with events.progress("cleaning", count) as bar:
        clean_location = partial(
            carry_out,
            how=how,
            locking=options.locks.locking(events.warn, age),
            run_id=run_id or new_run_id(),  # the same in every trash, so that `restore` finds what was cleaned together
            night=run_id,
            should_stop=lambda: stop.is_over,
            on_removed=lambda _: bar.advance(),
        )
        for plan, done in each(plans, clean_location, options.work.jobs, stop):
            if isinstance(done, AcidctlError):
                yield Outcome(location=plan.shown, result=Result.FAILED, error=done)
            else:
                yield done or Cleaned.after(plan)


def _note_ready_entries(selection: Selection, cleaned: Sequence[TableLocation], events: Events) -> None:
    """Note how many entries of Hive's queue are ready for cleaning where something was cleaned."""
    from acidctl.hive.table_names import location_key
    from acidctl.hive.waiting import count_ready

    warehouse = selection.resolver.warehouse
    assert warehouse  # it has the locations
    try:
        count = count_ready(warehouse.metastore, {location_key(found) for found in cleaned})
    except AcidctlError:  # the files are gone, and that was asked for
        return
    if count:
        entries = human_count(count, "entry of Hive's queue is", "entries of Hive's queue are")
        tables = list(dict.fromkeys(f"{HIVE}{found.hive.full_name}" for found in cleaned if found.hive))
        line = events.line_for(("hive", "cleaner", "--once"), tables if len(tables) <= _FEW else [f"{HIVE}*.*"])
        events.note(f"{entries} ready for cleaning there: `{line}`, or Hive's own cleaner, takes them out")
