"""Showing several directories of one location: a note of intent, the renames, and how to finish or undo them.

A store renames one directory at a time. Where two must appear (a minor compaction, format section 8.6), what is meant
is written down first, in the staging directory: whoever finds the note later can finish.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from acidctl.acid.listing import Listing
from acidctl.errors import AcidctlError, RefusedError, StorageError
from acidctl.storage.port import FileSystem, join
from acidctl.storage.snapshot import Snapshot

INTENT = "_publish.json"


def show(fs: FileSystem, location: str, staging: str, names: Sequence[str]) -> None:
    """Rename the staged directories into the location: all of them, or none.

    Args:
        staging: absolute; holds the directories.
        names: in the order in which they appear.

    Raises:
        ConflictError: one of them is there already; nothing is left shown.
        StorageError: a rename failed half-way and could not be undone; the message says how to finish.
    """
    if len(names) > 1:
        fs.write_bytes(join(staging, INTENT), json.dumps({"names": list(names)}).encode())
    shown: list[str] = []
    try:
        for name in names:
            # Fails when the target exists: a plain rename of HDFS would nest one directory in the other.
            fs.rename(join(staging, name), join(location, name))
            shown.append(name)
    except BaseException as error:
        # The rename that failed may have been done, and only its answer lost.
        if isinstance(error, StorageError) and len(names) > len(shown) and _arrived(fs, location, staging, name):
            shown.append(name)
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


def half_published(listing: Listing) -> list[tuple[str, tuple[str, ...]]]:
    """Staging directories with a note of intent of which one directory is shown and one is not.

    Returns:
        (name of the staging directory, names of the directories that are still in it).
    """
    children = {entry.path.partition("/")[0] for entry in listing.entries}
    staged: dict[str, set[str]] = {}
    noted = set()
    for entry in listing.entries:
        parts = entry.path.split("/")
        if not parts[0].startswith("_tmp_") or len(parts) < 2:
            continue
        if parts[1:] == [INTENT]:
            noted.add(parts[0])
        else:
            staged.setdefault(parts[0], set()).add(parts[1])
    found = []
    for staging in sorted(noted):
        waiting = tuple(sorted(name for name in staged.get(staging, ()) if not name.startswith("_")))
        twins = {_twin(name) for name in waiting}
        if waiting and twins & children:
            found.append((staging, waiting))
    return found


def _twin(name: str) -> str:
    return name.removeprefix("delete_") if name.startswith("delete_delta_") else f"delete_{name}"


def refuse_half_published(snapshot: Snapshot) -> None:
    """Raises RefusedError when a publication was interrupted between its renames."""
    for staging, waiting in half_published(snapshot.listing):
        raise RefusedError(
            f"a compaction of {snapshot.fs.display(snapshot.path)} was interrupted while it was published",
            f"{', '.join(waiting)} is still in {staging}",
            "run `acidctl compact` on it: it finishes that first",
        )


def finish_half_published(snapshot: Snapshot) -> tuple[str, ...]:
    """Finish publications that were interrupted between their renames; the names that were shown.

    Raises:
        ConflictError, AccessError, StorageError: it cannot be finished.
    """
    finished: list[str] = []
    for staging, waiting in half_published(snapshot.listing):
        root = snapshot.absolute(staging)
        for name in waiting:
            snapshot.fs.rename(join(root, name), snapshot.absolute(name))
            finished.append(name)
        snapshot.fs.remove_tree(root)
    return tuple(finished)
