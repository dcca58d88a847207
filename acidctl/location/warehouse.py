"""A metastore as a source of names: resolves ``hive:db.table`` to locations, and locations to their tables."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from acidctl.acid.listing import TableType
from acidctl.acid.names import parse_partition, partition_name
from acidctl.base.errors import AcidctlError, ConflictError, NotFoundError, RefusedError, UsageProblem, unexpected
from acidctl.base.printable import printable
from acidctl.location.arguments import HIVE, FromMetastore, HiveName
from acidctl.location.metastore_schema import Declared, declared_by
from acidctl.location.metastore_state import MetastoreState, lower_keys
from acidctl.location.walk import WalkedLocation
from acidctl.metastore.client import Metastore, batches
from acidctl.metastore.errors import Unreachable
from acidctl.metastore.tables import (
    HivePartition,
    HiveTable,
    find_partitions,
    find_tables,
    get_table,
    near_tables,
    partitions_of_values,
    tables_named,
)
from acidctl.metastore.txn.locks import ReadLock
from acidctl.storage.port import FileSystem
from acidctl.storage.registry import open_location, split_url
from acidctl.wording import some_of

_HADOOP = ("hdfs", "webhdfs", "swebhdfs")
_AT_ONCE = 100
_MOST_SHOWN = 200
_DAY = 86400.0
_WHOLE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
"""The beginning of a table's location: Hive's are never relative."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_STORE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")

OnError = Callable[[AcidctlError], None]
_Key = tuple[str, str, str]
_Values = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """A location that the metastore has, under the metastore's name for it, with what it says about the files."""

    fs: FileSystem
    location: WalkedLocation
    table: HiveTable
    declared: Declared
    partition: HivePartition | None = None


class Warehouse(MetastoreState):
    """The tables of one metastore and their locations, with its state at one moment.

    Args:
        exclude: patterns of tables to leave out when a name is a pattern.
        read_lock: take a shared lock on the named tables before reading anything, and hold it until :meth:`close`.
        is_retry: lists were taken before, and directories were newer than those.
    """

    def __init__(
        self,
        metastore: Metastore,
        exclude: Sequence[str] = (),
        *,
        read_lock: bool = False,
        is_retry: bool = False,
    ) -> None:
        super().__init__(metastore, is_retry=is_retry)
        self.exclude = tuple(exclude)
        self.read_lock = read_lock
        self._held: list[ReadLock] = []
        self._at_root: dict[_Key, HiveTable | None] = {}
        self._roots: dict[_Key, dict[str, None]] = {}
        self._named: dict[tuple[str, _Key], bool] = {}
        self._partitions: dict[str, dict[tuple[tuple[str, str], ...], HivePartition]] = {}
        self._prefetched: dict[str, HiveTable] = {}
        self._prefetched_parts: dict[tuple[str, _Values], HivePartition] = {}

    @property
    def own_txns(self) -> frozenset[int]:
        return frozenset(lock.txn for lock in self._held)

    def refreshed(self, *, is_retry: bool = False) -> Warehouse:
        """Return a copy that has read no lists yet; `is_retry` as for the constructor."""
        if self._held:
            return self  # nothing under the lock can change
        return Warehouse(self.metastore, self.exclude, read_lock=self.read_lock, is_retry=is_retry)

    def close(self) -> None:
        """Release the locks and end the connection.

        Raises:
            LostTransaction: a lock was lost.
        """
        try:
            for lock in self._held:
                lock.check()
        finally:
            for lock in self._held:
                lock.release()
            self._held.clear()
            self.metastore.close()

    def prefetch(self, names: Sequence[HiveName], *, partitions: bool = False) -> None:
        """Query at once the tables of several names, and their write ids, which are needed one by one later.

        Args:
            partitions: query the named partitions, too.
        """
        by_database: dict[str, dict[str, None]] = {}
        for name in names:
            if not name.is_pattern and f"{name.database}.{name.table}" not in self._prefetched:
                by_database.setdefault(name.database, {})[name.table] = None
        for database, tables in by_database.items():
            if len(tables) > 1 or partitions:
                with suppress(NotFoundError):  # there is no such database: reported when its turn comes
                    answer = tables_named(self.metastore, database, list(tables))
                    self._prefetched |= {table.full_name: table for table in answer}
        if not self.read_lock:
            self.transactions.load(self._prefetched)
        if partitions:
            self._prefetch_partitions(names)

    def _prefetch_partitions(self, names: Sequence[HiveName]) -> None:
        wanted: dict[str, list[Mapping[str, str]]] = {}
        for name in names:
            if name.partition and (table := self._prefetched.get(f"{name.database}.{name.table}")):
                wanted.setdefault(table.full_name, []).append(name.partition)
        for full_name, parts in wanted.items():
            table = self._prefetched[full_name]
            with suppress(NotFoundError):  # it was just dropped: reported when its turn comes
                for partition in partitions_of_values(self.metastore, table, parts):
                    self._prefetched_parts[full_name, lower_keys(partition.values)] = partition

    def tables(self, name: HiveName) -> Iterator[HiveTable]:
        """Yield the tables that a name means.

        Raises:
            NotFoundError: there is no such table.
            UsageProblem: the named table is not transactional.
        """
        if not name.is_pattern:
            try:
                yield self._prefetched.get(f"{name.database}.{name.table}") or self._table(name.database, name.table)
            except NotFoundError as error:
                error.hint = near_tables(self.metastore, name.database, name.table) or error.hint
                raise
            return
        is_empty = True
        for table in find_tables(self.metastore, name.database, name.table, self.exclude):
            is_empty = False
            yield table
        if is_empty:
            raise NotFoundError(
                f"no transactional table is called {name.database}.{name.table}",
                f"asked was {self.metastore.shown}",
                "SHOW TABLES tells what there is",
            )

    def table_again(self, table: HiveTable) -> HiveTable:
        """Return the present state of a table.

        Raises:
            NotFoundError: the table is gone.
            UsageProblem: the table is not transactional any more.
            ConflictError: another table has its name, whose write ids are unrelated.
        """
        again = self._table(table.database, table.name)
        require_same(table, again)
        return again

    def is_dropped_or_moved(self, table: HiveTable, partition: Sequence[tuple[str, str]], shown: str) -> bool:
        """Return whether a table, or a partition of it, was dropped, replaced or moved away from a location.

        Args:
            shown: the location, as its store displays it.
        """
        try:
            self.table_again(table)
            if partition:
                return _key(next(find_partitions(self.metastore, table, dict(partition))).location) != _key(shown)
        except (NotFoundError, ConflictError):
            return True
        return False

    def _table(self, database: str, name: str) -> HiveTable:
        table = get_table(self.metastore, database, name)
        if table.table_type is None:
            raise UsageProblem(
                f"{table.full_name} is not a transactional table",
                "its property transactional is not true",
                "acidctl reads and changes transactional tables only",
            )
        return table

    def changed(self, tables: Iterable[HiveTable]) -> list[AcidctlError | None]:
        """Return for each table the error of :meth:`table_again`, or None; all tables are queried at once."""
        tables = list(tables)
        by_database: dict[str, dict[str, None]] = {}
        for table in tables:
            by_database.setdefault(table.database, {})[table.name] = None
        now: dict[str, HiveTable] = {}
        for database, names in by_database.items():
            with suppress(AcidctlError):  # tables that are not in the answer are queried one by one
                now |= {table.full_name: table for table in tables_named(self.metastore, database, list(names))}
        problems: list[AcidctlError | None] = []
        for table in tables:
            again = now.get(table.full_name)
            try:
                require_same(table, again) if again else self.table_again(table)
                problems.append(None)
            except AcidctlError as error:
                problems.append(error)
        return problems

    def places(
        self, name: HiveName, storage: Mapping[str, str], on_error: OnError | None = None
    ) -> Iterator[KnownPlace]:
        """Yield the locations of all tables that a name means, table by table, partitions by their values.

        Args:
            on_error: receives the error of an unusable location, or of a table that was dropped; None raises it.

        Raises:
            NotFoundError: there is no such table or partition.
            RefusedError: the metastore's location for it cannot be a table's.
            MetastoreError: the metastore cannot be reached, or failed.
        """
        tables = list(self.tables(name))
        for table in tables:
            if table.location:
                self._roots.setdefault(_key(table.location), {})[table.full_name] = None
        if self.read_lock:
            if "transactions" in self.__dict__:
                raise UsageProblem(
                    "a lock for reading is taken before anything is read", "", "give all tables by one name, hive:db.*"
                )
            self._held.append(ReadLock(self.metastore, tables))
        for batch in batches(tables, _AT_ONCE):
            if name.is_pattern:  # for a single table they are read when they are needed
                self.transactions.load(table.full_name for table in batch)
            for table in batch:
                if table.location:
                    try:
                        yield from self._places_of(table, name.partition, storage, on_error)
                    except Unreachable:
                        raise
                    except Exception as error:
                        if on_error is None or not name.is_pattern:
                            raise
                        on_error(unexpected(error, f"while {table.full_name} was looked up"))

    def urls(self, name: HiveName) -> Iterator[FromMetastore]:
        """Yield the locations of all tables that a name means as URLs.

        Raises:
            NotFoundError: there is no such table or partition.
            RefusedError: the metastore's location for it cannot be a table's.
        """
        for table in self.tables(name):
            if table.partition_keys or name.partition:
                whose = f"a partition of {table.full_name}"
                for partition in find_partitions(self.metastore, table, name.partition):
                    yield FromMetastore(_possible(partition.location, whose), table.location)
            elif table.location:
                yield FromMetastore(_possible(table.location, table.full_name))

    def _places_of(
        self, table: HiveTable, wanted: Mapping[str, str], storage: Mapping[str, str], on_error: OnError | None
    ) -> Iterator[KnownPlace]:
        fs, root = _opened(table.location, storage, table.full_name)
        if not table.partition_keys and not wanted:
            yield self._place(fs, WalkedLocation(root, table.full_name), table)
            return
        beginning = table.location.rstrip("/") + "/"
        expected = self._prefetched_parts.get((table.full_name, lower_keys(tuple(wanted.items()))))
        for partition in [expected] if expected else find_partitions(self.metastore, table, wanted):
            try:
                elsewhere, path = fs, ""
                below = partition.location.removeprefix(beginning)
                if below == partition.location or ".." in below.split("/") or not below.strip("/"):
                    elsewhere, path = _opened(partition.location, storage, f"a partition of {table.full_name}")
                path = path or f"{root.rstrip('/')}/{below.strip('/')}"
            except Exception as error:
                if on_error is None:
                    raise
                on_error(unexpected(error, f"while a partition of {table.full_name} was looked up"))
                continue
            yield self._place(elsewhere, WalkedLocation(path, table.full_name, partition.values), table, partition)

    def _place(
        self, fs: FileSystem, location: WalkedLocation, table: HiveTable, partition: HivePartition | None = None
    ) -> KnownPlace:
        declared = declared_by(table, partition, self.metastore.features.hive)
        return KnownPlace(fs, location, table, declared, partition)

    def refuse_part_of_another(self, fs: FileSystem, location: WalkedLocation, table: HiveTable) -> None:
        """Refuse to change a location in another table's directory: only that table's lists apply.

        The other table is found if it was named together with this one, or if its name is that of its directory.

        Raises:
            RefusedError: the location lies in another table's directory.
            MetastoreError: the metastore cannot be reached, or failed.
        """
        table_name = table.full_name
        shown = fs.display(location.path)
        key = _key(shown)
        for above in _and_above(key):
            others = [name for name in self._roots.get(above, ()) if name != table_name]
            if others:
                raise _of_another(shown, table_name, others[0])
        root = _key(table.location)
        if key[:2] == root[:2] and key[2].startswith(root[2].rstrip("/") + "/"):
            return
        path = key[2]
        while parse_partition(os.path.basename(path)):  # noqa: PTH119 - of any store
            path = os.path.dirname(path)  # noqa: PTH120 - of any store
        folder, name = os.path.split(path.lower())
        database = os.path.basename(folder)  # noqa: PTH119 - of any store
        for candidate in {
            f"{table.database}.{name}",
            f"{database.removesuffix('.db')}.{name}",
            f"default.{name}",
        }:
            place = candidate, (*key[:2], path)
            if place not in self._named:
                self._named[place] = candidate != table_name and self._by_name(*place) is not None
            if candidate != table_name and self._named[place]:
                raise _of_another(shown, table_name, candidate)

    def place_at(self, fs: FileSystem, location: WalkedLocation) -> KnownPlace | None:
        """Return a directory with the transactional table that it belongs to; None if there is none.

        The directory of a table may be called ``key=value``, too: then it is not the partition that its path suggests.

        Raises:
            RefusedError: several tables lie in the directory, and none of them has its name.
            MetastoreError: the metastore cannot be reached, or failed.
        """
        path, partition = location.path, location.partition
        for levels in range(len(partition), -1, -1):
            name = location.table if levels == len(partition) else ""
            shown = fs.display(_above(path, levels))
            key = _key(shown)
            if key not in self._at_root:  # the name that its path suggests is tried first
                self._at_root[key] = self._by_name(name, key) or self._only_at(key, shown)
            if table := self._at_root[key]:
                known = replace(location, table=table.full_name, partition=partition[len(partition) - levels :])
                return self._place(fs, known, table, self._partition_at(table, known))
        return None

    def _only_at(self, key: _Key, shown: str) -> HiveTable | None:
        tables = self._by_location.get(key, ())
        if len(tables) > 1:
            raise RefusedError(
                f"it cannot be told whose {shown} is",
                f"the metastore has it in {some_of([table.full_name for table in tables])}: each has its own write ids",
                f"name the table, {HIVE}{tables[0].full_name}",
            )
        return next(iter(tables), None)

    def _partition_at(self, table: HiveTable, location: WalkedLocation) -> HivePartition | None:
        """Return the partition in a directory, by its values; None if there is none, or if it does not matter.

        Only partitions of insert-only tables matter, whose files may differ; all of a table are read with one call.
        """
        if not location.partition or table.table_type is not TableType.INSERT_ONLY:
            return None
        if table.full_name not in self._partitions:
            partitions = find_partitions(self.metastore, table)
            self._partitions[table.full_name] = {lower_keys(p.values): p for p in partitions}
        return self._partitions[table.full_name].get(lower_keys(location.partition))

    def partition_elsewhere(self, fs: FileSystem, path: str) -> str:
        """Return the name of the partition in this directory if it lies outside its table's; else empty.

        Raises:
            MetastoreError: the metastore cannot be reached, or failed.
        """
        return self._elsewhere.get(_key(fs.display(path)), "")

    @cached_property
    def _elsewhere(self) -> Mapping[_Key, str]:
        """Return all partitions outside their usual directory; a metastore has no call to find one by its location."""
        names: dict[_Key, str] = {}
        for table in find_tables(self.metastore):
            if not table.partition_keys:
                continue
            with suppress(NotFoundError):  # it was dropped meanwhile
                for partition in find_partitions(self.metastore, table):
                    name = "/".join(partition_name(*pair) for pair in partition.values)
                    if not partition.location.endswith(f"{table.location.rstrip('/')}/{name}"):
                        names[_key(partition.location)] = f"{HIVE}{table.full_name}/{name}"
        return names

    def _by_name(self, name: str, key: _Key) -> HiveTable | None:
        """Return the table if its name is that of its directory, as for most tables."""
        database, dot, table = name.lower().partition(".")
        try:
            candidate = get_table(self.metastore, database, table) if dot else None
        except NotFoundError:
            return None
        return candidate if candidate and candidate.table_type and _key(candidate.location) == key else None

    @cached_property
    def _by_location(self) -> Mapping[_Key, list[HiveTable]]:
        """Return all transactional tables by their location."""
        tables: dict[_Key, list[HiveTable]] = {}
        for table in find_tables(self.metastore):
            if table.location:
                tables.setdefault(_key(table.location), []).append(table)
        return tables


def _opened(url: str, storage: Mapping[str, str], whose: str) -> tuple[FileSystem, str]:
    return open_location(_possible(url, whose), storage)


def _possible(url: str, whose: str) -> str:
    """Return the URL of a table or a partition in the metastore, if it can be one.

    Raises:
        RefusedError: the URL cannot be a table's.
    """
    if not _WHOLE.match(url):
        why = "which is no URL"
    elif ".." in url.split("/") or _CONTROL.search(url):
        why = "which leads elsewhere"
    elif not _STORE.sub("", url).strip("/."):
        why = "which is all of a store"
    else:
        return url
    raise RefusedError(
        f"{whose} is left alone",
        f"the metastore has it at {printable(url[:_MOST_SHOWN])}, {why}" if url else "the metastore has no place of it",
        "correct it there: ALTER TABLE ... SET LOCATION",
    )


def require_same(table: HiveTable, again: HiveTable) -> None:
    """Refuse a table that lies elsewhere now, or was created again.

    Raises:
        ConflictError: it is another table.
    """
    if _key(again.location) != _key(table.location):
        why = f"it lies at {printable(again.location[:_MOST_SHOWN])} now, not at {table.location}"
    elif again.made != table.made:
        why = "it was dropped and created again meanwhile"
    else:
        return
    raise ConflictError(f"{table.full_name} is not the table that it was", why, "look for its locations again")


def overlap(one: str, other: str) -> bool:
    """Return whether two URLs of locations are the same, or one is in the other."""
    (*store, path), (*other_store, other_path) = _key(one), _key(other)
    path, other_path = f"{path.rstrip('/')}/", f"{other_path.rstrip('/')}/"
    return store == other_store and (path.startswith(other_path) or other_path.startswith(path))


def _of_another(shown: str, table: str, other: str) -> RefusedError:
    return RefusedError(
        f"{shown} is not changed",
        f"the metastore has it in {table}, and in {other}, too: each has its own write ids",
        "find out whose it is, and correct the location of the other",
    )


def _above(path: str, levels: int) -> str:
    for _ in range(levels):
        path = os.path.dirname(path)  # noqa: PTH120 - of any store
    return path


def _and_above(key: _Key) -> Iterator[_Key]:
    scheme, host, path = key
    while path.strip("/"):
        yield scheme, host, path
        path = os.path.dirname(path)  # noqa: PTH120 - of any store


def _key(url: str) -> _Key:
    """Return scheme, host or bucket, and path, with one spelling for each location.

    All of HDFS counts as one store: it is addressed by its nameservice, by either NameNode, and over two protocols.
    """
    if "\0" in url:
        return "", "", url
    scheme, authority, path = split_url(url) or ("file", "", url)
    if scheme == "file":
        return scheme, "", os.path.realpath(path)
    path = posixpath.normpath("/" + path.lstrip("/"))
    return ("hdfs", "", path) if scheme in _HADOOP else (scheme, authority.lower(), path)
