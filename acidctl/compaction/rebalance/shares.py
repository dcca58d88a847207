"""Which rows each bucket of a rebalance gets, and which numbers they have.

All live rows, in the order of their ids, are numbered from 0 on, over all buckets. Each bucket takes as many as the
quotient of rows and buckets, rounded up: the last one has fewer, and some may have none.
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
    """Rows that follow each other in the order of their ids, and go to one bucket.

    Attributes:
        low, high: the least and the greatest key of what is read for them.
        skip: so many of the rows that are read come before them.
        count: rows.
        number: the new row id of the first.
        spans: the stripes of each file in which they are, by the file's place.
    """

    low: Key
    high: Key
    skip: int
    count: int
    number: int
    spans: Mapping[int, StripeSpan]

    def holds(self, keys: Keys) -> Bools:
        """Which rows are read for it."""
        return _is_at_least(keys, self.low) & ~_is_above(keys, self.high)

    def new_keys(self, original: Longs, bucket: int, first: int = 0) -> Keys:
        """The new ids of rows of these write ids, of which the first is so many after the first of all."""
        return _numbered(original, bucket, self.number + first)


@dataclass(frozen=True, slots=True)
class SortedShare:
    """Rows that follow each other once all are sorted.

    Attributes:
        order: what they are sorted by.
        number: the new row id of the first.
        count: rows.
        total: of the location.
        write_id: that all rows get.
    """

    order: tuple[SortColumn, ...]
    number: int
    count: int
    total: int
    write_id: int

    def new_keys(self, bucket: int, first: int, end: int) -> Keys:
        """The new ids of some of the rows."""
        return _numbered(np.full(end - first, self.write_id, np.int64), bucket, self.number + first)


def sorted_shares(runs: Runs, buckets: int, order: tuple[SortColumn, ...]) -> list[SortedShare]:
    """What each bucket gets that gets any rows, where rows are sorted."""
    total = int(runs.count.sum())
    each, write_id = -(-total // buckets), int(runs.original.max(initial=0))
    return [
        SortedShare(order, first, min(each, total - first), total, write_id) for first in range(0, total, each or 1)
    ]


def _numbered(original: Longs, bucket: int, start: int) -> Keys:
    values = np.full(len(original), encode(bucket, 0), np.int64)
    return Keys(original, values, np.arange(start, start + len(original), dtype=np.int64))


def shares_of(runs: Runs, buckets: int, most: int) -> list[tuple[Share, ...]]:
    """What each bucket gets that gets any rows: one share after the other.

    Args:
        runs: of all live rows.
        buckets: that are asked for.
        most: rows of a share.
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
    """Runs in order; those that overlap, as an update of ACID v1 makes them, are one group.

    Attributes:
        total: rows.
    """

    def __init__(self, runs: Runs) -> None:
        runs = runs.take(np.lexsort((runs.last, runs.first, runs.bucket, runs.original)))
        is_other = np.append(True, (np.diff(runs.original) | np.diff(runs.bucket)) != 0)
        # The greatest row id so far, among those of the same write id and bucket: by the rank of all row ids.
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
        """The rows with these numbers, the second of which is not among them."""
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
    found: Bools = (keys.original > original) | is_same & (
        (keys.bucket > bucket) | (keys.bucket == bucket) & (keys.row_id >= row_id)
    )
    return found


def _is_above(keys: Keys, key: Key) -> Bools:
    original, bucket, row_id = key
    return _is_at_least(keys, (original, bucket, row_id + 1))
