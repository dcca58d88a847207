"""The columns of a compaction's output: what Hive reads of it must be what it read of the inputs."""

from __future__ import annotations

from collections.abc import Sequence

from acidctl.errors import RefusedError
from acidctl.location.snapshot import Snapshot
from acidctl.orc.hive_types import row_type_of
from acidctl.orc.types import OrcType
from acidctl.rows.convert.matching import alike, fields_of
from acidctl.rows.read.schema_evolution import merge_row_types

_WIDER = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))


def output_row_type(snapshot: Snapshot, types: Sequence[OrcType]) -> OrcType:
    """The row type of the output.

    Where all files have the same columns it is theirs, whatever the table's are now: nothing is converted. Otherwise
    it is the table's, where a metastore says it, else that of the newest file.

    Args:
        types: of the files, oldest first; at least one.

    Raises:
        RefusedError: older files hold what the newest has no room for, and no metastore says whether the table has.
    """
    row = merge_row_types(types)
    if all(alike(one, row) for one in types):
        return row
    declared = snapshot.declared
    if declared and declared.columns:
        table = row_type_of(declared.columns)
        behind = slice(len(table.names), None)  # Hive shows them again when columns are added
        names, children = (*table.names, *row.names[behind]), (*table.children, *row.children[behind])
        return OrcType("struct", children=children, names=names)
    for own in dict.fromkeys(types):
        if lost := _lost(own, row, is_top=True):
            raise RefusedError(
                f"cannot compact {snapshot.fs.display(snapshot.path)}",
                f"the newest file has no room for {lost} of older files, and whether the table has is not known",
                "name the table as its metastore has it, `hive:db.table`",
            )
    return row


def _lost(own: OrcType, target: OrcType, *, is_top: bool = False) -> str:
    """A field or a wider number that a type has no room for; empty where there is none."""
    for kinds in _WIDER:
        if own.kind in kinds and target.kind in kinds and kinds.index(own.kind) > kinds.index(target.kind):
            return own.kind
    if own.kind != target.kind:
        return ""
    if own.kind != "struct":
        return next(filter(None, map(_lost, own.children, target.children)), "")
    places = fields_of(own, target, is_top=is_top)
    if not is_top and (dropped := [name for name in own.names if name not in target.names]):
        return f"field {dropped[0]}"
    found = (
        (name, _lost(own.children[place], child))
        for place, (name, child) in zip(places, target.fields(), strict=True)
        if place is not None
    )
    return next((f"{what} in {name}" for name, what in found if what), "")
