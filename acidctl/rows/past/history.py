"""The rows that every write id of a location inserted, deleted and updated, counted once even if events were copied.

A compaction copies events, so the same event may be in several directories. Each write id is counted in one layer:
its own directories if they still exist, else the narrowest range of deltas that holds it, else the lowest base above
it. A base holds the remaining rows, and nothing about deleted ones: such counts are marked incomplete. A minor
compaction drops rows that one write id inserted and deleted again (format section 8.2), so only their delete is
counted. The minor compaction of Hive 3 writes every delete event of a table without buckets into each of its files:
there events are distinguished by their keys. Footers are enough if all rows of a file have one write id; otherwise
the id columns are read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from acidctl.acid.names import NO_STATEMENT, Kind
from acidctl.base.errors import AcidctlError
from acidctl.base.printable import one_line
from acidctl.location.snapshot import Snapshot
from acidctl.rows.read.archives import Archive, Origin, archives
from acidctl.rows.read.delete_set import DELETE, DeleteSetBuilder, Keys, Longs
from acidctl.rows.read.events import EventFile, Ids

UPDATE = 1

# Duplicates are dropped each time that this many delete events were gathered.
_UNSETTLED = 1 << 20


@dataclass(frozen=True, slots=True)
class WriteIdHistory:
    """The changes that one write id made.

    Attributes:
        inserted, deleted, updated: rows. ACID v2 writes an update as a delete and an insert: each such pair of one
            write id counts as updated, the rest as inserted or deleted. Deletes and updates are None if only a base is
            left.
        is_complete: False if rows that were deleted later are missing from the counts.
        state: ``committed``, ``open``, ``aborted``, or ``unknown`` above the high watermark.
        directories: its own, by name; for write id 0 the names that hold original files.
        compacted_into: the directories that were counted because its own are gone.
        held_in: deltas of several write ids that were counted, if it is unknown whether a compaction or a streaming
            writer wrote them.
        modified: newest time in its own directories, epoch seconds.
    """

    write_id: int
    inserted: int
    deleted: int | None
    updated: int | None
    is_complete: bool
    state: str
    directories: tuple[str, ...]
    compacted_into: tuple[str, ...]
    held_in: tuple[str, ...]
    modified: float | None


@dataclass(frozen=True, slots=True)
class History:
    """Every write id of a location that left a trace, ascending.

    Attributes:
        unknown_below: write ids below it may have done more than is counted, or may be missing; None if all is known.
        problems: directories that no reader uses and that cannot be read; their rows are not counted.
    """

    __repr__ = one_line

    write_ids: tuple[WriteIdHistory, ...]
    unknown_below: int | None
    problems: tuple[AcidctlError, ...]


@dataclass(slots=True)
class _Count:
    """The events of one write id in one layer; `deletes` are those of delete deltas, v1 counts those in deltas."""

    inserts: int = 0
    deletes: int = 0
    v1_deletes: int = 0
    v1_updates: int = 0

    def add_rows(self, rows: int, source: EventFile) -> None:
        """Count rows of a file that has only deletes or only inserts."""
        if source.is_delete:
            self.deletes += rows
        else:
            self.inserts += rows

    def add(self, operation: Longs, source: EventFile) -> None:
        if source.is_delete or not source.may_hold_changes:
            self.add_rows(len(operation), source)
            return
        updates = int(np.count_nonzero(operation == UPDATE))
        deletes = int(np.count_nonzero(operation == DELETE))
        self.inserts += len(operation) - updates - deletes
        self.v1_updates += updates
        self.v1_deletes += deletes


@dataclass(slots=True)
class _Layer:
    """Directories that are counted together."""

    low: int
    high: int
    archives: list[Archive]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for archive in self.archives for name in archive.names)


class _Deleted:
    """The distinct keys of delete events that may be in several files, by write id.

    Memory: twice that of their delete set.
    """

    def __init__(self) -> None:
        self._keys: dict[int, DeleteSetBuilder] = {}
        self._gathered = self._settled = 0

    def add(self, write_id: int, keys: Keys) -> None:
        self._keys.setdefault(write_id, DeleteSetBuilder()).add(keys)
        self._gathered += len(keys)
        if self._gathered > self._settled + max(self._settled, _UNSETTLED):
            self._gathered = self._settled = sum(self.counts().values())

    def counts(self) -> dict[int, int]:
        return {write_id: builder.settle() for write_id, builder in self._keys.items()}


class _Covered:
    """The write ids that have been counted, as disjoint ascending ranges."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        for start, end in sorted(ranges):
            if self.ends and start <= self.ends[-1] + 1:
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.starts.append(start)
                self.ends.append(end)

    def add(self, low: int, high: int) -> None:
        """Add a range and join it with the ranges that it touches."""
        first, end = bisect_left(self.ends, low - 1), bisect_right(self.starts, high + 1)
        if first < end:
            low, high = min(low, self.starts[first]), max(high, self.ends[end - 1])
        self.starts[first:end], self.ends[first:end] = [low], [high]

    def holds_all(self, low: int, high: int) -> bool:
        place = bisect_right(self.starts, low) - 1
        return place >= 0 and self.ends[place] >= high

    def last_gap(self, low: int, high: int) -> int | None:
        while high >= low:
            place = bisect_right(self.starts, high) - 1
            if place < 0 or self.ends[place] < high:
                return high
            high = self.starts[place] - 1
        return None


def read_history(snapshot: Snapshot) -> History:
    """Count what every write id did, even if its directories are obsolete or gone.

    Raises:
        BadDataError, NotFoundError, AccessError: a file that readers use cannot be read.
    """
    every = archives(snapshot)
    problems = tuple(archive.error for archive in every if archive.error is not None)
    readable = [archive for archive in every if archive.error is None]
    single, wide, bases = _layers(readable)
    lines: dict[int, WriteIdHistory] = {}
    for write_id, layer in single.items():
        counts = _counts(layer, _Covered()).get(write_id, _Count())
        merged = all(a.directory is not None and a.directory.visibility_txn for a in layer.archives)
        merged = merged and not any(archive.is_base for archive in layer.archives)
        origin = Origin.COMPACTION if merged else Origin.WRITER
        lines[write_id] = _line(snapshot, write_id, counts, layer, origin, complete=True)
    covered = _Covered((write_id, write_id) for write_id in single)
    unknown = max((archive.high + 1 for archive in every if archive.error is not None), default=0)
    for layer in wide:
        if covered.holds_all(layer.low, layer.high):
            continue
        # A compaction of an insert-only table made it: its rows do not store their write id.
        if any(source.synthetic is not None for archive in layer.archives for source in archive.sources):
            unknown = max(unknown, layer.high + 1)
        origins = {archive.origin for archive in layer.archives}
        origin = origins.pop() if len(origins) == 1 else Origin.COMPACTION
        for write_id, counts in _counts(layer, covered).items():
            lines[write_id] = _line(snapshot, write_id, counts, layer, origin, complete=True)
        covered.add(layer.low, layer.high)
    # INSERT OVERWRITE makes everything before it obsolete, like a compaction, so that may have been cleaned.
    gaps = [covered.last_gap(1, archive.high) for archive in readable if archive.is_overwrite]
    unknown = max([unknown, *(gap + 1 for gap in gaps if gap is not None)])
    for layer in bases:
        if covered.holds_all(0, layer.high):
            continue
        gap = covered.last_gap(1, layer.high)
        if gap is not None:
            unknown = max(unknown, gap + 1)
        for write_id, counts in _counts(layer, covered).items():
            lines[write_id] = _line(snapshot, write_id, counts, layer, Origin.COMPACTION, complete=False)
            unknown = max(unknown, write_id + 1)
        covered.add(0, layer.high)
    return History(tuple(lines[write_id] for write_id in sorted(lines)), unknown or None, problems)


def _layers(readable: Iterable[Archive]) -> tuple[dict[int, _Layer], list[_Layer], list[_Layer]]:
    """Return single layers by write id; ranges of deltas, the narrowest first; bases, the lowest first."""
    single: dict[int, _Layer] = {}
    wide: dict[tuple[int, int, int], _Layer] = {}
    overwrites: list[Archive] = []
    bases: list[Archive] = []
    for archive in readable:
        directory = archive.directory
        if archive.is_base:
            (overwrites if archive.is_overwrite else bases).append(archive)
        elif directory is None:
            single[0] = _Layer(0, 0, [archive])
        elif archive.low == archive.high:
            single.setdefault(archive.low, _Layer(archive.low, archive.low, [])).archives.append(archive)
        else:
            key = archive.low, archive.high, directory.visibility_txn
            wide.setdefault(key, _Layer(archive.low, archive.high, [])).archives.append(archive)
    for layer in single.values():
        layer.archives = _statements(layer.archives)
    for archive in overwrites:
        if archive.high in single:
            bases.append(archive)  # a compaction of Hive 2 that left rows of its last transaction only
        else:
            single[archive.high] = _Layer(archive.high, archive.high, [archive])
    ranges = sorted(wide.items(), key=lambda item: (item[0][1] - item[0][0], item[0]))
    merged = [_Layer(0, base.high, [base]) for base in sorted(bases, key=lambda base: (base.high, base.names))]
    return single, [layer for _, layer in ranges], merged


def _statements(every: list[Archive]) -> list[Archive]:
    """Return the statements' directories of one write id if any exist, else those that a compaction made."""
    directories = [(archive, archive.directory) for archive in every if archive.directory is not None]
    statements = [archive for archive, directory in directories if directory.statement_id >= 0]
    plain = [a for a, directory in directories if directory.statement_id < 0 and not directory.visibility_txn]
    if statements or plain or not directories:
        return statements or plain or every
    first = min(directory.visibility_txn for _, directory in directories)
    return [archive for archive, directory in directories if directory.visibility_txn == first]


def _counts(layer: _Layer, covered: _Covered) -> dict[int, _Count]:
    """Return the events of a layer by write id, except for write ids that are covered."""
    counts: dict[int, _Count] = {}
    deleted = _Deleted()
    single = layer.low == layer.high
    for archive in layer.archives:
        copied = _may_hold_copies(archive)
        for source in archive.sources:
            if single and not copied:
                _count_file(counts.setdefault(layer.high, _Count()), source)
            elif source.synthetic is None:
                _count_stripes(counts, source, covered, deleted if copied else None)
    for write_id, number in deleted.counts().items():
        counts.setdefault(write_id, _Count()).deletes += number
    if single:
        return counts
    return {write_id: count for write_id, count in counts.items() if not covered.holds_all(write_id, write_id)}


def _may_hold_copies(archive: Archive) -> bool:
    """Return whether a delete event may be in several files: a compaction made them, and their buckets overlap."""
    directory = archive.directory
    if directory is None or directory.kind is not Kind.DELETE_DELTA or directory.statement_id != NO_STATEMENT:
        return False
    buckets: list[tuple[int, int]] = []
    for source in archive.sources:
        ranges = [keys.bucket for keys in source.ranges if keys is not None]
        if len(ranges) < len(source.ranges):
            return len(archive.sources) > 1
        if ranges:
            buckets.append((min(low for low, _ in ranges), max(high for _, high in ranges)))
    return any(before[1] >= after[0] for before, after in pairwise(sorted(buckets)))


def _count_file(count: _Count, source: EventFile) -> None:
    """Count the rows of a file that has one write id, from the footer alone if possible."""
    if source.is_delete or not source.may_hold_changes:
        count.add_rows(source.rows, source)
    elif (stats := source.tail.acid_stats()) is not None and sum(stats) == source.rows:
        count.inserts += stats[0]
        count.v1_updates += stats[1]
        count.v1_deletes += stats[2]
    else:
        for ids in source.stripe_ids():
            count.add(ids.operation, source)


def _count_stripes(
    counts: dict[int, _Count], source: EventFile, covered: _Covered, deleted: _Deleted | None = None
) -> None:
    """Count the rows of a file with several write ids, by the stripes' statistics if possible, else by the id columns.

    Args:
        deleted: receives the events of a delete delta whose files hold copies of each other's events.
    """
    alike = deleted is None and (source.is_delete or not source.may_hold_changes)
    with source.open() as events:
        for stripe, keys in enumerate(source.ranges):
            if keys is not None and covered.holds_all(*keys.current):
                continue
            if alike and keys is not None and keys.current[0] == keys.current[1]:
                rows = source.tail.stripes[stripe].numberOfRows
                counts.setdefault(keys.current[0], _Count()).add_rows(rows, source)
                continue
            for write_id, ids in _by_write_id(events.ids(stripe)):
                if deleted is not None:
                    deleted.add(write_id, ids.keys)
                else:
                    counts.setdefault(write_id, _Count()).add(ids.operation, source)


def _by_write_id(ids: Ids) -> Iterator[tuple[int, Ids]]:
    order = np.argsort(ids.current, kind="stable")
    current = ids.current[order]
    bounds = [0, *(np.flatnonzero(current[1:] != current[:-1]) + 1).tolist(), len(current)]
    for start, end in pairwise(bounds):
        if end > start:
            yield int(current[start]), ids.take(order[start:end])


def _line(
    snapshot: Snapshot, write_id: int, count: _Count, layer: _Layer, origin: Origin, *, complete: bool
) -> WriteIdHistory:
    is_own = origin is Origin.WRITER
    pairs = min(count.inserts, count.deletes)
    times: Sequence[float] = [a.modified for a in layer.archives if a.modified is not None] if is_own else ()
    return WriteIdHistory(
        write_id,
        count.inserts - pairs if complete else count.inserts + count.v1_updates,
        count.deletes - pairs + count.v1_deletes if complete else None,
        pairs + count.v1_updates if complete else None,
        complete,
        _state(snapshot, write_id),
        layer.names if is_own else (),
        layer.names if origin is Origin.COMPACTION else (),
        layer.names if origin is Origin.UNKNOWN else (),
        max(times, default=None),
    )


def _state(snapshot: Snapshot, write_id: int) -> str:
    write_ids = snapshot.write_ids
    if write_ids.is_aborted(write_id):
        return "aborted"
    if write_ids.is_open(write_id):
        return "open"
    return "committed" if write_ids.is_valid(write_id) else "unknown"
