"""Conversion of the rows of one file to the row type of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from acidctl.acid.compaction_kind import Hive
from acidctl.base.errors import BadDataError, RefusedError
from acidctl.orc.arrow import below, struct_of, tags_of, with_children
from acidctl.orc.read.union_nulls import has_null_member, null_unions, with_nulls
from acidctl.orc.types import OrcType, arrow_type, hive_type
from acidctl.rows.convert.leaves import convert_leaf, require_known, why_not_converted
from acidctl.rows.convert.matching import alike, fields_of
from acidctl.rows.convert.times import HivesDifferError, NoConversion


@dataclass(frozen=True, slots=True)
class How:
    """Options of the conversion.

    Attributes:
        parquet: the file is Parquet, not ORC.
        for_good: the values go to a new file, so values that Hive 3 and Hive 4 read differently are refused.
        by: the version of Hive whose conversions are used, if it is known.
    """

    parquet: bool = False
    for_good: bool = False
    by: Hive | None = None


AS_ORC = How()
_NESTED = frozenset({"struct", "array", "map", "uniontype"})


def all_null(count: int, kind: pa.DataType) -> pa.Array:
    """Return `count` NULLs of a type that an ORC file can hold; unions get their alternative for NULL."""
    return null_unions(count, kind) if pa.types.is_union(kind) else pa.nulls(count, kind)


def conform(rows: pa.StructArray, own: OrcType, target: OrcType, path: str, *, how: How = AS_ORC) -> pa.StructArray:
    """Convert the rows of one file to the table's row type; columns that the file lacks are NULL.

    A column that needs the wide form of timestamps, or a union with NULLs, keeps its type.

    Args:
        rows: all columns of the file.
        own: the row type of the file.
        target: the row type of the table.
        path: the file, for messages.

    Raises:
        BadDataError: a column cannot be converted.
        RefusedError: `how.for_good` is set, and Hive 3 and Hive 4 convert values differently.
    """
    return rows if alike(own, target) else _struct(rows, own, target, path, how, is_top=True)


def select_fields(
    rows: pa.StructArray, own: OrcType, names: Sequence[str], row: OrcType, path: str, *, how: How = AS_ORC
) -> pa.StructArray:
    """Return some columns of the rows of one file, by the names that `row` has for them; missing ones are NULL."""
    wide = conform(rows, own, row, path, how=how)
    chosen = [position for position, name in enumerate(row.names) if name in names]
    missing = wide.is_null() if wide.null_count else None
    return struct_of(
        [wide.field(place) for place in chosen], [row.names[place] for place in chosen], len(wide), missing
    )


def convert(column: pa.Array, own: OrcType, target: OrcType, name: str, path: str, *, how: How = AS_ORC) -> pa.Array:
    """Convert a column of a file to another type.

    Args:
        own, target: its types in the file and in the table.
        name, path: of the column and the file, for messages.

    Raises:
        BadDataError: Hive does not convert these types either, or acidctl does not know how it does.
        RefusedError: see :func:`conform`.
    """
    if alike(own, target):
        return column
    try:
        if not _NESTED.isdisjoint((own.kind, target.kind)) and (why := _why_not(own, target)):
            raise NoConversion(why)
        if own.kind == "struct":
            return _struct(column, own, target, path, how)
        if own.kind in ("array", "map"):
            pairs = zip(below(column), own.children, target.children, strict=True)
            converted = [convert(*pair, name, path, how=how) for pair in pairs]
            if own.kind == "map" and converted[0].null_count > below(column)[0].null_count:
                raise NoConversion("a key of the map would be NULL")
            return with_children(column, converted)
        if own.kind == "uniontype":
            return _union(column, own, target, name, path, how=how)
        if how.for_good:
            require_known(column, own, target, how.by)
        return convert_leaf(column, own, target, parquet=how.parquet, by=how.by or Hive.HIVE4)
    except HivesDifferError as error:
        raise RefusedError(
            f"cannot compact {path} with newer files",
            f"column {name} is {hive_type(own)} there and {hive_type(target)} in the result: {error}",
            "say which Hive reads the table, --for hive3 or --for hive4; or let Hive compact it"
            if how.by is None
            else "let Hive compact it",
        ) from error
    except NoConversion as error:
        raise _not_converted(own, target, name, path, error) from error


def require_convertible(own: OrcType, target: OrcType, path: str, name: str = "", *, is_top: bool = True) -> None:
    """Refuse types that :func:`convert` does not convert, whatever the values are.

    Args:
        own, target: see :func:`conform`, or :func:`convert` if it is not the top.

    Raises:
        BadDataError: a column cannot be converted.
    """
    if alike(own, target):
        return
    if why := _why_not(own, target):
        raise _not_converted(own, target, name, path, NoConversion(why))
    if own.kind == "struct":
        places = zip(fields_of(own, target, is_top=is_top), target.names, target.children, strict=True)
        parts = [(own.children[place], child, field) for place, field, child in places if place is not None]
    else:
        parts = [(*pair, name) for pair in zip(own.children, target.children, strict=False)]
    for part, child, field in parts:
        require_convertible(part, child, path, field, is_top=False)


def _why_not(own: OrcType, target: OrcType) -> str:
    if _NESTED.isdisjoint((own.kind, target.kind)):
        return why_not_converted(own.kind, target.kind)
    if own.kind != target.kind:
        return "Hive does not convert it either"
    count = len(own.children)
    return f"it has {count} alternatives" if own.kind == "uniontype" and count > len(target.children) else ""


def _not_converted(own: OrcType, target: OrcType, name: str, path: str, why: NoConversion) -> BadDataError:
    return BadDataError(
        f"cannot read column {name} of {path}",
        f"it is {hive_type(own)} there and {hive_type(target)} in the table: {why}",
        "choose other columns with --columns, or let Hive read it",
    )


def _struct(
    rows: pa.StructArray, own: OrcType, target: OrcType, path: str, how: How, *, is_top: bool = False
) -> pa.StructArray:
    arrays = []
    children = below(rows)
    for place, name, kind in zip(fields_of(own, target, is_top=is_top), target.names, target.children, strict=True):
        if place is None:
            arrays.append(all_null(len(rows), arrow_type(kind)))
        else:
            arrays.append(convert(children[place], own.children[place], kind, name, path, how=how))
    return struct_of(arrays, target.names, len(rows), rows.is_null() if rows.null_count else None)


def _union(column: pa.UnionArray, own: OrcType, target: OrcType, name: str, path: str, *, how: How) -> pa.UnionArray:
    count, members = len(own.children), len(target.children)
    pairs = zip(own.children, target.children, strict=False)
    children = [convert(column.field(i), *pair, name, path, how=how) for i, pair in enumerate(pairs)]
    children += [all_null(len(column), arrow_type(kind)) for kind in target.children[count:]]
    tags = tags_of(column)
    if has_null_member(column.type):
        return with_nulls(tags, children, tags == count)
    return pa.UnionArray.from_sparse(pa.array(tags, pa.int8()), children, [f"_union_{i}" for i in range(members)])
