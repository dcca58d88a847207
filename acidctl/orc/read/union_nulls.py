"""Distinguish NULL in a union column from a union that holds NULL.

Arrow's unions have no nulls of their own, and its ORC reader delivers both as the first alternative with a null in it.
ORC distinguishes them: the column's PRESENT stream marks NULLs, which have no tag.  If a stripe has such a stream, a
union gets one more alternative, of Arrow's type null, for its NULLs.  Exporters then see a null without doing
anything, and the writer (surrogate_columns.py) can leave out the tags of NULLs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import below, tags_of, with_children
from acidctl.orc.byte_source import damaged
from acidctl.orc.read.memory_file import read_column
from acidctl.orc.tail import Tail, placed_streams
from acidctl.orc.types import OrcType

NULL_MEMBER = "_null"
"""Name of the alternative that stands for NULL, which is the last."""

Mask = NDArray[np.bool_]


def has_null_member(kind: pa.DataType) -> bool:
    """Return whether a union type has the alternative that stands for NULL."""
    last = kind.num_fields - 1
    return bool(last > 0 and pa.types.is_null(kind.field(last).type) and kind.field(last).name == NULL_MEMBER)


def null_unions(count: int, kind: pa.UnionType) -> pa.UnionArray:
    """Return `count` NULLs of a union type, which need not have the alternative for NULL yet."""
    members = kind.num_fields - has_null_member(kind)
    return with_nulls(np.zeros(count, np.int8), [pa.nulls(count, kind.field(i).type) for i in range(members)], True)


def with_nulls(tags: NDArray[np.int8], children: list[pa.Array], nulls: Mask | bool) -> pa.UnionArray:
    """Return a sparse union that is NULL where `nulls` is set."""
    codes = np.where(nulls, np.int8(len(children)), tags).astype(np.int8)
    names = [*(f"_union_{i}" for i in range(len(children))), NULL_MEMBER]
    return pa.UnionArray.from_sparse(pa.array(codes, pa.int8()), [*children, pa.nulls(len(codes))], names)


def mark_nulls(tail: Tail, i: int, footer: pb.StripeFooter, batch: pa.RecordBatch, tree: OrcType) -> pa.RecordBatch:
    """Return the batch with the difference that Arrow's reader loses: which unions are NULL, and which hold NULL.

    Args:
        batch: the stripe as Arrow read it.
        tree: the root struct of the batch's columns, with the file's column ids.

    Raises:
        BadDataError: a stream is damaged.
    """
    unions = {node.column_id for node in tree.walk() if node.kind == "uniontype"}
    streams = {
        stream.column: (at, stream.length)
        for stream, at in placed_streams(footer)
        if stream.kind == pb.Stream.PRESENT and stream.column in unions
    }
    if not streams:
        return batch
    nulls = _UnionNulls(tail, i, streams)
    everywhere = np.ones(batch.num_rows, np.bool_)
    columns = [nulls.marked(*pair, everywhere) for pair in zip(batch.columns, tree.children, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


@dataclass(frozen=True, slots=True)
class _UnionNulls:
    tail: Tail
    stripe: int
    streams: dict[int, tuple[int, int]]

    def marked(self, array: pa.Array, tree: OrcType, there: Mask) -> pa.Array:
        """Mark the NULLs of an array; `there` is False below a NULL and in rows of another alternative of a union."""
        if self.streams.keys().isdisjoint(node.column_id for node in tree.walk()):
            return array
        if tree.kind == "uniontype":
            return self._union(array, tree, there)
        # A reader of ORC puts nothing into NULL lists: all values of an array of lists are in the file.
        inside = there & pc.is_valid(array).to_numpy(zero_copy_only=False) if tree.kind == "struct" else None
        children = [
            self.marked(child, kind, np.ones(len(child), np.bool_) if inside is None else inside)
            for child, kind in zip(below(array), tree.children, strict=True)
        ]
        return with_children(array, children)

    def _union(self, array: pa.UnionArray, tree: OrcType, there: Mask) -> pa.UnionArray:
        tags = tags_of(array)
        nulls = np.zeros(len(array), np.bool_)
        if tree.column_id in self.streams:
            nulls[there] = ~self._bits(self.streams[tree.column_id], int(there.sum()))
        there = there & ~nulls
        children = [
            self.marked(child, kind, there & (tags == i))
            for i, (child, kind) in enumerate(zip(below(array), tree.children, strict=True))
        ]
        return with_nulls(tags, children, nulls) if nulls.any() else with_children(array, children)

    def _bits(self, stream: tuple[int, int], count: int) -> Mask:
        """Return the first `count` bits of a PRESENT stream, which is stored like the values of a BOOLEAN column."""
        if count == 0:
            return np.ones(0, np.bool_)
        stripe = self.tail.stripes[self.stripe]
        start, length = stream
        data = self.tail.source.read(stripe.offset + start, length)
        column = read_column(self.tail, self.stripe, "boolean", {pb.Stream.DATA: data}, count)
        if len(column) != count:
            raise damaged(self.tail.path, "a union's PRESENT stream is too short")
        bits: Mask = column.to_numpy(zero_copy_only=False)
        return bits
