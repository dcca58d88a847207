"""One row type for a location whose files declare different ones (format section 3.1).

Columns are matched by position: Hive adds columns at the end only, and older inserts call them ``_col0``, ``_col1``.
Names come from the newest file that has real ones, types from the newest, numbers from the widest; the same holds for
the fields of nested structs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.errors import BadDataError
from acidctl.orc.arrow import below, cut_text, struct_of, tags_of, with_children
from acidctl.orc.hive_types import row_type_of
from acidctl.orc.read.union_nulls import has_null_member, null_unions, with_nulls
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import OrcType, arrow_type

if TYPE_CHECKING:
    from acidctl.location.declared import Declared

_POSITIONAL = re.compile(r"_col[0-9]+")
_WIDER = {kind: rank for rank, kind in enumerate(("tinyint", "smallint", "int", "bigint", "float", "double"))}
_MAX_DIGITS = 38
_TEXTS = ("string", "varchar", "char")
SIZED_TEXTS = frozenset(("varchar", "char"))
"""Kinds for which :func:`fit_text` may have something to do."""


def table_row_type(declared: Declared | None, types: Sequence[OrcType]) -> OrcType:
    """The row type of a table: its columns as a metastore has them, else what holds the rows of all files.

    Args:
        types: of the files, oldest first; there may be none.

    Raises:
        BadDataError: the metastore has a column of a type that acidctl does not know.
    """
    if declared and declared.columns:
        return row_type_of(declared.columns)
    return merge_row_types(types or [OrcType("struct")])


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
        children.append(_merged([row.children[position] for row in having]))
    return OrcType("struct", children=tuple(children), names=tuple(names))


def _merged(types: Sequence[OrcType]) -> OrcType:
    """The newest declaration (the last), unless an older one is a wider number that it could not hold."""
    newest = types[-1]
    if all(one == newest for one in types):
        return newest
    alike = [one for one in types if one.kind == newest.kind]
    if newest.kind == "struct":
        return merge_row_types(alike)
    if newest.children:
        width = max(len(one.children) for one in alike)
        members = [[one.children[i] for one in alike if i < len(one.children)] for i in range(width)]
        return replace(newest, children=tuple(_merged(member) for member in members))
    for one in types:
        ranks = _WIDER.get(newest.kind), _WIDER.get(one.kind)
        if ranks[0] is not None and ranks[1] is not None and ranks[1] > ranks[0]:
            newest = one
    return newest


def all_null(count: int, kind: pa.DataType) -> pa.Array:
    """`count` NULLs of a type that an ORC file can give; unions get their alternative for NULL."""
    return null_unions(count, kind) if pa.types.is_union(kind) else pa.nulls(count, kind)


def conform(rows: pa.StructArray, target: pa.StructType, path: str) -> pa.StructArray:
    """The rows of one file as the location's row type: columns by position, missing ones NULL, values converted.

    A column that needs the wide form of timestamps, or a union with NULLs, keeps the type it came with.

    Raises:
        BadDataError: a column cannot be converted.
    """
    if rows.type == target:
        return rows
    arrays = []
    children = below(rows)
    for position in range(target.num_fields):
        field = target.field(position)
        if position >= len(children):
            arrays.append(all_null(len(rows), field.type))
            continue
        arrays.append(_cast(children[position], field, path))
    return struct_of(arrays, target.names, len(rows), rows.is_null() if rows.null_count else None)


def select_fields(rows: pa.StructArray, names: Sequence[str], row: OrcType, path: str) -> pa.StructArray:
    """Some fields of the rows of one file, by the location's names; missing ones are NULL."""
    wide = conform(rows, arrow_type(row), path)
    chosen = [position for position, name in enumerate(row.names) if name in names]
    missing = wide.is_null() if wide.null_count else None
    return struct_of(
        [wide.field(place) for place in chosen], [row.names[place] for place in chosen], len(wide), missing
    )


def _cast(column: pa.Array, field: pa.Field, path: str) -> pa.Array:
    own, target = column.type, field.type
    if own == target or (isinstance(own, WideTimestamp) and pa.types.is_timestamp(target)):
        return column
    if pa.types.is_struct(own) and pa.types.is_struct(target):
        return conform(column, target, path)
    try:
        if pa.types.is_list(own) and pa.types.is_list(target):
            return with_children(column, [_cast(column.values, target.value_field.with_name(field.name), path)])
        if pa.types.is_map(own) and pa.types.is_map(target):
            keys, items = target.key_field, target.item_field
            kinds = [keys.with_name(field.name), items.with_name(field.name)]
            return with_children(
                column, [_cast(child, kind, path) for child, kind in zip(below(column), kinds, strict=True)]
            )
        if pa.types.is_union(own) and pa.types.is_union(target):
            return _cast_union(column, field, path)
        return _cast_leaf(column, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadDataError(
            f"cannot read column {field.name} of {path}",
            f"it is {own} there and {target} in newer files: {str(error).splitlines()[0]}",
            "the table's schema was changed in a way that Hive does not convert either",
        ) from error


def _cast_union(column: pa.UnionArray, field: pa.Field, path: str) -> pa.UnionArray:
    target = field.type
    members = target.num_fields - has_null_member(target)
    own = column.type.num_fields - has_null_member(column.type)
    if own > members:
        raise pa.ArrowInvalid(f"it has {own} alternatives")
    children = [_cast(column.field(i), target.field(i).with_name(field.name), path) for i in range(own)]
    children += [all_null(len(column), target.field(i).type) for i in range(own, members)]
    tags = tags_of(column)
    if has_null_member(column.type) or has_null_member(target):
        return with_nulls(tags, children, tags == own if has_null_member(column.type) else np.zeros(len(tags), bool))
    names = [target.field(i).name for i in range(members)]
    return pa.UnionArray.from_sparse(pa.array(tags, pa.int8()), children, names)


def _cast_leaf(column: pa.Array, target: pa.DataType) -> pa.Array:
    own = column.type
    if pa.types.is_string(target) and not (pa.types.is_nested(own) or pa.types.is_binary(own)):
        return _texts(column)
    if pa.types.is_floating(target) and (pa.types.is_integer(own) or pa.types.is_floating(own)):
        return column.cast(target, safe=False)  # large integers lose digits, in Hive too
    if pa.types.is_decimal(target) and pa.types.is_integer(own):
        column = column.cast(pa.decimal128(19, 0))
    if pa.types.is_decimal(target) and pa.types.is_decimal(column.type):
        if column.type.scale > target.scale:
            column = pc.round(column, target.scale, "half_towards_infinity")
        room = min(_MAX_DIGITS, column.type.precision - column.type.scale + target.scale)
        column = column.cast(pa.decimal128(max(room, target.precision), target.scale))
    return column.cast(target)


def fit_text(column: pa.Array, own: OrcType, target: OrcType) -> pa.Array:
    """Text of a column as its newer type holds it, as Hive converts it: CHAR loses its padding, and what is longer
    than the type's length is cut off.

    Args:
        column: in the result's Arrow type, of a file that declares `own`.
    """
    if own == target or not _changes_text(own, target):
        return column
    if target.kind in _TEXTS:
        if "char" in (own.kind, target.kind):
            column = pc.ascii_rtrim(column, characters=" ")
        if target.max_length and target.kind != "string":
            column = cut_text(column, target.max_length)
        return pc.ascii_rtrim(column, characters=" ") if target.kind == "char" else column
    children = below(column)
    pairs = zip(own.children, target.children, strict=False)
    fitted = [fit_text(child, *pair) for child, pair in zip(children, pairs, strict=False)]
    return with_children(column, [*fitted, *children[len(fitted) :]])


def _changes_text(own: OrcType, target: OrcType) -> bool:
    """Whether :func:`fit_text` has something to do."""
    if target.kind in _TEXTS:
        if target.kind == "string":
            return own.kind == "char"
        return own.kind != target.kind or (own.max_length or 0) > (target.max_length or 0)
    if own.kind != target.kind or own.kind == "uniontype":  # members of unions stay as they are
        return False
    return any(_changes_text(a, b) for a, b in zip(own.children, target.children, strict=False))


def _texts(column: pa.Array) -> pa.Array:
    """The values as text, in the form of the exports: a column that became STRING."""
    from acidctl.rows.export.cells import unquoted  # noqa: PLC0415 - with all exports: few columns ever become STRING
    from acidctl.rows.export.text import Kernels  # noqa: PLC0415 - the same

    kernels = Kernels(large=False)
    if pa.types.is_boolean(column.type):
        return pc.if_else(column, "TRUE", "FALSE")  # as Hive converts them
    return kernels.wrapped(unquoted(column, None, kernels)).cast(pa.string())
