"""Locks that acidctl holds: exclusive ones that allow one service per warehouse, and shared ones against cleaning."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Self

from acidctl.base.errors import AcidctlError, ConflictError
from acidctl.metastore import interface
from acidctl.metastore.activity import Lock, find_locks
from acidctl.metastore.client import Metastore, releasing, retry_until
from acidctl.metastore.errors import LostTransaction
from acidctl.metastore.tables import HiveTable
from acidctl.metastore.txn.transaction import Heartbeats, LockedTransaction, client_names

DATABASE = "acidctl"
"""Database name of the exclusive locks; it need not exist."""


class LeaderLock:
    """A lock that one process of a warehouse holds at a time, for work that two must not do at once.

    It is exclusive, on the name of a table that need not exist: a metastore does not check. It has no transaction,
    because an open transaction would hold back the cleaning of every table of Hive 4. Heartbeats keep it alive.
    """

    def __init__(self, metastore: Metastore, role: str) -> None:
        self._metastore, self._role = metastore, role
        self._heartbeats: Heartbeats | None = None
        self._id = 0
        self.lost: AcidctlError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def take(self) -> None:
        """Take the lock."""
        agent, host = client_names()
        part = interface.LockComponent(interface.LockType.EXCLUSIVE, database=DATABASE, table=self._role)
        user = self._metastore.settings.user_name
        request = interface.LockRequest((part,), None, user, host, agent, None)
        try:
            answer = self._metastore.call(interface.LOCK, request)
        except BaseException:
            self._release_unknown(agent)
            raise
        if answer.state != interface.LockState.ACQUIRED:
            locks: tuple[Lock, ...] = ()
            with suppress(AcidctlError):
                locks = find_locks(self._metastore, DATABASE, self._role)
            holder = next((lock for lock in locks if lock.id != answer.lock and not lock.is_waiting), None)
            self._unlock(answer.lock)
            who = f"{holder.user}@{holder.host} holds the lock {holder.id}" if holder else "another one holds its lock"
            raise ConflictError(
                f"there is another {self._role} on {self._metastore.shown}",
                who,
                "end it first; the lock of one that died is free after the metastore's time-out for transactions",
            )
        self._id, self.lost = answer.lock, None
        self._heartbeats = Heartbeats(self._metastore)
        self._heartbeats.keep(0, lambda error: setattr(self, "lost", error), lock=self._id)

    def check(self) -> None:
        """Raise if the lock was lost.

        Raises:
            ConflictError: the lock timed out, or somebody released it; another process may hold it.
        """
        if not self.lost:
            try:
                self._metastore.call(interface.HEARTBEAT, interface.HeartbeatRequest(self._id, None))
            except LostTransaction as error:
                self.lost = error
        if self.lost:
            raise ConflictError(f"the lock of the {self._role} was lost", str(self.lost), "another one may be at work")

    def release(self) -> None:
        """Release the lock; if that fails, it times out."""
        if self._heartbeats:
            self._heartbeats.let_go(0, lock=self._id)
            self._heartbeats.close()
            self._heartbeats = None
        if self._id:
            self._unlock(self._id)
            self._id = 0

    @releasing()
    def _release_unknown(self, agent: str) -> None:
        """Release a lock whose answer was lost: it may be held, or the server may take it only now."""

        def release() -> bool:
            ours = [lock.id for lock in find_locks(self._metastore, DATABASE, self._role) if lock.agent == agent]
            for lock in ours:
                self._unlock(lock)
            return bool(ours)

        with suppress(AcidctlError):
            retry_until(release)

    @releasing()
    def _unlock(self, lock: int) -> None:
        with suppress(AcidctlError):  # it is released already, or times out at last
            self._metastore.insist(interface.UNLOCK, interface.UnlockRequest(lock), after=AcidctlError)


class ReadLock:
    """A shared lock on tables, in its own transaction, that keeps Hive's cleaner away until :meth:`release`.

    Hive 3's cleaner waits for the lock, that of Hive 4.0 and 4.1 for the transaction, that of Hive 4.2 for the tables
    that the transaction has registered. Heartbeats over separate connections keep it alive.

    Args:
        tables: the lock covers all of their partitions.
    """

    def __init__(self, metastore: Metastore, tables: Iterable[HiveTable], wait: float = 60.0) -> None:
        parts = tuple(interface.LockComponent(database=table.database, table=table.name) for table in tables)
        _ = metastore.features  # cached for both of the other clients
        self._heartbeats = Heartbeats(metastore)
        self._metastore = metastore.another()
        try:
            txn_type = interface.TxnType.READ_ONLY
            self._held = LockedTransaction(self._metastore, self._heartbeats, parts, txn_type, wait=wait)
        except BaseException:
            self._close()
            raise
        self.txn = self._held.id

    def check(self) -> None:
        """Raise if the lock was lost.

        Raises:
            LostTransaction: the transaction timed out or was aborted, so that the data read may be incomplete.
        """
        if self._held.lost:
            raise LostTransaction(
                f"the transaction {self.txn}, which kept Hive's cleaner away, was lost",
                str(self._held.lost),
                "run it again: files that were read may have been removed meanwhile",
            )

    def release(self, *, commit: bool = True) -> None:
        """End the transaction, and the lock with it; if that fails, both time out."""
        self._held.release(commit=commit)
        self._close()

    def _close(self) -> None:
        self._metastore.close()
        self._heartbeats.close()
