"""Finds the locations at or below a path: one table, its partitions, a database or a warehouse.

A directory is classified by its visible children (hidden names begin with ``_`` or ``.`` and never count):

======================================================  =======================================================
children                                                the directory is
======================================================  =======================================================
a ``base_N``, ``delta_A_B`` or ``delete_delta_A_B``     a location
a file                                                  a location of original files
directories named ``k=v``                               a partitioned table, or a further level of its partitions
only other directories                                  a container, database or warehouse: each is walked
``k=v`` directories and others                          see below
none                                                    a location with nothing in it
======================================================  =======================================================

In detail:

* A location may have ``k=v`` directories as well: both are reported, the location first.  Its other directories hold
  original files (section 6.1) and are not entered.
** Inside a partition, or with Hive's ``HIVE_UNION_SUBDIR_N`` among them, "only other directories" is a location too.
** Like Hive, a walk does not count other directories beside ``k=v`` directories as part of a table. If ACID directories
  stand below one of them, all are walked; otherwise they are skipped and reported.
* If ACID directories stand below the other children only, or below both in ``name.db``, the ``k=v`` directories are
  not partitions: one stray directory does not make a database a partitioned table.
* Skipped directories are reported to the caller: hidden ones of a container, links that lead back, links to nothing,
  directories beside partitions, and those that vanished meanwhile.
* ``name.db``, and a directory with such children, is a container, whatever files it has; an empty ``name.db`` has no
  locations.
* A directory with files and with other directories that contain ACID directories is a container; if it has ACID
  directories itself, it is a location, and its other directories are walked, too.
* Tables of other formats (Delta Lake, Hudi, Iceberg...) are skipped, too.
* A table may be called ``base_2023``. So the ACID directories of a supposed location outside of partitions are listed
  until one is not empty; if that contains ACID directories or ``k=v``, the "location" is a database.
"""

# ruff: noqa: PTH114
# Pathlib would build an object for every directory of a walk.
from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from acidctl.acid.listing import Entry, Listing, with_entries
from acidctl.acid.names import (
    AcidNameError,
    is_hidden,
    is_native_data_file,
    is_union_subdirectory,
    is_visible_path,
    manifest_for,
    parse_directory,
    parse_partition,
    unescape,
)
from acidctl.base.errors import AccessError, AcidctlError, GoneError, NotFoundError, RefusedError, unexpected
from acidctl.location.coverage import Coverage
from acidctl.location.other_formats import FormatDetector, is_aside, other_format
from acidctl.storage import registry
from acidctl.storage.local.tree import UNREADABLE_BYTES, leads_back
from acidctl.storage.port import FileSystem, FileSystemSpec, base_name, join, parent_of

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

LOG, LOG_SUFFIX = ".acidctl-log-", ".jsonl"
"""The prefix and suffix of a log's name; the time and id of the last operation stand between them."""

_DATABASE = ".db"
_AHEAD = 32
"""The number of directories to list ahead."""


@dataclass(frozen=True, slots=True)
class WalkedLocation:
    """A directory that Hive reads as one unit: an unpartitioned table, or one partition.

    Attributes:

        table: ``database.table`` below a ``database.db``, else the name of the table's directory.
        partition: keys and values from the outermost, unescaped; empty for an unpartitioned table.
        is_inside: its parent directory has ACID directories itself.
    """

    path: str
    table: str
    partition: tuple[tuple[str, str], ...] = ()
    is_inside: bool = False

    @property
    def table_path(self) -> str:
        """Return the directory of its table, derived from its own path."""
        path = self.path
        for _ in self.partition:
            path = parent_of(path)
        return path


@dataclass(frozen=True, slots=True)
class _Children:
    """The children of a directory, by kind.

    Attributes:
        hidden: directories.
        broken: links to nothing, which do not count as files.
    """

    acid: list[str]
    partitions: list[str]
    others: list[str]
    hidden: list[str]
    broken: list[str]
    has_files: bool


@dataclass(frozen=True, slots=True)
class Observer:
    """Callbacks for everything that a walk meets besides locations.

    Attributes:
        error: receives the error of a directory below the given path, which is then skipped; None raises it.
        coverage: counts what is found, and records every directory that is skipped for another reason.
        hidden: walk the hidden directories of containers, too, and report their files.
        container: receives a folder with files beside the folders of tables: its store, its path, and that of an ACID
            directory below it.
    """

    error: Callable[[AcidctlError], None] | None = None
    coverage: Coverage = field(default_factory=Coverage)
    hidden: bool = False
    container: Callable[[FileSystem, str, str], None] | None = None


_listeners: list[Callable[[int, int], None]] = []


@contextmanager
def listening(listener: Callable[[int, int], None]) -> Iterator[None]:
    """Call a listener, from any thread, with the numbers of newly walked directories and listed entries."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def _tell(directories: int, entries: int) -> None:
    for listener in _listeners:
        listener(directories, entries)


def walk_locations(
    fs: FileSystem,
    path: str,
    observer: Observer | None = None,
    pool: Executor | None = None,
) -> Iterator[tuple[WalkedLocation, Listing]]:
    """Yield every location at or below a path, depth first, children by name, with one ``list_dir`` a directory.

    The listing of the location's own children is included: :func:`list_entries` can start from it.

    Args:
        pool: lists directories ahead, for slow stores.

    Raises:
        NotFoundError, AccessError, StorageError: `path` itself cannot be listed.
        RefusedError: `path` itself is a table of another format.
    """
    yield from _Walk(fs, path, observer or Observer(), pool).locations()


class _Walk:
    def __init__(self, fs: FileSystem, path: str, observer: Observer, pool: Executor | None) -> None:
        self._fs, self._root, self._observer, self._pool = fs, path, observer, pool
        self._waiting = [path]
        self._ahead: dict[str, Future[Listing]] = {}
        self._containers: set[str] = set()
        self._tables: set[str] = set()

    def locations(self) -> Iterator[tuple[WalkedLocation, Listing]]:
        while self._waiting:
            directory, listing = self._next()
            if listing is None:
                continue
            try:
                yield from self._at(directory, listing)
            except Exception as error:
                if directory == self._root or self._observer.error is None:
                    raise
                self._observer.error(unexpected(error, f"while {self._fs.display(directory)} was walked"))

    def _at(self, directory: str, listing: Listing) -> Iterator[tuple[WalkedLocation, Listing]]:
        """Yield the location at a directory, and add what is to be walked below it."""
        if not self._is_of_others(directory, listing):
            children = _children(listing, _broken_links(self._fs, directory, listing))
            location = self._location_at(directory, children)
            below = children.partitions
            if not _is_location(self._fs, directory, location, children):
                below = self._below_container(directory, location, children)
                if below != children.partitions:
                    self._tell_of_files(directory, listing, children)
                    self._tell_of_container(directory, children)
            elif parent_of(directory) in self._containers and not (listing.entries or location.partition):
                if parse_partition(base_name(directory)):
                    self._observer.coverage.skip(
                        self._fs.display(directory), "is empty, and not a partition beside tables"
                    )
                else:
                    yield location, listing
            elif not (tables := self._tables_below(directory, children)):
                yield location, listing
                if not (children.has_files or children.acid or children.others):
                    below = below + self._hidden(directory, children)
            elif children.acid:
                yield location, listing
                below = below + list(tables)
            else:
                below = below + [name for name in children.others if not is_union_subdirectory(name)]
                self._tell_of_files(directory, listing, children)
                self._tell_of_container(directory, children)
            self._waiting += [
                child for name in sorted(below, reverse=True) if not self._leads_back(child := join(directory, name))
            ]

    def _location_at(self, directory: str, children: _Children) -> WalkedLocation:
        location = location_at(directory, self._containers)
        if children.acid and children.partitions:
            self._tables.add(directory)
        return replace(location, is_inside=True) if parent_of(directory) in self._tables else location

    def _below_container(self, directory: str, location: WalkedLocation, children: _Children) -> list[str]:
        """Return the children to walk of a directory that is not a location; report the others."""
        for name in children.broken:
            error = NotFoundError(f"{self._shown(directory, name)} is a link to nothing", "", "see what it was for")
            if self._observer.error is None:
                raise error
            self._observer.error(error)
        others = children.others + children.acid
        if children.partitions:
            is_database = any(name.endswith(_DATABASE) for name in (base_name(directory), *others))
            if not (others and (is_database or self._has_acid(directory, others))):
                for name in others:
                    self._skip(directory, name, "lies beside partitions, where Hive reads nothing")
                return children.partitions
            if location.partition or not self._is_container(directory, children):
                return children.partitions + others
            self._containers.add(directory)
        return children.partitions + others + self._hidden(directory, children)

    def _tell_of_files(self, directory: str, listing: Listing, children: _Children) -> None:
        """Report the files of a container, whose columns are unknown; hidden ones to a caller that wants all rows."""
        for entry in listing.entries:
            is_seen = self._observer.hidden or not is_hidden(entry.path)
            if not entry.is_dir and entry.size and is_seen and entry.path not in children.broken:
                self._skip(directory, entry.path, "is a file beside tables, not of one")

    def _tell_of_container(self, directory: str, children: _Children) -> None:
        """Report a folder with files, and the first of the ACID directories in its tables."""
        if not (self._observer.container and children.has_files):
            return
        if tables := self._tables_below(directory, children):
            self._observer.container(self._fs, directory, min(tables.values()))

    def _hidden(self, directory: str, children: _Children) -> list[str]:
        """Return the hidden directories to walk; report skipped ones, except staging and trash."""
        if self._observer.hidden:
            return children.hidden
        for name in children.hidden:
            if not is_aside(name):
                self._skip(directory, name, "is hidden")
        return []

    def _is_container(self, directory: str, children: _Children) -> bool:
        """Return whether ``k=v`` directories are strays between tables, rather than partitions beside strays."""
        if not self._has_acid(directory, children.partitions):
            return True
        return directory.endswith(_DATABASE) and self._has_acid(directory, children.others + children.acid)

    def _has_acid(self, directory: str, names: list[str]) -> bool:
        """Return whether one of the directories contains ACID directories, or cannot be listed: then the walk reports
        it."""
        return any(_acid_below(self._fs, join(directory, name), or_closed=True) for name in names)

    def _shown(self, directory: str, name: str) -> str:
        return self._fs.display(join(directory, name))

    def _skip(self, directory: str, name: str, why: str) -> None:
        self._observer.coverage.skip(self._shown(directory, name), why)

    def _leads_back(self, path: str) -> bool:
        """Return whether a link leads to a directory above it; report that unless its target is being walked."""
        if not _leads_back(self._fs, path):
            return False
        target, root = os.path.realpath(path), os.path.realpath(self._root)
        if not f"{target}/".startswith(f"{root.rstrip('/')}/"):
            self._observer.coverage.skip(self._fs.display(path), "is a link to a directory above it")
        return True

    def _next(self) -> tuple[str, Listing | None]:
        """Return the next directory and its listing; None if it cannot be listed, which is reported."""
        if self._pool:
            for near in self._waiting[-_AHEAD:]:
                if near not in self._ahead:
                    self._ahead[near] = self._pool.submit(self._fs.list_dir, near)
        directory = self._waiting.pop()
        try:
            listing = self._ahead.pop(directory).result() if self._pool else self._fs.list_dir(directory)
            _tell(1, 0)
            return directory, listing
        except NotFoundError as error:  # dropped since its parent was listed
            if directory == self._root:
                raise
            if self._observer.error:
                shown = self._fs.display(directory)
                self._observer.error(GoneError(f"{shown} is gone", str(error)))
        except Exception as error:
            if directory == self._root or self._observer.error is None:
                raise
            self._observer.error(unexpected(error, f"while {self._fs.display(directory)} was listed"))
        return directory, None

    def _is_of_others(self, directory: str, listing: Listing) -> bool:
        what = other_format(self._fs, directory, listing) or self._behind_link(directory)
        if what and directory == self._root:
            raise RefusedError(
                f"{self._fs.display(directory)} is {what}",
                "acidctl enters Hive's ACID tables only",
                "use a tool for that format",
            )
        if what:
            self._observer.coverage.skip(self._fs.display(directory), f"is {what}")
        return bool(what)

    def _behind_link(self, directory: str) -> str:
        """Return what a symbolic link leads into if that is not Hive's: the walk did not check above its target."""
        if directory == self._root or not self._fs.is_local or not os.path.islink(directory):
            return ""
        plain = registry.open_file_system(FileSystemSpec("file"))  # the one for changes sees nothing above its own path
        container = FormatDetector().of(plain, directory)
        return f"a link into {container[0]}, which is {container[1]}" if container else ""

    def _tables_below(self, directory: str, children: _Children) -> dict[str, str]:
        """Return the children that contain ACID directories, each with one of those."""
        acid_paths = ((name, _acid_below(self._fs, join(directory, name))) for name in children.others)
        return {name: path for name, path in acid_paths if path}


def _acid_below(fs: FileSystem, directory: str, *, or_closed: bool = False) -> str:
    """Return the path of an ACID directory below a directory that is not one itself; empty if there is none.

    Hive's ``HIVE_UNION_SUBDIR_N`` hold original files and are ignored, like directories that cannot be listed: listing
    the location reports those.

    Args:
        or_closed: return the path of the directory itself if it exists but cannot be listed.
    """
    if is_union_subdirectory(base_name(directory)) or _leads_back(fs, directory):
        return ""
    try:
        listing = fs.list_dir(directory)
    except Exception as error:  # noqa: BLE001 - its own listing reports it
        return directory if or_closed and not isinstance(error, NotFoundError) else ""
    if other_format(fs, directory, listing):
        return ""
    children = _children(listing)
    if children.acid:
        return join(directory, min(children.acid))
    paths = (_acid_below(fs, join(directory, name)) for name in sorted(children.partitions + children.others))
    return next(filter(None, paths), "")


def list_entries(
    fs: FileSystem,
    path: str,
    top: Listing | None = None,
    on_unreadable: Callable[[str, AcidctlError], None] | None = None,
    *,
    hidden: bool = False,
) -> Listing:
    """List the whole tree of one location with one ``list_tree``.

    The ``k=v`` directories at its top are left out: they are locations of their own.

    Args:
        top: its own children, if they were just listed.
        on_unreadable: receives the relative path of each directory that may not be listed; the rest is listed then. Use
            it only to show a location: a decision needs the complete listing. Hidden directories, of other writers and
            in trashes, hold nothing that counts and are not reported, except ``_tmp_...``, perhaps half of a result.
        hidden: report all hidden directories, too.

    Raises:
        NotFoundError, AccessError, StorageError: as ``list_tree``.
    """
    listing = top
    if listing is None or any(entry.is_dir for entry in listing.entries):
        try:
            listing = fs.list_tree(path, top)
        except AccessError:
            closed: dict[str, AcidctlError] = {}
            listing = _what_can_be_listed(fs, path, closed)
            counted = [name for name in closed if hidden or not _is_of_no_reader(name)]
            if not closed or (counted and on_unreadable is None):
                raise
            for name in counted:
                assert on_unreadable
                on_unreadable(name, closed[name])
        listing = without_partitions(listing)
    _tell(0, len(listing.entries))
    return listing


def is_log(path: str) -> bool:
    """Return whether a path relative to a location is that of acidctl's log, which only the log itself reads."""
    return path.startswith(LOG) and path.endswith(LOG_SUFFIX) and "/" not in path


def _is_of_no_reader(name: str) -> bool:
    return is_hidden(name) and not (name.startswith("_tmp") or manifest_for(name))


def _what_can_be_listed(fs: FileSystem, path: str, closed: dict[str, AcidctlError]) -> Listing:
    """List a location directory by directory; add those that may not be listed to `closed`."""
    entries = list(fs.list_dir(path).entries)
    waiting = [entry.path for entry in reversed(entries) if entry.is_dir and not _is_partition(entry)]
    while waiting:
        name = waiting.pop()
        if _leads_back(fs, join(path, name)):
            continue
        try:
            below = [entry._replace(path=f"{name}/{entry.path}") for entry in fs.list_dir(join(path, name)).entries]
        except AccessError as error:
            closed[name] = error
            continue
        entries += below
        waiting += [entry.path for entry in reversed(below) if entry.is_dir]
    return Listing(path, tuple(sorted(entries)))


def without_partitions(listing: Listing) -> Listing:
    """Remove the partitions that share a location's directory, and everything in them."""
    partitions = {entry.path for entry in listing.entries if entry.is_dir and _is_partition(entry)}
    if not partitions:
        return listing
    kept, filled = [], set()
    for entry in listing.entries:
        child = entry.path.partition("/")[0]
        if child not in partitions:
            kept.append(entry)
        elif not entry.is_dir and is_visible_path(entry.path):
            filled.add(child)
    return replace(with_entries(listing, kept), partitions=tuple(sorted(filled)))


def location_at(path: str, containers: Collection[str] = ()) -> WalkedLocation:
    """Return the location at a path, with its table and partition, by the components of the whole path.

    Args:
        containers: directories whose ``k=v`` children are not partitions.
    """
    partition: list[tuple[str, str]] = []
    table = path
    while (pair := parse_partition(base_name(table))) and parent_of(table) not in containers:
        partition.append((unescape(pair[0]), unescape(pair[1])))
        table = parent_of(table)
    name = base_name(table)
    database = base_name(parent_of(table))
    if database.endswith(_DATABASE) and database != _DATABASE:
        name = f"{database.removesuffix(_DATABASE)}.{name}"
    return WalkedLocation(path, name, tuple(reversed(partition)))


def _children(listing: Listing, broken: Sequence[str] = ()) -> _Children:
    files = (entry.path for entry in listing.entries if not entry.is_dir and not is_hidden(entry.path))
    children = _Children([], [], [], [], list(broken), any(name not in broken for name in files))
    for entry in listing.entries:
        if entry.is_dir:
            _kind_of(entry, children).append(entry.path)
    return children


def _broken_links(fs: FileSystem, directory: str, listing: Listing) -> list[str]:
    """Return the visible links to nothing on the local disk, which are listed as files."""
    if not fs.is_local:
        return []
    tiny = (entry.path for entry in listing.entries if not entry.is_dir and entry.size == UNREADABLE_BYTES)
    paths = ((name, join(directory, name)) for name in tiny if not is_hidden(name))
    return [name for name, path in paths if os.path.islink(path) and not os.path.exists(path)]  # noqa: PTH110


def _kind_of(entry: Entry, children: _Children) -> list[str]:
    if is_hidden(entry.path):
        return children.hidden
    if _is_partition(entry):
        return children.partitions
    try:
        return children.others if parse_directory(entry.path) is None else children.acid
    except AcidNameError:  # "base_customers" is more likely a table than a broken directory of Hive's
        return children.others


def _is_partition(entry: Entry) -> bool:
    return "/" not in entry.path and parse_partition(entry.path) is not None


def _is_location(fs: FileSystem, directory: str, location: WalkedLocation, children: _Children) -> bool:
    if location.partition:
        return bool(children.acid or children.has_files or not children.partitions)
    if children.acid:
        return not _holds_tables(fs, directory, children.acid)
    if directory.endswith(_DATABASE) or any(name.endswith(_DATABASE) for name in children.others):
        return children.has_files and not children.others and not children.partitions
    if children.has_files:
        return True
    if children.others and not children.partitions:
        return any(map(is_union_subdirectory, children.others))
    return not children.partitions


def _holds_tables(fs: FileSystem, directory: str, names: list[str]) -> bool:
    """Return whether directories with ACID names are tables, judged by the first that is not empty."""
    for name in sorted(names):
        try:
            listing = fs.list_dir(join(directory, name))
        except Exception:  # noqa: BLE001 - the caller's own listing of it reports the error
            continue
        if any(not entry.is_dir and is_native_data_file(base_name(entry.path)) for entry in listing.entries):
            return False  # a table does not hold bucket files itself, whatever else is beside them
        inside = _children(listing)
        # A directory of its own name comes from a rename into an existing directory (rule V17), not from a table.
        if inside.partitions or set(inside.acid) - {name}:
            return True
        if listing.entries:
            return False
    return False


def _leads_back(fs: FileSystem, path: str) -> bool:
    """Return whether a path is a symbolic link to a directory above it, which would be walked forever."""
    return fs.is_local and os.path.islink(path) and leads_back(path)
