"""The dead rows of a location: the keys of delete and update events, sorted once and looked up by runs.

A key is (originalTransaction, bucket, rowId). In ACID v2 a delete event deletes the rows of its key, unless their write
id is later than its own (format section 4.2). In ACID v1 the newest event of a key wins (section 4.1): an event is dead
if a later update or delete has the same key. Both are one rule here: a key may have a bound, and an event below it is
dead. Nearly every delete event is later than its key, so later than any row of it, and needs no bound. The ranges of
keys from statistics show which stripes may hold dead rows, so that id columns are read only if necessary.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acidctl.acid.names import MAXL
from acidctl.acid.writeids import ValidWriteIds
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.tail import RecordKey, Tail

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]

INSERT, UPDATE, DELETE = 0, 1, 2
"""Operation codes of events (format section 4)."""

# ORC column ids of a full-ACID file (format section 3.1).
_ORIGINAL, _BUCKET, _ROW_ID, _CURRENT = 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class Keys:
    """Row keys of a batch, in columns of equal length."""

    original: Longs
    bucket: Longs
    row_id: Longs

    def __len__(self) -> int:
        return len(self.row_id)

    def take(self, selection: NDArray[np.intp] | Bools | slice) -> Keys:
        return Keys(self.original[selection], self.bucket[selection], self.row_id[selection])

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield the bounds of runs with equal (originalTransaction, bucket), by which the rows of a file are sorted."""
        if not len(self):
            return
        original, bucket = self.original, self.bucket
        changes = np.flatnonzero((original[1:] != original[:-1]) | (bucket[1:] != bucket[:-1])) + 1
        bounds = [0, *changes.tolist(), len(self)]
        yield from itertools.pairwise(bounds)

    @staticmethod
    def concat(parts: Iterable[Keys]) -> Keys:
        listed = list(parts)
        if not listed:
            empty = np.empty(0, np.int64)
            return Keys(empty, empty, empty)
        return Keys(
            np.concatenate([part.original for part in listed]),
            np.concatenate([part.bucket for part in listed]),
            np.concatenate([part.row_id for part in listed]),
        )


@dataclass(frozen=True, slots=True)
class StripeRange:
    """The least and greatest value of the id columns in one stripe, inclusive.

    Attributes:
        is_dense: the stripe holds one (originalTransaction, bucket) and every rowId from the first to the last, in
            order: then the position of a row follows from its rowId.
    """

    original: tuple[int, int]
    bucket: tuple[int, int]
    row_id: tuple[int, int]
    current: tuple[int, int]
    is_dense: bool

    def is_all_valid(self, write_ids: ValidWriteIds) -> bool:
        """Return whether the snapshot sees every event of the stripe."""
        low, high = self.current
        if high > write_ids.high_watermark:
            return False
        return not write_ids.exceptions_in(low, high)


def stripe_ranges(tail: Tail) -> list[StripeRange | None]:
    """Return the range of every stripe of a native file; None if statistics are missing or contradict themselves.

    Files without a row index may claim the whole range of 64 bits (format section 3.4): such a range excludes
    nothing, so it needs no special case.

    Raises:
        BadDataError: the stripe statistics are damaged.
    """
    index = tail.key_index() or []
    ranges: list[StripeRange | None] = []
    for number, stripe in enumerate(tail.stripes):
        statistics = tail.stripe_statistics(number)
        last = index[number] if number < len(index) else None
        ranges.append(_range(statistics, stripe.numberOfRows, last) if statistics else None)
    return ranges


def _range(statistics: Sequence[pb.ColumnStatistics], rows: int, last: RecordKey | None) -> StripeRange | None:
    ranges = []
    for column in (_ORIGINAL, _BUCKET, _ROW_ID, _CURRENT):
        if column >= len(statistics) or not statistics[column].HasField("intStatistics"):
            return None
        integers = statistics[column].intStatistics
        if not (integers.HasField("minimum") and integers.HasField("maximum") and integers.minimum <= integers.maximum):
            return None
        if statistics[column].numberOfValues != rows:
            return None
        ranges.append((integers.minimum, integers.maximum))
    original, bucket, row_id, current = ranges
    single = original[0] == original[1] and bucket[0] == bucket[1]
    # The last key of the key index must be the greatest: a hint that rows ascend, as they must (section 4.2).
    ascends = last == (original[1], bucket[1], row_id[1])
    dense = single and ascends and row_id[1] - row_id[0] + 1 == rows
    return StripeRange(original, bucket, row_id, current, dense)


@dataclass(frozen=True, slots=True)
class Bound:
    """The order of events: by write id, then by statement id. The columns belong to those of :class:`Keys`."""

    current: Longs
    statement: Longs

    def take(self, selection: NDArray[np.intp] | Bools | slice) -> Bound:
        return Bound(self.current[selection], self.statement[selection])


@dataclass(frozen=True, slots=True)
class _Part:
    """Row ids of one (originalTransaction, bucket). Without a bound the rows are dead whatever their write id."""

    row_id: Longs
    bound: Bound | None


class DeleteSetBuilder:
    """Gathers the deleting events, file by file and stripe by stripe.

    Memory: 8 bytes per event, 24 if events have a bound, 48 for delete events that are not later than their key.
    """

    def __init__(self) -> None:
        self._parts: dict[tuple[int, int], list[_Part]] = {}
        self._early: DeleteSetBuilder | None = None

    def add(self, keys: Keys, bound: Bound | None = None) -> None:
        """Add keys in any order.

        Args:
            bound: for updates and deletes of ACID v1; None for events that delete the row whatever its write id.
        """
        for start, end in keys.runs():
            group = int(keys.original[start]), int(keys.bucket[start])
            part = _Part(keys.row_id[start:end], None if bound is None else bound.take(slice(start, end)))
            self._parts.setdefault(group, []).append(part)

    def add_deletes(self, keys: Keys, current: Longs, written: tuple[int, int], *, moved: bool = False) -> None:
        """Add delete events of ACID v2 in any order.

        Args:
            current: their write ids.
            written: the last write id and the statement id of their directory.
            moved: rows may have a later write id than their key, so that every event needs a bound.
        """
        for start, end in keys.runs():
            run, ids = keys.take(slice(start, end)), current[start:end]
            early = (ids <= int(keys.original[start])) | moved
            if not early.any():
                self.add(run)
                continue
            self.add(run, Bound(ids, np.full(len(ids), MAXL, np.int64)))
            self._early = self._early or DeleteSetBuilder()
            last, statement = (np.full(np.count_nonzero(early), number, np.int64) for number in written)
            self._early.add(run.take(early), Bound(last, statement))

    def settle(self) -> int:
        """Drop keys that were added several times, and return how many distinct keys remain."""
        for group, parts in self._parts.items():
            self._parts[group] = [_merged(parts)]
        return sum(len(part.row_id) for (part,) in self._parts.values())

    def build(self) -> DeleteSet:
        """Return the set and empty the builder."""
        groups = {}
        while self._parts:
            group, parts = self._parts.popitem()
            groups[group] = _merged(parts)
        return DeleteSet(groups, self._early.build() if self._early else None)


def _merged(parts: list[_Part]) -> _Part:
    return _merge_bounded(parts) if any(part.bound is not None for part in parts) else _merge(parts)


def _merge(parts: list[_Part]) -> _Part:
    """Return all row ids in one sorted column; the parts are emptied one by one to save memory."""
    if len(parts) == 1:
        row_id = parts[0].row_id
        if _ascends(row_id):
            return _Part(row_id, None)
    row_id = np.empty(sum(len(part.row_id) for part in parts), np.int64)
    end = len(row_id)
    while parts:
        part = parts.pop().row_id
        row_id[end - len(part) : end] = part
        end -= len(part)
    if not _ascends(row_id):
        row_id.sort()
        if not _ascends(row_id):
            first = np.ones(len(row_id), np.bool_)
            np.not_equal(row_id[1:], row_id[:-1], out=first[1:])
            row_id = row_id[first]
    return _Part(row_id, None)


def _ascends(row_id: Longs) -> bool:
    return bool((row_id[1:] > row_id[:-1]).all())


def _merge_bounded(parts: list[_Part]) -> _Part:
    row_id = np.concatenate([part.row_id for part in parts])
    most = [np.full(len(part.row_id), MAXL, np.int64) for part in parts]  # dead whatever their write id
    bounds = [part.bound or Bound(above_all, above_all) for part, above_all in zip(parts, most, strict=True)]
    bound = Bound(
        np.concatenate([item.current for item in bounds]), np.concatenate([item.statement for item in bounds])
    )
    order = np.lexsort((bound.statement, bound.current, row_id))
    row_id, bound = row_id[order], bound.take(order)
    # Of equal row ids the last has the greatest bound.
    last = np.ones(len(row_id), np.bool_)
    np.not_equal(row_id[1:], row_id[:-1], out=last[:-1])
    return _Part(row_id[last], bound.take(last))


class DeleteSet:
    """The dead keys by (originalTransaction, bucket), as sorted, distinct row ids; made by a builder.

    Attributes:
        size: distinct keys.
        is_absolute: no key has a bound, so :meth:`dead` needs none.
    """

    __slots__ = ("_early", "_groups", "is_absolute", "size")

    def __init__(self, groups: dict[tuple[int, int], _Part], early: DeleteSet | None = None) -> None:
        self._groups = groups
        self._early = early
        self.size = sum(len(part.row_id) for part in groups.values())
        self.is_absolute = all(part.bound is None for part in groups.values())

    @property
    def nbytes(self) -> int:
        """Return the memory that its keys and bounds take, in bytes."""
        return self.size * (8 if self.is_absolute else 24) + (self._early.nbytes if self._early else 0)

    def may_hit(self, keys: StripeRange) -> bool:
        """Return whether a key of the set may be among those of a stripe."""
        (low, high), (least, most), (first, last) = keys.original, keys.bucket, keys.row_id
        if low == high and least == most:
            part = self._groups.get((low, least))
            return part is not None and bool(part.row_id[0] <= last and part.row_id[-1] >= first)
        return any(
            low <= original <= high and least <= bucket <= most and part.row_id[0] <= last and part.row_id[-1] >= first
            for (original, bucket), part in self._groups.items()
        )

    def places(self, keys: StripeRange) -> NDArray[np.intp]:
        """Return the positions of dead rows in a dense stripe, ascending, for an absolute set."""
        part = self._groups.get((keys.original[0], keys.bucket[0]))
        if part is None:
            return np.empty(0, np.intp)
        first, last = keys.row_id
        low, high = np.searchsorted(part.row_id, (first, last + 1))
        return (part.row_id[low:high] - first).astype(np.intp, copy=False)

    def dead(self, keys: Keys, bound: Bound | None = None) -> Bools | None:
        """Return a mask of the dead rows of a batch; None if there are none.

        Args:
            keys: in any order; sorted rows are looked up faster.
            bound: of the batch's events; None if the set is absolute.
        """
        if not self.size:
            return None
        dead: Bools | None = None
        for start, end in keys.runs():
            part = self._groups.get((int(keys.original[start]), int(keys.bucket[start])))
            if part is None:
                continue
            rows, listed = _find(keys.row_id[start:end], part.row_id)
            if part.bound is not None and bound is not None and len(rows):
                kill = part.bound.take(listed)
                current, statement = bound.current[start:end][rows], bound.statement[start:end][rows]
                older = (current < kill.current) | ((current == kill.current) & (statement < kill.statement))
                rows = rows[older]
            if len(rows):
                if dead is None:
                    dead = np.zeros(len(keys), np.bool_)
                dead[rows + start] = True
        return dead

    def disputed(self, keys: Keys, bound: Bound, written: tuple[int, int]) -> Bools | None:
        """Return a mask of the rows that are dead for one reader of Hive 4 and live for another; None without any.

        The row reader compares write ids of events, as :meth:`dead` does. The vectorised one reads the delete deltas
        that end after the row's directory begins, or belong to a later statement of the same write id, and then
        compares keys alone. Both agree if a delete event is later than its key.

        Args:
            keys, bound: see :meth:`dead`.
            written: the first write id and the statement id of the rows' directory.
        """
        if self._early is None or (named := self._early.dead(keys)) is None:
            return None
        none = np.zeros(len(keys), np.bool_)
        first, statement = (np.full(len(keys), number, np.int64) for number in written)
        by_directory = self._early.dead(keys, Bound(first, statement))
        by_event = self.dead(keys, bound)
        differing = (none if by_directory is None else by_directory) != (none if by_event is None else by_event)
        differing &= named & (self.killers(keys) <= bound.current)
        return differing if differing.any() else None

    def killers(self, keys: Keys) -> Longs:
        """Return the write id of the event that deleted each row of a batch, 0 for live rows; keys must have bounds."""
        write_ids = np.zeros(len(keys), np.int64)
        for start, end in keys.runs():
            part = self._groups.get((int(keys.original[start]), int(keys.bucket[start])))
            if part is not None and part.bound is not None:
                rows, listed = _find(keys.row_id[start:end], part.row_id)
                write_ids[rows + start] = part.bound.current[listed]
        return write_ids


def _find(row_ids: Longs, listed: Longs) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of the row ids that are in `listed` (sorted, distinct), and their positions in `listed`."""
    if len(row_ids) < 2 or bool((row_ids[1:] > row_ids[:-1]).all()):
        low, high = np.searchsorted(listed, (row_ids[0], row_ids[-1] + 1))
        if high - low < len(row_ids):
            # Few keys in many rows: look the keys up in the rows.
            wanted = listed[low:high]
            rows = np.searchsorted(row_ids, wanted)
            hit = row_ids[rows] == wanted
            return rows[hit], np.flatnonzero(hit) + low
    at = np.minimum(np.searchsorted(listed, row_ids), len(listed) - 1)
    rows = np.flatnonzero(listed[at] == row_ids)
    return rows, at[rows]


def valid_mask(current: Longs, high_watermark: int, exceptions: tuple[int, ...]) -> Bools | None:
    """Return a mask of the events that a snapshot sees by their write ids; None if it sees all of them."""
    if not len(current):
        return None
    valid: Bools | None = None
    if int(current.max()) > high_watermark:
        valid = current <= high_watermark
    first, end = bisect_left(exceptions, int(current.min())), bisect_right(exceptions, int(current.max()))
    if first < end:
        listed = np.asarray(exceptions[first:end], np.int64)
        at = np.minimum(np.searchsorted(listed, current), len(listed) - 1)
        excepted = listed[at] == current
        if excepted.any():
            valid = ~excepted if valid is None else valid & ~excepted
    return valid
