"""The rows that a compaction's empty result should have taken over; see :mod:`acidctl.acid.empty_results`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from acidctl.acid.empty_results import EmptyResult, empty_results, twins_of
from acidctl.acid.names import Kind
from acidctl.acid.state import select
from acidctl.location.snapshot import Snapshot
from acidctl.rows.read.delete_set import DeleteSet
from acidctl.rows.read.events import EventFile, open_event_files
from acidctl.rows.read.visibility import Unreadable, live_rows, load_deletes, visible_events


@dataclass(frozen=True, slots=True)
class LostRows:
    """What an empty result lacks.

    Attributes:
        events: the rows of what it replaced that nobody deleted, or the delete events where it is a delete delta;
            None where not all files can be read.
    """

    result: EmptyResult
    events: int | None


def find_lost_rows(snapshot: Snapshot) -> Iterator[LostRows]:
    """Every empty result that lacks something. Files are read only where there is an empty one."""
    empty = empty_results(snapshot.listing, snapshot.state)
    for result in empty:
        try:
            events = _left(snapshot, result, frozenset(one.name for one in empty))
        except Unreadable:
            events = None
        if events != 0:
            yield LostRows(result, events)


def _left(snapshot: Snapshot, result: EmptyResult, empty: frozenset[str]) -> int:
    """The rows, or delete events, that readers of then see where they do not go by the empty results."""
    write_ids = snapshot.write_ids.at(result.directory.max_write_id)
    without = empty | {one.name for one in twins_of(result, snapshot.state)}  # a twin alone would hide them
    state = select(snapshot.listing, write_ids, snapshot.txns, snapshot.base_formats, without=without)
    view = replace(snapshot, state=state, write_ids=write_ids)
    sources = open_event_files(view, view.files())
    wanted = [source for source in sources if source.file.path.partition("/")[0] in result.replaced]
    if result.directory.kind is Kind.DELETE_DELTA:
        return sum(_counted(source, None, view) for source in wanted if source.is_delete)
    deletes = load_deletes(sources, write_ids)
    return sum(_counted(source, deletes, view) for source in wanted if not source.is_delete)


def _counted(source: EventFile, deletes: DeleteSet | None, snapshot: Snapshot) -> int:
    """The rows of a file that are live, or without `deletes` its events that count."""
    count = 0
    for ids in source.stripe_ids():
        write_ids = snapshot.write_ids
        kept = visible_events(ids, write_ids) if deletes is None else live_rows(source, ids, write_ids, deletes)
        count += len(ids.current) if kept is None else int(np.count_nonzero(kept))
    return count
