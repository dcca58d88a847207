"""A rebalance: the shares of the buckets, with their new row ids.

All live rows, in the order of their ids, are numbered from 0 over all buckets. Each bucket gets the quotient of rows
and buckets, rounded up; the last bucket has fewer, and some may have none. Live rows are counted as runs of ascending
ids: a few numbers represent thousands of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acidctl.acid.bucket import encode
from acidctl.compaction.proof.checksum import Key, is_sorted
from acidctl.rows.read.delete_set import Bools, Keys, Longs

_RUN_ROWS = 1 << 14
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
        starts = np.union1d(np.arange(0, count, _RUN_ROWS), changes)
        ends = np.append(starts[1:], count)[: len(starts)]
        return cls._at(file, stripe, keys.take(starts), keys.row_id[ends - 1], ends - starts)

    @classmethod
    def counting(cls, file: int, stripe: int, first: Key, count: int) -> Runs:
        """Return the runs of `count` live keys with consecutive row ids."""
        starts = np.arange(0, count, _RUN_ROWS)
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


@dataclass(frozen=True, slots=True)
class Share:
    """Rows that are adjacent in the order of their ids, and go to one bucket.

    Attributes:
        low, high: the least and the greatest key of the rows that are read for the share.
        skip: how many of the rows that are read come before the share.
        count: number of rows.
        number: the new row id of the first row.
        spans: (first, end) of the stripes of each file that contain the rows, by the file's index.
    """

    low: Key
    high: Key
    skip: int
    count: int
    number: int
    spans: Mapping[int, tuple[int, int]]

    def holds(self, keys: Keys) -> Bools:
        """Return which rows are read for the share."""
        return _is_at_least(keys, self.low) & ~_is_at_least(keys, (*self.high[:2], self.high[2] + 1))

    def new_keys(self, original: Longs, bucket: int, first: int = 0) -> Keys:
        """Return new ids for rows with these write ids; `first` is the index of the first row in the share."""
        values = np.full(len(original), encode(bucket, 0), np.int64)
        start = self.number + first
        return Keys(original, values, np.arange(start, start + len(original), dtype=np.int64))


def shares_of(runs: Runs, buckets: int, most: int) -> list[tuple[Share, ...]]:
    """Return the shares of each bucket that gets rows.

    Args:
        runs: all live rows.
        buckets: the requested number of buckets.
        most: the most rows in a share.
    """
    if not len(runs):
        return []
    groups = _Groups(runs)
    each = -(-groups.total // buckets)
    ends = ((first, min(first + each, groups.total)) for first in range(0, groups.total, each))
    return [
        tuple(groups.share(start, min(start + most, end)) for start in range(first, end, most)) for first, end in ends
    ]


class _Groups:
    """Groups of runs in order; runs that overlap, as updates of ACID v1 do, are one group."""

    def __init__(self, runs: Runs) -> None:
        runs = runs.take(np.lexsort((runs.last, runs.first, runs.bucket, runs.original)))
        is_other = np.append(True, (np.diff(runs.original) | np.diff(runs.bucket)) != 0)
        # Find the greatest row id so far within each write id and bucket, using ranks of row ids.
        ids = np.unique(np.concatenate((runs.first, runs.last)))
        above = np.cumsum(is_other) * len(ids)
        reached = np.maximum.accumulate(above + np.searchsorted(ids, runs.last))
        starts = np.append(True, above[1:] + np.searchsorted(ids, runs.first)[1:] > reached[:-1])
        self._runs = runs
        self._first = np.flatnonzero(starts)
        self._after = np.append(self._first[1:], len(runs))
        self._greatest = ids[reached[self._after - 1] - above[self._after - 1]]
        self._ends = np.cumsum(np.add.reduceat(runs.count, self._first))
        self.total = int(self._ends[-1])

    def share(self, start: int, end: int) -> Share:
        """Return the share of the rows with numbers from `start` up to but not including `end`."""
        low, high = (int(place) for place in np.searchsorted(self._ends, (start, end - 1), "right"))
        runs, at, last = self._runs, int(self._first[low]), int(self._first[high])
        before = int(self._ends[low - 1]) if low else 0
        return Share(
            (int(runs.original[at]), int(runs.bucket[at]), int(runs.first[at])),
            (int(runs.original[last]), int(runs.bucket[last]), int(self._greatest[high])),
            start - before,
            end - start,
            start,
            _spans(runs.take(slice(at, int(self._after[high])))),
        )


def _spans(runs: Runs) -> dict[int, tuple[int, int]]:
    order = np.lexsort((runs.stripe, runs.file))
    file, stripe = runs.file[order], runs.stripe[order]
    firsts = np.flatnonzero(np.append(True, np.diff(file) != 0))
    lasts = np.append(firsts[1:], len(file)) - 1
    return {
        place: (first, last + 1)
        for place, first, last in zip(
            file[firsts].tolist(), stripe[firsts].tolist(), stripe[lasts].tolist(), strict=True
        )
    }


def _is_at_least(keys: Keys, key: Key) -> Bools:
    original, bucket, row_id = key
    is_same = keys.original == original
    is_at_least: Bools = (keys.original > original) | is_same & (
        (keys.bucket > bucket) | (keys.bucket == bucket) & (keys.row_id >= row_id)
    )
    return is_at_least
