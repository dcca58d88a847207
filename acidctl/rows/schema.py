"""One row type for a location whose files declare different ones (format section 3.1).

Columns are matched by position: Hive adds columns at the end only, and older inserts call them ``_col0``, ``_col1``.
Names come from the newest file that has real ones, types from the widest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from acidctl.errors import BadDataError
from acidctl.orc.types import OrcType, arrow_type

_POSITIONAL = re.compile(r"_col[0-9]+")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_WIDER = {
    **{kind: _INTEGERS.index(kind) for kind in _INTEGERS},
    "float": 4,
    "double": 5,
}


def merge_row_types(types: Sequence[OrcType]) -> OrcType:
    """The row type that holds the rows of all files.

    Args:
        types: struct types, oldest file first; at least one.
    """
    width = max(len(row.children) for row in types)
    names, children = [], []
    for position in range(width):
        having = [row for row in types if position < len(row.children)]
        real = [row.names[position] for row in having if not _POSITIONAL.fullmatch(row.names[position])]
        names.append(real[-1] if real else having[-1].names[position])
        child = having[-1].children[position]
        for row in having:
            child = _wider(child, row.children[position])
        children.append(child)
    return OrcType("struct", children=tuple(children), names=tuple(names))


def _wider(newest: OrcType, other: OrcType) -> OrcType:
    """The newest declaration, unless the other is a wider number that it could not hold."""
    ranks = _WIDER.get(newest.kind), _WIDER.get(other.kind)
    if ranks[0] is not None and ranks[1] is not None and ranks[1] > ranks[0]:
        return other
    return newest


def children_of(rows: pa.StructArray) -> list[pa.Array]:
    """The fields of structs, whose own NULLs do not show in them.

    Not ``flatten()``, which pushes those NULLs down: it aborts the process where a field is a union.
    """
    return [rows.field(place) for place in range(rows.type.num_fields)]


def conform(rows: pa.StructArray, target: pa.StructType, path: str) -> pa.StructArray:
    """The rows of one file as the location's row type: columns by position, missing ones NULL, numbers widened.

    Raises:
        BadDataError: a column cannot be converted.
    """
    if rows.type == target:
        return rows
    arrays = []
    children = children_of(rows)
    for position in range(target.num_fields):
        field = target.field(position)
        if position >= len(children):
            arrays.append(pa.nulls(len(rows), field.type))
            continue
        arrays.append(_cast(children[position], field, path))
    # A column that needs the wide form of timestamps keeps the type it came with.
    fields = [pa.field(target.field(i).name, array.type) for i, array in enumerate(arrays)]
    mask = rows.is_null() if rows.null_count else None
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)


def select_fields(rows: pa.StructArray, names: Sequence[str], row: OrcType, path: str) -> pa.StructArray:
    """Some fields of the rows of one file, by the location's names; missing ones are NULL."""
    wide = conform(rows, arrow_type(row), path)
    chosen = [position for position, name in enumerate(row.names) if name in names]
    mask = wide.is_null() if wide.null_count else None
    fields = [wide.type.field(position) for position in chosen]
    return pa.StructArray.from_arrays([wide.field(position) for position in chosen], fields=fields, mask=mask)


def _cast(column: pa.Array, field: pa.Field, path: str) -> pa.Array:
    if column.type == field.type or isinstance(column.type, pa.BaseExtensionType):
        return column
    if pa.types.is_struct(column.type) and pa.types.is_struct(field.type):
        return conform(column, field.type, path)
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadDataError(
            f"cannot read column {field.name} of {path}",
            f"it is {column.type} there and {field.type} in newer files: {str(error).splitlines()[0]}",
            "the table's schema was changed in a way that Hive does not convert either",
        ) from error
