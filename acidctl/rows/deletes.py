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
        changes = np.flatnonzero((np.diff(self.original) != 0) | (np.diff(self.bucket) != 0)) + 1
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
    """

    __slots__ = ("_bound", "_groups", "_row_ids", "size")

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
        self._row_ids = keys.row_id
        self._bound = bound
        self._groups = {
            (int(keys.original[start]), int(keys.bucket[start])): (start, end) for start, end in keys.runs()
        }

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
            at, hit = self._find(keys.row_id[start:end], *group)
            if bound is not None and hit.any():
                kill = self._bound.take(at[hit])
                current, statement = bound.current[start:end][hit], bound.statement[start:end][hit]
                older = (current < kill.current) | ((current == kill.current) & (statement < kill.statement))
                hit = hit.copy()
                hit[hit] = older
            if hit.any():
                if dead is None:
                    dead = np.zeros(len(keys), np.bool_)
                dead[start:end] = hit
        return dead

    def _find(self, row_ids: Longs, start: int, end: int) -> tuple[NDArray[np.intp], Bools]:
        """Places in the set and hits, for row ids of one (originalTransaction, bucket)."""
        listed = self._row_ids[start:end]
        at = np.searchsorted(listed, row_ids)
        inside = np.minimum(at, len(listed) - 1)
        hit: Bools = listed[inside] == row_ids
        return inside + start, hit


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
