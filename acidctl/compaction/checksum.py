"""An order-independent checksum over row keys: what went in against what came out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acidctl.rows.deletes import Keys

_MASK = (1 << 64) - 1
_SEEDS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)


def key_checksum(keys: Keys) -> int:
    """128 bits: the sums of two independent 64-bit mixes of (originalTransaction, bucket, rowId).

    A sum, so that stripes and files can be added up in any order: ``(a + b) & MASK128`` by :func:`add`. Unlike an
    exclusive or, a sum notices a row that appears twice.
    """
    low, high = (_lane(keys, seed) for seed in _SEEDS)
    return high << 64 | low


def add(one: int, other: int) -> int:
    """The checksum of two disjoint sets of rows."""
    return ((one >> 64) + (other >> 64) & _MASK) << 64 | ((one & _MASK) + (other & _MASK) & _MASK)


def _lane(keys: Keys, seed: int) -> int:
    mixed = np.full(len(keys), seed, np.uint64)
    for column in (keys.original, keys.bucket, keys.row_id):
        mixed = _mix(mixed ^ column.view(np.uint64) * np.uint64(0xBF58476D1CE4E5B9))
    return int(mixed.sum(dtype=np.uint64))


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finisher of splitmix64; wraps around, as it must."""
    values = (values ^ values >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ values >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return values ^ values >> np.uint64(31)
