"""The Hive side of one location's compaction: a queue entry, a transaction with a lock, and their end.

On Hive 4, the entry is in a pool that no other worker uses; the result is named ``_v<txn>`` after the transaction, and
its commit publishes the result. Before Hive 4, external workers cannot use the queue: the transaction keeps the cleaner
away, and a rename publishes the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from acidctl.acid.names import partition_name
from acidctl.acid.state import State
from acidctl.base.errors import AcidctlError, ConflictError, RefusedError
from acidctl.compaction.beside_hive import in_the_way, refuse_beside_hive
from acidctl.compaction.publish import remove_hidden
from acidctl.compaction.request import (
    CompactionRequest,
    Mode,
    NoWork,
    Planned,
    PlanRefused,
    plan_location,
)
from acidctl.compaction.run import Compacted, failed
from acidctl.hive.orphaned_entries import ABORTED_COMPACTION, free_single, give_back, own_pool, worker_id
from acidctl.location.snapshot import Snapshot
from acidctl.location.table_location import TableLocation
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore, retry_until
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.queue import queue_work
from acidctl.metastore.queue.compactions import (
    INITIATED,
    READY,
    WORKING,
    Compaction,
    Wish,
    abort_compactions,
    find_compactions,
    request_compaction,
)
from acidctl.metastore.tables import HiveTable
from acidctl.metastore.txn.locked_transaction import Heartbeats, LockedTransaction, TransactionRequest

_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
_NOTHING_DUE = "None of the compaction thresholds met, compaction request is refused!"
"""The message of Hive's own workers."""


@dataclass(frozen=True, slots=True)
class MetastoreSession:
    """A metastore and the heartbeats of the transactions there, shared by several leases."""

    metastore: Metastore
    heartbeats: Heartbeats

    @property
    def has_queue(self) -> bool:
        """Whether external workers can use the metastore's queue."""
        return self.metastore.features.txn_types


@dataclass(slots=True)
class QueueEntryLease:
    """A compaction that :meth:`take` or :meth:`of_entry` begins, and :meth:`settle` or :meth:`give_up` ends.

    Attributes:
        worker: name in the queue.
        entry: of the queue; None before Hive 4.
    """

    session: MetastoreSession
    found: TableLocation
    worker: str
    entry: interface.QueueEntry | None
    transaction: LockedTransaction
    _has_ended: bool = field(default=False)

    @classmethod
    def take(cls, session: MetastoreSession, found: TableLocation, request: CompactionRequest) -> QueueEntryLease:
        """Request a compaction of a location in a pool of its own, and claim the entry.

        Args:
            request: its mode is the type of the compaction, not automatic.

        Raises:
            RefusedError: the queue has another compaction of the location.
            ConflictError: somebody holds a conflicting lock.
        """
        worker = worker_id()
        if not session.has_queue:
            _wait_beside(found, request.wait)
            return cls.of_entry(session, found, worker, request)
        table = _table(found)
        wish = Wish(
            table.database,
            table.name,
            partition_of(found),
            request.mode.value,
            pool=own_pool(worker),
            buckets=request.buckets or None,
            order_by=request.order_by,
        )
        try:
            requested = _request(session.metastore, wish, request)
            entry = queue_work.claim(session.metastore, worker, wish.pool)
            if entry and requested and entry.id != requested:
                give_back(session.metastore, entry, "it was not asked for")
                raise MetastoreError(
                    f"the metastore {session.metastore.shown} gave the compaction {entry.id}, not {requested}",
                    "it seems to know no pools",
                    "give --snapshot to compact beside its queue",
                )
        except BaseException:
            _withdraw(session.metastore, wish.pool, worker)
            raise
        if entry is None:
            raise ConflictError(f"the compaction of {wish.name} was taken out of Hive's queue", "", "run it again")
        return cls.of_entry(session, found, worker, request, entry=entry)

    @classmethod
    def of_entry(
        cls,
        session: MetastoreSession,
        found: TableLocation,
        worker: str,
        request: CompactionRequest,
        *,
        entry: interface.QueueEntry | None = None,
        on_lost: Callable[[AcidctlError], None] | None = None,
    ) -> QueueEntryLease:
        """Open the transaction for a claimed entry, or for a compaction without an entry.

        Args:
            on_lost: called from another thread if the transaction is lost, so that the work is in vain.

        Raises:
            ConflictError: somebody holds a conflicting lock; the entry is marked as failed.
        """
        table, partition = _table(found), partition_of(found)
        level = interface.LockLevel.PARTITION if partition else interface.LockLevel.TABLE
        part = interface.LockComponent(
            level=level, database=table.database, table=table.name, partition=partition or None
        )
        txn_request = TransactionRequest((part,), interface.TxnType.COMPACTION)
        if request.mode is Mode.REBALANCE:  # deletes and updates must wait for the new row ids, as in Hive
            alone = replace(part, type=interface.LockType.EXCL_WRITE, operation=interface.Operation.UPDATE)
            txn_request = TransactionRequest((alone,), interface.TxnType.REBALANCE_COMPACTION, request.wait)
        try:
            transaction = LockedTransaction(session.metastore, session.heartbeats, txn_request, on_lost)
        except BaseException as error:
            if entry:
                _mark_for(error)(session.metastore, entry, _message(error))
            raise
        return cls(session, found.reload(found.resolver.refreshed()), worker, entry, transaction)

    def plan(self, request: CompactionRequest) -> Planned | NoWork | PlanRefused:
        """Plan the compaction by lists that were read after taking the lock."""
        txn = self.transaction.id if self.session.has_queue else 0
        request = replace(request, in_queue=True, visibility_txn=txn)
        self.found.resolver.opened()
        answer = plan_location(self.found.reload(), request)
        if isinstance(answer, Planned):
            try:
                self.found.require_same_table()
            except AcidctlError as error:
                return PlanRefused(location=answer.location, error=error, snapshot=answer.snapshot)
        if self.entry and isinstance(answer, Planned):
            self._record(answer.plan.snapshot.write_ids.high_watermark)
        return answer

    def check(self) -> None:
        """Raise if the result must not be published.

        Raises:
            LostTransaction: the transaction is no longer open.
            ConflictError: another worker has the entry.
            RefusedError: before Hive 4, Hive's own compaction has begun.
        """
        self.transaction.beat()
        if self.entry:
            queue_work.require_worked_on_by(self.session.metastore, self.entry, self.worker)
        else:
            refuse_beside_hive(self.found)

    def settle(self, outcome: Compacted) -> Compacted:
        """End the lease after the work, and return its outcome, which becomes a failure if the commit fails."""
        if not outcome.is_changed:
            self.give_up(outcome.error)
            return outcome
        try:
            self._finish()
        except AcidctlError as error:
            if self.entry is None or self._is_committed():
                self.give_up(error)  # the result is published already
                return outcome
            if self.give_up(error):
                _take_back(outcome)
            return failed(outcome.plan, error)
        return outcome

    def nothing(self, answer: NoWork) -> None:
        """End the lease without work; hand obsolete directories to Hive's cleaner.

        Raises:
            AcidctlError: this failed, and the lease was given up.
        """
        try:
            if self.entry and answer.snapshot and _is_to_be_cleaned(answer.snapshot):
                self._record(answer.snapshot.write_ids.high_watermark)
                self._finish()
                return
            if self.entry:
                queue_work.mark_refused(self.session.metastore, self.entry, _NOTHING_DUE)
            self.transaction.commit()
            self._has_ended = True
        except AcidctlError as error:
            self.give_up(error)
            raise

    def give_up(self, why: BaseException | None) -> bool:
        """End the lease unfinished, and return whether the abort of its transaction is confirmed.

        The entry is marked as failed only after an error, because Hive gives a table up after some failures. If a
        commit was requested and its outcome is unknown, the entry stays as it is, so that it fits the transaction.
        """
        if self._has_ended:
            return False
        self._has_ended = True
        is_aborted = self.transaction.abort(ABORTED_COMPACTION if self.session.has_queue else None)
        if self.entry and (is_aborted or not self.transaction.is_committing) and self._is_ours():
            _mark_for(why)(self.session.metastore, self.entry, _message(why))
        return is_aborted

    def give_back(self, why: str) -> None:
        """End the lease unfinished, and request the same compaction again."""
        if self._has_ended:
            return
        self._has_ended = True
        self.transaction.abort(ABORTED_COMPACTION)
        if self.entry and self._is_ours():
            give_back(self.session.metastore, self.entry, why)

    def _record(self, highest_write_id: int) -> None:
        assert self.entry
        user = self.session.metastore.settings.user_name
        self.entry = queue_work.record_state(
            self.session.metastore, self.entry, highest_write_id, user, self.transaction.id
        )

    def _is_ours(self) -> bool:
        """Return whether the entry still belongs to this lease: the server does not check when it is marked."""
        entry = self._as_queued()
        if entry is None:
            return False
        if entry.state == READY:
            return entry.txn == self.transaction.id and not entry.committed
        return entry.state == WORKING and entry.worker == self.worker

    def _is_committed(self) -> bool:
        """Return whether the queue shows the commit, for a commit whose answer was lost."""
        entry = self._as_queued() if self.transaction.is_committing else None
        return bool(entry and entry.committed and entry.txn == self.transaction.id)

    def _as_queued(self) -> Compaction | None:
        """Return the entry as the queue has it now; None if it is gone, or the queue cannot be read."""
        with suppress(AcidctlError):
            if self.entry:
                return next(iter(find_compactions(self.session.metastore, id=self.entry.id)), None)
        return None

    def _finish(self) -> None:
        if self.entry:
            queue_work.require_worked_on_by(self.session.metastore, self.entry, self.worker)
            queue_work.mark_compacted(self.session.metastore, self.entry)
        self.transaction.commit()
        self._has_ended = True


def partition_of(found: TableLocation) -> str:
    """Return Hive's name of a location's partition; empty for a whole table."""
    return "/".join(partition_name(key, value) for key, value in found.location.partition)


def _is_to_be_cleaned(snapshot: Snapshot) -> bool:
    return any(verdict.state in (State.OBSOLETE, State.ABORTED) for verdict in snapshot.state.verdicts)


def _table(found: TableLocation) -> HiveTable:
    assert found.hive  # only such locations have leases
    return found.hive


def _mark_for(why: BaseException | None) -> Callable[[Metastore, interface.QueueEntry, str], bool]:
    is_failure = isinstance(why, Exception) and not isinstance(why, RefusedError)
    return queue_work.mark_failed if is_failure else queue_work.mark_refused


def _message(error: BaseException | None) -> str:
    if error is None:
        return "acidctl's time was up"
    return str(error) if isinstance(error, AcidctlError) else f"acidctl was ended by {type(error).__name__}"


def _request(metastore: Metastore, wish: Wish, request: CompactionRequest) -> int:
    """Request a compaction, once no other entry is in the way, and return the id of its entry."""
    until, pause = time.monotonic() + request.wait, _PAUSE
    take_over = request.take_over
    freed: set[int] = set()
    while True:
        answer = request_compaction(metastore, wish)
        if answer.accepted:
            return answer.id
        if take_over and answer.state == INITIATED and answer.id:
            take_over = False
            abort_compactions(metastore, [answer.id])
            continue
        entries = find_compactions(metastore, id=answer.id) if answer.id else []
        if entries and answer.id not in freed:
            freed.add(answer.id)
            if free_single(metastore, entries[0]):
                continue
        seconds = until - time.monotonic()
        if seconds <= 0:
            worker = entries[0].worker if entries else ""
            if not answer.id:
                raise RefusedError(
                    f"Hive's queue does not take {wish.name}", answer.message, "SHOW COMPACTIONS tells more"
                )
            raise in_the_way(wish.name, answer.id, answer.state, worker)
        time.sleep(min(pause, seconds))
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _withdraw(metastore: Metastore, pool: str, worker: str) -> None:
    """Remove the entry of a request or claim whose answer was lost: half a day later, any worker would take it."""

    def withdraw() -> bool:
        entries = find_compactions(metastore, pool=pool)
        for entry in entries:
            if entry.state == INITIATED:
                abort_compactions(metastore, [entry.id])
            elif entry.state == WORKING and entry.worker == worker:
                struct = interface.QueueEntry(entry.id, entry.database, entry.table)
                queue_work.mark_failed(metastore, struct, "never begun")
        return bool(entries)

    with suppress(AcidctlError):
        retry_until(withdraw)


def _wait_beside(found: TableLocation, seconds: float) -> None:
    """Wait until Hive's own compaction has ended; before Hive 4, it cannot be taken over."""
    until, pause = time.monotonic() + seconds, _PAUSE
    while True:
        try:
            return refuse_beside_hive(found)
        except RefusedError:
            left = until - time.monotonic()
            if left <= 0:
                raise
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _take_back(outcome: Compacted) -> None:
    """Remove the result, which an aborted transaction hides forever; if that fails, it does no harm."""
    if outcome.plan.visibility_txn:
        with suppress(AcidctlError):
            remove_hidden(outcome.plan, outcome.published)
