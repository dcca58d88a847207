"""Encode rows into stripes: pyarrow writes a small ORC file in memory, whose stripes are kept.

Most arrays pass through untouched.  CHAR is padded to its length as Java pads it (predicates compare with padded text),
timestamps take the form that surrogate_columns.py chose, encodings that ORC does not have (dictionaries, views) are
undone, and extension types are replaced by their storage.

The finished stripes are changed for what pyarrow cannot write: unions, timestamps of any year, stripes without a row
index.  zlib is the last step, since ISA-L makes it several times as fast as the ORC library; other codecs are fast
enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.errors import BadDataError, VerifyError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import struct_of
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.read.union_nulls import has_null_member
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.tail import Tail, read_tail, stripe_length
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType, arrow_type, hive_type, renumbered
from acidctl.orc.write.rle_columns import RunColumn, insert_first
from acidctl.orc.write.stripe_editor import Codec, StripeParts, deflate_stripe, drop_index, mend_doubles, mend_index
from acidctl.orc.write.surrogate_columns import (
    SurrogateColumns,
    TimestampForm,
    as_struct,
    choose_form,
    chosen_values,
    in_form,
)
from acidctl.orc.write.writer_settings import WriterSettings, bloom_ids
from acidctl.storage.port import FileSystem

_STRINGS = ("string", "varchar", "char")

Forms = Mapping[int, TimestampForm]
"""Forms of the timestamp columns, by column id."""


# A statement may write thousands of small files of the same types, so what is made of these is kept.
_numbered = lru_cache(maxsize=64)(renumbered)


@lru_cache(maxsize=64)
def _after(tree: OrcType, count: int) -> OrcType:
    """Return the types of a stripe with `count` columns of numbers before those of `tree`."""
    children, names = [OrcType("bigint")] * count, [f"first{i}" for i in range(count)]
    return renumbered(replace(tree, children=(*children, *tree.children), names=(*names, *tree.names)))


@lru_cache(maxsize=64)
def _stand_ins(tree: OrcType, halved: frozenset[int]) -> SurrogateColumns:
    return SurrogateColumns(tree, halved)


@lru_cache(maxsize=4096)
def _holds(tree: OrcType, kinds: tuple[str, ...]) -> bool:
    return any(node.kind in kinds for node in tree.walk())


def timestamp_leaves(array: pa.Array, tree: OrcType) -> Iterator[tuple[OrcType, pa.Array]]:
    """Yield the timestamp columns below `array`, with the values that are stored."""
    if pa.types.is_null(array.type) or not _holds(tree, TIMESTAMP_KINDS):
        return
    if tree.kind in TIMESTAMP_KINDS:
        _check_timestamp(array, tree)
        yield tree, array
        return
    for child, kind in zip(_children(array, tree), tree.children, strict=True):
        yield from timestamp_leaves(child, kind)


def to_writable(array: pa.Array, tree: OrcType, forms: Forms, nulls: pa.BooleanArray | None = None) -> pa.Array:
    """Return `array` as pyarrow must see it to write the column `tree`, or its stand-in (see surrogate_columns.py).

    Args:
        nulls: the rows in which a struct around the column is null, and the column with it.

    Raises:
        BadDataError: the array is not of that type, or holds a value that ORC cannot represent.
    """
    if pa.types.is_null(array.type):
        array = pa.nulls(len(array), arrow_type(tree))
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if tree.kind in TIMESTAMP_KINDS:
        array = _masked(array, nulls)
        _check_timestamp(array, tree)
        zone = None if tree.kind == "timestamp" else "UTC"
        return in_form(array, forms.get(tree.column_id, TimestampForm.NANOSECONDS), zone)
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if tree.kind == "struct":
        return _struct(array, tree, forms, nulls)
    if not tree.children:
        return _leaf(_masked(array, nulls), tree)
    children = _children(array, tree)
    if tree.kind == "uniontype":
        children = chosen_values(array)
    children = [to_writable(child, kind, forms) for child, kind in zip(children, tree.children, strict=True)]
    return as_struct(array, children, nulls) if tree.kind == "uniontype" else _list(array, children, nulls)


def _struct(array: pa.Array, tree: OrcType, forms: Forms, nulls: pa.BooleanArray | None) -> pa.StructArray:
    """Return a struct and make all columns below null with it: otherwise pyarrow would write values of absent rows."""
    nulls = _nulls(array, nulls)
    children = [
        to_writable(child, kind, forms, nulls)
        for child, kind in zip(_children(array, tree), tree.children, strict=True)
    ]
    if nulls is not None:
        # pyarrow overlooks the offsets of a null struct's columns, and writes other rows' values.
        children = [pa.concat_arrays([child, child[:0]]) if child.offset else child for child in children]
    return struct_of(children, tree.names, len(array), nulls)


def _list(array: pa.Array, children: list[pa.Array], nulls: pa.BooleanArray | None) -> pa.Array:
    nulls = _nulls(array, nulls)
    # Subtracting also frees the offsets of a slice's own offset.
    offsets = pc.subtract(array.offsets, array.offsets[0])
    if pa.types.is_map(array.type):
        keys, items = children
        return pa.MapArray.from_arrays(offsets, keys, items, type=pa.map_(keys.type, items.type), mask=nulls)
    maker = pa.LargeListArray if pa.types.is_large_list(array.type) else pa.ListArray
    return maker.from_arrays(offsets, children[0], mask=nulls)


def _nulls(array: pa.Array, nulls: pa.BooleanArray | None) -> pa.BooleanArray | None:
    """Return the rows in which `array` is null or `nulls` is set; None for no rows."""
    if array.null_count == 0:
        return nulls
    is_null = array.is_null()
    return is_null if nulls is None else pc.or_(is_null, nulls)


def _masked(array: pa.Array, nulls: pa.BooleanArray | None) -> pa.Array:
    """Return a leaf that is null where `nulls` is set; arrays of ORC readers already are."""
    if nulls is None or not pc.any(pc.and_(nulls, array.is_valid())).as_py():
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        storage = array.storage
        parts = [storage.field(i) for i in range(storage.type.num_fields)]
        masked = pa.StructArray.from_arrays(parts, fields=list(storage.type), mask=_nulls(array, nulls))
        return pa.ExtensionArray.from_storage(array.type, masked)
    return pc.if_else(nulls, pa.scalar(None, array.type), array)


def _check_timestamp(array: pa.Array, tree: OrcType) -> None:
    kind = array.type
    if isinstance(kind, WideTimestamp):
        instant = kind.instant
    elif pa.types.is_timestamp(kind):
        instant = kind.tz is not None
    else:
        raise _mismatch(array, tree)
    if instant != (tree.kind != "timestamp"):
        raise _mismatch(array, tree)


def _leaf(array: pa.Array, tree: OrcType) -> pa.Array:
    kind = array.type
    if tree.kind in _STRINGS:
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise _mismatch(array, tree)
        array = array.cast(pa.string()) if pa.types.is_string_view(kind) else array
        if tree.kind != "char" or not tree.max_length:
            return array
        least = pc.min(pc.utf8_length(array)).as_py()
        is_padded = least is None or least >= tree.max_length
        return array if is_padded else pc.utf8_rpad(array, width=tree.max_length, padding=" ")
    if tree.kind == "binary" and (pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)):
        return array.cast(pa.binary()) if pa.types.is_binary_view(kind) else array
    if kind == arrow_type(tree):
        return array
    # A file of Hive 0.11 does not state the precision, so any decimal is allowed.
    if tree.kind == "decimal" and not tree.precision and pa.types.is_decimal128(kind):
        return array
    raise _mismatch(array, tree)


def _children(array: pa.Array, tree: OrcType) -> list[pa.Array]:
    """Return the arrays below a nested array, cut to the range that it refers to."""
    kind = array.type
    if tree.kind == "struct" and pa.types.is_struct(kind) and kind.num_fields == len(tree.children):
        return [array.field(i) for i in range(kind.num_fields)]
    if tree.kind == "array" and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        first, count = _extent(array)
        return [array.values.slice(first, count)]
    if tree.kind == "map" and pa.types.is_map(kind):
        first, count = _extent(array)
        return [array.keys.slice(first, count), array.items.slice(first, count)]
    if tree.kind == "uniontype" and pa.types.is_union(kind):
        members = kind.num_fields - has_null_member(kind)
        if members == len(tree.children):
            return [array.field(i) for i in range(members)]
    raise _mismatch(array, tree)


def _extent(array: pa.Array) -> tuple[int, int]:
    """Return the first child and the number of children that the (sliced) list or map refers to."""
    offsets = array.offsets
    first = offsets[0].as_py()
    return first, offsets[len(offsets) - 1].as_py() - first


def _mismatch(array: pa.Array, tree: OrcType) -> BadDataError:
    what = f"a column of Arrow's type {array.type} cannot be written as {hive_type(tree)}"
    return BadDataError(what, "the rows do not have the types that the file is to declare")


@dataclass(frozen=True, slots=True)
class EncodedStripe:
    """A finished stripe for OrcAssembler.append_stripe; the offset in `info` is ignored."""

    data: memoryview
    info: pb.StripeInformation
    statistics: pb.StripeStatistics

    @property
    def rows(self) -> int:
        """Return the number of rows of the stripe."""
        return self.info.numberOfRows


def encode_stripes(
    data: pa.Table | pa.RecordBatch | Sequence[pa.RecordBatch],
    settings: WriterSettings,
    tree: OrcType,
    first: Sequence[RunColumn] = (),
) -> list[EncodedStripe]:
    """Encode rows into stripes, in order: usually one, more if they are larger than the stripe size.

    Args:
        data: the rows; the batches of a table or sequence may hold timestamps differently.
        tree: the root of the schema that the file is to declare.  CHAR and VARCHAR are encoded as ORC encodes them.
        first: columns that come before the columns of `data` and `tree`, made for the settings' stride; all rows must
            then fit into one stripe.

    Raises:
        BadDataError: the rows do not have these types, or hold a value that ORC cannot represent.
        UsageProblem: the settings want bloom filters for a column that cannot have them.
        VerifyError: the ORC library wrote other rows or types than it was given.
    """
    if isinstance(data, pa.RecordBatch):
        data = [data]
    pieces = [
        pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
        for batch in (data.to_batches() if isinstance(data, pa.Table) else data)
        if batch.num_rows
    ]
    tree = _numbered(tree)
    bloom_ids(settings.bloom_columns, tree)
    if not pieces:
        return []
    forms = _forms(pieces, tree)
    raw = replace(settings, compression="none") if settings.compression == "zlib" else settings
    drafts = _encode(pieces, raw, tree, forms)
    if first:
        (draft,) = drafts
        statistics = pb.StripeStatistics()
        statistics.CopyFrom(draft.stripe.statistics)
        insert_first(draft.open(), first, statistics)
        draft.stripe = replace(draft.stripe, statistics=statistics)
        tree = _after(tree, len(first))
    return [_finished(draft, settings, tree) for draft in drafts]


@dataclass(slots=True)
class _Draft:
    """A stripe in progress; `parts` is None while it is `stripe` without any change."""

    stripe: EncodedStripe
    codec: Codec
    parts: StripeParts | None = None

    def look(self) -> StripeParts:
        """Take the stripe apart without changing it, unless the caller assigns the result to `parts`."""
        return self.parts or StripeParts(self.stripe.data, self.stripe.info, self.codec)

    def open(self) -> StripeParts:
        self.parts = self.look()
        return self.parts


def _finished(draft: _Draft, settings: WriterSettings, tree: OrcType) -> EncodedStripe:
    if not settings.stride:
        drop_index(draft.open())
    elif columns := _misleading_floats(draft.stripe.statistics, tree):
        parts = draft.look()
        if mend_index(parts, columns):
            draft.parts = parts
    if settings.compression == "zlib":
        deflate_stripe(draft.open(), tree, settings.block_size)
    if draft.parts is None:
        return draft.stripe
    data, info = draft.parts.joined()
    return EncodedStripe(memoryview(data), info, draft.stripe.statistics)


def _misleading_floats(statistics: pb.StripeStatistics, tree: OrcType) -> list[int]:
    """Return the floating point columns with a NaN, whose statistics were dropped, or perhaps with a zero."""
    columns = []
    for node, column in zip(tree.walk(), statistics.colStats, strict=True):
        block = column.doubleStatistics
        may_mislead = not column.HasField("doubleStatistics") or block.minimum <= 0 <= block.maximum
        if node.kind in ("float", "double") and column.numberOfValues and may_mislead:
            columns.append(node.column_id)
    return columns


def _forms(pieces: Sequence[pa.StructArray], tree: OrcType) -> dict[int, TimestampForm]:
    arrays: defaultdict[int, list[pa.Array]] = defaultdict(list)
    if any(node.kind in TIMESTAMP_KINDS for node in tree.walk()):
        for piece in pieces:
            for leaf, array in timestamp_leaves(piece, tree):
                arrays[leaf.column_id].append(array)
    return {column: choose_form(pieces_of_column) for column, pieces_of_column in arrays.items()}


def _encode(pieces: Sequence[pa.StructArray], settings: WriterSettings, tree: OrcType, forms: Forms) -> list[_Draft]:
    from pyarrow import orc  # noqa: PLC0415 - with Arrow's file systems: only where rows are encoded

    batches = [pa.RecordBatch.from_struct_array(to_writable(piece, tree, forms)) for piece in pieces]
    halved = frozenset(column for column, form in forms.items() if form is TimestampForm.HALVES)
    stand_ins = _stand_ins(tree, halved)
    # A bloom filter of the seconds alone would hide every time with a fraction.
    blooms = [i for i in bloom_ids(settings.bloom_columns, tree).values() if i not in halved]
    sink = pa.BufferOutputStream()
    with orc.ORCWriter(sink, **settings.for_arrow([stand_ins.speaking[i] for i in blooms])) as writer:
        writer.write(pa.Table.from_batches(batches))
    del batches
    stripes, written = split_stripes(sink.getvalue())
    _check_types(written, stand_ins.written)
    rows = sum(len(piece) for piece in pieces)
    if sum(stripe.rows for stripe in stripes) != rows:
        raise VerifyError("the ORC library lost rows", f"{rows} went in, {sum(s.rows for s in stripes)} came out")
    drafts = [_Draft(stripe, (settings.compression, settings.block_size)) for stripe in stripes]
    for draft in drafts if stand_ins.written != tree else ():
        draft.stripe = replace(draft.stripe, statistics=stand_ins.fold(draft.open(), draft.stripe.statistics))
    return drafts


def split_stripes(buffer: pa.Buffer) -> tuple[list[EncodedStripe], Tail]:
    """Return the stripes of a whole ORC file in memory, without copying them, and its footer.

    Raises BadDataError if the bytes are not an ORC file, or have no statistics for some stripe.
    """
    view = memoryview(buffer).cast("B")
    tail = read_tail(ByteSource(cast(FileSystem, _InMemory(view)), "an ORC file in memory", len(view)))
    stripes = []
    for info, statistics in zip(tail.stripes, tail.metadata.stripeStats, strict=True):
        end = info.offset + stripe_length(info)
        for column in statistics.colStats:
            # ORC C++ never counts a list's or map's children, but writes that there are none.
            if column.HasField("collectionStatistics") and not column.collectionStatistics.HasField("minChildren"):
                column.ClearField("collectionStatistics")
            mend_doubles(column)
        stripes.append(EncodedStripe(view[info.offset : end], info, statistics))
    return stripes, tail


@dataclass(frozen=True, slots=True)
class _InMemory:
    """Just enough of a file system to read a footer from memory."""

    view: memoryview

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:  # noqa: ARG002
        return bytes(self.view[offset : None if length is None else offset + length])


def _check_types(written: Tail, tree: OrcType) -> None:
    """Check that the encoded types are the declared types: readers would misread streams of other types."""
    for got, wanted in zip(written.type_tree.walk(), tree.walk(), strict=True):
        kind = "string" if wanted.kind in ("char", "varchar") else wanted.kind
        same = got.kind == kind and got.names == wanted.names and got.column_id == wanted.column_id
        # A file of Hive 0.11 does not state the precision of its decimals; then each value has its own scale.
        if not same or (wanted.precision and (got.precision, got.scale) != (wanted.precision, wanted.scale)):
            why = f"column {wanted.column_id} is {got.kind} instead of {wanted.kind}"
            raise VerifyError("the ORC library wrote another type than it was given", why)
