"""`acidctl restore`: bring back what a cleaning run moved to the trash."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from acidctl.cli.maintain.many_locations import Stop, Work, deadline_option, jobs_option, with_tables
from acidctl.cli.options.shared import (
    changed_storage_options,
    examples,
    locations_argument,
    lock_options,
    output_option,
    report_options,
    typed_option,
)
from acidctl.cli.output.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from acidctl.cleaning.trash import TrashRun
    from acidctl.cli.maintain.restore_results import Changes, Printer
    from acidctl.cli.report.run_report import RunReport
    from acidctl.location.find import Found
    from acidctl.location.lock import Locking


@click.command(
    "restore",
    epilog=examples(
        "acidctl restore orders",
        "acidctl restore --list /warehouse/sales.db",
        "acidctl restore --dry-run /warehouse/sales.db",
        "acidctl restore --yes --run 20261121T2224 /warehouse/sales.db",
    ),
)
@report_options
@locations_argument()
@typed_option("--list", "list_only", is_flag=True, help="List the runs in the trash and stop.")
@typed_option("--run", "run_id", metavar="ID", help="Which run, or how its id begins; the newest by default.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be restored and stop.")
@typed_option("-y", "--yes", is_flag=True, help="Do not ask.")
@lock_options
@deadline_option
@jobs_option
@changed_storage_options
@output_option("table", "json", "jsonl", default="table")
def command(
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
    """Undo a cleaning: move back what it took from every location at or below LOCATION.

    A cleaning of many locations has one id in all of them, and all of it is brought back; that is asked about, where
    one location that was named itself is restored at once. With --run, it is the newest run of each location whose id
    begins so.

    The files are compared with those that were moved, and the state of the location with the one before the cleaning;
    where others wrote meanwhile, the difference is told.
    """
    from acidctl.cli.maintain.restore_results import Printer, listed
    from acidctl.cli.options.shared import refuse_unused
    from acidctl.cli.output.console import human_bytes, human_count

    if list_only:
        refuse_unused("--list", "run_id", "dry_run", "yes", "jobs", "deadline", "lock", "lock_wait", "break_lock")
    work = Work(yes, locking, jobs, Stop.after(deadline))
    printer = Printer(output, run)
    every = _runs(locations, storage, work, printer)
    is_one = len(every) == 1 and every[0].found.is_given
    if list_only:
        listed([(place.found, place.runs) for place in every], output, printer.records, is_one=is_one)
        return printer.status
    due = _chosen(every, run_id, " ".join(locations), printer)
    if dry_run or not is_one:
        for place, one in due:
            printer.planned(place.found, one, dry_run=dry_run)
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
    from acidctl.cleaning.trash import list_runs
    from acidctl.errors import AcidctlError
    from acidctl.location.find import once

    every = []
    places = once(_places(locations, storage, printer))
    for found, runs in work.each(places, lambda found: list_runs(found.fs, found.location.path)):
        if isinstance(runs, AcidctlError):
            printer.failed(found.shown, runs)
        elif runs is None:
            printer.not_begun(found.shown)
        elif runs:
            every.append(_Place(found, tuple(runs)))
    return every


def _places(locations: tuple[str, ...], storage: dict[str, str], printer: Printer) -> Iterator[Found]:
    """What was named first, whatever it is; then the locations below it, and the directories of their tables."""
    from acidctl.location.find import Found, find
    from acidctl.location.lists import SnapshotLists
    from acidctl.location.walk import Location, Observer
    from acidctl.storage.registry import open_location

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
    from acidctl.cleaning.trash import Phase
    from acidctl.cli.maintain.clean_results import MOST_NOTES
    from acidctl.cli.output.console import human_count, note
    from acidctl.errors import NotFoundError

    usable = (Phase.IN_TRASH, Phase.RESTORED, Phase.DAMAGED)
    if not every and not printer.is_whole:
        return []
    if not every:
        why = "there is no trash at or below it, or it was purged"
        raise NotFoundError(f"nothing to restore in {given}", why, "acidctl purge and --no-trash leave nothing behind")
    newest = max((run.id for place in every for run in place.runs if run.phase in usable), default="")
    due, passed_over, others = [], [], 0
    for place in every:
        matching = [run for run in place.runs if run.id.startswith(newest if run_id is None else run_id)]
        chosen = next((run for run in reversed(matching) if run.phase in usable), None)
        broken = [run for run in (place.runs if chosen and run_id is None else matching) if run.phase not in usable]
        if chosen:
            due.append((place, chosen))
            broken = [run for run in broken if run.id > chosen.id]
        elif not matching:
            others += any(run.phase in usable for run in place.runs)
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
    from acidctl.errors import AcidctlError

    with progress("restoring", len(due)) as bar:
        for (place, run), done in work.each(due, lambda one: _restored(*one, work)):
            bar.advance()
            if isinstance(done, AcidctlError):
                printer.failed(place.found.shown, done)
            elif done is None:
                printer.not_begun(place.found.shown)
            else:
                printer.done(place.found, run, *done, alone=len(due) == 1)
    if len(due) > 1:
        printer.summary(len(due))


def _restored(place: _Place, run: TrashRun, work: Work) -> tuple[tuple[str, ...], Changes]:
    """The names that came back, and how the state differs from the one before; None where that is not known."""
    from acidctl.cleaning.trash import changes_since, list_runs, restore
    from acidctl.cli.output.console import warn
    from acidctl.errors import AcidctlError, ConflictError

    fs, path = place.found.fs, place.found.location.path
    with work.locking.at(fs, path):
        now = next((one for one in list_runs(fs, path) if one.id == run.id), None)
        if now is None:
            why = "somebody else restored or purged it"
            raise ConflictError(f"{fs.display(run.path)} has gone meanwhile", why, "see `acidctl restore --list`")
        names = restore(fs, now)
        try:
            return names, changes_since(fs, now)
        except AcidctlError as error:  # what is back is back
            warn(f"{place.found.shown}: its state could not be compared with the one before: {error}")
            return names, None
