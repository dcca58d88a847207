"""Decides from a listing alone which compaction is due in a location, or why none is (format sections 8 and 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.layout import below_all
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.triggers import Decision, decide, figures_of
from acidctl.acid.unfinished import layout_problems
from acidctl.base.errors import BadDataError, RefusedError
from acidctl.location.resolved import ResolvedLocation
from acidctl.location.snapshot import Snapshot, seen_below
from acidctl.wording import some_of, text_of

if TYPE_CHECKING:
    from acidctl.metastore.tables import HiveTable


def due_compaction(location: ResolvedLocation, *, is_sound: bool = False) -> Decision:
    """Return what `acidctl compact --auto` would do in a location.

    Args:
        is_sound: the layout that the reader's snapshot shows has no problems.

    Raises:
        RefusedError, BadDataError: it has no snapshot for a compaction, or nothing can be compacted below a directory
            that lies across the last write id, or Hive never writes such a layout.
    """
    facts = location.metastore
    if facts.table:
        try:
            refuse_sorted(facts.table)
        except RefusedError as error:
            return Decision(None, reason(Code.REFUSED, how="error", why=str(error)))
    snapshot = location.for_compactor()
    if snapshot.state.history_problem:
        return Decision(None, snapshot.state.history_problem)
    snapshot = below_straddlers(snapshot)
    if not (is_sound and snapshot is location.reader):
        refuse_layout(snapshot)
    if facts.properties.auto_off_by:
        return Decision(None, reason(Code.AUTO_IS_OFF, who=facts.properties.auto_off_by, how="owner"))
    decision = decide(figures_of(snapshot.listing, snapshot.state), facts.properties.thresholds)
    idle = why_idle(snapshot, decision)
    return Decision(None, idle[0]) if idle else decision


def refuse_sorted(table: HiveTable) -> None:
    """Raise RefusedError for a table with sorted rows, which a compaction would not keep sorted."""
    if table.sort_columns:
        raise RefusedError(
            f"{table.full_name} is not compacted",
            f"its rows are sorted by {', '.join(table.sort_columns)}, and would not be any more",
            "Hive refuses it, too",
        )


def refuse_layout(snapshot: Snapshot) -> None:
    """Raise BadDataError for a layout that Hive never writes: a compaction would make its faults permanent."""
    if problems := layout_problems(snapshot.listing, snapshot.state):
        raise BadDataError(
            f"cannot compact {snapshot.shown}",
            some_of([f"{text_of(problem.reason)} ({problem.rule})" for problem in problems], between="; "),
            "find out which of the files and directories are right, and move the others away",
        )


def below_straddlers(snapshot: Snapshot) -> Snapshot:
    """Lower the high watermark of a snapshot if a directory lies across the last write id of a compaction.

    Raises:
        RefusedError: there is nothing to compact below that directory.
    """
    while snapshot.state.deltas:
        directories = [verdict.directory for verdict in snapshot.state.verdicts if verdict.directory]
        last = max(delta.directory.max_write_id for delta in snapshot.state.deltas if delta.directory)
        limit, across = below_all(directories, last)
        if limit == last:
            return snapshot
        wide = across[-1]
        snapshot = seen_below(snapshot, limit, reason(Code.COMPACTED_BELOW, by=(wide.name,), ids=(limit, last)))
        if not snapshot.state.deltas:
            raise RefusedError(
                f"cannot compact {snapshot.shown} up to write id {last}",
                f"{wide.name} begins at or below write id {last} and ends above it, so its rows would be there twice",
                f"give a newer --snapshot, in which {wide.max_write_id} is below the first open write id",
            )
    return snapshot


def nothing_to_do(snapshot: Snapshot, kind: CompactionKind) -> Reason | None:
    """Return why a compaction of this type would change nothing; None if there is work (format section 8)."""
    state = snapshot.state
    deltas = len(state.deltas)
    if kind is CompactionKind.MAJOR:
        if state.originals or deltas + bool(state.base) > 1:
            return None
        if not deltas and not state.base:
            return reason(Code.NO_DATA)
        return reason(Code.NOTHING_TO_MERGE, how="single" if deltas else "base")
    if deltas < 2:
        return reason(Code.NOTHING_TO_MERGE, how="few")
    kinds = {verdict.directory.kind for verdict in state.deltas if verdict.directory}
    if deltas == 2 and len(kinds) == 2:
        return reason(Code.NOTHING_TO_MERGE, how="each-kind")
    return None


def why_idle(snapshot: Snapshot, decision: Decision, *, rebalanced: bool = False) -> tuple[Reason, ...]:
    """Say why there is nothing to do; empty if there is work: a rebalance always has work if there is data."""
    idle = decision.reason if decision.kind is None else nothing_to_do(snapshot, decision.kind)
    if rebalanced and idle and idle.code is not Code.NO_DATA:
        idle = None
    if decision.kind is not None and not idle and not _may_be_written(snapshot):
        return ()
    stop = snapshot.assumed.stop if snapshot.assumed else _more_above(snapshot)
    return tuple(filter(None, (idle, stop)))


def _more_above(snapshot: Snapshot) -> Reason | None:
    above = sum(verdict.reason.code is Code.ABOVE_HIGH_WATERMARK for verdict in snapshot.state.verdicts)
    last = snapshot.write_ids.high_watermark
    return reason(Code.MORE_ABOVE, count=above, high_watermark=last) if above else None


def _may_be_written(snapshot: Snapshot) -> bool:
    """Say if an original file may still be written: one more file would change the row ids of those after it."""
    assumed = snapshot.assumed
    return bool(assumed and snapshot.state.originals and any(u.is_original for u in assumed.undecided))
