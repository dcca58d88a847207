"""Files beside the locations of a table: in its directory, and in the trashes of HDFS."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from acidctl.acid.names import is_hidden, parse_partition, unescape
from acidctl.base.errors import AcidctlError, NotFoundError
from acidctl.erasure.holders import Holder, HolderKind, PhysicalFile, physical_files
from acidctl.erasure.small_files import is_small_file
from acidctl.storage.port import FileSystem, base_name, join, parent_of

_HOMES = "/user"
_TRASH = ".Trash"
_HDFS = ("webhdfs", "swebhdfs", "hdfs")
_TIME = re.compile(r"[0-9]{13}")
"""The time in milliseconds that Hadoop appends to a name that already exists in the trash."""

OnClosed = Callable[[str, AcidctlError], None]
"""Receives each directory, absolute, that cannot be listed."""


@dataclass(frozen=True, slots=True)
class StrayFile:
    """A file outside of all locations.

    Attributes:
        partition: the values in its path below the directory of the table, by key; unescaped.
    """

    file: PhysicalFile
    partition: tuple[tuple[str, str], ...]


def files_beside(fs: FileSystem, root: str, locations: Collection[str], on_closed: OnClosed) -> Iterator[StrayFile]:
    """Yield the files in a table's directory but in none of its locations: staging, unknown partitions...

    Args:
        locations: all locations of the table, absolute; the directory itself may be one.
    """
    above: set[str] = set()  # the directories between a location and that of its table
    for path in map(parent_of, locations):
        while path.startswith(f"{root.rstrip('/')}/"):
            above.add(path)
            path = parent_of(path)  # noqa: PLW2901 - it climbs
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            entries = fs.list_dir(folder).entries
        except NotFoundError:
            continue
        except AcidctlError as error:
            on_closed(folder, error)
            continue
        for entry in entries:
            path = join(folder, entry.path)
            if path in locations or (folder in locations and not (entry.is_dir and parse_partition(entry.path))):
                continue
            if path in above:
                waiting.append(path)
            else:
                kind = HolderKind.STAGING if is_hidden(entry.path) else HolderKind.OTHER
                yield from _below(fs, path, root, kind, on_closed)


def _below(fs: FileSystem, path: str, root: str, kind: HolderKind, on_closed: OnClosed) -> Iterator[StrayFile]:
    """Yield all files at or below a path."""
    holder = Holder(kind, fs.display(path), "")
    try:
        entry = fs.stat(path)
        if not entry.is_dir:
            named = entry._replace(path=base_name(path))
            if entry.size and not is_small_file(fs, parent_of(path), named, {}):  # as a log of acidctl
                yield StrayFile(PhysicalFile(holder, path, named), _keys(path, root))
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
    pairs = (parse_partition(part) for part in parts)
    return tuple((unescape(pair[0]), unescape(pair[1])) for pair in pairs if pair and not _TIME.search(pair[1][-13:]))


def hdfs_trash_files(fs: FileSystem, roots: Sequence[str], on_closed: OnClosed) -> Iterator[StrayFile]:
    """Yield the files of a table in the trashes of HDFS, of all users whose trash can be listed.

    Args:
        roots: its directory, and its locations elsewhere.
    """
    if fs.spec.protocol not in _HDFS:
        return
    for checkpoint in _checkpoints(fs, roots, on_closed):
        for root in roots:
            folder = f"{checkpoint}{parent_of(root)}".rstrip("/")
            for name in _names(fs, folder, on_closed):
                if name == base_name(root) or (
                    name.startswith(base_name(root)) and _TIME.fullmatch(name[len(base_name(root)) :])
                ):
                    path = join(folder, name)
                    yield from _below(fs, path, path, HolderKind.HDFS_TRASH, on_closed)


def _checkpoints(fs: FileSystem, roots: Sequence[str], on_closed: OnClosed) -> Iterator[str]:
    """Yield the checkpoints of all trashes: ``Current``, and one for each time that HDFS emptied it."""
    trashes = {join(_HOMES, name, _TRASH) for name in _names(fs, _HOMES, on_closed)}
    trash_root: Callable[[str], str | None] = getattr(fs, "trash_root", lambda _: None)
    for root in roots:
        try:
            trash = trash_root(root)
        except AcidctlError as error:
            on_closed(root, error)
            continue
        if trash and base_name(parent_of(trash)) == _TRASH:  # of an encryption zone, which has one for each user
            trashes |= {join(parent_of(trash), name) for name in _names(fs, parent_of(trash), on_closed)}
        elif trash:
            trashes.add(trash)
    for trash in sorted(trashes):
        for name in _names(fs, trash, on_closed):
            yield join(trash, name)


def _names(fs: FileSystem, path: str, on_closed: OnClosed) -> list[str]:
    """Return the directories in a directory; none if it does not exist."""
    try:
        return [entry.path for entry in fs.list_dir(path).entries if entry.is_dir]
    except NotFoundError:
        return []
    except AcidctlError as error:
        on_closed(path, error)
        return []
