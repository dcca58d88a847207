"""Encoding rows into stripes: pyarrow writes a small ORC file in memory, of which only the stripes are kept."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import pyarrow as pa
from pyarrow import orc

from acidctl.acid.listing import Entry
from acidctl.errors import UsageProblem, VerifyError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.conform import TIMESTAMP_KINDS, Forms, conform, pruned, timestamp_leaves
from acidctl.orc.source import ByteSource
from acidctl.orc.splice import StripeParts, drop_index, loosen, take_nanos
from acidctl.orc.tail import Tail, read_tail
from acidctl.orc.types import OrcType, renumbered, type_tree
from acidctl.orc.unions import fold_unions, without_unions
from acidctl.orc.write_time import Form, Half, choose_form

_KIB, _MIB = 1 << 10, 1 << 20

BLOCK_UNIT: Final = 64 * _KIB
"""ORC C++ takes only multiples of this as compression block size."""

MAX_BLOCK: Final = 8 * _MIB - BLOCK_UNIT
"""ORC C++ ends the whole process when asked for 8 MiB or more."""

WHOLE: Final = 1 << 40
"""A stripe size that no batch reaches: all rows in one stripe."""

_ANY_STRIDE: Final = 10_000

CODECS: Final = ("none", "zlib", "snappy", "lz4", "zstd")
"""Compression that can be written."""


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """How stripes are encoded.

    Attributes:
        compression: one of CODECS.
        block_size: compression block size in bytes; a multiple of 64 KiB below 8 MiB.
        stripe_size: bytes at which a stripe ends: decoded bytes when rows are gathered, encoded ones inside a batch.
        stride: rows a row-index entry; 0 writes no row index.
        dictionary_threshold: a string column gets a dictionary when at most this share of its values is distinct.
        batch_rows: rows that ORC takes at a time; a stripe ends only at a multiple of them.
    """

    compression: str = "zlib"
    block_size: int = 256 * _KIB
    stripe_size: int = 64 * _MIB
    stride: int = 10_000
    dictionary_threshold: float = 0.8
    batch_rows: int = 4096

    def __post_init__(self) -> None:
        if self.compression not in CODECS:
            raise UsageProblem(
                f"ORC compression {self.compression} cannot be written", f"known are {', '.join(CODECS)}"
            )
        if not BLOCK_UNIT <= self.block_size <= MAX_BLOCK or self.block_size % BLOCK_UNIT:
            raise UsageProblem(
                f"a compression block size of {self.block_size} bytes cannot be written",
                f"it must be a multiple of {BLOCK_UNIT} and at most {MAX_BLOCK}",
            )
        limits = {
            "stripe size": (1 <= self.stripe_size <= WHOLE, self.stripe_size),
            "row index stride": (0 <= self.stride < 1 << 31, self.stride),
            "dictionary threshold": (0 <= self.dictionary_threshold <= 1, self.dictionary_threshold),
            "batch size": (1 <= self.batch_rows <= _MIB, self.batch_rows),
        }
        for name, (good, value) in limits.items():
            if not good:
                raise UsageProblem(f"a {name} of {value} cannot be written")

    @classmethod
    def for_base(cls, compression: str = "zlib") -> Self:
        """What Hive uses for a base: stripes of 64 MiB, blocks of 256 KiB (format section 3.5)."""
        return cls(compression=compression)

    @classmethod
    def for_delta(cls, compression: str = "zlib") -> Self:
        """What Hive uses for a delta: an eighth of a base's stripe; its blocks of 32 KiB are the least ORC C++ has."""
        return cls(compression=compression, block_size=BLOCK_UNIT, stripe_size=8 * _MIB)


@dataclass(frozen=True, slots=True)
class EncodedStripe:
    """A finished stripe, ready for OrcAssembler.append_stripe.

    Attributes:
        data: its bytes.
        info: its lengths and rows; the offset means nothing.
        statistics: of its columns, by column id.
    """

    data: memoryview
    info: pb.StripeInformation
    statistics: pb.StripeStatistics

    @property
    def rows(self) -> int:
        """Rows of the stripe."""
        return self.info.numberOfRows


def encode_stripes(
    data: pa.Table | pa.RecordBatch | Sequence[pa.RecordBatch], settings: WriterSettings, tree: OrcType
) -> list[EncodedStripe]:
    """Encode rows into stripes, in order: usually one, more when they are larger than the stripe size.

    Args:
        data: the rows; the pieces of a table or sequence may differ in how they hold timestamps.
        settings: how to encode.
        tree: the root of the schema that the file is to declare.  CHAR and VARCHAR are encoded as ORC encodes them.

    Raises:
        BadDataError: the rows do not have these types, or hold a value that ORC cannot represent.
    """
    if isinstance(data, pa.RecordBatch):
        data = [data]
    pieces = [
        pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
        for batch in (data.to_batches() if isinstance(data, pa.Table) else data)
        if batch.num_rows
    ]
    if not pieces:
        return []
    tree = renumbered(tree)
    forms = _forms(pieces, tree)
    if Form.HALVES in forms.values():
        whole = replace(settings, stripe_size=WHOLE)
        (stripe,) = _encode(pieces, whole, tree, forms, Half.SECONDS)
        stripes = [_with_nanos(stripe, pieces, whole, tree, forms)]
    else:
        stripes = _encode(pieces, settings, tree, forms, Half.SECONDS)
    return stripes if settings.stride else [_without_index(stripe, settings) for stripe in stripes]


def _forms(pieces: Sequence[pa.StructArray], tree: OrcType) -> dict[int, Form]:
    """The form of every timestamp column, for all pieces together."""
    arrays: defaultdict[int, list[pa.Array]] = defaultdict(list)
    if any(node.kind in TIMESTAMP_KINDS for node in tree.walk()):
        for piece in pieces:
            for leaf, array in timestamp_leaves(piece, tree):
                arrays[leaf.column_id].append(array)
    return {column: choose_form(found) for column, found in arrays.items()}


def _encode(
    pieces: Sequence[pa.StructArray], settings: WriterSettings, tree: OrcType, forms: Forms, half: Half
) -> list[EncodedStripe]:
    batches = [pa.RecordBatch.from_struct_array(conform(piece, tree, forms, half)) for piece in pieces]
    sink = pa.BufferOutputStream()
    with orc.ORCWriter(
        sink,
        batch_size=settings.batch_rows,
        stripe_size=settings.stripe_size,
        compression="uncompressed" if settings.compression == "none" else settings.compression,
        compression_block_size=settings.block_size,
        # "speed" makes ORC C++ ask LZ4 for an acceleration at which it compresses next to nothing.
        compression_strategy="compression" if settings.compression == "lz4" else "speed",
        # pyarrow does not write stripes without an index; it is dropped afterwards.
        row_index_stride=settings.stride or _ANY_STRIDE,
        dictionary_key_size_threshold=settings.dictionary_threshold,
    ) as writer:
        writer.write(pa.Table.from_batches(batches))
    buffer = sink.getvalue()
    stripes, written = split_stripes(buffer)
    _check_types(written, without_unions(tree))
    if any(node.kind == "uniontype" for node in tree.walk()):
        stripes = [_with_unions(stripe, settings, tree) for stripe in stripes]
    rows = sum(len(piece) for piece in pieces)
    if sum(stripe.rows for stripe in stripes) != rows:
        raise VerifyError("the ORC library lost rows", f"{rows} went in, {sum(s.rows for s in stripes)} came out")
    return stripes


def _without_index(stripe: EncodedStripe, settings: WriterSettings) -> EncodedStripe:
    parts = StripeParts(stripe.data, stripe.info, (settings.compression, settings.block_size))
    drop_index(parts)
    data, info = parts.joined(stripe.info)
    return EncodedStripe(memoryview(data), info, stripe.statistics)


def _with_unions(stripe: EncodedStripe, settings: WriterSettings, tree: OrcType) -> EncodedStripe:
    parts = StripeParts(stripe.data, stripe.info, (settings.compression, settings.block_size))
    statistics = fold_unions(parts, stripe.statistics, tree)
    data, info = parts.joined(stripe.info)
    return EncodedStripe(memoryview(data), info, statistics)


def split_stripes(buffer: pa.Buffer) -> tuple[list[EncodedStripe], Tail]:
    """The stripes of a whole ORC file in memory, without copying them, and its tail.

    Raises:
        BadDataError: it is no ORC file, or has no statistics for some stripe.
    """
    view = memoryview(buffer).cast("B")
    tail = read_tail(ByteSource(_InMemory(view), "an ORC file in memory", len(view)))
    stripes = []
    for info, statistics in zip(tail.stripes, tail.metadata.stripeStats, strict=True):
        end = info.offset + info.indexLength + info.dataLength + info.footerLength
        for column in statistics.colStats:
            _drop_untrue(column)
        stripes.append(EncodedStripe(view[info.offset : end], info, statistics))
    return stripes, tail


def _drop_untrue(column: pb.ColumnStatistics) -> None:
    """Remove what ORC C++ writes although it is not so."""
    # It never counts a list's or map's children, yet says that there are none.
    if column.HasField("collectionStatistics") and not column.collectionStatistics.HasField("minChildren"):
        column.ClearField("collectionStatistics")
    # Bounds beside a NaN leave the NaN out, or are NaN.
    if column.HasField("doubleStatistics") and math.isnan(column.doubleStatistics.sum):
        column.ClearField("doubleStatistics")


@dataclass(frozen=True, slots=True)
class _InMemory:
    """Just enough of a file system to read a tail from memory."""

    view: memoryview

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:  # noqa: ARG002
        return bytes(self.view[offset : None if length is None else offset + length])

    def stat(self, path: str) -> Entry:
        return Entry(path, len(self.view), None, False)

    def local_path(self, path: str) -> str | None:  # noqa: ARG002
        return None

    def open_input(self, path: str) -> pa.BufferReader:  # noqa: ARG002
        return pa.BufferReader(self.view)


def _check_types(written: Tail, tree: OrcType) -> None:
    """What was encoded is what the file will declare: a reader would take other types' streams for its own."""
    for got, wanted in zip(type_tree(written.types).walk(), tree.walk(), strict=True):
        kind = "string" if wanted.kind in ("char", "varchar") else wanted.kind
        same = got.kind == kind and got.names == wanted.names and got.column_id == wanted.column_id
        # A file of Hive 0.11 does not say the precision of its decimals; then their scale is a value's own.
        if not same or (wanted.precision and (got.precision, got.scale) != (wanted.precision, wanted.scale)):
            raise VerifyError(
                "the ORC library wrote another type than it was given",
                f"column {wanted.column_id} is {got.kind} instead of {wanted.kind}",
            )


def _with_nanos(
    stripe: EncodedStripe, pieces: Sequence[pa.StructArray], settings: WriterSettings, tree: OrcType, forms: Forms
) -> EncodedStripe:
    """`stripe`, which has only the seconds of the columns in two halves, with their nanoseconds."""
    halved = [column for column, form in forms.items() if form is Form.HALVES]
    smaller = [pruned(piece, tree, halved) for piece in pieces]
    old = smaller[0][1]
    new = renumbered(old)
    renamed = {before.column_id: after.column_id for before, after in zip(old.walk(), new.walk(), strict=True)}
    new_forms = {renamed[column]: form for column, form in forms.items() if column in renamed}
    (other,) = _encode([array for array, _ in smaller], settings, new, new_forms, Half.NANOS)
    codec = (settings.compression, settings.block_size)
    parts = StripeParts(stripe.data, stripe.info, codec)
    take_nanos(parts, StripeParts(other.data, other.info, codec), {column: renamed[column] for column in halved})
    data, info = parts.joined(stripe.info)
    statistics = pb.StripeStatistics()
    statistics.CopyFrom(stripe.statistics)
    for column in halved:
        loosen(statistics.colStats[column])
    return EncodedStripe(memoryview(data), info, statistics)
