"""The screen of `acidctl repair`: what is wrong, what mends it, and what was done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from acidctl.base.errors import ExitStatus
from acidctl.cli.output.console import console, note, put_line, warn
from acidctl.cli.output.screen import FittedTable, Row, ScreenColumn
from acidctl.cli.report.verb_screen import VerbScreen
from acidctl.location.change.journal import RunState
from acidctl.outcome import Outcome, Result
from acidctl.repair.plan import RepairPlan
from acidctl.wording import human_bytes, human_count

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport


class RepairScreen(VerbScreen):
    """Shows the plan of every location, and the result of each that was repaired.

    Args:
        undo_line: makes the command that undoes a run, from its id and locations.
    """

    def __init__(
        self, output: str, run: RunReport, undo_line: Callable[[str, Sequence[str]], str], *, yes: bool, is_plan: bool
    ) -> None:
        super().__init__(output, run, _text_of, None, yes=yes, is_plan=is_plan)
        self._undo_line, self._is_refused = undo_line, False
        self._repaired: dict[str, list[str]] = {}  # locations by the id of the run

    def put(self, outcome: Outcome, *, is_last: bool = True) -> None:
        if isinstance(outcome, RepairPlan) and outcome.result is not Result.REPAIRED:
            self._warn_of_interrupted(outcome)
            super().put(outcome, is_last=is_last)
            self._put_plan(outcome)
            return
        super().put(outcome, is_last=is_last)
        if isinstance(outcome, RepairPlan):
            for run in outcome.interrupted if self.is_table else ():
                put_line(f"{outcome.location}: {run.id} finished")
            if outcome.run:
                self._repaired.setdefault(outcome.run.id, []).append(outcome.location)

    def _warn_of_interrupted(self, outcome: RepairPlan) -> None:
        for run in outcome.interrupted:
            state = "being undone" if run.state is RunState.UNDOING else "interrupted"
            note(
                f"{outcome.location}: {run.id} ({', '.join(run.kinds)} of {', '.join(run.paths)}) was {state}: it is "
                "finished first; until then readers see whole files, old or new"
            )

    def _put_plan(self, outcome: RepairPlan) -> None:
        self._is_refused = self._is_refused or bool(outcome.refused)
        if self.is_table and outcome.fixes:
            cells = ((fix.path, fix.kind.value, human_bytes(fix.bytes), fix.problem) for fix in outcome.fixes)
            rows = tuple(Row(row, fix.remedy) for row, fix in zip(cells, outcome.fixes, strict=True))
            columns = (
                ScreenColumn("path"), ScreenColumn("kind"), ScreenColumn("size", right=True), ScreenColumn("problem"),
            )  # fmt: skip
            FittedTable(columns, "repair", rows).print(console())
        for item in outcome.refused:
            warn(f"{outcome.location}: {item.path} cannot be repaired safely ({item.kind}): {item.why}")
        for hint in dict.fromkeys(item.hint for item in outcome.refused if item.hint):
            note(hint)

    def plans_are_shown(self) -> None:
        self.tell_strangers()
        self.unknown.clear()

    def end(self) -> None:
        self.tell_strangers()
        # Repairs of one location are undone from the newest back.
        for run_id, places in reversed(self._repaired.items()) if self.is_table else ():
            note(f"undo: {self._undo_line(run_id, places if len(places) == 1 else ['LOCATION...'])}")
        if self._is_refused and self.status in (0, ExitStatus.NOT_LOOKED_AT):
            self.status = ExitStatus.REFUSED  # a location that stays broken is not a success


def _text_of(outcome: Outcome) -> str:
    if outcome.result is Result.NOTHING_TO_DO:
        return f"{outcome.location}: nothing to repair"
    if not isinstance(outcome, RepairPlan):
        return ""
    if outcome.run:
        count = human_count(len(outcome.run.paths), "repair")
        return f"{outcome.location}: {count} done as {outcome.run.id}, {human_bytes(outcome.run.bytes)}"
    if outcome.result is Result.REPAIRED or not outcome.fixes:
        return ""
    count = human_count(len(outcome.fixes), "repair")
    return f"{outcome.location}: {count}, {human_bytes(outcome.bytes)}"
