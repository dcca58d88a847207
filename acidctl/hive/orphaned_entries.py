"""Names of workers, and cleanup of the queue entries and transactions that dead workers leave behind."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Container
from contextlib import suppress
from dataclasses import replace

from acidctl.base.errors import AcidctlError, ConflictError
from acidctl.location.change.owner import Owner, started_at
from acidctl.metastore import interface
from acidctl.metastore.activity import find_transactions
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import CompactionType
from acidctl.metastore.queue import queue_work
from acidctl.metastore.queue.compactions import (
    ACIDCTL,
    AFTER_DEATH,
    INITIATED,
    READY,
    WORKING,
    Compaction,
    Wish,
    abort_compactions,
    find_compactions,
    kind_of,
    number_of,
    read_properties,
    request_compaction,
)

ABORTED_COMPACTION = 50006
"""Hive's error code for the abort of a compaction's transaction."""

_OWN_POOL = re.compile(
    r"(?:(acidctl-.+-[0-9]+\.[0-9]+-[0-9]+)-[0-9a-f]{12}|acidctl-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
"""Pools of a single compaction, which no other worker uses; mostly, the worker's name is before the last dash."""

COMPACTED = (CompactionType.MINOR, CompactionType.MAJOR, CompactionType.REBALANCE)
"""Types of entries that acidctl carries out."""

_MOST_POOL = 128
"""Maximum length of a pool's name in the metastore's tables."""

_NUMBERS = itertools.count(1)
_NAME = re.compile(r"acidctl-(.+)-([0-9]{1,10})\.([0-9]{1,20})-[0-9]+")
_NO_PID = 1 << 31
"""Process ids are below this."""


def worker_id() -> str:
    """Return a new name: ``acidctl-<host>-<process>.<its start>-<number>``.

    It does not begin with the host: an initiator of Hive, when it starts, takes back the entries of all workers whose
    names begin with its own host.
    """
    this = Owner.this()
    return f"acidctl-{this.host}-{this.pid}.{this.started}-{next(_NUMBERS)}"


def is_dead(worker: str) -> bool:
    """Return whether `worker` is a worker of acidctl on this machine whose process has certainly ended."""
    match = _NAME.fullmatch(worker)
    if not match or not 0 < int(match[2]) < _NO_PID:
        return False
    return Owner(match[1], int(match[2]), int(match[3]), "", 0.0).is_dead()


def own_pool(worker: str) -> str:
    """Return the name of a new pool for a single compaction."""
    name = f"{worker}-{uuid.uuid4().hex[:12]}"
    return name if len(name) <= _MOST_POOL else f"acidctl-{uuid.uuid4()}"


def give_back(metastore: Metastore, entry: interface.QueueEntry, why: str, initiator: str = ACIDCTL) -> bool:
    """Replace a claimed entry by a new request in the same pool, as a claimed entry cannot become waiting again.

    The entry is marked as refused and not as failed, because Hive gives a table up after some failures. An entry in the
    pool of a single compaction is not requested again, because no worker would take it.

    Returns:
        Whether the removal of the entry is confirmed.
    """
    if not entry.pool:  # the answer to a claim does not contain the pool
        with suppress(AcidctlError, StopIteration):
            entry = replace(entry, pool=next(one.named_pool for one in find_compactions(metastore, id=entry.id)))
    if not queue_work.mark_refused(metastore, entry, why):
        return False
    if not entry.type or _OWN_POOL.fullmatch(entry.pool or ""):
        return True
    wish = Wish(
        entry.database,
        entry.table,
        entry.partition or "",
        kind_of(entry.type),
        pool=entry.pool or "",
        properties=read_properties(entry.properties or ""),
        buckets=entry.buckets if entry.buckets and entry.buckets > 0 else None,
        order_by=entry.order_by or "",
        run_as=entry.run_as or "",
        initiator=initiator,
    )
    for _ in range(2):  # after a lost answer, the server refuses a duplicate
        with suppress(AcidctlError):
            request_compaction(metastore, wish)
            break
    return True


def free(metastore: Metastore, entry: Compaction, why: str, *, again: bool = True, initiator: str = ACIDCTL) -> bool:
    """End an abandoned entry and its transaction; return whether this is confirmed.

    Args:
        again: request the compaction again; else mark the entry as failed.
        initiator: of the new request, see :class:`Wish`.
    """
    struct = _struct_of(entry)
    with suppress(ConflictError):  # another worker has the entry now
        queue_work.require_worked_on_by(metastore, struct, entry.worker)
        if entry.txn:
            with suppress(AcidctlError):
                metastore.call(interface.ABORT_TXN, interface.AbortTxnRequest(entry.txn, ABORTED_COMPACTION))
        return give_back(metastore, struct, why, initiator) if again else queue_work.mark_failed(metastore, struct, why)
    return False


def free_dead(metastore: Metastore) -> list[int]:
    """Free the entries of dead workers of this machine, and ready entries whose transactions were aborted.

    Returns:
        The ids of the freed entries.
    """
    dead = [entry for entry in find_compactions(metastore, state=WORKING) if is_dead(entry.worker)]
    freed = [entry.id for entry in dead if _free_of_dead(metastore, entry)]
    freed += [entry.id for entry in find_compactions(metastore, state=INITIATED) if free_single(metastore, entry)]
    ready = find_compactions(metastore, state=READY)
    if uncommitted := [entry for entry in ready if entry.txn and entry.committed is None]:
        aborted = find_transactions(metastore).aborted_ids
        freed += [entry.id for entry in uncommitted if free_uncommitted(metastore, entry, aborted)]
    return freed


def _free_of_dead(metastore: Metastore, entry: Compaction) -> bool:
    """Mark an entry as failed if its worker died: it may be the cause, and would kill the next worker as well.

    The compaction is requested once more if the entry cannot be the cause: the worker had not yet begun the transaction
    in which it reads, or the machine was restarted since.
    """
    is_innocent = not entry.txn or (entry.started or 0.0) < started_at()
    is_first = not entry.initiator.endswith(f"-{AFTER_DEATH}")
    again = (is_innocent and is_first) or number_of(entry.kind) not in COMPACTED
    why = f"its worker {entry.worker} died"
    if not again:
        why += f": it is not retried automatically; ALTER TABLE ... COMPACT '{entry.kind}' requests it again"
    return free(metastore, entry, why, again=again, initiator=AFTER_DEATH)


def free_uncommitted(metastore: Metastore, entry: Compaction, aborted: Container[int]) -> bool:
    """Give back an entry whose worker marked it as compacted and died before the commit.

    The entry stays if Hive's cleaner, which would end it, has begun.

    Args:
        aborted: ids of aborted transactions.

    Returns:
        Whether the removal of the entry is confirmed.
    """
    is_ready = entry.state == READY and entry.committed is None and entry.cleaner_start is None
    if not is_ready or entry.txn not in aborted:
        return False
    if entry not in find_compactions(metastore, id=entry.id):
        return False
    return give_back(metastore, _struct_of(entry), f"its transaction {entry.txn} was aborted before the commit")


def free_single(metastore: Metastore, entry: Compaction) -> bool:
    """End an entry of a single compaction whose process was killed; return whether this is confirmed.

    In any pool, this also ends a ready entry whose transaction was aborted, as it would stay ready forever.
    """
    if entry.state == READY:
        if not entry.txn or entry.committed is not None or entry.txn not in find_transactions(metastore).aborted_ids:
            return False
        return queue_work.mark_failed(metastore, _struct_of(entry), "its process died before the commit")
    pool = _OWN_POOL.fullmatch(entry.pool)
    if not pool:
        return False
    if entry.state == INITIATED:
        return is_dead(pool[1] or "") and abort_compactions(metastore, [entry.id]).get(entry.id, (False, ""))[0]
    if entry.state != WORKING or not is_dead(entry.worker):
        return False
    return free(metastore, entry, f"its process {entry.worker} died")


def _struct_of(entry: Compaction) -> interface.QueueEntry:
    return interface.QueueEntry(
        entry.id,
        entry.database,
        entry.table,
        entry.partition or None,
        number_of(entry.kind),
        pool=entry.named_pool or None,
    )
