"""What `acidctl restore` does: find the runs in every trash, choose, ask, and move them back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.cleaning.outcomes import in_trash
from acidctl.cleaning.trash import TrashRun, list_runs
from acidctl.cleaning.undo import USABLE, bring_back, newest
from acidctl.cli.maintain.work.clean_results import MOST_NOTES
from acidctl.cli.maintain.work.restore_results import Printer, listed
from acidctl.cli.options.many_locations import TIME_IS_UP, Stop, Work, with_tables
from acidctl.cli.options.shared import refuse_unused
from acidctl.cli.output.console import human_bytes, human_count, note
from acidctl.cli.output.progress import progress
from acidctl.errors import AcidctlError, NotFoundError
from acidctl.location.find import Found, find, once
from acidctl.location.lists import SnapshotLists
from acidctl.location.walk import Location, Observer
from acidctl.outcome import Result
from acidctl.storage.registry import open_location

if TYPE_CHECKING:
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.lock import Locking


def work(
    *,
    locations: tuple[str, ...],
    list_only: bool,
    run_id: str | None,
    dry_run: bool,
    yes: bool,
    locking: Locking,
    deadline: float | None,
    jobs: int,
    storage: dict[str, str],
    output: str,
    run: RunReport,
) -> int:
    """Restore as asked; the exit status."""
    if list_only:
        refuse_unused("--list", "run_id", "dry_run", "yes", "jobs", "deadline", "lock", "lock_wait", "break_lock")
    work = Work(yes, locking, jobs, Stop.after(deadline))
    printer = Printer(output, run)
    every = _runs(locations, storage, work, printer)
    is_one = len(every) == 1 and every[0].found.is_given
    if list_only:
        listed([(place.found, place.runs) for place in every], printer, is_one=is_one)
        return printer.status
    due = _chosen(every, run_id, " ".join(locations), printer)
    printer.is_alone = len(due) == 1
    if dry_run or not is_one:
        for place, one in due:
            printer.planned(in_trash(place.found.fs, one, Result.PLANNED), dry_run=dry_run)
    if dry_run or not due:
        return printer.status
    if len(due) > 1 or not due[0][0].found.is_given:
        count, size = human_count(len(due), "location"), human_bytes(sum(one.bytes for _, one in due))
        work.confirm(f"{count} ({size}) would be restored", f"Restore: {count}, {size}?", "nothing was restored")
    _restore(due, work, printer)
    return printer.status


@dataclass(frozen=True, slots=True)
class _Place:
    """A location with the runs in its trash, oldest first."""

    found: Found
    runs: tuple[TrashRun, ...]


_Due = list[tuple[_Place, "TrashRun"]]


def _runs(locations: tuple[str, ...], storage: dict[str, str], work: Work, printer: Printer) -> list[_Place]:
    """Every place that has a trash."""
    every = []
    places = once(_places(locations, storage, printer))
    for found, runs in work.each(places, lambda found: list_runs(found.fs, found.location.path)):
        if isinstance(runs, AcidctlError):
            printer.failed(found.shown, runs)
        elif runs is None:
            printer.postponed(found.shown, TIME_IS_UP)
        elif runs:
            every.append(_Place(found, tuple(runs)))
    return every


def _places(locations: tuple[str, ...], storage: dict[str, str], printer: Printer) -> Iterator[Found]:
    """What was named first, whatever it is; then the locations below it, and the directories of their tables."""
    for text in locations:
        fs, path = open_location(text, storage)
        yield Found(fs, Location(path, ""), is_given=True)
    below = find(locations, storage, SnapshotLists(), Observer(lambda error: printer.failed("", error)), looks=False)
    for found, _ in with_tables(below, locations, storage):
        yield found


def _chosen(every: Sequence[_Place], run_id: str | None, given: str, printer: Printer) -> _Due:
    """One run of each location: the newest that matches.

    Nothing was moved by a run without a manifest: those are passed over, as long as there is another.

    Raises:
        NotFoundError: there is none at all.
    """
    if not every and not printer.is_whole:
        return []
    if not every:
        why = "there is no trash at or below it, or it was purged"
        raise NotFoundError(f"nothing to restore in {given}", why, "acidctl purge and --no-trash leave nothing behind")
    last = max((run.id for place in every for run in place.runs if run.state in USABLE), default="")
    due, passed_over, others = [], [], 0
    for place in every:
        matching = [run for run in place.runs if run.id.startswith(last if run_id is None else run_id)]
        chosen = newest(matching)
        broken = [run for run in (place.runs if chosen and run_id is None else matching) if run.state not in USABLE]
        if chosen:
            due.append((place, chosen))
            broken = [run for run in broken if run.id > chosen.id]
        elif not matching:
            others += any(run.state in USABLE for run in place.runs)
        passed_over += [(place, run) for run in broken[-1:]]
    if not due and passed_over:
        return passed_over[-1:]  # which says why it cannot be restored
    if not due:
        raise NotFoundError(f"no such run in the trash of {given}", "", "see `acidctl restore --list`")
    for place, run in passed_over[:MOST_NOTES]:
        note(f"{place.found.shown}: passed over {run.id}: it was interrupted, nothing can be restored from it")
    if others:
        count = human_count(others, "location holds", "locations hold")
        note(f"{count} other runs: --list shows them, --run ID restores one")
    return due


def _restore(due: _Due, work: Work, printer: Printer) -> None:
    with progress("restoring", len(due)) as bar:
        for (place, _), done in work.each(due, lambda one: bring_back(one[0].found.fs, one[1], work.locking)):
            bar.advance()
            if isinstance(done, AcidctlError):
                printer.failed(place.found.shown, done)
            elif done is None:
                printer.postponed(place.found.shown, TIME_IS_UP)
            else:
                printer.done(done)
    if len(due) > 1:
        printer.summary(len(due))
