"""The backup that a repair keeps in a location, by which it can be finished, undone and discarded.

Each repair is a run of the journal, ``<location>/.acidctl-backup/<time>-<id>/``, with ``old/`` (replaced files) and
``new/`` (staged files). Its note is written after all of ``new/`` is verified and before the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from acidctl.base.errors import ConflictError, NotFoundError
from acidctl.base.printable import one_line
from acidctl.location.change import journal
from acidctl.location.change.journal import (
    Act,
    KeptRunOutcome,
    Run,
    RunState,
    Step,
    do,
    drop,
    mark,
    take_back,
    unusable,
    write,
)
from acidctl.location.change.lock import Locking
from acidctl.location.change.work_log import Fact, LogEntry, log_all, log_done, of_night, signed
from acidctl.outcome import Result
from acidctl.storage.port import FileSystem, join, parent_of

BACKUP = ".acidctl-backup"


@dataclass(frozen=True, slots=True)
class RepairRun(Run):
    """One repair of a location; its `paths` are relative to the location."""

    __repr__ = one_line

    folder: ClassVar[str] = BACKUP

    kinds: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class InBackup(KeptRunOutcome):
    """A repair that is in the backup of a location, was undone, or was purged."""

    run: RepairRun

    @property
    def entries(self) -> tuple[str, ...]:
        return self.run.paths

    @property
    def kinds(self) -> str:
        return f"{', '.join(self.run.kinds)}: "

    def facts(self) -> Mapping[str, Any]:
        """Return the run's id, state, kinds, paths and size."""
        run = self.run
        paths = {"repairs": list(run.kinds), "paths": list(run.paths)}
        return {"repairRun": run.id, "isComplete": run.state is RunState.DONE, **paths, "bytes": run.bytes}


def in_backup(fs: FileSystem, run: RepairRun, result: Result) -> InBackup:
    """Return a run as an outcome of its location."""
    return InBackup(location=fs.display(run.location), result=result, run=run, shown=fs.display(run.path))


def write_note(fs: FileSystem, run: RepairRun) -> None:
    """Write the plan of a run down, so that another process can finish or undo it."""
    steps = [asdict(step) for step in run.steps]
    write(fs, run, {"kinds": run.kinds, "paths": run.paths, "bytes": run.bytes, "steps": steps})


def list_backups(fs: FileSystem, location: str, names: Collection[str] | None = None) -> list[RepairRun]:
    """Return the repairs of a location, oldest first; the state of each shows whether it can be used.

    Args:
        names: the children of the location, if they were just listed.
    """
    runs = journal.list_runs(fs, location, RepairRun, _parsed, names)
    return [run if run.problem else replace(run, state=_reached(fs, run)) for run in runs]


def backup_runs(fs: FileSystem, location: str) -> list[RepairRun]:
    """Return the repairs of a location, oldest first.

    Raises:
        BadDataError: acidctl did not write a manifest that is in the backup.
        RefusedError: another user made a run.
    """
    runs = list_backups(fs, location)
    for run in runs:
        if run.problem:
            raise unusable(fs, run)
    return runs


def _parsed(run: RepairRun, note: Any) -> RepairRun:
    steps = tuple(map(Step.of, note["steps"]))
    if not all(_is_ours(step, run.relative) for step in steps):
        raise ValueError
    kinds, paths = (tuple(map(str, note[key])) for key in ("kinds", "paths"))
    return replace(run, steps=steps, bytes=int(note["bytes"]), kinds=kinds, paths=paths)


def _is_ours(step: Step, run: str) -> bool:
    """Say if a repair could have planned a step: it touches no hidden entry but those of the run's own directory."""
    hidden = [path for path in (step.source, step.target) if path.startswith(".") and not path.startswith(f"{run}/")]
    return step.act is not Act.COPY and not hidden and step.is_within(run)


def _reached(fs: FileSystem, run: RepairRun) -> RunState:
    if run.state is not RunState.WRITTEN:
        return RunState.STAGED if run.state in (RunState.UNDONE, RunState.FORGOTTEN) else run.state
    return RunState.INTERRUPTED if any(_is_pending(fs, run, step) for step in run.steps) else RunState.DONE


def _is_pending(fs: FileSystem, run: RepairRun, step: Step) -> bool:
    """Say if a step must still be done; all steps before it are done."""
    source, target = join(run.location, step.source), join(run.location, step.target)
    if not fs.exists(source):
        return False
    if step.act is Act.REPLACE:
        return fs.exists(target)  # else the damaged file is gone, by a cleaning for example
    if step.source.startswith(f"{run.relative}/old/"):
        return True  # an entry that was moved away must be put somewhere; if its new path is taken, that is a conflict
    return not fs.exists(target) and fs.exists(parent_of(target))


def finish(fs: FileSystem, run: RepairRun) -> None:
    """Do the pending steps of a run.

    Raises:
        ConflictError: a file that it replaces was changed by somebody else.
    """
    for step in run.steps:
        if not _is_pending(fs, run, step):
            continue
        target = join(run.location, step.target)
        present = fs.stat(target) if step.act is Act.REPLACE else None
        if present and (present.size, present.modified) != (step.size, step.modified):
            raise ConflictError(
                f"{fs.display(target)} was changed meanwhile",
                f"it has {present.size} bytes; it had {step.size} when the repair was prepared",
                f"run `acidctl restore --run {run.id}`: what was prepared is dropped",
            )
        do(fs, run.location, step)
    mark(fs, run, RunState.DONE)  # listing the runs then need not look at every step


def undo(fs: FileSystem, run: RepairRun) -> None:
    """Undo a run, last step first, and drop it.

    Raises:
        ConflictError: a file that it made was changed by somebody else.
        NotFoundError: the files that it made are gone.
    """
    if run.state is RunState.STAGED:
        drop(fs, run)
        return
    if run.state is not RunState.UNDOING:
        _require_undoable(fs, run)
        mark(fs, run, RunState.UNDOING)
    for step in reversed(run.steps):
        if _can_be_taken_back(fs, run, step):
            take_back(fs, run.location, step)
    _require_returned(fs, run)
    drop(fs, run)


def _can_be_taken_back(fs: FileSystem, run: RepairRun, step: Step) -> bool:
    source, is_file = join(run.location, step.source), step.act is Act.REPLACE
    has_place = is_file or fs.exists(parent_of(source))
    return has_place and not fs.exists(source) and fs.exists(join(run.location, step.kept if is_file else step.target))


def _require_returned(fs: FileSystem, run: RepairRun) -> None:
    """Raise NotFoundError if anything that was in the table before the run is still in the backup."""
    for step in run.steps:
        replaced = step.act is Act.REPLACE and not fs.exists(join(run.location, step.source))
        path = step.kept if replaced else step.target
        if path.startswith(f"{run.relative}/") and fs.exists(join(run.location, path)):
            raise _gone(fs, run, parent_of(join(run.location, step.source)))


def _require_undoable(fs: FileSystem, run: RepairRun) -> None:
    """Raise unless everything that the run made is unchanged and the paths that it emptied are free."""
    shown = {step.target for step in run.steps if not step.target.startswith(f"{run.relative}/")}
    lifted = {step.target for step in run.steps if not fs.exists(join(run.location, step.source))}
    for step in run.steps:
        source, target = join(run.location, step.source), join(run.location, step.target)
        if step.target not in shown:
            if not fs.exists(target):
                continue  # not done
            if not fs.exists(parent_of(source)):
                raise _gone(fs, run, parent_of(source))
            if step.source not in lifted and fs.exists(source):
                raise _changed(fs, run, source)
        elif not fs.exists(source) and not any(step.target.startswith(f"{other.source}/") for other in run.steps):
            # Entries of a directory that a later step moved have moved with it.
            if not fs.exists(target):
                raise _gone(fs, run, target)
            if step.act is Act.REPLACE and fs.stat(target).size != step.new_size:
                raise _changed(fs, run, target)


def _gone(fs: FileSystem, run: RepairRun, path: str) -> NotFoundError:
    return NotFoundError(
        f"cannot undo {run.id}",
        f"{fs.display(path)} is no more: it was compacted and cleaned, or moved",
        "it cannot be restored without its location: `acidctl purge` drops the backup",
    )


def _changed(fs: FileSystem, run: RepairRun, path: str) -> ConflictError:
    return ConflictError(
        f"cannot undo {run.id}",
        f"{fs.display(path)} was changed meanwhile",
        "undo later repairs, or move it away, first",
    )


def settle(fs: FileSystem, runs: Sequence[RepairRun]) -> None:
    """Finish interrupted repairs and interrupted undoing, and drop runs that changed nothing, under the lock.

    Raises:
        ConflictError, NotFoundError: see :func:`finish` and :func:`undo`.
    """
    for run in runs:
        if run.state is RunState.INTERRUPTED:
            finish(fs, run)
        elif run.state is not RunState.DONE:
            undo(fs, run)


def unfinished(runs: Iterable[RepairRun]) -> list[RepairRun]:
    """Return the repairs that were interrupted between their renames."""
    return [run for run in runs if run.state in (RunState.INTERRUPTED, RunState.UNDOING)]


def entry_of(verb: str, result: str, run: RepairRun, night: str = "") -> LogEntry:
    """Return the entry of a run in the log of its location."""
    facts: dict[str, Fact] = {"repair": ", ".join(run.kinds), "paths": list(run.paths), "bytes": run.bytes}
    return LogEntry(verb, result, run.id, facts=facts | of_night(night))


def undo_last(fs: FileSystem, location: str, run_id: str | None = None, locking: Locking | None = None) -> RepairRun:
    """Undo the newest repair of a location, or the newest that has an id beginning with `run_id`.

    Raises:
        NotFoundError: nothing was repaired here, or the id is unknown.
        ConflictError: the location is locked, or a repaired file was changed later.
    """
    if not _undoable(fs, location, run_id):
        raise NotFoundError(f"no such repair of {fs.display(location)}", "", "see `acidctl restore --list`")
    with (locking or Locking()).at(fs, location):
        chosen = _undoable(fs, location, run_id)[-1:]
        for run in chosen:
            _require_newest(fs, run)
            undo(fs, run)
            log_done(fs, location, entry_of("restore", "restored", run), locking.tell if locking else None)
        _tidy(fs, location)
    if not chosen:
        raise ConflictError(f"cannot undo in {fs.display(location)}", "another run was faster", "nothing is left to do")
    return chosen[0]


def _undoable(fs: FileSystem, location: str, run_id: str | None) -> list[RepairRun]:
    runs = [run for run in backup_runs(fs, location) if run.state is not RunState.STAGED]
    return [run for run in runs if run_id is None or run.id.startswith(run_id)]


def _require_newest(fs: FileSystem, run: RepairRun) -> None:
    targets = {step.target for step in run.steps}
    for later in _undoable(fs, run.location, None):
        if later.id > run.id and targets & {step.target for step in later.steps}:
            raise ConflictError(
                f"cannot undo {run.id}", f"{later.id} mended the same file later", "undo that one first"
            )


SETTLED = RunState.DONE, RunState.STAGED
"""States of runs whose backup can be discarded: no step is waiting to be done or undone."""


def discard(
    fs: FileSystem,
    location: str,
    runs: Collection[str] | None = None,
    locking: Locking | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    night: str = "",
) -> list[RepairRun]:
    """Delete backups of a location permanently and return their runs; interrupted and damaged ones stay.

    Args:
        runs: the ids of the runs; None discards all.
        should_stop: called before each run.
        night: the id of the nightly run that this is a part of.

    Raises:
        ConflictError: the location is locked.
    """
    discarded: list[RepairRun] = []
    with (locking or Locking()).at(fs, location):
        try:
            for run in list_backups(fs, location):
                is_wanted = runs is None or run.id in runs
                if run.state not in SETTLED or not is_wanted or should_stop():
                    continue
                drop(fs, run, are_more=True)
                discarded.append(run)
            _tidy(fs, location)
        finally:
            entries = [signed(entry_of("purge", "purged", run, night)) for run in discarded]
            log_all(fs, location, entries, locking.tell if locking else None)
    return discarded


def _tidy(fs: FileSystem, location: str) -> None:
    """Remove what dead repairs staged without changing anything, under the lock of the location."""
    for run in list_backups(fs, location):
        if run.state is RunState.STAGED:
            drop(fs, run)
    fs.remove_empty(join(location, BACKUP))
