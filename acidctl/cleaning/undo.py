"""Undoing a cleaning: a run of the trash is brought back, or deleted for good."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acidctl.cleaning.outcomes import InTrash, Restored, in_trash
from acidctl.cleaning.trash import TrashRun, changes_since, purge, restore, trash_runs
from acidctl.errors import AcidctlError, ConflictError
from acidctl.location.change.journal import RunState
from acidctl.location.change.lock import Locking
from acidctl.location.change.work_log import Fact, LogEntry, log_all, log_done, of_night, signed
from acidctl.outcome import Result
from acidctl.storage.port import FileSystem

USABLE = (RunState.WRITTEN, RunState.UNDONE, RunState.DAMAGED, RunState.FOREIGN)
"""States of runs that a restore takes up, or says why it cannot; of the others nothing was moved."""


def newest(runs: Sequence[TrashRun], beginning: str = "") -> TrashRun | None:
    """The newest run that can be restored, of those whose id begins so.

    Args:
        runs: oldest first.
    """
    return next((run for run in reversed(runs) if run.state in USABLE and run.id.startswith(beginning)), None)


def bring_back(fs: FileSystem, run: TrashRun, locking: Locking) -> Restored:
    """Move back what a run took, under the lock of its location, and compare the state with the one before it.

    Raises:
        ConflictError: somebody else restored or purged it, or its entries hold other files than those that were moved.
        BadDataError, RefusedError: it is damaged, or somebody else's.
    """
    with locking.at(fs, run.location):
        now = next((one for one in trash_runs(fs, run.location) if one.id == run.id), None)
        if now is None:
            why = "somebody else restored or purged it"
            raise ConflictError(f"{fs.display(run.path)} has gone meanwhile", why, "see `trash()`")
        names = restore(fs, now)
        log_done(fs, run.location, _entry("restore", Result.RESTORED, run), locking.tell)
        shown = fs.display(run.location)
        try:
            return Restored(location=shown, run=run, names=names, changes=changes_since(fs, now))
        except AcidctlError as error:  # what is back is back
            return Restored(location=shown, run=run, names=names, not_compared=error)


def _entry(verb: str, result: Result, run: TrashRun, night: str = "") -> LogEntry:
    facts: dict[str, Fact] = {"entries": len(run.names), "names": list(run.names), "bytes": run.bytes}
    facts |= of_night(night)
    return LogEntry(verb, result.value, run.id, facts=facts)


def delete(
    fs: FileSystem,
    runs: Sequence[TrashRun],
    locking: Locking,
    should_stop: Callable[[], bool] = lambda: False,
    on_deleted: Callable[[], None] = lambda: None,
    *,
    night: str = "",
) -> list[InTrash]:
    """Delete runs of one location for good, under its lock; those that are left when it stops are not in the result.

    Args:
        night: the id of the night that it is a part of; empty without one.
    """
    gone: list[InTrash] = []
    if not runs:
        return gone
    ended: list[LogEntry] = []
    with locking.at(fs, runs[0].location):
        try:
            for run in runs:
                if should_stop():
                    break
                purge(fs, [run], are_more=run is not runs[-1])
                gone.append(in_trash(fs, run, Result.PURGED))
                ended.append(signed(_entry("purge", Result.PURGED, run, night)))
                on_deleted()
        finally:
            log_all(fs, runs[0].location, ended, locking.tell)
    return gone
