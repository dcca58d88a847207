"""The changes of every write id in a location: the rows that appeared and disappeared, each with its write id.

If there is no base between two write ids, the deltas of the newer snapshot hold every event in between, and the
deleted rows: one pass over them finds all changes. A base in between is handled separately: the changes of its own
write id are the difference of the snapshots before it and at it, and earlier changes are read from the directories
that it replaced, if they still exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from acidctl.acid.layout import Role
from acidctl.acid.names import Kind
from acidctl.base.errors import HistoryError
from acidctl.location.snapshot import Snapshot
from acidctl.rows.past.diff import GONE, NEW, compare_locations
from acidctl.rows.read.delete_set import Bools, DeleteSet, DeleteSetBuilder, Longs
from acidctl.rows.read.events import EventFile, Ids
from acidctl.rows.read.past_snapshot import require_same_ids
from acidctl.rows.read.visibility import open_sources, visible_events
from acidctl.rows.scan.columns import PartitionColumn
from acidctl.rows.scan.scan import Scan


@dataclass(frozen=True, slots=True)
class EventSpan:
    """A source of changes: the events of one snapshot with write ids above `after`.

    Attributes:
        sources: the files of the snapshot.
    """

    snapshot: Snapshot
    after: int
    sources: Sequence[EventFile]


@dataclass(frozen=True, slots=True)
class SingleStep:
    """A source of changes: the difference between two snapshots, for the write id of `snapshot`."""

    before: Snapshot
    snapshot: Snapshot

    @property
    def write_id(self) -> int:
        """Return the write id that changed the rows."""
        return self.snapshot.write_ids.high_watermark


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows of one location that appeared, or rows that disappeared.

    Attributes:
        change: ``+`` for rows that appeared, ``-`` for rows that disappeared.
        write_ids: for each row the write id that changed it.
    """

    change: str
    write_ids: Longs
    rows: pa.RecordBatch


def plan_changes(take: Callable[[int], Snapshot], after: int, upto: int) -> list[EventSpan | SingleStep]:
    """Return the sources of the changes of a location, the oldest first.

    Args:
        take: returns the location as it was when a write id was the newest, with the history since `after`.
        after, upto: the changes of the write ids after `after`, up to and including `upto`.

    Raises:
        HistoryError: a compaction removed a directory that is needed.
        BadDataError: a file cannot be read.
    """
    sources: list[EventSpan | SingleStep] = []
    while after < upto:
        newest = take(upto)
        directory = newest.state.base.directory if newest.state.base else None
        base = directory.max_write_id if directory else None
        if base is None or base <= after:
            sources += _from_events(take, newest, after, upto)
            break
        if base < upto:
            sources += _from_events(take, newest, base, upto)
            newest = take(base)
        sources.append(_step(take(base - 1), newest))
        upto = base - 1
    return sources[::-1]


def _from_events(
    take: Callable[[int], Snapshot], newest: Snapshot, after: int, upto: int
) -> list[EventSpan | SingleStep]:
    """Return the sources for write ids above the base: one pass, or single steps if ACID v1 updated rows in place."""
    files = [file for file in newest.files() if file.max_write_id > after]
    if not files:
        return []
    sources = open_sources(newest)
    _refuse_merged(sources, after)
    if not any(source.may_hold_changes and not source.is_delete for source in sources):
        return [EventSpan(newest, after, sources)]
    ranges = [directory.range for file in files if (directory := file.directory)]
    ids = sorted({i for low, high in ranges for i in range(max(low, after + 1), min(high, upto) + 1)}, reverse=True)
    return [_step(take(i - 1), take(i)) for i in ids if newest.write_ids.is_valid(i)]


def _step(before: Snapshot, snapshot: Snapshot) -> SingleStep:
    require_same_ids(before, snapshot)
    return SingleStep(before, snapshot)


def _refuse_merged(sources: Sequence[EventFile], after: int) -> None:
    """Raise HistoryError if a compaction merged rows without ids of their own."""
    for source in sources:
        directory = source.file.directory
        if source.is_delete or source.synthetic is None or directory is None or directory.max_write_id <= after:
            continue
        if directory.kind is not Kind.BASE and directory.min_write_id != directory.max_write_id:
            raise HistoryError(
                f"the write ids of the rows of {source.shown} cannot be told",
                "a compaction of an insert-only table merged them, and its rows have no row ids",
                f"begin after write id {directory.max_write_id}",
            )


class ChangeScan(Scan):
    """The changes that one pass over the events of a location finds.

    Args:
        span: see :func:`plan_changes`.
        columns, options: see :class:`acidctl.rows.scan.scan.Scan`; no condition.
    """

    def __init__(self, span: EventSpan, columns: Sequence[str] | None = None, **options: Any) -> None:
        super().__init__(span.snapshot, columns, sources=span.sources, **options)
        self._after = span.after
        self._moved = any(source.may_hold_moved for source in span.sources)

    def changes(self) -> Iterator[Changes]:
        """Yield all changes, in the order of the files.

        Raises:
            BadDataError: a file cannot be read; the error names the file.
        """
        for events, stripe, files in self._stripes(self.columns):
            source = events.source
            keys = source.ranges[stripe]
            if keys is not None and keys.current[1] <= self._after and not self._kills.may_hit(keys):
                continue
            with self._loss_reported(source, stripe):
                ids = events.ids(stripe)
                added, removed, killers = self._changed(ids)
                if not (added.any() or removed.any()):
                    continue
                rows = events.rows(stripe, files.names)
                for change, chosen, by in ((GONE, removed, killers), (NEW, added, ids.current)):
                    if chosen.any():
                        for batch in self._chosen(source, ids, rows, files, chosen):
                            yield Changes(change, by[chosen], batch)

    def _changed(self, ids: Ids) -> tuple[Bools, Bools, Longs]:
        """Return masks of the added and the removed rows of a stripe, and the write ids that removed them."""
        killers = self._kills.killers(ids.keys)
        killers[killers < ids.current] = 0  # a delete event does not reach rows of later write ids (section 4.2)
        visible = visible_events(ids, self.snapshot.write_ids)
        rows = np.ones(len(killers), np.bool_) if visible is None else visible
        rows = rows & (killers != ids.current)  # what one write id inserted and deleted was never there
        removed = rows & (killers > 0)
        if removed.any() and (dead := self._killed_before.dead(ids.keys, ids.bound(0))) is not None:
            removed &= ~dead
        return rows & (ids.current > self._after), removed, killers

    @cached_property
    def _kills(self) -> DeleteSet:
        """Return the keys that the write ids of the span deleted, with these write ids."""
        builder = DeleteSetBuilder()

        def is_newer(source: EventFile, stripe: int) -> bool:
            keys = source.ranges[stripe]
            return source.file.max_write_id > self._after and (keys is None or keys.current[1] > self._after)

        for source, ids in self._delete_events(is_newer):
            late = ids.take(ids.current > self._after)
            builder.add(late.keys, late.bound(source.file.statement_id))
        return builder.build()

    @cached_property
    def _killed_before(self) -> DeleteSet:
        """Return those of these keys that were already deleted before the span."""
        kills, builder = self._kills, DeleteSetBuilder()

        def may_hold(source: EventFile, stripe: int) -> bool:
            keys = source.ranges[stripe]
            return keys is None or (keys.current[0] <= self._after and kills.may_hit(keys))

        for source, ids in self._delete_events(may_hold):
            early = ids.take(ids.current <= self._after)
            builder.add_deletes(early.keys, early.current, source.file.ends, moved=self._moved)
        return builder.build()

    def _delete_events(self, wanted: Callable[[EventFile, int], bool]) -> Iterator[tuple[EventFile, Ids]]:
        for source in self.sources:
            stripes = range(len(source.tail.stripes)) if source.file.role is Role.DELETE else range(0)
            if chosen := [stripe for stripe in stripes if wanted(source, stripe)]:
                with source.open() as events:
                    for stripe in chosen:
                        ids = events.ids(stripe)
                        yield source, ids.take(visible_events(ids, self.snapshot.write_ids))


def changes_of(
    source: EventSpan | SingleStep,
    columns: Sequence[str] | None = None,
    *,
    partition: Sequence[PartitionColumn] = (),
    **options: Any,
) -> Iterator[Changes]:
    """Yield the changes of a source.

    Args:
        columns, partition, options: see :class:`ChangeScan`.

    Raises:
        BadDataError: a file cannot be read.
        HistoryError: rows cannot be compared.
    """
    if isinstance(source, EventSpan):
        yield from ChangeScan(source, columns, partition=partition, **options).changes()
        return
    gone, new = compare_locations(source.before, source.snapshot, columns, partition=partition, **options)
    for change, side in ((GONE, gone), (NEW, new)):
        for batch in side.batches():
            yield Changes(change, np.full(batch.num_rows, source.write_id, np.int64), batch)
