"""Read timestamps beyond Arrow's nanoseconds of 64 bits (1677 to 2262), and dates of old Hive's calendar.

Hive tables are full of 9999-12-31, and the native reader fails on the whole stripe.  It reads integers well, though.
So it gets the stripe's bytes once more, in memory, with the TIMESTAMP columns declared BIGINT: their DATA streams
read as the stored seconds.  The nanoseconds of each such column, its SECONDARY stream, are read as a column of their
own, with a DATA stream of zeros, so that every value is in the first second of 2015.  (Reading SECONDARY as integers
as well would be wrong: it is an unsigned stream, and runs with a slope differ if they are read as signed.)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import below, tags_of, validity, with_children
from acidctl.orc.byte_source import damaged
from acidctl.orc.codecs import encode_original
from acidctl.orc.read.memory_file import ByteStream, read_as, read_column
from acidctl.orc.read.zones import YEAR_1900, Zone, is_utc, zone
from acidctl.orc.tail import Tail, as_text, placed_streams
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType

WIDE_STORAGE = pa.struct([pa.field("seconds", pa.int64()), pa.field("nanos", pa.int32())])

TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""The ticks per second of Arrow's timestamp units."""

SWITCH = -141_427
"""1582-10-15 as days since 1970: from here on both calendars agree."""

_BASE_2015 = 1_420_070_400  # 2015-01-01 00:00:00 UTC; stored seconds count from that time in the writer's zone
_DAY = 86_400
_NANOS = 1_000_000_000
_MILLISECOND = 999_999
_SECONDS_LIMIT = 1 << 55
"""A billion years: stored seconds beyond this are damage, and adding offsets to them could overflow."""
_NANOS_FIRST, _NANOS_LAST = -9_223_372_036, 9_223_372_035  # whole seconds that fit timestamp[ns] with any nanosecond
_ZEROS = {1: (bytes((127, 0, 0)), 130), 2: (bytes((0xC1, 0xFF, 0x00, 0x00)), 512)}
"""A run of zeros in each version of the integer encoding (in the second a delta run without slope), and its values."""

Mask = NDArray[np.bool_]


class WideTimestamp(pa.ExtensionType):  # type: ignore[misc]
    """A timestamp of any year: a struct of whole seconds since 1970 (floored) and the nanoseconds after them.

    Args:
        instant: True for TIMESTAMP WITH LOCAL TIME ZONE, whose seconds are UTC; False for TIMESTAMP, whose seconds are
            wall-clock time counted as if it were UTC.
    """

    def __init__(self, instant: bool = False) -> None:
        self.instant = instant
        super().__init__(WIDE_STORAGE, "acidctl.wide_timestamp")

    def __arrow_ext_serialize__(self) -> bytes:
        """Return the type's one parameter as a byte."""
        return b"1" if self.instant else b"0"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> WideTimestamp:
        """Restore the type from the bytes of __arrow_ext_serialize__."""
        if storage_type != WIDE_STORAGE:
            raise TypeError(f"a wide timestamp is stored as {WIDE_STORAGE}, not {storage_type}")
        return cls(serialized == b"1")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WideTimestamp) and other.instant == self.instant

    def __ne__(self, other: object) -> bool:
        # pyarrow's own __ne__, which would be inherited, does not call __eq__.
        return not self == other

    def __hash__(self) -> int:
        return hash((WideTimestamp, self.instant))

    def __reduce__(self) -> tuple[Any, ...]:
        return WideTimestamp, (self.instant,)


with suppress(pa.ArrowKeyError):  # registered already when the module is loaded twice
    pa.register_extension_type(WideTimestamp())


def may_be_misread(array: pa.Array) -> bool:
    """Return whether Arrow may misread a timestamp[ns] in this array, however nested, that Java wrote outside UTC.

    Writers cut seconds towards zero before 1970, Java by UTC; ORC C++ undoes that by the wall clock, so that fractions
    of seconds within a day of 1970 are a second off.  Before 1900 the two have different offsets for some zones.
    """
    if pa.types.is_timestamp(array.type):
        ticks = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        fraction = (np.abs(ticks) < _DAY * _NANOS) & (ticks % _NANOS > _MILLISECOND)
        return bool(np.any(fraction | (ticks < (YEAR_1900 + _DAY) * _NANOS)))
    return any(may_be_misread(child) for child in below(array))


def widened(array: pa.Array) -> pa.Array:
    """Return a timestamp array of any unit as WideTimestamp, so that batches of one column get one type."""
    return wide(*parts(array), array, instant=array.type.tz is not None)


def as_nanoseconds(array: pa.Array) -> pa.Array:
    """Return a WideTimestamp array as ``timestamp[ns]`` if all its values fit, else the array itself."""
    seconds, nanos = parts(array)
    if len(seconds) and (seconds.min() < _NANOS_FIRST or seconds.max() > _NANOS_LAST):
        return array
    kind = pa.timestamp("ns", tz="UTC" if array.type.instant else None)
    return pa.Array.from_buffers(kind, len(array), [validity(array), pa.py_buffer(seconds * _NANOS + nanos)])


def parts(array: pa.Array) -> tuple[Any, Any]:
    """Return seconds since 1970, rounded down, and the nanoseconds after them, as int64 arrays with 0 for NULL.

    Args:
        array: dates, timestamps of any unit, or WideTimestamp.
    """
    if isinstance(array.type, WideTimestamp):
        storage = array.storage
        seconds, nanos = (pc.if_else(storage.is_valid(), storage.field(i).cast(pa.int64()), 0) for i in (0, 1))
        return seconds.to_numpy(zero_copy_only=False), nanos.to_numpy(zero_copy_only=False)
    if pa.types.is_date32(array.type):
        days = pc.fill_null(array.cast(pa.int32()), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        return days * _DAY, np.zeros(len(array), np.int64)
    per_second = TICKS_PER_SECOND[array.type.unit]
    ticks = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    whole, rest = np.divmod(ticks, per_second)
    return whole, rest * (_NANOS // per_second)


def wide(seconds: Any, nanos: Any, like: pa.Array, instant: bool) -> pa.Array:
    """Return a WideTimestamp array of int64 seconds and nanoseconds, with the nulls of `like`."""
    children = [pa.array(seconds, pa.int64()), pa.array(nanos.astype(np.int32), pa.int32())]
    storage = pa.Array.from_buffers(WIDE_STORAGE, len(like), [validity(like)], children=children)
    return pa.ExtensionArray.from_storage(WideTimestamp(instant), storage)


def read_stripe(tail: Tail, i: int, tree: OrcType) -> pa.RecordBatch:
    """Read stripe `i` of a file, including timestamps of any year and any writer's zone.

    A column is ``timestamp[ns]`` if all its values fit, else WideTimestamp.  This costs about twice the native read of
    the stripe, and its bytes in memory.

    Args:
        tree: the root struct, restricted to the wanted columns, with the file's column ids.

    Raises:
        BadDataError: the stripe is damaged, or its writer's zone is unknown.
    """
    stripe = _Stripe.load(tail, i)
    types, rows = _retyped(tail.type_tree), tail.stripes[i].numberOfRows
    batch = read_as(tail, i, types, [stripe.data], stripe.footer, rows=rows, columns=list(_paths(tree)))
    everywhere = np.ones(batch.num_rows, np.bool_)
    columns = [_restored(child, batch.column(_name(child)), everywhere, stripe) for child in tree.children]
    return pa.RecordBatch.from_arrays(columns, names=list(tree.names))


@dataclass(frozen=True, slots=True)
class _Stripe:
    """The data of one stripe.

    Attributes:
        footer: the stripe's footer without the streams of the index.
        zone: the writer's time zone.
        secondary: the range of a column's nanoseconds in `data`, by column id.
    """

    tail: Tail
    index: int
    data: memoryview
    footer: pb.StripeFooter
    zone: str
    secondary: dict[int, slice]

    @classmethod
    def load(cls, tail: Tail, i: int) -> _Stripe:
        stripe = tail.stripes[i]
        raw = memoryview(tail.source.read(stripe.offset + stripe.indexLength, stripe.dataLength + stripe.footerLength))
        footer = tail.parse_stripe_footer(i, raw[stripe.dataLength :])
        if len(footer.columns) != len(tail.footer.types):
            why = f"stripe {i} has encodings of {len(footer.columns)} columns, its types are {len(tail.footer.types)}"
            raise damaged(tail.path, why)
        # No timestamp is read, so the zone does not matter; a damaged zone may hold bytes that are not text.
        kept = pb.StripeFooter(columns=footer.columns, writerTimezone="UTC")
        secondary: dict[int, slice] = {}
        for stream, at in placed_streams(footer, -stripe.indexLength):
            if at >= 0:
                kept.streams.append(stream)
                if stream.kind == pb.Stream.SECONDARY:
                    secondary.setdefault(stream.column, slice(at, at + stream.length))
        return cls(tail, i, raw[: stripe.dataLength], kept, as_text(footer.writerTimezone), secondary)

    def nanos(self, column: int, count: int) -> NDArray[np.int64]:
        if not count:
            return np.zeros(0, np.int64)
        version = 2 if self.footer.columns[column].kind == pb.ColumnEncoding.DIRECT_V2 else 1
        run, length = _ZEROS[version]
        zeros = encode_original(run * (count // length + 1), self.tail.compression, self.tail.block_size)
        nanos = self.data[self.secondary.get(column, slice(0, 0))]
        streams: dict[pb.Stream.Kind, ByteStream] = {pb.Stream.DATA: zeros, pb.Stream.SECONDARY: nanos}
        moved = read_column(self.tail, self.index, "timestamp", streams, count, version=version)
        return np.asarray(moved.cast(pa.int64()).to_numpy() - _BASE_2015 * _NANOS, np.int64)

    def timestamps(self, node: OrcType, stored: pa.Array, there: Mask) -> pa.Array:
        """Return a column of timestamps from the stored seconds; values are NULL where `there` is False."""
        there = there & stored.is_valid().to_numpy(zero_copy_only=False)
        seconds, nanos = np.zeros((2, len(stored)), np.int64)
        seconds[there] = pc.fill_null(stored, 0).to_numpy(zero_copy_only=False)[there]
        nanos[there] = self.nanos(node.column_id, int(np.count_nonzero(there)))
        if len(seconds) and (nanos.min() < 0 or nanos.max() >= _NANOS or abs(seconds).max() > _SECONDS_LIMIT):
            raise damaged(self.tail.path, "it holds timestamps that are none")
        instant = node.kind == TIMESTAMP_KINDS[1]
        if instant or is_utc(self.zone):
            seconds = _floored(seconds + _BASE_2015, nanos)
        else:
            seconds = _wall_clock(seconds, nanos, zone(self.zone), java=self.tail.footer.writer == 0)
        return as_nanoseconds(wide(seconds, nanos, pa.array(there, mask=~there), instant))


def _name(node: OrcType) -> str:
    """Name a field by its column id, so that no name is ambiguous."""
    return f"c{node.column_id}"


def _retyped(tree: OrcType) -> OrcType:
    """Return the same tree with timestamps as BIGINT."""
    return replace(
        tree,
        kind="bigint" if tree.kind in TIMESTAMP_KINDS else tree.kind,
        names=tuple(map(_name, tree.children)) if tree.kind == "struct" else (),
        children=tuple(map(_retyped, tree.children)),
        attributes=(),
    )


def _paths(tree: OrcType, prefix: str = "") -> Iterator[str]:
    """Yield the names of the columns that Arrow must read to get just this restricted tree."""
    for child in tree.children:
        path = prefix + _name(child)
        if child.kind == "struct" and child.children:
            yield from _paths(child, path + ".")
        else:
            yield path


def _wall_clock(seconds: Any, nanos: Any, there: Zone, *, java: bool) -> Any:
    """Return the wall-clock times that the writer stored as seconds."""
    base = np.array([_BASE_2015], np.int64)
    base -= there.offset(base - there.offset(base))
    utc = seconds + base
    if java:
        # Java cuts the UTC seconds towards zero, C++ the seconds of the wall clock.
        utc = _floored(utc, nanos)
        return utc + there.offset(utc)
    return _floored(utc + there.offset(utc), nanos)


def _floored(seconds: Any, nanos: Any) -> Any:
    """Undo the rounding of ORC writers, which cut seconds before 1970 towards zero if a millisecond or more is left."""
    return seconds - ((seconds < 0) & (nanos > _MILLISECOND))


def _restored(node: OrcType, array: pa.Array, there: Mask, stripe: _Stripe) -> pa.Array:
    """Return the array of `node` with its names and timestamps restored.

    Args:
        there: the rows that have a value in the file: a child of a sparse union holds placeholders, which are not
            timestamps, in the rows of other children.
    """
    if node.kind in TIMESTAMP_KINDS:
        return stripe.timestamps(node, array, there)
    if not node.children:
        return array
    children = [array.field(_name(child)) for child in node.children] if node.kind == "struct" else below(array)
    if node.kind == "struct":
        places = [there & array.is_valid().to_numpy(zero_copy_only=False)] * len(children)
    elif node.kind == "uniontype":
        places = [there & (tags_of(array) == i) for i in range(len(children))]
    else:
        # A reader of ORC puts nothing into NULL lists: all values of an array of lists are in the file.
        places = [np.ones(len(child), np.bool_) for child in children]
    parts = zip(node.children, children, places, strict=True)
    return with_children(array, [_restored(*part, stripe) for part in parts], node.names)


def is_hybrid(tail: Tail) -> bool:
    """Return whether a file's days before SWITCH are Julian: Java says so, or wrote before files could say it.

    Java's old classes switch from the Julian to the Gregorian calendar on that day.  Files of such writers hold the
    number of the day that *they* called 0001-01-01, which a proleptic Gregorian reader calls 0000-12-30.
    """
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

    Copies of a file must keep the stored number and the footer's calendar; only values that are shown are moved.
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
