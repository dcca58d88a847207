"""Make series for Prometheus of the status of all tables, and of the queue of a worker.

No label has the name of a table: the values of each are those of an enumeration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.overview.location_status import Use

if TYPE_CHECKING:  # the first needs packages that are installed only for a metastore
    from acidctl.hive.blocking import QueueView
    from acidctl.overview.warehouse_status import WarehouseStatus
    from acidctl.verbs.reading.inspect import Overview

Sample = tuple[str, tuple[str, ...], float]
"""The name, the values of its own labels, and the value of a series."""

QUEUE: dict[str, tuple[str, tuple[str, ...]]] = {
    "acidctl_queue_entries": ("Entries of Hive's queue of compactions, by their state.", ("state",)),
    "acidctl_queue_age_seconds": ("How long the oldest entry has been in that state.", ("state",)),
    "acidctl_queue_stuck": ("Entries of the queue that do not go on by themselves.", ()),
    "acidctl_transactions": ("Transactions that the metastore lists.", ("state",)),
    "acidctl_blockers": ("Transactions and locks that hold back cleaning.", ()),
    "acidctl_oldest_blocker_age_seconds": ("Age of the oldest transaction or lock that holds back cleaning.", ()),
}
"""Help and labels of the series about a metastore."""

STATE: dict[str, tuple[str, tuple[str, ...]]] = {
    "acidctl_state_locations": ("Locations that were looked at.", ()),
    "acidctl_state_bytes": ("Bytes on disk, by their use.", ("use",)),
    "acidctl_state_due": ("Compactions that the thresholds ask for.", ("kind",)),
    "acidctl_state_reclaimable_bytes": ("Bytes that a cleaning frees: now, within a day, or later.", ("when",)),
    "acidctl_state_held_back_bytes": ("Bytes that readers do not need and cleaning keeps.", ("reason",)),
    "acidctl_state_held_back_age_seconds": ("How long ago the oldest of them was superseded.", ("reason",)),
    "acidctl_state_trouble": ("Locations that need attention.", ("kind",)),
    **QUEUE,
}
"""Help and labels of all series."""


def state_samples(seen: Overview) -> Iterator[Sample]:
    """Yield the series of all locations, and those of the queue if a metastore was asked."""
    status, whole = seen.status, seen.status.whole
    yield "acidctl_state_locations", (), whole.locations
    for use in Use:
        yield "acidctl_state_bytes", (use.value,), whole.uses[use]
    for kind in CompactionKind:
        yield "acidctl_state_due", (kind.value,), whole.due[kind]
    free = {"now": whole.free.now, "within-a-day": whole.soon, "later": whole.free.later - whole.soon}
    for when, size in free.items():
        yield "acidctl_state_reclaimable_bytes", (when,), size
    yield from _held_back(status)
    trouble = {
        "failed": status.failed,
        "unfinished": status.unfinished_count,
        "refused": status.refused_count,
        "disagreeing": status.disagreeing,
    }
    for name, count in trouble.items():
        yield "acidctl_state_trouble", (name,), count
    if seen.queue:
        yield from queue_samples(seen.queue)


def _held_back(status: WarehouseStatus) -> Iterator[Sample]:
    sizes: Counter[str] = Counter()
    since: dict[str, float] = {}
    for kept in status.kept_back.values():
        code = kept.reason.code.value
        sizes[code] += kept.bytes
        if kept.since is not None:
            since[code] = min(kept.since, since.get(code, kept.since))
    for code, size in sizes.items():
        yield "acidctl_state_held_back_bytes", (code,), size
    for code, when in since.items():
        yield "acidctl_state_held_back_age_seconds", (code,), round(max(0.0, status.now - when))


def queue_samples(queue: QueueView) -> Iterator[Sample]:
    """Yield the series of a metastore's queue, and of its transactions; nothing waits for 0 seconds."""
    from acidctl.metastore.activity import TxnStatus  # noqa: PLC0415 - with thrift: only for a metastore
    from acidctl.metastore.queue import WAITING_STATES  # noqa: PLC0415 - with thrift: only for a metastore

    for state in WAITING_STATES:
        entries = [entry for entry in queue.queued if entry.state == state]
        ages = [queue.known.age(entry.since or entry.enqueued) or 0.0 for entry in entries]
        yield "acidctl_queue_entries", (state,), len(entries)
        yield "acidctl_queue_age_seconds", (state,), round(max(ages, default=0.0))
    yield "acidctl_queue_stuck", (), len(queue.stuck)
    states = Counter(txn.state for txn in queue.known.txns)
    for status in (TxnStatus.OPEN, TxnStatus.ABORTED):
        yield "acidctl_transactions", (status.value,), states[status]
    ages = [queue.known.age(blocker.started) or 0.0 for blocker in queue.blockers]
    yield "acidctl_blockers", (), len(queue.blockers)
    yield "acidctl_oldest_blocker_age_seconds", (), round(max(ages, default=0.0))
