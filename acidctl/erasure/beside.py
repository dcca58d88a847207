"""What lies beside the locations of a table: in its directory, and in the trashes of HDFS."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from acidctl.acid.names import is_hidden, parse_partition, unescape
from acidctl.cleaning.hdfs_trash import is_hdfs
from acidctl.erasure.holders import Holder, HolderKind, PhysicalFile, physical_files
from acidctl.errors import AcidctlError, NotFoundError
from acidctl.storage.port import FileSystem, base_name, join, parent_of

_HOMES = "/user"
_TRASH = ".Trash"
_TIME = re.compile(r"[0-9]{13}")
"""In milliseconds, which Hadoop puts behind a name that is taken in the trash."""

OnClosed = Callable[[str, AcidctlError], None]
"""Told of each directory, absolute, that cannot be looked into."""


@dataclass(frozen=True, slots=True)
class StrayFile:
    """A file that lies in no location.

    Attributes:
        partition: the values in its path below the directory of the table, by their keys; unescaped.
    """

    file: PhysicalFile
    partition: tuple[tuple[str, str], ...]


def files_beside(fs: FileSystem, root: str, locations: Collection[str], on_closed: OnClosed) -> Iterator[StrayFile]:
    """The files of a table's directory that lie in none of its locations: staging, partitions that nobody knows...

    Args:
        locations: absolute, all of the table; the directory itself may be one.
    """
    above = {at for path in locations for at in _above(path, root)}
    waiting = [root]
    while waiting:
        at = waiting.pop()
        try:
            entries = fs.list_dir(at).entries
        except NotFoundError:
            continue
        except AcidctlError as error:
            on_closed(at, error)
            continue
        for entry in entries:
            path = join(at, entry.path)
            if path in locations or (at in locations and not (entry.is_dir and parse_partition(entry.path))):
                continue
            if path in above:
                waiting.append(path)
            else:
                kind = HolderKind.STAGING if is_hidden(entry.path) else HolderKind.OTHER
                yield from _below(fs, path, root, kind, on_closed)


def _above(path: str, root: str) -> Iterator[str]:
    """The directories between a location and the directory of its table."""
    path = parent_of(path)
    while path.startswith(f"{root.rstrip('/')}/"):
        yield path
        path = parent_of(path)


def _below(fs: FileSystem, path: str, root: str, kind: HolderKind, on_closed: OnClosed) -> Iterator[StrayFile]:
    """All files at or below a path."""
    holder = Holder(kind, fs.display(path), "")
    try:
        entry = fs.stat(path)
        if not entry.is_dir:
            if entry.size:
                yield StrayFile(PhysicalFile(holder, path, entry._replace(path=base_name(path))), _keys(path, root))
            return
        listing = fs.list_tree(path)
    except NotFoundError:
        return
    except AcidctlError as error:
        on_closed(path, error)
        return
    for file in physical_files(fs, listing, {}):
        yield StrayFile(PhysicalFile(holder, file.path, file.entry, file.side), _keys(file.path, root))


def _keys(path: str, root: str) -> tuple[tuple[str, str], ...]:
    parts = path[len(root.rstrip("/")) :].strip("/").split("/")[:-1]
    found = (parse_partition(part) for part in parts)
    return tuple((unescape(pair[0]), unescape(pair[1])) for pair in found if pair and not _TIME.search(pair[1][-13:]))


def hdfs_trash_files(fs: FileSystem, roots: Sequence[str], on_closed: OnClosed) -> Iterator[StrayFile]:
    """The files of a table in the trashes of HDFS, of all users whose trash may be looked into.

    Args:
        roots: its directory, and its locations elsewhere.
    """
    if not is_hdfs(fs):
        return
    for checkpoint in _checkpoints(fs, roots, on_closed):
        for root in roots:
            folder = f"{checkpoint}{parent_of(root)}".rstrip("/")
            for name in _names(fs, folder, on_closed):
                if name == base_name(root) or (
                    name.startswith(base_name(root)) and _TIME.fullmatch(name[len(base_name(root)) :])
                ):
                    at = join(folder, name)
                    yield from _below(fs, at, at, HolderKind.HDFS_TRASH, on_closed)


def _checkpoints(fs: FileSystem, roots: Sequence[str], on_closed: OnClosed) -> Iterator[str]:
    """What a user's trash has: ``Current``, and one for each time that HDFS put it away."""
    trashes = {join(_HOMES, name, _TRASH) for name in _names(fs, _HOMES, on_closed)}
    ask: Callable[[str], str | None] = getattr(fs, "trash_root", lambda _: None)
    for root in roots:
        try:
            own = ask(root)
        except AcidctlError as error:
            on_closed(root, error)
            continue
        if own and base_name(parent_of(own)) == _TRASH:  # of an encryption zone, which has one for each user
            trashes |= {join(parent_of(own), name) for name in _names(fs, parent_of(own), on_closed)}
        elif own:
            trashes.add(own)
    for trash in sorted(trashes):
        for name in _names(fs, trash, on_closed):
            yield join(trash, name)


def _names(fs: FileSystem, path: str, on_closed: OnClosed) -> list[str]:
    """The directories in a directory; none where it does not exist."""
    try:
        return [entry.path for entry in fs.list_dir(path).entries if entry.is_dir]
    except NotFoundError:
        return []
    except AcidctlError as error:
        on_closed(path, error)
        return []
