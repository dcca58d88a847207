"""Row ids as runs: the first and the last id of each run for every (originalTransaction, bucket), sorted and apart.

Insert files hold few long runs, so that duplicates and dangling deletes of large tables are found in little memory;
keys that do not follow each other take 16 bytes each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from acidctl.rows.read.delete_set import Keys, Longs

Group = tuple[int, int]
"""originalTransaction and encoded bucket."""

Spans = dict[Group, tuple[Longs, Longs]]
"""First and last row ids of the runs of each group."""


class SpanBuilder:
    """Collects keys in any order, a stripe at a time."""

    def __init__(self) -> None:
        self._parts: dict[Group, list[tuple[Longs, Longs]]] = {}

    def add(self, keys: Keys) -> None:
        """Add keys."""
        if not len(keys):
            return
        original, bucket, row = keys.original, keys.bucket, keys.row_id
        breaks = (original[1:] != original[:-1]) | (bucket[1:] != bucket[:-1]) | (row[1:] != row[:-1] + 1)
        starts = np.concatenate([[0], np.flatnonzero(breaks) + 1])
        ends = np.concatenate([starts[1:], [len(row)]]) - 1
        first, last = row[starts], row[ends]
        for low, high in keys.take(starts).runs():
            group = int(original[starts[low]]), int(bucket[starts[low]])
            self._parts.setdefault(group, []).append((first[low:high], last[low:high]))

    def build(self) -> Spans:
        """Return the runs and empty the builder."""
        spans: Spans = {}
        while self._parts:
            group, parts = self._parts.popitem()
            spans[group] = _joined(parts)
        return spans


def one_run(group: Group, first: int, last: int) -> Spans:
    """Return the runs of a file whose row ids follow each other."""
    return {group: (np.array([first], np.int64), np.array([last], np.int64))}


def _joined(parts: Sequence[tuple[Longs, Longs]]) -> tuple[Longs, Longs]:
    """Merge runs that overlap or touch."""
    first = parts[0][0] if len(parts) == 1 else np.concatenate([part[0] for part in parts])
    last = parts[0][1] if len(parts) == 1 else np.concatenate([part[1] for part in parts])
    if len(first) == 1:
        return first.copy(), last.copy()
    if not (first[1:] >= first[:-1]).all():
        order = np.argsort(first, kind="stable")
        first, last = first[order], last[order]
    reach = np.maximum.accumulate(last)
    starts = np.concatenate([[0], np.flatnonzero(first[1:] > reach[:-1] + 1) + 1])
    ends = np.concatenate([starts[1:], [len(first)]]) - 1
    return first[starts], reach[ends]


def united(many: Sequence[Spans]) -> Spans:
    """Return every key that is in any of them."""
    parts: dict[Group, list[tuple[Longs, Longs]]] = {}
    for spans in many:
        for group, runs in spans.items():
            parts.setdefault(group, []).append(runs)
    return {group: runs[0] if len(runs) == 1 else _joined(runs) for group, runs in parts.items()}


@dataclass(slots=True)
class Shared:
    """The keys that two files have in common.

    Attributes:
        first, second: positions of the files.
        count: number of common keys.
    """

    first: int
    second: int
    count: int = 0
    example: tuple[int, int, int] = (0, 0, 0)


def shared(files: Sequence[Spans]) -> list[Shared]:
    """Return the pairs of files with common keys; a key in three files is in at least two pairs."""
    holders: dict[Group, list[int]] = {}
    for index, spans in enumerate(files):
        for group in spans:
            holders.setdefault(group, []).append(index)
    pairs: dict[tuple[int, int], Shared] = {}
    for group, listed in holders.items():
        if len(listed) > 1:
            _shared_of_group(group, listed, files, pairs)
    return [pairs[pair] for pair in sorted(pairs)]


def _shared_of_group(
    group: Group, listed: Sequence[int], files: Sequence[Spans], pairs: dict[tuple[int, int], Shared]
) -> None:
    first = np.concatenate([files[index][group][0] for index in listed])
    last = np.concatenate([files[index][group][1] for index in listed])
    owner = np.concatenate([np.full(len(files[index][group][0]), index) for index in listed])
    order = np.lexsort((last, first))
    first, last, owner = first[order], last[order], owner[order]
    reach = np.maximum.accumulate(last)
    hits = np.flatnonzero(first[1:] <= reach[:-1]) + 1
    if not len(hits):
        return
    # Runs of one file lie apart, so a run that reaches into another one belongs to another file.
    position = np.arange(len(last))
    holder = owner[np.maximum.accumulate(np.where(last == reach, position, 0))]
    counts = np.minimum(last[hits], reach[hits - 1]) - first[hits] + 1
    couples = np.stack([holder[hits - 1], owner[hits]])
    couples.sort(axis=0)
    for couple in map(tuple, np.unique(couples, axis=1).T.tolist()):
        is_theirs = (couples[0] == couple[0]) & (couples[1] == couple[1])
        pair = pairs.setdefault(couple, Shared(*couple))
        if not pair.count:
            pair.example = (*group, int(first[hits[np.flatnonzero(is_theirs)[0]]]))
        pair.count += int(counts[is_theirs].sum())


def uncovered(wanted: Spans, there: Spans) -> Iterator[tuple[Group, int, int]]:
    """Yield (group, number of keys of `wanted` that are not in `there`, the row id of one of them)."""
    for group, (first, last) in wanted.items():
        runs = there.get(group)
        if runs is None:
            yield group, int((last - first + 1).sum()), int(first[0])
            continue
        covered = _count_up_to(runs, last) - _count_up_to(runs, first - 1)
        short = (last - first + 1) - covered
        incomplete = np.flatnonzero(short)
        if len(incomplete):
            yield group, int(short.sum()), _first_gap(runs, int(first[incomplete[0]]))


def _count_up_to(runs: tuple[Longs, Longs], ids: Longs) -> Longs:
    """Return for each of `ids` how many ids of the runs are at most as large."""
    first, last = runs
    before = np.concatenate([[0], np.cumsum(last - first + 1)])
    position = np.searchsorted(first, ids, "right")
    inside = np.maximum(position - 1, 0)
    counts: Longs = before[position] - np.where(position > 0, np.maximum(last[inside] - ids, 0), 0)
    return counts


def _first_gap(runs: tuple[Longs, Longs], row_id: int) -> int:
    """Return the least id from `row_id` on that is in no run."""
    first, last = runs
    at = int(np.searchsorted(first, row_id, "right")) - 1
    return int(last[at]) + 1 if at >= 0 and last[at] >= row_id else row_id
