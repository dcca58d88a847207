"""Bring arrays of one ORC type to one Arrow type: only some stripes have wide timestamps or unions with NULLs."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from acidctl.orc.arrow import below, tags_of, with_children
from acidctl.orc.read.union_nulls import has_null_member, with_nulls
from acidctl.orc.read.wide_timestamps import WideTimestamp, widened


def same_types(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Return the arrays as the one type that holds the values of all."""
    first = arrays[0].type
    if all(array.type == first for array in arrays):  # hashing a type costs more than comparing two
        return list(arrays)
    target = functools.reduce(common_type, dict.fromkeys(array.type for array in arrays))
    return [as_type(array, target) for array in arrays]


def common_type(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """Return the type that holds the values of both types."""
    if first == second:
        return first
    if isinstance(first, WideTimestamp) or isinstance(second, WideTimestamp):
        return first if isinstance(first, WideTimestamp) else second
    if pa.types.is_union(first):
        more, less = (first, second) if first.num_fields >= second.num_fields else (second, first)
        kinds = [common_type(more.field(i).type, less.field(i).type) for i in range(less.num_fields)]
        kinds += [more.field(i).type for i in range(less.num_fields, more.num_fields)]
        return pa.sparse_union([pa.field(more.field(i).name, kind) for i, kind in enumerate(kinds)])
    kinds = [common_type(a, b) for a, b in zip(_fields(first), _fields(second), strict=True)]
    if pa.types.is_struct(first):
        return pa.struct([pa.field(first.field(i).name, kind) for i, kind in enumerate(kinds)])
    return pa.map_(*kinds) if pa.types.is_map(first) else pa.list_(pa.field("item", kinds[0]))


def as_type(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the array as the type that :func:`common_type` returned."""
    if array.type == target:
        return array
    if isinstance(target, WideTimestamp):
        return widened(array)
    children = [as_type(child, kind) for child, kind in zip(below(array), _fields(target), strict=False)]
    if pa.types.is_union(target) and has_null_member(target) and not has_null_member(array.type):
        return with_nulls(tags_of(array), children, np.zeros(len(array), np.bool_))
    return with_children(array, children)


def _fields(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    if pa.types.is_list(kind):
        return [kind.value_type]
    if pa.types.is_struct(kind) or pa.types.is_union(kind):
        return [kind.field(i).type for i in range(kind.num_fields)]
    return []
