"""List the local disk with os.scandir, through symbolic links but never in circles."""

# ruff: noqa: PTH114, PTH116, PTH120
# Pathlib would build an object for every name of a listing.
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from operator import itemgetter

from acidctl.acid.listing import Entry
from acidctl.base.errors import ConflictError, StorageError
from acidctl.base.printable import printable
from acidctl.storage.local.rooted_directory import RootedDirectory, held

_PATH = itemgetter(0)
_NESTED_LINKS = 1000
_KIND_BITS = 0o170000
_made = tuple.__new__
_BROKEN_LINK = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
UNREADABLE_BYTES = 1
"""The size listed for a pipe, a device or a broken link: 0 bytes would mean a file without rows."""


def list_children(directory: str, beneath: RootedDirectory | None = None) -> list[Entry]:
    """Return the direct children, sorted by name.

    Args:
        beneath: the rooted directory in which no link is followed: a link is listed, and can neither be opened nor
            listed itself.  None to follow links: sizes and times are then those of a link's target.

    Raises:
        ForeignLinkError: the path leads through a symbolic link.
        OSError: as ``os.scandir`` and ``os.stat``.
    """
    children = _scan(directory, "")[0] if beneath is None else [entry for entry, _ in _scan_beneath(beneath, directory)]
    return sorted(children, key=_PATH)


def list_everything(
    root: str, top: Sequence[Entry] | None = None, beneath: RootedDirectory | None = None, *, again: int = 3
) -> list[Entry]:
    """Return everything below `root`, sorted by path.

    A link to a directory is always followed, so that two partitions may share their data; it is listed but not entered
    if its target (by device and inode) is a directory on the path to it, which would never end.  A link whose target
    is missing is listed as a file of :data:`UNREADABLE_BYTES`.

    If a directory vanishes during the walk, the walk starts again: a cleaner removes what a newer directory replaces,
    which may have appeared after the first listing.  Directories that vanish in the last walk are left out.

    Args:
        top: the children of `root`, if they have just been listed.
        beneath: the rooted directory in which every link is refused; `again` is the number of new starts.

    Raises:
        ForeignLinkError: `beneath` holds a symbolic link: a plan is made of all that readers see, or not at all.
        OSError: as ``os.scandir`` and ``os.stat``, for any directory below: a listing is never partial.
        ConflictError: a directory became a file meanwhile.
        StorageError: more than a thousand links lead through each other.
    """
    entries: list[Entry] = []
    base = root.rstrip("/")
    nested = 0
    waiting = [("", False)]
    while waiting:
        prefix, through_link = waiting.pop()
        directory = f"{base}/{prefix}".rstrip("/") or "/"
        try:
            if beneath is not None:
                children, directories = _without_links(beneath, directory, prefix)
            elif not prefix and top is not None:
                children = top
                directories = [(entry, os.path.islink(f"{base}/{entry.path}")) for entry in top if entry.is_dir]
            else:
                children, directories = _scan(directory, prefix)
            entries += children
            for entry, is_link in directories:
                if is_link and leads_back(f"{base}/{entry.path}"):
                    continue
                nested += is_link and through_link
                if nested > _NESTED_LINKS:
                    what = f"cannot list {printable(root)}"
                    why = f"more than {_NESTED_LINKS} symbolic links lead through each other"
                    raise StorageError(what, why, f"look at the links below {printable(directory)}")
                waiting.append((f"{entry.path}/", through_link or is_link))
        except FileNotFoundError:
            if not prefix:
                raise
            if again:
                return list_everything(root, None, beneath, again=again - 1)
            entries = [entry for entry in entries if entry.path != prefix[:-1] and not entry.path.startswith(prefix)]
        except NotADirectoryError as error:
            if not prefix:
                raise
            why = f"it changed meanwhile: {printable(directory)}"
            raise ConflictError(f"cannot list {printable(root)}", why, "list it again") from error
    entries.sort(key=_PATH)
    return entries


def _scan(directory: str, prefix: str) -> tuple[Sequence[Entry], list[tuple[Entry, bool]]]:
    """Return all children, and the directories among them, each with whether it is a symbolic link."""
    entries: list[Entry] = []
    directories: list[tuple[Entry, bool]] = []
    # This is written for speed: a large listing spends most of its time here.
    with os.scandir(directory) as items:
        for item in items:
            is_link = item.is_symlink()
            try:
                info = item.stat()
            except OSError as error:
                if is_link and error.errno in _BROKEN_LINK:
                    with suppress(FileNotFoundError):
                        modified = item.stat(follow_symlinks=False).st_mtime
                        entries.append(Entry(prefix + item.name, UNREADABLE_BYTES, modified, False))
                elif not isinstance(error, FileNotFoundError):
                    raise
                continue
            kind = info.st_mode & _KIND_BITS
            if kind == stat.S_IFDIR:
                entry = _made(Entry, (prefix + item.name, 0, info.st_mtime, True))
                directories.append((entry, is_link))
            else:
                size = info.st_size if kind == stat.S_IFREG else UNREADABLE_BYTES
                entry = _made(Entry, (prefix + item.name, size, info.st_mtime, False))
            entries.append(entry)
    return entries, directories


def leads_back(link: str) -> bool:
    """Return whether a link's target is a directory on the path to the link; False if the target is missing."""
    try:
        target = os.stat(link)
    except FileNotFoundError:
        return False
    ancestor = os.path.dirname(link)
    while True:
        if os.path.samestat(os.stat(ancestor), target):
            return True
        parent = os.path.dirname(ancestor)
        if parent == ancestor:
            return False
        ancestor = parent


def _without_links(
    paths: RootedDirectory, directory: str, prefix: str
) -> tuple[Sequence[Entry], list[tuple[Entry, bool]]]:
    """Return what :func:`_scan` does; ForeignLinkError if a child is a symbolic link."""
    children = _scan_beneath(paths, directory, prefix)
    for entry, is_link in children:
        if is_link:
            paths.stat(f"{directory.rstrip('/')}/{entry.path[len(prefix) :]}")  # this raises the error with the reason
    return [entry for entry, _ in children], [(entry, False) for entry, _ in children if entry.is_dir]


def _scan_beneath(paths: RootedDirectory, directory: str, prefix: str = "") -> list[tuple[Entry, bool]]:
    """Return the children, each with whether it is a symbolic link."""
    children = []
    with held(paths.open(directory, os.O_RDONLY | os.O_DIRECTORY)) as descriptor, os.scandir(descriptor) as items:
        for item in items:
            with suppress(FileNotFoundError):  # it was removed meanwhile
                info = item.stat(follow_symlinks=False)
                is_link, is_dir = stat.S_ISLNK(info.st_mode), stat.S_ISDIR(info.st_mode)
                if is_link:
                    with suppress(OSError):
                        is_dir = item.is_dir()
                size = info.st_size if stat.S_ISREG(info.st_mode) else 0 if is_dir else UNREADABLE_BYTES
                children.append((_made(Entry, (prefix + item.name, size, info.st_mtime, is_dir)), is_link))
    return children
