"""The rows that are missing from a compaction's empty result; see :mod:`acidctl.acid.empty_results`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from acidctl.acid.empty_results import EmptyResult, empty_results
from acidctl.acid.layout import Overlaps
from acidctl.acid.listing import with_entries
from acidctl.acid.names import Kind
from acidctl.acid.state import select
from acidctl.acid.writeids import ValidWriteIds
from acidctl.location.snapshot import Snapshot
from acidctl.rows.read.delete_set import Bools, DeleteSet
from acidctl.rows.read.events import EventFile, Ids, open_event_files
from acidctl.rows.read.key_ranges import KeyRanges
from acidctl.rows.read.visibility import Unreadable, live_rows, load_deletes, visible_events


@dataclass(frozen=True, slots=True)
class LostRows:
    """The rows and deletes that an empty result lacks.

    Attributes:
        rows: live rows of the directories that it replaced; None if not all files can be read. If another result hides
            it, rows that were deleted since, or that readers see in what hides it, do not count.
        deletes: delete events of these directories, if the result should hold them; None likewise.
    """

    result: EmptyResult
    rows: int | None
    deletes: int | None


def find_lost_rows(snapshot: Snapshot) -> Iterator[LostRows]:
    """Yield every empty result that lacks something. Files are read only if there is an empty result."""
    empty = empty_results(snapshot.listing, snapshot.state)
    if not empty:
        return
    names = frozenset(result.name for result in empty)
    directories = Overlaps(v.directory for v in snapshot.state.verdicts if v.directory and v.name not in names)
    since = None
    for result in empty:
        try:
            if not result.is_read:
                since = since or _Since.of(snapshot, names)
            rows, deletes = _missing(snapshot, result, names, directories, None if result.is_read else since)
        except Unreadable:
            yield LostRows(result, None, None)
        else:
            if rows or deletes:
                yield LostRows(result, rows, deletes)


@dataclass(frozen=True, slots=True)
class _Since:
    """The rows that nobody misses in a result that readers do not use: deleted by now, or seen by readers."""

    write_ids: ValidWriteIds
    deletes: DeleteSet
    seen: KeyRanges

    @classmethod
    def of(cls, snapshot: Snapshot, empty: frozenset[str]) -> _Since:
        bases = {v.name for v in snapshot.state.verdicts if v.directory and v.directory.kind is Kind.BASE}
        state = snapshot.lists.select(snapshot.listing, without=empty | bases)
        view = replace(snapshot, state=state)
        seen = KeyRanges()
        for source in open_event_files(snapshot, snapshot.files()):
            for ids in () if source.is_delete else source.stripe_ids():
                seen.add(ids)
        return cls(snapshot.write_ids, load_deletes(open_event_files(view, view.files()), snapshot.write_ids), seen)

    def missed(self, source: EventFile, ids: Ids) -> Bools:
        """Return a mask of the rows that somebody may miss."""
        live = live_rows(source, ids, self.write_ids, self.deletes)
        missed = ~self.seen.holds(ids)
        return missed if live is None else missed & live


def _missing(
    snapshot: Snapshot, result: EmptyResult, empty: frozenset[str], others: Overlaps, since: _Since | None
) -> tuple[int, int]:
    """Count the rows and delete events that a reader of that time sees without the empty results.

    Of a minor compaction's two directories each should hold its own kind; one alone hides both kinds.
    """
    write_ids = snapshot.write_ids.at(max(result.directory.max_write_id, 0))  # originals are rows of write id 0
    twins, listing = result.twins, snapshot.listing
    if result.directory.kind is not Kind.BASE:  # what it replaced has write ids of its own range alone
        near = sorted(delta.name for delta in others.meeting(*result.directory.range))
        listing = with_entries(listing, (entry for name in near for entry in listing.by_child[name]))
    without = empty.union(twins)  # a twin alone would hide them
    state = select(listing, write_ids, snapshot.txns, snapshot.base_formats, without=without)
    view = replace(snapshot, state=state, write_ids=write_ids)
    sources = open_event_files(view, view.files())
    replaced = frozenset(result.replaced)
    wanted = [source for source in sources if source.file.path.partition("/")[0] in replaced]
    rows = deletes = 0
    kind = result.directory.kind
    if kind is Kind.DELETE_DELTA or (kind is Kind.DELTA and not twins):
        deletes = sum(_counted(source, None, view) for source in wanted if source.is_delete)
    if kind is not Kind.DELETE_DELTA or not twins:
        dead = load_deletes(sources, write_ids)
        rows = sum(_counted(source, dead, view, since) for source in wanted if not source.is_delete)
    return rows, deletes


def _counted(source: EventFile, deletes: DeleteSet | None, snapshot: Snapshot, since: _Since | None = None) -> int:
    """Count the live rows of a file that are missed, or without `deletes` its visible events."""
    count = 0
    for ids in source.stripe_ids():
        write_ids = snapshot.write_ids
        kept = visible_events(ids, write_ids) if deletes is None else live_rows(source, ids, write_ids, deletes)
        if since:
            missed = since.missed(source, ids)
            kept = missed if kept is None else kept & missed
        count += len(ids.current) if kept is None else int(np.count_nonzero(kept))
    return count
