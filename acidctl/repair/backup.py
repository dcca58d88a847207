"""What a repair keeps in a location, so that it can be finished, undone and forgotten.

``<location>/.acidctl-backup/<time>-<id>/`` holds ``old/`` (what was there), ``new/`` (what is not shown yet) and
``manifest.json``: the renames, in their order.  It is written when all of ``new/`` is verified and before the first
rename, so a directory without one has touched nothing.  Each rename is one step of the store, and what is where tells
which of them are done.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum

from acidctl.errors import BadDataError, ConflictError, NotFoundError
from acidctl.location.own_files import read_note, require_ours, write_whole
from acidctl.storage.port import FileSystem, join, parent_of

BACKUP = ".acidctl-backup"
MANIFEST = "manifest.json"
DONE = "done.json"
UNDO = "undo.json"
_VERSION = 1


class Act(StrEnum):
    """What a step does."""

    MOVE = "move"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Step:
    """One rename; paths are relative to the location.

    Attributes:
        kept: of REPLACE: where the copy of the old file is.
        size, modified: of REPLACE: of the old file.
        new_size: of REPLACE: of the new one.
    """

    act: Act
    source: str
    target: str
    kept: str = ""
    size: int = 0
    modified: float | None = None
    new_size: int = 0


class RunState(StrEnum):
    """How far a run came."""

    DONE = "done"
    INTERRUPTED = "interrupted"
    UNDOING = "undoing"
    STAGED = "staged"


@dataclass(frozen=True, slots=True)
class Run:
    """One repair of a location.

    Attributes:
        location: absolute.
        id: ``<UTC time>-<id>``, the name of its directory.
        kind: which repair.
        paths: what was wrong, relative to the location.
        bytes: of what was written or moved.
        state: STAGED has no manifest: it changed nothing and nothing can be undone.
    """

    location: str
    id: str
    kind: str = ""
    paths: tuple[str, ...] = ()
    bytes: int = 0
    steps: tuple[Step, ...] = ()
    state: RunState = RunState.STAGED

    @property
    def told(self) -> tuple[str, ...]:
        """Its steps in words, in their order."""
        return tuple(f"{step.act} {step.source} to {step.target}" for step in self.steps)

    @property
    def relative(self) -> str:
        """Its directory, relative to the location."""
        return f"{BACKUP}/{self.id}"

    @property
    def path(self) -> str:
        """Its directory, absolute."""
        return join(self.location, self.relative)


def write_manifest(fs: FileSystem, run: Run) -> None:
    """Say what the run is going to do."""
    content = {
        "version": _VERSION,
        "kind": run.kind,
        "paths": list(run.paths),
        "bytes": run.bytes,
        "steps": [asdict(step) for step in run.steps],
    }
    write_whole(fs, join(run.path, MANIFEST), json.dumps(content, indent=1).encode())


def list_runs(fs: FileSystem, location: str) -> list[Run]:
    """The repairs of a location, oldest first.

    Raises:
        BadDataError: a manifest that acidctl did not write.
        RefusedError: somebody else made it.
    """
    try:
        if all(entry.path != BACKUP for entry in fs.list_dir(location).entries):
            return []
        require_ours(fs, location, BACKUP)
        entries = fs.list_dir(join(location, BACKUP)).entries
    except NotFoundError:
        return []
    runs = []
    for entry in entries:
        with suppress(NotFoundError):  # dropped since
            if entry.is_dir:
                require_ours(fs, join(location, BACKUP), entry.path)
                runs.append(_read(fs, location, entry.path))
    return runs


def _read(fs: FileSystem, location: str, name: str) -> Run:
    run = Run(location, name)
    path = join(run.path, MANIFEST)
    names = {entry.path for entry in fs.list_dir(run.path).entries}
    if MANIFEST not in names:
        return run
    require_ours(fs, run.path, MANIFEST)
    try:
        found = json.loads(read_note(fs, path))
        if found["version"] != _VERSION:
            raise ValueError
        steps = tuple(Step(**{**step, "act": Act(step["act"])}) for step in found["steps"])
        if not all(_is_ours(step, run.relative) for step in steps):
            raise ValueError
        run = Run(location, name, str(found["kind"]), tuple(map(str, found["paths"])), int(found["bytes"]), steps)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise BadDataError(
            f"cannot use {fs.display(path)}", "it is no manifest of acidctl", "move its entries back by hand"
        ) from None
    state = RunState.DONE
    if UNDO in names:
        state = RunState.UNDOING
    elif DONE not in names and any(_is_pending(fs, run, step) for step in steps):
        state = RunState.INTERRUPTED
    return Run(run.location, run.id, run.kind, run.paths, run.bytes, run.steps, state)


def _paths(step: Step) -> tuple[str, ...]:
    return (step.source, step.target, step.kept) if step.act is Act.REPLACE else (step.source, step.target)


def _is_ours(step: Step, run: str) -> bool:
    """Whether a repair could have meant a step: between the run's own directory and what the table holds."""
    if not all(_is_inside(path) for path in _paths(step)):
        return False
    source, target, kept = (path.startswith(f"{run}/") for path in (step.source, step.target, step.kept))
    hidden = [path for path in _paths(step) if path.startswith(".") and not path.startswith(f"{run}/")]
    return not hidden and (source and kept and not target if step.act is Act.REPLACE else source != target)


def _is_inside(path: object) -> bool:
    """A relative path that leaves the location nowhere."""
    return isinstance(path, str) and all(part not in ("", ".", "..") for part in path.split("/"))


def _is_pending(fs: FileSystem, run: Run, step: Step) -> bool:
    """Whether a step, all before it being done, is still to be done."""
    source, target = join(run.location, step.source), join(run.location, step.target)
    if not fs.exists(source):
        return False
    if step.act is Act.REPLACE:
        return fs.exists(target)  # else what it mends is gone, by a cleaning for example
    if step.source.startswith(f"{run.relative}/old/"):
        return True  # what has left its place has to be somewhere; if its new place is taken, that is a conflict
    return not fs.exists(target) and fs.exists(parent_of(target))


def finish(fs: FileSystem, run: Run) -> None:
    """Do what is left of a run.

    Raises:
        ConflictError: a file that it replaces was changed by somebody else.
    """
    for step in run.steps:
        if not _is_pending(fs, run, step):
            continue
        source, target = join(run.location, step.source), join(run.location, step.target)
        if step.act is Act.MOVE:
            fs.rename(source, target)
            continue
        present = fs.stat(target)
        if (present.size, present.modified) != (step.size, step.modified):
            raise ConflictError(
                f"{fs.display(target)} was changed meanwhile",
                f"it has {present.size} bytes; it had {step.size} when the repair was prepared",
                f"run `acidctl repair undo {fs.display(run.location)}`: what was prepared is dropped",
            )
        fs.replace(source, target)
    if not fs.exists(join(run.path, DONE)):  # which spares whoever lists the runs a look at every step
        write_whole(fs, join(run.path, DONE), b"{}")


def undo(fs: FileSystem, run: Run) -> None:
    """Take a run back, last step first, and drop it.

    Raises:
        ConflictError: a file that it made was changed by somebody else.
        NotFoundError: nothing of it is left to take back.
    """
    if run.state is RunState.STAGED:
        drop(fs, run)
        return
    marker = join(run.path, UNDO)
    if not fs.exists(marker):
        _require_own(fs, run)
        write_whole(fs, marker, b"{}")
    for step in reversed(run.steps):
        source, target = join(run.location, step.source), join(run.location, step.target)
        if step.act is Act.REPLACE:
            kept = join(run.location, step.kept)
            if not fs.exists(source) and fs.exists(kept):
                fs.replace(kept, target)
        elif fs.exists(target) and not fs.exists(source) and fs.exists(parent_of(source)):
            fs.rename(target, source)
    _require_returned(fs, run)
    drop(fs, run)


def _require_returned(fs: FileSystem, run: Run) -> None:
    """Nothing that was there before is left in the backup."""
    for step in run.steps:
        replaced = step.act is Act.REPLACE and not fs.exists(join(run.location, step.source))
        path = step.kept if replaced else step.target
        if path.startswith(f"{run.relative}/") and fs.exists(join(run.location, path)):
            raise _gone(fs, run, parent_of(join(run.location, step.source)))


def _require_own(fs: FileSystem, run: Run) -> None:
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


def _gone(fs: FileSystem, run: Run, path: str) -> NotFoundError:
    return NotFoundError(
        f"cannot undo {run.id}",
        f"{fs.display(path)} is no more: it was compacted and cleaned, or moved",
        "there is no place to take it back to: `acidctl repair forget` drops the backup",
    )


def _changed(fs: FileSystem, run: Run, path: str) -> ConflictError:
    return ConflictError(
        f"cannot undo {run.id}",
        f"{fs.display(path)} was changed meanwhile",
        "undo later repairs, or move it away, first",
    )


def drop(fs: FileSystem, run: Run) -> None:
    """Remove a run's directory; the manifest goes first, so that half of a backup never looks like a whole one."""
    manifest = join(run.path, MANIFEST)
    if fs.exists(manifest):
        fs.remove_tree(manifest)
    fs.remove_tree(run.path)


def sweep(fs: FileSystem, location: str) -> None:
    """Remove what dead repairs left before they changed anything. The lock must be held."""
    for run in list_runs(fs, location):
        if run.state is RunState.STAGED:
            fs.remove_tree(run.path)


def is_empty(fs: FileSystem, location: str) -> bool:
    """Whether nothing is in the directory of backups, and it is there."""
    try:
        return not fs.list_dir(join(location, BACKUP)).entries
    except NotFoundError:
        return False


def settle(fs: FileSystem, runs: Sequence[Run]) -> None:
    """Finish what was interrupted, and go on undoing what was being undone. The lock must be held.

    Raises:
        ConflictError, NotFoundError: as :func:`finish` and :func:`undo` do.
    """
    for run in runs:
        if run.state is RunState.INTERRUPTED:
            finish(fs, run)
        elif run.state is RunState.UNDOING:
            undo(fs, run)
