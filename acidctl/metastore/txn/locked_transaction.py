"""Transactions of acidctl that hold a lock: heartbeats keep them alive, and their final state is determined."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from acidctl.base.errors import AcidctlError, ConflictError
from acidctl.metastore import interface
from acidctl.metastore.activity import Lock, find_locks
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import LostTransaction, MetastoreError, UnknownMethod, Unreachable
from acidctl.metastore.server import txn_timeout
from acidctl.metastore.txn.own_transaction import OwnTransaction

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_LONGEST_TIMEOUT = 86400.0
"""Upper limit, in seconds, for the time-out that a server reports."""

_COMMITS = 4
"""Attempts of a commit whose answers are lost."""


_Kept = tuple[int, int]
"""Ids of a transaction, or 0, and of a lock without a transaction, or 0."""


class UnknownOutcome(MetastoreError):
    """A commit was requested, and its outcome is unknown."""


@dataclass(slots=True)
class _Beating:
    on_lost: Callable[[AcidctlError], None]
    failing: float | None = None


class Heartbeats:
    """Sender of heartbeats for transactions, and locks without one, over its own connection.

    One thread sends all heartbeats, three in each of the server's time-outs, until :meth:`close`.
    """

    def __init__(self, metastore: Metastore) -> None:
        self._timeout = min(txn_timeout(metastore), _LONGEST_TIMEOUT)
        settings, patience = metastore.settings, max(1.0, self._timeout / 3)
        # One lost answer must not delay the other heartbeats until their transactions have timed out.
        self._metastore = metastore.another(
            replace(
                settings,
                timeout=min(settings.timeout, patience),
                connect_timeout=min(settings.connect_timeout, patience),
            )
        )
        self._alive: dict[_Kept, _Beating] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def keep(self, txn: int, on_lost: Callable[[AcidctlError], None], *, lock: int = 0) -> None:
        """Keep a transaction or a lock alive from now on.

        Args:
            txn: 0 for a lock without a transaction.
            on_lost: called once, from another thread, when the transaction or lock no longer exists, or when no
                heartbeat has succeeded for the whole time-out.
        """
        with self._lock:
            self._alive[txn, lock] = _Beating(on_lost)
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
            for kept, beating in alive.items():
                if error := self._lost(kept, beating):
                    self.let_go(kept[0], lock=kept[1])
                    beating.on_lost(error)

    def _lost(self, kept: _Kept, beating: _Beating) -> AcidctlError | None:
        txn, lock = kept
        try:
            self._metastore.call(interface.HEARTBEAT, interface.HeartbeatRequest(lock or None, txn or None))
            beating.failing = None
        except LostTransaction as error:
            return error
        except AcidctlError as error:  # the server may be back before the time-out
            beating.failing = beating.failing or time.monotonic()
            if time.monotonic() - beating.failing > self._timeout:
                return error
        return None


@dataclass(frozen=True, slots=True)
class TransactionRequest:
    """Request for a transaction with a lock.

    Attributes:
        txn_type: ignored before Hive 4.
        wait: seconds to wait for a conflicting lock.
    """

    components: Sequence[interface.LockComponent]
    txn_type: interface.TxnType
    wait: float = 0.0


class LockedTransaction:
    """A transaction that its constructor opens and locks, and :meth:`commit` or :meth:`abort` ends.

    Attributes:
        id: of the transaction.
        lost: why the transaction no longer exists, if known.
        is_committing: whether a commit was requested.

    Raises:
        ConflictError: somebody else holds a conflicting lock; nothing is held in that case.
    """

    def __init__(
        self,
        metastore: Metastore,
        heartbeats: Heartbeats,
        wanted: TransactionRequest,
        on_lost: Callable[[AcidctlError], None] | None = None,
    ) -> None:
        self._metastore, self._heartbeats = metastore, heartbeats
        self._on_lost = on_lost
        self.lost: AcidctlError | None = None
        self.is_committing = False
        self._own = OwnTransaction(metastore)
        self._is_open = True
        try:
            self.id = self._own.open(wanted.txn_type)
            self._acquire(wanted)
            self._hold_cleaner(wanted)
            heartbeats.keep(self.id, self._lose)
        except BaseException:
            self._own.end(commit=False)
            raise

    def check(self) -> None:
        """Raise if the transaction is known to be lost.

        Raises:
            LostTransaction: it timed out, or somebody aborted it.
        """
        if self.lost:
            raise LostTransaction(f"the transaction {self.id} was lost", str(self.lost), "run it again")

    def beat(self) -> None:
        """Send a heartbeat now, and raise if the transaction is lost.

        Raises:
            LostTransaction: it timed out, or somebody aborted it.
        """
        self.check()
        self._metastore.call(interface.HEARTBEAT, interface.HeartbeatRequest(None, self.id))

    def commit(self) -> None:
        """Commit the transaction; repeat the commit if the answer is lost.

        Raises:
            LostTransaction: the transaction was aborted before.
            UnknownOutcome: the server cannot be reached, or no longer lists the transaction as open or aborted.
        """
        self._end()
        self.is_committing = True
        request = interface.CommitTxnRequest(self.id)
        for attempt in range(_COMMITS):
            try:
                self._metastore.call(interface.COMMIT_TXN, request)
                return
            except LostTransaction as error:
                if attempt and not self._is_aborted():
                    raise UnknownOutcome(
                        f"whether the transaction {self.id} was committed is not known", str(error), ""
                    ) from error
                raise
            except Unreachable as error:
                if attempt == _COMMITS - 1:
                    raise UnknownOutcome(
                        f"whether the transaction {self.id} was committed is not known",
                        str(error),
                        "SHOW TRANSACTIONS tells, when the metastore is there again",
                    ) from error
                time.sleep(2.0**attempt)

    def abort(self, error_code: int | None = None) -> bool:
        """Abort the transaction, which releases its lock; return whether the abort is confirmed.

        Args:
            error_code: the reason, one of Hive's error codes.
        """
        self._end()
        for _ in range(2):  # the connection may just have been lost
            try:
                self._metastore.call(interface.ABORT_TXN, interface.AbortTxnRequest(self.id, error_code))
                return True
            except LostTransaction:  # it was aborted before, or was committed
                return self._is_aborted()
            except AcidctlError:
                continue  # at last, the transaction times out
        return False

    def release(self, *, commit: bool = True) -> None:
        """End a transaction that changed nothing, and ignore errors."""
        self._is_open = False
        self._heartbeats.let_go(self.id)
        self._own.end(commit=commit and not self.lost)

    def _end(self) -> None:
        self._is_open = False
        self._own.forget()
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

    def _acquire(self, wanted: TransactionRequest) -> None:
        zero_wait = True if self._metastore.features.txn_types and not wanted.wait else None
        user, own = self._metastore.settings.user_name, self._own
        request = interface.LockRequest(tuple(wanted.components), self.id, user, own.host, own.agent, zero_wait)
        answer = self._metastore.call(interface.LOCK, request)
        until, pause = time.monotonic() + wanted.wait, _FIRST_PAUSE
        while answer.state == interface.LockState.WAITING and time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            answer = self._metastore.call(interface.CHECK_LOCK, interface.CheckLockRequest(answer.lock, self.id))
        if answer.state != interface.LockState.ACQUIRED:
            names = {f"{part.database}.{part.table}" for part in wanted.components}
            raise ConflictError(
                f"no lock on {', '.join(sorted(names))} was to be had",
                answer.message or self._holders(wanted, answer.lock),
                "SHOW LOCKS tells who; try again when it has ended",
            )

    def _hold_cleaner(self, wanted: TransactionRequest) -> None:
        """Register that this transaction may read its tables from the first write id on.

        From Hive 4.2 on the cleaner waits only for registered transactions, not for every open one (its setting
        `metastore.txn.use.minhistorywriteid`); 4.0 and 4.1 accept the call, and need it only with that setting.
        """
        metastore = self._metastore
        tables = {f"{part.database}.{part.table}".lower(): 1 for part in wanted.components if part.table}
        if tables and metastore.features.txn_types:
            with suppress(UnknownMethod):
                metastore.call(interface.ADD_WRITE_IDS_TO_MIN_HISTORY, self.id, tables)

    def _holders(self, wanted: TransactionRequest, own_lock: int) -> str:
        """Describe a lock on the requested tables, if possible one that is not only a reader's."""
        locks: list[Lock] = []
        with suppress(AcidctlError):
            for part in wanted.components:
                table_locks = find_locks(self._metastore, part.database, part.table)
                locks += [lock for lock in table_locks if lock.id != own_lock and not lock.is_waiting]
        locks.sort(key=lambda lock: lock.type == interface.LockType.SHARED_READ.name)
        who = f": {locks[0].user} at {locks[0].host}, {locks[0].type} {locks[0].id}" if locks else ""
        duration = f" for {wanted.wait:g} seconds" if wanted.wait else ""
        return f"somebody has held one that excludes it{duration}{who}"
