"""Dates and timestamps of Parquet as their writer meant them.

Three things stand between the numbers of a Parquet file and what its writer wrote:

* Java's old calendar.  Hive says in ``writer.date.proleptic`` whether days before 15 October 1582 are Julian, Spark in
  ``org.apache.spark.legacyDateTime`` and ``...legacyINT96``; without a word Hive takes them for Julian, and so they are
  taken here of files that Java wrote.  Other writers (Arrow, Impala) have never counted so.
* Timestamps of 96 bits name their day by its Julian day number, and Hive always turns that into a Julian date.
* Hive stores timestamps of 96 bits in UTC and brings them back to the zone in ``writer.time.zone``, before 1900 to
  its local mean time; to its standard time if ``writer.zone.conversion.legacy`` says so, or is missing beside
  ``writer.date.proleptic``.  Files without a zone show UTC, where Hive would take the zone of its server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from acidctl.orc.arrow import below, with_children
from acidctl.orc.read.wide_timestamps import WideTimestamp, as_nanoseconds, parts, proleptic, wide
from acidctl.orc.read.zones import is_utc, zone

_SPARK = b"org.apache.spark.version"


@dataclass(frozen=True, slots=True)
class ParquetTime:
    """How a file counts time.

    Attributes:
        julian_dates: whether its days before 1582-10-15 are Julian.
        julian_timestamps: the same for those of its timestamps.
        zone: the zone to which timestamps are brought from UTC; empty when they need nothing.
        local_mean: by the zone's local mean time where it had no standard time yet.
    """

    julian_dates: bool = False
    julian_timestamps: bool = False
    zone: str = ""
    local_mean: bool = False

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
    if is_utc(name):
        return ParquetTime(dates, timestamps)
    by_default = b"false" if said is None else b"true"
    is_legacy = entries.get(b"writer.zone.conversion.legacy", by_default).lower() == b"true"
    return ParquetTime(dates, timestamps, name, local_mean=not is_legacy)


def _major(version: bytes) -> int:
    found = re.match(rb"\d+", version)
    return int(found[0]) if found else 0


def as_meant(array: pa.Array, time: ParquetTime) -> pa.Array:
    """A column in ORC's types, however nested, with its dates and timestamps moved; instants are left alone.

    Raises:
        BadDataError: the file names a zone that does not exist.
    """
    if time.julian_dates or time.julian_timestamps:
        array = proleptic(array, dates=time.julian_dates, timestamps=time.julian_timestamps)
    return _in_zone(array, time) if time.zone else array


def _in_zone(array: pa.Array, time: ParquetTime) -> pa.Array:
    kind = array.type
    if isinstance(kind, WideTimestamp) or pa.types.is_timestamp(kind):
        if kind.instant if isinstance(kind, WideTimestamp) else kind.tz is not None:
            return array
        seconds, nanos = parts(array)
        local = seconds + zone(time.zone).offset(seconds, local_mean=time.local_mean)
        return as_nanoseconds(wide(local, nanos, array, instant=False))
    children = below(array)
    return with_children(array, [_in_zone(child, time) for child in children]) if children else array
