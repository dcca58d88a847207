"""Operations of a worker on Hive's compaction queue (Hive 4): claim an entry, and report its outcome.

The server does not check who reports, and mostly not whether the entry still belongs to the worker: callers check.
"""

from __future__ import annotations

from dataclasses import replace

from acidctl import __version__
from acidctl.base.errors import AcidctlError, ConflictError
from acidctl.base.printable import printable
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable
from acidctl.metastore.interface import CompactionType
from acidctl.metastore.queue.compactions import WORKING, Compaction, find_compactions
from acidctl.metastore.wire import Method

_MOST_MESSAGE = 512


def claim(metastore: Metastore, worker: str, pool: str = "") -> interface.QueueEntry | None:
    """Take the oldest waiting entry of a pool; without a pool, of those without one or waiting for half a day.

    Returns:
        The entry, or None if nothing waits.

    Raises:
        UnknownMethod: the server is older than Hive 4.
        Unreachable: no answer; an entry may have been taken in this worker's name.
    """
    request = interface.FindNextCompactRequest(worker, __version__, pool or None)
    entry: interface.QueueEntry | None = metastore.call(interface.FIND_NEXT_COMPACT, request).entry
    return entry


def record_state(
    metastore: Metastore, entry: interface.QueueEntry, highest_write_id: int, run_as: str, txn: int
) -> interface.QueueEntry:
    """Record an entry's highest write id, user and transaction, and return the changed entry.

    From these, the commit derives which transactions the cleaner must wait for.
    """
    entry = replace(entry, highest_write_id=highest_write_id, run_as=run_as)
    metastore.call(interface.UPDATE_COMPACTOR_STATE, entry, txn)
    return entry


def record_job(metastore: Metastore, entry: interface.QueueEntry, job: str) -> None:
    """Record the name of the entry's job in the cluster."""
    metastore.call(interface.SET_HADOOP_JOBID, job, entry.id)


def require_worked_on_by(metastore: Metastore, entry: interface.QueueEntry, worker: str) -> Compaction:
    """Return the entry as the queue has it now.

    Raises:
        ConflictError: the entry is gone, not in work, or belongs to another worker.
    """
    queued = next(iter(find_compactions(metastore, id=entry.id)), None)
    if queued and queued.state == WORKING and queued.worker == worker:
        return queued
    why = f"it is {queued.state}, by {queued.worker or 'nobody'}" if queued else "the queue does not have it any more"
    raise ConflictError(f"the compaction {entry.id} of Hive's queue was taken from {worker}", why, "run it again")


def mark_compacted(metastore: Metastore, entry: interface.QueueEntry) -> None:
    """Hand an entry to the cleaner; the commit of its transaction must follow."""
    metastore.call(interface.MARK_COMPACTED, entry)


def mark_failed(metastore: Metastore, entry: interface.QueueEntry, why: str) -> bool:
    """Remove an entry from the queue as failed; return whether this is confirmed."""
    return _mark(metastore, interface.MARK_FAILED, entry, why)


def mark_refused(metastore: Metastore, entry: interface.QueueEntry, why: str) -> bool:
    """Remove an entry from the queue as refused; return whether this is confirmed."""
    return _mark(metastore, interface.MARK_REFUSED, entry, why)


def mark_cleaned(metastore: Metastore, entry: Compaction) -> None:
    """Remove an entry from the queue as succeeded; the metastore forgets aborted write ids up to its highest write id.

    The location must no longer hold rows of these write ids.

    Raises:
        ValueError: the entry lacks an id, type or highest write id: the metastore would forget all of the location.
        Unreachable: no answer; the entry may have been removed, and a second call does no harm.
    """
    kind = CompactionType.__members__.get(entry.kind.upper(), 0)
    if entry.id <= 0 or entry.highest_write_id <= 0 or not kind:
        raise ValueError(f"not an entry to be marked: {entry}")
    struct = interface.QueueEntry(
        entry.id,
        entry.database,
        entry.table,
        entry.partition or None,
        kind,
        highest_write_id=entry.highest_write_id,
        pool=entry.pool or None,
    )
    metastore.call(interface.MARK_CLEANED, struct)


def _mark(metastore: Metastore, method: Method, entry: interface.QueueEntry, why: str) -> bool:
    if not entry.id:
        return False  # the server would insert a new row
    message = printable(" ".join(why.split()))[:_MOST_MESSAGE]  # a name may hold bytes that no database accepts
    for _ in range(2):
        try:
            metastore.call(method, replace(entry, error=message))
        except Unreachable:
            continue
        except AcidctlError:
            return False  # the entry is gone
        return True
    return False
