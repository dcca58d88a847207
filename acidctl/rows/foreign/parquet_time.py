"""Dates and timestamps of Parquet as their writer meant them.

Three things stand between the numbers of a Parquet file and what its writer wrote:

* Java's old calendar.  Hive says in ``writer.date.proleptic`` whether days before 15 October 1582 are Julian, Spark in
  ``org.apache.spark.legacyDateTime`` and ``...legacyINT96``; without a word Hive takes them for Julian, and so they are
  taken here of files that Java wrote.  Other writers (Arrow, Impala) have never counted so.
* Timestamps of 96 bits name their day by its Julian day number, and Hive always turns that into a Julian date.
* Hive stores timestamps of 96 bits in UTC and brings them back to the zone in ``writer.time.zone``, before 1900 to
  its standard time.  Files without that entry show UTC, where Hive would take the zone of its server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.orc.arrow import below, nested
from acidctl.orc.read.calendars import SWITCH, same_labels
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts, wide, widened
from acidctl.orc.read.zones import is_utc, zone

_DAY = 86_400
_SECOND = 10**9
_SPARK = b"org.apache.spark.version"


@dataclass(frozen=True, slots=True)
class ParquetTime:
    """How a file counts time.

    Attributes:
        julian_dates: whether its days before 1582-10-15 are Julian.
        julian_timestamps: the same for those of its timestamps.
        zone: the zone to which timestamps are brought from UTC; empty when they need nothing.
    """

    julian_dates: bool = False
    julian_timestamps: bool = False
    zone: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether nothing needs to be done."""
        return self == ParquetTime()


def parquet_time(created_by: str, entries: Mapping[bytes, bytes], *, int96: bool) -> ParquetTime:
    """How a file counts time, by its footer.

    Args:
        created_by: the writing library, as the footer names it.
        entries: the footer's key-value metadata.
        int96: whether its timestamps have 96 bits.
    """
    java = created_by.startswith("parquet-mr")
    said = entries.get(b"writer.date.proleptic")
    if said is not None:
        dates, timestamps = said.lower() != b"true", int96
    elif _SPARK in entries:
        old = _major(entries[_SPARK]) < 3
        dates = old or b"org.apache.spark.legacyDateTime" in entries
        timestamps = old or b"org.apache.spark.legacyINT96" in entries if int96 else dates
    else:
        dates, timestamps = java, java and int96
    name = entries.get(b"writer.time.zone", b"").decode("utf-8", "replace") if int96 and java else ""
    return ParquetTime(dates, timestamps, "" if is_utc(name) else name)


def _major(version: bytes) -> int:
    found = re.match(rb"\d+", version)
    return int(found[0]) if found else 0


def as_meant(array: pa.Array, time: ParquetTime) -> pa.Array:
    """A column in ORC's types, however nested, with its dates and timestamps moved; instants are left alone.

    Raises:
        BadDataError: the file names a zone that does not exist.
    """
    kind = array.type
    if pa.types.is_date32(kind):
        return _dates(array) if time.julian_dates else array
    if isinstance(kind, WideTimestamp):
        return array if kind.instant else _wide(array, time)
    if pa.types.is_timestamp(kind):
        return array if kind.tz is not None or not time.zone else _nanoseconds(array, time)
    children = below(array)
    return nested(array, [as_meant(child, time) for child in children]) if children else array


def _dates(array: pa.Array) -> pa.Array:
    days = pc.fill_null(array.cast(pa.int32()), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if not len(days) or days.min() >= SWITCH:
        return array
    return _masked(same_labels(days).astype(np.int32), array).cast(pa.date32())


def _nanoseconds(array: pa.Array, time: ParquetTime) -> pa.Array:
    ticks = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    room = 2 * _DAY * _SECOND
    if len(ticks) and (ticks.min() < np.iinfo(np.int64).min + room or ticks.max() > np.iinfo(np.int64).max - room):
        return _wide(widened(array), time)
    offsets = zone(time.zone).offset(ticks // _SECOND)
    return _masked(ticks + offsets * _SECOND, array).cast(array.type)


def _wide(array: pa.Array, time: ParquetTime) -> pa.Array:
    seconds, nanos = parts(array)
    if time.julian_timestamps:
        days, rest = np.divmod(seconds, _DAY)
        seconds = same_labels(days) * _DAY + rest
    if time.zone:
        seconds = seconds + zone(time.zone).offset(seconds)
    return wide(seconds, nanos, array, instant=False)


def _masked(values: Any, like: pa.Array) -> pa.Array:
    return pa.array(values, mask=like.is_null().to_numpy(zero_copy_only=False) if like.null_count else None)
