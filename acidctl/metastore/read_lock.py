"""A shared lock on tables, in a transaction of its own: while it is held, Hive's cleaner leaves alone what it covers.

Hive 3 waits for the lock; Hive 4 for the transaction, which only reads there. It is kept alive by heartbeats over a
connection of their own, and always ended: committed, or aborted where something went wrong.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from contextlib import suppress

from acidctl.errors import AcidctlError, ConflictError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import LostTransaction
from acidctl.metastore.own_transaction import OwnTransaction
from acidctl.metastore.tables import HiveTable

_TIMEOUT_KEYS = ("metastore.txn.timeout", "hive.txn.timeout")
_UNTOLD = 300.0
"""Seconds: Hive's default."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class ReadLock:
    """Taken by the constructor, ended by :meth:`release`.

    Args:
        metastore: it is asked over connections of the lock's own.
        tables: all of their partitions are locked with them.
        wait: so many seconds it is waited for, where somebody holds a lock that excludes it.

    Attributes:
        txn: the transaction.

    Raises:
        ConflictError: somebody else's lock excludes it; nothing is held then.
        MetastoreError: the metastore cannot be reached, or failed.
    """

    def __init__(self, metastore: Metastore, tables: Iterable[HiveTable], wait: float = 60.0) -> None:
        _ = metastore.features  # once for both of the others
        self._metastore = metastore.another()
        self._beats = metastore.another()
        self._ended = threading.Event()
        self._lost: AcidctlError | None = None
        self._thread: threading.Thread | None = None
        self._own = OwnTransaction(self._metastore)
        try:
            self.txn = self._own.open()
            self._lock = self._acquire(tables, wait)
            self._thread = threading.Thread(target=self._beat, name="acidctl-heartbeat", daemon=True)
            self._thread.start()
        except BaseException:
            self.release(commit=False)
            raise

    def check(self) -> None:
        """Say so where the lock was lost.

        Raises:
            LostTransaction: it timed out, or somebody aborted it: what was read may be incomplete.
        """
        if self._lost:
            raise LostTransaction(
                f"the transaction {self.txn}, which kept Hive's cleaner away, was lost",
                str(self._lost),
                "run it again: files that were read may have been removed meanwhile",
            )

    def release(self, *, commit: bool = True) -> None:
        """End the transaction, and the lock with it. What goes wrong is left to the server's time-out."""
        self._ended.set()
        self._own.end(commit=commit and not self._lost)
        self._metastore.close()
        if self._thread:
            self._thread.join(timeout=1)
        if not (self._thread and self._thread.is_alive()):  # else its last question has no answer yet
            self._beats.close()

    def _acquire(self, tables: Iterable[HiveTable], wait: float) -> int:
        parts = tuple(interface.LockComponent(database=one.database, table=one.name) for one in tables)
        own, user = self._own, self._metastore.settings.user_name
        request = interface.LockRequest(parts, own.id, user, own.host, own.agent)
        answer = self._metastore.call(interface.LOCK, request)
        until, pause = time.monotonic() + wait, _FIRST_PAUSE
        while answer.state == interface.LockState.WAITING and time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            answer = self._metastore.call(interface.CHECK_LOCK, interface.CheckLockRequest(answer.lock, self.txn))
        if answer.state != interface.LockState.ACQUIRED:
            raise ConflictError(
                f"no lock to read {', '.join(f'{one.database}.{one.table}' for one in parts)} was to be had",
                answer.message or f"somebody has held one that excludes it for {wait:g} seconds",
                "SHOW LOCKS tells who; try again when it has ended, or read without `read_lock`",
            )
        return int(answer.lock)

    def _beat(self) -> None:
        request = interface.HeartbeatRequest(None, self.txn)
        failing: float | None = None
        timeout = _UNTOLD
        with suppress(AcidctlError):
            timeout = seconds_of(self._beats)
        while not self._ended.wait(timeout / 3):
            try:
                self._beats.call(interface.HEARTBEAT, request)
                failing = None
            except LostTransaction as error:
                self._lost = error
                return
            except AcidctlError as error:  # it may come back before the time-out is over
                failing = failing or time.monotonic()
                if time.monotonic() - failing > timeout:
                    self._lost = error
                    return


def seconds_of(metastore: Metastore) -> float:
    """After how many seconds without a heartbeat the server ends a transaction, as it says itself."""
    for key in _TIMEOUT_KEYS:
        match = re.fullmatch(r"([0-9]+)\s*([a-z]*)", metastore.configured(key, "").strip().lower())
        if match and match[2] in _UNITS and int(match[1]):
            return int(match[1]) * _UNITS[match[2]]
    return _UNTOLD
