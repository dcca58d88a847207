"""One location's compaction as Hive knows it: an entry of its queue, a transaction with a shared lock, and their end.

On Hive 4 the entry stands in a pool that nobody else looks into, the result is named ``_v<txn>`` after the transaction,
and appears for readers with its commit. Before Hive 4 the queue is not for others: the transaction keeps the cleaner
away, and the result appears by its rename.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from acidctl.acid.names import partition_name
from acidctl.acid.state import State
from acidctl.compaction.publish import remove_hidden
from acidctl.compaction.request import (
    CompactionRequest,
    Mode,
    Nothing,
    Planned,
    Refused,
    in_the_way,
    plan_location,
    refuse_beside_hive,
)
from acidctl.compaction.run import Compacted, failed
from acidctl.errors import AcidctlError, ConflictError, RefusedError
from acidctl.hive.leftover import ABORTED_COMPACTION, free_single, give_back, own_pool, worker_id
from acidctl.location.find import Found
from acidctl.location.lists import SnapshotLists
from acidctl.location.snapshot import Snapshot
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore, retry_until
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.own.locked_transaction import Asked, Heartbeats, LockedTransaction
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

_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
_NOTHING_DUE = "None of the compaction thresholds met, compaction request is refused!"
"""Hive's own words."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Where turns are taken: a metastore, and who keeps their transactions alive there."""

    metastore: Metastore
    heartbeats: Heartbeats

    @property
    def has_queue(self) -> bool:
        """Whether workers outside of the metastore may take from its queue."""
        return self.metastore.features.txn_types


@dataclass(slots=True)
class Turn:
    """Begun by :meth:`take` or :meth:`of_entry`; ended by :meth:`settle`, :meth:`nothing` or :meth:`give_up`.

    Attributes:
        entry: of the queue; None before Hive 4.
        worker: who works on it, as the queue has it.
        transaction: of the compaction.
        lists: by which it is planned, taken after the lock.
    """

    desk: Desk
    found: Found
    worker: str
    entry: interface.QueueEntry | None
    transaction: LockedTransaction
    lists: SnapshotLists
    _has_ended: bool = field(default=False)

    @classmethod
    def take(cls, desk: Desk, found: Found, lists: SnapshotLists, request: CompactionRequest) -> Turn:
        """Ask for a compaction of a location, and take it before anybody else can.

        Args:
            request: with the type that was decided on.

        Raises:
            RefusedError: another compaction of it stands in the queue.
            ConflictError: somebody's lock excludes it.
            MetastoreError: the metastore cannot be reached, or failed.
        """
        worker = worker_id()
        if not desk.has_queue:
            _wait_beside(found, lists, request.wait)
            return cls.of_entry(desk, found, lists, worker, request)
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
            asked = _ask(desk.metastore, wish, request)
            entry = queue_work.claim(desk.metastore, worker, wish.pool)
            if entry and asked and entry.id != asked:
                give_back(desk.metastore, entry, "it was not asked for")
                raise MetastoreError(
                    f"the metastore {desk.metastore.shown} gave the compaction {entry.id}, not {asked}",
                    "it seems to know no pools",
                    "give `write_ids` to compact beside its queue",
                )
        except BaseException:
            _withdraw(desk.metastore, wish.pool, worker)
            raise
        if entry is None:
            raise ConflictError(f"the compaction of {wish.name} was taken out of Hive's queue", "", "run it again")
        return cls.of_entry(desk, found, lists, worker, request, entry=entry)

    @classmethod
    def of_entry(
        cls,
        desk: Desk,
        found: Found,
        lists: SnapshotLists,
        worker: str,
        request: CompactionRequest,
        *,
        entry: interface.QueueEntry | None = None,
        on_lost: Callable[[AcidctlError], None] | None = None,
    ) -> Turn:
        """Open the transaction of an entry that was taken, or of a compaction beside the queue.

        Args:
            on_lost: called from another thread when the transaction is lost: what is done is for nothing.

        Raises:
            ConflictError: somebody's lock excludes it; the entry has failed then.
            MetastoreError: the metastore cannot be reached, or failed.
        """
        table, partition = _table(found), partition_of(found)
        level = interface.LockLevel.PARTITION if partition else interface.LockLevel.TABLE
        part = interface.LockComponent(
            level=level, database=table.database, table=table.name, partition=partition or None
        )
        asked = Asked((part,), interface.TxnType.COMPACTION)
        if request.mode is Mode.REBALANCE:  # as Hive's own: who deletes or updates must wait until the ids are new
            alone = replace(part, type=interface.LockType.EXCL_WRITE, operation=interface.Operation.UPDATE)
            asked = Asked((alone,), interface.TxnType.REBALANCE_COMPACTION, request.wait)
        try:
            transaction = LockedTransaction(desk.metastore, desk.heartbeats, asked, on_lost)
        except BaseException as error:
            if entry:
                _mark_for(error)(desk.metastore, entry, _words(error))
            raise
        return cls(desk, found, worker, entry, transaction, lists.renewed())

    def plan(self, request: CompactionRequest) -> Planned | Nothing | Refused:
        """What is to be done in the location now, by lists that were taken after the lock.

        Raises:
            MetastoreError: the metastore cannot be reached, or failed.
        """
        txn = self.transaction.id if self.desk.has_queue else 0
        own = replace(request, in_queue=True, visibility_txn=txn)
        answer = plan_location(self.found.afresh(), self.lists.begun(), own)
        if self.entry and isinstance(answer, Planned):
            self._record(answer.plan.snapshot.write_ids.high_watermark)
        return answer

    def check(self) -> None:
        """Before a result is shown: is it still our turn?

        Raises:
            LostTransaction: the transaction is not open any more.
            ConflictError: the entry was given to another worker.
            RefusedError: before Hive 4: Hive's own compaction has begun meanwhile.
            MetastoreError: the metastore cannot be reached, or failed.
        """
        self.transaction.beat()
        if self.entry:
            queue_work.require_worked_on_by(self.desk.metastore, self.entry, self.worker)
        else:
            refuse_beside_hive(self.found, self.lists.renewed())

    def settle(self, outcome: Compacted) -> Compacted:
        """End it by what became of the work; the outcome, which fails where the end does."""
        if not outcome.is_changed:
            self.give_up(outcome.error)
            return outcome
        try:
            self._finish()
        except AcidctlError as error:
            if self.entry is None or self._is_committed():
                self.give_up(error)  # which changes nothing of what readers see
                return outcome
            if self.give_up(error):
                _take_back(outcome)
            return failed(outcome.plan, error)
        return outcome

    def nothing(self, answer: Nothing) -> None:
        """End it where there is nothing to be done: what is obsolete there is handed to Hive's cleaner.

        Raises:
            AcidctlError: it cannot be ended so; it has failed then.
        """
        try:
            if self.entry and answer.snapshot and _is_to_be_cleaned(answer.snapshot):
                self._record(answer.snapshot.write_ids.high_watermark)
                self._finish()
                return
            if self.entry:
                queue_work.mark_refused(self.desk.metastore, self.entry, _NOTHING_DUE)
            self.transaction.commit()
            self._has_ended = True
        except AcidctlError as error:
            self.give_up(error)
            raise

    def give_up(self, why: BaseException | None) -> bool:
        """End it unfinished; whether its transaction is known to be aborted.

        The entry has failed, but where nothing went wrong: after some failures Hive gives a table up. Where that is not
        known, and a commit was asked for, the entry is left as it is: it belongs to what became of the transaction.
        """
        if self._has_ended:
            return False
        self._has_ended = True
        is_aborted = self.transaction.abort(ABORTED_COMPACTION if self.desk.has_queue else None)
        if self.entry and (is_aborted or not self.transaction.is_committing) and self._is_ours():
            _mark_for(why)(self.desk.metastore, self.entry, _words(why))
        return is_aborted

    def give_back(self, why: str) -> None:
        """End it unfinished: the same is asked for again."""
        if self._has_ended:
            return
        self._has_ended = True
        self.transaction.abort(ABORTED_COMPACTION)
        if self.entry and self._is_ours():
            give_back(self.desk.metastore, self.entry, why)

    def _record(self, highest_write_id: int) -> None:
        assert self.entry
        user = self.desk.metastore.settings.user_name
        self.entry = queue_work.record_state(
            self.desk.metastore, self.entry, highest_write_id, user, self.transaction.id
        )

    def _is_ours(self) -> bool:
        """Whether the entry may be marked: the server would let anybody."""
        entry = self._as_queued()
        if entry is None:
            return False
        if entry.state == READY:
            return entry.txn == self.transaction.id and not entry.committed
        return entry.state == WORKING and entry.worker == self.worker

    def _is_committed(self) -> bool:
        """Whether the queue says so, where the commit's own answer was lost."""
        entry = self._as_queued() if self.transaction.is_committing else None
        return bool(entry and entry.committed and entry.txn == self.transaction.id)

    def _as_queued(self) -> Compaction | None:
        """The entry as the queue has it now; None where it has it no more, or cannot be asked."""
        with suppress(AcidctlError):
            if self.entry:
                return next(iter(find_compactions(self.desk.metastore, id=self.entry.id)), None)
        return None

    def _finish(self) -> None:
        if self.entry:
            queue_work.require_worked_on_by(self.desk.metastore, self.entry, self.worker)
            queue_work.mark_compacted(self.desk.metastore, self.entry)
        self.transaction.commit()
        self._has_ended = True


def partition_of(found: Found) -> str:
    """The name of a location's partition as Hive has it; empty for a whole table."""
    return "/".join(partition_name(key, value) for key, value in found.location.partition)


def _is_to_be_cleaned(snapshot: Snapshot) -> bool:
    return any(verdict.state in (State.OBSOLETE, State.ABORTED) for verdict in snapshot.state.verdicts)


def _table(found: Found) -> HiveTable:
    assert found.hive  # who takes a turn knows its table
    return found.hive


def _mark_for(why: BaseException | None) -> Callable[[Metastore, interface.QueueEntry, str], bool]:
    is_failure = isinstance(why, Exception) and not isinstance(why, RefusedError)
    return queue_work.mark_failed if is_failure else queue_work.mark_refused


def _words(error: BaseException | None) -> str:
    if error is None:
        return "acidctl's time was up"
    return str(error) if isinstance(error, AcidctlError) else f"acidctl was ended by {type(error).__name__}"


def _ask(metastore: Metastore, wish: Wish, request: CompactionRequest) -> int:
    """Put it into the queue, once what is in the way is gone; its id."""
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
        found = find_compactions(metastore, id=answer.id) if answer.id else []
        if found and answer.id not in freed:
            freed.add(answer.id)
            if free_single(metastore, found[0]):
                continue
        left = until - time.monotonic()
        if left <= 0:
            worker = found[0].worker if found else ""
            if not answer.id:
                raise RefusedError(
                    f"Hive's queue does not take {wish.name}", answer.message, "SHOW COMPACTIONS tells more"
                )
            raise in_the_way(wish.name, answer.id, answer.state, worker)
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _withdraw(metastore: Metastore, pool: str, worker: str) -> None:
    """What nobody knows to be in the queue, as an answer was lost, is not to be found there half a day later."""

    def look() -> bool:
        found = find_compactions(metastore, pool=pool)
        for one in found:
            if one.state == INITIATED:
                abort_compactions(metastore, [one.id])
            elif one.state == WORKING and one.worker == worker:
                queue_work.mark_failed(metastore, interface.QueueEntry(one.id, one.database, one.table), "never begun")
        return bool(found)

    with suppress(AcidctlError):
        retry_until(look)


def _wait_beside(found: Found, lists: SnapshotLists, seconds: float) -> None:
    """Until Hive's own compaction has ended; it cannot be taken over before Hive 4."""
    until, pause = time.monotonic() + seconds, _PAUSE
    while True:
        try:
            return refuse_beside_hive(found, lists.renewed())
        except RefusedError:
            left = until - time.monotonic()
            if left <= 0:
                raise
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _take_back(outcome: Compacted) -> None:
    """Remove what a transaction that was aborted hides for ever; what cannot be removed harms nobody."""
    if outcome.plan.visibility_txn:
        with suppress(AcidctlError):
            remove_hidden(outcome.plan, outcome.published)
