"""The keys of rows, as runs: they say which rows of a table an Iceberg table has already.

A row of ACID keeps its key (original write id, bucket, row id) until it is deleted, whatever compactions do to its
file.  Each copied file has the runs of its keys, in the order of its rows, in its user metadata.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acidctl.base.errors import BadDataError
from acidctl.compaction.proof.checksum import RowProof, runs_checksum
from acidctl.rows.read.delete_set import Keys

RUNS = "acidctl.keys"
"""The name of the user metadata that holds the runs."""

Longs = NDArray[np.int64]

_MOST_RUNS = 1 << 28


@dataclass(frozen=True, slots=True)
class Runs:
    """Consecutive rows whose keys differ only by row ids that count by one; columns of equal length.

    Attributes:
        write_id, bucket, first: the key of the first row of each run.
        count: the number of rows.
    """

    write_id: Longs
    bucket: Longs
    first: Longs
    count: Longs

    @classmethod
    def of(cls, keys: Keys) -> Runs:
        """Return the runs of keys, in their order."""
        ends = (np.diff(keys.original) != 0) | (np.diff(keys.bucket) != 0) | (np.diff(keys.row_id) != 1)
        starts = np.flatnonzero(np.concatenate(([len(keys) > 0], ends)))
        count = np.diff(np.append(starts, len(keys)))
        return cls(keys.original[starts], keys.bucket[starts], keys.row_id[starts], count.astype(np.int64))

    @classmethod
    def concat(cls, parts: Sequence[Runs]) -> Runs:
        """Return the runs of rows one after another; runs that continue each other become one."""
        if not parts:
            return cls(*(np.zeros(0, np.int64) for _ in range(4)))
        write_id, bucket, first, count = (
            np.concatenate(columns) for columns in zip(*map(_columns, parts), strict=True)
        )
        same = (np.diff(write_id) == 0) & (np.diff(bucket) == 0) & (first[1:] == first[:-1] + count[:-1])
        starts = np.flatnonzero(np.concatenate(([len(first) > 0], ~same)))
        return cls(
            write_id[starts], bucket[starts], first[starts], np.add.reduceat(count, starts) if len(starts) else count
        )

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return int(self.count.sum())

    @property
    def starts(self) -> Longs:
        """Return the position of the first row of each run."""
        return np.cumsum(self.count) - self.count

    def keys(self) -> Keys:
        """Return the key of each row."""
        row_id = np.repeat(self.first - self.starts, self.count) + np.arange(self.rows)
        return Keys(np.repeat(self.write_id, self.count), np.repeat(self.bucket, self.count), row_id)

    def to_bytes(self) -> bytes:
        """Return the runs in the form of the user metadata."""
        table = np.stack(_columns(self), axis=1).astype("<i8")
        return zlib.compress(np.diff(table, axis=0, prepend=0).tobytes(), 6)

    @classmethod
    def from_bytes(cls, raw: bytes, shown: str) -> Runs:
        """Return the runs that a file holds.

        Raises:
            BadDataError: they are damaged.
        """
        expand = zlib.decompressobj()
        try:
            plain = expand.decompress(raw, 32 * _MOST_RUNS)
            table = np.cumsum(np.frombuffer(plain, "<i8").reshape(-1, 4), axis=0, dtype=np.int64)
        except (zlib.error, ValueError) as error:
            raise BadDataError(f"the keys in {shown} are damaged", str(error), "migrate into a new table") from error
        if not expand.eof or (table[:, 3] <= 0).any():
            raise BadDataError(f"the keys in {shown} are damaged", "they are cut short", "migrate into a new table")
        return cls(*(np.ascontiguousarray(table[:, at]) for at in range(4)))

    def slices(self, start: int, end: int) -> Runs:
        """Return the runs of the rows from `start` up to `end`."""
        begins = self.starts
        low, high = np.maximum(begins, start), np.minimum(begins + self.count, end)
        kept = low < high
        return Runs(
            self.write_id[kept],
            self.bucket[kept],
            (self.first + low - begins)[kept],
            (high - low)[kept],
        )


def _columns(runs: Runs) -> tuple[Longs, Longs, Longs, Longs]:
    return runs.write_id, runs.bucket, runs.first, runs.count


@dataclass(frozen=True, slots=True)
class FileKeys:
    """The rows of one file.

    Attributes:
        runs: of all rows.
        dead: sorted positions of the rows that are not shown.
    """

    runs: Runs
    dead: Longs

    def shown(self) -> tuple[Runs, Longs]:
        """Return the runs of the shown rows, each with the position of its first row."""
        return without(self.runs, self.dead)

    def proof(self) -> RowProof:
        """Return the number and the checksum of the keys of the shown rows."""
        runs, _ = self.shown()
        last = Keys(runs.write_id, runs.bucket, runs.first + runs.count - 1)
        return RowProof(runs.rows, runs_checksum(Keys(runs.write_id, runs.bucket, runs.first), last))


def without(runs: Runs, positions: Longs) -> tuple[Runs, Longs]:
    """Cut rows out of runs; return what is left, each run with the position of its first row before the cut."""
    starts = runs.starts
    if not len(positions):
        return runs, starts
    ends = starts + runs.count
    breaks = np.concatenate((starts, positions, positions + 1))
    low = np.unique(breaks)
    high = np.append(low[1:], ends[-1] if len(ends) else 0)
    run = np.searchsorted(starts, low, "right") - 1
    high = np.minimum(high, ends[run])
    is_cut = np.isin(low, positions)
    kept = (low < high) & ~is_cut
    low, high, run = low[kept], high[kept], run[kept]
    return Runs(runs.write_id[run], runs.bucket[run], runs.first[run] + low - starts[run], high - low), low


class KeySet:
    """A set of keys: disjoint intervals in order."""

    def __init__(self, parts: Iterable[Runs]) -> None:
        runs = Runs.concat(list(parts))
        order = np.lexsort((runs.first, runs.bucket, runs.write_id))
        self.write_id, self.bucket, self.first = runs.write_id[order], runs.bucket[order], runs.first[order]
        self.end = self.first + runs.count[order]

    def has_twins(self) -> bool:
        """Return whether a key was given more than once."""
        same = (np.diff(self.write_id) == 0) & (np.diff(self.bucket) == 0)
        return bool((same & (self.first[1:] < self.end[:-1])).any())


def ranges_outside(runs: Runs, starts: Longs, others: KeySet) -> Longs:
    """Return the positions whose keys are not in a set, as sorted rows of (first, last + 1).

    Args:
        runs: without twins, unless the set is empty.
        starts: the position of the first row of each run.
    """
    if not len(runs.first):
        return np.zeros((0, 2), np.int64)
    if not len(others.first):
        return np.stack((starts, starts + runs.count), axis=1)
    own, other = _groups(runs, others)
    count, more = len(own), len(other)
    # Along the row ids of each group runs begin and end, and so do the others' keys.
    at = np.concatenate((runs.first, runs.first + runs.count, others.first, others.end))
    order = np.lexsort((at, np.concatenate((own, own, other, other))))
    at = at[order]
    step = np.repeat((1, -1, 0, 0), (count, count, more, more))[order]
    taken = np.cumsum(np.repeat((0, 0, 1, -1), (count, count, more, more))[order])
    is_new = (np.cumsum(step)[:-1] > 0) & (taken[:-1] == 0) & (at[:-1] < at[1:])
    run = np.lexsort((runs.first, own))[(np.cumsum(step > 0) - 1)[:-1][is_new]]
    low = starts[run] + at[:-1][is_new] - runs.first[run]
    found = np.stack((low, low + np.diff(at)[is_new]), axis=1)
    return found[np.argsort(found[:, 0])]


def _groups(runs: Runs, others: KeySet) -> tuple[Longs, Longs]:
    """Return a number for each write id and bucket of both, in the same order for both."""
    pairs = np.empty(len(runs.first) + len(others.first), np.dtype([("write_id", np.int64), ("bucket", np.int64)]))
    pairs["write_id"] = np.concatenate((runs.write_id, others.write_id))
    pairs["bucket"] = np.concatenate((runs.bucket, others.bucket))
    _, groups = np.unique(pairs, return_inverse=True)
    return groups[: len(runs.first)], groups[len(runs.first) :]
