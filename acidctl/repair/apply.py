"""Carrying a plan out: staged and verified beside, written down, swapped in; nothing before that changes the table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from acidctl.errors import AcidctlError, ConflictError, NotFoundError, RefusedError, StorageError
from acidctl.location.change.journal import Act, RunState, Step, begin, drop
from acidctl.location.change.lock import Locking
from acidctl.location.change.own_files import new_run_id
from acidctl.location.change.work_log import LogEntry, log_done
from acidctl.location.snapshot import Snapshot
from acidctl.repair import empty_result, flush_length, key_index, nested, version_file
from acidctl.repair.backup import BACKUP, RepairRun, backup_runs, finish, settle, sweep, undo, write_note
from acidctl.repair.copying import stage
from acidctl.repair.plan import Fix, RepairKind, RepairPlan, Scope, plan_of
from acidctl.storage.port import FileSystem, join, parent_of

_SUSPECTS = {
    RepairKind.EMPTY_RESULT: empty_result.suspects,
    RepairKind.KEY_INDEX: key_index.suspects,
    RepairKind.FLUSH_LENGTH: flush_length.suspects,
    RepairKind.NESTED: nested.suspects,
    RepairKind.VERSION_FILE: version_file.suspects,
}


def plan_repair(snapshot: Snapshot, kind: RepairKind, scope: Scope) -> RepairPlan:
    """Find what is wrong in one location, and what mends it.

    Raises:
        AccessError, StorageError, NotFoundError: a file cannot be opened.
    """
    return plan_of(snapshot, kind, _SUSPECTS[kind](snapshot, scope))


def unfinished(fs: FileSystem, location: str) -> list[RepairRun]:
    """Repairs that were interrupted between their renames, oldest first."""
    return [run for run in backup_runs(fs, location) if run.state in (RunState.INTERRUPTED, RunState.UNDOING)]


def apply_repair(plan: RepairPlan, scope: Scope, locking: Locking | None = None) -> RepairRun | None:
    """Carry a plan out; what an earlier repair left is finished first, and the location is looked at again.

    Args:
        locking: how others are kept away meanwhile.

    Returns:
        The run, with which it can be undone; None when nothing was left to do.

    Raises:
        ConflictError: the location is locked, or it changed since it was planned.
        StorageError: the store cannot rename.
        VerifyError: what was staged is not what was meant; nothing was changed.
    """
    before = plan.snapshot
    fs, location = before.fs, before.path
    _require_renames(fs, location)
    with (locking or Locking()).at(fs, location):
        left = unfinished(fs, location)
        settle(fs, backup_runs(fs, location))
        again = before.again()
        paths = frozenset(fix.path for fix in plan.fixes)
        now = plan_repair(again, plan.kind, replace(scope, among=paths)).only(paths)
        if not left:  # what is finished first changes what comes after it
            _require_as_shown(plan, now)
        run = _carry_out(now) if now.fixes else None
        if run:
            log_done(fs, location, _entry("repair", "repaired", run), locking.tell if locking else None)
        return run


def _require_as_shown(shown: RepairPlan, now: RepairPlan) -> None:
    """Raises ConflictError where something would be done that nobody has seen."""
    meant = {fix.path: (fix.problem, fix.remedy) for fix in shown.fixes}
    for fix in now.fixes:
        if (fix.problem, fix.remedy) != meant[fix.path]:
            raise ConflictError(
                f"{shown.snapshot.display(fix.path)} changed since it was planned",
                f"{fix.problem}; now it would be: {fix.remedy}",
                "look at the new plan; nothing was changed",
            )


def _entry(verb: str, result: str, run: RepairRun) -> LogEntry:
    return LogEntry(verb, result, run.id, facts={"repair": run.kind, "paths": list(run.paths), "bytes": run.bytes})


def require_possible(plan: RepairPlan, *, offline: bool) -> None:
    """Refuse a plan that cannot be carried out, before anything is done.

    Raises:
        RefusedError: readers would miss a directory between two renames, and something may read it.
        StorageError: the store cannot rename.
    """
    gap = next((fix for fix in plan.fixes if fix.is_gap), None)
    if gap and not offline:
        raise RefusedError(
            f"{gap.path} of {plan.snapshot.fs.display(plan.snapshot.path)} would be missing for a moment",
            "two renames are needed, and readers between them see the location without it",
            "give `offline` when nothing reads the table; nothing was changed",
        )
    _require_renames(plan.snapshot.fs, plan.snapshot.path)


def _require_renames(fs: FileSystem, location: str) -> None:
    """Raises StorageError where files cannot be swapped."""
    if not fs.can_rename:
        raise StorageError(
            f"cannot repair {fs.display(location)}",
            "this store cannot rename, so nothing can be put into its place in one step",
            "copy the table to HDFS or a disk, repair it there, and copy it back",
        )


def _carry_out(plan: RepairPlan) -> RepairRun:
    fs, location = plan.snapshot.fs, plan.snapshot.path
    empty = RepairRun(location, new_run_id())
    steps = tuple(step for fix in plan.fixes for step in _steps(fix, empty.relative))
    paths = tuple(fix.path for fix in plan.fixes)
    run = RepairRun(location, empty.id, steps, plan.bytes, RunState.DONE, kind=plan.kind.value, paths=paths)
    try:
        begin(fs, run, sorted({parent_of(join(location, p)) for s in steps for p in _staged(s, run.relative)}))
        for fix in plan.fixes:
            _stage(fs, location, run, fix)
        for fix in plan.fixes:
            _require_unchanged(fs, location, fix)
        write_note(fs, run)
    except BaseException:
        with suppress(AcidctlError):
            drop(fs, run)
        raise
    finish(fs, run)
    _require_mended(fs, run)
    return run


def _require_mended(fs: FileSystem, run: RepairRun) -> None:
    """What finishes a run passes over what has gone, as a cleaning may have taken it; then this one did not mend it."""
    on_the_way = tuple(f"{path}/" for path in (run.relative, *(step.source for step in run.steps)))
    for step in run.steps:
        if not f"{step.target}/".startswith(on_the_way) and not fs.exists(join(run.location, step.target)):
            raise ConflictError(
                f"{fs.display(run.location)} changed while it was repaired",
                f"{step.target} is not there: what was to be repaired is gone, or the location was dropped",
                "look what is there; `undo_repair()` takes back what was done",
            )


def _staged(step: Step, run: str) -> list[str]:
    """The paths of a step that lie in the run's directory, and of which the directory must be there."""
    source = [step.source] if step.source.startswith(f"{run}/new/") else []
    return [*source, *(path for path in (step.kept, step.target) if path.startswith(f"{run}/"))]


def _steps(fix: Fix, run: str) -> list[Step]:
    """The renames of a fix, in their order."""
    old = {entry.path: entry for entry in fix.watched}
    steps = []
    for made in fix.made:
        if made.replaces:
            was = old[made.path]
            kept = f"{run}/old/{made.path}"
            facts = (kept, was.size, was.modified, made.size)
            steps.append(Step(Act.REPLACE, f"{run}/new/{made.path}", made.path, *facts))
        else:
            steps.append(Step(Act.MOVE, f"{run}/new/{made.path}", made.path))
    steps += [Step(Act.MOVE, path, f"{run}/old/{path}") for path in fix.away]
    steps += [Step(Act.MOVE, f"{run}/old/{source}", target) for source, target in fix.lifted]
    return steps


def _stage(fs: FileSystem, location: str, run: RepairRun, fix: Fix) -> None:
    present = join(location, fix.path)
    for made in fix.made:
        old, new = join(location, made.path), join(run.path, "new", made.path)
        stage(fs, old, join(run.path, "old", made.path), new, made)
        if fix.check and made.path == fix.path:
            fix.check(fs, old, new)
    if fix.check and not any(made.path == fix.path for made in fix.made):
        fix.check(fs, present, present)


def _require_unchanged(fs: FileSystem, location: str, fix: Fix) -> None:
    for entry in fix.watched:
        path = join(location, entry.path)
        try:
            now = fs.stat(path)
        except NotFoundError:
            raise _changed(fs, path, "it is gone") from None
        if now.size != entry.size or now.modified != entry.modified:
            raise _changed(fs, path, f"it had {entry.size} bytes, it has {now.size}")


def _changed(fs: FileSystem, path: str, why: str) -> ConflictError:
    return ConflictError(
        f"{fs.display(path)} changed while it was repaired", why, "nothing was changed; run it again when nobody writes"
    )


def undo_last(
    fs: FileSystem,
    location: str,
    run_id: str | None = None,
    locking: Locking | None = None,
    tell: Callable[[RepairRun], None] | None = None,
) -> RepairRun:
    """Take the newest repair of a location back, or the one whose id begins so.

    Args:
        tell: called before anything is changed.

    Raises:
        NotFoundError: there is none.
        ConflictError: the location is locked, or what it made was changed.
    """
    if not _undoable(fs, location, run_id):
        raise NotFoundError(f"no such repair of {fs.display(location)}", "", "see `undo_repair(list)`")
    with (locking or Locking()).at(fs, location):
        chosen = _undoable(fs, location, run_id)[-1:]
        for run in chosen:
            _require_newest(fs, run)
            if tell:
                tell(run)
            undo(fs, run)
            log_done(fs, location, _entry("repair undo", "undone", run), locking.tell if locking else None)
        _leave(fs, location)
    if not chosen:
        raise ConflictError(f"cannot undo in {fs.display(location)}", "another run was faster", "nothing is left to do")
    return chosen[0]


def _undoable(fs: FileSystem, location: str, run_id: str | None) -> list[RepairRun]:
    runs = [run for run in backup_runs(fs, location) if run.state is not RunState.STAGED]
    return [run for run in runs if run_id is None or run.id.startswith(run_id)]


def _require_newest(fs: FileSystem, run: RepairRun) -> None:
    """Raises ConflictError when a later repair mended the same file."""
    targets = {step.target for step in run.steps}
    for later in _undoable(fs, run.location, None):
        if later.id > run.id and targets & {step.target for step in later.steps}:
            raise ConflictError(
                f"cannot undo {run.id}", f"{later.id} mended the same file later", "undo that one first"
            )


SETTLED = RunState.DONE, RunState.STAGED
"""The states of runs that can be forgotten: nothing is left to be done or undone."""


def forget(fs: FileSystem, location: str, locking: Locking | None = None) -> list[RepairRun]:
    """Remove the backups of a location for good, and what is left of others; a repair that was interrupted stays.

    Returns:
        The runs that went.

    Raises:
        ConflictError: the location is locked.
    """
    with (locking or Locking()).at(fs, location):
        going = [run for run in backup_runs(fs, location) if run.state in SETTLED]
        for run in going:
            drop(fs, run, are_more=True)
        _leave(fs, location)
        if going:
            entry = LogEntry("repair forget", "forgotten", facts={"runs": [run.id for run in going]})
            log_done(fs, location, entry, locking.tell if locking else None)
    return going


def _leave(fs: FileSystem, location: str) -> None:
    sweep(fs, location)
    fs.remove_empty(join(location, BACKUP))
