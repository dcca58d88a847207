"""Showing what was staged for one location: a note of intent, the renames or copies, and how to finish or undo them.

A store renames one directory at a time. Where two must appear (a minor compaction, format section 8.6), what is meant
is written down first, in the staging directory: whoever finds the note later can finish.

An object store renames nothing, and copies one file at a time: there every publication has its note. Whoever copies
holds the lock of the location.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from acidctl.acid.names import other_kind, parse_directory
from acidctl.errors import AcidctlError, NotFoundError, RefusedError, StorageError
from acidctl.location.change.journal import Act, Step, do, is_inside, read_note, remove_run, take_back, undid_torn
from acidctl.location.change.own_files import require_ours, write_checked
from acidctl.location.change.owner import OWNER
from acidctl.location.snapshot import Snapshot
from acidctl.storage.port import FileSystem, base_name, join
from acidctl.wording import some_of

INTENT = "_publish.json"
_HALF = "appeared, and what belongs to it did not"

Copy = tuple[str, str]
"""A staged file, relative to the staging directory, and what it becomes, relative to the location."""


def shows_by_copies(fs: FileSystem) -> bool:
    """Whether results appear file by file, since nothing can be renamed."""
    return not fs.can_rename and fs.can_copy


def show(fs: FileSystem, location: str, staging: str, names: Sequence[str]) -> None:
    """Rename the staged directories into the location: all of them, or none.

    Args:
        staging: absolute; holds the directories.
        names: in the order in which they appear.

    Raises:
        ConflictError: one of them is there already; nothing is left shown.
        StorageError: a rename failed half-way and could not be undone; the message says how to finish.
        KeyboardInterrupt: and whatever else interrupts it: all of them are shown, or none.
    """
    if len(names) > 1:
        write_checked(fs, join(staging, INTENT), json.dumps({"names": list(names)}).encode())
    shown: list[Step] = []
    steps = [Step(Act.MOVE, f"{base_name(staging)}/{name}", name) for name in names]
    try:
        for step in steps:
            # Fails when the target exists: a plain rename of HDFS would nest one directory in the other.
            do(fs, location, step)
            shown.append(step)
    except BaseException as error:
        # The rename that failed, or was interrupted, may have been done, and only its answer lost.
        is_lost = isinstance(error, StorageError) or not isinstance(error, AcidctlError)
        if is_lost and len(steps) > len(shown) and _arrived(fs, location, steps[len(shown)]):
            shown.append(steps[len(shown)])
        if isinstance(error, AcidctlError) or len(steps) > len(shown):
            _take_back(fs, location, shown)
        raise


def _arrived(fs: FileSystem, location: str, step: Step) -> bool:
    """Whether a directory has left the staging directory; what cannot be seen is taken to be where it was."""
    try:
        return not fs.exists(join(location, step.source)) and fs.exists(join(location, step.target))
    except AcidctlError:
        return False


def show_copies(fs: FileSystem, location: str, staging: str, copies: Sequence[Copy]) -> None:
    """Copy staged files into the location, where nothing can be renamed.

    A copy that is refused is the end of all of them. One without an answer may still arrive: then what is shown stays,
    and so does the note, with which the next run finishes. The same goes for an interruption.

    Args:
        staging: absolute.
        copies: in the order in which they appear. Data comes before side files: a directory with hidden files alone
            is empty to readers, and hides what it replaces.

    Raises:
        ConflictError, AccessError, NotFoundError: a copy was refused; nothing is left shown.
        StorageError: a copy has no answer, or could not be taken back; the message says how to finish.
    """
    write_checked(fs, join(staging, INTENT), json.dumps({"copies": copies}).encode())
    shown: list[Step] = []
    try:
        for step in _copies(base_name(staging), copies):
            do(fs, location, step)
            shown.append(step)
            if undid_torn(fs, location, step):
                shown.pop()
                raise _no_copy(fs, location, step)
    except StorageError as error:
        if shown:
            raise _half_shown(fs, location, shown[-1], str(error)) from error
        raise
    except AcidctlError:
        _take_back(fs, location, shown)
        with suppress(AcidctlError):
            fs.remove_tree(join(staging, INTENT))
        raise


def _copies(staging: str, copies: Sequence[Copy]) -> list[Step]:
    return [Step(Act.COPY, f"{staging}/{source}", target) for source, target in copies]


def _take_back(fs: FileSystem, location: str, shown: Sequence[Step]) -> None:
    """Data last: what it replaced is hidden until then, and side files alone would be an empty directory."""
    for step in reversed(shown):
        try:
            take_back(fs, location, step)
        except AcidctlError as error:
            raise _half_shown(fs, location, step, f"it could not be taken back: {error}") from error


def _half_shown(fs: FileSystem, location: str, step: Step, why: str) -> StorageError:
    what = "appeared alone: readers see wrong rows" if step.act is Act.MOVE else _HALF
    return StorageError(
        f"{fs.display(join(location, step.target))} {what}",
        why,
        f"run `compact()` on {fs.display(location)}: it finishes that first",
    )


def _no_copy(fs: FileSystem, location: str, step: Step) -> StorageError:
    return StorageError(
        f"cannot create {fs.display(join(location, step.target))}",
        f"the store confirmed a copy of {fs.display(join(location, step.source))}, and other bytes are there",
        "nothing was shown; look at the store, then run it again",
    )


def half_published(snapshot: Snapshot) -> list[tuple[str, tuple[str, ...]]]:
    """Staging directories with a note of intent of which a part is shown and a part is not.

    Returns:
        (name of the staging directory, what is not shown yet, relative to the location).

    Raises:
        AccessError, StorageError: a note cannot be read.
    """
    return [(staging, tuple(step.target for step in missing)) for staging, missing in _unfinished(snapshot)]


def _unfinished(snapshot: Snapshot) -> Iterator[tuple[str, Sequence[Step]]]:
    """Staging directories, with the steps that are still to be done."""
    notes = [entry.path for entry in snapshot.listing.entries if entry.path.endswith(f"/{INTENT}")]
    for staging in (note.removesuffix(f"/{INTENT}") for note in notes):
        if staging.startswith("_tmp_") and "/" not in staging:
            copies = _copies_of(snapshot, staging)
            if missing := _missing(snapshot, copies) if copies else _waiting(snapshot, staging):
                yield staging, missing


def _waiting(snapshot: Snapshot, staging: str) -> Sequence[Step]:
    """The renames that are still to be done, where a twin is shown; what is where tells, whatever the note says."""
    paths = [entry.path.split("/") for entry in snapshot.listing.entries]
    children = {path[0] for path in paths}
    waiting = sorted({path[1] for path in paths if path[0] == staging and len(path) > 1 and path[1][:1] != "_"})
    half = children.intersection(map(other_kind, waiting))
    return [Step(Act.MOVE, f"{staging}/{name}", name) for name in waiting] if half else ()


def _copies_of(snapshot: Snapshot, staging: str) -> list[Step]:
    """The copies that a note speaks of; none when it speaks of renames, or of what no compaction does."""

    def understood(said: Any) -> list[Step]:
        steps = _copies(staging, [(str(source), str(target)) for source, target in said["copies"]])
        return steps if all(is_inside(step.source) and _is_output(step.target) for step in steps) else []

    with suppress(NotFoundError):  # it went meanwhile
        return read_note(snapshot.fs, snapshot.absolute(f"{staging}/{INTENT}"), understood) or []
    return []


def _is_output(path: str) -> bool:
    directory, _, name = path.partition("/")
    return parse_directory(directory) is not None and "/" not in name and is_inside(name)


def _missing(snapshot: Snapshot, steps: Sequence[Step]) -> Sequence[Step]:
    """The copies that are still to be made, where some are; none where another's files have these names."""
    sizes = {entry.path: entry.size for entry in snapshot.listing.entries if not entry.is_dir}
    shown = [step for step in steps if step.target in sizes]
    ours = all(sizes.get(step.source) == sizes[step.target] for step in shown)
    return [step for step in steps if step.target not in sizes] if shown and ours else ()


def refuse_half_published(snapshot: Snapshot) -> None:
    """Raises RefusedError when a publication was interrupted half-way."""
    for staging, waiting in half_published(snapshot):
        raise RefusedError(
            f"a compaction of {snapshot.fs.display(snapshot.path)} was interrupted while it was published",
            f"{some_of(waiting)} is still in {staging}",
            "run `compact()` on it: it finishes that first",
        )


def finish_half_published(snapshot: Snapshot) -> tuple[str, ...]:
    """Finish publications that were interrupted half-way; the names of the directories that are whole now.

    Where results appear by copies, the caller holds the location's lock, and made the snapshot after taking it.

    Raises:
        ConflictError, AccessError, StorageError: it cannot be finished.
        RefusedError: somebody else staged it.
    """
    finished: list[str] = []
    for staging, missing in list(_unfinished(snapshot)):
        require_ours(snapshot.fs, snapshot.path, staging)
        for step in missing:
            do(snapshot.fs, snapshot.path, step)
            if undid_torn(snapshot.fs, snapshot.path, step):
                raise _no_copy(snapshot.fs, snapshot.path, step)
            finished.append(step.target.partition("/")[0])
        with suppress(NotFoundError):  # another run took it for what is left of a compaction that was published
            remove_staging(snapshot.fs, snapshot.absolute(staging))
    return tuple(dict.fromkeys(finished))


def remove_staging(fs: FileSystem, staging: str) -> None:
    """The owner's name goes last: what is left of an interrupted removal is still known to be dead."""
    remove_run(fs, staging, INTENT, (OWNER,))
