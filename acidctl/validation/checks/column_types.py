"""Whether the columns of a file can be read as a table's: which types Hive converts."""

from __future__ import annotations

from acidctl.errors import BadDataError, UsageProblem
from acidctl.orc.hive_types import columns_of
from acidctl.orc.types import OrcType, hive_type

_NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean"}
_TEXTS = {"string", "char", "varchar"}
_TIMES = {"date", "timestamp", "timestamp with local time zone"}
_LEAVES = _NUMBERS | _TEXTS | _TIMES | {"binary"}


def misfit(row: OrcType, table: OrcType) -> str:
    """Why a file's columns cannot be read as the table's, by position; empty when they can.

    More columns in the table than in the file are fine: they were added later.
    """
    for place, (child, wanted) in enumerate(zip(row.children, table.children, strict=False)):
        if not _converts(child, wanted):
            return f"column {table.names[place]} is {hive_type(child)[:80]} here, {hive_type(wanted)[:80]} in the table"
    if len(row.children) > len(table.children):
        return f"it has {len(row.children)} columns, the table {len(table.children)}"
    return ""


def _converts(one: OrcType, other: OrcType) -> bool:
    if one.kind in _LEAVES and other.kind in _LEAVES:
        pair = {one.kind, other.kind}
        if one.kind == other.kind or pair & _TEXTS:
            return True
        return "binary" not in pair and not ("date" in pair and pair & _NUMBERS)
    if one.kind != other.kind:
        return False
    if one.kind == "uniontype" and len(one.children) > len(other.children):
        return False
    return all(_converts(a, b) for a, b in zip(one.children, other.children, strict=False))


def parse_columns(text: str) -> OrcType:
    """The columns of a table, ``id int, name string`` or ``struct<id:int,name:string>``.

    Raises:
        UsageProblem: not such a list.
    """
    try:
        return columns_of(text)
    except BadDataError:
        hint = "write it as in CREATE TABLE: 'id int, name string'"
        raise UsageProblem(f"not a list of columns: {text[:200]!r}", "", hint) from None
