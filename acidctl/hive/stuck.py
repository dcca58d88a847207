"""Detection of queue entries that will not proceed by themselves, and the cause."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from acidctl.metastore.activity import KnownTxns, Lock, key_of
from acidctl.metastore.queue import COMPACTIONS, INITIATED, READY, WAITING_STATES, WORKING, Compaction
from acidctl.metastore.server import Switches

SANE_SECONDS = 3600.0
"""Seconds after which an entry without progress is suspicious."""

_NO_ATTEMPT = ("did not initiate", "attempted")


class Cause(StrEnum):
    """Why an entry is stuck; the values are stable, as they appear in JSON."""

    WORKER_LOST = "worker-lost"
    TIMED_OUT = "timed-out"
    NO_JOB = "no-job"
    NO_WORKER = "no-worker"
    POOL_NOT_SERVED = "pool-not-served"
    TXN_ABORTED = "transaction-aborted"
    BLOCKED = "blocked"
    NOT_CLEANED = "not-cleaned"
    GIVEN_UP = "given-up"


@dataclass(frozen=True, slots=True)
class Stuck:
    """An entry that is stuck.

    Attributes:
        seconds: how long it has been in its state, if known.
        blockers: of a blocked entry, the oldest open transactions below its `next_txn`; `blocker_count` counts all.
        locks: before Hive 4, the locks on its location that block it; from Hive 4.2 on, those on its table.
        failures: of a location that was given up, its number of consecutive failed compactions.
    """

    entry: Compaction
    cause: Cause
    seconds: float | None = None
    blockers: tuple[int, ...] = ()
    blocker_count: int = 0
    locks: tuple[Lock, ...] = ()
    failures: int = 0


_MOST_BLOCKERS = 10


def find_stuck(
    entries: Sequence[Compaction], known: KnownTxns, switches: Switches, locks: Sequence[Lock] = ()
) -> list[Stuck]:
    """Return the stuck entries of the queue, followed by the locations that the initiator has given up.

    Args:
        entries: the whole queue and its history, listed after `known`: if a transaction had ended by then, its entry
            is up to date.
        locks: of all tables; needed only where :attr:`Switches.waits_for_locks`.
    """

    def place(one: Lock | Compaction) -> tuple[str, str, str]:
        # Hive 3 waits for locks on the location itself, not on its table; Hive 4.2 for readers of the table.
        return key_of(one.database, one.table, "" if switches.by_write_id else one.partition)

    open_ids = sorted(txn.id for txn in known.open)
    last_taken: dict[str, float] = {}
    for entry in entries:
        if entry.started is not None and (entry.worker or entry.state != INITIATED):
            last_taken[entry.pool] = max(entry.started, last_taken.get(entry.pool, 0.0))
    held_locks: defaultdict[tuple[str, str, str], list[Lock]] = defaultdict(list)
    for lock in locks:
        if not lock.is_waiting:
            held_locks[place(lock)].append(lock)
    stuck: list[Stuck | None] = []
    for entry in entries:
        if entry.state == INITIATED:
            stuck.append(_waiting(entry, known, switches, last_taken))
        elif entry.state == WORKING:
            stuck.append(_working(entry, known, switches, frozenset(open_ids)))
        elif entry.state == READY:
            stuck.append(_ready(entry, known, switches, open_ids, held_locks.get(place(entry), ())))
    given_up_locations = [
        Stuck(last, Cause.GIVEN_UP, known.age(last.ended), failures=count)
        for last, count in given_up(entries, switches.most_failures)
    ]
    return [*filter(None, stuck), *sorted(given_up_locations, key=lambda location: location.entry.name)]


def _waiting(entry: Compaction, known: KnownTxns, switches: Switches, last_taken: dict[str, float]) -> Stuck | None:
    waited = known.age(entry.enqueued)
    if not switches.workers and not switches.workers_elsewhere:
        return Stuck(entry, Cause.NO_WORKER, waited)
    # Workers take the oldest entry first: if one has taken a later entry of this pool, it passed this one over.
    if waited is None or waited < SANE_SECONDS or last_taken.get(entry.pool, 0.0) > (entry.enqueued or 0.0):
        return None
    return Stuck(entry, Cause.POOL_NOT_SERVED if entry.named_pool else Cause.NO_WORKER, waited)


def _working(entry: Compaction, known: KnownTxns, switches: Switches, open_ids: frozenset[int]) -> Stuck | None:
    worked = known.age(entry.started)
    if entry.txn and entry.txn <= known.high_watermark and entry.txn not in open_ids:
        return Stuck(entry, Cause.WORKER_LOST, worked)
    if worked is None:
        return None
    if worked > switches.worker_timeout:
        return Stuck(entry, Cause.TIMED_OUT, worked)
    # A worker whose transaction is open is alive, because it sends heartbeats.
    if worked > SANE_SECONDS and not entry.job and not entry.txn:
        return Stuck(entry, Cause.NO_JOB, worked)
    return None


def _ready(
    entry: Compaction, known: KnownTxns, switches: Switches, open_ids: Sequence[int], locks: Sequence[Lock]
) -> Stuck | None:
    waited = known.age(entry.committed)
    if entry.txn and entry.kind in COMPACTIONS and entry.txn in known.aborted_ids:
        return Stuck(entry, Cause.TXN_ABORTED, waited)
    if locks:
        return Stuck(entry, Cause.BLOCKED, waited, locks=tuple(locks))
    if entry.next_txn and not switches.by_write_id:
        count = bisect_left(open_ids, entry.next_txn)
        if count:
            return Stuck(entry, Cause.BLOCKED, waited, tuple(open_ids[: min(count, _MOST_BLOCKERS)]), count)
    if waited is not None and waited > SANE_SECONDS:
        return Stuck(entry, Cause.NOT_CLEANED, waited)
    return None


def given_up(entries: Iterable[Compaction], most_failures: int) -> list[tuple[Compaction, int]]:
    """Return the locations whose last compactions all failed, so that the initiator requests no more.

    Returns:
        The newest failed entry and the number of failures, for each location without a waiting entry.
    """
    by_name: defaultdict[str, list[Compaction]] = defaultdict(list)
    waiting = set()
    for entry in entries:
        if entry.state in WAITING_STATES:
            waiting.add(entry.name)
        elif entry.state not in _NO_ATTEMPT:
            by_name[entry.name].append(entry)
    locations = []
    for name, past in by_name.items():
        newest_first = sorted(past, key=lambda entry: -entry.id)
        failed = list(takewhile(lambda entry: entry.state == "failed", newest_first))
        if failed and name not in waiting and len(failed) >= most_failures:
            locations.append((failed[0], len(failed)))
    return locations
