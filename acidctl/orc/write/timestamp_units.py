"""Choose the unit of Arrow in which a timestamp column goes through pyarrow to ORC C++ exactly.

ORC stores a timestamp as whole seconds and, separately, the nanoseconds of the second.  Arrow's 64-bit timestamps do
not always fit:

* nanoseconds end in 2262 (and begin in 1677), Hive's timestamps in 9999;
* pyarrow cuts a timestamp before 1970 toward zero and gives ORC negative nanoseconds, which only ORC C++ reads back
  unchanged; Java reads another time, or fails.

So a column is written in nanoseconds if that is exact, in microseconds if that is exact, and otherwise in two exact
halves, its seconds and its nanoseconds, from which the stripe takes the right streams (see stand_ins.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.errors import BadDataError
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts
from acidctl.orc.write.surrogate_columns import HALVES

_NANOS = 10**9
# The last second whose microseconds fit 64 bits, and the last whose milliseconds do, the unit of statistics.
_MAX_MICRO_SECOND = (2**63 - 1) // 10**6 - 1
_MAX_SECOND = (2**63 - 1) // 10**3 - 2
# A writer adds a second to a time before 1970 with more nanoseconds than this; a reader subtracts it again.
_ROUNDED_NANOS = 999_999

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


class TimestampForm(IntEnum):
    """How a timestamp column is passed to pyarrow."""

    NANOSECONDS = 0
    MICROSECONDS = 1
    HALVES = 2


def choose_form(arrays: Sequence[pa.Array]) -> TimestampForm:
    """Return the form that is exact for all arrays of one column of one stripe."""
    wide = any(isinstance(array.type, WideTimestamp) or array.type.unit != "ns" for array in arrays)
    least = [pc.min(array).cast(pa.int64()).as_py() for array in arrays] if not wide else [-1]
    if all(first is None or first >= 0 for first in least):
        return TimestampForm.NANOSECONDS
    for array in arrays:
        seconds, nanos, _ = seconds_and_nanos(array)
        if bool(((seconds < 0) & (nanos != 0)).any()):
            return TimestampForm.HALVES
        if wide and bool(((nanos % 1000 != 0) | (np.abs(seconds) > _MAX_MICRO_SECOND)).any()):
            return TimestampForm.HALVES
    return TimestampForm.MICROSECONDS if wide else TimestampForm.NANOSECONDS


def in_form(array: pa.Array, form: TimestampForm, zone: str | None) -> pa.Array:
    """Return `array` as Arrow timestamps that pyarrow writes exactly, or a struct of two halves.

    Args:
        array: timestamps of any unit, or wide timestamps.
        form: the form that :func:`choose_form` returned for the column.
        zone: the time zone of the result's type: ``UTC`` for TIMESTAMP WITH LOCAL TIME ZONE, else None.

    Raises:
        BadDataError: ORC cannot represent a time.
    """
    if form is TimestampForm.NANOSECONDS:
        return array
    seconds, nanos, nulls = seconds_and_nanos(array)
    if form is TimestampForm.MICROSECONDS:
        return _timestamps(seconds * 10**6 + nanos // 1000, nulls, "us", zone)
    rounded = (seconds < 0) & (nanos > _ROUNDED_NANOS)
    _refuse(
        seconds, rounded & (seconds == -1), "a time in the last second before 1970, which ORC stores as one in 1970"
    )
    _refuse(seconds, np.abs(seconds) > _MAX_SECOND, "a time some hundred million years away")
    halves = [_timestamps(seconds + rounded, nulls, "s", zone), _timestamps(nanos, nulls, "ns", zone)]
    return pa.StructArray.from_arrays(halves, names=HALVES, mask=None if nulls is None else pa.array(nulls))


def seconds_and_nanos(array: pa.Array) -> tuple[Int64, Int64, Bool | None]:
    """Return seconds since 1970 (rounded down), nanoseconds (0 to 999999999), and where nulls are.

    A null has 0 seconds and 0 nanoseconds.
    """
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    seconds, nanos = parts(array)
    # The maker of a wide timestamp may have counted more than a second of nanoseconds, or less than none.
    carry, nanos = np.divmod(nanos, _NANOS)
    return seconds + carry, nanos, nulls


def _timestamps(values: Int64, nulls: Bool | None, unit: str, zone: str | None) -> pa.Array:
    return pa.array(values, pa.int64(), mask=nulls).cast(pa.timestamp(unit, tz=zone))


def _refuse(seconds: Int64, where: Any, what: str) -> None:
    if where.any():
        why = f"{what} ({seconds[where][0]} seconds from 1970)"
        hint = "correct the value in the table; no ORC file can hold it"
        raise BadDataError("a timestamp cannot be written to ORC", why, hint)
