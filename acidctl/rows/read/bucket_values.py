"""Many values of the ``bucket`` column at once (format section 2); :mod:`acidctl.acid.bucket` is for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acidctl.acid.bucket import MAX_BUCKET, MAX_STATEMENT

_NONE = -1


@dataclass(frozen=True, slots=True)
class BucketParts:
    """What each value says.

    Attributes:
        version: its highest three bits, int64: 0 or 1, or of no codec.
        bucket: the number in the name of a file, int64; -1 where no codec is known.
        statement: int64; 0 for version 0, -1 where no codec is known.
    """

    version: NDArray[np.int64]
    bucket: NDArray[np.int64]
    statement: NDArray[np.int64]


def versions_of(values: NDArray[Any]) -> NDArray[np.int64]:
    """The highest three bits of each value, from integers of any width and sign."""
    found: NDArray[np.int64] = _unsigned(values) >> 29
    return found


def decode_all(values: NDArray[Any]) -> BucketParts:
    """As :func:`acidctl.acid.bucket.decode`, and no error for what has no codec."""
    unsigned, version = _unsigned(values), versions_of(values)
    old, new = version == 0, version == 1
    bucket = np.where(old, unsigned, np.where(new, unsigned >> 16 & MAX_BUCKET, _NONE))
    return BucketParts(version, bucket, np.where(old, 0, np.where(new, unsigned & MAX_STATEMENT, _NONE)))


def _unsigned(values: NDArray[Any]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = values.astype(np.int64, copy=False) & 0xFFFFFFFF
    return found
