"""Locks of acidctl's own: one for each service of a warehouse, and shared ones that keep Hive's cleaner away."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Self

from acidctl.errors import AcidctlError, ConflictError
from acidctl.metastore import interface
from acidctl.metastore.activity import Lock, find_locks
from acidctl.metastore.client import Metastore, retry_until
from acidctl.metastore.errors import LostTransaction
from acidctl.metastore.own.locked_transaction import Asked, Heartbeats, LockedTransaction
from acidctl.metastore.own.own_transaction import OwnTransaction
from acidctl.metastore.tables import HiveTable

DATABASE = "acidctl"
"""In which these names are."""


class LeaderLock:
    """Taken by :meth:`take`, kept alive by heartbeats, given back by :meth:`release` or at the end of a ``with``.

    Args:
        role: the name that it is on: one lock for each.

    Attributes:
        lost: why it is not held any more, where that is known.
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
        """Take it.

        Raises:
            ConflictError: somebody else holds it.
            MetastoreError: the metastore cannot be reached, or failed.
        """
        own = OwnTransaction(self._metastore)  # its names only: none is opened
        part = interface.LockComponent(interface.LockType.EXCLUSIVE, database=DATABASE, table=self._role)
        user = self._metastore.settings.user_name
        request = interface.LockRequest((part,), None, user, own.host, own.agent, None)
        try:
            answer = self._metastore.call(interface.LOCK, request)
        except BaseException:
            self._give_back(own.agent)
            raise
        if answer.state != interface.LockState.ACQUIRED:
            holder = next((one for one in self._locks() if one.id != answer.lock and not one.is_waiting), None)
            self._unlock(answer.lock)
            who = f"{holder.user}@{holder.host} holds the lock {holder.id}" if holder else "another one holds its lock"
            raise ConflictError(
                f"there is another {self._role} on {self._metastore.shown}",
                who,
                "end it first; the lock of one that died is free after the metastore's time-out for transactions",
            )
        self._id, self.lost = answer.lock, None
        self._heartbeats = Heartbeats(self._metastore)
        self._heartbeats.keep(0, self._lose, lock=self._id)

    def check(self) -> None:
        """Say so where it was lost.

        Raises:
            ConflictError: it timed out, or somebody gave it back; another one may be at work.
            MetastoreError: the metastore cannot be reached, or failed.
        """
        if not self.lost:
            try:
                self._metastore.call(interface.HEARTBEAT, interface.HeartbeatRequest(self._id, None))
            except LostTransaction as error:
                self.lost = error
        if self.lost:
            raise ConflictError(f"the lock of the {self._role} was lost", str(self.lost), "another one may be at work")

    def release(self) -> None:
        """Give it back; where that fails the metastore's time-out does it."""
        if self._heartbeats:
            self._heartbeats.let_go(0, lock=self._id)
            self._heartbeats.close()
            self._heartbeats = None
        if self._id:
            self._unlock(self._id)
            self._id = 0

    def _lose(self, error: AcidctlError) -> None:
        self.lost = error

    def _locks(self) -> tuple[Lock, ...]:
        with suppress(AcidctlError):
            return find_locks(self._metastore, DATABASE, self._role)
        return ()

    def _give_back(self, agent: str) -> None:
        """Where the answer was lost: it may be held nevertheless, or only be taken now."""

        def look() -> bool:
            ours = [one.id for one in find_locks(self._metastore, DATABASE, self._role) if one.agent == agent]
            for lock in ours:
                self._unlock(lock)
            return bool(ours)

        with suppress(AcidctlError):
            retry_until(look)

    def _unlock(self, lock: int) -> None:
        for _ in range(2):  # the connection may just have been lost
            try:
                self._metastore.call(interface.UNLOCK, interface.UnlockRequest(lock))
            except LostTransaction:
                return  # it is given back
            except AcidctlError:
                continue  # left to the server's time-out
            return


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
        parts = tuple(interface.LockComponent(database=one.database, table=one.name) for one in tables)
        _ = metastore.features  # once for both of the others
        self._heartbeats = Heartbeats(metastore)
        self._metastore = metastore.another()
        try:
            asked = Asked(parts, interface.TxnType.READ_ONLY, wait)
            self._held = LockedTransaction(self._metastore, self._heartbeats, asked)
        except BaseException:
            self._close()
            raise
        self.txn = self._held.id

    def check(self) -> None:
        """Say so where the lock was lost.

        Raises:
            LostTransaction: it timed out, or somebody aborted it: what was read may be incomplete.
        """
        if self._held.lost:
            raise LostTransaction(
                f"the transaction {self.txn}, which kept Hive's cleaner away, was lost",
                str(self._held.lost),
                "run it again: files that were read may have been removed meanwhile",
            )

    def release(self, *, commit: bool = True) -> None:
        """End the transaction, and the lock with it. What goes wrong is left to the server's time-out."""
        self._held.release(commit=commit)
        self._close()

    def _close(self) -> None:
        self._metastore.close()
        self._heartbeats.close()
