"""Resolves the paths and names that a user gives to locations of tables."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from acidctl.acid.listing import TableType
from acidctl.base.errors import AcidctlError, NotFoundError, RefusedError, UsageProblem, unexpected
from acidctl.base.parallel import threads
from acidctl.location.arguments import HIVE, FromMetastore, HiveName, at_its_line, is_hive_name
from acidctl.location.coverage import Coverage
from acidctl.location.evidence import Evidence, not_known, refuse_part_of_others
from acidctl.location.other_formats import FormatDetector
from acidctl.location.snapshot import DirectoryListing, list_location
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.location.walk import Observer, WalkedLocation, location_at, walk_locations
from acidctl.storage.port import FileSystem
from acidctl.storage.registry import naming_near, open_location
from acidctl.wording import some_of

if TYPE_CHECKING:
    from concurrent.futures import Future

    from acidctl.location.warehouse import Warehouse

_THREADS = 8
"""The number of threads that wait for a remote store."""

_LIKE_TABLE = re.compile(r"\w+\.\w+")


def find(
    paths: Sequence[str],
    storage: Mapping[str, str],
    resolver: SnapshotResolver,
    observer: Observer | None = None,
    *,
    looks: bool = True,
    formats: FormatDetector | None = None,
) -> Iterator[TableLocation]:
    """Yield every location at or below the given paths, in their order; remote stores are listed ahead.

    Args:
        resolver: decides which write ids count. They are numbered by table, so one list applies to one table.
        observer: receives everything else that is met, and the errors of all but a single path. Its coverage counts the
            locations that each path leads to.
        looks: list the locations themselves, too; False if no snapshots are taken of them.
        formats: for callers that change what is found: refuse locations in a directory that is not Hive's, which a
            walk from above would have skipped.

    Raises:
        NotFoundError, AccessError, StorageError: a path cannot be listed.
        RefusedError: one write-id list was given, and there is a second table; or the only path is a table of another
            format, or in one.
    """
    tables: dict[str, None] = {}
    observer, detector = observer or Observer(), formats or FormatDetector()
    resolver = _opened(resolver, paths)
    for path in paths:
        observer.coverage.begin(path)
        walk = partial(_locations_of, path, storage, resolver, observer, looks=looks, formats=formats)
        for found in _going_on(walk, observer, path, is_alone=len(paths) == 1):
            if found.holds_something or isinstance(path, FromMetastore):
                observer.coverage.met(path)
            tables.setdefault(found.location.table)
            resolver.spec.require_one_table(list(tables), found.shown)
            yield replace(found, formats=detector, may_go=not found.is_given)


def refuse_unusable(
    paths: Sequence[str],
    storage: Mapping[str, str],
    resolver: SnapshotResolver,
    table_type: TableType | None = None,
    *,
    formats: FormatDetector | None,
) -> None:
    """Refuse to change any of several named places if one of them cannot be used: it may be a typing error.

    Locations below a place, or matched by a pattern, were not named themselves: each of them fails by itself.

    Args:
        table_type: the table type that the user gave.
        formats: see :func:`find`, which can use it next; with None, the caller checks later for each location
            whether it is known to be transactional.

    Raises:
        NotFoundError, AccessError, StorageError, UsageProblem, RefusedError: the first error, with the other places.
    """
    if len(paths) < 2:
        return
    resolver = _opened(resolver, paths)
    errors = []
    for path in paths:
        try:
            _require_usable(path, storage, resolver, table_type, formats)
        except AcidctlError as error:
            errors.append(_explained(error, path))
    if errors:
        first, *more = errors
        first.why += f"; {some_of([error.what for error in more])}" if more else ""
        first.hint += f"{'; ' if first.hint else ''}nothing was changed: leave out what cannot be used"
        raise first


def _require_usable(
    path: str,
    storage: Mapping[str, str],
    resolver: SnapshotResolver,
    table_type: TableType | None,
    formats: FormatDetector | None,
) -> None:
    others = Observer(lambda _: None)  # errors of locations that were not named themselves
    found = next(_locations_of(path, storage, resolver, others, looks=False, formats=formats), None)
    if found is None or formats is None:
        return
    found = replace(found, formats=formats)
    if found.is_given or found.location.table_path == found.root:
        found.refuse_assuming()
        resolver.spec.write_ids_for(found.location.table)
    if found.is_given and not (evidence := found.with_type(table_type).evidence).may_change:
        raise not_known(found.shown, evidence)


def find_named(name: str, storage: Mapping[str, str], resolver: SnapshotResolver) -> Iterator[TableLocation]:
    """Yield the locations that a name in a metastore means, before any list is read: for callers that lock first.

    Raises:
        NotFoundError: there is no such table or partition.
        UsageProblem: the name is malformed, or the table is not transactional.
        RefusedError: the metastore's location for it cannot be a table's.
    """
    return _named(name, storage, resolver, Observer(), None)


def find_table(
    path: str, storage: Mapping[str, str], resolver: SnapshotResolver, table_type: TableType | None = None
) -> list[TableLocation]:
    """Return the locations of one path or name, for callers that read them as one table.

    Args:
        table_type: the table type that the user gave.

    Raises:
        NotFoundError, AccessError, StorageError: the path does not exist, or cannot be listed.
        RefusedError: the path is a table of another format, or in one.
    """
    resolver = _opened(resolver, [path])
    walk = partial(_locations_of, path, storage, resolver, Observer(), looks=False, formats=None)
    detector = FormatDetector()
    places = _going_on(walk, Observer(), path, is_alone=True)
    return [replace(found.with_type(table_type).reload(), formats=detector) for found in places]


def require_any(path: str, places: Iterable[TableLocation]) -> None:
    """Refuse to take a place without a table for an empty table: a disk may not be mounted.

    Raises:
        NotLookedAtError: there is no location, or all are empty.
    """
    coverage = Coverage()
    coverage.begin(path)
    if any(found.holds_something for found in places):
        coverage.met(path)
    if problem := coverage.problem():
        raise problem


def _opened(resolver: SnapshotResolver, paths: Sequence[str]) -> SnapshotResolver:
    try:
        return resolver.opened(paths)
    except AcidctlError as error:
        for path in paths:
            _add_ways(error, path)
        raise


def _explained(error: AcidctlError, path: str) -> AcidctlError:
    """Add the line of the list that a path is from to its error, and to the hint what may work instead."""
    at_its_line(error, path)
    _add_ways(error, path)
    return error


def _add_ways(error: AcidctlError, path: str) -> None:
    """Add to the hint that paths work without the metastore that failed, or how to name a table."""
    if isinstance(error, NotFoundError) and _LIKE_TABLE.fullmatch(path) and not error.hint.startswith("did you mean"):
        error.hint = f"check the spelling, or name the table of a metastore: {HIVE}{path}"
    way = "; --metastore none works on paths without it"
    if error.code == "metastore" and not is_hive_name(path) and way not in error.hint:
        error.hint += way


def found_again(found: TableLocation, storage: Mapping[str, str], formats: FormatDetector) -> TableLocation:
    """Return a location that was found before in its present state, to be changed.

    Args:
        formats: see :func:`find`.

    Raises:
        NotFoundError: its table, or the location itself, is gone.
        RefusedError: it lies in a directory that is not Hive's.
    """
    warehouse = found.resolver.warehouse
    if found.hive is None or warehouse is None:
        (again,) = find([found.shown], storage, found.resolver, formats=formats)
        return again
    # By its table, not by its path: a partition may lie anywhere.
    hive = warehouse.table_again(found.hive)
    warehouse.refuse_part_of_another(found.fs, found.location, hive)
    refuse_part_of_others(found.shown, storage, formats)
    return replace(found.reload(), hive=hive)


def _locations_of(
    path: str,
    storage: Mapping[str, str],
    resolver: SnapshotResolver,
    observer: Observer,
    *,
    looks: bool,
    formats: FormatDetector | None,
) -> Iterator[TableLocation]:
    if is_hive_name(path):
        return _named(path, storage, resolver, observer, formats)
    if resolver.warehouse and resolver.warehouse.read_lock:
        raise UsageProblem(
            f"no lock for reading can be taken on {path}", "it is a path", "name the table: hive:db.table"
        )
    fs, root = open_location(path, storage)
    if formats:
        refuse_part_of_others(path, storage, formats)
    walk = _walk(fs, root, resolver, observer, looks=looks)
    return walk if resolver.warehouse is None else _all_known(walk, resolver.warehouse, observer)


def _named(
    text: str,
    storage: Mapping[str, str],
    resolver: SnapshotResolver,
    observer: Observer,
    formats: FormatDetector | None,
) -> Iterator[TableLocation]:
    name, warehouse = HiveName.parse(text), resolver.require_warehouse(text)
    for place in warehouse.places(name, storage, observer.error):
        if formats:
            try:
                warehouse.refuse_part_of_another(place.fs, place.location, place.table)
                refuse_part_of_others(place.fs.display(place.location.path), storage, formats)
            except RefusedError as error:
                if observer.error is None or not name.is_pattern:
                    raise
                observer.error(error)
                continue
        is_given = not name.is_pattern and not place.location.partition
        found = TableLocation(place.fs, place.location, is_given, resolver, hive=place.table, declared=place.declared)
        yield replace(found, partition=place.partition)


def at_path(fs: FileSystem, path: str, resolver: SnapshotResolver) -> TableLocation:
    """Return one location by its path, with its table if a metastore is used and has it.

    Raises:
        RefusedError: the metastore has it in several tables.
        MetastoreError: the metastore cannot be reached, or failed.
    """
    found = TableLocation(fs, location_at(path), True, resolver)
    return _known(found, resolver.warehouse) if resolver.warehouse else found


def _all_known(walk: Iterator[TableLocation], warehouse: Warehouse, observer: Observer) -> Iterator[TableLocation]:
    for found in walk:
        try:
            yield _known(found, warehouse)
        except RefusedError as error:  # of this location only
            if observer.error is None or found.is_given:
                raise
            observer.error(error)


def _known(found: TableLocation, warehouse: Warehouse) -> TableLocation:
    """Return the location with its table in the metastore, under the metastore's name for it."""
    place = warehouse.place_at(found.fs, found.location)
    return replace(found, hive=place.table, location=place.location, declared=place.declared) if place else found


def _walk(
    fs: FileSystem, root: str, resolver: SnapshotResolver, observer: Observer, *, looks: bool
) -> Iterator[TableLocation]:
    if not fs.is_local and looks:
        yield from _ahead(fs, root, resolver, observer)
        return
    with naming_near(fs, root), nullcontext() if fs.is_local else threads(_THREADS, "acidctl-walk") as pool:
        for location, top in walk_locations(fs, root, observer, pool):
            yield TableLocation(fs, location, location.path == root, resolver, top, root=root)


def _going_on(
    walk: Callable[[], Iterator[TableLocation]], observer: Observer, path: str, *, is_alone: bool
) -> Iterator[TableLocation]:
    """Walk one of several paths; its error does not stop the others."""
    try:
        yield from walk()
    except Exception as error:
        problem = _explained(unexpected(error, f"while {path} was walked"), path)
        if is_alone or observer.error is None:
            raise
        observer.coverage.failed.add(path)
        observer.error(problem)


def _ahead(fs: FileSystem, root: str, resolver: SnapshotResolver, observer: Observer) -> Iterator[TableLocation]:
    """List some locations while the one before them is worked on, to hide the latency of the store.

    Neither Ctrl-C nor an end of the iteration waits for the listings that are running.
    """
    waiting: deque[tuple[TableLocation, Future[DirectoryListing | AcidctlError]]] = deque()
    # A pool of its own: if listings took all threads of a single one, the walk would wait for them.
    with threads(_THREADS, "acidctl-look") as pool:
        for found in _walk(fs, root, resolver, observer, looks=False):
            waiting.append((found, pool.submit(_listing_of, found)))
            while waiting and (len(waiting) > 2 * _THREADS or waiting[0][1].done()):
                yield _with_listing(*waiting.popleft())
        while waiting:
            yield _with_listing(*waiting.popleft())


def _with_listing(found: TableLocation, listed: Future[DirectoryListing | AcidctlError]) -> TableLocation:
    return replace(found, listed=listed.result())


def _listing_of(found: TableLocation) -> DirectoryListing | AcidctlError:
    try:
        return list_location(found.fs, found.location.path, found.top)
    except Exception as error:  # noqa: BLE001 - the other locations go on
        return unexpected(error, f"while {found.shown} was listed")


def once(places: Iterable[TableLocation]) -> Iterator[TableLocation]:
    """Yield each location once, however often the paths lead to it."""
    seen: set[tuple[str, str]] = set()
    for found in places:
        key = (found.fs.url, found.location.path)
        if key not in seen:
            seen.add(key)
            yield found


def given_paths(given: Iterable[str], storage: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return the stores and paths of what a user typed, for :func:`leads_to`."""
    return {(fs.url, path.rstrip("/")) for fs, path in (open_location(p, storage) for p in given)}


def leads_to(given: Collection[tuple[str, str]], url: str, path: str) -> bool:
    """Return whether one of the given paths is a path of a store, or lies above it."""
    return any((url, above) in given for above in itertools.accumulate(path.split("/"), "{}/{}".format))


def with_tables(
    places: Iterable[TableLocation], given: Sequence[str], storage: Mapping[str, str]
) -> Iterator[tuple[TableLocation, bool]]:
    """Yield each location, and the table's directory before its first partition.

    The directory of a table is left out if none of the given paths leads to it: directories above them are private.

    Yields:
        The location, and whether it is only the directory of a partitioned table.
    """
    within: set[tuple[str, str]] = set()
    seen: set[tuple[str, str]] = set()
    for found in places:
        table = found.location.table_path
        key = (found.fs.url, table)
        if key not in seen and found.location.partition:
            within = within or given_paths(given, storage)
            if leads_to(within, found.fs.url, table):
                yield TableLocation(found.fs, WalkedLocation(table, found.location.table), False, found.resolver), True
        seen.add(key)
        yield found, False


def of_type(places: Iterable[TableLocation], table_type: TableType | None) -> Iterator[TableLocation]:
    """Yield the locations with the type that the user gives for their table; None changes nothing.

    Raises:
        RefusedError: there are several tables, or the metastore says that the table has another type.
    """
    first = None
    for found in places:
        first = first or found.location.table
        if table_type is not None and found.location.table != first:
            raise RefusedError(
                "one table type cannot speak for several tables",
                f"{found.shown} is of {found.location.table}, not of {first}",
                "give one table",
            )
        yield found.with_type(table_type)


def changeable(
    places: Iterable[TableLocation], table_type: TableType | None, skipped: Callable[[TableLocation, Evidence], None]
) -> Iterator[TableLocation]:
    """Yield the locations that may be changed.

    Args:
        table_type: the type that the user gives for the table.
        skipped: called with each other location, which is not known to be transactional.

    Raises:
        RefusedError: a location that was named itself is not known to be transactional, or one type is given for
            several tables.
    """
    for found in of_type(places, table_type):
        try:
            evidence = found.evidence
        except Exception:  # noqa: BLE001 - it cannot be listed: its snapshot says so
            yield found
            continue
        if evidence.may_change:
            yield found
        elif found.is_given:
            raise not_known(found.shown, evidence)
        else:
            skipped(found, evidence)
