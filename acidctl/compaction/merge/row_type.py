"""The columns of a compaction's output: Hive must read the same values from it as from the inputs."""

from __future__ import annotations

from collections.abc import Sequence

from acidctl.base.errors import RefusedError
from acidctl.location.snapshot import Snapshot
from acidctl.orc.hive_types import row_type_of
from acidctl.orc.types import OrcType
from acidctl.rows.convert.matching import alike, fields_of, merge_row_types

_WIDER = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))


def output_row_type(snapshot: Snapshot, types: Sequence[OrcType]) -> OrcType:
    """Return the row type of the output.

    If all files have the same columns, the output has them as well, whatever the table's columns are now, so that
    nothing is converted. Otherwise it has the table's columns from the metastore, or those of the newest file.

    Args:
        types: the row types of the files, oldest first; at least one.

    Raises:
        RefusedError: the newest file cannot hold all values of older files, and the table's type is unknown.
    """
    row = merge_row_types(types)
    if all(alike(file_type, row) for file_type in types):
        return row
    if snapshot.table_columns:
        table = row_type_of(snapshot.table_columns)
        behind = slice(len(table.names), None)  # Hive shows them again when columns are added
        names, children = (*table.names, *row.names[behind]), (*table.children, *row.children[behind])
        return OrcType("struct", children=children, names=names)
    for file_type in dict.fromkeys(types):
        if lost := _lost(file_type, row, is_top=True):
            raise RefusedError(
                f"cannot compact {snapshot.fs.display(snapshot.path)}",
                f"the newest file cannot hold {lost} of older files, and the type of the table is unknown",
                "name the table as its metastore has it, `hive:db.table`",
            )
    return row


def _lost(own: OrcType, target: OrcType, *, is_top: bool = False) -> str:
    """Name the part of a type that may lose values as `target`; empty if no value can change."""
    if own.kind != target.kind:
        wider = any(
            own.kind in kinds and target.kind in kinds and kinds.index(own.kind) < kinds.index(target.kind)
            for kinds in _WIDER
        )
        return "" if wider or (own.kind, target.kind) == ("varchar", "string") else own.kind
    if own.kind == "decimal":
        room = (target.precision or 0) - (target.scale or 0) - (own.precision or 0) + (own.scale or 0)
        return own.kind if room < 0 or (target.scale or 0) < (own.scale or 0) else ""
    if own.max_length and target.max_length and own.max_length > target.max_length:
        return own.kind
    if own.kind != "struct":
        return next(filter(None, map(_lost, own.children, target.children)), "")
    places = fields_of(own, target, is_top=is_top)
    if not is_top and (dropped := [name for name in own.names if name not in target.names]):
        return f"field {dropped[0]}"
    losses = (
        (name, _lost(own.children[place], child))
        for place, (name, child) in zip(places, target.fields(), strict=True)
        if place is not None
    )
    return next((f"{what} in {name}" for name, what in losses if what), "")
