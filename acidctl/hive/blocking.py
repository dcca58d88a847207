"""Who holds back which cleaning: open transactions on Hive 4, locks on Hive 3, with the bytes that wait for each.

Hive 4 cleans an entry when no transaction is open any more that began before its compaction was committed, of whatever
table. Hive 3 cleans one when the locks on its location are gone that were there when the cleaner first saw it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from acidctl.hive.waiting import Waiting
from acidctl.metastore.activity import KnownTxns, Lock, Txn, key_of, locks_by_txn
from acidctl.metastore.server import Switches

MOST_HELD = 100
"""Entries that are named for one that holds them back."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A transaction, or a lock without one, for which cleanings wait.

    Attributes:
        txn: None for a lock without a transaction, or of one that is not known any more.
        locks: its own; of a lock without a transaction all of its components.
        count: how many locations wait for it.
        bytes: of all of them; None where of none it is known.
        holds: those with the most bytes first, at most :data:`MOST_HELD`.
    """

    txn: Txn | None
    locks: tuple[Lock, ...]
    count: int
    bytes: int | None
    holds: tuple[Waiting, ...]

    @property
    def user(self) -> str:
        """Whose it is."""
        return self.txn.user if self.txn else self.locks[0].user

    @property
    def host(self) -> str:
        """Where its client runs."""
        return self.txn.host if self.txn else self.locks[0].host

    @property
    def query(self) -> str:
        """What is known of its work: what the transaction says, or its locks; empty where nothing is."""
        said = [self.txn.query, self.txn.agent] if self.txn else []
        said += [lock.agent for lock in self.locks]
        return next(filter(None, said), "")

    @property
    def started(self) -> float | None:
        """When it began, seconds since the epoch by the server's clock."""
        return self.txn.started if self.txn else self.locks[0].acquired

    @property
    def last_heartbeat(self) -> float | None:
        """Its last sign of life."""
        return self.txn.last_heartbeat if self.txn else self.locks[0].last_heartbeat


def find_blockers(
    waiting: Sequence[Waiting], known: KnownTxns, locks: Sequence[Lock], switches: Switches
) -> list[Blocker]:
    """Who holds back what, the one first that holds back most bytes.

    Args:
        known: asked for after what waits.
    """
    if switches.is_hive4 and not switches.by_write_id:
        blockers = [*_by_order(waiting, known, locks), *_orphans(waiting, known, locks)]
    else:
        blockers = list(_by_lock(waiting, known, locks, whole_table=switches.by_write_id))
    return sorted(blockers, key=_weight)


def _weight(blocker: Blocker) -> tuple[int, int, float, int]:
    number = blocker.txn.id if blocker.txn else blocker.locks[0].id
    return -(blocker.bytes or 0), -blocker.count, blocker.started or 0.0, number


def _by_order(waiting: Sequence[Waiting], known: KnownTxns, locks: Sequence[Lock]) -> Iterable[Blocker]:
    """Hive 4: every open transaction below that for which an entry waits.

    Sorted by that, what a transaction holds back is the end of one list: ten thousand of them are no matter.
    """
    txns = known.open
    ids = [txn.id for txn in txns]
    bound_of = _bounds(txns)
    bounds = [(bound, one) for one in waiting if (bound := bound_of(one))]
    bounds.sort(key=lambda pair: pair[0])
    keys = [bound for bound, _ in bounds]
    ordered = [one for _, one in bounds]
    blocking = txns[: bisect_left(ids, keys[-1])] if keys else ()
    places = [bisect_right(keys, txn.id) for txn in blocking]
    largest, sums = _largest_from(ordered, places), _sums(ordered)
    by_txn = locks_by_txn(locks)
    for txn, at in zip(blocking, places, strict=True):
        yield Blocker(txn, by_txn.get(txn.id, ()), len(ordered) - at, sums[at], largest[at])


def _bounds(txns: Sequence[Txn]) -> Callable[[Waiting], int]:
    """Open transactions below this are waited for; 0 for none."""
    begun = sorted((txn.started, txn.id) for txn in txns if txn.started is not None)
    starts = [start for start, _ in begun]
    highest = list(accumulate((txn for _, txn in begun), max))

    def bound(one: Waiting) -> int:
        if one.entry:
            return one.entry.next_txn
        # A table that is not in the queue: whoever began before its compaction appeared may read what it replaced.
        before = bisect_left(starts, one.replaced) if one.replaced is not None else 0
        return highest[before - 1] + 1 if before else 0

    return bound


def _sums(waiting: Iterable[Waiting]) -> list[int | None]:
    """Of each and all after it, the bytes; None where none of them is known."""
    sums: list[int | None] = [None]
    for one in reversed(list(waiting)):
        last = sums[-1]
        sums.append(last if one.bytes is None else (last or 0) + one.bytes)
    return sums[::-1]


def _largest_from(waiting: Sequence[Waiting], places: Iterable[int]) -> dict[int, tuple[Waiting, ...]]:
    """The largest of what stands at a place or behind it, for some places."""
    found: dict[int, tuple[Waiting, ...]] = {}
    largest: list[Waiting] = []
    end = len(waiting)
    for at in sorted(set(places), reverse=True):
        largest = list(_largest_first([*largest, *waiting[at:end]]))
        found[at], end = tuple(largest), at
    return found


def _largest_first(waiting: Iterable[Waiting]) -> tuple[Waiting, ...]:
    return tuple(sorted(waiting, key=lambda one: (-(one.bytes or 0), one.name))[:MOST_HELD])


def _by_lock(
    waiting: Sequence[Waiting], known: KnownTxns, locks: Sequence[Lock], *, whole_table: bool
) -> Iterable[Blocker]:
    """Hive 3: the locks on the very location; where the writes of a table decide, those on the table and on all of it.

    A lock of a transaction that is not open any more is none: it goes with it.
    """
    on: defaultdict[tuple[str, str, str], list[Lock]] = defaultdict(list)
    for lock in locks:
        if not lock.is_waiting:
            on[key_of(lock.database, lock.table, "" if whole_table else lock.partition)].append(lock)
    held: defaultdict[tuple[int, int], dict[str, Waiting]] = defaultdict(dict)
    for one in waiting:
        for lock in on.get(key_of(one.database, one.table, "" if whole_table else one.partition), ()):
            held[_owner(lock)][one.name] = one
    return _of_owners(held, known, locks)


def _orphans(waiting: Sequence[Waiting], known: KnownTxns, locks: Sequence[Lock]) -> Iterable[Blocker]:
    """Hive 4: locks without a transaction, on tables that were asked for: their clients read what is to go."""
    asked = [one for one in waiting if one.entry is None]
    alone = [lock for lock in locks if not lock.txn]
    return _by_lock(asked, known, alone, whole_table=False) if asked and alone else ()


def _owner(lock: Lock) -> tuple[int, int]:
    return (lock.txn, 0) if lock.txn else (0, lock.id)


def _of_owners(
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
