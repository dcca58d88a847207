"""What `acidctl restore` says: the runs in a trash, what is to come back, and what came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from acidctl.cleaning.trash import TRASH, TrashRun
from acidctl.cli.maintain.clean_results import MOST_NOTES, NAMES_SHOWN, Results, some
from acidctl.cli.output.console import Records, human_bytes, human_count, note, put_line

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.find import Found

Changes = tuple[str, ...] | None
"""How the state differs from the one before the cleaning; None where that is not known."""

_PHASES = {
    "staged": "incomplete: interrupted, nothing can be restored from it",
    "restored": "restored already",
    "purged": "incomplete: it was being purged, nothing can be restored from it",
}


def _phase(run: TrashRun) -> str:
    return f"cannot be used: {run.problem}" if run.problem else _PHASES[run.state]


def listed(every: Sequence[tuple[Found, Sequence[TrashRun]]], output: str, records: Records, *, is_one: bool) -> None:
    """Print the runs of one location by their entries, those of several by their ids."""
    if not every:
        note("the trash is empty")
    together: dict[str, list[TrashRun]] = {}
    for found, its_runs in every:
        for run in its_runs:
            together.setdefault(run.id, []).append(run)
            records.put(_record(found.shown, run, "in-trash"))
    if output != "table":
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


class Printer(Results):
    """What is restored, location by location."""

    def __init__(self, output: str, run: RunReport) -> None:
        super().__init__(output, run)
        self._restored = 0
        self._bytes = 0
        self._changed: list[str] = []

    def planned(self, found: Found, run: TrashRun, *, dry_run: bool) -> None:
        """Before it is done."""
        if dry_run:
            self.run.add(found.shown, "planned", names=len(run.names))
            self._put(_record(found.shown, run, "planned"))
        if self._output == "table":
            count = f"{human_count(len(run.names), 'entry', 'entries')}, {human_bytes(run.bytes)}"
            what = f"{count}: {some(run.names, NAMES_SHOWN)}" if run.is_complete else _phase(run)
            put_line(f"{found.shown}: {run.id}: {what}")

    def done(self, found: Found, run: TrashRun, names: tuple[str, ...], changes: Changes, *, alone: bool) -> None:
        """A run is back."""
        self._restored += 1
        self._bytes += run.bytes
        self.run.add(found.shown, "restored", restored=run.bytes, names=len(names))
        self._put(_record(found.shown, run, "restored") | {"changes": None if changes is None else list(changes)})
        if changes:
            self._changed.append(found.shown)
        if self._output != "table":
            return
        shown = " ".join(names) if alone else some(names, NAMES_SHOWN)
        what = f"{len(names)} restored: {shown}" if names else f"{run.id} was restored already"
        put_line(f"{found.shown}: {what}")
        if changes == () and alone:
            note("the state is the one before that cleaning")
        elif changes and len(self._changed) <= MOST_NOTES:
            where = "" if alone else f"{found.shown}: "
            note(f"{where}otherwise than before that cleaning: {'; '.join(changes)}")

    def summary(self, locations: int) -> None:
        """What became of all locations together."""
        if self._changed:
            count = human_count(len(self._changed), "location differs", "locations differ")
            note(f"{count} from the state before that cleaning: others wrote there meanwhile")
        self._sum_up(locations, f"{self._restored} restored, {human_bytes(self._bytes)}")


def _record(location: str, run: TrashRun, result: str) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "location": location,
        "result": result,
        "trashRun": run.id,
        "isComplete": run.is_complete,
        "names": list(run.names),
        "bytes": run.bytes,
    }
