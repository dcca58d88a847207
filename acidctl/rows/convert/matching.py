"""Which column of a file is which column of the table (format section 3.1).

Columns of the table are matched by position: Hive adds them at the end only, and older files call them ``_col0``.
Fields of structs, at every level below, are matched by name, and case counts: ORC's ``SchemaEvolution``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from acidctl.orc.types import OrcType

Place = tuple[int, ...]
"""A column by its position in a row type, and the positions of the fields inside it."""


def fields_of(own: OrcType, target: OrcType, *, is_top: bool = False) -> list[int | None]:
    """The position in `own` of each field of `target`; None where `own` lacks it.

    Args:
        is_top: whether these are the columns of the table, not the fields of a struct.
    """
    if is_top:
        return [position if position < len(own.children) else None for position in range(len(target.children))]
    places = {name: position for position, name in enumerate(own.names)}
    return list(map(places.get, target.names))


def place_in(own: OrcType, place: Sequence[int], target: OrcType) -> Place | None:
    """A column of the row type `target`, or a field inside one, as a place in the row type `own` of a file.

    None where the file lacks it, or has something other than a struct around it.
    """
    found: list[int] = []
    for position in place:
        if own.kind != "struct":
            return None
        if not found:  # not by fields_of, which looks at all columns
            here = position if position < len(own.children) else None
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
