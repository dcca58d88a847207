"""What `acidctl restore` says: the runs in a trash, what is to come back, and what came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acidctl.cleaning.outcomes import InTrash, Restored, in_trash
from acidctl.cleaning.trash import TRASH, TrashRun
from acidctl.cli.maintain.work.clean_results import MOST_NOTES, NAMES_SHOWN
from acidctl.cli.output.console import human_bytes, human_count, note, put_line, warn
from acidctl.cli.report.outcomes import Outcomes, some

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.find import Found
    from acidctl.outcome import Outcome

_PHASES = {
    "staged": "incomplete: interrupted, nothing can be restored from it",
    "restored": "restored already",
    "purged": "incomplete: it was being purged, nothing can be restored from it",
}


def _phase(run: TrashRun) -> str:
    return f"cannot be used: {run.problem}" if run.problem else _PHASES[run.state]


def listed(every: Sequence[tuple[Found, Sequence[TrashRun]]], printer: Printer, *, is_one: bool) -> None:
    """Print the runs of one location by their entries, those of several by their ids."""
    if not every:
        note("the trash is empty")
    together: dict[str, list[TrashRun]] = {}
    for found, its_runs in every:
        for run in its_runs:
            together.setdefault(run.id, []).append(run)
            if printer.output != "table":
                printer.put(in_trash(found.fs, run))
    if printer.output != "table":
        return
    for run_id, runs in sorted(together.items()):
        whole = [run for run in runs if run.is_complete]
        count = human_count(sum(len(run.names) for run in whole), "entry", "entries")
        what = f"{count}  {human_bytes(sum(run.bytes for run in whole))}"
        if is_one:
            names = " ".join(whole[0].names) if whole else ""
            put_line(f"{run_id}  {what}  {names}" if whole else f"{run_id or TRASH}  {_phase(runs[0])}")
            continue
        rest = f"  ({len(runs) - len(whole)} incomplete or damaged)" if len(whole) < len(runs) else ""
        put_line(f"{run_id or TRASH}  {human_count(len(runs), 'location')}  {what}{rest}")


class Printer(Outcomes):
    """What is restored, location by location.

    Attributes:
        is_alone: there is one location.
    """

    def __init__(self, output: str, run: RunReport) -> None:
        super().__init__(output, run, self._text)
        self.is_alone = False
        self._restored: list[Restored] = []
        self._changed = 0

    def planned(self, outcome: InTrash, *, dry_run: bool) -> None:
        """Before it is done."""
        self.put(outcome, is_last=dry_run)

    def done(self, outcome: Restored) -> None:
        """A run is back."""
        self._restored.append(outcome)
        self.put(outcome)
        if outcome.not_compared:
            why = outcome.not_compared
            warn(f"{outcome.location}: its state could not be compared with the one before: {why}")
        changes = outcome.changes
        self._changed += bool(changes)
        if self.output != "table":
            return
        if changes == () and self.is_alone:
            note("the state is the one before that cleaning")
        elif changes and self._changed <= MOST_NOTES:
            where = "" if self.is_alone else f"{outcome.location}: "
            note(f"{where}otherwise than before that cleaning: {'; '.join(changes)}")

    def summary(self, locations: int) -> None:
        """What became of all locations together."""
        if self._changed:
            count = human_count(self._changed, "location differs", "locations differ")
            note(f"{count} from the state before that cleaning: others wrote there meanwhile")
        size = human_bytes(sum(one.run.bytes for one in self._restored))
        self.sum_up(locations, f"{len(self._restored)} restored, {size}")

    def _text(self, outcome: Outcome) -> str:
        if isinstance(outcome, Restored):
            names = " ".join(outcome.names) if self.is_alone else some(outcome.names, NAMES_SHOWN)
            done = f"{len(outcome.names)} restored: {names}"
            return f"{outcome.location}: {done if outcome.names else f'{outcome.run.id} was restored already'}"
        if not isinstance(outcome, InTrash):
            return ""
        run = outcome.run
        count = f"{human_count(len(run.names), 'entry', 'entries')}, {human_bytes(run.bytes)}"
        what = f"{count}: {some(run.names, NAMES_SHOWN)}" if run.is_complete else _phase(run)
        return f"{outcome.location}: {run.id}: {what}"
