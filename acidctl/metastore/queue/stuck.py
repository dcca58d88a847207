"""Which entries of the queue of compactions will not go on by themselves, and why."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from acidctl.metastore.activity import KnownTxns, Lock, key_of
from acidctl.metastore.queue.compactions import INITIATED, READY, WAITING_STATES, WORKING, Compaction
from acidctl.metastore.server import Switches

SANE_SECONDS = 3600.0
"""What takes longer than this without a sign of life is looked at."""

_NO_ATTEMPT = ("did not initiate", "attempted")
_COMPACTIONS = ("major", "minor", "rebalance")


class Cause(StrEnum):
    """Why an entry is stuck, in a word that programs may rely on."""

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
        seconds: since when, where the server tells.
        blockers: of a blocked one the open transactions below its `next_txn`, oldest first, but for the many that come
            after the first ones; `blocker_count` has their number.
        locks: before Hive 4 the locks on its location, which hold it back there.
        failures: of a location that was given up, how many compactions failed one after another.
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
    """Those of the queue, then locations of which the initiator has given up.

    Args:
        entries: the whole queue and its history, asked for after `known`: what these entries say of transactions
            that had ended by then is certain.
        locks: of all tables; only before Hive 4 they are of interest.
    """
    served = _last_taken(entries)
    open_ids = sorted(txn.id for txn in known.open)
    by_place = _by_place(locks)
    found: list[Stuck] = []
    for entry in entries:
        if entry.state == INITIATED:
            one = _waiting(entry, known, switches, served)
        elif entry.state == WORKING:
            one = _working(entry, known, switches, frozenset(open_ids))
        elif entry.state == READY:
            one = _ready(entry, known, switches, open_ids) if switches.is_hive4 else _locked(entry, by_place)
        else:
            one = None
        if one:
            found.append(one)
    return [*found, *_given_up(entries, known, switches)]


def _last_taken(entries: Iterable[Compaction]) -> dict[str, float]:
    """When a worker last took an entry of each pool."""
    last: dict[str, float] = {}
    for entry in entries:
        if entry.started is not None and (entry.worker or entry.state != INITIATED):
            last[entry.pool] = max(entry.started, last.get(entry.pool, 0.0))
    return last


def _waiting(entry: Compaction, known: KnownTxns, switches: Switches, served: dict[str, float]) -> Stuck | None:
    waited = known.age(entry.enqueued)
    if not switches.workers and not switches.workers_elsewhere:
        return Stuck(entry, Cause.NO_WORKER, waited)
    # Workers take the oldest first: whoever took another one of this pool since then would have taken this one.
    if waited is None or waited < SANE_SECONDS or served.get(entry.pool, 0.0) > (entry.enqueued or 0.0):
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
    # One with an open transaction lives: its worker gives signs of life.
    if worked > SANE_SECONDS and not entry.job and not entry.txn:
        return Stuck(entry, Cause.NO_JOB, worked)
    return None


def _ready(entry: Compaction, known: KnownTxns, switches: Switches, open_ids: Sequence[int]) -> Stuck | None:
    waited = known.age(entry.committed)
    if entry.txn and entry.kind in _COMPACTIONS and entry.txn in known.aborted_ids:
        return Stuck(entry, Cause.TXN_ABORTED, waited)
    if entry.next_txn and not switches.by_write_id:
        count = bisect_left(open_ids, entry.next_txn)
        if count:
            return Stuck(entry, Cause.BLOCKED, waited, tuple(open_ids[: min(count, _MOST_BLOCKERS)]), count)
    if waited is not None and waited > SANE_SECONDS:
        return Stuck(entry, Cause.NOT_CLEANED, waited)
    return None


def _by_place(locks: Sequence[Lock]) -> Mapping[tuple[str, str, str], list[Lock]]:
    found: defaultdict[tuple[str, str, str], list[Lock]] = defaultdict(list)
    for lock in locks:
        if not lock.is_waiting:
            found[key_of(lock.database, lock.table, lock.partition)].append(lock)
    return found


def _locked(entry: Compaction, by_place: Mapping[tuple[str, str, str], list[Lock]]) -> Stuck | None:
    """Hive 3: the locks on the very location are waited for."""
    locks = by_place.get(key_of(entry.database, entry.table, entry.partition))
    return Stuck(entry, Cause.BLOCKED, locks=tuple(locks)) if locks else None


def _given_up(entries: Sequence[Compaction], known: KnownTxns, switches: Switches) -> list[Stuck]:
    """Locations of which the last compactions all failed: the initiator asks for none any more, and says nothing."""
    found = [
        Stuck(last, Cause.GIVEN_UP, known.age(last.ended), failures=count)
        for last, count in given_up(entries, switches.most_failures)
    ]
    return sorted(found, key=lambda one: one.entry.name)


def given_up(entries: Iterable[Compaction], most_failures: int) -> list[tuple[Compaction, int]]:
    """Of each location of which the last compactions all failed, and none waits: the newest, and how many they are.

    Args:
        most_failures: one after another, that an initiator puts up with.
    """
    by_name: defaultdict[str, list[Compaction]] = defaultdict(list)
    waiting = set()
    for entry in entries:
        if entry.state in WAITING_STATES:
            waiting.add(entry.name)
        elif entry.state not in _NO_ATTEMPT:
            by_name[entry.name].append(entry)
    found = []
    for name, past in by_name.items():
        newest_first = sorted(past, key=lambda one: -one.id)
        failed = list(takewhile(lambda one: one.state == "failed", newest_first))
        if failed and name not in waiting and len(failed) >= most_failures:
            found.append((failed[0], len(failed)))
    return found
