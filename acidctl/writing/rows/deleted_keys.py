"""Collect the keys of deleted rows in little memory, and give them back in the order of delete events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from acidctl.rows.read import bucket_numbers
from acidctl.rows.read.delete_set import Keys

_EVENTS = 1 << 20


class DeletedKeys:
    """A set of keys; each may be added once.

    It takes 16 bytes for each run of consecutive row ids, so deleting all rows of a table needs little memory.
    """

    def __init__(self) -> None:
        self._runs: defaultdict[tuple[int, int], list[NDArray[np.int64]]] = defaultdict(list)

    def __bool__(self) -> bool:
        return bool(self._runs)

    def add(self, keys: Keys) -> None:
        """Add the keys of a batch in any order; sorted keys, as in files, make long runs and take the least memory."""
        for start, end in keys.runs():
            row_ids = keys.row_id[start:end]
            breaks = np.flatnonzero(np.diff(row_ids) != 1)
            runs = np.column_stack((row_ids[[0, *(breaks + 1)]], row_ids[[*breaks, -1]]))
            self._runs[int(keys.original[start]), int(keys.bucket[start])].append(runs)

    def by_number(self) -> Iterator[tuple[int, Iterator[Keys]]]:
        """Yield the bucket numbers, each with its keys in ascending order, in large batches."""
        groups: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for group in sorted(self._runs):
            groups[int(bucket_numbers.numbers(np.array(group[1])))].append(group)
        for number in sorted(groups):
            yield number, _gathered(keys for group in groups[number] for keys in self._keys(group))

    def _keys(self, group: tuple[int, int]) -> Iterator[Keys]:
        runs = np.concatenate(self._runs[group])
        runs = runs[np.argsort(runs[:, 0])]
        before = np.concatenate(([0], np.cumsum(runs[:, 1] - runs[:, 0] + 1)))
        for start in range(0, int(before[-1]), _EVENTS):
            places = np.arange(start, min(start + _EVENTS, int(before[-1])))
            run = np.searchsorted(before, places, side="right") - 1
            original, bucket = (np.full(len(places), value, np.int64) for value in group)
            yield Keys(original, bucket, runs[run, 0] + places - before[run])


def _gathered(parts: Iterable[Keys]) -> Iterator[Keys]:
    """Join small batches: a base may have a group of keys for each of many write ids."""
    pending, count = list[Keys](), 0
    for keys in parts:
        pending.append(keys)
        count += len(keys)
        if count >= _EVENTS:
            yield Keys.concat(pending)
            pending, count = [], 0
    if pending:
        yield Keys.concat(pending)
