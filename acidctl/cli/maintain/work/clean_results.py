"""What `clean` and `apply` say: plans, one outcome per location, and a summary."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from acidctl.acid.reasons import Code
from acidctl.cleaning.outcomes import Cleaned, PlannedCleaning
from acidctl.cli.output.console import console, human_bytes, human_count, note
from acidctl.cli.output.screen import Column, FittedTable, Row
from acidctl.cli.report.outcomes import Outcomes, some
from acidctl.wording import text_of

if TYPE_CHECKING:
    from acidctl.cleaning.plan import CleaningPlan
    from acidctl.cli.report.run_report import RunReport
    from acidctl.outcome import Outcome

NAMES_SHOWN = 8
MOST_NOTES = 20
"""Locations of which it is told one by one what there is to say."""

_MOST_GIVEN = 3


class Printer(Outcomes):
    """Outcomes of cleanings.

    Args:
        given: the places that were typed; empty where nothing but a file was.
    """

    def __init__(self, output: str, run: RunReport, given: Sequence[str] = ()) -> None:
        super().__init__(output, run, _text_of)
        self._given = given
        self._planned_count = 0
        self._cleaned: list[Cleaned] = []

    def plans(self, planned: Iterable[CleaningPlan], *, dry_run: bool) -> list[CleaningPlan]:
        """The plans that remove something, before anything is done; each of all is shown when it is made."""
        plans: list[CleaningPlan] = []
        kept: list[CleaningPlan] = []
        notes: dict[str, None] = {}
        more = 0
        for plan in planned:
            self._planned_count += 1
            notes |= dict.fromkeys(map(text_of, plan.snapshot.state.notes))
            if plan.removals:
                plans.append(plan)
            if plan.kept_back or plan.waiting or plan.postponed:
                more += len(kept) == MOST_NOTES
                kept += [plan] * (len(kept) < MOST_NOTES)
            self.run.saw(plan.snapshot)
            self.put(PlannedCleaning.of(plan), is_last=dry_run or not plan.removals)
            if self.output == "table" and plan.removals:
                _table(plan)
        for plan in kept:
            _kept_back(plan)
        if more:
            others = human_count(more, "more location keeps", "more locations keep")
            note(f"{others} something back: -o jsonl says of each what and why")
        for text in notes:
            note(text)
        return plans

    def done(self, cleaned: Cleaned) -> None:
        """A location's plan was carried out, or as much of it as time allowed."""
        self.put(cleaned)
        if cleaned.removed:
            self._cleaned.append(cleaned)
        for folder in dict.fromkeys(place.rpartition("/")[0] for place in cleaned.places):
            if self.output == "table":
                note(f"moved to {cleaned.plan.snapshot.fs.display(folder)}: undo by moving back from there")

    def summary(self) -> None:
        """What became of all locations together."""
        undo = {one.location: one.run.id for one in self._cleaned if one.run} if self.output == "table" else {}
        if len(undo) == 1:
            (location,) = map(shlex.quote, undo)
            note(f"undo: acidctl restore {location}   free the space: acidctl purge {location}")
        elif undo:
            run_id = next(iter(undo.values()))  # of all of them
            places = self._given if 0 < len(self._given) <= _MOST_GIVEN else ("LOCATION...",)
            where = shlex.join(places)
            note(f"undo: acidctl restore --run {run_id} {where}   free the space: acidctl purge {where}")
        if self._planned_count > 1:
            size = human_bytes(sum(one.bytes for one in self._cleaned))
            self.sum_up(self._planned_count, f"{len(self._cleaned)} cleaned, {size}")


def _text_of(outcome: Outcome) -> str:
    if isinstance(outcome, Cleaned):
        return _cleaned(outcome)
    return _planned(outcome.plan) if isinstance(outcome, PlannedCleaning) else ""


def _planned(plan: CleaningPlan) -> str:
    if not plan.removals:
        return f"{plan.shown}: nothing to clean{' yet' if plan.waiting or plan.postponed else ''}"
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
    """What is to go, and why."""
    rows = tuple(
        Row(
            (removal.name, _state(removal.kind.value, removal.state.value), human_bytes(removal.bytes)),
            text_of(removal.reason),
        )
        for removal in plan.removals
    )
    columns = (Column("name"), Column("state"), Column("size", right=True))
    FittedTable(columns, "reason", rows).print(console())


def _state(kind: str, state: str) -> str:
    return "leftover" if kind == "staging" else state


def _kept_back(plan: CleaningPlan) -> None:
    """What stays, and why: entries of one reason in one line."""
    by_reason: dict[str, list[str]] = {}
    codes: set[Code] = set()
    for name, reason in (*plan.kept_back, *((one.name, one.reason) for one in plan.waiting)):
        by_reason.setdefault(text_of(reason), []).append(name)
        codes |= reason.codes
    for text, names in by_reason.items():
        note(f"{plan.shown}: kept back: {some(names, NAMES_SHOWN)}: {text}")
    if plan.postponed:
        note(f"{plan.shown}: left for later: {some(plan.postponed, NAMES_SHOWN)}: more than --max-bytes")
    if codes & {Code.TRANSACTION_UNKNOWN, Code.INSERT_OVERWRITE_UNKNOWN}:
        note("give Hive's lists, or --assume-committed[=AGE] if all older than AGE (1h) is committed")
