"""Rules that decide when a ready entry of Hive's queue may be cleaned, and when it may be marked as cleaned.

When an entry is marked, the metastore forgets the aborted transactions up to its highest write id, so that rows of them
that are still in a file would become visible. Therefore doubtful entries are left to Hive's own cleaner.
"""

from __future__ import annotations

from dataclasses import replace

from acidctl.acid.names import MAXL, Kind
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import AcidState, State, Verdict
from acidctl.acid.writeids import ListReader, Range, ValidWriteIds
from acidctl.metastore.activity import KnownTxns, TxnStatus
from acidctl.metastore.queue import COMPACTIONS, Compaction

OPEN_TXN_GAP = 10.0
"""Seconds for which a new transaction may already have its id, but not be listed yet: the server itself waits 1."""

HIVES_TURN = 3600.0
"""Seconds after the start of Hive's own cleaner on an entry in which it is assumed to be running."""

AFTER_A_FAILURE = 60.0
"""The same for an entry at which it has failed before; it retries after five minutes at the earliest."""

REBALANCE = "rebalance"
"""Kind of entries for which Hive 4.0 never returns the time of the commit."""


def why_left(entry: Compaction, now: float) -> Reason | None:
    """Return why an entry is left to Hive, whatever its location holds; None if it is not."""
    if entry.kind not in COMPACTIONS:
        return reason(Code.LEFT_TO_HIVE, kind=entry.kind)
    if entry.highest_write_id <= 0:
        return reason(Code.LEFT_TO_HIVE)  # the metastore would forget what it knows of the whole location
    if not tells_of_commit(entry) and (entry.kind != REBALANCE or entry.txn <= 0):
        return reason(Code.COMMIT_UNKNOWN)
    turn = AFTER_A_FAILURE if entry.error else HIVES_TURN
    if entry.cleaner_start is not None and now - entry.cleaner_start < turn:
        return reason(Code.LEFT_TO_HIVE, since=entry.cleaner_start)
    return None


def tells_of_commit(entry: Compaction) -> bool:
    """Return whether an entry has the time of its commit, and the highest transaction id at that time."""
    return entry.next_txn > 0 and entry.committed is not None


def first_seen_committed(entry: Compaction, known: KnownTxns) -> Compaction | None:
    """Return the entry with `known`'s time as that of its commit; None if it was not committed by then.

    To wait for all transactions that began before this time is enough, as later ones see the commit. The transaction
    was not aborted, because the metastore keeps listing an aborted transaction of a compaction.
    """
    is_open = any(txn.id == entry.txn for txn in known.txns)
    if is_open or entry.txn > known.high_watermark:
        return None
    return replace(entry, next_txn=known.high_watermark, committed=known.now)


def why_waiting(entry: Compaction, known: KnownTxns) -> Reason | None:
    """Return why an entry that is not left to Hive cannot be cleaned yet; None if it can.

    Args:
        known: all transactions, including those that only read.
    """
    least = min((txn.id for txn in known.txns if txn.state is not TxnStatus.ABORTED), default=None)
    # `next_txn` is the highest id at the commit: this transaction, too, had begun, though Hive's cleaner ignores it.
    if least is not None and least <= entry.next_txn:
        return reason(Code.TRANSACTION_BELOW, ids=(least,))
    if known.high_watermark < entry.next_txn - 1:
        return reason(Code.COMMIT_UNKNOWN)  # another server's numbers
    until = (entry.committed or 0.0) + OPEN_TXN_GAP
    if known.now <= until:
        return reason(Code.COMMITTED_LATELY, until=until)
    return None


def why_unmarked(entry: Compaction, state: AcidState, write_ids: ValidWriteIds, by_entry: AcidState) -> Reason | None:
    """Return why an entry may not be marked as cleaned; None if it may.

    Args:
        state: of the location, listed again after the cleaning, for a new reader.
        write_ids: the reader's write ids that `state` is based on.
        by_entry: the state by the write ids up to the entry's highest one: it need not remove what a later compaction
            replaced.
    """
    if state.history_problem is not None:
        return state.history_problem
    highest = entry.highest_write_id
    is_decided = highest <= write_ids.high_watermark < MAXL and min(write_ids.open, default=MAXL) > highest
    if not is_decided or write_ids.mode is not ListReader.READER:
        return reason(Code.WRITES_UNDECIDED, ids=(highest,))
    remaining = list(by_entry.removable)
    for verdict in state.verdicts:
        # A directory of an open transaction would become visible if the transaction is aborted and then forgotten.
        is_hidden = verdict.state is State.ABORTED or verdict.reason.code is Code.VISIBILITY_OPEN
        # Original files have write ids below all others.
        if is_hidden and (verdict.directory is None or verdict.directory.min_write_id <= highest):
            remaining.append(verdict)
    if remaining:
        return reason(Code.STILL_LEFT, by=tuple(dict.fromkeys(verdict.name for verdict in remaining)))
    # In any state, a delta that ends above the highest write id may hold rows of aborted ids below it.
    hiding = [verdict for verdict in state.verdicts if _may_hide(verdict, write_ids, highest)]
    if hiding:
        return reason(Code.HIDES_ABORTED, by=tuple(verdict.name for verdict in hiding))
    return None


def _may_hide(verdict: Verdict, write_ids: ValidWriteIds, highest: int) -> bool:
    """Return whether a directory may contain rows of aborted write ids that only the metastore's list hides."""
    directory = verdict.directory
    if directory is None or directory.visibility_txn or (directory.kind is Kind.BASE and verdict.compacted):
        return False  # compactions drop such rows
    last = min(directory.max_write_id, highest)
    if directory.min_write_id > last:
        return False
    return write_ids.range_aborted(directory.min_write_id, last) is not Range.NONE
