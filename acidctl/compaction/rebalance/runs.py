"""The live rows of a location in runs of ascending ids: a few numbers for some thousands of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acidctl.compaction.proof.keys import Key, is_sorted
from acidctl.rows.read.delete_set import Bools, Keys, Longs

_MOST = 1 << 14
"""The most rows of a run: a bucket reads its first and last run whole, with rows of its neighbours."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Live rows that are adjacent in one stripe, with the same write id and value of the bucket column.

    Attributes:
        file: its index among the files that are read.
        first, last: the least and the greatest row id.
        count: number of live rows.
    """

    file: Longs
    stripe: Longs
    original: Longs
    bucket: Longs
    first: Longs
    last: Longs
    count: Longs

    def __len__(self) -> int:
        return len(self.count)

    @classmethod
    def of(cls, file: int, stripe: int, keys: Keys) -> Runs:
        """Return the runs of the live keys of a stripe, given in any order."""
        if not is_sorted(keys):
            keys = keys.take(np.lexsort((keys.row_id, keys.bucket, keys.original)))
        count = len(keys)
        changes = np.flatnonzero(np.diff(keys.original) | np.diff(keys.bucket)) + 1
        starts = np.union1d(np.arange(0, count, _MOST), changes)
        ends = np.append(starts[1:], count)[: len(starts)]
        return cls._at(file, stripe, keys.take(starts), keys.row_id[ends - 1], ends - starts)

    @classmethod
    def counting(cls, file: int, stripe: int, first: Key, count: int) -> Runs:
        """Return the runs of `count` live keys with consecutive row ids."""
        starts = np.arange(0, count, _MOST)
        ends = np.append(starts[1:], count)[: len(starts)]
        original, bucket, row_id = first
        keys = Keys(np.full(len(starts), original), np.full(len(starts), bucket), starts + row_id)
        return cls._at(file, stripe, keys, ends - 1 + row_id, ends - starts)

    @classmethod
    def _at(cls, file: int, stripe: int, keys: Keys, last: Longs, count: Longs) -> Runs:
        files, stripes = (np.full(len(keys), place, np.int64) for place in (file, stripe))
        return cls(files, stripes, keys.original, keys.bucket, keys.row_id, last, count)

    @classmethod
    def concat(cls, parts: Sequence[Runs]) -> Runs:
        """Concatenate runs in the given order."""
        columns = (np.concatenate([getattr(part, name) for part in parts] or [_NONE]) for name in cls.__slots__)
        return cls(*columns)

    def take(self, selection: Bools | slice | Longs) -> Runs:
        """Return the selected runs."""
        return Runs(*(getattr(self, name)[selection] for name in self.__slots__))


_NONE = np.empty(0, np.int64)
