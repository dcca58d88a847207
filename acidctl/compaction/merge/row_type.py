"""The columns of a compaction's output: what Hive reads of it must be what it read of the inputs."""

from __future__ import annotations

from collections.abc import Sequence

from acidctl.errors import RefusedError
from acidctl.location.snapshot import Snapshot
from acidctl.orc.hive_types import row_type_of
from acidctl.orc.types import OrcType, hive_type
from acidctl.rows.convert.leaves import hives_differ
from acidctl.rows.convert.matching import alike, fields_of
from acidctl.rows.read.schema_evolution import merge_row_types


def output_row_type(snapshot: Snapshot, types: Sequence[OrcType]) -> OrcType:
    """The row type of the output.

    Where all files have the same columns it is theirs, whatever the table's are now: nothing is converted. Otherwise
    it is the table's, where a metastore says it, else that of the newest file without a loss of older fields.

    Args:
        types: of the files, oldest first; at least one.

    Raises:
        RefusedError: a column changed its type, and the two Hives convert its values in different ways.
    """
    row = merge_row_types(types, keeps_dropped=True)
    if all(alike(one, row) for one in types):
        return row
    declared = snapshot.declared
    if declared and declared.columns:
        table = row_type_of(declared.columns)
        behind = slice(len(table.names), None)  # Hive shows them again when columns are added
        names, children = (*table.names, *row.names[behind]), (*table.children, *row.children[behind])
        row = OrcType("struct", children=children, names=names)
    for own in dict.fromkeys(types):
        if found := _conversion(own, row, is_top=True):
            raise RefusedError(
                f"cannot compact {snapshot.fs.display(snapshot.path)}",
                f"column {found[0]} is {hive_type(found[1])} in older files and {hive_type(found[2])} in the result,"
                " and Hive 3 and Hive 4 convert its values in different ways",
                "let Hive compact it",
            )
    return row


def _conversion(own: OrcType, target: OrcType, *, is_top: bool = False) -> tuple[str, OrcType, OrcType] | None:
    """A column that the two Hives read differently: its name, and its types."""
    if own.kind == target.kind == "struct":
        places = fields_of(own, target, is_top=is_top)
        pairs = [
            (name, own.children[place], child)
            for place, (name, child) in zip(places, target.fields(), strict=True)
            if place is not None
        ]
    else:
        pairs = [("", *pair) for pair in zip(own.children, target.children, strict=False)]
    for name, one, other in pairs:
        if not one.children and not other.children and hives_differ(one, other):
            return name, one, other
        if found := _conversion(one, other):
            return ".".join(filter(None, (name, found[0]))), *found[1:]
    return None
