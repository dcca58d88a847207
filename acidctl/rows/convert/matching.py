"""Which column of a file is which column of the table (format section 3.1).

Columns of the table are matched by position, as Hive 4 does it; by name for Hive 3, unless a file calls them ``_col0``.
Fields of structs, at every level below, are matched by name, and case counts: ORC's ``SchemaEvolution``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from acidctl.orc.types import OrcType

_POSITIONAL = re.compile(r"_col[0-9]+")

Place = tuple[int, ...]
"""A column by its position in a row type, and the positions of the fields inside it."""


def fields_of(own: OrcType, target: OrcType, *, is_top: bool = False) -> list[int | None]:
    """The position in `own` of each field of `target`; None where `own` lacks it.

    Args:
        is_top: whether these are the columns of the table, not the fields of a struct.
    """
    if is_top:
        return [_top_of(own, position, target) for position in range(len(target.children))]
    places = {name: position for position, name in enumerate(own.names)}
    return list(map(places.get, target.names))


def _top_of(own: OrcType, position: int, target: OrcType) -> int | None:
    """Find a column of the table in a file: its position there, or None if the file lacks it."""
    if target.by_name and not is_numbered(own):
        return _positions(own.names).get(target.names[position])
    return position if position < len(own.children) else None


@lru_cache(maxsize=256)
def _positions(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: position for position, name in enumerate(names)}


def is_numbered(row: OrcType) -> bool:
    """Whether Hive numbered all columns of a file (``_col0``), so that Hive 3 finds them by position, too."""
    return _are_numbered(row.names)


@lru_cache(maxsize=256)
def _are_numbered(names: tuple[str, ...]) -> bool:
    return all(map(is_made_up, names))


def is_made_up(name: str) -> bool:
    """Whether Hive made up a column's name from its place: ``_col0``."""
    return _POSITIONAL.fullmatch(name) is not None


def place_in(own: OrcType, place: Sequence[int], target: OrcType) -> Place | None:
    """A column of the row type `target`, or a field inside one, as a place in the row type `own` of a file.

    None where the file lacks it, or has something other than a struct around it.
    """
    found: list[int] = []
    for position in place:
        if own.kind != "struct":
            return None
        if not found:  # not by fields_of, which looks at all columns
            here = _top_of(own, position, target)
        else:
            here = own.names.index(name) if (name := target.names[position]) in own.names else None
        if here is None:
            return None
        found.append(here)
        own, target = own.children[here], target.children[position]
    return tuple(found)


def is_missing(own: OrcType, place: Sequence[int], target: OrcType) -> bool:
    """Whether a file lacks a column or a field, which is therefore NULL in all of its rows."""
    depth = next((depth for depth in range(1, len(place) + 1) if place_in(own, place[:depth], target) is None), 0)
    return bool(depth) and type_at(own, place_in(own, place[: depth - 1], target) or ()).kind == "struct"


def type_at(row: OrcType, place: Sequence[int]) -> OrcType:
    """The type at a place of a row type."""
    for position in place:
        row = row.children[position]
    return row


@lru_cache(maxsize=256)
def alike(one: OrcType, other: OrcType) -> bool:
    """Whether two types are the same, whatever their column ids and attributes are."""
    return (
        (one.kind, one.names, one.max_length, one.precision, one.scale)
        == (other.kind, other.names, other.max_length, other.precision, other.scale)
        and len(one.children) == len(other.children)
        and all(map(alike, one.children, other.children))
    )
