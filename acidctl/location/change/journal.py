"""What is done to a location, step by step, so that it can be finished, undone and forgotten.

A run is a hidden directory ``<folder>/<UTC time>-<id>/`` of the location. Its note is written before the first step: a
run without one has changed nothing. Each step is one call of the store, and what is where tells which of them are done.
Cleanings and repairs are such runs; a publication has the same steps, and its note lies in its staging directory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from acidctl.errors import AcidctlError, BadDataError, NotFoundError
from acidctl.location.change.own_files import (
    MOST_BYTES,
    foreign,
    not_ours,
    not_ours_error,
    require_ours,
    write_whole,
)
from acidctl.storage.port import FileSystem, join, parent_of
from acidctl.storage.remote import END

MANIFEST = "manifest.json"
"""The note of a run."""

_VERSION = 1


class Act(StrEnum):
    """What a step does."""

    MOVE = "move"
    REPLACE = "replace"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the store; paths are relative to the location.

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

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Step:
        """Of JSON; ValueError, TypeError or KeyError for what no step is written as."""
        step = cls(**{**said, "act": Act(said["act"])})
        numbers = isinstance(step.size, int) and isinstance(step.new_size, int)
        if not (numbers and isinstance(step.kept, str) and isinstance(step.modified, int | float | None)):
            raise TypeError
        return step

    def is_within(self, run: str) -> bool:
        """Whether it leads from a run's directory to what lies outside of it, or back, and nowhere else."""
        replaces = self.act is Act.REPLACE
        paths = (self.source, self.target, *([self.kept] if replaces else []))
        if not all(map(is_inside, paths)):
            return False
        forth, back, kept = (path.startswith(f"{run}/") for path in (self.source, self.target, self.kept))
        return forth and kept and not back if replaces else forth != back


def is_inside(path: object) -> bool:
    """Whether it is a relative path that never leads out of the location."""
    return isinstance(path, str) and not {"", ".", ".."} & set(path.split("/"))


class RunState(StrEnum):
    """How far a run is."""

    STAGED = "staged"
    """It has no note: it changed nothing, and nothing can be undone."""
    WRITTEN = "written"
    """It has a note; how far it came, its steps tell."""
    INTERRUPTED = "interrupted"
    DONE = "done"
    UNDOING = "undoing"
    UNDONE = "restored"
    """Its directory is only waiting to be removed, as that of FORGOTTEN."""
    FORGOTTEN = "purged"
    DAMAGED = "damaged"
    """Nobody can say what it holds."""
    FOREIGN = "foreign"
    """Somebody else made it."""


_MARKS = {RunState.UNDOING: "undo.json", RunState.DONE: "done.json"}
"""Files beside the note that tell the state of a run."""

_NAMES = {RunState.UNDONE: "restored.json", RunState.FORGOTTEN: "purged.json"}
"""What the note is renamed to, so that half of a run never looks like all of it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One change of a location.

    Attributes:
        location: absolute.
        id: ``<UTC time>-<id>``, the name of its directory.
        bytes: of what was written or moved.
        problem: of a damaged or foreign one: why it cannot be used.
        noted: when its note was written, in seconds since the epoch by the clock of the store; 0 if it does not say.
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
        """Its directory, relative to the location."""
        return f"{self.folder}/{self.id}".rstrip("/")

    @property
    def path(self) -> str:
        """Its directory, absolute."""
        return join(self.location, self.relative)

    @property
    def began(self) -> float | None:
        """When it began, in seconds since the epoch; None when its name does not tell."""
        try:
            return datetime.strptime(self.id.partition("-")[0] + "+0000", "%Y%m%dT%H%M%S.%fZ%z").timestamp()
        except ValueError:
            return None

    def is_before(self, moment: float) -> bool:
        """Whether it began by a moment, by its name and by its store: the clock of the machine may have been wrong."""
        return self.began is not None and max(self.began, self.noted) <= moment


R = TypeVar("R", bound=Run)
T = TypeVar("T")


def begin(fs: FileSystem, run: Run, directories: Collection[str] = ()) -> None:
    """Make the run's directory, and others in it, given by their absolute paths.

    Raises:
        RefusedError: the folder of the runs is somebody else's.
        NotFoundError: the location is gone.
    """
    fs.make_dirs(join(run.location, run.folder), below=run.location)
    require_ours(fs, run.location, run.folder)
    for directory in directories or (run.path,):
        fs.make_dirs(directory, below=run.location)


def write(fs: FileSystem, run: Run, said: Mapping[str, Any]) -> None:
    """Write the note, whole or not at all."""
    write_whole(fs, join(run.path, MANIFEST), json.dumps({"version": _VERSION, **said}, indent=1).encode())


def list_runs(fs: FileSystem, location: str, kind: type[R], understand: Callable[[R, Any], R]) -> list[R]:
    """The runs of one kind, oldest first; the state of those that cannot be used says so.

    Args:
        understand: makes the whole run of an empty one and its note. It raises ValueError, or whatever else comes of
            content that acidctl did not write.
    """
    try:
        if all(entry.path != kind.folder for entry in fs.list_dir(location).entries):
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

    def understood(said: Any) -> R:
        if said["version"] != _VERSION:
            raise ValueError
        return understand(run, said)

    whole = read_note(fs, join(run.path, MANIFEST), understood)
    return whole or replace(run, state=RunState.DAMAGED, problem=f"its {MANIFEST} is not a manifest of acidctl")


def read_note(fs: FileSystem, path: str, understand: Callable[[Any], T]) -> T | None:
    """What a note says; None where acidctl did not write it so.

    Args:
        understand: of the JSON; it may fail as it likes on what it did not expect.

    Raises:
        NotFoundError: it is not there.
    """
    data = fs.read_bytes(path, 0, MOST_BYTES + 1)
    try:
        return understand(json.loads(data)) if len(data) <= MOST_BYTES else None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, AcidctlError):
        return None


def unusable(fs: FileSystem, run: Run) -> AcidctlError:
    """What there is to say of a run with a problem."""
    if run.state is RunState.FOREIGN:
        return not_ours_error(fs, run.path, run.problem)
    hint = "move its entries back by hand, or delete them"
    return BadDataError(f"cannot use {fs.display(run.path)}", run.problem, hint)


def do(fs: FileSystem, location: str, step: Step) -> None:
    """Do a step that nobody did yet. A copy is to be looked at afterwards: see :func:`undid_torn`."""
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
        # It may have been done, and only its answer lost; or asked for again by the store's own client, in vain.
        if not _is_copy(fs, source, target):
            raise


def _is_copy(fs: FileSystem, source: str, target: str) -> bool:
    try:
        return fs.stat(source).size == fs.stat(target).size and _ends_alike(fs, source, target)
    except AcidctlError:
        return False


def _ends_alike(fs: FileSystem, source: str, target: str) -> bool:
    """Whether the ends are the same: of side files that is all there is."""
    return fs.read_bytes(source, -END) == fs.read_bytes(target, -END)


def undid_torn(fs: FileSystem, location: str, step: Step) -> bool:
    """Whether a new copy had another end than its source, and was removed for it."""
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
    """Say how far a run is: beside its note, or in place of it."""
    if state in _MARKS:
        if not fs.exists(path := join(run.path, _MARKS[state])):
            write_whole(fs, path, b"{}")
    else:
        fs.rename(join(run.path, MANIFEST), join(run.path, _NAMES[state]))


def drop(fs: FileSystem, run: Run, *, are_more: bool = False) -> None:
    """Remove a run's directory, and the folder when it is empty; it is fine if somebody else did so first.

    Args:
        are_more: the caller drops more runs next, so the folder is not empty yet; this saves a listing on many stores.
    """
    with suppress(NotFoundError):
        remove_run(fs, run.path, MANIFEST, _NAMES.values())
    if are_more:
        return
    fs.remove_empty(join(run.location, run.folder))  # somebody may just have begun another run there


def remove_run(fs: FileSystem, path: str, note: str, last: Collection[str]) -> None:
    """Remove the directory of a run: its note first, so that it never speaks of what is not there.

    Args:
        last: names that go last: what is left of an interrupted removal still says what it is.

    Raises:
        NotFoundError: there is none.
    """
    names = [entry.path for entry in fs.list_dir(path).entries if entry.path not in last]
    for name in sorted(names, key=lambda name: name != note):
        with suppress(NotFoundError):
            fs.remove_tree(join(path, name))
    fs.remove_tree(path)
