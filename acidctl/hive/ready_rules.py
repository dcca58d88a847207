"""What decides on an entry of Hive's queue that is ready for cleaning: when it may be cleaned, and marked as cleaned.

Marking is the last step: the metastore then forgets the aborted transactions up to the entry's highest write id, and
whatever still holds rows of them would be read. So an entry is left to Hive's own cleaner where anything is in doubt.
"""

from __future__ import annotations

from dataclasses import replace

from acidctl.acid.names import MAXL, Kind
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import AcidState, State, Verdict
from acidctl.acid.writeids import ListReader, Range, ValidWriteIds
from acidctl.metastore.activity import KnownTxns, TxnStatus
from acidctl.metastore.queue.compactions import Compaction

OPEN_TXN_GAP = 10.0
"""Seconds for which a transaction may have an id and not be seen yet: the server waits for one of them."""

HIVES_TURN = 3600.0
"""Seconds since Hive's own cleaner began with an entry in which it is taken to be at work on it;"""

AFTER_A_FAILURE = 60.0
"""and where it failed at it before, as the entry tells: it comes again after five minutes at the earliest."""

REBALANCE = "rebalance"
"""Hive 4.0 never says when the transaction of one was committed."""

_CLEANED_KINDS = ("major", "minor", REBALANCE)


def why_left(entry: Compaction, now: float) -> Reason | None:
    """Why an entry is left to Hive whatever its location holds; None where it is not.

    Args:
        now: seconds since the epoch by the server's clock.
    """
    if entry.kind not in _CLEANED_KINDS:
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
    """Whether it is known when its transaction was committed, and who was there then."""
    return entry.next_txn > 0 and entry.committed is not None


def first_seen_committed(entry: Compaction, known: KnownTxns) -> Compaction | None:
    """An entry as if its transaction had been committed in the very moment in which others are known; None where it was
    not committed by then.

    Who does not see what was committed had begun before that moment, so that to wait for all of these is enough. That
    it was not aborted is sure: the metastore remembers an aborted transaction of a compaction.
    """
    is_open = any(txn.id == entry.txn for txn in known.txns)
    if is_open or entry.txn > known.high_watermark:
        return None
    return replace(entry, next_txn=known.high_watermark, committed=known.now)


def why_waiting(entry: Compaction, known: KnownTxns, retention: float = 0.0) -> Reason | None:
    """Why an entry that is not left to Hive cannot be cleaned yet; None where it can.

    Args:
        known: everything that is open, transactions that only read among them.
        retention: seconds for which what was replaced is kept.
    """
    least = min((txn.id for txn in known.txns if txn.state is not TxnStatus.ABORTED), default=None)
    # The number is the highest that there was at the commit: who has it had begun by then. Hive's cleaner forgets him.
    if least is not None and least <= entry.next_txn:
        return reason(Code.TRANSACTION_BELOW, ids=(least,))
    if known.high_watermark < entry.next_txn - 1:
        return reason(Code.COMMIT_UNKNOWN)  # another server's numbers
    until = (entry.committed or 0.0) + retention + OPEN_TXN_GAP
    if known.now <= until:
        return reason(Code.COMMITTED_LATELY, until=until)
    return None


def why_unmarked(entry: Compaction, state: AcidState, write_ids: ValidWriteIds, by_entry: AcidState) -> Reason | None:
    """Why an entry may not be marked as cleaned; None where it may.

    Args:
        state: of the location, listed again after it was cleaned, as a new reader finds it.
        write_ids: those by which it was found, of a reader.
        by_entry: the same by the write ids up to the entry's highest one: what a later compaction replaced is not this
            one's to remove.
    """
    if state.history_problem is not None:
        return state.history_problem
    highest = entry.highest_write_id
    is_decided = highest <= write_ids.high_watermark < MAXL and min(write_ids.open, default=MAXL) > highest
    if not is_decided or write_ids.mode is not ListReader.READER:
        return reason(Code.WRITES_UNDECIDED, ids=(highest,))
    left = [one for one in by_entry.verdicts if one.state in (State.OBSOLETE, State.ABORTED)]
    # What is hidden by a transaction that is open still would be shown, were that forgotten once it is aborted.
    left += [one for one in state.verdicts if _is_hidden(one) and _reaches(one, highest)]
    if left:
        return reason(Code.STILL_LEFT, by=tuple(dict.fromkeys(one.name for one in left)))
    # Of whatever state: a delta that ends above the highest write id may hold rows of aborted ids below it.
    hiding = [one for one in state.verdicts if _may_hide(one, write_ids, highest)]
    if hiding:
        return reason(Code.HIDES_ABORTED, by=tuple(one.name for one in hiding))
    return None


def _is_hidden(verdict: Verdict) -> bool:
    return verdict.state is State.ABORTED or verdict.reason.code is Code.VISIBILITY_OPEN


def _reaches(verdict: Verdict, highest: int) -> bool:
    """Whether an entry is below the highest write id, in part at least; original files always are."""
    return verdict.directory is None or verdict.directory.min_write_id <= highest


def _may_hide(verdict: Verdict, write_ids: ValidWriteIds, highest: int) -> bool:
    """Whether an entry may hold rows of aborted write ids that only the metastore's list hides."""
    directory = verdict.directory
    if directory is None or directory.visibility_txn or (directory.kind is Kind.BASE and verdict.compacted):
        return False  # compactions leave such rows out
    last = min(directory.max_write_id, highest)
    if directory.min_write_id > last:
        return False
    return write_ids.range_aborted(directory.min_write_id, last) is not Range.NONE
