"""Writing unions, which pyarrow cannot do where a struct around them is null: it ends the whole process.

ORC stores a union as a stream of tags, in the encoding of TINYINT, and for each alternative the values that were
chosen, packed.  So a union is written as a struct of a TINYINT and one list (of no or one value) an alternative; then
the lists' own streams are dropped, and the tags given to the union.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import tags_of, union_buffer
from acidctl.orc.read.union_nulls import has_null_member
from acidctl.orc.types import OrcType, renumbered
from acidctl.orc.write.stripe_editor import StripeParts, set_repeated

_TAG = OrcType("tinyint")


def without_unions(tree: OrcType) -> OrcType:
    """`tree` as it is written, numbered from 0: unions are structs of a tag and lists."""
    return renumbered(_written(tree))


def _written(tree: OrcType) -> OrcType:
    children = tuple(_written(child) for child in tree.children)
    if tree.kind != "uniontype":
        return replace(tree, children=children)
    lists = tuple(OrcType("array", children=(child,)) for child in children)
    names = ("tag", *(f"alternative{i}" for i in range(len(lists))))
    return OrcType("struct", children=(_TAG, *lists), names=names)


def as_struct(array: pa.UnionArray, alternatives: list[pa.Array], nulls: pa.BooleanArray | None) -> pa.StructArray:
    """A union as the struct that is written.

    Args:
        array: the union, for its tags.
        alternatives: for each alternative the values that were chosen, see :func:`chosen_values`.
        nulls: where something around the union is null, so that it is not there at all.
    """
    tags = tags_of(array)
    absent = tags == len(alternatives)  # NULLs, see union_nulls.py
    if absent.any():
        nulls = pa.array(absent) if nulls is None else pc.or_(nulls, pa.array(absent))
        tags = np.where(absent, np.int8(0), tags)
    columns = [pa.array(tags, pa.int8())]
    if nulls is not None:
        columns = [pc.if_else(nulls, None, columns[0])]
    for i, values in enumerate(alternatives):
        ends = np.cumsum((tags == i) & ~absent, dtype=np.int32)
        offsets = pa.array(np.concatenate(([0], ends)), pa.int32())
        columns.append(pa.ListArray.from_arrays(offsets, values, mask=nulls))
    names = ["tag", *(f"alternative{i}" for i in range(len(alternatives)))]
    return pa.StructArray.from_arrays(columns, names=names, mask=nulls)


def chosen_values(array: pa.UnionArray) -> list[pa.Array]:
    """For each alternative of a union the values of the rows that have it, in their order; not that for NULL."""
    tags = tags_of(array)
    values = []
    for i in range(array.type.num_fields - has_null_member(array.type)):
        rows = np.flatnonzero(tags == i)
        if array.type.mode == "dense":
            rows = union_buffer(array, 2, np.dtype(np.int32))[rows]
        values.append(array.field(i).take(pa.array(rows, pa.int64())))
    return values


@dataclass(frozen=True, slots=True)
class _Columns:
    """What becomes of the columns that were written: `kept` maps to final ids, `tags` to the id of the union."""

    kept: dict[int, int]
    tags: dict[int, int]


def _columns(written: OrcType, final: OrcType) -> _Columns:
    kept = {written.column_id: final.column_id}
    tags: dict[int, int] = {}
    pairs = list(zip(written.children, final.children, strict=False))
    if final.kind == "uniontype":
        tags[written.children[0].column_id] = final.column_id
        pairs = [(wrap.children[0], child) for wrap, child in zip(written.children[1:], final.children, strict=True)]
    for before, after in pairs:
        below = _columns(before, after)
        kept |= below.kept
        tags |= below.tags
    return _Columns(kept, tags)


def fold_unions(parts: StripeParts, statistics: pb.StripeStatistics, tree: OrcType) -> pb.StripeStatistics:
    """Turn a stripe that was written as :func:`without_unions` into one of `tree`.

    Args:
        parts: the stripe, changed in place.
        statistics: of the columns as they were written.
        tree: the true types, numbered from 0.

    Returns:
        the statistics of the true columns.
    """
    columns = _columns(without_unions(tree), tree)
    for tag, union in columns.tags.items():
        _join_index(parts, next(before for before, after in columns.kept.items() if after == union), tag)
    streams, kept = parts.streams, []
    parts.streams = {}
    for stream in parts.footer.streams:
        raw = streams[stream.column, stream.kind]
        if stream.column in columns.kept:
            column = columns.kept[stream.column]
        elif stream.column in columns.tags and stream.kind == pb.Stream.DATA:
            column = columns.tags[stream.column]
        else:
            continue
        parts.streams[column, stream.kind] = raw
        kept.append(pb.Stream(kind=stream.kind, column=column, length=len(raw)))
    set_repeated(parts.footer.streams, kept)
    # Both trees are in pre-order, so the kept columns come in the order of their final ids.
    set_repeated(parts.footer.columns, [parts.footer.columns[before] for before in columns.kept])
    return pb.StripeStatistics(colStats=[statistics.colStats[before] for before in columns.kept])


def _join_index(parts: StripeParts, union: int, tag: int) -> None:
    """Add the tags' positions to the row index of the union; they are the last of the tag column's."""
    index, tags = parts.row_index(union), parts.row_index(tag)
    if index is None or tags is None:
        return
    for entry, other in zip(index.entry, tags.entry, strict=True):
        entry.positions.extend(other.positions[-parts.width :])
    parts.streams[union, pb.Stream.ROW_INDEX] = memoryview(parts.stored(index))
