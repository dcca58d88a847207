"""The screen of `acidctl clean`: plans, what stays and why, and what was removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from acidctl.acid.reasons import Code, Reason
from acidctl.acid.state import EntryKind
from acidctl.cleaning.freeable import Freeable, freeable_of, freeable_together, held_back
from acidctl.cleaning.outcomes import Cleaned, PlannedCleaning
from acidctl.cleaning.plan import CleaningPlan, Removal
from acidctl.cli.output.console import console, note
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn
from acidctl.cli.output.verbosity import VERBOSITY
from acidctl.cli.report.folding import HANDFUL
from acidctl.cli.report.verb_screen import NAMES_SHOWN, VerbScreen
from acidctl.outcome import Outcome
from acidctl.wording import human_bytes, human_count, names_in_short, some_of, text_of

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.verbs.maintain_options import CleanOptions

ENTRIES_SHOWN = 20
"""A location with more entries than this gets a line for each reason instead of one for each entry."""
_MOST_GIVEN = 3


class CleanScreen(VerbScreen):
    """Shows plans of cleanings, what stays and why, and what was removed.

    Args:
        given: the locations on the command line; empty if only a file was named.
        undo_line: makes the command that undoes a run, from its id and locations.
    """

    def __init__(
        self,
        output: str,
        run: RunReport,
        options: CleanOptions,
        given: Sequence[str],
        *,
        yes: bool,
        undo_line: Callable[[str, Sequence[str]], str],
    ) -> None:
        is_plan = options.dry_run or options.plan is not None
        super().__init__(output, run, cleaning_text, cleaning_counts, yes=yes, is_plan=is_plan)
        self._given, self._undo_line = given, undo_line
        self._planned = 0
        self._plans_something = False
        self._kept = _KeptBack()
        self._notes: dict[str, None] = {}
        self._cleaned: list[Cleaned] = []

    def put(self, outcome: Outcome, *, is_last: bool = True) -> None:
        super().put(outcome, is_last=is_last)
        if isinstance(outcome, Cleaned):
            self._done(outcome)
        elif isinstance(outcome, PlannedCleaning):
            plan = outcome.plan
            self._planned += 1
            self._plans_something = self._plans_something or bool(plan.removals)
            self._notes |= dict.fromkeys(map(text_of, plan.snapshot.state.notes))
            self._kept.add(plan)

    def _done(self, cleaned: Cleaned) -> None:
        if cleaned.removed:
            self._cleaned.append(cleaned)
        for folder in dict.fromkeys(path.rpartition("/")[0] for path in cleaned.places):
            if self.is_table:
                note(f"moved to {cleaned.plan.snapshot.fs.display(folder)}: undo by moving back from there")

    def plans_are_shown(self) -> None:
        kept, self._kept = self._kept, _KeptBack()
        kept.tell()
        notes, self._notes = self._notes, {}
        for text in notes:
            note(text)
        self.tell_strangers()

    def end(self) -> None:
        self.tell()
        self.plans_are_shown()
        if self.is_plan:
            return
        undo = {cleaned.location: cleaned.run.id for cleaned in self._cleaned if cleaned.run} if self.is_table else {}
        if undo:
            run_id = next(iter(undo.values()))  # all locations share it
            given = self._given if 0 < len(self._given) <= _MOST_GIVEN else ("LOCATION...",)
            note(f"undo: {self._undo_line(run_id, tuple(undo) if len(undo) == 1 else given)}")
        if self._planned > 1:
            size = human_bytes(sum(cleaned.bytes for cleaned in self._cleaned))
            self.sum_up(self._planned, f"{len(self._cleaned)} cleaned, {size}")

    def exit_status(self, speaks: bool) -> int:
        return self.status if self.is_plan and self._plans_something else super().exit_status(speaks)

    def kind_of(self, outcome: Outcome) -> str:
        return cleaning_kind(outcome) or super().kind_of(outcome)

    def code_of(self, outcome: Outcome) -> str:
        if isinstance(outcome, PlannedCleaning) and not outcome.plan.removals:
            held = (*(why for _, why in outcome.plan.kept_back), *(waiting.reason for waiting in outcome.plan.waiting))
            return held[0].code if held else ""
        return super().code_of(outcome)

    def put_details(self, outcome: Outcome) -> None:
        if isinstance(outcome, PlannedCleaning) and not isinstance(outcome, Cleaned) and outcome.plan.removals:
            _table(outcome.plan)


def cleaning_kind(outcome: Outcome) -> str:
    """Return the heading under which outcomes like this one are folded; empty for other outcomes."""
    if isinstance(outcome, Cleaned) and outcome.removed:
        return _removed_how(outcome)
    if isinstance(outcome, PlannedCleaning) and not outcome.plan.removals:
        return f"nothing to clean{' yet' if _keeps_obsolete(outcome.plan) else ''}"
    return "to remove" if isinstance(outcome, PlannedCleaning) else ""


def _keeps_obsolete(plan: CleaningPlan) -> bool:
    return bool(plan.kept_back or plan.waiting or plan.postponed)


def cleaning_counts(outcome: Outcome) -> dict[str, int]:
    """Return the entries, files and bytes that are to be removed, or were."""
    if not isinstance(outcome, PlannedCleaning):
        return {}
    removals = outcome.removed if isinstance(outcome, Cleaned) else outcome.plan.removals
    files, size = sum(removal.files for removal in removals), sum(removal.bytes for removal in removals)
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
    return f"{outcome.location}: {count} {_removed_how(outcome)}, {human_bytes(outcome.bytes)}"


def _removed_how(outcome: Cleaned) -> str:
    if outcome.places:
        return "moved to the trash of HDFS"
    return f"moved to the trash as {outcome.run.id}" if outcome.run else "deleted"


def _table(plan: CleaningPlan) -> None:
    groups: dict[tuple[str, str], list[Removal]] = {}
    is_long = len(plan.removals) > ENTRIES_SHOWN and not VERBOSITY.is_verbose
    for removal in plan.removals:
        state = "leftover" if removal.kind is EntryKind.STAGING else removal.state.value
        key = (state, text_of(removal.reason)) if is_long else (state, removal.name)
        groups.setdefault(key, []).append(removal)
    rows = tuple(
        Row(
            (
                names_in_short(removal.name for removal in group),
                *([f"{len(group):,}"] * is_long),
                state,
                human_bytes(sum(removal.bytes for removal in group)),
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
    """Gathers what stays: a handful of locations are printed one by one, more of them one line for each reason."""

    def __init__(self) -> None:
        self._first: list[CleaningPlan] = []
        self._count = self._later = 0
        self._young = Freeable()
        self._by_code: dict[Code, tuple[CleaningPlan, Reason, Counter[str]]] = {}

    def add(self, plan: CleaningPlan) -> None:
        if not _keeps_obsolete(plan):
            return
        if VERBOSITY.is_verbose:
            _kept_back(plan)
            return
        self._count += 1
        self._first += [plan] * (self._count <= HANDFUL)
        self._later += len(plan.postponed)
        self._young = freeable_together((self._young, replace(freeable_of(plan), now=0)))
        for _, why in (*plan.kept_back, *((waiting.name, waiting.reason) for waiting in plan.waiting)):
            self._by_code.setdefault(why.code, (plan, why, Counter()))[2][plan.shown] += 1

    def tell(self) -> None:
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
    by_reason: dict[str, list[str]] = {}
    codes: set[Code] = set()
    for name, reason in (*plan.kept_back, *((waiting.name, waiting.reason) for waiting in plan.waiting)):
        by_reason.setdefault(text_of(reason), []).append(name)
        codes |= reason.codes
    for text, names in by_reason.items():
        named = ", ".join(names) if VERBOSITY.is_verbose or len(names) <= NAMES_SHOWN else names_in_short(names)
        note(f"{plan.shown}: kept back: {named}: {text}")
    if plan.postponed:
        note(f"{plan.shown}: left for later: {some_of(plan.postponed, NAMES_SHOWN)}: more than --max-bytes")
    _ask_for_lists(codes)


def _ask_for_lists(codes: Iterable[Code]) -> None:
    if Code.TRANSACTION_UNKNOWN in set(codes):
        note("give Hive's lists, or --assume-committed 1h if all that is older is committed")
