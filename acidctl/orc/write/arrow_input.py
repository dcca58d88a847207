"""Bring Arrow arrays into the exact shape that pyarrow needs to write a column of an ORC type.

Most arrays pass through untouched.  CHAR is padded to its length as Java pads it (predicates compare with padded
text), timestamps take the form that surrogate_columns.py chose, encodings that ORC does not have (dictionaries, views)
are undone, and extension types are replaced by their storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.errors import BadDataError
from acidctl.orc.arrow import struct_of
from acidctl.orc.read.union_nulls import has_null_member
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType, arrow_type, hive_type
from acidctl.orc.write.surrogate_columns import TimestampForm, as_struct, chosen_values, in_form

_STRINGS = ("string", "varchar", "char")

Forms = Mapping[int, TimestampForm]
"""Forms of the timestamp columns, by column id."""


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
    """Return `array` as pyarrow must see it to write the column `tree`, or its stand-in (see stand_ins.py).

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
