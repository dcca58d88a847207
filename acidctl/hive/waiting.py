"""Locations that wait for cleaning, by the metastore's queue or by their files, with the reclaimable bytes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from acidctl.base.errors import AcidctlError
from acidctl.base.parallel import in_order
from acidctl.hive.table_names import location_key, names_of
from acidctl.location.arguments import HIVE
from acidctl.location.find import find
from acidctl.location.snapshot import Snapshot, children_of
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.table_location import TableLocation
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.activity import OfLocation
from acidctl.metastore.client import Metastore
from acidctl.metastore.queue import READY, Compaction, find_compactions

OnError = Callable[[str, AcidctlError], None]


@dataclass(frozen=True, slots=True)
class Waiting(OfLocation):
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

    @classmethod
    def of_entry(cls, entry: Compaction, size: int | None = None) -> Waiting:
        """Return the location of an entry of the queue."""
        return cls(entry.database, entry.table, entry.partition, entry, size)


def count_ready(metastore: Metastore, keys: Container[tuple[str, str, str]]) -> int:
    """Return how many entries of the queue for some locations are ready for cleaning; 0 before Hive 4."""
    if not metastore.features.txn_types:
        return 0
    return sum(entry.key in keys for entry in find_compactions(metastore, state=READY))


def find_waiting(
    warehouse: Warehouse,
    entries: Sequence[Compaction],
    names: Sequence[str],
    storage: Mapping[str, str],
    *,
    sizes: bool,
    on_error: OnError,
) -> list[Waiting]:
    """Return the locations that wait for cleaning.

    Args:
        names: tables, ``hive:db.table``, whose waiting files count even without an entry; if empty, the whole queue.
        sizes: list the locations of the queue, too; named tables are always listed.
        on_error: called with the name of each location that cannot be listed, whose bytes are None.
    """
    resolver = SnapshotResolver(warehouse=warehouse).opened()
    if names:
        by_key = {entry.key: entry for entry in entries}
        return [
            Waiting(*names_of(location), by_key.get(location_key(location)), size, replaced)
            for location, size, replaced in _measured(list(find(names, storage, resolver, looks=False)), on_error)
            if size is None or size > 0 or location_key(location) in by_key
        ]
    locations: list[TableLocation] = []
    for name in dict.fromkeys(entry.name for entry in entries if sizes):
        try:
            locations += find([HIVE + name], storage, resolver, looks=False)
        except AcidctlError as error:
            on_error(name, error)
    amounts = {location_key(location): size for location, size, _ in _measured(locations, on_error)}
    return [Waiting.of_entry(entry, amounts.get(entry.key)) for entry in entries]


def _measured(
    locations: Sequence[TableLocation], on_error: OnError
) -> Iterator[tuple[TableLocation, int | None, float | None]]:
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
    gone = [children[verdict.name] for verdict in snapshot.state.removable]
    instead = {name for child in gone for name in child.verdict.reason.by}
    times = [children[name].amount.modified for name in instead if name in children]
    return sum(child.amount.bytes for child in gone), max((time for time in times if time is not None), default=None)
