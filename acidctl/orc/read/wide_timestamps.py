"""Timestamps of any year: a second way to read a stripe, where Arrow's nanoseconds of 64 bits (1677 to 2262) give out.

Hive tables are full of 9999-12-31, and the native reader fails on the whole stripe.  It reads integers well, though.
So the stripe's bytes are given to it twice, in memory, under tails made for the purpose:

* as *seconds*: TIMESTAMP columns declared BIGINT, so that their DATA stream reads as the stored seconds;
* as *nanos*: TIMESTAMP columns left as they are but with a DATA stream of zeros, so that every value lands in the
  first second of 2015 and what lies behind the second is the SECONDARY stream, decoded.

(Reading SECONDARY as integers as well would be wrong: it is an unsigned stream, and runs with a slope come out
different when read as signed.)  Both are put together wherever the timestamp was nested.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from acidctl.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import below, nested, validity
from acidctl.orc.codecs import encode_original
from acidctl.orc.read.zones import YEAR_1900, is_utc, zone
from acidctl.orc.source import native_errors
from acidctl.orc.tail import MAGIC, Tail, as_text
from acidctl.orc.types import OrcType, restricted, to_proto

WIDE_STORAGE = pa.struct([pa.field("seconds", pa.int64()), pa.field("nanos", pa.int32())])

_TIMESTAMPS = ("timestamp", "timestamp with local time zone")
_BASE_2015 = 1_420_070_400
"""2015-01-01 00:00:00 UTC, where stored seconds count from (in the writer's zone)."""
_DAY = 86_400
_NANOS = 1_000_000_000
_MILLISECOND = 999_999
_SECONDS_LIMIT = 1 << 55
"""A billion years: stored seconds beyond it are damage, and adding offsets to them could overflow."""
_NANOS_FIRST, _NANOS_LAST = -9_223_372_036, 9_223_372_035
"""Whole seconds that fit timestamp[ns] with any nanosecond."""

# Runs of zeros in the two integer encodings: 130 in version 1; 512 in version 2 (a delta run without slope).
_ZEROS_V1, _ZEROS_V1_LENGTH = bytes((127, 0, 0)), 130
_ZEROS_V2, _ZEROS_V2_LENGTH = bytes((0xC1, 0xFF, 0x00, 0x00)), 512


class WideTimestamp(pa.ExtensionType):  # type: ignore[misc]
    """A timestamp of any year: struct of whole seconds since 1970 (floored) and the nanoseconds after them.

    Args:
        instant: True for TIMESTAMP WITH LOCAL TIME ZONE, whose seconds are UTC; False for TIMESTAMP, whose seconds are
            wall-clock time, as if the clock hung in UTC.
    """

    def __init__(self, instant: bool = False) -> None:
        self.instant = instant
        super().__init__(WIDE_STORAGE, "acidctl.wide_timestamp")

    def __arrow_ext_serialize__(self) -> bytes:
        """One byte."""
        return b"1" if self.instant else b"0"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> WideTimestamp:
        """From what __arrow_ext_serialize__ left."""
        if storage_type != WIDE_STORAGE:
            raise TypeError(f"a wide timestamp is stored as {WIDE_STORAGE}, not {storage_type}")
        return cls(serialized == b"1")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WideTimestamp) and other.instant == self.instant

    def __ne__(self, other: object) -> bool:
        # pyarrow's own, which would be inherited, does not ask __eq__.
        return not self == other

    def __hash__(self) -> int:
        return hash((WideTimestamp, self.instant))

    def __reduce__(self) -> tuple[Any, ...]:
        return WideTimestamp, (self.instant,)


with suppress(pa.ArrowKeyError):  # registered already when the module is loaded twice
    pa.register_extension_type(WideTimestamp())


def has_timestamp(tree: OrcType) -> bool:
    """Whether a timestamp of either kind is at or below this node."""
    return any(node.kind in _TIMESTAMPS for node in tree.walk())


def doubtful(array: pa.Array) -> bool:
    """Whether Arrow may be wrong about a timestamp[ns] in this array, however nested, if Java wrote it outside UTC.

    Writers cut seconds towards zero before 1970, Java by UTC; ORC C++ undoes that by the wall clock, so that fractions
    of seconds within a day of 1970 come out a second off.  Before 1900 the two have different offsets for some zones.
    """
    if pa.types.is_timestamp(array.type):
        ticks = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        fraction = (np.abs(ticks) < _DAY * _NANOS) & (ticks % _NANOS > _MILLISECOND)
        return bool(np.any(fraction | (ticks < (YEAR_1900 + _DAY) * _NANOS)))
    return any(doubtful(child) for child in below(array))


def widened(array: pa.Array) -> pa.Array:
    """A ``timestamp[ns]`` array as WideTimestamp, so that batches of one column can be brought to one type."""
    nanos = pc.fill_null(array.cast(pa.int64()), 0).to_numpy()
    seconds, rest = np.divmod(nanos, _NANOS)
    return wide(seconds, rest, array, instant=array.type.tz is not None)


def narrowed(array: pa.Array) -> pa.Array:
    """A WideTimestamp array as ``timestamp[ns]`` when all its values fit, else the array itself."""
    seconds, nanos = parts(array)
    if len(seconds) and (seconds.min() < _NANOS_FIRST or seconds.max() > _NANOS_LAST):
        return array
    kind = pa.timestamp("ns", tz="UTC" if array.type.instant else None)
    return pa.Array.from_buffers(kind, len(array), [validity(array), pa.py_buffer(seconds * _NANOS + nanos)])


def parts(array: pa.Array) -> tuple[Any, Any]:
    """Seconds and nanoseconds of a WideTimestamp array, int64 arrays with 0 where it is null."""
    storage = array.storage
    seconds, nanos = (pc.if_else(storage.is_valid(), storage.field(i).cast(pa.int64()), 0) for i in (0, 1))
    return seconds.to_numpy(zero_copy_only=False), nanos.to_numpy(zero_copy_only=False)


def wide(seconds: Any, nanos: Any, like: pa.Array, instant: bool) -> pa.Array:
    """A WideTimestamp array of int64 seconds and nanoseconds, with the nulls of `like`."""
    children = [pa.array(seconds, pa.int64()), pa.array(nanos.astype(np.int32), pa.int32())]
    storage = pa.Array.from_buffers(WIDE_STORAGE, len(like), [validity(like)], children=children)
    return pa.ExtensionArray.from_storage(WideTimestamp(instant), storage)


def read_stripe(tail: Tail, i: int, tree: OrcType, narrow: bool = True) -> pa.RecordBatch:
    """Stripe `i` of a file, timestamps of any year and any writer's zone included.

    Costs about twice the native read of the stripe, and its bytes in memory.

    Args:
        tail: the file.
        i: the stripe.
        tree: the root struct, pruned to the columns wanted; its column ids are the file's.
        narrow: give ``timestamp[ns]`` where all values of a column fit; else every timestamp comes as WideTimestamp.

    Raises:
        BadDataError: the stripe is damaged, or its writer's zone is unknown.
    """
    stripe = _Stripe.load(tail, i)
    seconds = stripe.native(stripe.seconds_file(), tree)
    times = restricted(tree, _outermost(tree))
    nanos = None if times is None else stripe.native(stripe.nanos_file(times, max(map(_longest, seconds))), times)
    clock = _Clock(stripe.zone, tail.footer.writer == 0, narrow, tail.path)
    columns = [_combine(child, _field(seconds, child), _nanos_field(nanos, child), clock) for child in tree.children]
    fields = [pa.field(name, column.type) for name, column in zip(tree.names, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


@dataclass(frozen=True, slots=True)
class _Stripe:
    """The data of one stripe, and the tails that are put behind it."""

    tail: Tail
    index: int
    data: memoryview
    footer: pb.StripeFooter
    zone: str
    rows: int

    @classmethod
    def load(cls, tail: Tail, i: int) -> _Stripe:
        stripe = tail.stripes[i]
        raw = memoryview(tail.source.read(stripe.offset + stripe.indexLength, stripe.dataLength + stripe.footerLength))
        footer = tail.parse_stripe_footer(i, raw[stripe.dataLength :])
        if len(footer.columns) != len(tail.footer.types):
            why = f"stripe {i} has encodings of {len(footer.columns)} columns, its types are {len(tail.footer.types)}"
            raise BadDataError(f"{tail.path} is damaged", why, "the file was cut short or overwritten")
        # Neither file has timestamps for the zone to matter to; damage may have left bytes there that are no text.
        kept = pb.StripeFooter(columns=footer.columns, writerTimezone="UTC")
        at = 0
        for stream in footer.streams:
            if at >= stripe.indexLength:
                kept.streams.append(stream)
            at += stream.length
        return cls(tail, i, raw[: stripe.dataLength], kept, as_text(footer.writerTimezone), stripe.numberOfRows)

    def seconds_file(self) -> list[bytes | memoryview]:
        """An ORC file of this stripe with the stored seconds of its timestamps as BIGINT."""
        return self._file(_retyped(self.tail.type_tree, seconds=True), [self.data], self.footer)

    def nanos_file(self, times: OrcType, values: int) -> list[bytes | memoryview]:
        """An ORC file of this stripe with every timestamp moved into the first second of 2015.

        `values` is the most values that one column may hold; more zeros than are read do no harm.
        """
        wanted = {node.column_id for node in times.walk() if node.kind in _TIMESTAMPS}
        footer = pb.StripeFooter(columns=self.footer.columns, writerTimezone="UTC")
        for stream in self.footer.streams:
            kept = footer.streams.add()
            kept.CopyFrom(stream)
            if stream.kind == pb.Stream.DATA and stream.column in wanted:
                kept.kind = pb.Stream.BLOOM_FILTER  # which a plain read passes over
        # Streams lie in the order of the footer's list: fill up what the list leaves of the stripe's data.
        filler = len(self.data) - sum(stream.length for stream in footer.streams)
        footer.streams.add(kind=pb.Stream.BLOOM_FILTER, column=0, length=filler)
        zeros = {version: self._zeros(values, version) for version in (1, 2)}
        pieces = [self.data]
        for column_id in sorted(wanted):
            piece = zeros[2 if self.footer.columns[column_id].kind == pb.ColumnEncoding.DIRECT_V2 else 1]
            footer.streams.add(kind=pb.Stream.DATA, column=column_id, length=len(piece))
            pieces.append(piece)
        return self._file(_retyped(self.tail.type_tree, seconds=False), pieces, footer)

    def _zeros(self, values: int, version: int) -> memoryview:
        run, length = (_ZEROS_V2, _ZEROS_V2_LENGTH) if version == 2 else (_ZEROS_V1, _ZEROS_V1_LENGTH)
        return memoryview(_chunks(self.tail, run * (values // length + 1)))

    def _file(self, tree: OrcType, pieces: list[memoryview], footer: pb.StripeFooter) -> list[bytes | memoryview]:
        return memory_file(self.tail, tree, pieces, footer, self.rows)

    def native(self, file: list[bytes | memoryview], tree: OrcType) -> pa.RecordBatch:
        """Arrow's reading of one of the two files."""
        with native_errors(self.tail.path, self.index):
            reader = orc.ORCFile(pa.BufferReader(pa.py_buffer(b"".join(file))))
            return reader.read_stripe(0, columns=list(_paths(tree)))


def memory_file(
    like: Tail, tree: OrcType, pieces: list[memoryview], footer: pb.StripeFooter, rows: int
) -> list[bytes | memoryview]:
    """The pieces of an ORC file of one stripe without an index.

    Args:
        like: the file whose codec, version and writer it gets.
        tree: its types.
        pieces: the stripe's data, in the order of the footer's streams.
        footer: of the stripe.
        rows: of the stripe.
    """
    length = sum(map(len, pieces))
    stripe_footer = _chunks(like, footer.SerializeToString())
    tail = pb.Footer(
        headerLength=len(MAGIC),
        contentLength=len(MAGIC) + length + len(stripe_footer),
        types=to_proto(tree),
        numberOfRows=rows,
        rowIndexStride=0,
        writer=like.footer.writer,
    )
    tail.stripes.add(
        offset=len(MAGIC), indexLength=0, dataLength=length, footerLength=len(stripe_footer), numberOfRows=rows
    )
    file_footer = _chunks(like, tail.SerializeToString())
    postscript = pb.PostScript(
        footerLength=len(file_footer),
        compression=like.postscript.compression,
        compressionBlockSize=like.block_size,
        version=like.version,
        metadataLength=0,
        writerVersion=like.writer_version,
        magic=MAGIC.decode(),
    ).SerializeToString()
    return [MAGIC, *pieces, stripe_footer, file_footer, postscript, bytes((len(postscript),))]


def _chunks(like: Tail, data: bytes) -> bytes:
    return encode_original(data, like.compression, like.block_size)


def _retyped(tree: OrcType, seconds: bool) -> OrcType:
    """The same tree with fields named by column id, so that no name is ambiguous; timestamps as BIGINT if wanted."""
    return replace(
        tree,
        kind="bigint" if seconds and tree.kind in _TIMESTAMPS else tree.kind,
        names=tuple(f"c{child.column_id}" for child in tree.children) if tree.kind == "struct" else (),
        children=tuple(_retyped(child, seconds) for child in tree.children),
        attributes=(),
    )


def _paths(tree: OrcType, prefix: str = "") -> Iterator[str]:
    """What Arrow must be asked for to get just this pruned tree."""
    for child in tree.children:
        path = f"{prefix}c{child.column_id}"
        if child.kind == "struct" and child.children:
            yield from _paths(child, path + ".")
        else:
            yield path


def _outermost(tree: OrcType) -> set[int]:
    """Ids of the columns that hold timestamps, where structs end: what `restricted` can single out."""
    if tree.kind == "struct":
        return {column_id for child in tree.children for column_id in _outermost(child)}
    return {tree.column_id} if has_timestamp(tree) else set()


def _longest(array: pa.Array) -> int:
    """The most values of any array at or below this one: lists hold more than there are rows."""
    return max([len(array), *map(_longest, below(array))])


@dataclass(frozen=True, slots=True)
class _Clock:
    """From stored seconds and nanoseconds to a timestamp."""

    zone: str
    java: bool
    narrow: bool
    path: str

    def timestamps(self, stored: pa.Array, moved: pa.Array, instant: bool) -> pa.Array:
        """The column; `stored` holds the file's seconds, `moved` the nanoseconds behind 2015-01-01 00:00:00 UTC."""
        start = _BASE_2015 * _NANOS
        seconds = pc.fill_null(stored, 0).to_numpy(zero_copy_only=False)
        nanos = pc.fill_null(moved.cast(pa.int64()), start).to_numpy(zero_copy_only=False) - start
        if len(seconds) and (nanos.min() < 0 or nanos.max() > 999_999_999 or abs(seconds).max() > _SECONDS_LIMIT):
            raise BadDataError(
                f"{self.path} is damaged", "it holds timestamps that are none", "the file was cut short or overwritten"
            )
        if instant or is_utc(self.zone):
            seconds = _floored(seconds + _BASE_2015, nanos)
        else:
            seconds = self._wall_clock(seconds, nanos)
        column = wide(seconds, nanos, stored, instant)
        return narrowed(column) if self.narrow else column

    def _wall_clock(self, seconds: Any, nanos: Any) -> Any:
        there = zone(self.zone)
        base = np.array([_BASE_2015], np.int64)
        base -= there.offset(base - there.offset(base))
        utc = seconds + base
        if self.java:
            # Java cuts the UTC seconds towards zero, C++ those of the wall clock.
            utc = _floored(utc, nanos)
            return utc + there.offset(utc)
        return _floored(utc + there.offset(utc), nanos)


def _floored(seconds: Any, nanos: Any) -> Any:
    """Undo what ORC writers do before 1970: there seconds are cut towards zero, when a millisecond or more is left."""
    return seconds - ((seconds < 0) & (nanos > _MILLISECOND))


def _field(parent: pa.RecordBatch | pa.StructArray, child: OrcType) -> pa.Array:
    name = f"c{child.column_id}"
    return parent.column(name) if isinstance(parent, pa.RecordBatch) else parent.field(name)


def _combine(node: OrcType, seconds: pa.Array, nanos: pa.Array | None, clock: _Clock) -> pa.Array:
    """The array of `node`: names restored, timestamps put together, all else as it was read."""
    if node.kind in _TIMESTAMPS:
        assert nanos is not None
        return clock.timestamps(seconds, nanos, node.kind == _TIMESTAMPS[1])
    if not node.children:
        return seconds
    if node.kind == "struct":
        pairs = [(_field(seconds, child), _nanos_field(nanos, child)) for child in node.children]
    else:
        whole = [None] * len(node.children) if nanos is None else below(nanos)
        pairs = list(zip(below(seconds), whole, strict=True))
    if node.kind == "uniontype":
        # What a child of a sparse union holds at another child's rows is a placeholder, in no way a timestamp.
        tags = [pc.equal(seconds.type_codes, i) for i in range(len(pairs))]
        pairs = [
            (_only(tag, one), None if two is None else _only(tag, two))
            for tag, (one, two) in zip(tags, pairs, strict=True)
        ]
    children = [_combine(child, *pair, clock) for child, pair in zip(node.children, pairs, strict=True)]
    return nested(seconds, children, node.names)


def _only(rows: pa.Array, array: pa.Array) -> pa.Array:
    """`array` with nulls at all other rows."""
    return pc.if_else(rows, array, pa.scalar(None, array.type))


def _nanos_field(parent: pa.RecordBatch | pa.StructArray | None, child: OrcType) -> pa.Array | None:
    """None where nothing was read, because no timestamp is there."""
    return _field(parent, child) if parent is not None and has_timestamp(child) else None
