"""Dates before 15 October 1582, from the calendar that old Hive counted in to the one that everybody else does.

Java's old classes switch from the Julian to the Gregorian calendar on that day.  Files of such writers hold the number
of the day that *they* called 0001-01-01, which a proleptic Gregorian reader calls 0000-12-30.  Copies of a file must
keep the stored number and the footer's calendar; only what is shown to somebody is moved to the same label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.orc.arrow import below, with_children
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts, wide
from acidctl.orc.tail import Tail

SWITCH = -141_427
"""1582-10-15 as days since 1970: from here on both calendars agree."""

_DAY = 86_400


def is_hybrid(tail: Tail) -> bool:
    """Whether a file's days before SWITCH are Julian: Java says so, or wrote before it could say anything."""
    if tail.calendar is None:
        return tail.footer.writer == 0
    return tail.calendar == "julian_gregorian"


def same_labels(days: Any) -> Any:
    """Days since 1970 whose proleptic Gregorian date reads as the Julian/Gregorian date of `days` (int64 array).

    29 February of a year that is a leap year in the Julian calendar only becomes 1 March, as in Hive.
    """
    since = days + 719_470  # since 1 March of the Julian year 0
    year = (4 * since + 3) // 1461  # counted from March, so that a leap day ends its year
    behind = year // 100 - year // 400 - 2
    return np.where(days < SWITCH, days - behind, days)


def proleptic_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of a hybrid file with its dates and wide timestamps, however nested, moved to the proleptic calendar.

    ``timestamp[ns]`` begins in 1677 and needs nothing; instants (WITH LOCAL TIME ZONE) are left alone.
    """
    columns = [proleptic(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def proleptic(array: pa.Array, *, dates: bool = True, timestamps: bool = True) -> pa.Array:
    """As :func:`proleptic_batch`, of one array; perhaps of its dates or its wide timestamps only."""
    if pa.types.is_date32(array.type):
        days = pc.fill_null(array.cast(pa.int32()), 0).to_numpy(zero_copy_only=False)
        if not dates or not len(days) or days.min() >= SWITCH:
            return array
        moved = pa.array(same_labels(days.astype(np.int64)).astype(np.int32))
        return pc.if_else(array.is_valid(), moved, None).cast(pa.date32())
    if isinstance(array.type, WideTimestamp):
        if not timestamps or array.type.instant:
            return array
        seconds, nanos = parts(array)
        days, rest = np.divmod(seconds, _DAY)
        return wide(same_labels(days) * _DAY + rest, nanos, array, instant=False)
    children = [proleptic(one, dates=dates, timestamps=timestamps) for one in below(array)]
    return with_children(array, children) if children else array
