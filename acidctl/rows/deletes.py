"""Which rows are dead: the keys of delete and update events, sorted once and looked up by runs.

A key is (originalTransaction, bucket, rowId).  In ACID v2 a delete event kills its key whatever its write id
(format section 4.2).  In ACID v1 the newest event of a key wins (section 4.1): an event is dead when a later update
or delete has the same key.  Both are one rule here: every key has a bound, and an event below it is dead.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acidctl.acid.names import MAXL
from acidctl.rows.ranges import StripeRange

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]

DELETE = 2
"""The operation code of a delete event; 0 is insert, 1 update (format section 4)."""


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
        """Bounds of the runs of rows with equal (originalTransaction, bucket): rows of a file are sorted by them."""
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
class Bound:
    """Events are ordered by write id, then by statement id: columns beside :class:`Keys`."""

    current: Longs
    statement: Longs

    def take(self, selection: NDArray[np.intp] | Bools | slice) -> Bound:
        return Bound(self.current[selection], self.statement[selection])


def always_dead(count: int) -> Bound:
    """The bound of ACID v2's delete events: above every event."""
    return Bound(np.full(count, MAXL, np.int64), np.full(count, MAXL, np.int64))


class DeleteSet:
    """Keys with their bounds, sorted; immutable once made.

    Memory: 40 bytes a distinct key.

    Attributes:
        size: distinct keys.
        is_absolute: every key is dead for good, as in ACID v2; then no bound need be given to :meth:`dead`.
    """

    __slots__ = ("_bound", "_groups", "_row_ids", "is_absolute", "size")

    def __init__(self, keys: Keys, bound: Bound) -> None:
        order = np.lexsort((bound.statement, bound.current, keys.row_id, keys.bucket, keys.original))
        keys, bound = keys.take(order), bound.take(order)
        if len(keys) > 1:
            # Of equal keys the last has the greatest bound.
            last = np.ones(len(keys), np.bool_)
            last[:-1] = (np.diff(keys.original) != 0) | (np.diff(keys.bucket) != 0) | (np.diff(keys.row_id) != 0)
            if not last.all():
                keys, bound = keys.take(last), bound.take(last)
        self.size = len(keys)
        self.is_absolute = bool((bound.current == MAXL).all())
        self._row_ids = keys.row_id
        self._bound = bound
        self._groups = {
            (int(keys.original[start]), int(keys.bucket[start])): (start, end) for start, end in keys.runs()
        }

    def may_hit(self, found: StripeRange) -> bool:
        """Whether a key of the set may be among those of a stripe."""
        (low, high), (least, most) = found.original, found.bucket
        return any(
            low <= original <= high and least <= bucket <= most and self._overlaps(group, found.row_id)
            for (original, bucket), group in self._groups.items()
        )

    def _overlaps(self, group: tuple[int, int], row_id: tuple[int, int]) -> bool:
        start, end = group
        return bool(self._row_ids[start] <= row_id[1] and self._row_ids[end - 1] >= row_id[0])

    def places(self, found: StripeRange) -> NDArray[np.intp]:
        """Places of dead rows in a dense stripe, ascending, of an absolute set."""
        group = self._groups.get((found.original[0], found.bucket[0]))
        if group is None:
            return np.empty(0, np.intp)
        listed = self._between(*group, *found.row_id)
        return (listed - found.row_id[0]).astype(np.intp)

    def _between(self, start: int, end: int, first: int, last: int) -> Longs:
        """The row ids of a group from `first` to `last`."""
        group = self._row_ids[start:end]
        return group[np.searchsorted(group, first, "left") : np.searchsorted(group, last, "right")]

    def dead(self, keys: Keys, bound: Bound | None = None) -> Bools | None:
        """Which rows of a batch are dead; None when none is.

        Args:
            keys: of the batch, in any order; sorted rows are looked up faster.
            bound: of the batch's events; None for ACID v2, where every row with a listed key is dead.
        """
        if not self.size or not len(keys):
            return None
        dead: Bools | None = None
        for start, end in keys.runs():
            group = self._groups.get((int(keys.original[start]), int(keys.bucket[start])))
            if group is None:
                continue
            rows, listed = self._find(keys.row_id[start:end], *group)
            if bound is not None and not self.is_absolute and len(rows):
                kill = self._bound.take(listed)
                current, statement = bound.current[start:end][rows], bound.statement[start:end][rows]
                older = (current < kill.current) | ((current == kill.current) & (statement < kill.statement))
                rows = rows[older]
            if len(rows):
                if dead is None:
                    dead = np.zeros(len(keys), np.bool_)
                dead[rows + start] = True
        return dead

    def _find(self, row_ids: Longs, start: int, end: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows that are listed and their places in the set, for row ids of one (originalTransaction, bucket)."""
        ascends = len(row_ids) < 2 or bool((row_ids[1:] > row_ids[:-1]).all())
        if ascends:
            group = self._row_ids[start:end]
            low = int(np.searchsorted(group, row_ids[0], "left"))
            high = int(np.searchsorted(group, row_ids[-1], "right"))
            if high - low < len(row_ids):
                # Few keys in many rows: look the keys up in the rows.
                wanted = group[low:high]
                rows = np.searchsorted(row_ids, wanted)
                hit = row_ids[rows] == wanted
                return rows[hit], np.flatnonzero(hit) + low + start
        listed = self._row_ids[start:end]
        at = np.minimum(np.searchsorted(listed, row_ids), len(listed) - 1)
        rows = np.flatnonzero(listed[at] == row_ids)
        return rows, at[rows] + start


def valid_mask(current: Longs, high_watermark: int, exceptions: tuple[int, ...]) -> Bools | None:
    """Which events a snapshot sees by their write ids; None when it sees all of them."""
    if not len(current):
        return None
    valid: Bools | None = None
    if int(current.max()) > high_watermark:
        valid = current <= high_watermark
    if exceptions:
        listed = np.asarray(exceptions, np.int64)
        at = np.minimum(np.searchsorted(listed, current), len(listed) - 1)
        excepted = listed[at] == current
        if excepted.any():
            valid = ~excepted if valid is None else valid & ~excepted
    return valid
