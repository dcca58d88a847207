"""Transactions that acidctl holds: each is ended in any case, and heartbeats keep those with a lock alive.

Hive's list of transactions shows only the user and the host of a client. Therefore acidctl adds its name to the host,
``host7/acidctl-4711-1f3a9c20``: people see it in SHOW TRANSACTIONS, and acidctl finds a transaction without its id.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, ConflictError
from acidctl.metastore import client, interface
from acidctl.metastore.activity import Lock, find_locks, open_txns_info
from acidctl.metastore.client import Metastore, releasing, retry_until
from acidctl.metastore.errors import LostTransaction, MetastoreError, UnknownMethod, Unreachable
from acidctl.metastore.server import txn_timeout

_MOST_HOST = 128
"""Characters that every version of the metastore's tables takes."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_LONGEST_TIMEOUT = 86400.0
"""Upper limit, in seconds, for the time-out that a server reports."""

_COMMITS = 4
"""Attempts of a commit whose answers are lost."""

_OnLost = Callable[[AcidctlError], None]
_Kept = tuple[int, int]
"""Ids of a transaction, or 0, and of a lock without a transaction, or 0."""


class UnknownOutcome(MetastoreError):
    """A commit was requested, and its outcome is unknown."""


class Heartbeats:
    """Sender of heartbeats for transactions, and locks without one, over its own connection.

    One thread sends all heartbeats, three in each of the server's time-outs, until :meth:`close`.
    """

    def __init__(self, metastore: Metastore) -> None:
        self._timeout = min(txn_timeout(metastore), _LONGEST_TIMEOUT)
        # One lost answer must not delay the other heartbeats until their transactions have timed out.
        self._metastore = metastore.another(max(1.0, self._timeout / 3))
        self._metastore.until = Deadline()  # what is held after the deadline of the run must live until it is released
        self._alive: dict[_Kept, _OnLost] = {}
        self._failing: dict[_Kept, float] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def keep(self, txn: int, on_lost: _OnLost, *, lock: int = 0) -> None:
        """Keep a transaction or a lock alive from now on.

        Args:
            txn: 0 for a lock without a transaction.
            on_lost: called once, from another thread, when the transaction or lock no longer exists, or when no
                heartbeat has succeeded for the whole time-out.
        """
        with self._lock:
            self._alive[txn, lock] = on_lost
            self._failing.pop((txn, lock), None)
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name="acidctl-heartbeat", daemon=True)
                self._thread.start()

    def let_go(self, txn: int, *, lock: int = 0) -> None:
        """Stop the heartbeats of a transaction or a lock."""
        with self._lock:
            self._alive.pop((txn, lock), None)

    def close(self) -> None:
        """Stop all heartbeats."""
        self._ended.set()
        if self._thread:
            self._thread.join(timeout=1)
        if not (self._thread and self._thread.is_alive()):  # else its last call is still running
            self._metastore.close()

    def _beat(self) -> None:
        while not self._ended.wait(self._timeout / 3):
            with self._lock:
                alive = dict(self._alive)
            for kept, on_lost in alive.items():
                if error := self._lost(kept):
                    self.let_go(kept[0], lock=kept[1])
                    on_lost(error)

    def _lost(self, kept: _Kept) -> AcidctlError | None:
        txn, lock = kept
        try:
            self._metastore.call(interface.HEARTBEAT, interface.HeartbeatRequest(lock or None, txn or None))
            self._failing.pop(kept, None)
        except LostTransaction as error:
            return error
        except AcidctlError as error:  # the server may be back before the time-out
            if time.monotonic() - self._failing.setdefault(kept, time.monotonic()) > self._timeout:
                return error
        return None


def client_names(role: str = "") -> tuple[str, str]:
    """Return a new name of a client, ``acidctl-PID-`` and a random number, and its host followed by this name.

    Args:
        role: stands before the PID, so that a later run finds what this one left.
    """
    agent = f"acidctl-{role}{'-' if role else ''}{os.getpid()}-{secrets.token_hex(4)}"
    return agent, f"{socket.gethostname()[: _MOST_HOST - 1 - len(agent)]}/{agent}"


class OwnTransaction:
    """A transaction that :meth:`open` opens, and :meth:`end` ends.

    Attributes:
        id: 0 before it is opened.
    """

    def __init__(self, metastore: Metastore, role: str = "") -> None:
        self._metastore = metastore
        self._is_asked_for = self._has_ended = False
        self.id = 0
        self.failure: AcidctlError | None = None
        self.agent, self.host = client_names(role)

    def open(self, txn_type: interface.TxnType = interface.TxnType.READ_ONLY) -> int:
        """Open the transaction; :meth:`end` must follow, even if this fails.

        Args:
            txn_type: ignored before Hive 4.
        """
        metastore = self._metastore
        sent_type = txn_type if metastore.features.txn_types else None
        request = interface.OpenTxnRequest(1, metastore.settings.user_name, self.host, self.agent, sent_type)
        metastore.connection()
        self._is_asked_for = True
        ids = metastore.call(interface.OPEN_TXNS, request).txn_ids
        if len(ids) != 1 or ids[0] < 1:
            raise MetastoreError(
                f"the metastore {metastore.shown} opened no transaction",
                f"one was asked for, and it gave {len(ids)} ids",
                "see the metastore's log",
            )
        self.id = ids[0]
        return self.id

    @releasing()
    def end(self, *, commit: bool = True) -> None:
        """End the transaction; without effect if it has ended. If the server fails, the transaction times out.

        A transaction that only read is committed, because the server would keep a record of an aborted one.
        """
        if self._has_ended or not self._is_asked_for:
            return
        try:
            self._commit_or_abort(commit)
        except KeyboardInterrupt:  # try again, as nothing else would end it
            self._commit_or_abort(commit)
            raise
        finally:
            self._has_ended = True

    def _commit_or_abort(self, commit: bool) -> None:
        try:
            if not self.id:
                self._end_unknown()
            elif not commit or not self._is_committed():
                self._metastore.insist(interface.ABORT_TXN, interface.AbortTxnRequest(self.id), after=AcidctlError)
        except LostTransaction:  # it has ended, or the id was never ours
            self._end_unknown()
        except AcidctlError as error:
            self.failure = error

    def _is_committed(self) -> bool:
        try:
            self._metastore.call(interface.COMMIT_TXN, interface.CommitTxnRequest(self.id))
        except LostTransaction:
            raise
        except AcidctlError as error:
            self.failure = error
            return False
        return True

    def _end_unknown(self) -> None:
        """End a transaction whose id is unknown or wrong: the server may have opened it, or may open it only now."""
        patience = min(client.PATIENCE, self._metastore.settings.timeout)
        other = self._metastore.another(patience, rounds=1)

        def abort() -> bool:
            txns = open_txns_info(other).txns
            ours = [txn.id for txn in txns if txn.host == self.host and txn.state == interface.TxnState.OPEN]
            for txn in ours:
                other.call(interface.ABORT_TXN, interface.AbortTxnRequest(txn))
            return bool(ours or self.id)

        with suppress(AcidctlError):
            retry_until(abort, patience)
        other.close()


class LockedTransaction(OwnTransaction):
    """A transaction that its constructor opens and locks, and :meth:`commit` or :meth:`abort` ends.

    Args:
        wait: seconds to wait for a conflicting lock.
        before_lock: called with the id of the transaction before the lock is taken; a writer allocates its write id.
        checks_conflicts: the commit fails if another writer changed rows of the same partitions since the opening.
        role: of :func:`client_names`.

    Raises:
        ConflictError: somebody else holds a conflicting lock; nothing is held in that case.
    """

    def __init__(
        self,
        metastore: Metastore,
        heartbeats: Heartbeats,
        parts: Sequence[interface.LockComponent],
        txn_type: interface.TxnType,
        *,
        wait: float = 0.0,
        on_lost: _OnLost | None = None,
        before_lock: Callable[[int], None] | None = None,
        checks_conflicts: bool = False,
        role: str = "",
    ) -> None:
        super().__init__(metastore, role)
        self._heartbeats, self._on_lost = heartbeats, on_lost
        self._exclusive = False if checks_conflicts and metastore.features.txn_types else None
        self.lost: AcidctlError | None = None
        self.is_committing = False
        self._is_open = True
        try:
            self.open(txn_type)
            if before_lock:
                before_lock(self.id)
            self._acquire(tuple(parts), wait)
            self._hold_cleaner(parts)
            heartbeats.keep(self.id, self._lose)
        except BaseException:
            self.end(commit=False)
            raise

    def check(self) -> None:
        """Raise if the transaction is known to be lost."""
        if self.lost:
            raise LostTransaction(f"the transaction {self.id} was lost", str(self.lost), "run it again")

    def lock(self, parts: Sequence[interface.LockComponent], wait: float) -> None:
        """Take a further lock.

        Args:
            wait: seconds to wait for a conflicting lock.

        Raises:
            ConflictError: somebody else holds a conflicting lock; the transaction stays open.
        """
        self._acquire(tuple(parts), wait)

    def beat(self) -> None:
        """Send a heartbeat now, and raise if the transaction is lost.

        Raises:
            LostTransaction: it timed out, or somebody aborted it.
        """
        self.check()
        self._metastore.call(interface.HEARTBEAT, interface.HeartbeatRequest(None, self.id))

    @releasing()
    def commit(self, key_value: interface.CommitKeyValue | None = None) -> None:
        """Commit the transaction; repeat the commit if the answer is lost.

        Args:
            key_value: what the server stores in the same step (Hive 4).

        Raises:
            LostTransaction: the transaction was aborted before.
            UnknownOutcome: the server cannot be reached, or no longer lists the transaction as open or aborted.
        """
        self._let_go()
        self._has_ended = self.is_committing = True
        for attempt in range(_COMMITS):
            try:
                request = interface.CommitTxnRequest(self.id, key_value, self._exclusive)
                self._metastore.call(interface.COMMIT_TXN, request)
                return
            except LostTransaction as error:
                if attempt and not self._is_aborted():
                    raise self._unknown(error, "") from error
                raise
            except Unreachable as error:
                if attempt == _COMMITS - 1:
                    raise self._unknown(error, "SHOW TRANSACTIONS tells, when the metastore is there again") from error
                time.sleep(2.0**attempt)

    def _unknown(self, error: AcidctlError, hint: str) -> UnknownOutcome:
        return UnknownOutcome(f"whether the transaction {self.id} was committed is not known", str(error), hint)

    @releasing()
    def abort(self, error_code: int | None = None) -> bool:
        """Abort the transaction, which releases its lock; return whether the abort is confirmed."""
        self._let_go()
        self._has_ended = True
        try:
            self._metastore.insist(
                interface.ABORT_TXN, interface.AbortTxnRequest(self.id, error_code), after=AcidctlError
            )
        except LostTransaction:  # it was aborted before, or was committed
            return self._is_aborted()
        except AcidctlError:
            return False  # at last, the transaction times out
        return True

    def release(self, *, commit: bool = True) -> None:
        """End a transaction that changed nothing, and ignore errors."""
        self._let_go()
        self.end(commit=commit and not self.lost)

    def _let_go(self) -> None:
        self._is_open = False
        self._heartbeats.let_go(self.id)

    def _lose(self, error: AcidctlError) -> None:
        self.lost = error
        if self._on_lost and self._is_open:
            self._on_lost(error)

    def _is_aborted(self) -> bool:
        request = interface.HeartbeatTxnRangeRequest(self.id, self.id)
        with suppress(AcidctlError):
            return self.id in self._metastore.call(interface.HEARTBEAT_TXN_RANGE, request).aborted
        return False

    def _acquire(self, parts: tuple[interface.LockComponent, ...], wait: float) -> None:
        metastore = self._metastore
        zero_wait = True if metastore.features.txn_types and not wait else None
        user = metastore.settings.user_name
        request = interface.LockRequest(parts, self.id, user, self.host, self.agent, zero_wait)
        answer = metastore.call(interface.LOCK, request)
        until, pause = time.monotonic() + wait, _FIRST_PAUSE
        while answer.state == interface.LockState.WAITING and time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            answer = metastore.call(interface.CHECK_LOCK, interface.CheckLockRequest(answer.lock, self.id))
        if answer.state != interface.LockState.ACQUIRED:
            names = {f"{part.database}.{part.table}" for part in parts}
            raise ConflictError(
                f"could not lock {', '.join(sorted(names))}",
                answer.message or self._holders(parts, wait, answer.lock),
                "SHOW LOCKS tells who; try again when it has ended",
            )

    def _hold_cleaner(self, parts: Sequence[interface.LockComponent]) -> None:
        """Register that this transaction may read its tables from the first write id on.

        From Hive 4.2 on the cleaner waits only for registered transactions, not for every open one (its setting
        `metastore.txn.use.minhistorywriteid`); 4.0 and 4.1 accept the call, and need it only with that setting.
        """
        tables = {f"{part.database}.{part.table}".lower(): 1 for part in parts if part.table}
        if tables and self._metastore.features.txn_types:
            with suppress(UnknownMethod):
                self._metastore.call(interface.ADD_WRITE_IDS_TO_MIN_HISTORY, self.id, tables)

    def _holders(self, parts: Sequence[interface.LockComponent], wait: float, own_lock: int) -> str:
        """Describe a lock on the requested tables, if possible one that is not only a reader's."""
        locks: list[Lock] = []
        with suppress(AcidctlError):
            for part in parts:
                table_locks = find_locks(self._metastore, part.database, part.table)
                locks += [lock for lock in table_locks if lock.id != own_lock and not lock.is_waiting]
        locks.sort(key=lambda lock: lock.type == interface.LockType.SHARED_READ.name)
        who = f": {locks[0].user} at {locks[0].host}, {locks[0].type} {locks[0].id}" if locks else ""
        duration = f" for {wait:g} seconds" if wait else ""
        return f"somebody has held one that excludes it{duration}{who}"
