"""Resolves the paths that a user gives to locations, their tables in the metastore, and their snapshots."""

from __future__ import annotations

import itertools
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from acidctl.acid.listing import Listing, TableType
from acidctl.acid.names import AcidDirectory, is_hidden, partition_name
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import with_reasons
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import AcidctlError, ConflictError, GoneError, NotFoundError, RefusedError, UsageProblem
from acidctl.base.spelling import spelled
from acidctl.location.arguments import HIVE, FromMetastore, at_its_line, is_hive_name
from acidctl.location.evidence import Evidence, evidence_of, not_known, refuse_part_of_others, type_by_files
from acidctl.location.hive_names import HiveName
from acidctl.location.metastore_schema import Declared, declared_by
from acidctl.location.other_formats import FormatDetector
from acidctl.location.snapshot import DirectoryListing, Snapshot, files_ahead, list_location, take_snapshot
from acidctl.location.snapshot_spec import ResolvedSnapshot, SnapshotSpec
from acidctl.location.walk import Observer, WalkedLocation, location_at, walk_locations
from acidctl.storage import registry
from acidctl.storage.port import FileSystem, FileSystemSpec, parent_of
from acidctl.storage.registry import naming_near, open_location
from acidctl.wording import some_of, text_of

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.tables import HivePartition, HiveTable

_ROUNDS = 3
"""How many times to list a location and query its metastore again if one of them is newer than the other."""

_THREADS = 8
"""The number of threads that wait for a remote store."""

_LIKE_TABLE = re.compile(r"\w+\.\w+")


@dataclass(frozen=True)
class TableLocation:
    """A location that a user's path led to.

    Attributes:
        is_given: the path itself is the location, not a tree that holds it.
        top: its own children, if they were just listed; None lists them again.
        ahead: its listing, made while other locations were worked on, or the error of that.
        hive: its table in the metastore; None without a metastore, or if the metastore does not have it.
        declared: what the metastore says about its files; a partition may differ from its table.
        partition: its partition, if it was just read from the metastore.
        said: the table type that the user gave; the metastore's type takes precedence.
        around: caches the directories above it and above other locations.
        may_go: it is one of many, and the run goes on if it was dropped meanwhile.
        root: the root of the tree in which it was found; empty if a metastore named it.
    """

    fs: FileSystem
    location: WalkedLocation
    is_given: bool
    top: Listing | None = None
    ahead: DirectoryListing | AcidctlError | None = None
    hive: HiveTable | None = None
    declared: Declared | None = None
    partition: HivePartition | None = None
    may_go: bool = False
    root: str = ""
    said: TableType | None = None
    around: FormatDetector = field(default_factory=FormatDetector, compare=False, repr=False)

    @property
    def shown(self) -> str:
        return self.fs.display(self.location.path)

    @property
    def holds_something(self) -> bool:
        """Return whether a metastore has it, or it is not empty: an empty directory may be a missing disk.

        Hidden entries do not count, except acidctl's own.
        """
        if self.hive or self.top is None:
            return True
        return any(entry.path.startswith(".acidctl-") or not is_hidden(entry.path) for entry in self.top.entries)

    @property
    def hive_name(self) -> str:
        """Return its name in the metastore, ``hive:db.table/key=value``; empty if the metastore does not have it."""
        if not self.hive:
            return ""
        parts = (partition_name(*pair) for pair in self.location.partition)
        return "/".join([f"{HIVE}{self.hive.full_name}", *parts])

    @cached_property
    def look(self) -> DirectoryListing:
        """Return its contents, listed once, with the type of its table, if that is known.

        Raises:
            NotFoundError, AccessError, StorageError: it cannot be listed.
            UsageProblem: the path is a directory *of* a location, ``base_N`` for example.
        """
        if isinstance(self.ahead, AcidctlError):
            raise self.ahead
        look = self.ahead or list_location(self.fs, self.location.path, self.top)
        table_type = (self.hive and self.hive.table_type) or self.said
        return look.of_type(table_type or type_by_files(self.fs, self.location.path, look))

    def snapshot(
        self, lists: SnapshotSpec, *, compactor: bool = False, readers: bool = False, settled: bool = True
    ) -> Snapshot:
        """Return its state as seen by the snapshot that the user chose.

        Args:
            compactor: as a compaction sees it (format section 7.3).
            readers: add the holders of locks on it, and whether it may be cleaned, if a metastore can tell.
            settled: refresh the lists of a metastore if it was listed too late for them; see :meth:`settled`.

        Raises:
            GoneError: it was dropped meanwhile.
            ConflictError: see :meth:`settled`.
            RefusedError: the lists are not for its table, or the metastore, which was to say what is committed for a
                compaction, does not have it, or is older than its files.
            BadDataError: Hive would refuse a ``_metadata_acid``, too.
        """
        if settled:
            again, lists = self.settled(lists)
            return again.snapshot(lists, compactor=compactor, readers=readers, settled=False)
        with self.unless_dropped(lists):
            return self._snapshot(lists, compactor=compactor, readers=readers)

    def _snapshot(self, lists: SnapshotSpec, *, compactor: bool, readers: bool) -> Snapshot:
        resolved = self.lists(lists, may_clean=not compactor)
        write_ids, ahead = resolved.write_ids, self.ahead_of(lists)
        unchecked = tuple(why for why in ahead if why.code is Code.GIVEN_UNKNOWN)
        ahead = ahead[len(unchecked) :]
        if compactor and ahead:
            raise files_ahead(self.shown, ahead)
        if compactor:
            if lists.asks_metastore and write_ids is None and resolved.said:
                raise RefusedError(
                    f"nobody says what is committed in {self.shown}",
                    text_of(resolved.said),
                    "give `write_ids` or `assume_committed`, or name the table: hive:db.table",
                )
            write_ids = (write_ids or ValidWriteIds()).for_compactor()
        path = self.location.path
        is_text = bool(self.declared and self.declared.text)  # text files do not describe their rows
        snapshot = take_snapshot(
            self.fs,
            path,
            write_ids,
            resolved.txns,
            look=self.look,
            assumed=resolved.assumed,
            said=resolved.said,
            declared=None if compactor and not is_text else self.declared,  # a compaction uses the files alone
            source=resolved.source,
        )
        if self.declared:
            snapshot = replace(snapshot, table_columns=self.declared.columns)
        if unchecked:
            notes = (*snapshot.state.notes, *unchecked)
            snapshot = replace(snapshot, state=replace(snapshot.state, notes=notes))
        if ahead:
            snapshot = replace(snapshot, ahead=ahead, state=with_reasons(snapshot.state, ahead))
        if readers and self.hive and lists.warehouse:
            here = self.hive, self.location.partition
            kept = lists.warehouse.no_cleanup(*here, self.partition)
            return replace(snapshot, readers=lists.warehouse.readers(*here), no_cleanup=kept)
        return snapshot

    def settled(self, lists: SnapshotSpec) -> tuple[TableLocation, SnapshotSpec]:
        """Return it and the lists, both refreshed if a compaction ended after a metastore gave the lists.

        A cleaner may already have removed the directories that the old lists select.

        Raises:
            GoneError: it was dropped meanwhile.
            ConflictError: a compaction ended before each retry.
        """
        found = self
        with self.unless_dropped(lists):
            for _ in range(_ROUNDS):
                newer = lists.renewed(asked_again=True)
                if not is_any_overtaken([found], lists, newer):
                    return found, lists
                lists, found = newer, found.afresh()
        raise ever_changing(self.shown)

    @contextmanager
    def unless_dropped(self, lists: SnapshotSpec) -> Iterator[None]:
        """Turn a missing file into GoneError if the location was dropped, and nothing says that it should exist.

        Raises:
            GoneError: it is one of many locations, and was dropped meanwhile.
        """
        try:
            yield
        except GoneError:
            raise
        except NotFoundError as error:
            if not (self.may_go and self._is_dropped(lists)):
                raise
            raise GoneError(f"{self.shown} is gone", "it was dropped meanwhile") from error

    def _is_dropped(self, lists: SnapshotSpec) -> bool:
        with suppress(NotFoundError):
            self.fs.list_dir(self.location.path)
            return False
        if self.hive and lists.warehouse:
            return lists.warehouse.is_dropped(self.hive, self.location.partition)
        return bool(self.fs.list_dir(self.root).entries)  # if nothing is left, a disk may be missing

    def lists(self, lists: SnapshotSpec, *, may_clean: bool = True) -> ResolvedSnapshot:
        """Return the lists of committed ids for it.

        Args:
            may_clean: these lists may decide what is removed.

        Raises:
            RefusedError: the lists are not for its table, or `assume_committed` is given although a metastore has it.
        """
        self.refuse_assuming(lists)
        return lists.of(self.look, self.location.table, time.time(), self.hive, may_clean=may_clean)

    def refuse_assuming(self, lists: SnapshotSpec) -> None:
        """Refuse to assume what is committed if a metastore has the location: aborted rows would come back.

        Raises:
            RefusedError: `assume_committed` is given, and a metastore has the location.
        """
        if not (lists.assumption and lists.warehouse):
            return
        name = self.hive_name or lists.warehouse.partition_elsewhere(self.fs, self.location.path)
        if name:
            raise RefusedError(
                f"cannot assume what is committed in {self.shown}",
                f"the metastore {lists.warehouse.metastore.shown} has it as {name}, and knows what is committed there",
                f"give {name} without `assume_committed`; or add `metastore='none'`, so that no metastore is asked",
            )

    def unseen(self, lists: SnapshotSpec) -> tuple[AcidDirectory, ...]:
        """Return the directories that may have replaced others of it since a metastore gave the lists."""
        if not (self.hive and lists.asks_metastore):
            return ()
        return lists.unseen(self.look.listing, self.lists(lists, may_clean=False))

    def ahead_of(self, lists: SnapshotSpec) -> tuple[Reason, ...]:
        """Return why the files are newer than the metastore, which is queried if a name suggests it; usually empty."""
        if self.hive is None or lists.warehouse is None:
            return ()
        top = partial(self.fs.list_dir, self.location.path)
        return lists.warehouse.ahead_of(self.hive, self.look.listing, top, by_own_list=lists.asks_metastore)

    def said_to_be(self, said: TableType | None) -> TableLocation:
        """Return it with the table type that the user gave; None changes nothing.

        Raises:
            RefusedError: the metastore has another type.
        """
        in_metastore = self.hive.table_type if self.hive else None
        if said and in_metastore and said is not in_metastore:
            raise RefusedError(
                f"{self.shown} is not {said.value}",
                f"the metastore says that its table is {in_metastore.value}",
                "leave `table_type` out",
            )
        return self if said in (None, self.said) else replace(self, said=said)

    def evidence(self) -> Evidence:
        """Return whether it is known to be of a transactional table."""
        if not self.hive and self._is_inside:
            return Evidence(False, reason(Code.INSIDE_A_TABLE, how="below"))
        if not self.hive or not self.hive.table_type:
            return evidence_of(self.fs, self.location.path, self.look, self.said)
        evidence = evidence_of(self.fs, self.location.path, self.look, self.hive.table_type)
        if evidence.reason.code is not Code.SAID:
            return evidence
        kind = self.hive.table_type.value
        return replace(evidence, reason=reason(Code.IN_METASTORE, table_type=kind, table=self.hive.full_name))

    @property
    def _is_inside(self) -> bool:
        """Return whether a partition lies beside ACID directories: then its table may have no partitions."""
        location = self.location
        if not location.partition or location.is_inside or not self.is_given:
            return location.is_inside
        # The store that a command opens for changes sees nothing above the path.
        fs = registry.open_file_system(FileSystemSpec("file")) if self.fs.is_local else self.fs
        return self.around.holds_acid(fs, parent_of(location.path))

    def afresh(self) -> TableLocation:
        """Return the same location, to be listed when its snapshot is taken."""
        return replace(self, top=None, ahead=None, partition=None)


def is_any_overtaken(places: Sequence[TableLocation], lists: SnapshotSpec, newer: SnapshotSpec) -> bool:
    """Return whether any location may lack a directory that the lists select, as newer lists show."""
    unseen = [(found.hive, found.unseen(lists)) for found in places if found.hive]
    return any(newer.is_overtaken(directories, hive) for hive, directories in unseen if directories)


def ever_changing(shown: str) -> ConflictError:
    """Return the error for a location that was compacted and cleaned before each retry."""
    return ConflictError(
        f"{shown} changes faster than it can be looked at",
        "compactions ended between the metastore's answer and the listing, each time",
        "try again when they are done",
    )


def find(
    paths: Sequence[str],
    storage: Mapping[str, str],
    lists: SnapshotSpec,
    observer: Observer | None = None,
    *,
    looks: bool = True,
    surroundings: FormatDetector | None = None,
) -> Iterator[TableLocation]:
    """Yield every location at or below the given paths, in their order; remote stores are listed ahead.

    Args:
        lists: the snapshot that the user chose. Write ids are numbered by table, so one list is good for one table.
        observer: receives everything else that is met, and the errors of all but a single path. Its coverage counts the
            locations that each path leads to.
        looks: list the locations themselves, too; False if no snapshots are taken of them.
        surroundings: for callers that change what is found: refuse locations in a directory that is not Hive's, which a
            walk from above would have skipped.

    Raises:
        NotFoundError, AccessError, StorageError: a path cannot be listed.
        RefusedError: one write-id list was given, and there is a second table; or the only path is a table of another
            format, or in one.
    """
    tables: dict[str, None] = {}
    observer, around = observer or Observer(), surroundings or FormatDetector()
    lists = _begun(lists, paths)
    lists.expect([path for path in paths if is_hive_name(path)])
    for path in paths:
        observer.coverage.begin(path)
        walk = partial(_locations_of, path, storage, lists, observer, looks=looks, surroundings=surroundings)
        for found in _going_on(walk, observer, path, is_alone=len(paths) == 1):
            if found.holds_something or isinstance(path, FromMetastore):
                observer.coverage.met(path)
            tables.setdefault(found.location.table)
            lists.require_one_table(list(tables), found.shown)
            yield replace(found, around=around, may_go=not found.is_given)


def refuse_unusable(
    paths: Sequence[str],
    storage: Mapping[str, str],
    lists: SnapshotSpec,
    said: TableType | None = None,
    *,
    surroundings: FormatDetector | None,
) -> None:
    """Refuse to change any of several named places if one of them cannot be used: it may be a typing error.

    Locations below a place, or matched by a pattern, were not named themselves: each of them fails by itself.

    Args:
        said: the table type that the user gave.
        surroundings: see :func:`find`, which can use it next; with None, the caller checks later for each location
            whether it is known to be transactional.

    Raises:
        NotFoundError, AccessError, StorageError, UsageProblem, RefusedError: the first error, with the other places.
    """
    if len(paths) < 2:
        return
    lists = _begun(lists, paths)
    lists.expect([path for path in paths if is_hive_name(path)])
    errors = []
    for path in paths:
        try:
            _require_usable(path, storage, lists, said, surroundings)
        except AcidctlError as error:
            at_its_line(error, path)
            _add_ways(error, path)
            errors.append(error)
    if errors:
        first, *more = errors
        first.why += f"; {some_of([error.what for error in more])}" if more else ""
        first.hint += f"{'; ' if first.hint else ''}nothing was changed: leave out what cannot be used"
        raise first


def _require_usable(
    path: str,
    storage: Mapping[str, str],
    lists: SnapshotSpec,
    said: TableType | None,
    surroundings: FormatDetector | None,
) -> None:
    others = Observer(lambda _: None)  # errors of locations that were not named themselves
    found = next(_locations_of(path, storage, lists, others, looks=False, surroundings=surroundings), None)
    if found is None or surroundings is None:
        return
    found = replace(found, around=surroundings)
    if found.is_given or table_path(found) == found.root:
        found.refuse_assuming(lists)
        lists.write_ids_of(found.location.table)
    if found.is_given and not (evidence := found.said_to_be(said).evidence()).may_change:
        raise not_known(found.shown, evidence)


def table_path(found: TableLocation) -> str:
    """Return the directory of a location's table, inside its store, derived from the location's path."""
    path = found.location.path
    for _ in found.location.partition:
        path = parent_of(path)
    return path


def find_named(name: str, storage: Mapping[str, str], lists: SnapshotSpec) -> Iterator[TableLocation]:
    """Yield the locations that a name in a metastore means, before any list is read: for callers that lock first.

    Raises:
        NotFoundError: there is no such table or partition.
        UsageProblem: the name is malformed, or the table is not transactional.
        RefusedError: the metastore's location for it cannot be a table's.
    """
    return _named(name, storage, lists, Observer(), None)


def find_table(path: str, storage: Mapping[str, str], lists: SnapshotSpec) -> list[TableLocation]:
    """Return the locations of one path or name, for callers that read them as one table.

    Raises:
        NotFoundError, AccessError, StorageError: the path does not exist, or cannot be listed.
        RefusedError: the path is a table of another format, or in one.
    """
    walk = partial(_locations_of, path, storage, _begun(lists, [path]), Observer(), looks=False, surroundings=None)
    return [found.afresh() for found in _going_on(walk, Observer(), path, is_alone=True)]


def _begun(lists: SnapshotSpec, paths: Sequence[str]) -> SnapshotSpec:
    try:
        return lists.begun()
    except AcidctlError as error:
        for path in paths:
            _add_ways(error, path)
        raise


def _add_ways(error: AcidctlError, path: str) -> None:
    """Add to the hint that paths work without the metastore that failed, or how to name a table."""
    if isinstance(error, NotFoundError) and _LIKE_TABLE.fullmatch(path) and not error.hint.startswith("did you mean"):
        error.hint = f"check the spelling, or name the table of a metastore: {HIVE}{path}"
    way = spelled("; with `metastore='none'` paths are worked on without it")
    if error.code == "metastore" and not is_hive_name(path) and way not in error.hint:
        error.hint += way


def found_again(
    found: TableLocation, storage: Mapping[str, str], lists: SnapshotSpec, surroundings: FormatDetector | None = None
) -> TableLocation:
    """Return a location that was found before in its present state, to be listed when its snapshot is taken.

    Args:
        surroundings: for callers that change it, see :func:`find`.

    Raises:
        NotFoundError: its table, or the location itself, is gone.
        RefusedError: it lies in a directory that is not Hive's.
    """
    if found.hive is None or lists.warehouse is None:
        (again,) = find([found.shown], storage, lists, surroundings=surroundings)
        return again
    # By its table, not by its path: a partition may lie anywhere.
    hive = lists.warehouse.table_again(found.hive)
    if surroundings:
        lists.warehouse.refuse_part_of_another(found.fs, found.location, hive)
        refuse_part_of_others(found.shown, storage, surroundings)
    return replace(found.afresh(), hive=hive)


def _locations_of(
    path: str,
    storage: Mapping[str, str],
    lists: SnapshotSpec,
    observer: Observer,
    *,
    looks: bool,
    surroundings: FormatDetector | None,
) -> Iterator[TableLocation]:
    if is_hive_name(path):
        return _named(path, storage, lists, observer, surroundings)
    if lists.warehouse and lists.warehouse.read_lock:
        raise UsageProblem(
            f"no lock for reading can be taken on {path}", "it is a path", "name the table: hive:db.table"
        )
    fs, root = open_location(path, storage)
    if surroundings:
        refuse_part_of_others(path, storage, surroundings)
    walk = _walk(fs, root, observer, looks=looks)
    return walk if lists.warehouse is None else _all_known(walk, lists.warehouse, observer)


def _named(
    text: str, storage: Mapping[str, str], lists: SnapshotSpec, observer: Observer, surroundings: FormatDetector | None
) -> Iterator[TableLocation]:
    name, warehouse = HiveName.parse(text), lists.require_warehouse(text)
    for place in warehouse.places(name, storage, observer.error):
        if surroundings:
            try:
                warehouse.refuse_part_of_another(place.fs, place.location, place.table)
                refuse_part_of_others(place.fs.display(place.location.path), storage, surroundings)
            except RefusedError as error:
                if observer.error is None or not name.is_pattern:
                    raise
                observer.error(error)
                continue
        is_given = not name.is_pattern and not place.location.partition
        declared = declared_by(place.table, place.partition, warehouse.metastore.features.hive)
        yield TableLocation(
            place.fs, place.location, is_given, hive=place.table, declared=declared, partition=place.partition
        )


def at_path(fs: FileSystem, path: str, lists: SnapshotSpec) -> TableLocation:
    """Return one location by its path, with its table if a metastore is used and has it.

    Raises:
        RefusedError: the metastore has it in several tables.
        MetastoreError: the metastore cannot be reached, or failed.
    """
    found = TableLocation(fs, location_at(path), is_given=True)
    return _known(found, lists.warehouse) if lists.warehouse else found


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
    match = warehouse.table_at(found.fs, found.location)
    if match is None:
        return found
    table, location = match
    partition = warehouse.partition_at(table, location)
    declared = declared_by(table, partition, warehouse.metastore.features.hive)
    return replace(found, hive=table, location=location, declared=declared)


def _walk(fs: FileSystem, root: str, observer: Observer, *, looks: bool) -> Iterator[TableLocation]:
    if not fs.is_local and looks:
        yield from _ahead(fs, root, observer)
        return
    with naming_near(fs, root), nullcontext() if fs.is_local else _threads("acidctl-walk") as walkers:
        for location, top in walk_locations(fs, root, observer, walkers):
            yield TableLocation(fs, location, location.path == root, top, root=root)


def _going_on(
    walk: Callable[[], Iterator[TableLocation]], observer: Observer, path: str, *, is_alone: bool
) -> Iterator[TableLocation]:
    """Walk one of several paths; its error does not stop the others."""
    try:
        yield from walk()
    except AcidctlError as error:
        at_its_line(error, path)
        _add_ways(error, path)
        if is_alone or observer.error is None:
            raise
        observer.coverage.failed.add(path)
        observer.error(error)


def _ahead(fs: FileSystem, root: str, observer: Observer) -> Iterator[TableLocation]:
    """List some locations while the one before them is worked on, to hide the latency of the store."""
    # Two pools: if listings took all threads of a single pool, the walk would wait for them.
    with _threads("acidctl-walk") as walkers, _threads("acidctl-look") as pool:
        waiting: deque[tuple[TableLocation, Future[DirectoryListing | AcidctlError]]] = deque()
        try:
            for location, top in walk_locations(fs, root, observer, walkers):
                found = TableLocation(fs, location, location.path == root, top, root=root)
                waiting.append((found, pool.submit(_look, found)))
                while waiting and (len(waiting) > 2 * _THREADS or waiting[0][1].done()):
                    yield _with_look(*waiting.popleft())
            while waiting:
                yield _with_look(*waiting.popleft())
        finally:
            for each in (walkers, pool):
                each.shutdown(wait=False, cancel_futures=True)


def _threads(name: str) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - with logging: only for remote stores

    return ThreadPoolExecutor(_THREADS, name)


def _look(found: TableLocation) -> DirectoryListing | AcidctlError:
    try:
        return list_location(found.fs, found.location.path, found.top)
    except AcidctlError as error:
        return error


def _with_look(found: TableLocation, ahead: Future[DirectoryListing | AcidctlError]) -> TableLocation:
    return replace(found, ahead=ahead.result())


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
        table = table_path(found)
        key = (found.fs.url, table)
        if key not in seen and found.location.partition:
            within = within or given_paths(given, storage)
            if leads_to(within, found.fs.url, table):
                yield TableLocation(found.fs, WalkedLocation(table, found.location.table), False), True
        seen.add(key)
        yield found, False


def changeable(
    places: Iterable[TableLocation], said: TableType | None, skipped: Callable[[TableLocation, Evidence], None]
) -> Iterator[TableLocation]:
    """Yield the locations that may be changed.

    Args:
        said: the type that the user gives for the table.
        skipped: called with each other location, which is not known to be transactional.

    Raises:
        RefusedError: a location that was named itself is not known to be transactional, or one type is given for
            several tables.
    """
    first = None
    for location in places:
        first = first or location.location.table
        if said is not None and location.location.table != first:
            raise RefusedError(
                "one table type cannot speak for several tables",
                f"{location.shown} is of {location.location.table}, not of {first}",
                "give one table",
            )
        found = location.said_to_be(said)
        try:
            evidence = found.evidence()
        except AcidctlError:  # it cannot be listed: its snapshot says so
            yield found
            continue
        if evidence.may_change:
            yield found
        elif found.is_given:
            raise not_known(found.shown, evidence)
        else:
            skipped(found, evidence)
