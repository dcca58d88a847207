"""A shared lock on tables, in a transaction of its own: while it is held, Hive's cleaner leaves alone what it covers.

Hive 3 waits for the lock; Hive 4.0 and 4.1 for the transaction, which only reads there; Hive 4.2 for the tables that
a transaction has named. It is kept alive by heartbeats over a
connection of their own, and always ended: committed, or aborted where something went wrong.
"""

from __future__ import annotations

from collections.abc import Iterable

from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import LostTransaction
from acidctl.metastore.own.locked_transaction import Asked, Heartbeats, LockedTransaction
from acidctl.metastore.tables import HiveTable


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
