"""What a repair keeps in a location, so that it can be finished, undone and forgotten.

Each repair is a run of the journal, ``<location>/.acidctl-backup/<time>-<id>/``, with ``old/`` (what was there) and
``new/`` (what is not shown yet). Its note is written when all of ``new/`` is verified and before the first step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from acidctl.errors import ConflictError, NotFoundError
from acidctl.location.change import journal
from acidctl.location.change.journal import Act, Run, RunState, Step, do, drop, mark, take_back, unusable, write
from acidctl.one_line import one_line
from acidctl.storage.port import FileSystem, join, parent_of

BACKUP = ".acidctl-backup"


@dataclass(frozen=True, slots=True)
class RepairRun(Run):
    """One repair of a location.

    Attributes:
        kind: which repair.
        paths: what was wrong, relative to the location.
    """

    __repr__ = one_line

    folder: ClassVar[str] = BACKUP

    kind: str = ""
    paths: tuple[str, ...] = ()

    @property
    def told(self) -> tuple[str, ...]:
        """Its steps in words, in their order."""
        return tuple(f"{step.act} {step.source} to {step.target}" for step in self.steps)


def write_note(fs: FileSystem, run: RepairRun) -> None:
    """Say what the run is going to do."""
    steps = [asdict(step) for step in run.steps]
    write(fs, run, {"kind": run.kind, "paths": run.paths, "bytes": run.bytes, "steps": steps})


def backup_runs(fs: FileSystem, location: str) -> list[RepairRun]:
    """The repairs of a location, oldest first.

    Raises:
        BadDataError: a manifest that acidctl did not write.
        RefusedError: somebody else made it.
    """
    runs = journal.list_runs(fs, location, RepairRun, _understood)
    for run in runs:
        if run.problem:
            raise unusable(fs, run)
    return [replace(run, state=_reached(fs, run)) for run in runs]


def _understood(run: RepairRun, said: Any) -> RepairRun:
    steps = tuple(map(Step.of, said["steps"]))
    if not all(_is_ours(step, run.relative) for step in steps):
        raise ValueError
    return replace(
        run, steps=steps, bytes=int(said["bytes"]), kind=str(said["kind"]), paths=tuple(map(str, said["paths"]))
    )


def _is_ours(step: Step, run: str) -> bool:
    """Whether a repair could have meant a step: it touches nothing hidden of the location but its own directory."""
    hidden = [path for path in (step.source, step.target) if path.startswith(".") and not path.startswith(f"{run}/")]
    return step.act is not Act.COPY and not hidden and step.is_within(run)


def _reached(fs: FileSystem, run: RepairRun) -> RunState:
    if run.state is not RunState.WRITTEN:
        return RunState.STAGED if run.state in (RunState.UNDONE, RunState.FORGOTTEN) else run.state
    return RunState.INTERRUPTED if any(_is_pending(fs, run, step) for step in run.steps) else RunState.DONE


def _is_pending(fs: FileSystem, run: RepairRun, step: Step) -> bool:
    """Whether a step, all before it being done, is still to be done."""
    source, target = join(run.location, step.source), join(run.location, step.target)
    if not fs.exists(source):
        return False
    if step.act is Act.REPLACE:
        return fs.exists(target)  # else what it mends is gone, by a cleaning for example
    if step.source.startswith(f"{run.relative}/old/"):
        return True  # what has left its place has to be somewhere; if its new place is taken, that is a conflict
    return not fs.exists(target) and fs.exists(parent_of(target))


def finish(fs: FileSystem, run: RepairRun) -> None:
    """Do what is left of a run.

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
                f"run `undo_repair()` on {fs.display(run.location)}: what was prepared is dropped",
            )
        do(fs, run.location, step)
    mark(fs, run, RunState.DONE)  # which spares whoever lists the runs a look at every step


def undo(fs: FileSystem, run: RepairRun) -> None:
    """Take a run back, last step first, and drop it.

    Raises:
        ConflictError: a file that it made was changed by somebody else.
        NotFoundError: nothing of it is left to take back.
    """
    if run.state is RunState.STAGED:
        drop(fs, run)
        return
    if run.state is not RunState.UNDOING:
        _require_own(fs, run)
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
    """Nothing that was there before is left in the backup."""
    for step in run.steps:
        replaced = step.act is Act.REPLACE and not fs.exists(join(run.location, step.source))
        path = step.kept if replaced else step.target
        if path.startswith(f"{run.relative}/") and fs.exists(join(run.location, path)):
            raise _gone(fs, run, parent_of(join(run.location, step.source)))


def _require_own(fs: FileSystem, run: RepairRun) -> None:
    """What a run made must be as it made it, and where things came from must be free."""
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
            # What lies in a directory that moved afterwards moved with it.
            if not fs.exists(target):
                raise _gone(fs, run, target)
            if step.act is Act.REPLACE and fs.stat(target).size != step.new_size:
                raise _changed(fs, run, target)


def _gone(fs: FileSystem, run: RepairRun, path: str) -> NotFoundError:
    return NotFoundError(
        f"cannot undo {run.id}",
        f"{fs.display(path)} is no more: it was compacted and cleaned, or moved",
        "there is no place to take it back to: `forget_repair()` drops the backup",
    )


def _changed(fs: FileSystem, run: RepairRun, path: str) -> ConflictError:
    return ConflictError(
        f"cannot undo {run.id}",
        f"{fs.display(path)} was changed meanwhile",
        "undo later repairs, or move it away, first",
    )


def sweep(fs: FileSystem, location: str) -> None:
    """Remove what dead repairs left before they changed anything. The lock must be held."""
    for run in backup_runs(fs, location):
        if run.state is RunState.STAGED:
            drop(fs, run)


def settle(fs: FileSystem, runs: Sequence[RepairRun]) -> None:
    """Finish what was interrupted, go on undoing what was being undone, remove what changed nothing; under the lock.

    Raises:
        ConflictError, NotFoundError: as :func:`finish` and :func:`undo` do.
    """
    for run in runs:
        if run.state is RunState.INTERRUPTED:
            finish(fs, run)
        elif run.state is not RunState.DONE:
            undo(fs, run)
