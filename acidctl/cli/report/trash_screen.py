"""The screens of `acidctl restore` and `acidctl purge`, for cleanings and repairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acidctl.cleaning.outcomes import InTrash, Restored
from acidctl.cleaning.trash import TRASH
from acidctl.cli.output.console import note, put_line, put_text, warn
from acidctl.cli.report.verb_screen import NAMES_SHOWN, VerbScreen
from acidctl.location.change.journal import Run
from acidctl.outcome import Outcome, Result
from acidctl.repair.backup import InBackup, RepairRun
from acidctl.wording import human_bytes, human_count, some_of

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.verbs.maintain_options import PurgeOptions, RestoreOptions

MOST_NOTES = 20
"""The most locations that get remarks of their own."""

_TO_PURGE = {
    "staged": "incomplete: interrupted",
    "restored": "restored; what is left is to be removed",
    "purged": "incomplete: it was being purged",
}
_TO_RESTORE = {
    "staged": "incomplete: interrupted, nothing can be restored from it",
    "restored": "restored already",
    "purged": "incomplete: it was being purged, nothing can be restored from it",
}


def trash_counts(outcome: Outcome) -> dict[str, int]:
    """Return the number of runs, their entries and bytes."""
    if not isinstance(outcome, InTrash | InBackup):
        return {}
    return {"runs": 1, "entries": len(_names(outcome.run)), "bytes": outcome.run.bytes}


class PurgeScreen(VerbScreen):
    """Shows what is deleted permanently."""

    def __init__(self, output: str, run: RunReport, options: PurgeOptions, *, yes: bool) -> None:
        super().__init__(output, run, _purge_text, trash_counts, yes=yes, is_plan=options.dry_run)
        self._nothing = "nothing to purge" if options.older_than is None else "nothing that old to purge"
        self._due = 0
        self._deleted: list[Run] = []

    def put(self, outcome: Outcome, *, is_last: bool = True) -> None:
        self._due += outcome.result is Result.IN_TRASH
        if isinstance(outcome, InTrash | InBackup) and outcome.result is Result.PURGED:
            self._deleted.append(outcome.run)
        super().put(outcome, is_last=is_last)

    def end(self) -> None:
        self.tell()
        if not self.is_table:
            return
        if not self._due and self.is_whole:
            put_line(self._nothing)
        elif self._due and not self.is_plan:
            size = human_bytes(sum(run.bytes for run in self._deleted))
            put_line(f"{human_count(len(self._deleted), 'run')} deleted, {size}")

    def kind_of(self, outcome: Outcome) -> str:
        return "to delete for good" if outcome.result is Result.IN_TRASH else super().kind_of(outcome)


def _purge_text(outcome: Outcome) -> str:
    if not isinstance(outcome, InTrash | InBackup) or outcome.result is Result.PURGED:
        return ""
    run = outcome.run
    return f"{outcome.shown}: {_amount(run) if run.can_be_undone else _TO_PURGE[run.state]}"


def _names(run: Run) -> tuple[str, ...]:
    return run.paths if isinstance(run, RepairRun) else tuple(step.source for step in run.steps)


def _amount(run: Run) -> str:
    kinds = f"{', '.join(run.kinds)}: " if isinstance(run, RepairRun) else ""
    return f"{kinds}{human_count(len(_names(run)), 'entry', 'entries')}, {human_bytes(run.bytes)}"


class RestoreScreen(VerbScreen):
    """Shows what is restored, location by location."""

    def __init__(self, output: str, run: RunReport, options: RestoreOptions, *, yes: bool) -> None:
        is_plan = options.list or options.dry_run
        super().__init__(output, run, self._text, trash_counts, yes=yes, is_plan=is_plan)
        self._lists, self._is_empty = options.list, True
        self._due = self._changed = 0
        self._restored: list[InTrash | InBackup] = []
        self._listed: list[tuple[str, Run]] = []

    @property
    def _is_alone(self) -> bool:
        return self._due <= 1

    def put(self, outcome: Outcome, *, is_last: bool = True) -> None:
        self._is_empty = False
        if self._lists and self.is_table and isinstance(outcome, InTrash | InBackup):
            self._listed.append((outcome.location, outcome.run))
            return
        self._due += outcome.result is Result.PLANNED
        super().put(outcome, is_last=is_last)
        if isinstance(outcome, InTrash | InBackup) and outcome.result is Result.RESTORED:
            self._restored.append(outcome)
        if isinstance(outcome, Restored):
            self._remark(outcome)

    def _remark(self, outcome: Restored) -> None:
        if outcome.not_compared:
            why = outcome.not_compared
            warn(f"{outcome.location}: its state could not be compared with the one before: {why}")
        changes = outcome.changes
        self._changed += bool(changes)
        if not self.is_table:
            return
        if changes == () and self._is_alone:
            note("the state is the one before that cleaning")
        elif changes and self._changed <= MOST_NOTES:
            where = "" if self._is_alone else f"{outcome.location}: "
            note(f"{where}otherwise than before that cleaning: {'; '.join(changes)}")

    def end(self) -> None:
        if self._lists:
            self._put_list()
            return
        self.tell()
        if self.is_plan or self._is_alone:
            return
        if self._changed:
            count = human_count(self._changed, "location differs", "locations differ")
            note(f"{count} from the state before that cleaning: others wrote there meanwhile")
        size = human_bytes(sum(restored.run.bytes for restored in self._restored))
        self.sum_up(self._due, f"{len(self._restored)} restored, {size}")

    def kind_of(self, outcome: Outcome) -> str:
        return {Result.PLANNED: "to restore", Result.RESTORED: "restored"}.get(outcome.result, super().kind_of(outcome))

    def _text(self, outcome: Outcome) -> str:
        if isinstance(outcome, Restored):
            names = " ".join(outcome.names) if self._is_alone else some_of(outcome.names, NAMES_SHOWN)
            done = f"{len(outcome.names)} restored: {names}"
            return f"{outcome.location}: {done if outcome.names else f'{outcome.run.id} was restored already'}"
        if not isinstance(outcome, InTrash | InBackup):
            return ""
        run = outcome.run
        if outcome.result is Result.RESTORED:
            return f"{outcome.location}: {run.id} undone: {some_of(_names(run), NAMES_SHOWN)}"
        what = f"{_amount(run)}: {some_of(_names(run), NAMES_SHOWN)}" if run.can_be_undone else _phase(run)
        return f"{outcome.location}: {run.id}: {what}"

    def _put_list(self) -> None:
        """Print the runs of one location by their entries, those of several by their ids."""
        if self._is_empty:
            note("nothing to restore")
        is_one = len({location for location, _ in self._listed}) == 1
        together: dict[str, list[Run]] = {}
        for _, run in self._listed:
            together.setdefault(run.id, []).append(run)
        for run_id, runs in sorted(together.items()):
            put_text(f"{run_id or TRASH}  {_of_one(runs[0]) if is_one else _of_many(runs)}")


def _of_one(run: Run) -> str:
    return f"{_amount(run)}  {' '.join(_names(run))}" if run.can_be_undone else _phase(run)


def _of_many(runs: Sequence[Run]) -> str:
    whole = [run for run in runs if run.can_be_undone]
    count = human_count(sum(len(_names(run)) for run in whole), "entry", "entries")
    rest = f"  ({len(runs) - len(whole)} incomplete or damaged)" if len(whole) < len(runs) else ""
    size = human_bytes(sum(run.bytes for run in whole))
    return f"{human_count(len(runs), 'location')}  {count}  {size}{rest}"


def _phase(run: Run) -> str:
    return f"cannot be used: {run.problem}" if run.problem else _TO_RESTORE[run.state]
