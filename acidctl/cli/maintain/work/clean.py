"""What `acidctl clean` does and says: plan every location, show, ask and remove; `apply` carries out with the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from acidctl.acid.listing import TableType
from acidctl.acid.reasons import Code, Reason
from acidctl.acid.state import EntryKind
from acidctl.cleaning import request
from acidctl.cleaning.apply import How
from acidctl.cleaning.outcomes import Cleaned, PlannedCleaning
from acidctl.cleaning.plan import CleaningPlan, Removal
from acidctl.cleaning.request import RefusedCleaning, plan_location, unless_changed
from acidctl.cleaning.retention import Policy
from acidctl.cli.options.many_locations import Procedure, Stop, to_be_typed
from acidctl.cli.options.shared import refuse_unused, restore_line
from acidctl.cli.output.console import console, human_bytes, note
from acidctl.cli.output.progress import progress
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn
from acidctl.cli.output.verbosity import VERBOSITY
from acidctl.cli.report.folding import HANDFUL
from acidctl.cli.report.outcomes import Outcomes
from acidctl.cli.report.run_files import refuse_replacing
from acidctl.cli.report.run_report import RunReport
from acidctl.cli.report.verdicts import Freeable, freeable_of, freeable_together, held_back
from acidctl.deadline import Deadline
from acidctl.errors import AcidctlError
from acidctl.location.change.own_files import new_run_id
from acidctl.location.find import Found, find, once, refuse_unusable, with_tables
from acidctl.location.lists import SnapshotLists
from acidctl.location.neighbours import Surroundings
from acidctl.outcome import Outcome
from acidctl.wording import human_count, names_in_short, some_of, text_of

NAMES_SHOWN = 8
ENTRIES_SHOWN = 20
"""Entries of one location that have lines of their own."""
MOST_NOTES = 20
"""Locations of which it is told one by one what there is to say."""
_MOST_GIVEN = 3
_CHECKED_AT_ONCE = 100
"""Locations for whose tables a metastore is asked at once whether they are still the same."""


def work(
    *,
    locations: tuple[str, ...],
    dry_run: bool,
    how: str,
    plan_file: str | None,
    older_than: float,
    unsafe_retention: bool,
    leftovers: bool,
    work: Procedure,
    max_bytes: int | None,
    table_type: TableType | None,
    exit_code: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Clean as asked; the exit status."""
    if plan_file is not None:
        asked_by_apply = ("no_trash", "trash", "dry_run", "jobs", "lock", "lock_wait", "break_lock")
        refuse_unused("--plan", *asked_by_apply)
        refuse_replacing(Path(plan_file), "plan")
    policy = Policy(older_than, leftovers)
    if not (dry_run or unsafe_retention):
        policy.require_safe()
    work.locking = replace(work.locking, age=policy.older_than)
    if work.stop.until is not None:
        lists.end_by(Deadline(work.stop.until))
    printer, around = CleaningPrinter(output, run, locations), Surroundings()
    refuse_unusable(locations, storage, lists, table_type, surroundings=around)
    places = once(find(locations, storage, lists, printer.observer, surroundings=around))
    of_hive: dict[str, Found] = {}
    known = _noted(printer.changeable(places, table_type), of_hive)
    every = with_tables(known, locations, storage) if leftovers else ((found, False) for found in known)
    planned = cut_to(_plans(every, lists, policy, work.stop, printer), max_bytes)
    plans = printer.plans(planned, dry_run=dry_run or plan_file is not None)
    printer.looked_through()
    printer.tell_strangers()
    if plan_file is not None:
        from acidctl.cleaning.saved import write_plans  # noqa: PLC0415 - only for --plan

        write_plans(plan_file, plans)
        note(f"saved {human_count(len(plans), 'plan')}: acidctl apply {plan_file}")
    elif not dry_run:
        clean_all(plans, how, work, printer)
        _tell_of_queue(lists, [of_hive[one] for one in printer.cleaned if one in of_hive])
    if (dry_run or plan_file is not None) and plans:
        return printer.status
    return printer.exit_status(exit_code)


def _noted(places: Iterable[Found], of_hive: dict[str, Found]) -> Iterator[Found]:
    """The same, of which those are kept that a metastore knows."""
    for found in places:
        if found.hive:
            of_hive[found.shown] = found.afresh()
        yield found


def _tell_of_queue(lists: SnapshotLists, cleaned: Sequence[Found]) -> None:
    """What was removed is not all that an entry of Hive's queue waits for."""
    if not cleaned or not lists.warehouse:
        return
    from acidctl.hive.waiting import count_ready, place_key  # noqa: PLC0415 - thrift, only with a metastore

    try:
        count = count_ready(lists.warehouse.metastore, {place_key(found) for found in cleaned})
    except AcidctlError:  # the files are gone, and that was asked for
        return
    if count:
        entries = human_count(count, "entry of Hive's queue is", "entries of Hive's queue are")
        note(f"{entries} ready for cleaning there: `acidctl cleaner --once`, or Hive's own cleaner, takes them out")


def cut_to(plans: Iterable[CleaningPlan], budget: int | None) -> Iterator[CleaningPlan]:
    """The plans, each cut to what the earlier ones leave of a budget of bytes; None for no bound."""
    for plan in plans:
        if budget is None:
            yield plan
            continue
        cut = plan.within(budget)
        budget -= cut.bytes
        yield cut


def _plans(
    every: Iterable[tuple[Found, bool]],
    lists: SnapshotLists,
    policy: Policy,
    stop: Stop,
    printer: CleaningPrinter,
) -> Iterator[CleaningPlan]:
    """The plans of all locations that have one, as they are made: by one thread, since nothing is waited for.

    Args:
        every: places, and whether each is a table's directory with its partitions in it.
    """
    places = iter(every)
    while some := list(islice(places, _CHECKED_AT_ONCE if lists.asks_metastore else 1)):
        answers = []
        for found, is_table in some:
            if stop.is_due():
                printer.postponed(found.shown)
                continue
            answer = plan_location(found, lists, policy, is_table=is_table, is_table_checked=False)
            if isinstance(answer, RefusedCleaning) or answer.plan.removals or answer.plan.waiting or not is_table:
                answers.append((found, answer))
        for checked in unless_changed(answers, lists):
            if isinstance(checked, RefusedCleaning):
                printer.put(checked)
            else:
                yield checked.plan


def clean_all(plans: Sequence[CleaningPlan], how: str, work: Procedure, printer: CleaningPrinter) -> None:
    """Ask, and do it.

    Args:
        how: trash, hdfs or delete.
    """
    removals, size = sum(len(plan.removals) for plan in plans), human_bytes(sum(plan.bytes for plan in plans))
    if plans:
        count = human_count(removals, "entry", "entries")
        verbs = {"trash": "Move to the trash", "hdfs": "Move to the trash of HDFS", "delete": "Delete for good"}
        work.confirm(
            f"{count} ({size}) would be removed",
            f"{verbs[how]}: {count}, {size}?",
            "nothing was removed",
            severe=to_be_typed((plan.shown for plan in plans), is_for_good=how == "delete"),
        )
    with progress("cleaning", removals) as bar:
        clean = partial(
            request.carry_out,
            how=How(how),
            locking=work.locking,
            run_id=new_run_id(),  # in the trash of every location, so that `restore` finds what was cleaned together
            should_stop=work.stop.is_due,
            on_removed=lambda _: bar.advance(),
        )
        for plan, done in work.each(plans, clean, lambda plan, error: printer.failed(plan.shown, error)):
            printer.done(done or Cleaned.after(plan))
    printer.summary()


# --- what it says ---


class CleaningPrinter(Outcomes):
    """Outcomes of cleanings.

    Args:
        given: the places that were typed; empty where nothing but a file was.
    """

    def __init__(self, output: str, run: RunReport, given: Sequence[str] = ()) -> None:
        super().__init__(output, run, cleaning_text, cleaning_counts)
        self._given = given
        self._planned_count = 0
        self._cleaned: list[Cleaned] = []

    def plans(self, planned: Iterable[CleaningPlan], *, dry_run: bool) -> list[CleaningPlan]:
        """The plans that remove something, before anything is done; each of all is shown when it is made."""
        plans: list[CleaningPlan] = []
        kept = _KeptBack()
        notes: dict[str, None] = {}
        for plan in planned:
            self._planned_count += 1
            notes |= dict.fromkeys(map(text_of, plan.snapshot.state.notes))
            if plan.removals:
                plans.append(plan)
            kept.add(plan)
            self.run.saw(plan.snapshot)
            self.put(PlannedCleaning.of(plan), is_last=dry_run or not plan.removals)
        self.tell(len(plans))
        kept.tell()
        for text in notes:
            note(text)
        return plans

    @property
    def cleaned(self) -> list[str]:
        """The locations of which something was removed."""
        return [one.location for one in self._cleaned]

    def done(self, cleaned: Cleaned) -> None:
        """A location's plan was carried out, or as much of it as time allowed."""
        self.put(cleaned)
        if cleaned.removed:
            self._cleaned.append(cleaned)
        for folder in dict.fromkeys(place.rpartition("/")[0] for place in cleaned.places):
            if self.is_table:
                note(f"moved to {cleaned.plan.snapshot.fs.display(folder)}: undo by moving back from there")

    def summary(self) -> None:
        """What became of all locations together."""
        self.tell()
        undo = {one.location: one.run.id for one in self._cleaned if one.run} if self.is_table else {}
        if undo:
            run_id = next(iter(undo.values()))  # of all of them
            given = self._given if 0 < len(self._given) <= _MOST_GIVEN else ("LOCATION...",)
            note(f"undo: {restore_line(run_id, tuple(undo) if len(undo) == 1 else given)}")
        if self._planned_count > 1:
            size = human_bytes(sum(one.bytes for one in self._cleaned))
            self.sum_up(self._planned_count, f"{len(self._cleaned)} cleaned, {size}")

    def kind_of(self, outcome: Outcome) -> str:
        return cleaning_kind(outcome) or super().kind_of(outcome)

    def code_of(self, outcome: Outcome) -> str:
        if isinstance(outcome, PlannedCleaning) and not outcome.plan.removals:
            held = (*(why for _, why in outcome.plan.kept_back), *(one.reason for one in outcome.plan.waiting))
            return held[0].code if held else ""
        return super().code_of(outcome)

    def put_details(self, outcome: Outcome) -> None:
        if isinstance(outcome, PlannedCleaning) and not isinstance(outcome, Cleaned) and outcome.plan.removals:
            _table(outcome.plan)


def cleaning_kind(outcome: Outcome) -> str:
    """What is true of many such outcomes; empty for others."""
    if isinstance(outcome, Cleaned) and outcome.removed:
        how = f"moved to the trash as {outcome.run.id}" if outcome.run else "deleted"
        return "moved to the trash of HDFS" if outcome.places else how
    if isinstance(outcome, PlannedCleaning) and not outcome.plan.removals:
        return f"nothing to clean{' yet' if _left(outcome.plan) else ''}"
    return "to remove" if isinstance(outcome, PlannedCleaning) else ""


def _left(plan: CleaningPlan) -> bool:
    """Whether something is obsolete that it does not take."""
    return bool(plan.kept_back or plan.waiting or plan.postponed)


def cleaning_counts(outcome: Outcome) -> dict[str, int]:
    """Entries, files and bytes of what is to go, or went."""
    if not isinstance(outcome, PlannedCleaning):
        return {}
    removals = outcome.removed if isinstance(outcome, Cleaned) else outcome.plan.removals
    files, size = sum(one.files for one in removals), sum(one.bytes for one in removals)
    return {"entries": len(removals), "files": files, "bytes": size}


def cleaning_text(outcome: Outcome) -> str:
    if isinstance(outcome, Cleaned):
        return _cleaned(outcome)
    return _planned(outcome.plan) if isinstance(outcome, PlannedCleaning) else ""


def _planned(plan: CleaningPlan) -> str:
    if not plan.removals:
        held = held_back(plan)
        return f"{plan.shown}: nothing to clean" + (f" yet: {held}" if held else "")
    files = human_count(plan.files, "file")
    return f"{plan.shown}: {len(plan.removals)} to remove, {files}, {human_bytes(plan.bytes)}"


def _cleaned(outcome: Cleaned) -> str:
    if not outcome.removed:
        return f"{outcome.location}: left for later"
    count = f"{len(outcome.removed)}" + (f" of {len(outcome.plan.removals)}" if outcome.left else "")
    how = f"moved to the trash as {outcome.run.id}" if outcome.run else "deleted"
    if outcome.places:
        how = "moved to the trash of HDFS"
    return f"{outcome.location}: {count} {how}, {human_bytes(outcome.bytes)}"


def _table(plan: CleaningPlan) -> None:
    """What is to go, and why; of many entries those of one reason in one line."""
    groups: dict[tuple[str, str], list[Removal]] = {}
    is_long = len(plan.removals) > ENTRIES_SHOWN and not VERBOSITY.is_verbose
    for removal in plan.removals:
        state = "leftover" if removal.kind is EntryKind.STAGING else removal.state.value
        key = (state, text_of(removal.reason)) if is_long else (state, removal.name)
        groups.setdefault(key, []).append(removal)
    rows = tuple(
        Row(
            (
                names_in_short(one.name for one in group),
                *([f"{len(group):,}"] * is_long),
                state,
                human_bytes(sum(one.bytes for one in group)),
            ),
            text_of(group[0].reason),
        )
        for (state, _), group in groups.items()
    )
    count = [ScreenColumn("entries", right=True)] * is_long
    columns = (ScreenColumn("name"), *count, ScreenColumn("state"), ScreenColumn("size", right=True))
    FittedTable(columns, "reason", rows).print(console())
    if is_long:
        note("-v names every entry")


class _KeptBack:
    """What stays: a handful of locations are told of one by one, and of more every reason once."""

    def __init__(self) -> None:
        self._first: list[CleaningPlan] = []
        self._count = self._later = 0
        self._young = Freeable()
        self._by_code: dict[Code, tuple[CleaningPlan, Reason, Counter[str]]] = {}

    def add(self, plan: CleaningPlan) -> None:
        """A location, which may keep nothing back."""
        if not _left(plan):
            return
        if VERBOSITY.is_verbose:
            _kept_back(plan)
            return
        self._count += 1
        self._first += [plan] * (self._count <= HANDFUL)
        self._later += len(plan.postponed)
        self._young = freeable_together((self._young, replace(freeable_of(plan), now=0)))
        for _, why in (*plan.kept_back, *((one.name, one.reason) for one in plan.waiting)):
            self._by_code.setdefault(why.code, (plan, why, Counter()))[2][plan.shown] += 1

    def tell(self) -> None:
        """Say it."""
        if self._count <= HANDFUL:
            for plan in self._first:
                _kept_back(plan)
            return
        for plan, why, entries in self._by_code.values():
            count = human_count(entries.total(), "entry", "entries")
            where = human_count(len(entries), "location")
            note(f"kept back: {count} in {where}, as in {plan.shown}: {text_of(why)}")
        if self._young.later:
            note(f"together {self._young.text}")
        if self._later:
            note(f"left for later: {human_count(self._later, 'entry', 'entries')}: more than --max-bytes")
        _ask_for_lists(self._by_code)


def _kept_back(plan: CleaningPlan) -> None:
    """What stays, and why: entries of one reason in one line."""
    by_reason: dict[str, list[str]] = {}
    codes: set[Code] = set()
    for name, reason in (*plan.kept_back, *((one.name, one.reason) for one in plan.waiting)):
        by_reason.setdefault(text_of(reason), []).append(name)
        codes |= reason.codes
    for text, names in by_reason.items():
        named = ", ".join(names) if VERBOSITY.is_verbose or len(names) <= NAMES_SHOWN else names_in_short(names)
        note(f"{plan.shown}: kept back: {named}: {text}")
    if plan.postponed:
        note(f"{plan.shown}: left for later: {some_of(plan.postponed, NAMES_SHOWN)}: more than --max-bytes")
    _ask_for_lists(codes)


def _ask_for_lists(codes: Iterable[Code]) -> None:
    if {Code.TRANSACTION_UNKNOWN, Code.INSERT_OVERWRITE_UNKNOWN}.intersection(codes):
        note("give Hive's lists, or --assume-committed 1h if all that is older is committed")
