"""What a metastore shows about the tables in a status: who blocks their cleaning, and what is stuck."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, replace

from acidctl.hive.blocking import Blocker, find_blockers
from acidctl.hive.ready_entries import Waiting, ready_entries
from acidctl.location.arguments import is_hive_name, table_in
from acidctl.metastore.activity import KnownTxns, find_locks, find_transactions, key_of
from acidctl.metastore.client import Metastore
from acidctl.metastore.queue.compactions import find_compactions
from acidctl.metastore.queue.stuck import Cause, Stuck, find_stuck
from acidctl.metastore.server import Switches, find_switches
from acidctl.overview.warehouse_status import WarehouseStatus


@dataclass(frozen=True, slots=True)
class QueueView:
    """The blockers of cleaning for these tables, and the stuck entries of the queue.

    Attributes:
        blockers: the blocker of most bytes comes first.
        stuck: without entries that only wait for such a blocker.
        known, switches: the transactions and the settings of the server that this was computed from.
    """

    blockers: tuple[Blocker, ...]
    stuck: tuple[Stuck, ...]
    known: KnownTxns
    switches: Switches

    def overdue(self, older_than: float) -> list[Blocker]:
        """Return the blockers older than the retention: cleaning waits for nothing else any more."""
        return [b for b in self.blockers if (self.known.age(b.started) or 0.0) > older_than]

    def is_trouble(self, older_than: float) -> bool:
        """Return whether something is stuck, or held back for longer than these seconds."""
        return bool(self.stuck or self.overdue(older_than))


def look_at_queue(metastore: Metastore, status: WarehouseStatus, where: Sequence[str]) -> QueueView:
    """Find what blocks the cleaning of these tables and what is stuck, from one list of all transactions.

    Args:
        where: the places as they were given: the tables of names include queue entries without a location.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    # Transactions come before the queue: an entry of an ended transaction is then certain.
    switches = find_switches(metastore)
    txns = find_transactions(metastore)
    entries, locks = find_compactions(metastore), find_locks(metastore)
    patterns = [table_in(name) for name in where if is_hive_name(name)]

    def is_meant(table: str) -> bool:
        return status.holds(table) or any(fnmatch.fnmatchcase(table.lower(), pattern) for pattern in patterns)

    ready = {
        key_of(entry.database, entry.table, entry.partition): entry
        for entry in ready_entries(entries)
        if is_meant(f"{entry.database}.{entry.table}")
    }
    waiting = [
        replace(table, entry=ready.pop(key_of(table.database, table.table, table.partition), None))
        for table in status.waiting
    ]
    waiting += [Waiting(entry.database, entry.table, entry.partition, entry) for entry in ready.values()]
    stuck = find_stuck(entries, txns, switches, () if switches.is_hive4 else locks)
    return QueueView(
        tuple(find_blockers(waiting, txns, locks, switches)),
        tuple(
            item
            for item in stuck
            if item.cause is not Cause.BLOCKED and is_meant(f"{item.entry.database}.{item.entry.table}")
        ),
        txns,
        switches,
    )
