"""Transactions (Hive 4) and locks (Hive 3) that hold back cleanings, with the bytes that wait for each.

Hive 4 cleans an entry when all transactions that began before its compaction's commit have ended, whatever tables they
use. Hive 3 cleans an entry when the locks that were on its location when the cleaner first saw it are gone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from acidctl.hive.ready_entries import Waiting
from acidctl.metastore.activity import KnownTxns, Lock, Txn, key_of, locks_by_txn
from acidctl.metastore.server import Switches

MOST_HELD = 100
"""Locations that are listed for one blocker."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A transaction, or a lock without one, for which cleanings wait.

    Attributes:
        txn: None for a lock without a transaction, or whose transaction is no longer listed.
        locks: of the transaction; or all components of the lock.
        count: number of locations that wait for it.
        bytes: of all of them; None if not known for any.
        holds: the locations, those with the most bytes first, at most :data:`MOST_HELD`.
    """

    txn: Txn | None
    locks: tuple[Lock, ...]
    count: int
    bytes: int | None
    holds: tuple[Waiting, ...]

    @property
    def user(self) -> str:
        """User of the transaction or lock."""
        return self.txn.user if self.txn else self.locks[0].user

    @property
    def host(self) -> str:
        """Host of its client."""
        return self.txn.host if self.txn else self.locks[0].host

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

    @property
    def last_heartbeat(self) -> float | None:
        """When its last heartbeat came, in seconds since the epoch by the server's clock."""
        return self.txn.last_heartbeat if self.txn else self.locks[0].last_heartbeat


def find_blockers(
    waiting: Sequence[Waiting], known: KnownTxns, locks: Sequence[Lock], switches: Switches
) -> list[Blocker]:
    """Return the blockers of the waiting locations, those that hold back the most bytes first.

    Args:
        known: transactions listed after `waiting`.
    """
    if switches.is_hive4 and not switches.by_write_id:
        blockers = [*_by_order(waiting, known, locks), *_locks_without_txn(waiting, known, locks)]
    else:
        blockers = list(_by_lock(waiting, known, locks, whole_table=switches.by_write_id))
    return sorted(blockers, key=_weight)


def _weight(blocker: Blocker) -> tuple[int, int, float, int]:
    number = blocker.txn.id if blocker.txn else blocker.locks[0].id
    return -(blocker.bytes or 0), -blocker.count, blocker.started or 0.0, number


def _by_order(waiting: Sequence[Waiting], known: KnownTxns, locks: Sequence[Lock]) -> Iterable[Blocker]:
    """Yield the blockers of Hive 4: each location waits for all open transactions below a bound.

    The locations are sorted by this bound, so that a transaction holds back the end of the list. This stays fast with
    ten thousand transactions.
    """
    txns = known.open
    ids = [txn.id for txn in txns]
    bound_of = _bounds(txns)
    bounds = [(bound, location) for location in waiting if (bound := bound_of(location))]
    bounds.sort(key=lambda pair: pair[0])
    keys = [bound for bound, _ in bounds]
    ordered = [location for _, location in bounds]
    blocking = txns[: bisect_left(ids, keys[-1])] if keys else ()
    starts = [bisect_right(keys, txn.id) for txn in blocking]
    largest, sums = _largest_from(ordered, starts), _sums(ordered)
    by_txn = locks_by_txn(locks)
    for txn, start in zip(blocking, starts, strict=True):
        yield Blocker(txn, by_txn.get(txn.id, ()), len(ordered) - start, sums[start], largest[start])


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


def _sums(waiting: Iterable[Waiting]) -> list[int | None]:
    """Return, for each index, the bytes from there to the end; None if none of them are known."""
    sums: list[int | None] = [None]
    for location in reversed(list(waiting)):
        last = sums[-1]
        sums.append(last if location.bytes is None else (last or 0) + location.bytes)
    return sums[::-1]


def _largest_from(waiting: Sequence[Waiting], starts: Iterable[int]) -> dict[int, tuple[Waiting, ...]]:
    """Return, for each start, the largest locations from there to the end."""
    by_start: dict[int, tuple[Waiting, ...]] = {}
    largest: tuple[Waiting, ...] = ()
    end = len(waiting)
    for start in sorted(set(starts), reverse=True):
        largest = _largest_first([*largest, *waiting[start:end]])
        by_start[start], end = largest, start
    return by_start


def _largest_first(waiting: Iterable[Waiting]) -> tuple[Waiting, ...]:
    return tuple(sorted(waiting, key=lambda location: (-(location.bytes or 0), location.name))[:MOST_HELD])


def _by_lock(
    waiting: Sequence[Waiting], known: KnownTxns, locks: Sequence[Lock], *, whole_table: bool
) -> Iterable[Blocker]:
    """Return the owners of the locks on the waiting locations (Hive 3), or on any part of their tables.

    Args:
        whole_table: count the locks on all partitions of a table.
    """
    locks_on: defaultdict[tuple[str, str, str], list[Lock]] = defaultdict(list)
    for lock in locks:
        if not lock.is_waiting:
            locks_on[key_of(lock.database, lock.table, "" if whole_table else lock.partition)].append(lock)
    held: defaultdict[tuple[int, int], dict[str, Waiting]] = defaultdict(dict)
    for location in waiting:
        key = key_of(location.database, location.table, "" if whole_table else location.partition)
        for lock in locks_on.get(key, ()):
            held[_owner(lock)][location.name] = location
    return _blockers_of(held, known, locks)


def _locks_without_txn(waiting: Sequence[Waiting], known: KnownTxns, locks: Sequence[Lock]) -> Iterable[Blocker]:
    """Return locks without a transaction on locations without a queue entry: their clients may read what will go."""
    not_queued = [location for location in waiting if location.entry is None]
    without_txn = [lock for lock in locks if not lock.txn]
    return _by_lock(not_queued, known, without_txn, whole_table=False) if not_queued and without_txn else ()


def _owner(lock: Lock) -> tuple[int, int]:
    return (lock.txn, 0) if lock.txn else (0, lock.id)


def _blockers_of(
    held: Mapping[tuple[int, int], Mapping[str, Waiting]], known: KnownTxns, locks: Sequence[Lock]
) -> Iterable[Blocker]:
    txns = {txn.id: txn for txn in known.txns}
    parts: defaultdict[tuple[int, int], list[Lock]] = defaultdict(list)
    for lock in locks:
        parts[_owner(lock)].append(lock)
    for owner, by_name in held.items():
        waiting = list(by_name.values())
        total = _sums(waiting)[0]
        yield Blocker(txns.get(owner[0]), tuple(parts[owner]), len(waiting), total, _largest_first(waiting))
