"""Publishes staged results: a note of intent, the renames or copies, and how to finish, undo or discard them.

A store renames one directory at a time. If two must appear (a minor compaction, format section 8.6), the intent is
first written to the staging directory, so that any later run can finish.

An object store has no renames, and copies one file at a time: there every publication has a note, and the process that
copies holds the lock of the location.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

from acidctl.acid.listing import Ages
from acidctl.acid.names import other_kind, parse_directory
from acidctl.base.errors import AcidctlError, NotFoundError, RefusedError, StorageError
from acidctl.location.change.journal import Act, Step, do, is_inside, read_note, remove_run, take_back, undid_torn
from acidctl.location.change.lock import Locking
from acidctl.location.change.own_files import OWNER, not_ours, owner_at, require_ours, write_checked
from acidctl.location.snapshot import Snapshot
from acidctl.storage.port import FileSystem, base_name, join
from acidctl.wording import some_of

INTENT = "_publish.json"
_HALF = "appeared, and what belongs to it did not"
_NAMELESS = re.compile(r"_tmp_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DEAD_SECONDS = 86400.0
"""The owner's note follows a moment after a staging directory is made; Hive's directory may wait for MapReduce."""

Copy = tuple[str, str]
"""A staged file, relative to the staging directory, and its target, relative to the location."""


def shows_by_copies(fs: FileSystem) -> bool:
    """Return whether results appear file by file, because the store cannot rename."""
    return not fs.can_rename and fs.can_copy


def show(fs: FileSystem, location: str, staging: str, names: Sequence[str]) -> None:
    """Rename the staged directories into the location: all of them, or none.

    Args:
        staging: the parent of the directories, absolute.
        names: in the order in which they appear.

    Raises:
        ConflictError: one of them exists already; none of them was published.
        StorageError: a rename failed half-way and could not be undone; the message says how to finish.
        KeyboardInterrupt: like any other interruption; either all of them were published, or none.
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
        if is_lost and len(steps) > len(shown):
            last = steps[len(shown)]
            with suppress(AcidctlError):  # if it cannot be checked, it was not renamed
                if not fs.exists(join(location, last.source)) and fs.exists(join(location, last.target)):
                    shown.append(last)
        if isinstance(error, AcidctlError) or len(steps) > len(shown):
            _take_back(fs, location, shown)
        raise


def show_copies(fs: FileSystem, location: str, staging: str, copies: Sequence[Copy]) -> None:
    """Copy staged files into the location, if nothing can be renamed.

    A refused copy undoes all of them. A copy without an answer may still arrive: then the published files stay, and so
    does the note, with which the next run finishes. An interruption has the same effect.

    Args:
        staging: absolute.
        copies: in the order in which they appear, data before side files: a directory with hidden files alone is empty
            to readers, and hides what it replaces.

    Raises:
        ConflictError, AccessError, NotFoundError: a copy was refused; nothing remains published.
        StorageError: a copy has no answer, or could not be undone; the message says how to finish.
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
    """Undo steps, data last: until then readers do not see what it replaced."""
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
        f"run `acidctl compact` on {fs.display(location)}: it finishes that first",
    )


def _no_copy(fs: FileSystem, location: str, step: Step) -> StorageError:
    return StorageError(
        f"cannot create {fs.display(join(location, step.target))}",
        f"the store confirmed a copy of {fs.display(join(location, step.source))}, and other bytes are there",
        "nothing was shown; look at the store, then run it again",
    )


def half_published(snapshot: Snapshot) -> list[tuple[str, tuple[str, ...]]]:
    """Return the staging directories of half-finished publications.

    Returns:
        (name of the staging directory, the unpublished paths, relative to the location).

    Raises:
        AccessError, StorageError: a note cannot be read.
    """
    return [(staging, tuple(step.target for step in missing)) for staging, missing in _unfinished(snapshot) if missing]


def _unfinished(snapshot: Snapshot) -> Iterator[tuple[str, Sequence[Step]]]:
    """Yield staging directories with the steps that remain to be done; none remain if the note was removed meanwhile.

    A snapshot with a note that was removed is too old to act on: what it shows may be half of a publication.
    """
    notes = [entry.path for entry in snapshot.listing.entries if entry.path.endswith(f"/{INTENT}")]
    for staging in (note.removesuffix(f"/{INTENT}") for note in notes):
        if staging.startswith("_tmp_") and "/" not in staging:
            try:
                copies = _copies_of(snapshot, staging)
            except NotFoundError:
                yield staging, ()
                continue
            if missing := _missing(snapshot, copies) if copies else _waiting(snapshot, staging):
                yield staging, missing


def _waiting(snapshot: Snapshot, staging: str) -> Sequence[Step]:
    """Return the renames that remain if a twin is published, by the state of the disk, whatever the note contains."""
    paths = [entry.path.split("/") for entry in snapshot.listing.entries]
    children = {path[0] for path in paths}
    waiting = sorted({path[1] for path in paths if path[0] == staging and len(path) > 1 and path[1][:1] != "_"})
    half = children.intersection(map(other_kind, waiting))
    return [Step(Act.MOVE, f"{staging}/{name}", name) for name in waiting] if half else ()


def _copies_of(snapshot: Snapshot, staging: str) -> list[Step]:
    """Return the copies in a note; none if it contains renames, or anything that a compaction does not do.

    Raises:
        NotFoundError: the note was removed.
    """

    def is_output(path: str) -> bool:
        directory, _, name = path.partition("/")
        return parse_directory(directory) is not None and "/" not in name and is_inside(name)

    def understood(note: Any) -> list[Step]:
        steps = _copies(staging, [(str(source), str(target)) for source, target in note["copies"]])
        return steps if all(is_inside(step.source) and is_output(step.target) for step in steps) else []

    return read_note(snapshot.fs, snapshot.absolute(f"{staging}/{INTENT}"), understood) or []


def _missing(snapshot: Snapshot, steps: Sequence[Step]) -> Sequence[Step]:
    """Return the copies that remain if some are published; none if other files have these names."""
    sizes = {entry.path: entry.size for entry in snapshot.listing.entries if not entry.is_dir}
    shown = [step for step in steps if step.target in sizes]
    ours = all(sizes.get(step.source) == sizes[step.target] for step in shown)
    return [step for step in steps if step.target not in sizes] if shown and ours else ()


def refuse_half_published(snapshot: Snapshot) -> None:
    """Raise RefusedError if a publication was interrupted half-way."""
    for staging, waiting in half_published(snapshot):
        raise RefusedError(
            f"a compaction of {snapshot.shown} was interrupted while it was published",
            f"{some_of(waiting)} is still in {staging}",
            "run `acidctl compact` on it: it finishes that first",
        )


def finish_half_published(snapshot: Snapshot) -> tuple[str, ...]:
    """Finish interrupted publications; return the names of the directories that are whole now.

    If results appear by copies, the caller holds the location's lock, and made the snapshot after taking it.

    Raises:
        ConflictError, AccessError, StorageError: it cannot be finished.
        RefusedError: the staging directory belongs to another user.
    """
    finished: list[str] = []
    for staging, missing in list(_unfinished(snapshot)):
        if not missing:
            continue
        require_ours(snapshot.fs, snapshot.path, staging)
        for step in missing:
            do(snapshot.fs, snapshot.path, step)
            if undid_torn(snapshot.fs, snapshot.path, step):
                raise _no_copy(snapshot.fs, snapshot.path, step)
            finished.append(step.target.partition("/")[0])
        with suppress(NotFoundError):  # another run removed it as stale
            remove_staging(snapshot.fs, snapshot.absolute(staging))
    return tuple(dict.fromkeys(finished))


def remove_staging(fs: FileSystem, staging: str) -> None:
    """Remove a staging directory, its owner file last: a partly removed one must still be recognized as dead."""
    remove_run(fs, staging, INTENT, (OWNER,))


def finish_interrupted(snapshot: Snapshot, locking: Locking) -> tuple[str, ...] | None:
    """Remove stale staging, finish an interrupted publication, and return the names that were published.

    Returns:
        None if nothing was published meanwhile, here or by somebody else; otherwise the snapshot is too old.
    """
    unfinished = {staging for staging, _ in _unfinished(snapshot)}
    remove_dead_staging(snapshot, unfinished)
    if not unfinished:
        return None
    with locking.at(snapshot.fs, snapshot.path, always=shows_by_copies(snapshot.fs)):
        # List it again: the process that held the lock until now may have finished it.
        return finish_half_published(snapshot.again())


def remove_dead_staging(snapshot: Snapshot, half: Collection[str]) -> tuple[str, ...]:
    """Remove the staging directories of killed compactions but those that are half published; return their names.

    Staging of this machine is removed if its process has ended. Staging without a note of its owner, from a compaction
    that was killed before it wrote any data, is removed if nothing was written to it for a day. Staging of other
    machines, and whatever cannot be removed, stays hidden and does no harm.
    """
    fs = snapshot.fs
    paths = [entry.path.partition("/") for entry in snapshot.listing.entries]
    owned = {name for name, _, rest in paths if rest == OWNER}.difference(half)
    removed = []
    for name in sorted({name for name, _, _ in paths if name.startswith("_tmp_")}.difference(half)):
        try:
            owner = owner_at(fs, snapshot.absolute(f"{name}/{OWNER}")) if name in owned else None
            is_dead = owner.is_dead() if owner else _is_nameless(snapshot, name, time.time())
            if is_dead and not not_ours(fs, snapshot.path, name):
                remove_staging(fs, snapshot.absolute(name))
                removed.append(name)
        except AcidctlError:
            continue
    return tuple(removed)


def _is_nameless(snapshot: Snapshot, name: str, now: float) -> bool:
    """Say if the compaction was killed before it noted its owner; the directory then holds no data yet."""
    files = snapshot.listing.files_by_child.get(name, ())
    is_empty = all(entry.path == f"{name}/{OWNER}" or not entry.size for entry in files)
    is_old = Ages.of(snapshot.listing).is_old(name, now - _DEAD_SECONDS)
    return bool(_NAMELESS.fullmatch(name)) and is_empty and is_old
