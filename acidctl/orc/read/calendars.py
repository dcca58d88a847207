"""Move dates before 15 October 1582 from old Hive's calendar to the proleptic Gregorian calendar.

Java's old classes switch from the Julian to the Gregorian calendar on that day.  Files of such writers hold the number
of the day that *they* called 0001-01-01, which a proleptic Gregorian reader calls 0000-12-30.  Copies of a file must
keep the stored number and the footer's calendar; only values that are shown are moved to the date with the same text.
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
    """Return whether a file's days before SWITCH are Julian: Java says so, or wrote before files could say it."""
    if tail.calendar is None:
        return tail.footer.writer == 0
    return tail.calendar == "julian_gregorian"


def same_labels(days: Any) -> Any:
    """Return days since 1970 whose proleptic Gregorian date reads as the Julian/Gregorian date of `days` (int64 array).

    29 February of a leap year of the Julian calendar alone becomes 1 March, as in Hive.
    """
    since = days + 719_470  # since 1 March of the Julian year 0
    year = (4 * since + 3) // 1461  # counted from March, so that a leap day ends its year
    behind = year // 100 - year // 400 - 2
    return np.where(days < SWITCH, days - behind, days)


def proleptic_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch of a hybrid file with all dates and wide timestamps moved to the proleptic calendar.

    Nested values are moved too.  ``timestamp[ns]`` begins in 1677 and instants (WITH LOCAL TIME ZONE) do not change.
    """
    columns = [proleptic(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def proleptic(array: pa.Array, *, dates: bool = True, timestamps: bool = True) -> pa.Array:
    """Do the same as :func:`proleptic_batch` for one array, optionally for its dates or its wide timestamps only."""
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
    children = [proleptic(child, dates=dates, timestamps=timestamps) for child in below(array)]
    return with_children(array, children) if children else array
