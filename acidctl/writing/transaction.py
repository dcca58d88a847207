"""The transaction around a statement that writes rows: its write id, its lock, its snapshot and its end.

The order of the calls decides what a crash leaves, and whether an update can be lost: see docs/explanation/writing.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol, Self

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.names import partition_name
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import AcidctlError, ConflictError, StatementConflict
from acidctl.base.printable import printable
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore, batches
from acidctl.metastore.errors import LostTransaction, MetastoreError, UnknownMethod
from acidctl.metastore.interface import LockLevel, LockType, Operation
from acidctl.metastore.lossless import RawStruct
from acidctl.metastore.tables import BATCH, HiveTable
from acidctl.metastore.transactions import Transactions
from acidctl.metastore.txn.transaction import Heartbeats, LockedTransaction, UnknownOutcome
from acidctl.writing.once import AlreadyLoaded, Ledger, Once
from acidctl.writing.statistics import Growth, after, counts_in, without_claims

ATTEMPTS = 5
"""Hive's own `hive.txn.retrysnapshot.max.count`."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The effect of a statement on its table, which decides its lock.

    Attributes:
        operation: INSERT, UPDATE or DELETE; a merge counts as UPDATE.
        replaces: it replaces all rows of a location (INSERT OVERWRITE, TRUNCATE).
        is_dynamic: the data decide which partitions it writes to.
        partitions: names of the existing partitions that it writes to, which are locked instead of the table.
    """

    operation: Operation
    replaces: bool = False
    is_dynamic: bool = False
    partitions: tuple[str, ...] = ()

    def lock_type(self, hive: Hive) -> LockType:
        """Return the lock that Hive's own statement takes by default."""
        if self.replaces:
            return LockType.EXCLUSIVE
        if self.operation is Operation.INSERT:
            return LockType.SHARED_READ
        return LockType.EXCL_WRITE if hive is Hive.HIVE4 else LockType.SHARED_WRITE


class Seen(Protocol):
    """The view that a statement has of its table: its write id, and the lists by which it reads."""

    write_id: int
    write_ids: ValidWriteIds
    txns: ValidTxns


@dataclass(slots=True)
class Rehearsal:
    """The view of a dry run: it opens no transaction, and its write id is the next one."""

    write_id: int
    write_ids: ValidWriteIds
    txns: ValidTxns

    @classmethod
    def of(cls, metastore: Metastore, table: HiveTable) -> Self:
        """Return the view by the metastore's lists as they are now."""
        lists = Transactions(metastore)
        ids = lists.write_ids(table.full_name)
        return cls(ids.high_watermark + 1, ids, lists.txns)


class WriteTransaction:
    """A transaction that writes to one table; use it in a ``with`` statement, which aborts it unless it was committed.

    Args:
        wait: seconds to wait for a conflicting lock.
        once: the load that it makes, if that must not be made twice; the commit records it.
        storage: options of the stores, for the record of `once`.

    Attributes:
        id, write_id: the ids of the transaction.
        may_be_committed: the commit was requested, and is not known to have failed.
        write_ids, txns: the lists by which it reads, taken after its lock; its own ids are open in them.
    """

    def __init__(
        self,
        metastore: Metastore,
        table: HiveTable,
        statement: Statement,
        *,
        wait: float = 600.0,
        once: Once | None = None,
        storage: Mapping[str, str] | None = None,
    ) -> None:
        self._metastore, self._table, self._statement = metastore, table, statement
        self._wait = wait
        self._storage = storage
        self._once = once
        self._ledger = Ledger.of(metastore, table, once.name, storage) if once else None
        self._heartbeats = Heartbeats(metastore)
        self._held: LockedTransaction | None = None
        self.id = self.write_id = 0
        self.may_be_committed = False
        self.write_ids = ValidWriteIds()
        self._parameters: dict[str, dict[str, str]] = {}
        self.txns = ValidTxns()

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException as error:
            self.__exit__()
            if type(error) is ConflictError:  # a lost transaction may begin again
                raise StatementConflict(error.what, error.why, error.hint) from error
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()
        self._heartbeats.close()

    # --- the beginning ----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Open the transaction, and begin again if it was overtaken.

        Raises:
            AlreadyLoaded: the load of `once` is in the table.
            StatementConflict: another writer holds a lock, or the transaction was overtaken in every attempt.
        """
        if self._ledger:
            self._require_new()
            self._ledger.prepare()
        for _ in range(ATTEMPTS):
            if self._statement.replaces:
                self._wait_for_writers()
            seen = self._seen()[1] if self._changes_rows and self._metastore.features.hive is Hive.HIVE3 else None
            self._open()
            self.txns, self.write_ids = self._seen()
            self._require_new()
            if self._is_in_order(seen):
                return
            self.abort()
        raise ConflictError(
            f"{self._table.full_name} changes too often",
            f"{ATTEMPTS} transactions in a row were overtaken by other writers between their beginning and their lock",
            "nothing was written; run it again when fewer writers are at work",
        )

    def _require_new(self) -> None:
        if self._ledger and self._once:
            try:
                self._ledger.require_new(self._once)
            except AlreadyLoaded:
                if self._held:  # another process has loaded it meanwhile; aborted, this one would stay in Hive's lists
                    self._held.release()
                    self._held = None
                raise

    def load_once(self, once: Once) -> None:
        """Make the transaction a load that must not be made twice, if that is known only now; before files move.

        Raises:
            AlreadyLoaded: the load is in the table, and the transaction has ended.
            ConflictError: another process holds the lock of the name, or loaded something else.
        """
        assert self._held
        self._once, self._ledger = once, Ledger.of(self._metastore, self._table, once.name, self._storage)
        self._ledger.prepare()
        self._held.lock([self._ledger.lock], self._wait)
        self._require_new()

    def _wait_for_writers(self) -> None:
        """Wait until no write id of the table is open: the base would hide the rows that its transaction commits.

        Raises:
            ConflictError: a write id is still open after the time to wait.
        """
        end, pause = time.monotonic() + self._wait, 0.05
        while is_open := self._seen()[1].open:
            if time.monotonic() >= end:
                raise ConflictError(
                    f"{self._table.full_name} is being written to",
                    f"the write id {is_open[0]} is open, and its rows would be lost",
                    "nothing was written; see `acidctl hive txns`, and run it again when the writer has ended",
                )
            time.sleep(min(pause, max(end - time.monotonic(), 0)))
            pause = min(2 * pause, 5.0)

    @property
    def _changes_rows(self) -> bool:
        return self._statement.operation is not Operation.INSERT or self._statement.replaces

    def _open(self) -> None:
        table, statement = self._table, self._statement
        component = interface.LockComponent(
            statement.lock_type(self._metastore.features.hive),
            database=table.database,
            table=table.name,
            operation=Operation.UPDATE if statement.replaces else statement.operation,
            is_dynamic=statement.is_dynamic,
        )
        parts = tuple(replace(component, level=LockLevel.PARTITION, partition=name) for name in statement.partitions)
        self._held = LockedTransaction(
            self._metastore,
            self._heartbeats,
            (*(parts or (component,)), *([self._ledger.lock] if self._ledger else [])),
            interface.TxnType.DEFAULT,
            wait=self._wait,
            before_lock=self._allocate,
            checks_conflicts=self._changes_rows,
        )
        self.id = self._held.id

    def _allocate(self, txn: int, *, again: bool = False) -> None:
        """Give the transaction its write id; the metastore copies it into the record of the lock, which comes later."""
        request = interface.AllocateWriteIdsRequest(
            self._table.database, self._table.name, (txn,), True if again else None
        )
        given = self._metastore.call(interface.ALLOCATE_WRITE_IDS, request).write_ids
        if [one.txn for one in given] != [txn] or given[0].write_id < 1:
            raise MetastoreError(
                f"the metastore {self._metastore.shown} gave no write id",
                f"one was asked for, for the transaction {txn}, and it gave {len(given)}, or one for another",
                "see the metastore's log",
            )
        self.write_id = given[0].write_id

    def _seen(self) -> tuple[ValidTxns, ValidWriteIds]:
        lists = Transactions(self._metastore)
        return lists.txns, lists.write_ids(self._table.full_name)

    def _is_in_order(self, seen_before: ValidWriteIds | None) -> bool:
        """Return whether this transaction's write id is above all that it must not miss or hide.

        A delete misses rows of a higher write id (Hive 4), and a base hides all rows of lower ones, also those of
        transactions that are still open. So a transaction that was overtaken takes a higher write id (Hive 4), or
        begins again.
        """
        if self._changes_rows and (self._is_in_conflict() or (seen_before and self._has_news(seen_before))):
            return False
        if newest_valid(self.write_ids) > self.write_id:
            if self._metastore.features.hive is not Hive.HIVE4:
                return False
            self._allocate(self.id, again=True)
            self.txns, self.write_ids = self._seen()
        hides = self._statement.replaces and any(id_ < self.write_id for id_ in self.write_ids.open)
        return not hides and newest_valid(self.write_ids) < self.write_id

    def _is_in_conflict(self) -> bool:
        """Return whether a writer that committed since the opening makes the commit fail (Hive 4)."""
        with suppress(UnknownMethod):
            return bool(self._metastore.call(interface.LATEST_TXN_IN_CONFLICT, self.id) > 0)
        return False

    def _has_news(self, before: ValidWriteIds) -> bool:
        """Return whether a writer has committed since; one that has only begun changes nothing yet."""
        unseen = {*self.write_ids.open, *self.write_ids.aborted}
        return newest_valid(self.write_ids) > newest_valid(before) or not unseen.issuperset(before.open)

    def borrow(self, txn: int) -> None:
        """Take a transaction that the caller holds, locks and ends, in place of one of its own; give it a write id."""
        self.id = txn
        self._allocate(txn)
        self.txns, self.write_ids = self._seen()

    # --- before the files move ----------------------------------------------------------------------------------------

    def register_partitions(self, names: Sequence[str]) -> None:
        """Register the written partitions: otherwise Hive 3 shows rows of an aborted transaction (HIVE-21052)."""
        if self._statement.is_dynamic and names:
            operation = Operation.UPDATE if self._changes_rows else Operation.INSERT
            self._metastore.call(
                interface.ADD_DYNAMIC_PARTITIONS,
                interface.DynamicPartitions(
                    self.id, self.write_id, self._table.database, self._table.name, tuple(names), operation
                ),
            )

    def give_up_statistics(self, partitions: Sequence[str]) -> None:
        """Mark the statistics as not accurate: Hive 4 answers `count(*)`, `min` and `max` from them alone.

        Hive 3 does not, but a new table claims there to be empty, which Hive 4 would believe after an upgrade.

        Args:
            partitions: names of the existing partitions that get files.
        """

        def change(name: str, struct: RawStruct, parameters: int, write_id: int) -> bool:
            before = struct.texts(parameters)
            is_seen = self.write_ids.is_valid(_last_writer(struct, write_id))  # else the counts have uncommitted rows
            self._parameters[name] = before if is_seen else without_claims(before)
            struct.set_texts(parameters, without_claims(before))
            if self._keeps_counts:
                struct.set_long(write_id, self.write_id)
            return self._keeps_counts or struct.texts(parameters) != before

        self._alter(partitions, change)

    def restore_counts(self, growth: Mapping[str, Growth]) -> None:
        """Call the row counts accurate again, with the new rows, once the transaction is committed.

        Not earlier: Hive counts on from what it finds, even if the transaction that wrote it is open or was aborted.
        Counts that another writer has changed meanwhile are left as they are; the metastore checks it once more. A lock
        keeps changes of columns away, which would be lost; while somebody else excludes it, counts stay given up. It
        does not keep away SET TBLPROPERTIES, whose lock is shared as well.

        Args:
            growth: the effect on each location that got files; those of many partitions stay given up, since altering
                them takes the metastore longer than the statement.
        """
        new = {name: after(self._parameters.get(name, {}), grown) for name, grown in growth.items()}
        worth = {name: counts_in(texts) for name, texts in new.items() if texts != without_claims(texts)}
        if not self._keeps_counts or not worth or len(worth) > BATCH:
            return

        def change(name: str, struct: RawStruct, parameters: int, write_id: int) -> bool:
            last = _last_writer(struct, write_id)
            is_new = last < 1 and name not in self._parameters  # else it was dropped and made again meanwhile
            is_ours = name in worth and (is_new or last == self.write_id)
            if is_ours:
                struct.set_texts(parameters, struct.texts(parameters) | worth[name])
                struct.set_long(write_id, self.write_id)
            return is_ours

        shared = interface.LockComponent(database=self._table.database, table=self._table.name)
        with suppress(AcidctlError):  # the rows are written, and the counts are only given up
            held = LockedTransaction(self._metastore, self._heartbeats, (shared,), interface.TxnType.READ_ONLY)
            try:
                self._alter(list(worth), change)
            finally:
                held.release()

    @property
    def _keeps_counts(self) -> bool:
        return self._metastore.features.hive is Hive.HIVE4

    def _alter(self, partitions: Sequence[str], change: Callable[[str, RawStruct, int, int], bool]) -> None:
        """Alter the table, or these partitions if it has any, where `change` returns True."""
        given = self._table.database, self._table.name
        context = interface.EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
        lists = str(replace(self.write_ids, open=tuple(id_ for id_ in self.write_ids.open if id_ != self.write_id)))
        if not self._table.partition_keys:
            table = raw_table(self._metastore, self._table)
            if change("", table, *_OF_TABLE):
                if self._keeps_counts:
                    request = interface.AlterTableRequest(*given, table, context, self.write_id, lists)
                    self._metastore.call(interface.ALTER_TABLE, request)
                else:
                    self._metastore.call(interface.ALTER_TABLE_BEFORE_4, *given, table, context)
            return
        for batch in batches(partitions, BATCH):
            raw = self._metastore.call(interface.GET_RAW_PARTITIONS, *given, tuple(batch))
            changed = tuple(one for one in raw if change(name_of_partition(self._table, one), one, *_OF_PARTITION))
            if changed and self._keeps_counts:
                parts = interface.AlterPartitionsRequest(*given, changed, context, self.write_id, lists)
                self._metastore.call(interface.ALTER_PARTITIONS, parts)
            elif changed:
                self._metastore.call(interface.ALTER_PARTITIONS_BEFORE_4, *given, changed, context)

    # --- the end ------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Send a heartbeat, and raise if the transaction is lost.

        Raises:
            LostTransaction: it timed out, or somebody aborted it.
        """
        assert self._held
        self._held.beat()

    def commit(self, evidence: str = "") -> None:
        """Commit the transaction, which makes its rows visible.

        Args:
            evidence: the URL of a directory with rows of the transaction; empty if it has none.

        Raises:
            LostTransaction: it was already aborted, or another writer changed the same rows and committed first.
            UnknownOutcome: whether it was committed is not known; its files must stay.
        """
        assert self._held
        held, self._held = self._held, None
        self.may_be_committed = True
        try:
            key_value = None
            if self._ledger and self._once:
                key_value = self._ledger.intend(self._once, held, self.write_id, evidence)
            held.commit(key_value)
        except LostTransaction:
            self.may_be_committed = False
            raise
        except UnknownOutcome:
            raise
        except BaseException:  # the server refused or the user interrupted: the transaction may still be open
            self.may_be_committed = not held.abort()
            raise
        if self._ledger and self._once:
            with suppress(AcidctlError):  # the next run finds out
                self._ledger.settle(self._once.value, self._once.owner)

    def abort(self) -> None:
        """Abort the transaction if it is open; remove its files first."""
        if self._held:
            held, self._held = self._held, None
            held.abort()


_OF_TABLE = interface.TABLE_PARAMETERS, interface.TABLE_WRITE_ID
_OF_PARTITION = interface.PARTITION_PARAMETERS, interface.PARTITION_WRITE_ID


def _last_writer(struct: RawStruct, write_id: int) -> int:
    """Return the write id of the statistics; below 1 if they have none, like those of a new partition."""
    return struct.number(write_id)


def newest_valid(ids: ValidWriteIds) -> int:
    """Return the highest committed write id of a list; 0 without any."""
    exceptions = set(ids.exceptions)
    newest = ids.high_watermark
    while newest > 0 and newest in exceptions:
        newest -= 1
    return newest


def raw_table(metastore: Metastore, table: HiveTable) -> RawStruct:
    """Return a table with every field that the metastore sent, so that altering it loses none.

    Raises:
        MetastoreError: it is another table, or none.
    """
    request = interface.GetTableRequest(table.database, table.name, **metastore.settings.translation)
    raw = metastore.call(interface.GET_RAW_TABLE, request).table or RawStruct()
    name = f"{raw.text(2)}.{raw.text(1)}"
    if name.lower() != table.full_name.lower():
        what = f"the metastore {metastore.shown} gave another table than {table.full_name}"
        raise MetastoreError(what, f"it gave {printable(name)}", "see the metastore's log")
    return raw


def name_of_partition(table: HiveTable, partition: RawStruct) -> str:
    """Return the name of a partition, which the metastore does not send: ``day=2026-11-20/hour=1``.

    Raises:
        MetastoreError: it has more or fewer values than the table has partition keys.
    """
    keys, values = [column.name for column in table.partition_keys], partition.text_list(1)
    if len(keys) != len(values):
        what = f"the metastore sent a partition of {table.full_name} that is not one of its partitions"
        raise MetastoreError(what, f"it has {len(values)} values for {len(keys)} keys", "see the metastore's log")
    return "/".join(map(partition_name, keys, values))
