"""Parquet files, whose row groups are read within limits as stripes of the types that ORC has.

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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from acidctl.acid.compaction_kind import Hive
from acidctl.base.errors import BadDataError
from acidctl.location.metastore_schema import Declared
from acidctl.orc.arrow import below, with_children
from acidctl.orc.byte_source import ByteSource, ReadAheadFile, damaged, native_errors, native_read
from acidctl.orc.limits import COLUMNS, STRIPE_MEMORY, STRIPES, TAIL, DecodingBudget
from acidctl.orc.read.wide_timestamps import WideTimestamp, as_nanoseconds, parts, proleptic, wide, widened
from acidctl.orc.read.zones import is_utc, zone
from acidctl.orc.tail import Tail
from acidctl.orc.types import OrcType, arrow_type, like_arrow, row_of, row_type_of
from acidctl.rows.foreign.foreign_reader import ForeignReader, made_tail, one_chunk

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


class ParquetReader(ForeignReader):
    """Reads row groups as stripes."""

    @staticmethod
    def describe(source: ByteSource, declared: Declared | None = None) -> Tail:
        """Return the footer that an ORC file of these rows would have.

        Args:
            declared: gives the table's columns, which Hive finds by their names, unless a property of the table says
                otherwise.
        """
        with native_errors(source.path):
            file = open_parquet(source, window=window_on(source))
            metadata, schema = file.metadata, file.schema_arrow
        row = row_of((field.name, _orc_type(field, source.path)) for field in schema)
        if declared and declared.columns:  # the table's columns in its order, each with the file's type if it has one
            by_name = {name.lower(): (name, child) for name, child in reversed(list(row.fields()))}
            columns = list(row_type_of(declared.columns).fields())
            if declared.by_place and any(
                one.lower() != name.lower() for one, (name, _) in zip(row.names, columns, strict=False)
            ):
                raise BadDataError(
                    f"{source.path} cannot be read",
                    "its columns have other places than the table's, and by parquet.column.index.access places count",
                    "let Hive read it",
                )
            row = row_of([by_name.get(name.lower(), (name, child)) for name, child in columns])
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        return made_tail(source, row, [(group.num_rows, group.total_byte_size) for group in groups])

    @cached_property
    def _file(self) -> Any:
        # Timestamps of 96 bits may not fit into 64 bits of nanoseconds: Arrow would wrap them around.
        return self._open("us")

    @cached_property
    def _window(self) -> ReadAheadFile | None:
        return window_on(self._source) if self._source.local_whole() is None else None

    @cached_property
    def _groups(self) -> RowGroups:
        return RowGroups(self._source, self._file.metadata, self._window)

    @cached_property
    def _work(self) -> DecodingBudget:
        return DecodingBudget(self._source.path, self._source.size)

    def _open(self, unit: str) -> Any:
        return open_parquet(self._source, unit=unit, window=self._window)

    @cached_property
    def _exact(self) -> Any:
        """Return the file opened with nanoseconds, which may overflow; None if no column has 96 bits."""
        return self._open("ns") if self._has_int96 else None

    @property
    def _has_int96(self) -> bool:
        columns = self._file.schema
        return any(columns.column(i).physical_type == "INT96" for i in range(len(columns)))

    @cached_property
    def _time(self) -> ParquetTime:
        metadata = self._file.metadata
        time = parquet_time(metadata.created_by or "", metadata.metadata or {}, int96=self._has_int96)
        if self._hive is Hive.HIVE3:  # it takes days as they are stored
            return replace(time, julian_dates=False, julian_timestamps=False)
        return time

    def _read(self, i: int, columns: Sequence[str] | None) -> pa.RecordBatch:
        wanted = None if columns is None else list(columns)
        with native_errors(self._source.path, i):
            self._work.require()
            files = [self._file] if self._exact is None else [self._file, self._exact]
            table, *more = self._groups.read(i, files, wanted)
            exact = more[0] if more else table
            self._work.add_part(i, table.nbytes)
            arrays, names = [], []
            places = {name: place for place, name in enumerate(table.schema.names)}
            if len(places) != table.num_columns:
                raise BadDataError(f"{self._source.path} cannot be read", "several of its columns have one name")
            for name, kind in self._tail.type_tree.fields():
                if name not in places and (wanted is None or name in wanted):
                    arrays.append(pa.nulls(table.num_rows, arrow_type(kind)))  # a column of the table that is newer
                    names.append(name)
                elif name in places:
                    column = one_chunk(table.column(places[name]))
                    if self._exact is not None:
                        column = _finer(column, one_chunk(exact.column(places[name])))
                    array = _as_orc(column, kind)
                    arrays.append(array if self._time.is_plain else as_meant(array, self._time))
                    names.append(name)
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def close(self) -> None:
        for name in ("_file", "_exact"):
            file = self.__dict__.pop(name, None)
            if file is not None:
                file.close(force=True)


def _finer(coarse: pa.Array, fine: pa.Array) -> pa.Array:
    """Return timestamps with their nanoseconds, in the wide form if 64 bits do not hold them.

    Args:
        coarse: in microseconds, which hold every time.
        fine: the same in nanoseconds, wrapped around if they do not fit.
    """
    if coarse.type == fine.type:
        return coarse
    if not pa.types.is_timestamp(coarse.type):
        return with_children(coarse, [_finer(*pair) for pair in zip(below(coarse), below(fine), strict=True)])
    micros, nanos = (pc.fill_null(array.cast(pa.int64()), 0).to_numpy() for array in (coarse, fine))
    limit = (1 << 63) // 1000 - 1
    if ((-limit <= micros) & (micros <= limit)).all():
        return fine
    # The last three digits are right even in values that wrapped around.
    rest = nanos.view(np.uint64) - micros.view(np.uint64) * np.uint64(1000)
    seconds, part = np.divmod(micros, 10**6)
    return wide(seconds, part * 1000 + rest.view(np.int64), coarse, instant=coarse.type.tz is not None)


def _orc_type(field: pa.Field, path: str) -> OrcType:
    if kind := like_arrow(field.type, OrcType("string")):
        return kind
    raise BadDataError(f"{path} cannot be read", f"Hive has no type for its column {field.name} of {field.type}")


def _as_orc(array: pa.Array, tree: OrcType) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if tree.kind.startswith("timestamp"):
        return _timestamps(array, tree)
    if tree.kind == "struct":
        # Only some of the fields may have been read.
        kinds = dict(tree.fields())
        names = [child.name for child in kind]
        return with_children(
            array, [_as_orc(c, kinds[name]) for c, name in zip(below(array), names, strict=True)], names
        )
    if tree.kind == "array" and not pa.types.is_list(kind):
        array = array.cast(pa.list_(kind.value_type))
    if tree.kind in ("array", "map"):
        return with_children(array, [_as_orc(c, k) for c, k in zip(below(array), tree.children, strict=True)])
    target = arrow_type(tree)
    if kind == pa.uint64():
        return _decimals(array, target)  # Arrow has no such cast
    return array if kind == target else array.cast(target)


def _decimals(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert unsigned numbers of 64 bits to decimals, whose lower half they are."""
    halves = np.zeros((len(array), 2), np.uint64)
    halves[:, 0] = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    is_valid = pa.py_buffer(np.packbits(array.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))
    return pa.Array.from_buffers(target, len(array), [is_valid, pa.py_buffer(halves)])


def _timestamps(array: pa.Array, tree: OrcType) -> pa.Array:
    target = arrow_type(tree)
    if isinstance(array.type, pa.BaseExtensionType):
        return array  # in the wide form already
    if target.tz is not None and array.type.tz != "UTC":
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        return widened(array)
