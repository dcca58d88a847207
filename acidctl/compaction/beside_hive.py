"""Refusals of compactions that a metastore's answers forbid: Hive compacts the location, or would not compact it."""

from __future__ import annotations

from acidctl.base.errors import RefusedError
from acidctl.compaction.refusals import deletes_above
from acidctl.location.resolved import MetastoreFacts
from acidctl.location.snapshot import Snapshot
from acidctl.location.table_location import TableLocation

_SINGLE = "acidctl-"
"""Prefix of the pools of single compactions."""
_INITIATED = "initiated"
"""State of a queue entry that no worker has taken."""


def busy(
    shown: str, facts: MetastoreFacts, *, skips_single: bool = False, take_over: bool = False
) -> RefusedError | None:
    """Return the refusal for a location that Hive itself compacts, or is about to; None if it does not.

    Args:
        skips_single: ignore entries of single compactions by acidctl; they are handled later, since their process may
            be dead.
        take_over: ignore entries that no worker has taken, if the server allows removing them.
    """
    entry = facts.entry
    if entry is None or (skips_single and (entry.pool or "").startswith(_SINGLE)):
        return None
    if take_over and facts.has_pools and entry.state == _INITIATED:
        return None
    return in_the_way(shown, entry.id or 0, entry.state, entry.worker or "", can_take_over=facts.has_pools)


def refuse_beside_hive(found: TableLocation) -> None:
    """Raise RefusedError if Hive's queue, which is read again, has a compaction of the location waiting or running."""
    warehouse = found.resolver.refreshed().warehouse
    if warehouse is None or found.hive is None:
        return
    # Nothing but the queue is asked for: this is repeated while others wait, and comes just before a publication.
    entry = warehouse.compaction_of(found.hive, found.location.partition)
    if error := busy(found.shown, MetastoreFacts(entry=entry, has_pools=warehouse.metastore.features.txn_types)):
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


def refuse_rebalance(shown: str, facts: MetastoreFacts, *, is_of_user: bool) -> None:
    """Refuse a rebalance that cannot lock the table: deletes refer to rows by the ids that it replaces.

    Args:
        is_of_user: the user gave its transaction, so no lock was taken with it.

    Raises:
        RefusedError: the table is not in a metastore of Hive 4, or Hive would refuse it as well.
    """
    what = f"cannot rebalance {shown}"
    if facts.table is None or not facts.decides or is_of_user:
        raise RefusedError(
            what,
            "every row gets another ROW__ID, so Hive must lock out updates and deletes",
            "name it as `hive:db.table`, by the metastore alone; or use --major, which keeps all ids",
        )
    if not facts.has_pools:
        raise RefusedError(what, "rebalances came with Hive 4, and this metastore is older", "use --major")
    if facts.table.buckets > 0:
        columns = ", ".join(facts.table.bucket_columns)
        why = f"its rows are clustered by {columns}, and would not be any more"
        raise RefusedError(what, why, "Hive refuses it, too: use --major")


def refuse_old_ids(snapshot: Snapshot, open_write_ids: tuple[int, ...]) -> None:
    """Refuse a rebalance if a delete event outside of it may refer to rows by their present ids.

    Raises:
        RefusedError: a write id is open, or a delete delta lies above the last write id.
    """
    last = snapshot.write_ids.high_watermark
    later = deletes_above(snapshot.state.verdicts, last)
    if open_write_ids:
        why = f"write id {open_write_ids[0]} of its table is open, and all up to the last one must be part of it"
    elif later:
        why = f"{later[0]} is above write id {last}, and names rows by the ids that they have now"
    else:
        return
    raise RefusedError(
        f"cannot rebalance {snapshot.shown}",
        why,
        "wait until its transaction has ended: see `acidctl hive txns --open`",
    )
