"""What a metastore knows of the tables that were looked over: who holds back their cleaning, and what is stuck."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, replace

from acidctl.hive.blocking import Blocker, find_blockers
from acidctl.hive.waiting import Waiting, ready_entries
from acidctl.location.given import is_hive_name, table_in
from acidctl.metastore.activity import KnownTxns, find_locks, find_transactions, key_of
from acidctl.metastore.client import Metastore
from acidctl.metastore.queue.compactions import find_compactions
from acidctl.metastore.queue.stuck import Cause, Stuck, find_stuck
from acidctl.metastore.server import Switches, find_switches
from acidctl.overview.warehouse_status import WarehouseStatus


@dataclass(frozen=True, slots=True)
class QueueView:
    """What holds back cleanings of these tables, and what is stuck in the queue for them.

    Attributes:
        blockers: the one first that holds back most bytes.
        stuck: but for entries that only wait for such a blocker.
        known, switches: the transactions and the settings of the server that this was told from.
    """

    blockers: tuple[Blocker, ...]
    stuck: tuple[Stuck, ...]
    known: KnownTxns
    switches: Switches

    def overdue(self, older_than: float) -> list[Blocker]:
        """Those that are older than what is cleaned has to be: cleaning waits for nothing else any more."""
        return [one for one in self.blockers if (self.known.age(one.started) or 0.0) > older_than]

    def is_trouble(self, older_than: float) -> bool:
        """Whether something is stuck, or held back for longer than these seconds."""
        return bool(self.stuck or self.overdue(older_than))


def look_at_queue(metastore: Metastore, status: WarehouseStatus, where: Sequence[str]) -> QueueView:
    """Ask a metastore what holds back the cleaning of what was looked over, and what is stuck; by one list of all
    transactions.

    Args:
        where: the places as they were given: of the tables that names mean, entries count that have no location.

    Raises:
        MetastoreError: the metastore cannot be reached, or failed.
    """
    # In this order: what the queue says of a transaction that had ended before is certain.
    switches = find_switches(metastore)
    known = find_transactions(metastore)
    entries, locks = find_compactions(metastore), find_locks(metastore)
    patterns = [table_in(name) for name in where if is_hive_name(name)]

    def is_meant(table: str) -> bool:
        return status.holds(table) or any(fnmatch.fnmatchcase(table.lower(), one) for one in patterns)

    ready = {
        key_of(one.database, one.table, one.partition): one
        for one in ready_entries(entries)
        if is_meant(f"{one.database}.{one.table}")
    }
    waiting = [
        replace(one, entry=ready.pop(key_of(one.database, one.table, one.partition), None)) for one in status.waiting
    ]
    waiting += [Waiting(one.database, one.table, one.partition, one) for one in ready.values()]
    stuck = find_stuck(entries, known, switches, () if switches.is_hive4 else locks)
    return QueueView(
        tuple(find_blockers(waiting, known, locks, switches)),
        tuple(
            one
            for one in stuck
            if one.cause is not Cause.BLOCKED and is_meant(f"{one.entry.database}.{one.entry.table}")
        ),
        known,
        switches,
    )
