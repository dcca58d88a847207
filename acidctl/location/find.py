"""From the paths a user gives to locations, what is known of them, and their snapshots: the one road for everybody."""

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
from acidctl.errors import AcidctlError, ConflictError, GoneError, NotFoundError, RefusedError, UsageProblem
from acidctl.location.declared import Declared, declared_by
from acidctl.location.evidence import Evidence, evidence_of, not_known, refuse_part_of_others, type_by_files
from acidctl.location.given import HIVE, FromMetastore, at_its_line, is_hive_name
from acidctl.location.hive_names import HiveName
from acidctl.location.lists import Lists, SnapshotLists
from acidctl.location.neighbours import Surroundings
from acidctl.location.snapshot import Look, Snapshot, files_ahead, look_at, take_snapshot
from acidctl.location.walk import Observer, WalkedLocation, location_at, walk_locations
from acidctl.spelling import spelled
from acidctl.storage import registry
from acidctl.storage.port import FileSystem, FileSystemSpec, parent_of
from acidctl.storage.registry import naming_near, open_location
from acidctl.wording import some_of, text_of

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.tables import HivePartition, HiveTable

_ROUNDS = 3
"""So often a location is listed and its metastore asked, where the one overtakes the other."""

_THREADS = 8
"""That wait for a remote store."""

_LIKE_TABLE = re.compile(r"\w+\.\w+")


@dataclass(frozen=True)
class Found:
    """A location that a user's path led to.

    Attributes:
        is_given: the path itself is the location, not a tree that holds it.
        top: its own children, where they were listed a moment ago; None lists them again.
        ahead: a look at it that was taken while others were worked on, or why that failed.
        hive: its table, as the metastore has it; None without a metastore, or where that does not know it.
        declared: what the metastore says of its files, which for a partition may differ from what it says of the table.
        partition: its partition, where the metastore was asked for it a moment ago.
        said: the table type that the user gave; the metastore's type takes precedence.
        around: the directories above it and above other locations.
        may_go: it is one of many, and where it was dropped meanwhile the others are none the worse.
        root: of the tree in which it was found; empty where a metastore named it.
    """

    fs: FileSystem
    location: WalkedLocation
    is_given: bool
    top: Listing | None = None
    ahead: Look | AcidctlError | None = None
    hive: HiveTable | None = None
    declared: Declared | None = None
    partition: HivePartition | None = None
    may_go: bool = False
    root: str = ""
    said: TableType | None = None
    around: Surroundings = field(default_factory=Surroundings, compare=False, repr=False)

    @property
    def shown(self) -> str:
        return self.fs.display(self.location.path)

    @property
    def holds_something(self) -> bool:
        """Whether a metastore knows it, or it is not empty: an empty directory may be a missing disk.

        Hidden entries do not count, except acidctl's own.
        """
        return bool(self.hive) or self.top is None or any(_is_of_use(entry.path) for entry in self.top.entries)

    @property
    def hive_name(self) -> str:
        """The name that the metastore has for it, ``hive:db.table/key=value``; empty where that does not know it."""
        if not self.hive:
            return ""
        parts = (partition_name(*one) for one in self.location.partition)
        return "/".join([f"{HIVE}{self.hive.full_name}", *parts])

    @cached_property
    def look(self) -> Look:
        """Its contents, listed once, with the type of its table, if that is known.

        Raises:
            NotFoundError, AccessError, StorageError: it cannot be listed.
            UsageProblem: the path is a directory *of* a location, ``base_N`` for example.
        """
        if isinstance(self.ahead, AcidctlError):
            raise self.ahead
        look = self.ahead or look_at(self.fs, self.location.path, self.top)
        known = (self.hive and self.hive.table_type) or self.said
        return look.of_type(known or type_by_files(self.fs, self.location.path, look))

    def snapshot(
        self, lists: SnapshotLists, *, compactor: bool = False, readers: bool = False, settled: bool = True
    ) -> Snapshot:
        """Its state by what a user said of the snapshot.

        Args:
            compactor: as a compaction sees it (format section 7.3).
            readers: with those who hold locks there, and whether it may be cleaned, where a metastore knows that.
            settled: by newer lists of a metastore, where it was listed too late for those; see :meth:`settled`.

        Raises:
            GoneError: it was dropped meanwhile.
            ConflictError: as :meth:`settled`.
            RefusedError: the lists are not for its table, or the metastore, which was to say what a compaction may
                take for committed, does not know it, or is older than its files.
            BadDataError: a ``_metadata_acid`` that Hive would refuse too.
        """
        if settled:
            again, lists = self.settled(lists)
            return again.snapshot(lists, compactor=compactor, readers=readers, settled=False)
        with self.unless_dropped(lists):
            return self._snapshot(lists, compactor=compactor, readers=readers)

    def _snapshot(self, lists: SnapshotLists, *, compactor: bool, readers: bool) -> Snapshot:
        found = self.lists(lists, may_clean=not compactor)
        write_ids, ahead = found.write_ids, self.ahead_of(lists)
        unchecked = tuple(why for why in ahead if why.code is Code.GIVEN_UNKNOWN)
        ahead = ahead[len(unchecked) :]
        if compactor and ahead:
            raise files_ahead(self.shown, ahead)
        if compactor:
            if lists.asks_metastore and write_ids is None and found.said:
                raise RefusedError(
                    f"nobody says what is committed in {self.shown}",
                    text_of(found.said),
                    "give `write_ids` or `assume_committed`, or name the table: hive:db.table",
                )
            write_ids = (write_ids or ValidWriteIds()).for_compactor()
        path = self.location.path
        is_text = bool(self.declared and self.declared.text)  # files of text do not say themselves what a row is
        snapshot = take_snapshot(
            self.fs,
            path,
            write_ids,
            found.txns,
            look=self.look,
            assumed=found.assumed,
            said=found.said,
            declared=None if compactor and not is_text else self.declared,  # a compaction goes by the files alone
            source=found.source,
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

    def settled(self, lists: SnapshotLists) -> tuple[Found, SnapshotLists]:
        """It and the lists, both taken again where a compaction ended after a metastore gave the lists.

        A cleaner may have removed by now what they count.

        Raises:
            GoneError: it was dropped meanwhile.
            ConflictError: it happened again and again.
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
    def unless_dropped(self, lists: SnapshotLists) -> Iterator[None]:
        """What is not found is an error, unless the location is gone, and nobody says that it should be there.

        Raises:
            GoneError: of one of many locations, which was dropped meanwhile.
        """
        try:
            yield
        except GoneError:
            raise
        except NotFoundError as error:
            if not (self.may_go and self._is_dropped(lists)):
                raise
            raise GoneError(f"{self.shown} is gone", "it was dropped meanwhile") from error

    def _is_dropped(self, lists: SnapshotLists) -> bool:
        with suppress(NotFoundError):
            self.fs.list_dir(self.location.path)
            return False
        if self.hive and lists.warehouse:
            return lists.warehouse.is_dropped(self.hive, self.location.partition)
        return bool(self.fs.list_dir(self.root).entries)  # where nothing is left, a disk may have been taken away

    def lists(self, lists: SnapshotLists, *, may_clean: bool = True) -> Lists:
        """What counts in it, by what a user said of the snapshot.

        Args:
            may_clean: by these lists it may be decided what is removed.

        Raises:
            RefusedError: the lists are not for its table, or `assume_committed` is given although a metastore knows it.
        """
        self.refuse_assuming(lists)
        return lists.of(self.look, self.location.table, time.time(), self.hive, may_clean=may_clean)

    def refuse_assuming(self, lists: SnapshotLists) -> None:
        """Refuse to assume what is committed if a metastore knows it: aborted rows would come back.

        Raises:
            RefusedError: `assume_committed` is given, and a metastore knows the location.
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

    def unseen(self, lists: SnapshotLists) -> tuple[AcidDirectory, ...]:
        """What may have replaced some of it since a metastore gave the lists."""
        if not (self.hive and lists.asks_metastore):
            return ()
        return lists.unseen(self.look.listing, self.lists(lists, may_clean=False))

    def ahead_of(self, lists: SnapshotLists) -> tuple[Reason, ...]:
        """Why the files are newer than the metastore, which is asked now if a name suggests it; usually empty."""
        if self.hive is None or lists.warehouse is None:
            return ()
        top = partial(self.fs.list_dir, self.location.path)
        return lists.warehouse.ahead_of(self.hive, self.look.listing, top, by_own_list=lists.asks_metastore)

    def said_to_be(self, said: TableType | None) -> Found:
        """Take the table type that a user gave for this location; None changes nothing.

        Raises:
            RefusedError: the metastore says otherwise.
        """
        known = self.hive.table_type if self.hive else None
        if said and known and said is not known:
            raise RefusedError(
                f"{self.shown} is not {said.value}",
                f"the metastore says that its table is {known.value}",
                "leave `table_type` out",
            )
        return self if said in (None, self.said) else replace(self, said=said)

    def evidence(self) -> Evidence:
        """Whether it is known to be of a transactional table."""
        if not self.hive and self._is_inside:
            return Evidence(False, reason(Code.INSIDE_A_TABLE, how="below"))
        if not self.hive or not self.hive.table_type:
            return evidence_of(self.fs, self.location.path, self.look, self.said)
        found = evidence_of(self.fs, self.location.path, self.look, self.hive.table_type)
        if found.reason.code is not Code.SAID:
            return found
        kind = self.hive.table_type.value
        return replace(found, reason=reason(Code.IN_METASTORE, table_type=kind, table=self.hive.full_name))

    @property
    def _is_inside(self) -> bool:
        """Whether a partition lies beside ACID directories: then its table may have no partitions."""
        location = self.location
        if not location.partition or location.is_inside or not self.is_given:
            return location.is_inside
        # The store that a command opens for changes sees nothing above the path.
        fs = registry.open_file_system(FileSystemSpec("file")) if self.fs.is_local else self.fs
        return self.around.holds_acid(fs, parent_of(location.path))

    def afresh(self) -> Found:
        """The same location, to be listed when its snapshot is taken."""
        return replace(self, top=None, ahead=None, partition=None)


def _is_of_use(name: str) -> bool:
    return name.startswith(".acidctl-") or not is_hidden(name)


def is_any_overtaken(places: Sequence[Found], lists: SnapshotLists, newer: SnapshotLists) -> bool:
    """Whether what was found may lack what lists count that a metastore gave before, as newer ones show."""
    unseen = [(found.hive, found.unseen(lists)) for found in places if found.hive]
    return any(newer.is_overtaken(directories, hive) for hive, directories in unseen if directories)


def ever_changing(shown: str) -> ConflictError:
    """The error for what was compacted and cleaned as often as it was looked at."""
    return ConflictError(
        f"{shown} changes faster than it can be looked at",
        "compactions ended between the metastore's answer and the listing, each time",
        "try again when they are done",
    )


def find(
    paths: Sequence[str],
    storage: Mapping[str, str],
    lists: SnapshotLists,
    observer: Observer | None = None,
    *,
    looks: bool = True,
    surroundings: Surroundings | None = None,
) -> Iterator[Found]:
    """Every location at or below the given paths, in their order; stores that take long to answer are asked ahead.

    Args:
        lists: what the user gave; write ids are numbered by table, so one list is good for one table.
        observer: told what else there is; of several paths one that cannot be listed, too. Its coverage counts the
            locations that each path leads to.
        looks: at the locations themselves too; False where no snapshots are taken of them.
        surroundings: for who changes what is found: what lies in something that is not ours, which a walk from above
            would not have entered, is refused.

    Raises:
        NotFoundError, AccessError, StorageError: a path cannot be listed.
        RefusedError: one write-id list was given, and there is a second table; or the only path is a table of another
            format, or in one.
    """
    tables: dict[str, None] = {}
    observer, around = observer or Observer(), surroundings or Surroundings()
    lists = _begun(lists, paths)
    lists.expect([path for path in paths if is_hive_name(path)])
    for path in paths:
        observer.coverage.begin(path)
        walk = partial(_places, path, storage, lists, observer, looks=looks, surroundings=surroundings)
        for found in _going_on(walk, observer, path, is_alone=len(paths) == 1):
            if found.holds_something or isinstance(path, FromMetastore):
                observer.coverage.met(path)
            tables.setdefault(found.location.table)
            lists.require_one_table(list(tables), found.shown)
            yield replace(found, around=around, may_go=not found.is_given)


def refuse_unusable(
    paths: Sequence[str],
    storage: Mapping[str, str],
    lists: SnapshotLists,
    said: TableType | None = None,
    *,
    surroundings: Surroundings | None,
) -> None:
    """Refuse to change any of several named places if one of them cannot be used: it may be a typing error.

    Locations below a place, or matched by a pattern, were not named themselves: each of them fails by itself.

    Args:
        said: the table type that the user gave.
        surroundings: as for :func:`find`, which can use it next; with None it is checked later, for each location,
            whether it is known to be transactional.

    Raises:
        NotFoundError, AccessError, StorageError, UsageProblem, RefusedError: of the first; it names the others.
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
        first.why += f"; {some_of([one.what for one in more])}" if more else ""
        first.hint += f"{'; ' if first.hint else ''}nothing was changed: leave out what cannot be used"
        raise first


def _require_usable(
    path: str,
    storage: Mapping[str, str],
    lists: SnapshotLists,
    said: TableType | None,
    surroundings: Surroundings | None,
) -> None:
    others = Observer(lambda _: None)  # what is not named itself
    found = next(_places(path, storage, lists, others, looks=False, surroundings=surroundings), None)
    if found is None or surroundings is None:
        return
    found = replace(found, around=surroundings)
    if found.is_given or table_path(found) == found.root:
        found.refuse_assuming(lists)
        lists.write_ids_of(found.location.table)
    if found.is_given and not (evidence := found.said_to_be(said).evidence()).may_change:
        raise not_known(found.shown, evidence)


def table_path(found: Found) -> str:
    """The directory of a location's table, inside its store, by the path of the location."""
    path = found.location.path
    for _ in found.location.partition:
        path = parent_of(path)
    return path


def find_named(name: str, storage: Mapping[str, str], lists: SnapshotLists) -> Iterator[Found]:
    """The locations that a name of a metastore's table means, by no list yet: for who takes a lock before he asks.

    Raises:
        NotFoundError: there is no such table or partition.
        UsageProblem: it is not a name of that kind, or the table is not transactional.
        RefusedError: nothing that is a table can lie where the metastore has it.
    """
    return _named(name, storage, lists, Observer(), None)


def find_table(path: str, storage: Mapping[str, str], lists: SnapshotLists) -> list[Found]:
    """The locations that one path or name leads to, for who reads them as one table.

    Raises:
        NotFoundError, AccessError, StorageError: nothing there, or it cannot be listed.
        RefusedError: it is a table of another format, or in one.
    """
    walk = partial(_places, path, storage, _begun(lists, [path]), Observer(), looks=False, surroundings=None)
    return [found.afresh() for found in _going_on(walk, Observer(), path, is_alone=True)]


def _begun(lists: SnapshotLists, paths: Sequence[str]) -> SnapshotLists:
    try:
        return lists.begun()
    except AcidctlError as error:
        for path in paths:
            _add_ways(error, path)
        raise


def _add_ways(error: AcidctlError, path: str) -> None:
    """Add to the hint that a path works without a metastore that failed, and how a table is named."""
    if isinstance(error, NotFoundError) and _LIKE_TABLE.fullmatch(path) and not error.hint.startswith("did you mean"):
        error.hint = f"check the spelling, or name the table of a metastore: {HIVE}{path}"
    way = spelled("; with `metastore='none'` paths are worked on without it")
    if error.code == "metastore" and not is_hive_name(path) and way not in error.hint:
        error.hint += way


def found_again(
    found: Found, storage: Mapping[str, str], lists: SnapshotLists, surroundings: Surroundings | None = None
) -> Found:
    """One location that was found before, as it is now, to be listed when its snapshot is taken.

    Args:
        surroundings: for who changes it, as for :func:`find`.

    Raises:
        NotFoundError: its table, or the location itself, is gone.
        RefusedError: it lies in something that is not ours.
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


def _places(
    path: str,
    storage: Mapping[str, str],
    lists: SnapshotLists,
    observer: Observer,
    *,
    looks: bool,
    surroundings: Surroundings | None,
) -> Iterator[Found]:
    """The locations that one path, or name, leads to."""
    if is_hive_name(path):
        return _named(path, storage, lists, observer, surroundings)
    if lists.warehouse and lists.warehouse.read_lock:
        raise UsageProblem(
            f"no lock for reading can be taken on {path}", "it is a path", "name the table: hive:db.table"
        )
    fs, root = open_location(path, storage)
    walk = _walk(fs, root, observer, looks=looks)
    if surroundings:
        walk = _after(partial(refuse_part_of_others, path, storage, surroundings), walk)
    return walk if lists.warehouse is None else _all_known(walk, lists.warehouse, observer)


def _named(
    text: str, storage: Mapping[str, str], lists: SnapshotLists, observer: Observer, surroundings: Surroundings | None
) -> Iterator[Found]:
    """The locations of the tables of a metastore that a name means."""
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
        yield Found(place.fs, place.location, is_given, hive=place.table, declared=declared, partition=place.partition)


def at_path(fs: FileSystem, path: str, lists: SnapshotLists) -> Found:
    """One location by its path, with its table where a metastore is asked and knows it.

    Raises:
        RefusedError: the metastore has it in several tables.
        MetastoreError: the metastore cannot be reached, or failed.
    """
    found = Found(fs, location_at(path), is_given=True)
    return _known(found, lists.warehouse) if lists.warehouse else found


def _all_known(walk: Iterator[Found], warehouse: Warehouse, observer: Observer) -> Iterator[Found]:
    for found in walk:
        try:
            yield _known(found, warehouse)
        except RefusedError as error:  # of this one; others are none the worse
            if observer.error is None or found.is_given:
                raise
            observer.error(error)


def _known(found: Found, warehouse: Warehouse) -> Found:
    """With the table that the metastore has there, by the name that it has for it."""
    known = warehouse.table_at(found.fs, found.location)
    if known is None:
        return found
    table, location = known
    partition = warehouse.partition_at(table, location)
    declared = declared_by(table, partition, warehouse.metastore.features.hive)
    return replace(found, hive=table, location=location, declared=declared)


def _walk(fs: FileSystem, root: str, observer: Observer, *, looks: bool) -> Iterator[Found]:
    """The locations below one path."""
    if not fs.is_local and looks:
        yield from _ahead(fs, root, observer)
        return
    with naming_near(fs, root), nullcontext() if fs.is_local else _threads("acidctl-walk") as walkers:
        for location, top in walk_locations(fs, root, observer, walkers):
            yield Found(fs, location, location.path == root, top, root=root)


def _after(require: Callable[[], None], walk: Iterator[Found]) -> Iterator[Found]:
    """A walk that does not begin before something is sure."""
    require()
    yield from walk


def _going_on(walk: Callable[[], Iterator[Found]], observer: Observer, path: str, *, is_alone: bool) -> Iterator[Found]:
    """Of several paths, one that cannot be walked does not stop the others."""
    try:
        yield from walk()
    except AcidctlError as error:
        at_its_line(error, path)
        _add_ways(error, path)
        if is_alone or observer.error is None:
            raise
        observer.coverage.failed.add(path)
        observer.error(error)


def _ahead(fs: FileSystem, root: str, observer: Observer) -> Iterator[Found]:
    """Some locations are looked at while the one before them is worked on: waiting costs nothing but time."""
    # Two pools: were all threads of one waiting for looks, the walk would wait for them.
    with _threads("acidctl-walk") as walkers, _threads("acidctl-look") as pool:
        waiting: deque[tuple[Found, Future[Look | AcidctlError]]] = deque()
        try:
            for location, top in walk_locations(fs, root, observer, walkers):
                found = Found(fs, location, location.path == root, top, root=root)
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


def _look(found: Found) -> Look | AcidctlError:
    try:
        return look_at(found.fs, found.location.path, found.top)
    except AcidctlError as error:
        return error


def _with_look(found: Found, ahead: Future[Look | AcidctlError]) -> Found:
    return replace(found, ahead=ahead.result())


def once(places: Iterable[Found]) -> Iterator[Found]:
    """Each location once, however often the paths lead to it."""
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
    places: Iterable[Found], given: Sequence[str], storage: Mapping[str, str]
) -> Iterator[tuple[Found, bool]]:
    """Each location, and before the first partition of a table the table's own directory, which is not a location.

    That of a table is left out when none of the given paths leads to it: nothing above them is anybody's business.

    Yields:
        The place, and whether it is such a table's directory.
    """
    within: set[tuple[str, str]] = set()
    seen: set[tuple[str, str]] = set()
    for found in places:
        table = table_path(found)
        key = (found.fs.url, table)
        if key not in seen and found.location.partition:
            within = within or given_paths(given, storage)
            if leads_to(within, found.fs.url, table):
                yield Found(found.fs, WalkedLocation(table, found.location.table), False), True
        seen.add(key)
        yield found, False


def changeable(
    places: Iterable[Found], said: TableType | None, skipped: Callable[[Found, Evidence], None]
) -> Iterator[Found]:
    """Yield the locations that may be changed.

    Args:
        said: the type that the user gives for the table.
        skipped: takes the other locations, which are not known to be transactional.

    Raises:
        RefusedError: a location that was named itself is not known to be transactional, or one type is given for
            several tables.
    """
    first = None
    for place in places:
        first = first or place.location.table
        if said is not None and place.location.table != first:
            raise RefusedError(
                "one table type cannot speak for several tables",
                f"{place.shown} is of {place.location.table}, not of {first}",
                "give one table",
            )
        found = place.said_to_be(said)
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
