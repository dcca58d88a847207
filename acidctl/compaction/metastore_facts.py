"""The metastore's facts about a location: planning asks for them here, and works with values from then on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import Hive
from acidctl.base.errors import RefusedError
from acidctl.compaction.refusals import deletes_above
from acidctl.location.metastore_schema import TableProperties
from acidctl.location.snapshot import Snapshot
from acidctl.location.table_location import TableLocation

if TYPE_CHECKING:
    from acidctl.metastore.interface import CompactionInfo
    from acidctl.metastore.tables import HiveTable

_SINGLE = "acidctl-"
"""Prefix of the pools of single compactions."""
_INITIATED = "initiated"
"""State of a queue entry that no worker has taken."""


@dataclass(frozen=True, slots=True)
class MetastoreFacts:
    """The answers of a metastore about a location's table; empty without one.

    Attributes:
        properties: those of the table and of its database.
        hive: the version of Hive of which the metastore is.
        entry: the entry of Hive's queue for the location.
        has_pools: the metastore is of Hive 4, in which an entry can be in a pool, and can be removed.
        decides: the metastore, and not the user, decides which write ids count.
    """

    table: HiveTable | None = None
    properties: TableProperties = field(default_factory=TableProperties)
    hive: Hive | None = None
    entry: CompactionInfo | None = None
    has_pools: bool = False
    decides: bool = False

    @classmethod
    def of(cls, found: TableLocation, *, with_queue: bool) -> MetastoreFacts:
        """Ask the metastore; `with_queue` asks for the queue, too.

        Raises:
            MetastoreError: the metastore cannot be reached, or failed.
        """
        if found.hive is None or found.resolver.warehouse is None:
            return cls(found.hive)
        features = found.resolver.warehouse.metastore.features
        return cls(
            found.hive,
            found.table_properties,
            features.hive,
            found.queue_entry if with_queue else None,
            features.txn_types,
            found.resolver.asks_metastore,
        )

    def busy(self, shown: str, *, skips_single: bool = False, take_over: bool = False) -> RefusedError | None:
        """Return the refusal for a location that Hive itself compacts, or is about to; None if it does not.

        Args:
            skips_single: ignore entries of single compactions by acidctl; they are handled later, since their process
                may be dead.
            take_over: ignore entries that no worker has taken, if the server allows removing them.
        """
        entry = self.entry
        if entry is None or (skips_single and (entry.pool or "").startswith(_SINGLE)):
            return None
        if take_over and self.has_pools and entry.state == _INITIATED:
            return None
        return in_the_way(shown, entry.id or 0, entry.state, entry.worker or "", can_take_over=self.has_pools)

    def refuse_rebalance(self, shown: str, *, is_of_user: bool) -> None:
        """Refuse a rebalance that cannot lock the table: deletes refer to rows by the ids that it replaces.

        Args:
            is_of_user: the user gave its transaction, so no lock was taken with it.

        Raises:
            RefusedError: the table is not in a metastore of Hive 4, or Hive would refuse it as well.
        """
        what = f"cannot rebalance {shown}"
        if self.table is None or not self.decides or is_of_user:
            raise RefusedError(
                what,
                "every row gets another ROW__ID, which takes a lock of Hive's against all who update or delete",
                "name it as `hive:db.table`, by the metastore alone; or use --major, which keeps all ids",
            )
        if not self.has_pools:
            raise RefusedError(what, "rebalances came with Hive 4, and this metastore is older", "use --major")
        if self.table.buckets > 0:
            columns = ", ".join(self.table.bucket_columns)
            why = f"its rows are clustered by {columns}, and would not be any more"
            raise RefusedError(what, why, "Hive refuses it, too: use --major")


def refuse_old_ids(snapshot: Snapshot, found: TableLocation) -> None:
    """Refuse a rebalance if a delete event outside of it may refer to rows by their present ids.

    Raises:
        RefusedError: a write id is open, or a delete delta lies above the last write id.
    """
    assert found.hive
    assert found.resolver.warehouse
    write_ids, _ = found.resolver.warehouse.lists(found.hive)
    last = snapshot.write_ids.high_watermark
    later = deletes_above(snapshot.state.verdicts, last)
    if write_ids.open:
        why = f"write id {write_ids.open[0]} of its table is open, and all up to the last one must be part of it"
    elif later:
        why = f"{later[0]} is above write id {last}, and names rows by the ids that they have now"
    else:
        return
    raise RefusedError(
        f"cannot rebalance {found.shown}",
        why,
        "wait until its transaction has ended: see `acidctl hive txns --open`",
    )


def refuse_beside_hive(found: TableLocation) -> None:
    """Raise RefusedError while Hive itself compacts a location, or is about to."""
    warehouse = found.resolver.warehouse
    # Nothing but the queue is asked for: this is repeated while others wait, and comes just before a publication.
    has_pools = warehouse is not None and warehouse.metastore.features.txn_types
    if error := MetastoreFacts(entry=found.queue_entry, has_pools=has_pools).busy(found.shown):
        raise error


def in_the_way(shown: str, id_: int, state: str, worker: str = "", *, can_take_over: bool = True) -> RefusedError:
    """Return the refusal for an earlier entry of Hive's queue.

    Args:
        can_take_over: the server allows removing an entry, as Hive 4 does.
    """
    by = f", by {worker}" if worker else ""
    hint = (
        "`acidctl compact` with --take-over takes it out of the queue"
        if state == _INITIATED and can_take_over
        else "`acidctl compact` with --wait waits until it has ended"
    )
    return RefusedError(
        f"{shown} is not compacted beside Hive", f"the compaction {id_} of Hive's queue is {state}{by}", hint
    )
