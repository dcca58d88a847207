"""Find the causes that hold back cleaning, and the stuck entries of the queue, in one view of a metastore."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from acidctl.hive.blocking import Blocker, find_blockers
from acidctl.hive.ready_entries import OnError, Waiting, find_waiting, ready_entries
from acidctl.hive.table_names import is_named
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.activity import KnownTxns, find_locks, find_transactions, key_of
from acidctl.metastore.client import Metastore
from acidctl.metastore.queue.compactions import Compaction, find_compactions
from acidctl.metastore.queue.stuck import Cause, Stuck, find_stuck
from acidctl.metastore.server import Switches, find_switches


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """Blockers of cleanings, and stuck entries of the queue.

    Attributes:
        known, switches: the server's transactions and configuration that the result is based on.
        blockers: those that hold back the most bytes first.
        waiting: all locations that wait for cleaning, held back or not.
    """

    known: KnownTxns
    switches: Switches
    blockers: tuple[Blocker, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    stuck: tuple[Stuck, ...] = ()

    def overdue(self, older_than: float) -> list[Blocker]:
        """Return the blockers older than the retention: cleaning waits for nothing else any more."""
        return [b for b in self.blockers if (self.known.age(b.started) or 0.0) > older_than]

    def is_trouble(self, older_than: float) -> bool:
        """Return whether something is stuck, or held back for longer than these seconds."""
        return bool(self.stuck or self.overdue(older_than))


def find_held_back(
    warehouse: Warehouse, names: Sequence[str], storage: Mapping[str, str], *, sizes: bool, on_error: OnError
) -> QueueView:
    """Return what holds back the cleaning of the whole queue, or of some tables.

    Args:
        names, storage, sizes, on_error: as in :func:`acidctl.hive.ready_entries.find_waiting`.

    Raises:
        NotFoundError: a named table does not exist.
    """
    metastore = warehouse.metastore
    switches = find_switches(metastore)
    ready = ready_entries(find_compactions(metastore))
    waiting = find_waiting(warehouse, ready, names, storage, sizes=sizes, on_error=on_error)
    known, locks = find_transactions(metastore), find_locks(metastore)
    blockers = tuple(find_blockers(waiting, known, locks, switches))
    return QueueView(known=known, switches=switches, blockers=blockers, waiting=tuple(waiting))


def find_stuck_entries(metastore: Metastore) -> QueueView:
    """Return the stuck entries of the queue."""
    return look_at_queue(metastore, (), lambda _: True, is_whole=True)


def look_at_queue(
    metastore: Metastore,
    waiting: Iterable[Waiting],
    holds: Callable[[str], bool],
    names: Sequence[str] = (),
    *,
    is_whole: bool = False,
) -> QueueView:
    """Return what blocks the cleaning of some locations and what is stuck, from one list of all transactions.

    Args:
        waiting: the locations that wait for cleaning.
        holds: tells for ``db.table`` whether its locations are among those that were listed.
        names: of tables whose entries count even without a location.
        is_whole: return all stuck entries, also those that only wait for a blocker.
    """
    # Transactions come before the queue: an entry of an ended transaction is then certain.
    switches = find_switches(metastore)
    known = find_transactions(metastore)
    entries = find_compactions(metastore)
    locks = () if is_whole and switches.is_hive4 else find_locks(metastore)

    def is_meant(entry: Compaction) -> bool:
        return holds(f"{entry.database}.{entry.table}") or is_named(names, entry.database, entry.table, entry.partition)

    stuck = tuple(find_stuck(entries, known, switches, () if switches.is_hive4 else locks))
    if is_whole:
        return QueueView(known=known, switches=switches, stuck=stuck)
    ready = {
        key_of(entry.database, entry.table, entry.partition): entry
        for entry in ready_entries(entries)
        if is_meant(entry)
    }
    held = [
        replace(table, entry=ready.pop(key_of(table.database, table.table, table.partition), None)) for table in waiting
    ]
    held += [Waiting(entry.database, entry.table, entry.partition, entry) for entry in ready.values()]
    return QueueView(
        known=known,
        switches=switches,
        blockers=tuple(find_blockers(held, known, locks, switches)),
        waiting=tuple(held),
        stuck=tuple(item for item in stuck if item.cause is not Cause.BLOCKED and is_meant(item.entry)),
    )
