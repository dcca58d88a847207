"""From the paths a user gives to snapshots of locations."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from acidctl.acid.writeids import Form, ValidTxns, ValidWriteIds
from acidctl.errors import AcidctlError, RefusedError, UsageProblem
from acidctl.storage.port import FileSystem
from acidctl.storage.registry import open_location
from acidctl.storage.snapshot import Look, Snapshot, look_at, take_snapshot
from acidctl.storage.walk import Location, find_locations

if TYPE_CHECKING:
    from concurrent.futures import Future

_THREADS = 8
"""That wait for a remote store."""


@dataclass(frozen=True, slots=True)
class SnapshotLists:
    """The lists a user gave; None where none was given.

    Attributes:
        write_ids: the list of one table.
        by_table: lists by table name, of the form ``txn$list$list``.
    """

    write_ids: ValidWriteIds | None = None
    txns: ValidTxns | None = None
    by_table: dict[str, ValidWriteIds] | None = None

    @classmethod
    def parse(cls, write_ids: str | None, txns: str | None, form: str) -> SnapshotLists:
        """Raises WriteIdListError."""
        parsed_txns = None if txns is None else ValidTxns.parse(txns)
        if write_ids is not None and "$" in write_ids:
            return cls(None, parsed_txns, ValidWriteIds.parse_multi(write_ids))
        return cls(None if write_ids is None else ValidWriteIds.parse(write_ids, Form(form)), parsed_txns)

    def assuming_committed(self) -> SnapshotLists:
        """The same with every transaction committed, unless a list of them was given."""
        return replace(self, txns=self.txns or ValidTxns())

    def of(self, table: str) -> ValidWriteIds | None:
        """The list for a table; None when none was given.

        Raises:
            UsageProblem: lists were given, but none for this table.
        """
        if self.by_table is None:
            return self.write_ids
        for name, found in self.by_table.items():
            if table in (name, name.rpartition(".")[2]):
                return found
        known = ", ".join(self.by_table) or "no table"
        raise UsageProblem(f"no write-id list for the table {table}", f"there are lists for {known}")


@dataclass(frozen=True, slots=True)
class Found:
    """A location that a user's path led to.

    Attributes:
        is_given: the path itself is the location, not a tree that holds it.
        look: at the location, made while others were looked at.
    """

    fs: FileSystem
    location: Location
    is_given: bool
    look: Callable[[], Look] | None = None

    @property
    def shown(self) -> str:
        return self.fs.display(self.location.path)

    def snapshot(self, lists: SnapshotLists, *, compactor: bool = False) -> Snapshot:
        """List it and select its state."""
        write_ids = lists.of(self.location.table)
        if compactor:
            write_ids = (write_ids or ValidWriteIds()).for_compactor()
        look = self.look() if self.look else None
        return take_snapshot(self.fs, self.location.path, write_ids, lists.txns, look=look)

    def afresh(self) -> Found:
        """The same location, to be listed when its snapshot is taken."""
        return replace(self, look=None)


def find(
    paths: Sequence[str],
    storage: Mapping[str, str],
    lists: SnapshotLists,
    on_error: Callable[[AcidctlError], None] | None = None,
    *,
    looks: bool = True,
) -> Iterator[Found]:
    """Every location at or below the given paths, in their order; stores that take long to answer are asked ahead.

    Args:
        lists: what the user gave; write ids are numbered by table, so one list is good for one table.
        on_error: called with what cannot be listed below a path; without it, that is raised.
        looks: at the locations themselves too; False where no snapshots are taken of them.

    Raises:
        NotFoundError, AccessError, StorageError: a path cannot be listed.
        RefusedError: one write-id list was given, and there is a second table.
    """
    first: str | None = None
    for path in paths:
        fs, root = open_location(path, storage)
        for location, look in _locations(fs, root, on_error, alone=len(paths) == 1, looks=looks):
            first = first or location.table
            if lists.write_ids is not None and location.table != first:
                raise RefusedError(
                    "one write-id list cannot serve several tables",
                    f"{fs.display(location.path)} is of {location.table}, not of {first}",
                    "give one table, or all lists in the form txn$list$list (hive.txn.tables.valid.writeids)",
                )
            yield Found(fs, location, location.path == root, look)


def _locations(
    fs: FileSystem, root: str, on_error: Callable[[AcidctlError], None] | None, *, alone: bool, looks: bool
) -> Iterator[tuple[Location, Callable[[], Look] | None]]:
    """The locations below one path; of several paths, one that cannot be listed does not stop the others."""
    try:
        if fs.local_path(root) is not None:
            for location, top in find_locations(fs, root, on_error):
                yield location, partial(look_at, fs, location.path, top)
        else:
            yield from _ahead(fs, root, on_error, looks=looks)
    except AcidctlError as error:
        if alone or on_error is None:
            raise
        on_error(error)


def _ahead(
    fs: FileSystem, root: str, on_error: Callable[[AcidctlError], None] | None, *, looks: bool
) -> Iterator[tuple[Location, Callable[[], Look] | None]]:
    """Some locations are looked at while the one before them is worked on: waiting costs nothing but time."""
    from concurrent.futures import ThreadPoolExecutor

    # Two pools: were all threads of one waiting for looks, the walk would wait for them.
    with ThreadPoolExecutor(_THREADS, "acidctl-walk") as walkers, ThreadPoolExecutor(_THREADS, "acidctl-look") as pool:
        waiting: deque[tuple[Location, Future[Look]]] = deque()
        try:
            for location, top in find_locations(fs, root, on_error, walkers):
                if not looks:
                    yield location, None
                    continue
                waiting.append((location, pool.submit(look_at, fs, location.path, top)))
                while waiting and (len(waiting) > 2 * _THREADS or waiting[0][1].done()):
                    yield _looked(*waiting.popleft())
            while waiting:
                yield _looked(*waiting.popleft())
        finally:
            for each in (walkers, pool):
                each.shutdown(wait=False, cancel_futures=True)


def _looked(location: Location, look: Future[Look]) -> tuple[Location, Callable[[], Look]]:
    return location, look.result
