"""Parquet files: opened and read within limits, and their dates and timestamps as the writer meant them.

The limits are on the parts that a footer claims, and on the memory of rows.

Three things separate the numbers of a Parquet file from the values that its writer wrote:

* Java's old calendar. Hive records in ``writer.date.proleptic`` whether days before 15 October 1582 are Julian, Spark
  in ``org.apache.spark.legacyDateTime`` and ``...legacyINT96``. Without these entries Hive treats the days as Julian,
  and so does acidctl in files that Java wrote. Other writers (Arrow, Impala) have never used that calendar.
* Timestamps of 96 bits have a Julian day number, and Hive always converts that to a Julian date.
* Hive stores timestamps of 96 bits in UTC and converts them back to the zone in ``writer.time.zone``, before 1900 to
  its local mean time; to its standard time if ``writer.zone.conversion.legacy`` is true, or is missing next to
  ``writer.date.proleptic``. Files without a zone show UTC, where Hive would use the zone of its server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

from acidctl.orc.arrow import below, with_children
from acidctl.orc.byte_source import ByteSource, ReadAheadFile, damaged, native_read
from acidctl.orc.limits import COLUMNS, STRIPE_MEMORY, STRIPES, TAIL
from acidctl.orc.read.wide_timestamps import WideTimestamp, as_nanoseconds, parts, proleptic, wide
from acidctl.orc.read.zones import is_utc, zone

# The number of bytes that Arrow reads first.
_FIRST_READ = 64 * 1024
_MAGIC = b"PAR1"
_LENGTH_AND_MAGIC = 8
# Bytes of a row's ids.
_IDS = 32
# Chunks of old writers may be longer than they claim by this many bytes; Arrow reads these too.
_PADDING = 100
_SPARK = b"org.apache.spark.version"


def open_parquet(source: ByteSource, *, unit: str | None = None, window: ReadAheadFile | None = None) -> Any:
    """Return Arrow's reader of a file whose footer is within limits.

    Args:
        unit: of timestamps of 96 bits.
        window: reads a remote file; None makes a new one if the file is not local.

    Raises:
        BadDataError: the footer is damaged.
        LimitError: it has too many parts.
    """
    local = source.local_whole() if window is None else None
    if local is None and window is None:
        window = window_on(source)
    most = _most_elements(source, window)
    with native_read(source.path):
        opened = pq.ParquetFile(
            pa.OSFile(local) if window is None else pa.PythonFile(window.sibling(), mode="r"),
            coerce_int96_timestamp_unit=unit,
            thrift_container_size_limit=most,
            page_checksum_verification=True,
            arrow_extensions_enabled=False,
        )
    metadata = opened.metadata
    COLUMNS.check(metadata.num_columns, source.path, "number of its columns")
    STRIPES.check(metadata.num_row_groups, source.path, "number of its row groups")
    chunks = sum(metadata.row_group(i).num_columns for i in range(metadata.num_row_groups))
    STRIPES.check(chunks, source.path, "number of the column chunks of its row groups")
    return opened


def window_on(source: ByteSource) -> ReadAheadFile:
    """Return a file object for Arrow that has the end of the file already."""
    return ReadAheadFile(source, source.read_end(_FIRST_READ))


def _most_elements(source: ByteSource, window: ReadAheadFile | None) -> int:
    """Return how many elements a list of the footer can have, whatever it claims: each takes a byte at least."""
    count = min(_LENGTH_AND_MAGIC, source.size)
    end = (source.read if window is None else window.piece)(source.size - count, count)
    length = int.from_bytes(end[: -len(_MAGIC)], "little")
    if not end.endswith(_MAGIC) or not 0 < length <= source.size - _LENGTH_AND_MAGIC:
        return 1  # opening the file will raise the error
    TAIL.check(length, source.path, "size of its footer")
    return min(length, max(COLUMNS.value, STRIPES.value))


class RowGroups:
    """Reads the row groups of a file within limits.

    Args:
        window: reads a remote file; the wanted ranges are fetched ahead.
    """

    def __init__(self, source: ByteSource, metadata: Any, window: ReadAheadFile | None = None) -> None:
        self._source = source
        self._metadata = metadata
        self._window = window

    def read(self, i: int, files: Sequence[Any], columns: Sequence[str] | None = None) -> list[pa.Table]:
        """Return the rows of row group `i`, from each of several readers of the file.

        Args:
            columns: names as Arrow expects them; None for all.

        Raises:
            LimitError: its rows take more memory than the limit.
            BadDataError: it contradicts itself, or cannot be read.
        """
        where = f"row group {i} of {self._source.path}"
        ranges = self._ranges(i, where, columns)
        if self._window is not None:
            self._window.fetch(ranges)
        wanted = None if columns is None else list(columns)
        with native_read(self._source.path, where):
            tables = [file.read_row_group(i, columns=wanted) for file in files]
        rows = self._metadata.row_group(i).num_rows
        for table in tables:
            STRIPE_MEMORY.check(table.nbytes, where, "decompressed size of its rows")
            # Arrow does not detect pages with fewer values than the footer claims.
            if any(len(column) != rows for column in table.columns):
                raise damaged(self._source.path, f"row group {i} does not hold the {rows} rows that it claims")
        return tables

    def _ranges(self, i: int, where: str, columns: Sequence[str] | None) -> list[tuple[int, int]]:
        group = self._metadata.row_group(i)
        STRIPE_MEMORY.check(group.num_rows * _IDS, where, "decompressed size of its row ids")
        if group.num_columns != self._metadata.num_columns:
            why = f"row group {i} has {group.num_columns} columns, the schema {self._metadata.num_columns}"
            raise damaged(self._source.path, why)
        chunks = (group.column(j) for j in range(group.num_columns))
        if columns is not None:
            above = tuple(f"{name}." for name in columns)
            chunks = (chunk for chunk in chunks if f"{chunk.path_in_schema}.".startswith(above))
        return [self._range(chunk) for chunk in chunks]

    def _range(self, chunk: Any) -> tuple[int, int]:
        start, length = chunk.data_page_offset, chunk.total_compressed_size
        dictionary = chunk.dictionary_page_offset
        if dictionary is not None and 0 < dictionary < start:
            start = dictionary
        if start < 0 or length < 0 or start + length > self._source.size:
            raise damaged(self._source.path, "a column chunk claims bytes behind its end")
        return start, min(start + length + _PADDING, self._source.size)


@dataclass(frozen=True, slots=True)
class ParquetTime:
    """The way a file counts time.

    Attributes:
        julian_dates: whether its days before 1582-10-15 are Julian.
        julian_timestamps: the same for the days of its timestamps.
        zone: the zone to which timestamps are converted from UTC; empty if they need no conversion.
        local_mean: use the zone's local mean time before it had a standard time.
    """

    julian_dates: bool = False
    julian_timestamps: bool = False
    zone: str = ""
    local_mean: bool = False

    @property
    def is_plain(self) -> bool:
        """Return whether no conversion is needed."""
        return self == ParquetTime()


def parquet_time(created_by: str, entries: Mapping[bytes, bytes], *, int96: bool) -> ParquetTime:
    """Return the way a file counts time, by its footer.

    Args:
        created_by: the writing library, as the footer names it.
        entries: the footer's key-value metadata.
        int96: whether its timestamps have 96 bits.
    """
    java = created_by.startswith("parquet-mr")
    proleptic_entry = entries.get(b"writer.date.proleptic")
    if proleptic_entry is not None:
        dates, timestamps = proleptic_entry.lower() != b"true", int96
    elif _SPARK in entries:
        version = re.match(rb"\d+", entries[_SPARK])
        old = version is None or int(version[0]) < 3
        dates = old or b"org.apache.spark.legacyDateTime" in entries
        timestamps = old or b"org.apache.spark.legacyINT96" in entries if int96 else dates
    else:
        dates, timestamps = java, java and int96
    name = entries.get(b"writer.time.zone", b"").decode("utf-8", "replace") if int96 and java else ""
    if is_utc(name):
        return ParquetTime(dates, timestamps)
    by_default = b"false" if proleptic_entry is None else b"true"
    is_legacy = entries.get(b"writer.zone.conversion.legacy", by_default).lower() == b"true"
    return ParquetTime(dates, timestamps, name, local_mean=not is_legacy)


def as_meant(array: pa.Array, time: ParquetTime) -> pa.Array:
    """Convert the dates and timestamps of a column in ORC's types, however nested; instants stay the same.

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
