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

from acidctl.base.errors import (
    AccessError,
    AcidctlError,
    ConflictError,
    DeadlineError,
    EnvironmentProblem,
    MemoryProblem,
    NoSpaceError,
    RefusedError,
    unexpected,
)
from acidctl.compaction.beside_hive import in_the_way, refuse_beside_hive
from acidctl.compaction.publish import remove_hidden
from acidctl.compaction.request import CompactionRequest, Mode, NoWork, Planned, PlanRefused, plan_location
from acidctl.compaction.run import Compacted, failed
from acidctl.hive.queue_entries import ABORTED_COMPACTION, free_single, give_back, own_pool, worker_id
from acidctl.hive.table_names import partition_of
from acidctl.location.table_location import TableLocation
from acidctl.metastore import interface, queue
from acidctl.metastore.client import Metastore, releasing, retry_until
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.tables import HiveTable
from acidctl.metastore.txn.transaction import Heartbeats, LockedTransaction

_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
_NOT_OF_LOCATION = (RefusedError, EnvironmentProblem, MemoryProblem, AccessError, NoSpaceError, DeadlineError)
"""Errors that say nothing against a location."""

_NOTHING_DUE = "None of the compaction thresholds met, compaction request is refused!"
"""The message of Hive's own workers."""


@dataclass(slots=True)
class QueueEntryLease:
    """A compaction that :meth:`take` or :meth:`of_entry` begins, and :meth:`settle` or :meth:`give_up` ends.

    Attributes:
        refusal: replaces the error with which the lease ended if the location was dropped or moved meanwhile.
    """

    metastore: Metastore
    found: TableLocation
    worker: str
    entry: interface.QueueEntry | None
    transaction: LockedTransaction
    refusal: RefusedError | None = None
    _has_ended: bool = field(default=False)

    @classmethod
    def take(
        cls, metastore: Metastore, heartbeats: Heartbeats, found: TableLocation, request: CompactionRequest
    ) -> QueueEntryLease:
        """Request a compaction of a location in a pool of its own, and claim the entry.

        Args:
            heartbeats: keep the transactions of several leases alive.
            request: its mode is the type of the compaction, not automatic.

        Raises:
            RefusedError: the queue has another compaction of the location.
        """
        worker = worker_id()
        if not metastore.features.txn_types:
            _wait_beside(found, request.wait)
            return cls.of_entry(metastore, heartbeats, found, request, worker)
        table, pool, buckets = _table(found), own_pool(worker), request.buckets or None
        kind = request.mode.value
        wish = queue.Wish(table.database, table.name, partition_of(found), kind, pool, buckets=buckets)
        try:
            requested = _request(metastore, wish, request)
            entry = queue.claim(metastore, worker, pool)
            if entry and requested and entry.id != requested:
                give_back(metastore, entry, "it was not asked for")
                raise MetastoreError(
                    f"the metastore {metastore.shown} gave the compaction {entry.id}, not {requested}",
                    "it seems to know no pools",
                    "give --snapshot to compact beside its queue",
                )
        except BaseException:
            _withdraw(metastore, pool, worker)
            raise
        if entry is None:
            raise ConflictError(f"the compaction of {wish.name} was taken out of Hive's queue", "", "run it again")
        return cls.of_entry(metastore, heartbeats, found, request, worker, entry=entry)

    @classmethod
    def of_entry(
        cls,
        metastore: Metastore,
        heartbeats: Heartbeats,
        found: TableLocation,
        request: CompactionRequest,
        worker: str,
        *,
        entry: interface.QueueEntry | None = None,
        on_lost: Callable[[AcidctlError], None] | None = None,
    ) -> QueueEntryLease:
        """Open the transaction for a claimed entry, or for a compaction without an entry.

        Args:
            on_lost: called from another thread if the transaction is lost, so that the work is in vain.

        Raises:
            ConflictError: somebody holds a conflicting lock; the entry is marked as failed.
            RefusedError: it cannot be opened, as the location was dropped or moved; the entry is marked as refused.
        """
        table, partition = _table(found), partition_of(found)
        level = interface.LockLevel.PARTITION if partition else interface.LockLevel.TABLE
        part = interface.LockComponent(
            level=level, database=table.database, table=table.name, partition=partition or None
        )
        txn_type, wait = interface.TxnType.COMPACTION, 0.0
        if request.mode is Mode.REBALANCE:  # deletes and updates must wait for the new row ids, as in Hive
            part = replace(part, type=interface.LockType.EXCL_WRITE, operation=interface.Operation.UPDATE)
            txn_type, wait = interface.TxnType.REBALANCE_COMPACTION, request.wait
        try:
            transaction = LockedTransaction(metastore, heartbeats, (part,), txn_type, wait=wait, on_lost=on_lost)
        except BaseException as error:
            if entry:
                refusal = _refusal(found, error)
                mark_ended(metastore, entry, refusal or error)
                if refusal:
                    raise refusal from error
            raise
        return cls(metastore, found.reload(found.resolver.refreshed()), worker, entry, transaction)

    def plan(self, request: CompactionRequest) -> Planned | NoWork | PlanRefused:
        """Plan the compaction by lists that were read after taking the lock; without a plan, the lease ends."""
        txn = self.transaction.id if self.metastore.features.txn_types else 0
        self.found.resolver.opened()
        answer = plan_location(self.found.reload(), replace(request, in_queue=True, visibility_txn=txn))
        if isinstance(answer, Planned):
            try:
                self.found.require_same_table()
            except AcidctlError as error:
                answer = PlanRefused(location=answer.location, error=error, snapshot=answer.snapshot)
        if isinstance(answer, PlanRefused):
            self.give_up(answer.error)
        elif isinstance(answer, NoWork):
            self._end_without_work(answer)
        elif self.entry:
            self._record(answer.plan.snapshot.write_ids.high_watermark)
        return answer

    @releasing()
    def check(self) -> None:
        """Raise if the result must not be published: the transaction or entry is lost, or Hive compacts by itself."""
        self.transaction.beat()
        if self.entry:
            queue.require_worked_on_by(self.metastore, self.entry.id, self.worker)
        else:
            refuse_beside_hive(self.found)

    @releasing()
    def settle(self, outcome: Compacted) -> Compacted:
        """End the lease after the work, and return its outcome, which becomes a failure if the commit fails."""
        if not outcome.is_changed:
            self.give_up(outcome.error)
            return outcome
        try:
            self._finish()
        except AcidctlError as error:
            queued = self._as_queued() if self.transaction.is_committing else None
            is_committed = queued and queued.committed and queued.txn == self.transaction.id
            if self.entry is None or is_committed:  # the answer to the commit was lost
                self.give_up(error)  # the result is published already
                return outcome
            if self.give_up(error) and outcome.plan.visibility_txn:
                with suppress(AcidctlError):  # the aborted transaction hides the result forever
                    remove_hidden(outcome.plan, outcome.published)
            return failed(outcome.plan, error)
        return outcome

    @releasing()
    def _end_without_work(self, answer: NoWork) -> None:
        """End the lease; hand obsolete directories to Hive's cleaner."""
        try:
            if self.entry and answer.snapshot and answer.snapshot.state.removable:
                self._record(answer.snapshot.write_ids.high_watermark)
                self._finish()
                return
            if self.entry:
                queue.mark_refused(self.metastore, self.entry, _NOTHING_DUE)
            self.transaction.commit()
            self._has_ended = True
        except AcidctlError as error:
            self.give_up(error)
            raise

    @releasing()
    def give_up(self, why: BaseException | None) -> bool:
        """End the lease unfinished, and return whether the abort of its transaction is confirmed.

        The entry is marked as failed only after an error of its location, see :func:`mark_ended`, because Hive gives a
        table up after some failures; and as refused if the location was dropped or moved, as by Hive's own workers.
        If a commit was requested and its outcome is unknown, the entry stays as it is, so that it fits the transaction.
        """
        if self._has_ended:
            return False
        self._has_ended = True
        is_aborted = self.transaction.abort(ABORTED_COMPACTION if self.metastore.features.txn_types else None)
        if self.entry and (is_aborted or not self.transaction.is_committing):
            self.refusal = _refusal(self.found, why)
            if self._is_ours():
                mark_ended(self.metastore, self.entry, self.refusal or why)
        return is_aborted

    @releasing()
    def give_back(self, why: str) -> None:
        """End the lease unfinished, and request the same compaction again."""
        if self._has_ended:
            return
        self._has_ended = True
        self.transaction.abort(ABORTED_COMPACTION)
        if self.entry and self._is_ours():
            give_back(self.metastore, self.entry, why)

    def _record(self, highest_write_id: int) -> None:
        assert self.entry
        self.entry = queue.record_state(self.metastore, self.entry, highest_write_id, self.transaction.id)

    def _is_ours(self) -> bool:
        """Return whether the entry still belongs to this lease: the server does not check when it is marked."""
        entry = self._as_queued()
        if entry and entry.state == queue.READY:
            return entry.txn == self.transaction.id and not entry.committed
        return bool(entry and entry.state == queue.WORKING and entry.worker == self.worker)

    def _as_queued(self) -> queue.Compaction | None:
        """Return the entry as the queue has it now; None if it is gone, or the queue cannot be read."""
        with suppress(AcidctlError):
            return queue.find_entry(self.metastore, self.entry.id) if self.entry else None
        return None

    def _finish(self) -> None:
        if self.entry:
            queue.require_worked_on_by(self.metastore, self.entry.id, self.worker)
            # This hands the entry to the cleaner; the commit must follow.
            self.metastore.call(interface.MARK_COMPACTED, self.entry)
        self.transaction.commit()
        self._has_ended = True


@releasing()
def mark_ended(metastore: Metastore, entry: interface.QueueEntry, why: BaseException | None) -> None:
    """Remove an entry from the queue: as failed after an error of its location, else as refused.

    Hive gives a table up after some failures, so nothing counts as one for which this machine or its user is at
    fault.
    """
    why = unexpected(why) if isinstance(why, Exception) else why
    message = "acidctl reached its deadline" if why is None else f"acidctl was ended by {type(why).__name__}"
    if isinstance(why, AcidctlError):
        message = str(why)
    (queue.mark_failed if _is_failure(why) else queue.mark_refused)(metastore, entry, message)


def _is_failure(why: BaseException | None) -> bool:
    return isinstance(why, Exception) and not isinstance(why, _NOT_OF_LOCATION)


def _refusal(found: TableLocation, why: BaseException | None) -> RefusedError | None:
    """Return the refusal that replaces an error if the metastore dropped or moved the location; else None."""
    with suppress(AcidctlError):
        if _is_failure(why) and found.is_elsewhere_in_metastore():
            return RefusedError(f"{found.shown} is not compacted", f"it was dropped or moved meanwhile: {why}", "")
    return None


def _table(found: TableLocation) -> HiveTable:
    assert found.hive  # only such locations have leases
    return found.hive


def _request(metastore: Metastore, wish: queue.Wish, request: CompactionRequest) -> int:
    """Request a compaction, once no other entry is in the way, and return the id of its entry."""
    until, pause = time.monotonic() + request.wait, _PAUSE
    take_over = request.take_over
    freed: set[int] = set()
    while True:
        answer = queue.request_compaction(metastore, wish)
        if answer.accepted:
            return answer.id
        if take_over and answer.state == queue.INITIATED and answer.id:
            take_over = False
            queue.abort_compactions(metastore, [answer.id])
            continue
        entry = queue.find_entry(metastore, answer.id) if answer.id else None
        if entry and answer.id not in freed:
            freed.add(answer.id)
            if free_single(metastore, entry):
                continue
        seconds = until - time.monotonic()
        if seconds <= 0:
            if answer.id:
                raise in_the_way(wish.name, answer.id, answer.state, entry.worker if entry else "")
            hint = "SHOW COMPACTIONS tells more"
            raise RefusedError(f"Hive's queue does not take {wish.name}", answer.message, hint)
        time.sleep(min(pause, seconds))
        pause = min(pause * 1.5, _LONGEST_PAUSE)


@releasing()
def _withdraw(metastore: Metastore, pool: str, worker: str) -> None:
    """Remove the entry of a request or claim whose answer was lost: half a day later, any worker would take it."""

    def withdraw() -> bool:
        entries = queue.find_compactions(metastore, pool=pool)
        for entry in entries:
            if entry.state == queue.INITIATED:
                queue.abort_compactions(metastore, [entry.id])
            elif entry.state == queue.WORKING and entry.worker == worker:
                queue.mark_failed(metastore, entry.as_claimed(), "never begun")
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
            remaining = until - time.monotonic()
            if remaining <= 0:
                raise
        time.sleep(min(pause, remaining))
        pause = min(pause * 1.5, _LONGEST_PAUSE)
