"""What waits for cleaning: entries of the metastore's queue, and tables on disk, with the bytes that would be free."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from acidctl.acid.state import State
from acidctl.errors import AcidctlError
from acidctl.location.find import Found, find
from acidctl.location.given import HIVE
from acidctl.location.lists import SnapshotLists
from acidctl.location.snapshot import Snapshot, children_of
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.activity import key_of, name_of
from acidctl.metastore.client import Metastore
from acidctl.metastore.queue.compactions import READY, Compaction, find_compactions

_THREADS = 8
"""That list locations."""

OnError = Callable[[str, AcidctlError], None]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A location of which something waits for cleaning.

    Attributes:
        partition: empty for a whole table.
        entry: of the queue; None where a table was asked for that has none.
        bytes: of what is obsolete or aborted there; None where nobody looked.
        replaced: when what readers use in its place appeared, seconds since the epoch by the store; None where the
            queue says what is waited for, or nothing is known.
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
    """Those that are ready for cleaning."""
    return [entry for entry in entries if entry.state == READY]


def count_ready(metastore: Metastore, places: Container[tuple[str, str, str]]) -> int:
    """How many entries of the queue are ready for cleaning whose locations are among some (Hive 4).

    Args:
        places: as :func:`acidctl.metastore.activity.key_of` has them.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    if not metastore.features.txn_types:
        return 0
    found = find_compactions(metastore, state=READY)
    return sum(key_of(one.database, one.table, one.partition) in places for one in found)


def place_key(found: Found) -> tuple[str, str, str]:
    """What is the same for two spellings of a location's table and partition."""
    return key_of(*_where(found))


def find_waiting(
    warehouse: Warehouse,
    entries: Sequence[Compaction],
    names: Sequence[str] = (),
    storage: Mapping[str, str] | None = None,
    *,
    sizes: bool = True,
    on_error: OnError = lambda _, __: None,
) -> list[Waiting]:
    """What waits for cleaning.

    Args:
        entries: those of the queue that are ready for cleaning.
        names: tables, ``hive:db.table``, of which everything that waits on disk counts, in the queue or not; without
            any it is the whole queue.
        storage: options of the stores.
        sizes: list the locations; without it only tables that are named are listed.
        on_error: told of a location that cannot be listed, by its name; its bytes are None then.

    Raises:
        NotFoundError: a table that is named is not there.
        MetastoreError: the metastore cannot be reached, or failed.
    """
    lists = SnapshotLists(warehouse=warehouse).begun()
    if names:
        by_name = {key_of(entry.database, entry.table, entry.partition): entry for entry in entries}
        found = list(find(names, {} if storage is None else storage, lists, looks=False))
        return [
            Waiting(*_where(one), by_name.get(key_of(*_where(one))), size, replaced)
            for one, size, replaced in _measured(found, lists, on_error)
            if size is None or size > 0 or key_of(*_where(one)) in by_name
        ]
    if not sizes:
        return [Waiting(entry.database, entry.table, entry.partition, entry) for entry in entries]
    amounts: dict[tuple[str, str, str], int | None] = {}
    places: list[Found] = []
    for name in dict.fromkeys(entry.name for entry in entries):
        try:
            places += find([HIVE + name], {} if storage is None else storage, lists, looks=False)
        except AcidctlError as error:
            on_error(name, error)
    for one, size, _ in _measured(places, lists, on_error):
        amounts[key_of(*_where(one))] = size
    return [
        Waiting(*where, entry, amounts.get(key_of(*where)))
        for entry, where in ((entry, (entry.database, entry.table, entry.partition)) for entry in entries)
    ]


def _measured(
    places: Sequence[Found], lists: SnapshotLists, on_error: OnError
) -> Iterable[tuple[Found, int | None, float | None]]:
    def measure(found: Found) -> tuple[int, float | None] | AcidctlError:
        try:
            return amount_waiting(found.snapshot(lists))
        except AcidctlError as error:
            return error

    with ThreadPoolExecutor(_THREADS, "acidctl-look") as pool:
        for found, done in zip(places, pool.map(measure, places), strict=True):
            if isinstance(done, AcidctlError):
                on_error(found.shown, done)
                yield found, None, None
            else:
                yield found, *done


def amount_waiting(snapshot: Snapshot) -> tuple[int, float | None]:
    """The bytes of what is obsolete or aborted, and when what took its place appeared."""
    children = {child.verdict.name: child for child in children_of(snapshot)}
    gone = [child for child in children.values() if child.verdict.state in (State.OBSOLETE, State.ABORTED)]
    instead = {name for child in gone for name in child.verdict.reason.by}
    times = [children[name].amount.modified for name in instead if name in children]
    return sum(child.amount.bytes for child in gone), max((time for time in times if time is not None), default=None)


def _where(found: Found) -> tuple[str, str, str]:
    """Database, table and partition of a location."""
    database, _, table = found.location.table.partition(".")
    return database, table, "/".join(f"{key}={value}" for key, value in found.location.partition)
