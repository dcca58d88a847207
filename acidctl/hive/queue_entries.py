"""Give entries back to Hive's queue: a worker's own, those of dead workers, and those for other workers."""

from __future__ import annotations

import itertools
import math
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass, field, replace

from acidctl.base.errors import AcidctlError, ConflictError, NotFoundError
from acidctl.location.change.own_files import Owner, started_at
from acidctl.metastore import interface, queue
from acidctl.metastore.activity import find_transactions
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable
from acidctl.metastore.tables import get_table

ABORTED_COMPACTION = 50006
"""Hive's error code for the abort of a compaction's transaction."""

_OWN_POOL = re.compile(
    r"(?:(acidctl-.+-[0-9]+\.[0-9]+-[0-9]+)-[0-9a-f]{12}|acidctl-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
"""Pools of a single compaction, which no other worker uses; mostly, the worker's name is before the last dash."""

_MOST_POOL = 128
"""Maximum length of a pool's name in the metastore's tables."""

_NUMBERS = itertools.count(1)
_NAME = re.compile(r"acidctl-(.+)-([0-9]{1,10})\.([0-9]{1,20})-[0-9]+")
_NO_PID = 1 << 31
"""Process ids are below this."""

_PATIENCE = 60.0
"""Seconds that a foreign entry is left to its own worker while others wait behind it."""

_FRESH = 2.0
"""Seconds for which a listing of the queue is used: it may be long, and new entries are added at its end."""

_AGAIN = "it is requested again"
"""End of the error of an entry that was given back."""

_MOST_REASONS = 10_000
_UNSEEN = "cannot look at"


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


def give_back(metastore: Metastore, entry: interface.QueueEntry, why: str, initiator: str = queue.ACIDCTL) -> bool:
    """Replace a claimed entry by a new request in the same pool; return whether both steps are confirmed.

    A claimed entry cannot become waiting again. It is marked as refused and not as failed, because Hive gives a table
    up after some failures. If this process dies between the steps, :func:`ask_again` finds the entry by its error. An
    entry in the pool of a single compaction is not requested again, because no worker would take it.
    """
    if not entry.pool:  # the answer to a claim does not contain the pool
        with suppress(AcidctlError):
            if queued := queue.find_entry(metastore, entry.id):
                entry = replace(entry, pool=queued.named_pool)
    is_single = not entry.type or bool(_OWN_POOL.fullmatch(entry.pool or ""))
    is_ended = queue.mark_refused(metastore, entry, why if is_single else f"{why}: {_AGAIN}")
    return is_ended and (is_single or _request_again(metastore, entry, initiator))


def _request_again(metastore: Metastore, entry: interface.QueueEntry, initiator: str) -> bool:
    """Request the compaction of an entry that has ended; return whether it is in the queue."""
    wish = queue.Wish(
        entry.database,
        entry.table,
        entry.partition or "",
        queue.kind_of(entry.type),
        pool=entry.pool or "",
        properties=queue.read_properties(entry.properties or ""),
        buckets=entry.buckets if entry.buckets and entry.buckets > 0 else None,
        order_by=entry.order_by or "",
        run_as=entry.run_as or "",
        initiator=initiator,
    )
    for _ in range(2):  # after a lost answer, the server refuses a duplicate
        with suppress(AcidctlError):
            queue.request_compaction(metastore, wish)
            return True
    return False


def ask_again(metastore: Metastore, is_left: Callable[[str], bool]) -> list[int]:
    """Request the compactions that workers gave back and did not request again; return the ids of their entries.

    Args:
        is_left: says of a worker's name whether it has died or lost the metastore.
    """
    entries = queue.find_compactions(metastore, state=queue.REFUSED)
    refused = [entry for entry in entries if entry.error.endswith(_AGAIN) and is_left(entry.worker)]
    if not refused:
        return []
    newest: dict[tuple[str, str, str], int] = {}
    for entry in queue.find_compactions(metastore):
        newest[entry.key] = max(entry.id, newest.get(entry.key, 0))
    lost = [entry for entry in refused if newest.get(entry.key) == entry.id]
    return [entry.id for entry in lost if _request_again(metastore, entry.as_claimed(), queue.AFTER_DEATH)]


# --- entries of the dead ----------------------------------------------------------------------------------------------


def free(
    metastore: Metastore, entry: queue.Compaction, why: str, *, again: bool = True, initiator: str = queue.ACIDCTL
) -> bool:
    """End an abandoned entry and its transaction; return whether this is confirmed.

    Args:
        again: request the compaction again; else mark the entry as failed.
    """
    with suppress(ConflictError):  # another worker has the entry now
        queue.require_worked_on_by(metastore, entry.id, entry.worker)
        if entry.txn:
            with suppress(AcidctlError):
                metastore.call(interface.ABORT_TXN, interface.AbortTxnRequest(entry.txn, ABORTED_COMPACTION))
        claimed = entry.as_claimed()
        return give_back(metastore, claimed, why, initiator) if again else queue.mark_failed(metastore, claimed, why)
    return False


def free_dead(metastore: Metastore) -> list[int]:
    """Free the entries of dead workers of this machine, and those whose transactions were aborted; return their ids."""
    dead = [entry for entry in queue.find_compactions(metastore, state=queue.WORKING) if is_dead(entry.worker)]
    freed = [entry.id for entry in dead if _free_of_dead(metastore, entry)]
    freed += [
        entry.id for entry in queue.find_compactions(metastore, state=queue.INITIATED) if free_single(metastore, entry)
    ]
    ready = queue.find_compactions(metastore, state=queue.READY)
    if uncommitted := [entry for entry in ready if entry.txn and entry.committed is None]:
        aborted = find_transactions(metastore).aborted_ids
        freed += [entry.id for entry in uncommitted if free_uncommitted(metastore, entry, aborted)]
    return freed + ask_again(metastore, is_dead)


def _free_of_dead(metastore: Metastore, entry: queue.Compaction) -> bool:
    """Mark an entry as failed if its worker died: it may be the cause, and would kill the next worker as well.

    The compaction is requested once more if the entry cannot be the cause: the worker had not yet begun the transaction
    in which it reads, or the machine was restarted since. Entries for other workers are always requested again.
    """
    is_innocent = not entry.txn or (entry.started or 0.0) < started_at()
    is_first = not entry.initiator.endswith(f"-{queue.AFTER_DEATH}")
    again = (is_innocent and is_first) or bool(why_foreign(metastore, entry.as_claimed()))
    why = f"its worker {entry.worker} died"
    if not again:
        why += f": it is not retried automatically; ALTER TABLE ... COMPACT '{entry.kind}' requests it again"
    return free(metastore, entry, why, again=again, initiator=queue.AFTER_DEATH)


def free_uncommitted(metastore: Metastore, entry: queue.Compaction, aborted: Container[int]) -> bool:
    """Give back an entry whose worker marked it as compacted and died before the commit; return whether it is gone.

    The entry stays if Hive's cleaner, which would end it, has begun.
    """
    is_ready = entry.state == queue.READY and entry.committed is None and entry.cleaner_start is None
    if not is_ready or entry.txn not in aborted or entry not in queue.find_compactions(metastore, id=entry.id):
        return False
    return give_back(metastore, entry.as_claimed(), f"its transaction {entry.txn} was aborted before the commit")


def free_single(metastore: Metastore, entry: queue.Compaction) -> bool:
    """End an entry of a single compaction whose process was killed; return whether this is confirmed.

    In any pool, this also ends a ready entry whose transaction was aborted, as it would stay ready forever.
    """
    if entry.state == queue.READY:
        if not entry.txn or entry.committed is not None or entry.txn not in find_transactions(metastore).aborted_ids:
            return False
        return queue.mark_failed(metastore, entry.as_claimed(), "its process died before the commit")
    pool = _OWN_POOL.fullmatch(entry.pool)
    if not pool:
        return False
    if entry.state == queue.INITIATED:
        return is_dead(pool[1] or "") and queue.abort_compactions(metastore, [entry.id]).get(entry.id, (False, ""))[0]
    if entry.state != queue.WORKING or not is_dead(entry.worker):
        return False
    return free(metastore, entry, f"its process {entry.worker} died")


# --- entries for other workers ----------------------------------------------------------------------------------------


def why_foreign(metastore: Metastore, entry: interface.QueueEntry) -> str:
    """Return why an entry is for another worker, as a sentence; empty if it is for acidctl, or its table is gone."""
    name = f"{entry.database}.{entry.table}"
    if queue.kind_of(entry.type) not in queue.COMPACTIONS:
        return f"acidctl does not run compactions of type {queue.kind_of(entry.type)}, as requested for {name}"
    try:
        table = get_table(metastore, entry.database, entry.table)
    except NotFoundError:
        return ""
    except Unreachable:
        raise
    except AcidctlError as error:
        return f"{_UNSEEN} {name}: {error.what}"
    parameters = {key.lower(): value for key, value in table.parameters.items()}
    handler = parameters.get("storage_handler", "")
    if table.table_type or not (handler or parameters.get("table_type")):
        return ""
    return f"{name} is a table of {parameters.get('table_type') or handler}"


@dataclass(slots=True)
class Claims:
    """Claims entries for a worker's slots, one slot after another, and leaves foreign entries to other workers.

    Foreign entries are those of Iceberg tables, of other storage handlers, and of unknown types. They are not claimed,
    or put back unchanged, because an entry that a worker marks as failed counts against its table.

    Attributes:
        patience: seconds for which a foreign entry may stay at the head of the queue.
    """

    pool: str
    patience: float = _PATIENCE
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: deque[interface.QueueEntry] = field(default_factory=deque)
    _listed: float = -math.inf
    _head: int = 0
    _since: float = 0.0
    _is_clearing: bool = False
    _reasons: dict[int, str] = field(default_factory=dict)

    def claim(self, metastore: Metastore, worker: str) -> interface.QueueEntry | None:
        """Take the next entry, see :func:`acidctl.metastore.queue.claim`.

        Returns:
            None if nothing waits, or if the next entry is foreign and has not held ours up for long.
        """
        with self._lock:
            if not self._may_claim(metastore):
                return None
            entry = queue.claim(metastore, worker, self.pool)
            while self._waiting and (entry is None or self._waiting[0].id <= entry.id):
                self._waiting.popleft()
            return entry

    def put_back(self, metastore: Metastore, entry: interface.QueueEntry) -> str:
        """Put a claimed entry back if it is foreign; return the reason, empty if the entry is for acidctl.

        It goes to the end of the queue under another id, otherwise unchanged.

        Raises:
            ConflictError: the metastore does not confirm it.
        """
        why = _UNSEEN
        try:
            why = self.why_foreign(metastore, entry)
        finally:
            if why and not give_back(metastore, entry, "acidctl does not compact this"):
                raise ConflictError(
                    f"the compaction of {queue.entry_name(entry)} could not be put back into Hive's queue",
                    "the metastore does not confirm it",
                    "the worker tries it again",
                )
        return why

    def why_foreign(self, metastore: Metastore, entry: interface.QueueEntry) -> str:
        """Return the result of :func:`why_foreign`, which is kept if the table could be looked at."""
        why = self._reasons.get(entry.id)
        if why is None:
            why = why_foreign(metastore, entry)
            if why.startswith(_UNSEEN):  # try again at the next check
                return why
            if len(self._reasons) >= _MOST_REASONS:
                self._reasons.clear()
            self._reasons[entry.id] = why
        return why  # another slot may have cleared the reasons meanwhile

    def _may_claim(self, metastore: Metastore) -> bool:
        """Return whether to claim; also if nothing waits, as a claim may return old entries of other pools."""
        is_fresh = self._waiting and time.monotonic() - self._listed <= _FRESH
        if not is_fresh or self.why_foreign(metastore, self._waiting[0]):
            entries = queue.find_compactions(metastore, state=queue.INITIATED)
            self._waiting = deque(entry.as_claimed() for entry in entries if entry.named_pool == self.pool)
            self._listed = time.monotonic()
        if not self._waiting or not self.why_foreign(metastore, self._waiting[0]):
            self._head, self._is_clearing = 0, False
            return True
        if self._waiting[0].id != self._head and not self._is_clearing:
            self._head, self._since = self._waiting[0].id, time.monotonic()
        if time.monotonic() - self._since < self.patience:
            return False
        self._is_clearing = any(not self.why_foreign(metastore, entry) for entry in self._waiting)
        return self._is_clearing
