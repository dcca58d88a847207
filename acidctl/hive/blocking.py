"""Find what holds back cleanings, and which entries of the queue are stuck, in one view of a metastore.

Hive 4 cleans an entry when all transactions that began before its compaction's commit have ended, whatever tables they
use. Hive 4.2 waits only for transactions that read the table. Hive 3 cleans an entry when the locks that were on its
location when the cleaner first saw it are gone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from acidctl.hive.stuck import Cause, Stuck, find_stuck
from acidctl.hive.table_names import is_named
from acidctl.hive.waiting import OnError, Waiting, find_waiting
from acidctl.location.warehouse import Warehouse
from acidctl.metastore.activity import KnownTxns, Lock, Txn, find_locks, find_transactions, key_of, locks_by_txn
from acidctl.metastore.client import Metastore
from acidctl.metastore.queue import READY, WAITING_STATES, Compaction, find_compactions
from acidctl.metastore.server import Switches, find_switches

MOST_HELD = 100
"""Locations that are listed for one blocker."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A transaction, or a lock without one, for which cleanings wait.

    Attributes:
        txn: None for a lock without a transaction, or whose transaction is no longer listed.
        bytes: of all of them; None if not known for any.
        holds: the locations, those with the most bytes first, at most :data:`MOST_HELD`.
    """

    txn: Txn | None
    locks: tuple[Lock, ...]
    count: int
    bytes: int | None
    holds: tuple[Waiting, ...]

    @property
    def client(self) -> Txn | Lock:
        """The transaction, else the lock: both have a user, a host and a last heartbeat."""
        return self.txn or self.locks[0]

    @property
    def query(self) -> str:
        """Description of its work by the transaction or its locks; empty if they have none."""
        descriptions = [self.txn.query, self.txn.agent] if self.txn else []
        descriptions += [lock.agent for lock in self.locks]
        return next(filter(None, descriptions), "")

    @property
    def started(self) -> float | None:
        """When it began, in seconds since the epoch by the server's clock."""
        return self.txn.started if self.txn else self.locks[0].acquired


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """Blockers of cleanings, and stuck entries of the queue.

    Attributes:
        queued: the entries that wait or are in work, if they were asked for.
    """

    known: KnownTxns
    switches: Switches
    blockers: tuple[Blocker, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    stuck: tuple[Stuck, ...] = ()
    queued: tuple[Compaction, ...] = ()

    def overdue(self, older_than: float) -> list[Blocker]:
        """Return the blockers older than the retention: cleaning waits for nothing else any more."""
        return [blocker for blocker in self.blockers if (self.known.age(blocker.started) or 0.0) > older_than]


def find_held_back(
    warehouse: Warehouse, names: Sequence[str], storage: Mapping[str, str], *, sizes: bool, on_error: OnError
) -> QueueView:
    """Return what holds back the cleaning of the whole queue, or of some tables.

    Args:
        names, storage, sizes, on_error: as in :func:`acidctl.hive.waiting.find_waiting`.
    """
    metastore = warehouse.metastore
    switches = find_switches(metastore)
    ready = [entry for entry in find_compactions(metastore) if entry.state == READY]
    waiting = find_waiting(warehouse, ready, names, storage, sizes=sizes, on_error=on_error)
    known, locks = find_transactions(metastore), find_locks(metastore)
    blockers = tuple(find_blockers(waiting, known, locks, switches))
    return QueueView(known=known, switches=switches, blockers=blockers, waiting=tuple(waiting))


def find_stuck_entries(metastore: Metastore) -> QueueView:
    """Return the stuck entries of the whole queue."""
    # Transactions come before the queue: an entry of an ended transaction is then certain.
    switches, known, entries = find_switches(metastore), find_transactions(metastore), find_compactions(metastore)
    locks = find_locks(metastore) if switches.waits_for_locks else ()
    return QueueView(known=known, switches=switches, stuck=tuple(find_stuck(entries, known, switches, locks)))


def find_held_back_or_stuck(
    warehouse: Warehouse, waiting: Iterable[Waiting], holds: Callable[[str], bool], names: Sequence[str]
) -> QueueView:
    """Return what blocks the cleaning of some locations and what is stuck there, from one list of all transactions.

    Args:
        holds: says for ``db.table`` whether its locations are among those that were listed.
        names: of tables whose entries count even without a location.
    """
    metastore = warehouse.metastore
    switches, known, entries = find_switches(metastore), find_transactions(metastore), find_compactions(metastore)
    open_ids = {txn.id for txn in known.open}
    locks = [lock for lock in warehouse.locks if not lock.txn or lock.txn in open_ids]  # others are gone since

    def is_meant(entry: Compaction) -> bool:
        return holds(f"{entry.database}.{entry.table}") or is_named(names, entry.database, entry.table, entry.partition)

    stuck = find_stuck(entries, known, switches, locks if switches.waits_for_locks else ())
    queued = [entry for entry in entries if entry.state in WAITING_STATES and is_meant(entry)]
    ready = {entry.key: entry for entry in queued if entry.state == READY}
    held = [replace(location, entry=ready.pop(location.key, None)) for location in waiting]
    held += map(Waiting.of_entry, ready.values())
    return QueueView(
        known=known,
        switches=switches,
        blockers=tuple(find_blockers(held, known, locks, switches)),
        waiting=tuple(held),
        stuck=tuple(item for item in stuck if item.cause is not Cause.BLOCKED and is_meant(item.entry)),
        queued=tuple(queued),
    )


def find_blockers(
    waiting: Sequence[Waiting], known: KnownTxns, locks: Sequence[Lock], switches: Switches
) -> list[Blocker]:
    """Return the blockers of the waiting locations, those that hold back the most bytes first.

    Args:
        known: transactions listed after `waiting`.
    """
    if switches.is_hive4 and not switches.by_write_id:
        # Clients of locks without a transaction may read what will go, where no queue entry says what was replaced.
        not_queued = [location for location in waiting if location.entry is None]
        without_txn = [lock for lock in locks if not lock.txn]
        blockers = [*_by_order(waiting, known, locks), *_by_lock(not_queued, known, without_txn, whole_table=False)]
    else:
        blockers = list(_by_lock(waiting, known, locks, whole_table=switches.by_write_id))

    def weight(blocker: Blocker) -> tuple[int, int, float, int]:
        return -(blocker.bytes or 0), -blocker.count, blocker.started or 0.0, blocker.client.id

    return sorted(blockers, key=weight)


def _by_order(waiting: Sequence[Waiting], known: KnownTxns, locks: Sequence[Lock]) -> Iterator[Blocker]:
    """Yield the blockers of Hive 4: each location waits for all open transactions below a bound.

    The locations are sorted by this bound, so that a transaction holds back the end of the list. This stays fast with
    ten thousand transactions.
    """
    txns = known.open
    bound_of = _bounds(txns)
    bounds = [(bound, location) for location in waiting if (bound := bound_of(location))]
    bounds.sort(key=lambda pair: pair[0])
    keys, ordered = [bound for bound, _ in bounds], [location for _, location in bounds]
    blocking = txns[: bisect_left(txns, keys[-1], key=lambda txn: txn.id)] if keys else ()
    by_txn, end = locks_by_txn(locks), len(ordered)
    total: int | None = None
    holds: tuple[Waiting, ...] = ()
    for txn in reversed(blocking):
        start = bisect_right(keys, txn.id)
        if start < end:
            total, holds = _amount(total, ordered[start:end]), _largest([*holds, *ordered[start:end]])
            end = start
        yield Blocker(txn, by_txn.get(txn.id, ()), len(ordered) - start, total, holds)


def _bounds(txns: Sequence[Txn]) -> Callable[[Waiting], int]:
    """Return a function that gives the id below which a location waits for all open transactions; 0 for none."""
    by_start = sorted((txn.started, txn.id) for txn in txns if txn.started is not None)
    starts = [start for start, _ in by_start]
    highest = list(accumulate((txn for _, txn in by_start), max))

    def bound(location: Waiting) -> int:
        if location.entry:
            return location.entry.next_txn
        # Without a queue entry: transactions that began before the compaction appeared may read what it replaced.
        before = bisect_left(starts, location.replaced) if location.replaced is not None else 0
        return highest[before - 1] + 1 if before else 0

    return bound


def _amount(total: int | None, waiting: Iterable[Waiting]) -> int | None:
    """Return the sum of a number of bytes and those of some locations; None if none of them are known."""
    sizes = [size for size in (total, *(location.bytes for location in waiting)) if size is not None]
    return sum(sizes) if sizes else None


def _largest(waiting: Iterable[Waiting]) -> tuple[Waiting, ...]:
    return tuple(sorted(waiting, key=lambda location: (-(location.bytes or 0), location.name))[:MOST_HELD])


def _by_lock(
    waiting: Sequence[Waiting], known: KnownTxns, locks: Sequence[Lock], *, whole_table: bool
) -> Iterator[Blocker]:
    """Yield the owners of the locks on the waiting locations (Hive 3), or on any part of their tables.

    Args:
        whole_table: count the locks on all partitions of a table.
    """

    def key(locked: Lock | Waiting) -> tuple[str, str, str]:
        return key_of(locked.database, locked.table, "" if whole_table else locked.partition)

    txns = {txn.id: txn for txn in known.txns}
    locks_on: defaultdict[tuple[str, str, str], set[tuple[int, int]]] = defaultdict(set)
    parts: defaultdict[tuple[int, int], list[Lock]] = defaultdict(list)
    for lock in locks:
        owner = (lock.txn, 0) if lock.txn else (0, lock.id)
        parts[owner].append(lock)
        if not lock.is_waiting:
            locks_on[key(lock)].add(owner)
    held: defaultdict[tuple[int, int], dict[str, Waiting]] = defaultdict(dict)
    for location in waiting:
        for owner in locks_on.get(key(location), ()):
            held[owner][location.name] = location
    for owner, by_name in held.items():
        locations = by_name.values()
        total, holds = _amount(None, locations), _largest(locations)
        yield Blocker(txns.get(owner[0]), tuple(parts[owner]), len(locations), total, holds)
