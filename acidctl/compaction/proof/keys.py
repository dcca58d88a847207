"""What a compaction must know of the keys of a stripe, worked out in one go: it asks for it of every stripe, twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acidctl.compaction.proof.checksum import is_constant, key_checksum, run_checksum
from acidctl.orc.read.id_runs import RowIdRun
from acidctl.orc.write.acid_writer import ascending
from acidctl.rows.read.delete_set import Bools, Keys, Longs

Key = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """The facts about a stripe's keys, at least one, computed together because every stripe needs them twice.

    Attributes:
        first, last: the least and the greatest key.
        ascends: whether they are in order; equal keys may be adjacent.
        repeats: whether a key equals the key before it.
        checksum: see :func:`key_checksum`.
    """

    first: Key
    last: Key
    ascends: bool
    repeats: bool
    checksum: int

    @classmethod
    def of(cls, keys: Keys) -> KeyFacts:
        """Compute the facts about keys."""
        if is_constant(keys.original) and is_constant(keys.bucket) and (np.diff(keys.row_id) == 1).all():
            first, last = key_range(keys, True)  # one writer's rows without gaps: nothing else to compute
            return cls(first, last, True, False, run_checksum(first, len(keys)))
        ascends = is_sorted(keys)
        first, last = key_range(keys, ascends)
        return cls(first, last, ascends, bool(repeats(keys).any()), key_checksum(keys))

    @classmethod
    def of_run(cls, run: RowIdRun) -> KeyFacts:
        """Compute the facts about one writer's rows without gaps."""
        return cls(run.first, run.last, True, False, run_checksum(run.first, run.count))


def key_range(keys: Keys, ascends: bool | None = None) -> tuple[Key, Key]:
    """Return the least and the greatest key; `ascends` if it is known."""
    low, high = 0, len(keys) - 1
    if not (is_sorted(keys) if ascends is None else ascends):
        order = np.lexsort((keys.row_id, keys.bucket, keys.original))
        low, high = int(order[0]), int(order[-1])
    return _key(keys, low), _key(keys, high)


def _key(keys: Keys, at: int) -> Key:
    return int(keys.original[at]), int(keys.bucket[at]), int(keys.row_id[at])


def is_sorted(keys: Keys) -> bool:
    """Say if keys ascend; equal keys may be adjacent."""
    varying = [column for column in (keys.original, keys.bucket) if not is_constant(column)]
    return ascending([*varying, keys.row_id])


def ascending_runs(keys: Keys) -> Longs:
    """Return for each key the number of its run of ascending keys, counted from 0."""
    if is_sorted(keys):
        return np.zeros(len(keys), np.int64)
    original, bucket, row_id = (np.diff(column) for column in (keys.original, keys.bucket, keys.row_id))
    falls = (original < 0) | ((original == 0) & ((bucket < 0) | ((bucket == 0) & (row_id < 0))))
    return np.concatenate([[0], np.cumsum(falls)]).astype(np.int64)


def repeats(keys: Keys) -> Bools:
    """Return which keys equal the key before, for all keys but the first."""
    same: Bools = keys.row_id[1:] == keys.row_id[:-1]
    if same.any():
        same &= (np.diff(keys.original) == 0) & (np.diff(keys.bucket) == 0)
    return same
