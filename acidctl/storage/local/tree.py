"""List the local disk with os.scandir, through symbolic links but never in circles."""

# ruff: noqa: PTH114, PTH116, PTH118, PTH120
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
from acidctl.storage.local.rooted_directory import ForeignLinkError, RootedDirectory, held

_PATH = itemgetter(0)
_NESTED_LINKS = 1000
_KIND_BITS = 0o170000
_made = tuple.__new__
_BROKEN_LINK = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
UNREADABLE_BYTES = 1
"""The size listed for a pipe, a device or a broken link: 0 bytes would mean a file without rows."""


def list_children(directory: str) -> list[Entry]:
    """Return the direct children, sorted by name; sizes and times are those of a link's target.

    Raises:
        OSError: as ``os.scandir`` and ``os.stat``.
    """
    children, directories = _scan(directory, "")
    plain = {entry.path for entry, is_link in directories if not is_link}
    return sorted((_Plain(*entry) if entry.path in plain else entry for entry in children), key=_PATH)


def list_everything(root: str, top: Sequence[Entry] | None = None, *, again: int = 3) -> list[Entry]:
    """Return everything below `root`, sorted by path.

    A link to a directory is always followed, so that two partitions may share their data; it is listed but not entered
    if its target (by device and inode) is a directory on the path to it, which would never end.  A link whose target
    is missing is listed as a file of :data:`UNREADABLE_BYTES`.

    If a directory vanishes during the walk, the walk starts again: a cleaner removes what a newer directory replaces,
    which may have appeared after the first listing.  Directories that vanish in the last walk are left out.

    Args:
        top: the children of `root`, if they have just been listed.
        again: how many times to start again.

    Raises:
        OSError: as ``os.scandir`` and ``os.stat``, for any directory below: a listing is never partial.
        ConflictError: a directory became a file meanwhile.
        StorageError: more than a thousand links lead through each other.
    """
    entries: list[Entry] = []
    base = root.rstrip("/")
    nested = 0
    waiting = [(root, "", False)]
    while waiting:
        directory, prefix, through_link = waiting.pop()
        try:
            if directory == root and top is not None:
                children, directories = top, _with_links(root, top)
            else:
                children, directories = _scan(directory, prefix)
            entries += children
            for entry, is_link in directories:
                path = f"{base}/{entry.path}"
                if is_link:
                    if leads_back(path):
                        continue
                    nested += through_link
                    if nested > _NESTED_LINKS:
                        raise StorageError(
                            f"cannot list {printable(root)}",
                            f"more than {_NESTED_LINKS} symbolic links lead through each other",
                            f"look at the links below {printable(directory)}",
                        )
                waiting.append((path, entry.path + "/", through_link or is_link))
        except FileNotFoundError:
            if directory == root:
                raise
            if again:
                return list_everything(root, again=again - 1)
            gone = prefix[:-1]
            entries = [entry for entry in entries if entry.path != gone and not entry.path.startswith(prefix)]
        except NotADirectoryError as error:
            if directory == root:
                raise
            raise ConflictError(
                f"cannot list {printable(root)}", f"it changed meanwhile: {printable(directory)}", "list it again"
            ) from error
    entries.sort(key=_PATH)
    return entries


class _Plain(Entry):
    """A directory that is known not to be a symbolic link."""

    __slots__ = ()


def _with_links(root: str, entries: Sequence[Entry]) -> list[tuple[Entry, bool]]:
    """Return the directories, each with whether it is a symbolic link."""
    return [
        (entry, not isinstance(entry, _Plain) and os.path.islink(os.path.join(root, entry.path)))
        for entry in entries
        if entry.is_dir
    ]


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
                    entries.append(Entry(prefix + item.name, UNREADABLE_BYTES, _own_time(item), False))
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


def _own_time(item: os.DirEntry[str]) -> float | None:
    try:
        return item.stat(follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return None


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


def list_children_beneath(paths: RootedDirectory, directory: str) -> list[Entry]:
    """Return the direct children, sorted by name.

    Sizes and times are those of a link's target, even if it may not be followed and can neither be opened nor listed.

    Raises:
        ForeignLinkError: a link on the path to the directory leads to what somebody else owns.
        OSError: as ``os.open`` and ``os.scandir``.
    """
    with held(paths.open(directory, os.O_RDONLY | os.O_DIRECTORY)) as descriptor, os.scandir(descriptor) as items:
        entries = [_beneath(paths, directory, item, "") for item in items]
    return sorted((entry for entry, _ in filter(None, entries)), key=_PATH)


def list_everything_beneath(paths: RootedDirectory, root: str, *, again: int = 3) -> list[Entry]:
    """Return everything below `root`, sorted by path, as :func:`list_everything` without foreign links.

    Raises:
        ForeignLinkError: a link leads to what somebody else owns.
        OSError: as ``os.open`` and ``os.scandir``.
    """
    entries: list[Entry] = []
    base = root.rstrip("/")
    waiting: list[tuple[str, tuple[_Id, ...]]] = [("", ())]
    while waiting:
        prefix, above = waiting.pop()
        try:
            children, identity = _scan_beneath(paths, f"{base}/{prefix}".rstrip("/") or "/", prefix)
        except FileNotFoundError:
            if not prefix:
                raise
            if again:  # a cleaner removes what a newer directory replaces, which may have come after the first look
                return list_everything_beneath(paths, root, again=again - 1)
            entries = [entry for entry in entries if entry.path != prefix[:-1]]
            continue
        if identity in above:
            continue  # a link that leads back
        entries += (entry for entry, _ in children)
        waiting += [(f"{entry.path}/", (*above, identity)) for entry, _ in children if entry.is_dir]
    entries.sort(key=_PATH)
    return entries


_Id = tuple[int, int]
"""Device and inode."""


def _scan_beneath(paths: RootedDirectory, directory: str, prefix: str) -> tuple[list[tuple[Entry, bool]], _Id]:
    with held(paths.open(directory, os.O_RDONLY | os.O_DIRECTORY)) as descriptor:
        info = os.fstat(descriptor)
        with os.scandir(descriptor) as items:
            entries = list(filter(None, (_beneath(paths, directory, item, prefix) for item in items)))
    for entry, is_foreign in entries:
        if is_foreign:
            paths.stat(f"{directory}/{entry.path.removeprefix(prefix)}")  # this raises the error with the reason
    return entries, (info.st_dev, info.st_ino)


def _beneath(paths: RootedDirectory, directory: str, item: os.DirEntry[str], prefix: str) -> tuple[Entry, bool] | None:
    """Return an entry, and whether it is a link that may not be followed; None if it has vanished."""
    try:
        info = item.stat(follow_symlinks=False)
        is_foreign = False
        if stat.S_ISLNK(info.st_mode):
            try:
                info = paths.stat(f"{directory.rstrip('/')}/{item.name}")
            except ForeignLinkError:
                is_foreign = True
                with suppress(OSError):
                    info = item.stat()  # whether it would be a directory
            except OSError as error:
                if error.errno not in _BROKEN_LINK:
                    raise
    except FileNotFoundError:
        return None
    is_dir = stat.S_ISDIR(info.st_mode)
    size = info.st_size if stat.S_ISREG(info.st_mode) else 0 if is_dir else UNREADABLE_BYTES
    return _made(Entry, (prefix + item.name, size, info.st_mtime, is_dir)), is_foreign
