"""Locations that wait for cleaning, by the metastore's queue or by their files, with the reclaimable bytes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from acidctl.acid.state import State
from acidctl.base.errors import AcidctlError
from acidctl.base.parallel import in_order
from acidctl.location.arguments import HIVE
from acidctl.location.find import find
from acidctl.location.snapshot import Snapshot, children_of
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.activity import key_of, name_of
from acidctl.metastore.client import Metastore
from acidctl.metastore.queue.compactions import READY, Compaction, find_compactions

OnError = Callable[[str, AcidctlError], None]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A location that waits for cleaning.

    Attributes:
        partition: empty for a whole table.
        entry: of the queue; None for a named table without one.
        bytes: of obsolete and aborted directories; None if the location was not listed.
        replaced: when the directories that replace them appeared, in seconds since the epoch by the store; None if
            unknown, or if the entry names the transactions to wait for.
    """

    database: str
    table: str
    partition: str
    entry: Compaction | None = None
    bytes: int | None = None
    replaced: float | None = None

    @property
    def name(self) -> str:
        """``db.table`` or ``db.table/day=1``."""
        return name_of(self.database, self.table, self.partition)


def ready_entries(entries: Iterable[Compaction]) -> list[Compaction]:
    """Return the entries that are ready for cleaning."""
    return [entry for entry in entries if entry.state == READY]


def count_ready(metastore: Metastore, places: Container[tuple[str, str, str]]) -> int:
    """Return how many entries of the queue for some locations are ready for cleaning; 0 before Hive 4.

    Args:
        places: locations, in the form of :func:`acidctl.metastore.activity.key_of`.
    """
    if not metastore.features.txn_types:
        return 0
    ready = find_compactions(metastore, state=READY)
    return sum(key_of(entry.database, entry.table, entry.partition) in places for entry in ready)


def place_key(found: TableLocation) -> tuple[str, str, str]:
    """Return a key that is equal for two spellings of a location's table and partition."""
    return key_of(*_names_of(found))


def find_waiting(
    warehouse: Warehouse,
    entries: Sequence[Compaction],
    names: Sequence[str] = (),
    storage: Mapping[str, str] | None = None,
    *,
    sizes: bool = True,
    on_error: OnError = lambda _, __: None,
) -> list[Waiting]:
    """Return the locations that wait for cleaning.

    Args:
        entries: entries of the queue that are ready for cleaning.
        names: tables, ``hive:db.table``, whose waiting files count even without an entry; if empty, the whole queue.
        storage: options of the stores.
        sizes: list the locations of the queue, too; named tables are always listed.
        on_error: called with the name of each location that cannot be listed, whose bytes are None.

    Raises:
        NotFoundError: a named table does not exist.
    """
    resolver = SnapshotResolver(warehouse=warehouse).opened()
    if names:
        by_key = {key_of(entry.database, entry.table, entry.partition): entry for entry in entries}
        locations = list(find(names, {} if storage is None else storage, resolver, looks=False))
        return [
            Waiting(*_names_of(location), by_key.get(place_key(location)), size, replaced)
            for location, size, replaced in _measured(locations, on_error)
            if size is None or size > 0 or place_key(location) in by_key
        ]
    if not sizes:
        return [Waiting(entry.database, entry.table, entry.partition, entry) for entry in entries]
    locations = []
    for name in dict.fromkeys(entry.name for entry in entries):
        try:
            locations += find([HIVE + name], {} if storage is None else storage, resolver, looks=False)
        except AcidctlError as error:
            on_error(name, error)
    amounts = {place_key(location): size for location, size, _ in _measured(locations, on_error)}
    return [
        Waiting(*names_of_entry, entry, amounts.get(key_of(*names_of_entry)))
        for entry, names_of_entry in ((entry, (entry.database, entry.table, entry.partition)) for entry in entries)
    ]


def _measured(
    locations: Sequence[TableLocation], on_error: OnError
) -> Iterable[tuple[TableLocation, int | None, float | None]]:
    def measure(found: TableLocation) -> tuple[int, float | None] | AcidctlError:
        try:
            return amount_waiting(found.snapshot())
        except AcidctlError as error:
            return error

    for location, result in in_order(locations, measure):
        if isinstance(result, AcidctlError):
            on_error(location.shown, result)
            yield location, None, None
        else:
            yield location, *result


def amount_waiting(snapshot: Snapshot) -> tuple[int, float | None]:
    """Return the bytes of obsolete and aborted directories, and when the directories that replace them appeared."""
    children = {child.verdict.name: child for child in children_of(snapshot)}
    gone = [child for child in children.values() if child.verdict.state in (State.OBSOLETE, State.ABORTED)]
    instead = {name for child in gone for name in child.verdict.reason.by}
    times = [children[name].amount.modified for name in instead if name in children]
    return sum(child.amount.bytes for child in gone), max((time for time in times if time is not None), default=None)


def _names_of(found: TableLocation) -> tuple[str, str, str]:
    """Return database, table and partition of a location."""
    database, _, table = found.location.table.partition(".")
    return database, table, "/".join(f"{key}={value}" for key, value in found.location.partition)
