"""One row type for a location whose files declare different ones (format section 3.1).

Columns are matched by position: Hive adds columns at the end only, and older inserts call them ``_col0``, ``_col1``.
Names come from the newest file that has real ones, types from the newest.  Fields of structs are matched by name, as
Hive does it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from acidctl.orc.hive_types import row_type_of
from acidctl.orc.types import OrcType

if TYPE_CHECKING:
    from acidctl.location.declared import Declared

_POSITIONAL = re.compile(r"_col[0-9]+")
_WIDER = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))


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


def merge_row_types(types: Sequence[OrcType], *, keeps_dropped: bool = False) -> OrcType:
    """The row type that holds the rows of all files.

    Args:
        types: struct types, oldest file first; at least one.
        keeps_dropped: for what is written for good: nothing is lost that Hive may still show. Structs get the fields,
            too, that the newest file does not have, after its own; numbers the widest type.
    """
    width = max(len(row.children) for row in types)
    names, children = [], []
    for position in range(width):
        having = [row for row in types if position < len(row.children)]
        real = [row.names[position] for row in having if not _POSITIONAL.fullmatch(row.names[position])]
        names.append(real[-1] if real else having[-1].names[position])
        children.append(_merged([row.children[position] for row in having], keeps_dropped))
    return OrcType("struct", children=tuple(children), names=tuple(names))


def _merged(types: Sequence[OrcType], keeps_dropped: bool) -> OrcType:
    """The newest declaration (the last); with `keeps_dropped` an older one of a wider number that it cannot hold."""
    newest = types[-1]
    if all(one == newest for one in types):
        return newest
    alike = [one for one in types if one.kind == newest.kind]
    if newest.kind == "struct":
        return _merged_struct(alike, keeps_dropped)
    if newest.children:
        width = max(len(one.children) for one in alike)
        members = [[one.children[i] for one in alike if i < len(one.children)] for i in range(width)]
        return replace(newest, children=tuple(_merged(member, keeps_dropped) for member in members))
    for kinds in _WIDER if keeps_dropped else ():
        if newest.kind in kinds:
            newest = max(types[::-1], key=lambda one: kinds.index(one.kind) if one.kind in kinds else -1)
    return newest


def _merged_struct(types: Sequence[OrcType], keeps_dropped: bool) -> OrcType:
    """A struct below the top: the fields of the newest in its order, each of the types that the name has in all."""
    found: dict[str, list[OrcType]] = {name: [] for name in types[-1].names}
    for one in types:
        for name, child in one.fields():
            if name in found or keeps_dropped:
                found.setdefault(name, []).append(child)
    return replace(
        types[-1], names=tuple(found), children=tuple(_merged(kinds, keeps_dropped) for kinds in found.values())
    )
