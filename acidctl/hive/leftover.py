"""Entries of Hive's queue that nobody works on any more: given back, ended, and their transactions with them."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Container
from contextlib import suppress
from dataclasses import replace

from acidctl.errors import AcidctlError, ConflictError
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
"""Hive's code for the abort of a compaction's transaction."""

_OWN_POOL = re.compile(
    r"(?:(acidctl-.+-[0-9]+\.[0-9]+-[0-9]+)-[0-9a-f]{12}|acidctl-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
"""Pools of a single compaction, into which nobody else looks; before the last dash is its worker, but of some."""

COMPACTED = (CompactionType.MINOR, CompactionType.MAJOR, CompactionType.REBALANCE)
"""Types of entries that acidctl carries out; all others are somebody else's."""

_MOST_POOL = 128
"""Characters of a pool that the metastore's tables take."""

_NUMBERS = itertools.count(1)
_NAME = re.compile(r"acidctl-(.+)-([0-9]{1,10})\.([0-9]{1,20})-[0-9]+")
_NO_PID = 1 << 31
"""Process ids are below this."""


def worker_id() -> str:
    """A new name: ``acidctl-<host>-<process>.<its start>-<number>``.

    It does not begin with the name of a host: when an initiator starts, Hive takes the entries of workers back whose
    names begin with that of its own.
    """
    this = Owner.this()
    return f"acidctl-{this.host}-{this.pid}.{this.started}-{next(_NUMBERS)}"


def is_dead(worker: str) -> bool:
    """Whether it is a worker of ours, on this machine, whose process has certainly ended."""
    found = _NAME.fullmatch(worker)
    if not found or not 0 < int(found[2]) < _NO_PID:
        return False
    return Owner(found[1], int(found[2]), int(found[3]), "", 0.0).is_dead()


def own_pool(worker: str) -> str:
    """A new pool, of a single compaction."""
    name = f"{worker}-{uuid.uuid4().hex[:12]}"
    return name if len(name) <= _MOST_POOL else f"acidctl-{uuid.uuid4()}"


def give_back(metastore: Metastore, entry: interface.QueueEntry, why: str, initiator: str = ACIDCTL) -> bool:
    """Ask for the same compaction again, in the same pool, in place of an entry: none goes back to waiting.

    It counts as refused and not as failed: after some failures Hive gives a table up. In the pool of a single
    compaction nobody looks any more, and it is not asked for again.

    Returns:
        Whether the entry is known to be out of the queue.
    """
    if not entry.pool:  # the answer to a claim does not tell it
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
    for _ in range(2):  # were the first one heard, the second would be refused
        with suppress(AcidctlError):
            request_compaction(metastore, wish)
            break
    return True


def free(metastore: Metastore, one: Compaction, why: str, *, again: bool = True, initiator: str = ACIDCTL) -> bool:
    """End an entry that nobody works on, and its transaction; whether that is known to be done.

    Args:
        again: ask for it once more; else it has failed.
        initiator: see :class:`Wish`; it names who asks again.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    entry = _entry(one)
    with suppress(ConflictError):  # meanwhile it was given to another worker
        queue_work.require_worked_on_by(metastore, entry, one.worker)
        if one.txn:
            with suppress(AcidctlError):
                metastore.call(interface.ABORT_TXN, interface.AbortTxnRequest(one.txn, ABORTED_COMPACTION))
        return give_back(metastore, entry, why, initiator) if again else queue_work.mark_failed(metastore, entry, why)
    return False


def free_dead(metastore: Metastore) -> list[int]:
    """Give entries back that workers of this machine have left behind, who ended without a word, and those that were
    handed to the cleaner by a transaction that was aborted then.

    Returns:
        Their ids.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    dead = [one for one in find_compactions(metastore, state=WORKING) if is_dead(one.worker)]
    freed = [one.id for one in dead if _free_of_dead(metastore, one)]
    freed += [one.id for one in find_compactions(metastore, state=INITIATED) if free_single(metastore, one)]
    if left := [one for one in find_compactions(metastore, state=READY) if one.txn and one.committed is None]:
        aborted = find_transactions(metastore).aborted_ids
        freed += [one.id for one in left if free_uncommitted(metastore, one, aborted)]
    return freed


def _free_of_dead(metastore: Metastore, one: Compaction) -> bool:
    """Mark an entry as failed if its worker died: it may be the cause, and would kill the next worker as well.

    The compaction is requested once more if the entry cannot be the cause: the worker had not yet begun the transaction
    in which it reads, or the machine was restarted since.
    """
    is_innocent = not one.txn or (one.started or 0.0) < started_at()
    is_first = not one.initiator.endswith(f"-{AFTER_DEATH}")
    again = (is_innocent and is_first) or number_of(one.kind) not in COMPACTED
    why = f"its worker {one.worker} died"
    if not again:
        why += f": it is not retried automatically; ALTER TABLE ... COMPACT '{one.kind}' requests it again"
    return free(metastore, one, why, again=again, initiator=AFTER_DEATH)


def free_uncommitted(metastore: Metastore, one: Compaction, aborted: Container[int]) -> bool:
    """Give an entry back whose process died between its last two words, and that no commit can follow any more; where
    Hive's cleaner, the only one who would end it, has not begun. Whether it is known to be out of the queue.

    Args:
        aborted: transactions that are known to be.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    if one.state != READY or one.committed is not None or one.txn not in aborted or one.cleaner_start is not None:
        return False
    if one not in find_compactions(metastore, id=one.id):
        return False
    return give_back(metastore, _entry(one), f"its transaction {one.txn} was aborted before the commit")


def free_single(metastore: Metastore, one: Compaction) -> bool:
    """End an entry of a single compaction whose process was killed; whether that is known to be done.

    Its worker is dead, whether it has begun or not. Or it was handed to the cleaner by a transaction that was never
    committed, and stays for ever, of whatever pool.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    if one.state == READY:
        if not one.txn or one.committed is not None or one.txn not in find_transactions(metastore).aborted_ids:
            return False
        return queue_work.mark_failed(metastore, _entry(one), "its process died before the commit")
    pool = _OWN_POOL.fullmatch(one.pool)
    if not pool:
        return False
    if one.state == INITIATED:
        return is_dead(pool[1] or "") and abort_compactions(metastore, [one.id]).get(one.id, (False, ""))[0]
    return one.state == WORKING and is_dead(one.worker) and free(metastore, one, f"its process {one.worker} died")


def _entry(one: Compaction) -> interface.QueueEntry:
    return interface.QueueEntry(
        one.id, one.database, one.table, one.partition or None, number_of(one.kind), pool=one.named_pool or None
    )
