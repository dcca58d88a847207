"""The columns of Parquet files that are concatenated: if they fit, their common types, and the casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from acidctl.orc.arrow import below, with_children
from acidctl.orc.types import OrcType, arrow_type, hive_type

_UNITS: Final = ("s", "ms", "us", "ns")
_WIDER: Final = ("tinyint", "smallint", "int", "bigint")


def difference(own: OrcType, schema: pa.Schema, target: OrcType) -> str:
    """Return why a file's columns cannot be stored as the output's; empty if they can.

    Names and positions must agree: Hive matches names, acidctl positions.
    """
    unsigned = next((field.name for field in schema if _holds(field.type, pa.uint64())), None)
    if unsigned:
        return f"its column {unsigned} has unsigned numbers of 64 bits, for which Hive has no type"
    return _difference(own, target, "")


def _holds(kind: pa.DataType, wanted: pa.DataType) -> bool:
    return kind == wanted or any(_holds(kind.field(i).type, wanted) for i in range(kind.num_fields))


def _difference(own: OrcType, target: OrcType, name: str) -> str:
    if own.kind == target.kind == "struct":
        if dropped := own.names[len(target.names) :]:
            return f"its field {name}{dropped[0]} is missing in the newest file"
        for (field, child), (expected, kind) in zip(own.fields(), target.fields(), strict=False):
            if field.lower() != expected.lower():
                return f"its column {name}{field} is in the place of {name}{expected}"
            if why := _difference(child, kind, f"{name}{field}."):
                return why
        return ""
    if own.children and own.kind == target.kind:
        pairs = zip(own.children, target.children, strict=True)
        return next((why for a, b in pairs if (why := _difference(a, b, name))), "")
    wider = own.kind in _WIDER and target.kind in _WIDER and _WIDER.index(own.kind) < _WIDER.index(target.kind)
    same = (own.kind, own.precision, own.scale) == (target.kind, target.precision, target.scale)
    if same or wider or (own.kind, target.kind) == ("float", "double"):
        return ""
    return f"its column {name.rstrip('.')} is {hive_type(own)} there and {hive_type(target)} in others"


def same_shape(own: OrcType, target: OrcType) -> bool:
    """Say if a file's columns are nested as the output's: only then their checksums can be compared."""
    pairs = zip(own.children, target.children, strict=False)
    return all(len(a.children) == len(b.children) and same_shape(a, b) for a, b in pairs)


def target_type(tree: OrcType, kinds: Sequence[pa.DataType], unit: str | None) -> pa.DataType:
    """Return the common type; timestamps have the finest unit of all inputs, or `unit`."""
    if tree.kind.startswith("timestamp"):
        finest = unit or max((kind.unit for kind in kinds), key=_UNITS.index)
        return pa.timestamp(finest, arrow_type(tree).tz)
    if tree.kind == "struct":
        fields = []
        for i, (name, child) in enumerate(tree.fields()):
            having = [kind.field(i).type for kind in kinds if i < kind.num_fields]
            fields.append(pa.field(name, target_type(child, having, unit)))
        return pa.struct(fields)
    if tree.kind == "array":
        return pa.list_(pa.field("item", target_type(tree.children[0], [kind.value_type for kind in kinds], unit)))
    if tree.kind == "map":
        keys = target_type(tree.children[0], [kind.key_type for kind in kinds], unit)
        return pa.map_(keys, target_type(tree.children[1], [kind.item_type for kind in kinds], unit))
    return arrow_type(tree)


def numbers_of_times(column: pa.ChunkedArray) -> Any:
    """Return the numbers of all timestamps in a column, however nested, without NULLs."""
    numbers = [np.empty(0, np.int64)]

    def visit(array: pa.Array) -> None:
        if pa.types.is_timestamp(array.type):
            numbers.append(array.drop_null().cast(pa.int64()).to_numpy(zero_copy_only=False))
        for child in below(array):
            visit(child)

    for chunk in column.chunks:
        visit(chunk)
    return np.concatenate(numbers)


def cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast a column to the output's type; fields that were added later are NULL."""
    if array.type == target:
        return array
    if pa.types.is_struct(target):
        fields = [target.field(i) for i in range(target.num_fields)]
        children = [cast(child, field.type) for child, field in zip(below(array), fields, strict=False)]
        children += [pa.nulls(len(array), field.type) for field in fields[len(children) :]]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if pa.types.is_list(target):
        if not pa.types.is_list(array.type):
            array = array.cast(pa.list_(array.type.value_type))
        return with_children(array, [cast(array.values, target.value_type)])
    if pa.types.is_map(target):
        return with_children(array, [cast(array.keys, target.key_type), cast(array.items, target.item_type)])
    return array.cast(target)
