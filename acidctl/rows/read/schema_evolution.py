"""One row type for a location whose files declare different ones (format section 3.1).

Columns are matched by position: Hive adds columns at the end only, and older inserts call them ``_col0``, ``_col1``.
Names come from the newest file that has real ones, types from the newest.  Fields of structs are matched by name, as
Hive does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import Hive
from acidctl.orc.hive_types import row_type_of
from acidctl.orc.types import OrcType
from acidctl.rows.convert.matching import is_made_up
from acidctl.rows.foreign.format import Format

if TYPE_CHECKING:
    from acidctl.location.declared import Declared


def table_row_type(declared: Declared | None, types: Sequence[OrcType]) -> OrcType:
    """The row type of a table: its columns as a metastore has them, else what holds the rows of all files.

    Args:
        types: of the files, oldest first; there may be none.

    Raises:
        BadDataError: the metastore has a column of a type that acidctl does not know.
    """
    if declared and declared.columns:
        by_name = declared.hive is Hive.HIVE3 and declared.format == Format.ORC
        return replace(row_type_of(declared.columns), by_name=by_name)
    return merge_row_types(types or [OrcType("struct")])


def merge_row_types(types: Sequence[OrcType]) -> OrcType:
    """The row type of all files: that of the newest, and the columns that only older ones have.

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
    """The newest declaration (the last); a union with the alternatives of all."""
    newest = types[-1]
    alike = [one for one in types if one.kind == newest.kind]
    if newest.kind == "struct":
        fields = [[child for one in alike for own, child in one.fields() if own == name] for name in newest.names]
        return replace(newest, children=tuple(map(_merged, fields)))
    if newest.children:
        width = max(len(one.children) for one in alike)
        members = [[one.children[i] for one in alike if i < len(one.children)] for i in range(width)]
        return replace(newest, children=tuple(map(_merged, members)))
    return newest
