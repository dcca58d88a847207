"""Queue entries for other workers ("strangers"): Iceberg tables, other storage handlers, and unknown types.

They are not claimed, or put back unchanged, because an entry that a worker marks as failed counts against its table.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass, field

from acidctl.base.errors import AcidctlError, NotFoundError
from acidctl.hive.orphaned_entries import COMPACTED, give_back
from acidctl.metastore import interface
from acidctl.metastore.activity import name_of
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable
from acidctl.metastore.queue import queue_work
from acidctl.metastore.queue.compactions import INITIATED, Compaction, find_compactions, kind_of, number_of
from acidctl.metastore.tables import get_table

_PATIENCE = 60.0
"""Seconds that a stranger's entry is left to its own worker while others wait behind it."""

_FRESH = 2.0
"""Seconds for which a listing of the queue is used: it may be long, and new entries are added at its end."""

_MOST_KNOWN = 10_000

_UNSEEN = "cannot look at"
_WHY = "acidctl does not compact this: asked for again"


@dataclass(slots=True)
class Strangers:
    """Filter that keeps a worker's slots from working on strangers; slots claim one after another.

    Attributes:
        pool: the pool that the worker takes entries from.
        patience: seconds for which a stranger may stay at the head of the queue.
    """

    pool: str
    patience: float = _PATIENCE
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: deque[Compaction] = field(default_factory=deque)
    _listed: float = -math.inf
    _head: int = 0
    _since: float = 0.0
    _is_clearing: bool = False
    _known: dict[int, str] = field(default_factory=dict)

    def claim(self, metastore: Metastore, worker: str) -> interface.QueueEntry | None:
        """Take the next entry, see :func:`acidctl.metastore.queue.queue_work.claim`.

        Returns:
            None if nothing waits, or if the next entry is a stranger's that has not held ours up for long.
        """
        with self._lock:
            if not self._may_claim(metastore):
                return None
            entry = queue_work.claim(metastore, worker, self.pool)
            while self._waiting and (entry is None or self._waiting[0].id <= entry.id):
                self._waiting.popleft()
            return entry

    def put_back(self, metastore: Metastore, entry: interface.QueueEntry) -> str:
        """Put a claimed entry back if it is a stranger; return the reason, empty if the entry is for acidctl.

        It goes to the end of the queue under another id, otherwise unchanged.
        """
        try:
            why = self._known.get(entry.id)
            if why is None:
                why = stranger(metastore, entry.type, entry.database, entry.table)
        except AcidctlError:
            give_back(metastore, entry, _WHY)
            raise
        if why:
            give_back(metastore, entry, _WHY)
        return why

    def _may_claim(self, metastore: Metastore) -> bool:
        """Return whether to claim; also if nothing waits, as a claim may return old entries of other pools."""
        is_fresh = self._waiting and time.monotonic() - self._listed <= _FRESH
        if not is_fresh or self._whose(metastore, self._waiting[0]):
            entries = find_compactions(metastore, state=INITIATED)
            self._waiting = deque(entry for entry in entries if entry.named_pool == self.pool)
            self._listed = time.monotonic()
        if not self._waiting or not self._whose(metastore, self._waiting[0]):
            self._head, self._is_clearing = 0, False
            return True
        if self._waiting[0].id != self._head and not self._is_clearing:
            self._head, self._since = self._waiting[0].id, time.monotonic()
        if time.monotonic() - self._since < self.patience:
            return False
        self._is_clearing = any(not self._whose(metastore, entry) for entry in self._waiting)
        return self._is_clearing

    def _whose(self, metastore: Metastore, entry: Compaction) -> str:
        if entry.id not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            why = stranger(metastore, number_of(entry.kind), entry.database, entry.table)
            if why.startswith(_UNSEEN):  # try again at the next check
                return why
            self._known[entry.id] = why
        return self._known[entry.id]


def stranger(metastore: Metastore, kind: int, database: str, table: str) -> str:
    """Return why an entry is not for acidctl, as a sentence; empty if it is, or if its table is gone.

    Raises:
        Unreachable: the metastore cannot be reached.
    """
    name = name_of(database, table, "")
    if kind not in COMPACTED:
        return f"acidctl does not run compactions of type {kind_of(kind)}, as requested for {name}"
    try:
        hive_table = get_table(metastore, database, table)
    except NotFoundError:
        return ""
    except Unreachable:
        raise
    except AcidctlError as error:
        return f"{_UNSEEN} {name}: {error.what}"
    parameters = {key.lower(): value for key, value in hive_table.parameters.items()}
    handler = parameters.get("storage_handler", "")
    if hive_table.table_type or not (handler or parameters.get("table_type")):
        return ""
    return f"{name} is a table of {parameters.get('table_type') or handler}"
