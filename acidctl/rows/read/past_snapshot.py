"""The snapshot of a location at an earlier write id, if the rows of that time still exist.

If the names of directories are not enough, a compacted base is compared with its sources by the id columns of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from acidctl.acid.names import Kind
from acidctl.acid.time_travel import Comparison, bases_between, state_at
from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import HistoryError
from acidctl.location.snapshot import Snapshot, take_snapshot
from acidctl.location.table_location import TableLocation
from acidctl.rows.read.archives import is_all_of
from acidctl.rows.read.delete_set import Bools
from acidctl.rows.read.events import EventFile, Ids, open_event_files
from acidctl.rows.read.key_ranges import KeyRanges
from acidctl.rows.read.visibility import Unreadable, live_rows, load_deletes, visible_events
from acidctl.wording import text_of


def seen_at(found: TableLocation, at: int | None, since: int | None = None) -> Snapshot:
    """Return the snapshot of a location now, or when a write id was the newest.

    A caller that reads several locations must check that their lists are not stale.

    Args:
        at: the write id; None for now.
        since: set if only changes above this write id matter; see :func:`acidctl.acid.time_travel.state_at`.

    Raises:
        RefusedError: the lists are not for its table.
        HistoryError: the rows of that time are gone, or cannot be separated from newer ones.
        NotFoundError, AccessError, StorageError, BadDataError, UsageProblem: see :func:`take_snapshot`.
    """
    if at is None:
        return found.snapshot(refresh=False)
    counted = found.resolve()
    write_ids = counted.write_ids or ValidWriteIds()
    path = found.location.path
    snapshot = take_snapshot(found.fs, path, write_ids.at(at), counted.txns, look=found.look, note=counted.note)
    past = state_at(snapshot.listing, at, write_ids, counted.txns, snapshot.base_formats, since=since)
    if past.gone:
        raise _gone(snapshot, at, text_of(past.gone))
    if past.comparison and (why := _difference(snapshot, past.comparison)):
        raise _gone(snapshot, at, why)
    return replace(
        snapshot, state=past.state, declared=found.declared, source=counted.source, ahead=found.ids_above_metastore()
    )


def require_same_ids(older: Snapshot, newer: Snapshot) -> None:
    """Check that no rows got new ids between two snapshots, so that rows can be compared by their keys.

    Raises:
        HistoryError: a REBALANCE of Hive 4 may have given them new ids.
    """
    at = older.write_ids.high_watermark
    for comparison in bases_between(newer.listing, at, newer.write_ids, newer.txns, newer.base_formats):
        if why := _difference(newer, comparison):
            raise HistoryError(
                f"rows of write id {at} cannot be compared with newer ones in {newer.shown}",
                why,
                f"choose two write ids on the same side of {comparison.name}",
            )


def _gone(snapshot: Snapshot, at: int, why: str) -> HistoryError:
    bases = [v.directory.max_write_id for v in snapshot.state.verdicts if v.directory and v.directory.kind is Kind.BASE]
    oldest = min((base for base in bases if base > at), default=None)
    return HistoryError(
        f"the rows at write id {at} are gone from {snapshot.shown}",
        f"a compaction or an overwrite put newer rows in their place: {why}",
        "" if oldest is None else f"the oldest write id that can still be read is {oldest}",
    )


def _difference(snapshot: Snapshot, comparison: Comparison) -> str:
    """Return why the sources of a directory are incomplete; empty if they are complete."""
    if comparison.merged.history_problem or comparison.parts.history_problem:
        return f"what {comparison.name} was made from cannot be read together"
    try:
        states = (comparison.merged, comparison.parts)
        views = [replace(snapshot, state=state, write_ids=comparison.write_ids) for state in states]
        merged, parts = (open_event_files(view, view.files()) for view in views)
        # An unmarked base whose rows all have its write id may be an INSERT OVERWRITE's, which merged nothing.
        newest = comparison.write_ids.high_watermark
        if not comparison.marked and all(s.synthetic is not None or is_all_of(s, newest) for s in merged):
            return ""
        if comparison.full:
            differs = _keys_differ(merged, parts, comparison.write_ids)
        else:  # nothing is ever deleted from an insert-only table: missing rows make the count smaller
            differs = sum(source.rows for source in merged) != sum(source.rows for source in parts)
        if not differs:
            return ""
    except Unreadable as error:
        return f"what {comparison.name} was made from cannot be compared with it: {error}"
    return (
        f"{comparison.name} holds other rows than the directories it was made from, of which some were cleaned, "
        "or are of aborted write ids, which a list of valid write ids would tell; or a REBALANCE gave them new ids"
    )


def _keys_differ(merged: list[EventFile], parts: list[EventFile], write_ids: ValidWriteIds) -> bool:
    """Return whether the live rows differ, or a delete event names a row that does not exist."""
    kept, inserted = KeyRanges(), KeyRanges()
    surplus = 0
    for ids, live in _rows(merged, write_ids):
        kept.add(ids.take(live))
        surplus += int(np.count_nonzero(live))
    for ids, live in _rows(parts, write_ids):
        inserted.add(_of_insert(ids))
        surplus -= int(np.count_nonzero(live))
        if not kept.holds(ids.take(live)).all():
            return True
    if surplus:
        return True
    for source in parts:
        for ids in source.stripe_ids() if source.is_delete else ():
            deleted = ids.take(visible_events(ids, write_ids))
            # A minor compaction drops a row that one write id inserted and deleted again, but not the delete event.
            same_write_id = deleted.current == deleted.keys.original
            if not (same_write_id | inserted.holds(_of_insert(deleted))).all():
                return True
    return False


def _rows(sources: list[EventFile], write_ids: ValidWriteIds) -> Iterator[tuple[Ids, Bools]]:
    """Yield the events of the files of rows, and a mask of the live ones."""
    deletes = load_deletes(sources, write_ids)
    for source in sources:
        for ids in () if source.is_delete else source.stripe_ids():
            live = live_rows(source, ids, write_ids, deletes)
            yield ids, np.ones(len(ids.current), np.bool_) if live is None else live


def _of_insert(ids: Ids) -> Ids:
    """Return the keys with the write ids of the events that inserted them."""
    return Ids(ids.operation, ids.keys, ids.keys.original)
