"""Batches of one scan as one Arrow table: a column gets the one type that holds all its batches.

Batches differ where a stripe's timestamps need the wide form, or its unions the alternative for NULL.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from acidctl.errors import BadDataError
from acidctl.orc.arrow import below, nested, tags_of
from acidctl.orc.read.union_nulls import has_null_member, with_nulls
from acidctl.orc.read.wide_timestamps import WideTimestamp, widened


def one_table(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """All rows of the batches; `schema` is for when there is none."""
    if not batches:
        # Not schema.empty_table(), which knows no unions.
        return pa.Table.from_arrays([pa.chunked_array([], kind) for kind in schema.types], schema=schema)
    columns = []
    for place in range(len(schema.names)):
        arrays = [batch.column(place) for batch in batches]
        kinds = list(dict.fromkeys(array.type for array in arrays))
        if len(kinds) > 1:
            target = functools.reduce(_join, kinds)
            arrays = [_lifted(array, target) for array in arrays]
        columns.append(pa.chunked_array(arrays))
    fields = [pa.field(name, column.type) for name, column in zip(schema.names, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def lifted(batch: pa.RecordBatch, schema: pa.Schema, varying: Sequence[int]) -> pa.RecordBatch:
    """A batch whose columns at the places `varying` get the types of `schema`.

    Raises:
        BadDataError: a value does not fit its type: the statistics of a file do not tell the truth.
    """
    if all(batch.column(place).type == schema.field(place).type for place in varying):
        return batch
    columns = batch.columns
    for place in varying:
        own, target = columns[place].type, schema.field(place).type
        if _join(own, target) != target:
            raise BadDataError(
                f"column {schema.field(place).name} has values that statistics of its files exclude",
                f"it came as {own}",
                "a file is damaged, or its writer's statistics are wrong",
            )
        columns[place] = _lifted(columns[place], target)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _fields(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    if pa.types.is_list(kind):
        return [kind.value_type]
    if pa.types.is_struct(kind) or pa.types.is_union(kind):
        return [kind.field(i).type for i in range(kind.num_fields)]
    return []


def _join(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type that holds the values of both."""
    if one == other:
        return one
    if isinstance(one, WideTimestamp) or isinstance(other, WideTimestamp):
        return one if isinstance(one, WideTimestamp) else other
    if pa.types.is_union(one):
        more, less = (one, other) if one.num_fields >= other.num_fields else (other, one)
        kinds = [_join(more.field(i).type, less.field(i).type) for i in range(less.num_fields)]
        kinds += [more.field(i).type for i in range(less.num_fields, more.num_fields)]
        return pa.sparse_union([pa.field(more.field(i).name, kind) for i, kind in enumerate(kinds)])
    kinds = [_join(a, b) for a, b in zip(_fields(one), _fields(other), strict=True)]
    if pa.types.is_struct(one):
        return pa.struct([pa.field(one.field(i).name, kind) for i, kind in enumerate(kinds)])
    return pa.map_(*kinds) if pa.types.is_map(one) else pa.list_(pa.field("item", kinds[0]))


def _lifted(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The array as the type that :func:`_join` gave."""
    if array.type == target:
        return array
    if isinstance(target, WideTimestamp):
        return widened(array)
    children = [_lifted(child, kind) for child, kind in zip(below(array), _fields(target), strict=False)]
    if pa.types.is_union(target) and has_null_member(target) and not has_null_member(array.type):
        return with_nulls(tags_of(array), children, np.zeros(len(array), np.bool_))
    return nested(array, children)
