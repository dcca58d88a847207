"""Cleanings, restores and purges of one location: planned, then carried out under its lock.

A plan is carried out after the location was listed again and compared, one entry after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from enum import StrEnum

from acidctl.acid.listing import Entry
from acidctl.base.errors import AcidctlError, BadDataError, ConflictError, NotFoundError, RefusedError, unexpected
from acidctl.cleaning.leftovers import query_staging
from acidctl.cleaning.outcomes import Cleaned, InTrash, PlannedCleaning, Restored, in_trash
from acidctl.cleaning.plan import CleaningPlan, Removal, plan_again, plan_cleaning
from acidctl.cleaning.retention import Policy
from acidctl.cleaning.trash import (
    TrashRun,
    changes_since,
    purge,
    restore,
    trash_runs,
)
from acidctl.location.change.lock import Locking, refuse_locked
from acidctl.location.change.work_log import Fact, LogEntry, log_all, log_done, of_night, signed
from acidctl.location.resolved import resolve
from acidctl.location.snapshot import Snapshot
from acidctl.location.table_location import TableLocation
from acidctl.outcome import Outcome, Result
from acidctl.storage.port import FileSystem, base_name, join


class How(StrEnum):
    """The destination of removed entries."""

    TRASH = "trash"
    DELETE = "delete"


def never() -> bool:
    """Return False: the caller never stops the work."""
    return False


def apply_plan(
    plan: CleaningPlan,
    now: CleaningPlan,
    how: How = How.TRASH,
    *,
    run_id: str = "",
    should_stop: Callable[[], bool] = never,
    on_removed: Callable[[Removal], None] | None = None,
) -> Cleaned:
    """Remove the entries of a plan, one after another.

    Args:
        now: the plan of the location as it is now, see :func:`acidctl.cleaning.plan.plan_again`.
        run_id: id of the run in the trash, the same for all locations of one cleaning; default: a new id.
        should_stop: called before every entry; once it is true, the remaining entries stay.
        on_removed: called after every entry.

    Raises:
        ConflictError: the location changed so that its plan differs now, it is locked, or another process removes
            entries from it.
        RefusedError: the store cannot rename, so it has no trash.
    """
    if not plan.removals:
        return Cleaned.after(plan)
    fs = plan.snapshot.fs
    _require_children(plan)
    if how is How.TRASH and not fs.can_rename:
        raise RefusedError(
            f"{plan.shown} can have no trash",
            "its store has no rename: only deleting at once is possible there",
            "give --no-trash; it cannot be undone",
        )
    refuse_locked(fs, plan.snapshot.path)
    _refuse_changed(plan, now)
    if should_stop():
        return Cleaned.after(plan)
    run = TrashRun.of(now.snapshot, plan.names, plan.bytes, run_id) if how is How.TRASH else None
    removed: list[Removal] = []
    try:
        if run:
            run.write_note(fs)
        for removal in plan.removals:
            if should_stop():
                break
            _remove(fs, plan.snapshot.absolute(removal.name), run)
            removed.append(removal)
            if on_removed:
                on_removed(removal)
    except Exception as error:
        raise _with_what_was_done(unexpected(error), len(removed), len(plan.removals), run) from error
    finally:
        if run and not removed:
            with suppress(AcidctlError):
                run.drop_unused(fs)
    return Cleaned.after(plan, tuple(removed), run if removed else None)


def _require_children(plan: CleaningPlan) -> None:
    """Require that every name is a child of the location, whatever a listing or a saved plan contains."""
    for name in plan.names:
        if name in ("", ".", "..") or "/" in name:
            raise BadDataError(
                f"will not clean {plan.shown}",
                f"{name!r} is not a name of something in it",
                "nothing was removed; report this",
            )


def _with_what_was_done(error: AcidctlError, done: int, planned: int, run: TrashRun | None) -> AcidctlError:
    """Add to the hint where the entries are that were removed before the error."""
    if not done:
        return error
    where = f"in the trash as {run.id}; `acidctl restore` brings it back" if run else "deleted"
    fuller = copy(error)  # with the trace of a bug
    fuller.hint = "; ".join(filter(None, (error.hint, f"{done} of {planned} are {where}")))
    return fuller


def _remove(fs: FileSystem, source: str, run: TrashRun | None) -> None:
    try:
        if run:
            fs.rename(source, join(run.path, base_name(source)))
        else:
            fs.remove_tree(source)
    except NotFoundError as error:
        if fs.exists(source):
            raise
        raise ConflictError(
            f"{fs.display(source)} has gone meanwhile",
            "somebody else removes from this location, too",
            "run it again",
        ) from error


def _refuse_changed(plan: CleaningPlan, now: CleaningPlan) -> None:
    what = f"{plan.shown} changed since it was planned"
    if missing := set(plan.names) - set(now.names):
        raise ConflictError(what, f"{min(missing)} may no longer be removed", "nothing was removed; plan again")
    if changed := _entries_of(plan.names, plan.snapshot) ^ _entries_of(plan.names, now.snapshot):
        path = min(entry.path for entry in changed)
        raise ConflictError(
            what, f"{path} is not what it was: the table may be another one now", "nothing was removed; plan again"
        )


def _entries_of(names: Sequence[str], snapshot: Snapshot) -> set[Entry]:
    files = snapshot.listing.files_by_child
    return {entry for name in names for entry in files.get(name, ())}


@dataclass(frozen=True, kw_only=True)
class RefusedCleaning(Outcome):
    """A location that cannot be cleaned or listed."""

    error: AcidctlError
    result: Result = Result.FAILED


def plan_location(found: TableLocation, policy: Policy, *, is_table: bool = False) -> PlannedCleaning | RefusedCleaning:
    """Resolve one location, and plan its cleaning.

    Args:
        is_table: the location is the directory of a partitioned table, where only staging of queries is cleaned.
    """
    try:
        if is_table:
            snapshot = query_staging(found.fs, found.location.path)
        else:
            snapshot = resolve(found, reader=True).for_reader()
        snapshot.require_agreement()
        return PlannedCleaning.of(plan_cleaning(snapshot, policy))
    except AcidctlError as error:
        return RefusedCleaning(location=found.shown, error=error)


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
    """Carry a plan out under the lock of its location, if the location still has the same plan.

    For other arguments and errors see :func:`acidctl.cleaning.apply.apply_plan`.

    Args:
        night: the id of the nightly run that it is a part of; empty without one.
    """
    snapshot = plan.snapshot
    with locking.at(snapshot.fs, snapshot.path):
        cleaned = apply_plan(plan, plan_again(plan), how, run_id=run_id, should_stop=should_stop, on_removed=on_removed)
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
