"""The shares of a rebalance: which rows each bucket gets, and their new row ids.

All live rows, in the order of their ids, are numbered from 0 over all buckets. Each bucket gets the quotient of rows
and buckets, rounded up; the last bucket has fewer, and some may have none. Live rows are counted as runs of ascending
ids: a few numbers represent thousands of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from acidctl.acid.bucket import encode
from acidctl.compaction.proof.keys import Key
from acidctl.compaction.rebalance.order import SortColumn
from acidctl.compaction.rebalance.runs import Runs
from acidctl.compaction.split import StripeSpan
from acidctl.rows.read.delete_set import Bools, Keys, Longs


@dataclass(frozen=True, slots=True)
class Share:
    """Rows that are adjacent in the order of their ids, and go to one bucket.

    Attributes:
        low, high: the least and the greatest key of the rows that are read for the share.
        skip: how many of the rows that are read come before the share.
        count: number of rows.
        number: the new row id of the first row.
        spans: the stripes of each file that contain the rows, by the file's index.
    """

    low: Key
    high: Key
    skip: int
    count: int
    number: int
    spans: Mapping[int, StripeSpan]

    def holds(self, keys: Keys) -> Bools:
        """Return which rows are read for the share."""
        return _is_at_least(keys, self.low) & ~_is_above(keys, self.high)

    def new_keys(self, original: Longs, bucket: int, first: int = 0) -> Keys:
        """Return new ids for rows with these write ids; `first` is the index of the first row in the share."""
        return _numbered(original, bucket, self.number + first)


@dataclass(frozen=True, slots=True)
class SortedShare:
    """Rows that are adjacent once all rows are sorted.

    Attributes:
        number: the new row id of the first row.
        count: number of rows.
        total: number of all rows in the location.
        write_id: the write id that all rows get.
    """

    order: tuple[SortColumn, ...]
    number: int
    count: int
    total: int
    write_id: int

    def new_keys(self, bucket: int, first: int, end: int) -> Keys:
        """Return the new ids of some of the rows."""
        return _numbered(np.full(end - first, self.write_id, np.int64), bucket, self.number + first)


def sorted_shares(runs: Runs, buckets: int, order: tuple[SortColumn, ...]) -> list[SortedShare]:
    """Return the share of each bucket that gets rows, if rows are sorted."""
    total = int(runs.count.sum())
    each, write_id = -(-total // buckets), int(runs.original.max(initial=0))
    return [
        SortedShare(order, first, min(each, total - first), total, write_id) for first in range(0, total, each or 1)
    ]


def _numbered(original: Longs, bucket: int, start: int) -> Keys:
    values = np.full(len(original), encode(bucket, 0), np.int64)
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
    return [
        tuple(_parts(groups, first, min(first + each, groups.total), most)) for first in range(0, groups.total, each)
    ]


def _parts(groups: _Groups, first: int, end: int, most: int) -> Iterator[Share]:
    for start in range(first, end, most):
        yield groups.share(start, min(start + most, end))


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


def _spans(runs: Runs) -> dict[int, StripeSpan]:
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


def _is_above(keys: Keys, key: Key) -> Bools:
    return _is_at_least(keys, (*key[:2], key[2] + 1))
