"""Carry a repair plan out: new files are staged, verified and backed up before renames swap them in."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from acidctl.base.errors import (
    AcidctlError,
    BadDataError,
    ConflictError,
    NotFoundError,
    RefusedError,
    StorageError,
    VerifyError,
)
from acidctl.location.change.journal import Act, RunState, Step, begin, drop
from acidctl.location.change.lock import Locking
from acidctl.location.change.own_files import new_run_id
from acidctl.location.change.work_log import log_done
from acidctl.location.snapshot import Snapshot
from acidctl.outcome import Result
from acidctl.repair import empty_result, flush_length, key_index, nested, version_file
from acidctl.repair.backup import BACKUP, RepairRun, backup_runs, entry_of, finish, settle, unfinished, write_note
from acidctl.repair.plan import CannotRepair, Fix, Made, RepairKind, RepairPlan, Scope
from acidctl.storage.port import FileSystem, join, narrowest, parent_of

_CHUNK = 8 << 20

_SUSPECTS = {
    RepairKind.EMPTY_RESULT: empty_result.suspects,
    RepairKind.NESTED: nested.suspects,
    RepairKind.FLUSH_LENGTH: flush_length.suspects,
    RepairKind.KEY_INDEX: key_index.suspects,
    RepairKind.VERSION_FILE: version_file.suspects,
}


def plan_repair(snapshot: Snapshot, kinds: Collection[RepairKind], scope: Scope) -> RepairPlan:
    """Plan the repair of everything of some kinds that is wrong in a location.

    A problem in a file or directory that an earlier fix changes is refused: the next repair mends it. Repairs that were
    interrupted between their renames are finished first, so their paths are not refused.

    Raises:
        AccessError, StorageError, NotFoundError: a file cannot be opened.
    """
    return _planned(snapshot, kinds, scope, unfinished(backup_runs(snapshot.fs, snapshot.path)))


def _planned(
    snapshot: Snapshot, kinds: Collection[RepairKind], scope: Scope, interrupted: Sequence[RepairRun]
) -> RepairPlan:
    fixes: list[Fix] = []
    refused: list[CannotRepair] = []
    for kind in (kind for kind in RepairKind if kind in kinds):
        for path, find_fix in _SUSPECTS[kind](snapshot, scope):
            try:
                fix = find_fix()
            except BadDataError as error:
                refused.append(CannotRepair(kind, path, error.why or error.what, error.hint))
                continue
            earlier = next((other for other in fixes if fix and fix.meets(other)), None)
            if fix and earlier:
                why = f"{fix.problem}; {earlier.kind} changes {earlier.path} first"
                refused.append(CannotRepair(kind, path, why, "run `acidctl repair` again"))
            elif fix:
                fixes.append(fix)
    begun = {path for run in interrupted if run.state is RunState.INTERRUPTED for path in run.paths}
    refused = [item for item in refused if item.path not in begun]
    idle = Result.REFUSED if refused else Result.NOTHING_TO_DO
    return RepairPlan(
        location=snapshot.shown,
        result=Result.PLANNED if fixes or interrupted else idle,
        snapshot=snapshot,
        scope=scope,
        fixes=tuple(fixes),
        refused=tuple(refused),
        interrupted=tuple(interrupted),
    )


def apply_repair(plan: RepairPlan, locking: Locking | None = None, run_id: str = "") -> RepairRun | None:
    """Carry a plan out, after finishing interrupted repairs and listing the location again.

    Args:
        run_id: the id of the run; a new one by default, or if the location has a run of this id.

    Returns:
        The run, by which it can be undone; None if nothing was left to do.

    Raises:
        ConflictError: the location is locked, or it changed since it was planned.
        StorageError: the store cannot rename.
        VerifyError: a staged file is not what was planned; nothing was changed.
    """
    before = plan.snapshot
    fs, location = before.fs, before.path
    _require_renames(fs, location)
    with (locking or Locking()).at(fs, location):
        runs = backup_runs(fs, location)
        settle(fs, runs)
        planned = {(fix.kind, fix.path) for fix in plan.fixes}
        scope = replace(plan.scope, among=frozenset(path for _, path in planned))
        now = _planned(before.again(), plan.kinds, scope, ())  # none is left interrupted
        now = replace(now, fixes=tuple(fix for fix in now.fixes if (fix.kind, fix.path) in planned))
        if not unfinished(runs):  # finishing a repair may change what the next one does
            _require_as_shown(plan, now)
        if not run_id or fs.exists(join(location, BACKUP, run_id)):
            run_id = new_run_id()
        run = _carry_out(now, run_id) if now.fixes else None
        if run:
            log_done(fs, location, entry_of("repair", "repaired", run), locking.tell if locking else None)
        return run


def _require_as_shown(shown: RepairPlan, now: RepairPlan) -> None:
    meant = {(fix.kind, fix.path): (fix.problem, fix.remedy) for fix in shown.fixes}
    for fix in now.fixes:
        if (fix.problem, fix.remedy) != meant[fix.kind, fix.path]:
            raise ConflictError(
                f"{shown.snapshot.display(fix.path)} changed since it was planned",
                f"{fix.problem}; now it would be: {fix.remedy}",
                "look at the new plan; nothing was changed",
            )


def require_possible(plan: RepairPlan, *, offline: bool) -> None:
    """Refuse a plan that cannot be carried out, before anything is done.

    Raises:
        RefusedError: readers would miss a directory between two renames, and the table may be in use.
        StorageError: the store cannot rename.
    """
    gap = next((fix for fix in plan.fixes if fix.is_gap), None)
    if gap and not offline:
        raise RefusedError(
            f"{gap.path} of {plan.snapshot.shown} would be missing for a moment",
            "two renames are needed, and readers between them see the location without it",
            "give --offline when nothing reads the table, or leave it out with --only; nothing was changed",
        )
    _require_renames(plan.snapshot.fs, plan.snapshot.path)


def _require_renames(fs: FileSystem, location: str) -> None:
    if not fs.can_rename:
        raise StorageError(
            f"cannot repair {fs.display(location)}",
            "this store cannot rename, so nothing can be put into its place in one step",
            "copy the table to HDFS or a disk, repair it there, and copy it back",
        )


def _carry_out(plan: RepairPlan, run_id: str) -> RepairRun:
    fs, location = plan.snapshot.fs, plan.snapshot.path
    empty = RepairRun(location, run_id)
    steps = tuple(step for fix in plan.fixes for step in _steps(fix, empty.relative))
    paths, kinds = tuple(fix.path for fix in plan.fixes), tuple(kind.value for kind in plan.kinds)
    run = RepairRun(location, run_id, steps, plan.bytes, RunState.DONE, kinds=kinds, paths=paths)
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
    """Raise ConflictError if a target is missing: finishing skips the steps of entries that a cleaning has taken."""
    intermediate = tuple(f"{path}/" for path in (run.relative, *(step.source for step in run.steps)))
    for step in run.steps:
        if not f"{step.target}/".startswith(intermediate) and not fs.exists(join(run.location, step.target)):
            raise ConflictError(
                f"{fs.display(run.location)} changed while it was repaired",
                f"{step.target} is not there: what was to be repaired is gone, or the location was dropped",
                "look what is there; `acidctl restore` takes back what was done",
            )


def _staged(step: Step, run: str) -> list[str]:
    """Return the paths of a step inside the run's directory; their parents are made before the first rename."""
    source = [step.source] if step.source.startswith(f"{run}/new/") else []
    return [*source, *(path for path in (step.kept, step.target) if path.startswith(f"{run}/"))]


def _steps(fix: Fix, run: str) -> Iterator[Step]:
    watched = {entry.path: entry for entry in fix.watched}
    for made in fix.made:
        staged, kept = f"{run}/new/{made.path}", f"{run}/old/{made.path}"
        if made.replaces:
            present = watched[made.path]
            yield Step(Act.REPLACE, staged, made.path, kept, present.size, present.modified, made.size)
        else:
            yield Step(Act.MOVE, staged, made.path)
    for path in fix.away:
        yield Step(Act.MOVE, path, f"{run}/old/{path}")
    for source, target in fix.lifted:
        yield Step(Act.MOVE, f"{run}/old/{source}", target)


def _stage(fs: FileSystem, location: str, run: RepairRun, fix: Fix) -> None:
    present = join(location, fix.path)
    for made in fix.made:
        old, new = join(location, made.path), join(run.path, "new", made.path)
        write_staged(fs, old, join(run.path, "old", made.path), new, made)
        if fix.check and made.path == fix.path:
            fix.check(fs, old, new)
    if fix.check and not any(made.path == fix.path for made in fix.made):
        fix.check(fs, present, present)


def write_staged(fs: FileSystem, old: str, kept: str, new: str, made: Made) -> None:
    """Write `new` as `made` describes it and copy `old` to `kept`, then read both again.

    Args:
        old: absolute, like `kept` and `new`; not read unless `made` replaces it.

    Raises:
        VerifyError: a written file cannot be read back.
        ConflictError: the old file was truncated meanwhile.
    """
    if not made.replaces:
        _write(fs, new, (made.end,))
        _grant_as_beside(fs, old, new)
        return
    _write(fs, kept, _chunks(fs, old, fs.stat(old).size))
    _write(fs, new, chain(_chunks(fs, old, made.prefix), (made.end,)))
    if access := fs.access(old):
        for path in (kept, new):
            fs.set_access(path, access)


def _write(fs: FileSystem, path: str, content: Iterable[bytes]) -> None:
    """Write a file and read it again."""
    written, there = hashlib.sha256(), hashlib.sha256()
    with fs.open_output(path, private=True) as output:
        for chunk in content:
            output.write(chunk)
            written.update(chunk)
    for chunk in _chunks(fs, path, fs.stat(path).size):
        there.update(chunk)
    if there.digest() != written.digest():
        what = f"{fs.display(path)} cannot be read back as it was written"
        raise VerifyError(what, f"its SHA-256 is {there.hexdigest()}", "look at the storage")


def _grant_as_beside(fs: FileSystem, path: str, new: str) -> None:
    """Give a new file, staged for `path`, no more permissions than the files beside `path` have."""
    directory = fs.access(parent_of(path))
    if directory is not None:
        names = [entry.path for entry in fs.list_dir(parent_of(path)).entries if not entry.is_dir]
        beside = fs.access_below(parent_of(path))
        fs.set_access(new, narrowest([beside[name] for name in names if name in beside], directory, is_dir=False))


def _chunks(fs: FileSystem, path: str, size: int) -> Iterator[bytes]:
    for at in range(0, size, _CHUNK):
        chunk = fs.read_bytes(path, at, min(_CHUNK, size - at))
        if len(chunk) != min(_CHUNK, size - at):
            raise ConflictError(f"{fs.display(path)} became shorter", "it was cut while it was read", "plan again")
        yield chunk


def _require_unchanged(fs: FileSystem, location: str, fix: Fix) -> None:
    for entry in fix.watched:
        path, why = join(location, entry.path), ""
        try:
            present = fs.stat(path)
            if (present.size, present.modified) != (entry.size, entry.modified):
                why = f"it had {entry.size} bytes, it has {present.size}"
        except NotFoundError:
            why = "it is gone"
        if why:
            what = f"{fs.display(path)} changed while it was repaired"
            raise ConflictError(what, why, "nothing was changed; run it again when nobody writes")
