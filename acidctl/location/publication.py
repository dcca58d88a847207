"""Showing what was staged for one location: a note of intent, the renames or copies, and how to finish or undo them.

A store renames one directory at a time. Where two must appear (a minor compaction, format section 8.6), what is meant
is written down first, in the staging directory: whoever finds the note later can finish.

An object store renames nothing, and copies one file at a time: there every publication has its note. Whoever copies
holds the lock of the location.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from acidctl.acid.names import AcidNameError, parse_directory
from acidctl.errors import AcidctlError, NotFoundError, RefusedError, StorageError
from acidctl.location.own_files import read_note, require_ours, write_checked
from acidctl.location.owner import OWNER
from acidctl.location.snapshot import Snapshot
from acidctl.storage.port import FileSystem, join, parent_of
from acidctl.storage.tail_cache import END

INTENT = "_publish.json"
_NAMED = 3
"""Of what is missing, so many are named."""

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
    shown: list[str] = []
    try:
        for name in names:
            # Fails when the target exists: a plain rename of HDFS would nest one directory in the other.
            fs.rename(join(staging, name), join(location, name))
            shown.append(name)
    except BaseException as error:
        # The rename that failed, or was interrupted, may have been done, and only its answer lost.
        is_lost = isinstance(error, StorageError) or not isinstance(error, AcidctlError)
        if is_lost and len(names) > len(shown) and _arrived(fs, location, staging, names[len(shown)]):
            shown.append(names[len(shown)])
        if isinstance(error, AcidctlError) or len(names) > len(shown):
            _undo(fs, location, staging, shown)
        raise


def _arrived(fs: FileSystem, location: str, staging: str, name: str) -> bool:
    """Whether a directory has left the staging directory; what cannot be seen is taken to be where it was."""
    try:
        return not fs.exists(join(staging, name)) and fs.exists(join(location, name))
    except AcidctlError:
        return False


def _undo(fs: FileSystem, location: str, staging: str, shown: Sequence[str]) -> None:
    for name in reversed(shown):
        try:
            fs.rename(join(location, name), join(staging, name))
        except AcidctlError as error:
            raise StorageError(
                f"{fs.display(join(location, name))} appeared alone: readers see wrong rows",
                f"its twin could not follow, and it could not be taken back: {error}",
                f"run `acidctl compact` on {fs.display(location)}: it finishes what lies in {fs.display(staging)}",
            ) from error


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
    shown: list[str] = []
    try:
        for source, target in copies:
            _bring(fs, join(staging, source), location, target)
            shown.append(target)
            if _took_back(fs, join(staging, source), join(location, target)):
                shown.pop()
                raise _no_copy(fs, join(staging, source), join(location, target))
    except StorageError as error:
        if shown:
            raise _half_shown(fs, location, shown[-1], str(error)) from error
        raise
    except AcidctlError:
        _take_back(fs, location, shown)
        with suppress(AcidctlError):
            fs.remove_tree(join(staging, INTENT))
        raise


def _take_back(fs: FileSystem, location: str, shown: Sequence[str]) -> None:
    """Data last: what it replaced is hidden until then, and side files alone would be an empty directory."""
    for target in reversed(shown):
        try:
            with suppress(NotFoundError):
                fs.remove_tree(join(location, target))
        except AcidctlError as error:
            raise _half_shown(fs, location, target, f"it could not be taken back: {error}") from error


def _half_shown(fs: FileSystem, location: str, target: str, why: str) -> StorageError:
    return StorageError(
        f"{fs.display(join(location, target))} appeared, and what belongs to it did not",
        why,
        f"run `acidctl compact` on {fs.display(location)}: it finishes that first",
    )


def _bring(fs: FileSystem, source: str, location: str, name: str) -> None:
    target = join(location, name)
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


def _took_back(fs: FileSystem, source: str, target: str) -> bool:
    """Whether a new copy had another end than its source, and was removed for it."""
    if _ends_alike(fs, source, target):
        return False
    fs.remove_tree(target)
    return True


def _no_copy(fs: FileSystem, source: str, target: str) -> StorageError:
    return StorageError(
        f"cannot create {fs.display(target)}",
        f"the store confirmed a copy of {fs.display(source)}, and other bytes are there",
        "nothing was shown; look at the store, then run it again",
    )


def half_published(snapshot: Snapshot) -> list[tuple[str, tuple[str, ...]]]:
    """Staging directories with a note of intent of which a part is shown and a part is not.

    Returns:
        (name of the staging directory, what is not shown yet, relative to the location).

    Raises:
        AccessError, StorageError: a note cannot be read.
    """
    hidden = [entry for entry in snapshot.listing.entries if entry.path.startswith("_tmp_")]
    if not hidden:
        return []
    children = {entry.path.partition("/")[0] for entry in snapshot.listing.entries}
    staged: dict[str, set[str]] = {}
    noted = set()
    for entry in hidden:
        parts = entry.path.split("/")
        if len(parts) < 2:
            continue
        if parts[1:] == [INTENT]:
            noted.add(parts[0])
        else:
            staged.setdefault(parts[0], set()).add(parts[1])
    found = []
    for staging in sorted(noted):
        if copies := _copies_of(snapshot, staging):
            if missing := _missing(snapshot, staging, copies):
                found.append((staging, tuple(target for _, target in missing)))
            continue
        waiting = tuple(sorted(name for name in staged.get(staging, ()) if not name.startswith("_")))
        twins = {_twin(name) for name in waiting}
        if waiting and twins & children:
            found.append((staging, waiting))
    return found


def _twin(name: str) -> str:
    return name.removeprefix("delete_") if name.startswith("delete_delta_") else f"delete_{name}"


def _copies_of(snapshot: Snapshot, staging: str) -> list[Copy]:
    """The copies that a note speaks of; none when it speaks of renames, or of what no compaction does."""
    try:
        found = json.loads(read_note(snapshot.fs, snapshot.absolute(f"{staging}/{INTENT}")))
        copies = [(str(source), str(target)) for source, target in found["copies"]]
        return copies if all(_is_below(source) and _is_output(target) for source, target in copies) else []
    except (NotFoundError, AcidNameError, ValueError, KeyError, TypeError, RecursionError):
        return []  # it went meanwhile, is torn, or is another's


def _is_below(path: str) -> bool:
    return not {"", ".", ".."} & set(path.split("/"))


def _is_output(path: str) -> bool:
    directory, _, name = path.partition("/")
    return parse_directory(directory) is not None and "/" not in name and _is_below(name)


def _missing(snapshot: Snapshot, staging: str, copies: Sequence[Copy]) -> Sequence[Copy]:
    """The copies that are still to be made, where some are; none where another's files have these names."""
    sizes = {entry.path: entry.size for entry in snapshot.listing.entries if not entry.is_dir}
    shown = [copy for copy in copies if copy[1] in sizes]
    ours = all(sizes.get(f"{staging}/{source}") == sizes[target] for source, target in shown)
    return [copy for copy in copies if copy[1] not in sizes] if shown and ours else ()


def refuse_half_published(snapshot: Snapshot) -> None:
    """Raises RefusedError when a publication was interrupted half-way."""
    for staging, waiting in half_published(snapshot):
        raise RefusedError(
            f"a compaction of {snapshot.fs.display(snapshot.path)} was interrupted while it was published",
            f"{some_of(waiting)} is still in {staging}",
            "run `acidctl compact` on it: it finishes that first",
        )


def some_of(waiting: Sequence[str]) -> str:
    """What is not shown yet, in words."""
    more = len(waiting) - _NAMED
    return ", ".join(waiting[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def finish_half_published(snapshot: Snapshot) -> tuple[str, ...]:
    """Finish publications that were interrupted half-way; the names of the directories that are whole now.

    Where results appear by copies, the caller holds the location's lock, and made the snapshot after taking it.

    Raises:
        ConflictError, AccessError, StorageError: it cannot be finished.
        RefusedError: somebody else staged it.
    """
    finished: list[str] = []
    for staging, waiting in half_published(snapshot):
        require_ours(snapshot.fs, snapshot.path, staging)
        root = snapshot.absolute(staging)
        sources = {target: source for source, target in _copies_of(snapshot, staging)}
        for name in waiting:
            if sources:
                source, target = join(root, sources[name]), snapshot.absolute(name)
                _bring(snapshot.fs, source, snapshot.path, name)
                if snapshot.fs.can_copy and _took_back(snapshot.fs, source, target):
                    raise _no_copy(snapshot.fs, source, target)
            else:
                snapshot.fs.rename(join(root, name), snapshot.absolute(name))
            finished.append(name.partition("/")[0])
        with suppress(NotFoundError):  # another run took it for what is left of a compaction that was published
            remove_staging(snapshot.fs, root)
    return tuple(dict.fromkeys(finished))


def remove_staging(fs: FileSystem, staging: str) -> None:
    """The note goes first, so that it never speaks of what is not there; the owner's name goes last: what is left of
    an interrupted removal is still known to be dead.
    """
    names = [entry.path for entry in fs.list_dir(staging).entries if entry.path != OWNER]
    for name in sorted(names, key=lambda name: name != INTENT):
        fs.remove_tree(join(staging, name))
    fs.remove_tree(staging)
