"""Runs that can be undone until they are purged: cleanings in the trash of a location, and repairs in its backup."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acidctl.base.errors import AcidctlError, NotFoundError
from acidctl.cleaning.apply import bring_back, delete
from acidctl.cleaning.outcomes import InTrash, in_trash
from acidctl.cleaning.trash import TrashRun, trash_runs
from acidctl.location.change.journal import RunState
from acidctl.location.change.lock import Locking
from acidctl.location.table_location import TableLocation
from acidctl.outcome import Outcome, Result
from acidctl.repair.backup import SETTLED, InBackup, RepairRun, discard, in_backup, list_backups, undo_last
from acidctl.storage.port import FileSystem

KeptRun = TrashRun | RepairRun


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
