"""Whether the columns of a file can be read as a table's, by the types that Hive converts."""

from __future__ import annotations

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.orc.hive_types import columns_of
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType, hive_type

_NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean"}
_TEXTS = {"string", "char", "varchar"}
_LEAVES = _NUMBERS | _TEXTS | {"date", *TIMESTAMP_KINDS, "binary"}


def misfit(row: OrcType, table: OrcType) -> str:
    """Return why a file's columns cannot be read as the table's, by position; empty if they can.

    The table may have more columns than the file: they were added later.
    """
    for place, (child, wanted) in enumerate(zip(row.children, table.children, strict=False)):
        if not _converts(child, wanted):
            return f"column {table.names[place]} is {hive_type(child)[:80]} here, {hive_type(wanted)[:80]} in the table"
    if len(row.children) > len(table.children):
        return f"it has {len(row.children)} columns, the table {len(table.children)}"
    return ""


def _converts(source: OrcType, target: OrcType) -> bool:
    if source.kind in _LEAVES and target.kind in _LEAVES:
        pair = {source.kind, target.kind}
        if source.kind == target.kind or pair & _TEXTS:
            return True
        return "binary" not in pair and not ("date" in pair and pair & _NUMBERS)
    if source.kind != target.kind:
        return False
    if source.kind == "uniontype" and len(source.children) > len(target.children):
        return False
    return all(_converts(a, b) for a, b in zip(source.children, target.children, strict=False))


def parse_columns(text: str) -> OrcType:
    """Parse the columns of a table, ``id int, name string`` or ``struct<id:int,name:string>``.

    Raises:
        UsageProblem: the text is not a list of columns.
    """
    try:
        return columns_of(text)
    except BadDataError:
        hint = "write it as in CREATE TABLE: 'id int, name string'"
        raise UsageProblem(f"not a list of columns: {text[:200]!r}", "", hint) from None
