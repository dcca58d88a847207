"""Take nested Arrow arrays apart and rebuild them around other children, and read the tags of unions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def below(array: pa.Array) -> list[pa.Array]:
    """Return the arrays nested directly in this one: a struct's fields, a list's values, a map's keys and values."""
    if pa.types.is_struct(array.type) or pa.types.is_union(array.type):
        return [array.field(i) for i in range(array.type.num_fields)]
    if pa.types.is_map(array.type):
        return [array.keys, array.items]
    return [array.values] if pa.types.is_list(array.type) else []


def with_children(like: pa.Array, children: list[pa.Array], names: Sequence[str] = ()) -> pa.Array:
    """Return an array with the nulls, lengths and tags of `like` around other children, see :func:`below`.

    `names` replaces the names of a struct's fields.
    """
    if pa.types.is_struct(like.type):
        labels = names or [like.type.field(i).name for i in range(like.type.num_fields)]
        kind = pa.struct([pa.field(name, child.type) for name, child in zip(labels, children, strict=True)])
        return pa.Array.from_buffers(kind, len(like), [validity(like)], children=children)
    if pa.types.is_map(like.type):
        kind = pa.map_(children[0].type, children[1].type)
        entry = pa.struct([kind.key_field, kind.item_field])
        entries = pa.Array.from_buffers(entry, len(children[0]), [None], children=children)
        return pa.Array.from_buffers(kind, len(like), like.buffers()[:2], offset=like.offset, children=[entries])
    if pa.types.is_list(like.type):
        kind = pa.list_(pa.field("item", children[0].type))
        return pa.Array.from_buffers(kind, len(like), like.buffers()[:2], offset=like.offset, children=children)
    labels = [like.type.field(i).name for i in range(like.type.num_fields)]
    return pa.UnionArray.from_sparse(pa.array(tags_of(like), pa.int8()), children, labels)


def struct_of(
    children: Sequence[pa.Array], names: Sequence[str], length: int, nulls: pa.BooleanArray | None = None
) -> pa.StructArray:
    """Return a struct array of `length` rows, even if it has no fields; rows are NULL where `nulls` is set."""
    if children:
        return pa.StructArray.from_arrays(list(children), names=list(names), mask=nulls)
    present = None if nulls is None else pc.invert(nulls).buffers()[1]
    return pa.Array.from_buffers(pa.struct([]), length, [present])


def tags_of(array: pa.UnionArray) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """Return which alternative each row has, counted from 0 whatever Arrow's type codes are."""
    number_of_code = np.zeros(128, np.int8)
    number_of_code[list(array.type.type_codes)] = np.arange(array.type.num_fields)
    tags: np.ndarray[tuple[int], np.dtype[np.int8]] = number_of_code[union_buffer(array, 1, np.dtype(np.int8))]
    return tags


def union_buffer(array: pa.UnionArray, number: int, kind: np.dtype[Any]) -> Any:
    """Return the type codes (1) or offsets (2); pyarrow's own attributes overlook that an array is a slice."""
    values = np.frombuffer(array.buffers()[number], kind) if len(array) else np.zeros(0, kind)
    return values[array.offset : array.offset + len(array)]


def null_where(array: pa.Array, missing: pa.BooleanArray) -> pa.Array:
    """Return the array with NULL where `missing` is set."""
    mask = missing.to_numpy(zero_copy_only=False)
    return array.take(pa.array(np.arange(len(array), dtype=np.int64), mask=mask))


def validity(array: pa.Array) -> pa.Buffer | None:
    """Return the null bitmap, shifted to start with the array; None if there are no nulls."""
    if array.null_count == 0:
        return None
    return pc.is_valid(array).buffers()[1]


def cut_text(column: pa.Array, length: int) -> pa.Array:
    """Cut texts to at most `length` characters."""
    try:
        return pc.utf8_slice_codeunits(column, 0, length)
    except pa.ArrowInvalid:  # bytes that are not UTF-8: count them as Hive does, which replaces each
        raw = column.cast(pa.large_binary() if pa.types.is_large_string(column.type) else pa.binary()).to_pylist()
        return pa.array(
            [None if text is None else text.decode("utf-8", "replace")[:length] for text in raw], column.type
        )
