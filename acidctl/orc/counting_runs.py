"""Numbers that repeat or count in ORC's RLE version 2, as every writer has them.

A delta run without widths says in a few bytes up to 512 values that go on by the same step; a value by itself is
written directly.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]

LONGEST: Final = 512
"""The most values of a run."""

_DIGITS, _STEP = 2, 12
"""Offsets in an encoded run: two bytes of header, at most ten of the base, one of the step."""
_DELTA: Final = 0xC0
_DIRECT_64: Final = 0x40 | 31 << 1


def encoded_runs(bases: Int64, lengths: Int64, step: int) -> tuple[bytes, Int64]:
    """Return runs as bytes, and the offset of each run.

    Args:
        bases: the first value of each run.
        lengths: the number of values of each run, 1 to 512.
        step: the difference between neighbouring values, 0 or 1.
    """
    raw = np.zeros((len(bases), _STEP + 1), np.uint8)
    used = np.zeros(raw.shape, np.bool_)
    zigzag = (bases << 1 ^ bases >> 63).view(np.uint64)
    alone = lengths == 1
    used[:, :_DIGITS] = True
    raw[:, 0] = np.where(alone, _DIRECT_64, _DELTA | lengths - 1 >> 8)
    raw[:, 1] = np.where(alone, 0, lengths - 1 & 0xFF)
    remaining = zigzag.copy()
    for digit in range(_DIGITS, _STEP):
        used[:, digit] = remaining != 0 if digit > _DIGITS else True
        rest = remaining >> np.uint64(7)
        raw[:, digit] = (remaining & np.uint64(0x7F)).astype(np.uint8) | np.where(rest != 0, 0x80, 0).astype(np.uint8)
        remaining = rest
        if not remaining.any():
            break
    used[:, _STEP] = True
    raw[:, _STEP] = step << 1
    if alone.any():
        big_endian = zigzag[alone].astype(">u8").view(np.uint8).reshape(-1, 8)
        raw[alone, _DIGITS : _DIGITS + 8] = big_endian
        used[alone, _DIGITS : _DIGITS + 8] = True
        used[alone, _DIGITS + 8 :] = False
    sizes = used.sum(axis=1)
    return raw[used].tobytes(), np.cumsum(sizes) - sizes
