"""Encode rows into stripes: pyarrow writes a small ORC file in memory, whose stripes are kept.

The finished stripes are changed for what pyarrow cannot write: unions, timestamps of any year, stripes without a row
index.  zlib is the last step, since ISA-L makes it several times as fast as the ORC library; other codecs are fast
enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa

from acidctl.base.errors import VerifyError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import Tail, read_tail, stripe_length
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType, renumbered
from acidctl.orc.write.arrow_input import Forms, timestamp_leaves, to_writable
from acidctl.orc.write.index_positions import deflate_stripe
from acidctl.orc.write.rle_columns import RunColumn, insert_first
from acidctl.orc.write.stripe_editor import Codec, StripeParts, drop_index, mend_doubles, mend_index
from acidctl.orc.write.surrogate_columns import SurrogateColumns, TimestampForm, choose_form
from acidctl.orc.write.writer_settings import WriterSettings, bloom_ids
from acidctl.storage.port import FileSystem


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
    tree = renumbered(tree)
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
        children, names = [OrcType("bigint")] * len(first), [f"first{i}" for i in range(len(first))]
        tree = renumbered(replace(tree, children=(*children, *tree.children), names=(*names, *tree.names)))
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
    halved = {column for column, form in forms.items() if form is TimestampForm.HALVES}
    stand_ins = SurrogateColumns(tree, halved)
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
