"""What every write id did to a location: rows inserted, deleted and updated, counted once wherever events are copied.

A compaction copies events, so the same event may lie in several directories. Each write id is counted in one layer:
its own directories when there are any, else the narrowest range of deltas that holds it, else the lowest base above
it. A base holds the rows that were left, and nothing of those that were deleted: such counts are marked incomplete.
A minor compaction drops rows that one write id inserted and deleted again (format section 8.2), so of those only the
delete is counted. That of Hive 3 writes every delete event of a table without buckets into each of its files: there
events are told apart by their keys. Footers are enough where all rows of a file are of one write id; else the id
columns are read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from acidctl.acid.names import NO_STATEMENT, Kind
from acidctl.errors import AcidctlError
from acidctl.location.snapshot import Snapshot
from acidctl.one_line import one_line
from acidctl.rows.read.archives import Archive, Origin, archives
from acidctl.rows.read.delete_set import DELETE, DeleteSetBuilder, Keys, Longs
from acidctl.rows.read.events import EventFile, Ids

UPDATE = 1

_UNSETTLED = 1 << 20
"""So many delete events are gathered before those that came several times are dropped."""


@dataclass(frozen=True, slots=True)
class WriteIdHistory:
    """What one write id did.

    Attributes:
        inserted, deleted, updated: rows. ACID v2 writes an update as a delete and an insert: as many as a write id
            has of both count as updated, and what remains as inserted or deleted. Deletes and updates are None where
            only a base is left.
        is_complete: False where rows that were deleted since are not counted any more.
        state: ``committed``, ``open``, ``aborted``, or ``unknown`` above the high watermark.
        directories: its own, by name; for write id 0 the names that hold original files.
        compacted_into: what was counted when its own directories are gone.
        held_in: deltas of several write ids that were counted, which a compaction or a streaming writer wrote: nothing
            tells which.
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
        unknown_below: write ids below it may have done more than is said, or may be missing; None when all is there.
        problems: directories that no reader uses and that cannot be read; their rows are not counted.
    """

    __repr__ = one_line

    write_ids: tuple[WriteIdHistory, ...]
    unknown_below: int | None
    problems: tuple[AcidctlError, ...]


@dataclass(slots=True)
class _Count:
    """Events of one write id in one layer; `deletes` are those of delete deltas, the others stand in v1 deltas."""

    inserts: int = 0
    deletes: int = 0
    v1_deletes: int = 0
    v1_updates: int = 0

    def add_alike(self, rows: int, source: EventFile) -> None:
        """So many events of a file that deletes, or inserts only."""
        if source.is_delete:
            self.deletes += rows
        else:
            self.inserts += rows

    def add(self, operation: Longs, source: EventFile) -> None:
        """Events of a file by their operations."""
        if source.is_delete or not source.may_hold_changes:
            self.add_alike(len(operation), source)
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
        return tuple(name for one in self.archives for name in one.names)


class _Deleted:
    """Delete events that lie in several files, by write id: a key counts once. Memory: twice that of their set."""

    def __init__(self) -> None:
        self._keys: dict[int, DeleteSetBuilder] = {}
        self._gathered = self._settled = 0

    def add(self, write_id: int, keys: Keys) -> None:
        """Events of a write id, in any order."""
        self._keys.setdefault(write_id, DeleteSetBuilder()).add(keys)
        self._gathered += len(keys)
        if self._gathered > self._settled + max(self._settled, _UNSETTLED):
            self._gathered = self._settled = sum(self.counts().values())

    def counts(self) -> dict[int, int]:
        """Distinct keys by write id."""
        return {write_id: builder.settle() for write_id, builder in self._keys.items()}


class _Covered:
    """Write ids counted already, as disjoint ascending ranges."""

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
        """Add a range; ranges that it touches are joined with it."""
        first, end = bisect_left(self.ends, low - 1), bisect_right(self.starts, high + 1)
        if first < end:
            low, high = min(low, self.starts[first]), max(high, self.ends[end - 1])
        self.starts[first:end], self.ends[first:end] = [low], [high]

    def holds_all(self, low: int, high: int) -> bool:
        place = bisect_right(self.starts, low) - 1
        return place >= 0 and self.ends[place] >= high

    def last_gap(self, low: int, high: int) -> int | None:
        """The greatest write id from `low` to `high` that is not counted."""
        while high >= low:
            place = bisect_right(self.starts, high) - 1
            if place < 0 or self.ends[place] < high:
                return high
            high = self.starts[place] - 1
        return None


def read_history(snapshot: Snapshot) -> History:
    """Count what every write id did, whatever became of it.

    Raises:
        BadDataError, NotFoundError, AccessError: a file that readers use cannot be read.
    """
    found = list(archives(snapshot))
    problems = tuple(one.error for one in found if one.error is not None)
    readable = [one for one in found if one.error is None]
    own, wide, bases = _layers(readable)
    lines: dict[int, WriteIdHistory] = {}
    for write_id, layer in own.items():
        counts = _counts(layer, _Covered()).get(write_id, _Count())
        merged = all(one.directory is not None and one.directory.visibility_txn for one in layer.archives)
        merged = merged and not any(one.is_base for one in layer.archives)
        origin = Origin.COMPACTION if merged else Origin.WRITER
        lines[write_id] = _line(snapshot, write_id, counts, layer, origin, complete=True)
    covered = _Covered((write_id, write_id) for write_id in own)
    unknown = max((one.high + 1 for one in found if one.error is not None), default=0)
    for layer in wide:
        if covered.holds_all(layer.low, layer.high):
            continue
        if _has_no_ids(layer):
            unknown = max(unknown, layer.high + 1)
        found_here = _counts(layer, covered)
        origin = _origin(layer, len(found_here))
        for write_id, counts in found_here.items():
            lines[write_id] = _line(snapshot, write_id, counts, layer, origin, complete=True)
        covered.add(layer.low, layer.high)
    # INSERT OVERWRITE makes obsolete what was before it, as a compaction does: it may have been cleaned.
    gaps = [covered.last_gap(1, one.high) for one in readable if one.is_overwrite]
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


def _layers(found: Iterable[Archive]) -> tuple[dict[int, _Layer], list[_Layer], list[_Layer]]:
    """Own directories by write id; ranges of deltas, the narrowest first; bases, the lowest first."""
    own: dict[int, _Layer] = {}
    wide: dict[tuple[int, int, int], _Layer] = {}
    overwrites: list[Archive] = []
    bases: list[Archive] = []
    for one in found:
        directory = one.directory
        if one.is_base:
            (overwrites if one.is_overwrite else bases).append(one)
        elif directory is None:
            own[0] = _Layer(0, 0, [one])
        elif one.low == one.high:
            own.setdefault(one.low, _Layer(one.low, one.low, [])).archives.append(one)
        else:
            key = one.low, one.high, directory.visibility_txn
            wide.setdefault(key, _Layer(one.low, one.high, [])).archives.append(one)
    for layer in own.values():
        layer.archives = _statements(layer.archives)
    for one in overwrites:
        if one.high in own:
            bases.append(one)  # a compaction of Hive 2 that left rows of its last transaction only
        else:
            own[one.high] = _Layer(one.high, one.high, [one])
    ranges = sorted(wide.items(), key=lambda item: (item[0][1] - item[0][0], item[0]))
    merged = [_Layer(0, one.high, [one]) for one in sorted(bases, key=lambda one: (one.high, one.names))]
    return own, [layer for _, layer in ranges], merged


def _statements(found: list[Archive]) -> list[Archive]:
    """Of one write id the directories of its statements, when some are there; else those that a compaction made."""
    directories = [(one, one.directory) for one in found if one.directory is not None]
    statements = [one for one, directory in directories if directory.statement_id >= 0]
    plain = [one for one, directory in directories if directory.statement_id < 0 and not directory.visibility_txn]
    if statements or plain or not directories:
        return statements or plain or found
    first = min(directory.visibility_txn for _, directory in directories)
    return [one for one, directory in directories if directory.visibility_txn == first]


def _origin(layer: _Layer, write_ids: int) -> Origin:
    """Who wrote a layer of several write ids, of which at least so many left rows."""
    origins = {one.origin for one in layer.archives}
    if origins == {Origin.UNKNOWN}:
        # A streaming writer ends its stripe with every write id.
        stripes = sum(len(source.tail.stripes) for one in layer.archives for source in one.sources)
        return Origin.COMPACTION if write_ids > stripes else Origin.UNKNOWN
    return origins.pop() if len(origins) == 1 else Origin.COMPACTION


def _has_no_ids(layer: _Layer) -> bool:
    """Whether a compaction of an insert-only table made it: its rows do not say which write id they are of."""
    return any(source.synthetic is not None for one in layer.archives for source in one.sources)


def _counts(layer: _Layer, covered: _Covered) -> dict[int, _Count]:
    """The events of a layer by write id, of those that are not covered."""
    counts: dict[int, _Count] = {}
    deleted = _Deleted()
    single = layer.low == layer.high
    for one in layer.archives:
        copied = _may_hold_copies(one)
        for source in one.sources:
            if single and not copied:
                _count_file(counts.setdefault(layer.high, _Count()), source)
            elif source.synthetic is None:
                _count_stripes(counts, source, covered, deleted if copied else None)
    for write_id, number in deleted.counts().items():
        counts.setdefault(write_id, _Count()).deletes += number
    if single:
        return counts
    return {write_id: count for write_id, count in counts.items() if not covered.holds_all(write_id, write_id)}


def _may_hold_copies(one: Archive) -> bool:
    """Whether a delete event may lie in several files: a compaction made them, and their buckets overlap."""
    directory = one.directory
    if directory is None or directory.kind is not Kind.DELETE_DELTA or directory.statement_id != NO_STATEMENT:
        return False
    buckets: list[tuple[int, int]] = []
    for source in one.sources:
        ranges = [known.bucket for known in source.ranges if known is not None]
        if len(ranges) < len(source.ranges):
            return len(one.sources) > 1
        if ranges:
            buckets.append((min(low for low, _ in ranges), max(high for _, high in ranges)))
    return any(before[1] >= after[0] for before, after in pairwise(sorted(buckets)))


def _count_file(count: _Count, source: EventFile) -> None:
    """A file whose rows are all of one write id: its footer, unless that leaves open what they are."""
    if source.is_delete or not source.may_hold_changes:
        count.add_alike(source.rows, source)
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
    """A file with rows of several write ids: by the stripes' statistics where they say it, else by the id columns.

    Args:
        deleted: takes the events of a delete delta whose files hold copies of each other's.
    """
    alike = deleted is None and (source.is_delete or not source.may_hold_changes)
    with source.open() as events:
        for stripe, known in enumerate(source.ranges):
            if known is not None and covered.holds_all(*known.current):
                continue
            if alike and known is not None and known.current[0] == known.current[1]:
                rows = source.tail.stripes[stripe].numberOfRows
                counts.setdefault(known.current[0], _Count()).add_alike(rows, source)
                continue
            for write_id, ids in _by_write_id(events.ids(stripe)):
                if deleted is not None:
                    deleted.add(write_id, ids.keys)
                else:
                    counts.setdefault(write_id, _Count()).add(ids.operation, source)


def _by_write_id(ids: Ids) -> Iterator[tuple[int, Ids]]:
    """The events of each write id of a stripe."""
    order = np.argsort(ids.current, kind="stable")
    current = ids.current[order]
    bounds = [0, *(np.flatnonzero(current[1:] != current[:-1]) + 1).tolist(), len(current)]
    for start, end in pairwise(bounds):
        if end > start:
            yield int(current[start]), ids.take(order[start:end])


def _line(
    snapshot: Snapshot, write_id: int, count: _Count, layer: _Layer, origin: Origin, *, complete: bool
) -> WriteIdHistory:
    own = origin is Origin.WRITER  # its own directories, or a streaming batch's
    pairs = min(count.inserts, count.deletes)
    times: Sequence[float] = [one.modified for one in layer.archives if one.modified is not None] if own else ()
    return WriteIdHistory(
        write_id,
        count.inserts - pairs if complete else count.inserts + count.v1_updates,
        count.deletes - pairs + count.v1_deletes if complete else None,
        pairs + count.v1_updates if complete else None,
        complete,
        _state(snapshot, write_id),
        layer.names if own else (),
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
