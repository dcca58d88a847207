"""A cleaning of one location, its restore and its purge, each carried out under the lock of the location."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from acidctl.base.errors import AcidctlError, ConflictError
from acidctl.cleaning.apply import How, apply_plan, never
from acidctl.cleaning.outcomes import Cleaned, InTrash, Restored, in_trash
from acidctl.cleaning.plan import CleaningPlan, Removal
from acidctl.cleaning.trash import TrashRun, changes_since, purge, restore, trash_runs
from acidctl.location.change.lock import Locking
from acidctl.location.change.work_log import Fact, LogEntry, log_all, log_done, of_night, signed
from acidctl.outcome import Outcome, Result
from acidctl.storage.port import FileSystem


@dataclass(frozen=True, kw_only=True)
class RefusedCleaning(Outcome):
    """A location that cannot be cleaned or listed."""

    error: AcidctlError
    result: Result = Result.FAILED


def carry_out(
    plan: CleaningPlan,
    how: How,
    locking: Locking,
    *,
    run_id: str = "",
    night: str = "",
    should_stop: Callable[[], bool] = never,
    on_removed: Callable[[Removal], None] | None = None,
) -> Cleaned:
    """Carry a plan out under the lock of its location.

    For other arguments and errors see :func:`acidctl.cleaning.apply.apply_plan`.

    Args:
        night: the id of the nightly run that it is a part of; empty without one.
    """
    snapshot = plan.snapshot
    with locking.at(snapshot.fs, snapshot.path):
        cleaned = apply_plan(plan, how, run_id=run_id, should_stop=should_stop, on_removed=on_removed)
        if cleaned.is_changed:
            log_done(snapshot.fs, snapshot.path, _clean_entry(cleaned, how, night), locking.tell)
        return cleaned


def _clean_entry(cleaned: Cleaned, how: How, night: str) -> LogEntry:
    facts = {
        "to": how.value,
        "entries": len(cleaned.removed),
        "names": [removal.name for removal in cleaned.removed],
        "bytes": cleaned.bytes,
        "left": len(cleaned.left),
        **of_night(night),
    }
    source = cleaned.plan.snapshot.source.kind
    return LogEntry("clean", cleaned.result.value, cleaned.run.id if cleaned.run else "", source=source, facts=facts)


def bring_back(fs: FileSystem, run: TrashRun, locking: Locking) -> Restored:
    """Move a run's entries back, under the lock of its location, and compare the state with the one before the run.

    Raises:
        ConflictError: another process restored or purged it, or its entries hold other files than were moved.
        BadDataError, RefusedError: it is damaged, or another user's.
    """
    with locking.at(fs, run.location):
        now = next((other for other in trash_runs(fs, run.location) if other.id == run.id), None)
        if now is None:
            why = "somebody else restored or purged it"
            raise ConflictError(f"{fs.display(run.path)} has gone meanwhile", why, "see `acidctl restore --list`")
        names = restore(fs, now)
        log_done(fs, run.location, _trash_entry("restore", Result.RESTORED, run), locking.tell)
        shown = fs.display(run.location)
        try:
            return Restored(location=shown, run=run, names=names, changes=changes_since(fs, now))
        except AcidctlError as error:  # the entries are back all the same
            return Restored(location=shown, run=run, names=names, not_compared=error)


def _trash_entry(verb: str, result: Result, run: TrashRun, night: str = "") -> LogEntry:
    facts: dict[str, Fact] = {"entries": len(run.names), "names": list(run.names), "bytes": run.bytes}
    facts |= of_night(night)
    return LogEntry(verb, result.value, run.id, facts=facts)


def delete(
    fs: FileSystem,
    runs: Sequence[TrashRun],
    locking: Locking,
    should_stop: Callable[[], bool] = never,
    on_deleted: Callable[[], None] = lambda: None,
    *,
    night: str = "",
) -> list[InTrash]:
    """Delete runs from the trash of one location, under its lock, and return those that were deleted before it stopped.

    Args:
        night: the id of the nightly run that it is a part of; empty without one.
    """
    purged: list[InTrash] = []
    if not runs:
        return purged
    ended: list[LogEntry] = []
    with locking.at(fs, runs[0].location):
        try:
            for run in runs:
                if should_stop():
                    break
                purge(fs, [run], are_more=run is not runs[-1])
                purged.append(in_trash(fs, run, Result.PURGED))
                ended.append(signed(_trash_entry("purge", Result.PURGED, run, night)))
                on_deleted()
        finally:
            log_all(fs, runs[0].location, ended, locking.tell)
    return purged
