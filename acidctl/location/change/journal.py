"""The steps of each change of a location, so that it can be finished, undone and discarded.

A run is a hidden directory ``<folder>/<UTC time>-<id>/`` of the location. Its manifest is written before the first
step: a run without one has changed nothing. Each step is one call of the store, and the files' places show which steps
are done. Cleanings and repairs are such runs; a publication has the same steps, and its manifest is in its staging
directory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from acidctl.base.errors import AcidctlError, BadDataError, NotFoundError
from acidctl.location.change.own_files import MOST_BYTES, foreign, not_ours, not_ours_error, require_ours, write_whole
from acidctl.outcome import Outcome, Result
from acidctl.storage.port import FileSystem, join, parent_of
from acidctl.storage.remote import END
from acidctl.wording import human_bytes, human_count, some_of

MANIFEST = "manifest.json"
"""The file with the steps of a run."""

_VERSION = 1


class Act(StrEnum):
    """The kinds of step."""

    MOVE = "move"
    REPLACE = "replace"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the store; paths are relative to the location.

    Attributes:
        kept: REPLACE only: the copy of the old file.
        size, modified: REPLACE only: of the old file.
        new_size: REPLACE only: size of the new file.
    """

    act: Act
    source: str
    target: str
    kept: str = ""
    size: int = 0
    modified: float | None = None
    new_size: int = 0

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Step:
        """Parse JSON; raise ValueError, TypeError or KeyError for anything that is not a step."""
        step = cls(**{**record, "act": Act(record["act"])})
        numbers = isinstance(step.size, int) and isinstance(step.new_size, int)
        if not (numbers and isinstance(step.kept, str) and isinstance(step.modified, int | float | None)):
            raise TypeError
        return step

    def is_within(self, run: str) -> bool:
        """Return whether the step leads from a run's directory to the outside, or back, and nowhere else."""
        replaces = self.act is Act.REPLACE
        paths = (self.source, self.target, *([self.kept] if replaces else []))
        if not all(map(is_inside, paths)):
            return False
        forth, back, kept = (path.startswith(f"{run}/") for path in (self.source, self.target, self.kept))
        return forth and kept and not back if replaces else forth != back


def is_inside(path: object) -> bool:
    """Return whether a value is a relative path that stays inside the location."""
    return isinstance(path, str) and not {"", ".", ".."} & set(path.split("/"))


class RunState(StrEnum):
    """The states of a run."""

    STAGED = "staged"
    """It has no manifest: it changed nothing, and nothing can be undone."""
    WRITTEN = "written"
    """It has a manifest; its steps show how far it came."""
    INTERRUPTED = "interrupted"
    DONE = "done"
    UNDOING = "undoing"
    UNDONE = "restored"
    """Its directory only remains to be removed, as for FORGOTTEN."""
    FORGOTTEN = "purged"
    DAMAGED = "damaged"
    """Its manifest cannot be used."""
    FOREIGN = "foreign"
    """Another user made it."""


_MARKS = {RunState.UNDOING: "undo.json", RunState.DONE: "done.json"}
"""Files beside the manifest that record the state of a run."""

_NAMES = {RunState.UNDONE: "restored.json", RunState.FORGOTTEN: "purged.json"}
"""New names of the manifest, so that a half-removed run never looks complete."""


@dataclass(frozen=True, slots=True)
class Run:
    """One change of a location.

    Attributes:
        location: absolute.
        id: ``<UTC time>-<id>``, the name of its directory.
        bytes: the size of all files written or moved.
        problem: why a damaged or foreign run cannot be used.
        noted: when its manifest was written, in seconds since the epoch by the store's clock; 0 if not known.
    """

    folder: ClassVar[str] = ""

    location: str
    id: str
    steps: tuple[Step, ...] = ()
    bytes: int = 0
    state: RunState = RunState.STAGED
    problem: str = ""
    noted: float = field(default=0.0, compare=False)

    @property
    def relative(self) -> str:
        """Return its directory, relative to the location."""
        return f"{self.folder}/{self.id}".rstrip("/")

    @property
    def path(self) -> str:
        """Return its directory, absolute."""
        return join(self.location, self.relative)

    @property
    def can_be_undone(self) -> bool:
        """Return whether its manifest is whole and its directory is not being removed."""
        return self.state in (RunState.WRITTEN, RunState.INTERRUPTED, RunState.DONE, RunState.UNDOING)

    @property
    def began(self) -> float | None:
        """Return when it began, in seconds since the epoch; None if its name does not show it."""
        try:
            return datetime.strptime(self.id.partition("-")[0] + "+0000", "%Y%m%dT%H%M%S.%fZ%z").timestamp()
        except ValueError:
            return None

    def is_before(self, moment: float) -> bool:
        """Return whether it began by a moment, by its name and by its store: our clock may have been wrong."""
        return self.began is not None and max(self.began, self.noted) <= moment


R = TypeVar("R", bound=Run)
T = TypeVar("T")


def begin(fs: FileSystem, run: Run, directories: Collection[str] = ()) -> None:
    """Make the run's directory, and further directories in it, given by their absolute paths.

    Raises:
        RefusedError: the folder of the runs belongs to another user.
        NotFoundError: the location is gone.
    """
    fs.make_dirs(join(run.location, run.folder), below=run.location)
    require_ours(fs, run.location, run.folder)
    for directory in directories or (run.path,):
        fs.make_dirs(directory, below=run.location)


def write(fs: FileSystem, run: Run, content: Mapping[str, Any]) -> None:
    """Write the manifest, whole or not at all."""
    write_whole(fs, join(run.path, MANIFEST), json.dumps({"version": _VERSION, **content}, indent=1).encode())


def list_runs(
    fs: FileSystem,
    location: str,
    kind: type[R],
    understand: Callable[[R, Any], R],
    names: Collection[str] | None = None,
) -> list[R]:
    """Return the runs of one kind, oldest first; the state of unusable runs is DAMAGED or FOREIGN.

    Args:
        understand: makes the whole run from an empty one and its manifest; may raise any error of :func:`read_note`
            for content that acidctl did not write.
        names: the children of the location, if they were just listed.
    """
    try:
        if names is None:
            names = {entry.path for entry in fs.list_dir(location).entries}
        if kind.folder not in names:
            return []
        if why := not_ours(fs, location, kind.folder):
            return [kind(location, "", state=RunState.FOREIGN, problem=why)]
        access = fs.access_below(join(location, kind.folder))
        entries = fs.list_dir(join(location, kind.folder)).entries
    except NotFoundError:
        return []
    runs = []
    for entry in entries:
        with suppress(NotFoundError):  # dropped since
            if entry.is_dir and (why := foreign(access.get(entry.path))):
                runs.append(kind(location, entry.path, state=RunState.FOREIGN, problem=why))
            elif entry.is_dir:
                runs.append(_read(fs, kind(location, entry.path), understand))
    return runs


def _read(fs: FileSystem, run: R, understand: Callable[[R, Any], R]) -> R:
    present = {entry.path: entry.modified for entry in fs.list_dir(run.path).entries}
    is_written = MANIFEST in present
    marks, otherwise = (_MARKS, RunState.WRITTEN) if is_written else (_NAMES, RunState.STAGED)
    state = next((state for state, mark in marks.items() if mark in present), otherwise)
    run = replace(run, state=state, noted=present.get(MANIFEST) or 0.0)
    if not is_written:
        return run
    if why := not_ours(fs, run.path, MANIFEST):
        return replace(run, state=RunState.FOREIGN, problem=f"its {MANIFEST}: {why}")

    def understood(manifest: Any) -> R:
        if manifest["version"] != _VERSION:
            raise ValueError
        return understand(run, manifest)

    whole = read_note(fs, join(run.path, MANIFEST), understood)
    return whole or replace(run, state=RunState.DAMAGED, problem=f"its {MANIFEST} is not a manifest of acidctl")


def read_note(fs: FileSystem, path: str, understand: Callable[[Any], T]) -> T | None:
    """Return the parsed content of a JSON file; None if acidctl did not write it.

    Args:
        understand: parses the JSON; it may raise any error that unexpected content causes.

    Raises:
        NotFoundError: the file does not exist.
    """
    data = fs.read_bytes(path, 0, MOST_BYTES + 1)
    try:
        return understand(json.loads(data)) if len(data) <= MOST_BYTES else None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, AcidctlError):
        return None


def unusable(fs: FileSystem, run: Run) -> AcidctlError:
    """Return the error for a run with a problem."""
    if run.state is RunState.FOREIGN:
        return not_ours_error(fs, run.path, run.problem)
    hint = "move its entries back by hand, or delete them"
    return BadDataError(f"cannot use {fs.display(run.path)}", run.problem, hint)


def do(fs: FileSystem, location: str, step: Step) -> None:
    """Do a step that is not done yet. Check a copy afterwards with :func:`undid_torn`."""
    source, target = join(location, step.source), join(location, step.target)
    if step.act is Act.REPLACE:
        fs.replace(source, target)
    elif step.act is Act.MOVE:
        fs.rename(source, target)
    else:
        _copy(fs, location, source, target)


def _copy(fs: FileSystem, location: str, source: str, target: str) -> None:
    try:
        if fs.can_copy:
            fs.copy(source, target)
        else:  # what an object store left half-way, copied to where files are renamed
            fs.make_dirs(parent_of(target), below=location)
            fs.rename(source, target)
    except AcidctlError:
        # The copy may exist if only its answer was lost, or if the store's client retried it and failed.
        with suppress(AcidctlError):
            if fs.stat(source).size == fs.stat(target).size and _ends_alike(fs, source, target):
                return
        raise


def _ends_alike(fs: FileSystem, source: str, target: str) -> bool:
    """Return whether two files have the same end, which for side files is all of the content."""
    return fs.read_bytes(source, -END) == fs.read_bytes(target, -END)


def undid_torn(fs: FileSystem, location: str, step: Step) -> bool:
    """Return whether a new copy ended differently from its source, and was removed for that."""
    if step.act is not Act.COPY or not fs.can_copy:
        return False
    if _ends_alike(fs, join(location, step.source), join(location, step.target)):
        return False
    take_back(fs, location, step)
    return True


def take_back(fs: FileSystem, location: str, step: Step) -> None:
    """Undo a step that was done."""
    source, target = join(location, step.source), join(location, step.target)
    if step.act is Act.REPLACE:
        fs.replace(join(location, step.kept), target)
    elif step.act is Act.MOVE:
        fs.rename(target, source)
    else:
        with suppress(NotFoundError):
            fs.remove_tree(target)


def mark(fs: FileSystem, run: Run, state: RunState) -> None:
    """Record the state of a run in a file beside its manifest, or by the manifest's name."""
    if state in _MARKS:
        if not fs.exists(path := join(run.path, _MARKS[state])):
            write_whole(fs, path, b"{}")
    else:
        fs.rename(join(run.path, MANIFEST), join(run.path, _NAMES[state]))


def drop(fs: FileSystem, run: Run, *, are_more: bool = False) -> None:
    """Remove a run's directory, and the folder if it is empty; it is fine if another process already did so.

    Args:
        are_more: the caller drops more runs next, so the folder is not empty yet; this saves a listing on many stores.
    """
    with suppress(NotFoundError):
        remove_run(fs, run.path, MANIFEST, _NAMES.values())
    if are_more:
        return
    fs.remove_empty(join(run.location, run.folder))  # another run may just have begun in it


def remove_run(fs: FileSystem, path: str, note: str, last: Collection[str]) -> None:
    """Remove the directory of a run, its manifest first, so that a manifest never lists missing files.

    Args:
        last: names to remove last: the rest of an interrupted removal can still be recognized by them.

    Raises:
        NotFoundError: the directory does not exist.
    """
    names = [entry.path for entry in fs.list_dir(path).entries if entry.path not in last]
    for name in sorted(names, key=lambda name: name != note):
        with suppress(NotFoundError):
            fs.remove_tree(join(path, name))
    fs.remove_tree(path)


_INCOMPLETE = {
    RunState.STAGED: "incomplete: it was interrupted, and nothing can be restored from it",
    RunState.UNDONE: "restored already; its directory is still to be removed",
    RunState.FORGOTTEN: "incomplete: it was being purged, and nothing can be restored from it",
}


@dataclass(frozen=True, kw_only=True)
class KeptRunOutcome(Outcome):
    """A run that is kept, will be undone or deleted, or was.

    Attributes:
        shown: the directory of the run, as a user would type it.
    """

    NAMES_SHOWN: ClassVar[int] = 8

    run: Run
    shown: str = ""

    @property
    def entries(self) -> tuple[str, ...]:
        """The names or paths in the location that the run took or changed."""
        raise NotImplementedError

    @property
    def kinds(self) -> str:
        """The kinds of a repair, before the number of entries; empty for a cleaning."""
        return ""

    @property
    def heading(self) -> str:
        return (self.run.id or self.shown) if self.result is Result.IN_TRASH else self.result.words

    def line(self) -> str:
        run = self.run
        if self.result is Result.RESTORED:
            return f"{self.location}: {run.id} undone: {some_of(self.entries, self.NAMES_SHOWN)}"
        what = f"cannot be used: {run.problem}" if run.problem else _INCOMPLETE.get(run.state, "")
        if not what:
            count, names = human_count(len(self.entries), "entry", "entries"), some_of(self.entries, self.NAMES_SHOWN)
            what = f"{self.kinds}{count}, {human_bytes(run.bytes)}"
            what += f": {names}" if self.result is not Result.PURGED else ""
        done = "" if self.result in (Result.IN_TRASH, Result.PLANNED) else f"{self.result.words}: "
        return f"{self.location}: {run.id}: {done}{what}"

    def amounts(self) -> Mapping[str, int]:
        return {"runs": 1, "entries": len(self.entries), "bytes": self.run.bytes}

    def bytes_by_use(self) -> Mapping[str, int]:
        """Return how many bytes were restored, or removed permanently."""
        use = {Result.RESTORED: "restored", Result.PURGED: "purged"}.get(self.result)
        return {use: self.run.bytes} if use else {}
