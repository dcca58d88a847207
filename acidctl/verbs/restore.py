"""Undo cleanings and repairs, which a location keeps until they are purged: move back what they took."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, NotFoundError
from acidctl.base.parallel import each
from acidctl.cleaning.apply import bring_back, delete
from acidctl.cleaning.outcomes import InTrash, in_trash
from acidctl.cleaning.trash import TrashRun, trash_runs
from acidctl.location.change.journal import RunState
from acidctl.location.change.lock import Locking
from acidctl.location.change.work_log import LogEntry, read_log
from acidctl.location.find import once
from acidctl.location.table_location import TableLocation
from acidctl.outcome import TIME_IS_UP, Outcome, Result
from acidctl.repair.backup import SETTLED, InBackup, RepairRun, discard, in_backup, list_backups, undo_last
from acidctl.storage.port import FileSystem
from acidctl.verbs.events import Events, Question
from acidctl.verbs.maintain_options import RestoreOptions
from acidctl.verbs.selection import Selection
from acidctl.wording import human_bytes, human_count

KeptRun = TrashRun | RepairRun
"""A run that can be undone until it is purged."""
Kept = tuple[TableLocation, list[KeptRun]]
"""A location with its runs, oldest first."""
Due = list[tuple[TableLocation, KeptRun]]

_MOST_NOTES = 20


def restore(selection: Selection, options: RestoreOptions, events: Events) -> Iterator[Outcome]:
    """Yield the runs that are due, unless one location was named and is restored at once; then each as it came back.

    Raises:
        NotFoundError: there is nothing to restore, or no run of that id.
        RefusedError: it was not confirmed.
    """
    stop = Deadline.after(options.work.deadline)
    every: list[Kept] = []
    for found, runs in _runs(selection, options, stop, events):
        if runs is None:
            yield Outcome(location=found.shown, result=Result.POSTPONED, reasons=(TIME_IS_UP,))
        elif runs:
            every.append((found, runs))
    if every or options.list:
        events.looked_through()
    if options.list:
        yield from (kept(found.fs, run) for found, runs in every for run in runs)
        return
    due = _due(selection, every, options, stop, events)
    is_one = len(every) == 1 and every[0][0].is_given
    for found, run in due if options.dry_run or not is_one else ():
        yield kept(found.fs, run, Result.PLANNED)
    if due and not options.dry_run:
        yield from _brought_back(due, options, stop, events)
        if compacted := _compacted((found for found, _ in due), due[0][1].id, options, stop):
            events.note(f"that run {_said(compacted)}")


def _due(selection: Selection, every: Sequence[Kept], options: RestoreOptions, stop: Deadline, events: Events) -> Due:
    """Return what is to come back; an error says whether a nightly run of that id compacted, which stays."""
    try:
        return _chosen(every, options.run_id, selection.shown, events)
    except NotFoundError as error:
        everywhere = selection.trashes(events, changes=False, with_given=True)
        if options.run_id is None or not (compacted := _compacted(everywhere, options.run_id, options, stop)):
            raise
        raise NotFoundError(error.what, f"that run {_said(compacted)}", error.hint) from error


def _brought_back(due: Due, options: RestoreOptions, stop: Deadline, events: Events) -> Iterator[Outcome]:
    """Ask, unless one location was named, and move back what the runs took."""
    if len(due) > 1 or not due[0][0].is_given:
        count, size = human_count(len(due), "location"), human_bytes(sum(run.bytes for _, run in due))
        places = tuple(found.shown for found, _ in due)
        what, text = f"{count} ({size}) would be restored", f"Restore: {count}, {size}?"
        events.confirm(Question(what, text, "nothing was restored", places))
    locking, jobs = options.locks.locking(events.warn), options.work.jobs
    with events.progress("restoring", len(due)) as bar:
        for (found, _), done in each(due, lambda one: undo(one[0].fs, one[1], locking), jobs, stop):
            bar.advance()
            if isinstance(done, AcidctlError):
                yield Outcome(location=found.shown, result=Result.FAILED, error=done)
            else:
                yield done or Outcome(location=found.shown, result=Result.POSTPONED, reasons=(TIME_IS_UP,))


def _runs(
    selection: Selection, options: RestoreOptions, stop: Deadline, events: Events
) -> Iterator[tuple[TableLocation, list[KeptRun] | None]]:
    """Yield every location with its runs; None if the deadline came first."""
    places = once(selection.trashes(events, changes=not options.list, with_given=True))
    for found, runs in each(places, kept_runs, options.work.jobs, stop):
        if isinstance(runs, AcidctlError):
            events.failed(found.shown, runs)
        else:
            yield found, runs


def _chosen(every: Sequence[Kept], run_id: str | None, given: str, events: Events) -> Due:
    """Return one run of each location: the newest that matches.

    A run without a manifest moved nothing: it is passed over if there is another.

    Raises:
        NotFoundError: there is none at all.
    """
    if not every and not events.is_whole:
        return []
    if not every:
        why = "neither it nor a directory below it has a trash or a backup; both may have been purged"
        raise NotFoundError(f"nothing to restore in {given}", why, "acidctl purge and --no-trash leave nothing behind")
    last = max((run.id for _, runs in every for run in runs if is_undoable(run)), default="")
    due, passed_over, others = [], [], 0
    for found, runs in every:
        matching = [run for run in runs if run.id.startswith(last if run_id is None else run_id)]
        chosen = next(filter(is_undoable, reversed(matching)), None)
        broken = [run for run in (runs if chosen and run_id is None else matching) if not is_undoable(run)]
        if chosen:
            due.append((found, chosen))
            broken = [run for run in broken if run.id > chosen.id]
        elif not matching:
            others += any(is_undoable(run) for run in runs)
        passed_over += [(found, run) for run in broken[-1:]]
    if not due and passed_over:
        return passed_over[-1:]  # which says why it cannot be restored
    if not due:
        raise NotFoundError(f"no such run in {given}", "", "see `acidctl restore --list`")
    for found, run in passed_over[:_MOST_NOTES]:
        events.note(f"{found.shown}: passed over {run.id}: it was interrupted, nothing can be restored from it")
    if others:
        count = human_count(others, "location holds", "locations hold")
        events.note(f"{count} other runs: --list shows them, --run ID restores one")
    return due


def _compacted(
    places: Iterable[TableLocation], run_id: str, options: RestoreOptions, stop: Deadline
) -> list[tuple[TableLocation, LogEntry]]:
    """Return what a nightly run compacted, by the logs of its locations: a restore undoes its cleaning alone."""
    read = each(once(places), lambda found: read_log(found.fs, found.location.path), options.work.jobs, stop)
    return [
        (found, entry)
        for found, entries in read
        if not isinstance(entries, AcidctlError)
        for entry in entries or ()
        if entry.verb == "compact" and "night" in entry.facts and entry.run.startswith(run_id)
    ]


def _said(compacted: Sequence[tuple[TableLocation, LogEntry]]) -> str:
    more = f" and {human_count(len(compacted) - 1, 'more location')}" if len(compacted) > 1 else ""
    return f"compacted {compacted[0][0].shown}{more}, which stays as it is: readers see the same rows"


def kept_runs(found: TableLocation) -> list[KeptRun]:
    """Return the cleanings and repairs that a location keeps, oldest first; their states say which can be used."""
    fs, path = found.fs, found.location.path
    try:
        names = {entry.path for entry in fs.list_dir(path).entries}
    except NotFoundError:
        return []
    return sorted([*trash_runs(fs, path, names), *list_backups(fs, path, names)], key=lambda run: run.id)


def is_undoable(run: KeptRun) -> bool:
    """Return whether a restore undoes a run, or refuses it with a reason; other runs changed nothing."""
    return run.state not in (RunState.STAGED, RunState.FORGOTTEN)


def is_unfinished(run: KeptRun) -> bool:
    """Return whether a run is an interrupted repair, whose backup must stay."""
    return isinstance(run, RepairRun) and run.state not in SETTLED


def kept(fs: FileSystem, run: KeptRun, result: Result = Result.IN_TRASH) -> InTrash | InBackup:
    """Return a run as an outcome of its location."""
    return in_trash(fs, run, result) if isinstance(run, TrashRun) else in_backup(fs, run, result)


def undo(fs: FileSystem, run: KeptRun, locking: Locking) -> Outcome:
    """Undo a cleaning or a repair, under the lock of its location.

    Raises:
        ConflictError: another process restored or purged it, or its files were changed since.
        NotFoundError: a file of it is missing.
        BadDataError, RefusedError: it is damaged, or another user's.
    """
    if isinstance(run, TrashRun):
        return bring_back(fs, run, locking)
    return in_backup(fs, undo_last(fs, run.location, run.id, locking), Result.RESTORED)


def purge_runs(
    fs: FileSystem,
    runs: Sequence[KeptRun],
    locking: Locking,
    should_stop: Callable[[], bool],
    on_deleted: Callable[[], None],
    *,
    night: str = "",
) -> list[Outcome]:
    """Delete runs of one location permanently, under its lock, and return those that were deleted before it stopped.

    An error that comes after some were deleted is the last outcome.
    """
    cleanings = [run for run in runs if isinstance(run, TrashRun)]
    repairs = {run.id: run for run in runs if isinstance(run, RepairRun)}
    gone: list[Outcome] = [*delete(fs, cleanings, locking, should_stop, on_deleted, night=night)]
    if not repairs or should_stop():
        return gone
    location = runs[0].location
    try:
        discarded = discard(fs, location, repairs.keys(), locking, should_stop, night=night)
    except AcidctlError as error:
        if not gone:
            raise
        return [*gone, Outcome(location=fs.display(location), result=Result.FAILED, error=error)]
    for run in discarded:
        gone.append(in_backup(fs, repairs[run.id], Result.PURGED))
        on_deleted()
    return gone
