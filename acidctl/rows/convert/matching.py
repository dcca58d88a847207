"""Matching of the columns of files with those of the table, and the common row type of files (format section 3.1).

Columns of the table are matched by position, as in Hive 4, because older inserts call them ``_col0``; for Hive 3 by
name, unless a file calls them ``_col0``. Fields of structs, at every level below, are matched by name, case-sensitive
(ORC's ``SchemaEvolution``). Properties of the table change both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import Hive
from acidctl.orc.types import OrcType, row_type_of
from acidctl.rows.foreign.format import Format

if TYPE_CHECKING:
    from acidctl.location.metastore_schema import Declared

_POSITIONAL = re.compile(r"_col[0-9]+")

Place = tuple[int, ...]
"""The position of a column in a row type, and the positions of the fields inside it."""


def fields_of(own: OrcType, target: OrcType, *, is_top: bool = False) -> list[int | None]:
    """Return the position in `own` of each field of `target`; None if `own` lacks it.

    Args:
        is_top: whether these are the columns of the table, not the fields of a struct.
    """
    return [_place_of(own, position, target, is_top=is_top) for position in range(len(target.children))]


def _place_of(own: OrcType, position: int, target: OrcType, *, is_top: bool) -> int | None:
    """Return the position in a file of one column or field, or None if the file lacks it."""
    by_name = not is_top if target.by_name is None else target.by_name
    if by_name and not (is_top and is_numbered(own)):
        name = target.names[position]
        return _positions(own.names, target.any_case).get(name.lower() if target.any_case else name)
    return position if position < len(own.children) else None


@lru_cache(maxsize=256)
def _positions(names: tuple[str, ...], any_case: bool) -> Mapping[str, int]:
    return {name.lower() if any_case else name: position for position, name in enumerate(names)}


def is_numbered(row: OrcType) -> bool:
    """Return whether all columns of a file have names like ``_col0``, so that even Hive 3 finds them by position."""
    return _are_numbered(row.names)


@lru_cache(maxsize=256)
def _are_numbered(names: tuple[str, ...]) -> bool:
    return all(map(is_made_up, names))


def is_made_up(name: str) -> bool:
    """Return whether Hive made a column's name from its position: ``_col0``."""
    return _POSITIONAL.fullmatch(name) is not None


def place_in(own: OrcType, place: Sequence[int], target: OrcType) -> Place | None:
    """Return the place in the row type `own` of a file for a place in the row type `target`.

    None if the file lacks the column or field, or has something other than a struct around it.
    """
    places: list[int] = []
    for position in place:
        if own.kind != "struct":
            return None
        here = _place_of(own, position, target, is_top=not places)  # not by fields_of, which looks at all columns
        if here is None:
            return None
        places.append(here)
        own, target = own.children[here], target.children[position]
    return tuple(places)


def is_missing(own: OrcType, place: Sequence[int], target: OrcType) -> bool:
    """Return whether a file lacks a column or a field, which is therefore NULL in all of its rows."""
    depth = next((depth for depth in range(1, len(place) + 1) if place_in(own, place[:depth], target) is None), 0)
    return bool(depth) and type_at(own, place_in(own, place[: depth - 1], target) or ()).kind == "struct"


def type_at(row: OrcType, place: Sequence[int]) -> OrcType:
    """Return the type at a place of a row type."""
    for position in place:
        row = row.children[position]
    return row


@lru_cache(maxsize=256)
def alike(one: OrcType, other: OrcType) -> bool:
    """Return whether two types are the same apart from their column ids and attributes."""
    return (
        (one.kind, one.names, one.max_length, one.precision, one.scale)
        == (other.kind, other.names, other.max_length, other.precision, other.scale)
        and len(one.children) == len(other.children)
        and all(map(alike, one.children, other.children))
    )


def table_row_type(declared: Declared | None, types: Sequence[OrcType]) -> OrcType:
    """Return the row type of a table: its columns in the metastore, else the common type of all files.

    Args:
        types: of the files, oldest first; there may be none.

    Raises:
        BadDataError: acidctl does not know the type of a column in the metastore.
    """
    if declared and declared.columns:
        row = row_type_of(declared.columns)
        if declared.format != Format.ORC:
            return row
        is_of_hive3 = declared.hive is Hive.HIVE3  # whose ORC knows no levels
        found = _found(row, declared, 1 if is_of_hive3 else declared.levels)
        return replace(found, by_name=is_of_hive3 and not declared.by_place)
    return merge_row_types(types or [OrcType("struct")])


def _found(node: OrcType, declared: Declared, levels: int) -> OrcType:
    """Return a type with the way in which its fields are found, the first levels by position."""
    children = tuple(_found(child, declared, levels - 1) for child in node.children)
    return replace(node, children=children, by_name=False if levels > 0 else None, any_case=declared.any_case)


def merge_row_types(types: Sequence[OrcType]) -> OrcType:
    """Return the common row type of files: the newest file's, and the columns that only older files have.

    The name of a column is that of the newest file with a real name.

    Args:
        types: struct types, oldest file first; at least one.
    """
    width = max(len(row.children) for row in types)
    names, children = [], []
    for position in range(width):
        having = [row for row in types if position < len(row.children)]
        real = [row.names[position] for row in having if not is_made_up(row.names[position])]
        names.append(real[-1] if real else having[-1].names[position])
        children.append(_merged([row.children[position] for row in having]))
    return OrcType("struct", children=tuple(children), names=tuple(names))


def _merged(types: Sequence[OrcType]) -> OrcType:
    """Return the newest declaration (the last); a union gets the alternatives of all."""
    newest = types[-1]
    same_kind = [node for node in types if node.kind == newest.kind]
    if newest.kind == "struct":
        fields = [
            [child for node in same_kind for field, child in node.fields() if field == name] for name in newest.names
        ]
        return replace(newest, children=tuple(map(_merged, fields)))
    if newest.children:
        width = max(len(node.children) for node in same_kind)
        members = [[node.children[i] for node in same_kind if i < len(node.children)] for i in range(width)]
        return replace(newest, children=tuple(map(_merged, members)))
    return newest
