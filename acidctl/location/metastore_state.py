"""The state of a metastore at one moment: its lists, readers and queue, and the ids that it has allocated.

The open transactions are read once, before anything is listed: what commits later is in no list, and everything that
the lists contain is on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

from acidctl.acid.listing import Listing
from acidctl.acid.names import MAXL, AcidDirectory
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.unfinished import named_above
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import AcidctlError, ConflictError, NotFoundError, UsageProblem
from acidctl.location.metastore_schema import TableProperties, is_kept, table_properties
from acidctl.location.snapshot import Reader, SnapshotSource
from acidctl.metastore import interface
from acidctl.metastore.activity import Lock, find_locks, open_txns_info, spelled_alike
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import MetastoreError, UnknownMethod
from acidctl.metastore.queue import INITIATED, READY, WAITING_STATES
from acidctl.metastore.tables import HivePartition, HiveTable, find_partitions
from acidctl.metastore.transactions import Transactions, given_txn, given_write_id

_DAY = 86400.0
_REPLICA = "repl.last.id"
"""A parameter of tables that replication writes."""

_WAIT, _MOST_WAITS = 1.0, 5
"""Seconds to wait before querying a metastore again that seems older than the files; and the most waits in a run."""


class Highest(NamedTuple):
    """A write id of a table and a transaction id; usually the highest that are known to have been allocated."""

    write_id: int = 0
    txn: int = 0

    def below(self, named: Iterable[AcidDirectory]) -> tuple[AcidDirectory, ...]:
        """Return the directories with ids above these."""
        return tuple(d for d in named if d.max_write_id > self.write_id or d.visibility_txn > self.txn)

    def within(self, named: Iterable[AcidDirectory]) -> tuple[AcidDirectory, ...]:
        """Return the directories that hold these very ids; 0 is held by none."""
        return tuple(
            directory
            for directory in named
            if (directory.min_write_id <= self.write_id <= directory.max_write_id and self.write_id)
            or (directory.visibility_txn == self.txn and self.txn)
        )


class AllocatedIds:
    """The highest ids that a metastore has allocated, by table; a server is queried only if a name is above them."""

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        self._highest: dict[str, Highest] = {}
        self._waits = _MOST_WAITS

    def exceeded_by(
        self,
        listing: Listing,
        table: HiveTable,
        floor: tuple[int, int],
        again: Callable[[], Listing],
        own: tuple[int, int] = (0, 0),
    ) -> tuple[Reason, ...]:
        """Return why a location holds ids that were never allocated; empty if it holds none.

        Args:
            listing: the location, listed before this call.
            table: its table: write ids are numbered by table.
            floor: a write id and a transaction id that are known to be allocated.
            again: requires that the table is the same, and lists the location's children again.
            own: a write id and a transaction id that the caller has just allocated, and used for no name yet.
        """
        if taken := Highest(*own).within(named_above(listing, 0, 0)):
            return _reasons(taken, Highest(*(id_ - 1 for id_ in own)), self._metastore.shown, table)
        least = Highest(*floor)
        named = named_above(listing, *least)
        if not named:
            return ()
        try:
            if self._above(table, named, least) and (above := self._above_again(table, again, least)):
                return _reasons(above, self._highest[table.full_name], self._metastore.shown, table)
        except (NotFoundError, ConflictError, UsageProblem):  # it was dropped, renamed or created again
            return ()
        except MetastoreError as error:
            return (reason(Code.GIVEN_UNKNOWN, why=str(error)),)
        return ()

    def _above(self, table: HiveTable, named: Iterable[AcidDirectory], floor: Highest) -> tuple[AcidDirectory, ...]:
        highest = self._highest.get(table.full_name, floor)
        if above := highest.below(named):
            write_id, txn = highest
            if any(directory.max_write_id > write_id for directory in above):
                write_id = max(write_id, given_write_id(self._metastore, table.database, table.name))
            if any(directory.visibility_txn > txn for directory in above):
                txn = max(txn, given_txn(self._metastore))
            highest = self._highest[table.full_name] = Highest(write_id, txn)
        return highest.below(above)

    def _above_again(self, table: HiveTable, again: Callable[[], Listing], floor: Highest) -> tuple[AcidDirectory, ...]:
        """List again after a short wait and query every server, since one may lag behind another."""
        if self._waits:
            self._waits -= 1
            time.sleep(_WAIT)
        named = named_above(again(), *floor)
        above = self._above(table, named, floor)
        for server in self._metastore.each_server() if above and len(self._metastore.settings.addresses) != 1 else ():
            with suppress(AcidctlError):  # a server that does not answer is skipped
                highest = Highest(given_write_id(server, table.database, table.name), given_txn(server))
                self._highest[table.full_name] = Highest(*map(max, self._highest[table.full_name], highest))
            server.close()
        return self._highest.get(table.full_name, floor).below(above)


def _reasons(named: Iterable[AcidDirectory], highest: Highest, server: str, table: HiveTable) -> tuple[Reason, ...]:
    is_replica = bool(table.parameters.get(_REPLICA))
    reasons = []
    for what, least, ids in (
        ("write id", highest.write_id, {directory.name: directory.max_write_id for directory in named}),
        ("transaction", highest.txn, {directory.name: directory.visibility_txn for directory in named}),
    ):
        above = {name: number for name, number in ids.items() if number > least}
        if above:
            values = (("what", what), ("given", least), ("server", server), ("is_replica", is_replica))
            reasons.append(Reason(Code.ABOVE_GIVEN, tuple(above), tuple(sorted(set(above.values()))), values))
    return tuple(reasons)


class MetastoreState:
    """The state of one metastore at one moment: committed ids, readers, and Hive's queue.

    Args:
        is_retry: lists were taken before, and directories were newer than those.
    """

    def __init__(self, metastore: Metastore, *, is_retry: bool = False) -> None:
        self.metastore = metastore
        self.allocated = AllocatedIds(metastore)
        self._is_retry = is_retry
        self._databases: dict[str, Mapping[str, str]] = {}
        self._kept: dict[str, frozenset[tuple[tuple[str, str], ...]]] = {}

    @property
    def own_txns(self) -> frozenset[int]:
        """Return the transactions of this process, whose locks are not those of readers."""
        return frozenset()

    @cached_property
    def transactions(self) -> Transactions:
        """Return the open transactions, which are read once, and must be read before anything is listed."""
        return Transactions(self.metastore)

    def lists(self, table: HiveTable, *, may_clean: bool = True) -> tuple[ValidWriteIds, ValidTxns]:
        """Return the lists of a table.

        Args:
            may_clean: the lists may decide what is removed; False saves one call.
        """
        txns = self.transactions.of_cleaner if may_clean else self.transactions.txns
        return self.transactions.write_ids(table.full_name), txns

    def readers(self, table: HiveTable, partition: Sequence[tuple[str, str]]) -> tuple[Reader, ...]:
        """Return the holders of locks on a location, its table or its database, and readers that need no lock."""
        name = "/".join(f"{key}={value}" for key, value in partition)
        oldest = self._oldest
        held = (*self._locks.get((table.database, ""), ()), *self._locks.get((table.database, table.name), ()))
        readers = [
            Reader(lock.txn, lock.id, f"{lock.user}@{lock.host}", lock.acquired or None, lock.agent)
            for lock in held
            if not lock.partition or spelled_alike(lock.partition) == name.lower()
        ]
        readers += self._compactors(table, name.lower())
        return (*readers, *([oldest] if oldest and oldest.txn not in {reader.txn for reader in readers} else ()))

    def _compactors(self, table: HiveTable, partition: str) -> list[Reader]:
        """Return the compactions of Hive 3, which read the state at their beginning without a lock or transaction.

        A reader is reported as at most a day old: without a running cleaner, a queue entry may stay forever.
        """
        if self.metastore.features.txn_types:
            return []
        young = time.time() - _DAY
        return [
            Reader(
                0, 0, entry.worker or "", max((entry.started or 0) / 1000, young), "", entry.state, number=entry.id or 0
            )
            for entry in self._queue.get(table.full_name, ())
            if entry.state != INITIATED and spelled_alike(entry.partition or "") == partition
        ]

    @cached_property
    def _oldest(self) -> Reader | None:
        """Return the oldest open transaction, for which every cleaner waits."""
        lowest = self.transactions.of_cleaner.min_open
        if lowest == MAXL:
            return None
        for txn in open_txns_info(self.metastore).txns:
            if txn.id == lowest:
                since = txn.started and txn.started / 1000
                agent = next((text for text in (txn.meta_info, txn.agent) if text and text != "Unknown"), "")
                return Reader(txn.id, 0, f"{txn.user}@{txn.host}", since or None, agent)
        return None

    def table_properties(self, table: HiveTable) -> TableProperties:
        """Return the properties that the owners of a table and of its database set."""
        return table_properties(
            table.parameters,
            self._of_database(table.database),
            database_wins=self.metastore.features.txn_types,
        )

    def no_cleanup(
        self, table: HiveTable, partition: Sequence[tuple[str, str]], known: HivePartition | None = None
    ) -> str:
        """Return whose properties forbid cleaning a location: ``table``, ``database`` or ``partition``; else empty.

        All partitions of a table are read with one call; only those that forbid cleaning are cached.

        Args:
            known: the partition, if it was just read.
        """
        if by := self.table_properties(table).no_cleanup_by:
            return by
        if not partition:
            return ""
        if known:
            return "partition" if is_kept(known.parameters) else ""
        if table.full_name not in self._kept:
            partitions = find_partitions(self.metastore, table)
            self._kept[table.full_name] = frozenset(lower_keys(p.values) for p in partitions if is_kept(p.parameters))
        return "partition" if lower_keys(partition) in self._kept[table.full_name] else ""

    def _of_database(self, name: str) -> Mapping[str, str]:
        if name not in self._databases:
            try:
                self._databases[name] = self.metastore.call(interface.GET_DATABASE, name).parameters
            except (NotFoundError, UnknownMethod):  # it was dropped, or this metastore has no such call
                self._databases[name] = {}
        return self._databases[name]

    def compaction_of(self, table: HiveTable, partition: Sequence[tuple[str, str]]) -> interface.CompactionInfo | None:
        """Return an entry of Hive's queue for a location that is being compacted or waits for a worker; else None."""
        name = "/".join(f"{key}={value}" for key, value in partition)
        for entry in self._queue.get(table.full_name, ()):
            if entry.state != READY and spelled_alike(entry.partition or "") == name.lower():
                return entry
        return None

    @cached_property
    def _queue(self) -> Mapping[str, list[interface.CompactionInfo]]:
        """Return the unfinished entries of Hive's queue by table, read with one call."""
        by_table: dict[str, list[interface.CompactionInfo]] = {}
        for entry in self.metastore.call(interface.SHOW_COMPACT, interface.ShowCompactRequest()).entries:
            if entry.state in WAITING_STATES:
                by_table.setdefault(f"{entry.database}.{entry.table}".lower(), []).append(entry)
        return by_table

    @cached_property
    def locks(self) -> tuple[Lock, ...]:
        """Return all locks, held and waiting, which are read once."""
        return find_locks(self.metastore)

    @cached_property
    def _locks(self) -> Mapping[tuple[str, str], list[Lock]]:
        """Return the locks that are held by others, by database and table."""
        by_table: dict[tuple[str, str], list[Lock]] = {}
        for lock in self.locks:
            if lock.state == interface.LockState.ACQUIRED.name and not (lock.txn and lock.txn in self.own_txns):
                by_table.setdefault((lock.database.lower(), lock.table.lower()), []).append(lock)
        return by_table

    @property
    def note(self) -> Reason:
        """Return a note for users: the origin and the time of the lists."""
        taken = datetime.fromtimestamp(self.transactions.taken, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        how = "again" if self._is_retry else "first"
        return reason(Code.FROM_METASTORE, server=self.transactions.server, at=taken, how=how)

    @property
    def source(self) -> SnapshotSource:
        """Return the origin and the time of the lists for programs."""
        return SnapshotSource("metastore", self.transactions.server, self.transactions.taken)


def lower_keys(partition: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return partition values for comparison: keys ignore case."""
    return tuple((key.lower(), value) for key, value in partition)
