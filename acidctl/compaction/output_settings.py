"""The settings and columns of the files that a compaction writes: by default those of the newest input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.base.errors import RefusedError
from acidctl.base.nearest import member
from acidctl.compaction.proof.checksum import Verify
from acidctl.location.snapshot import Snapshot
from acidctl.orc.types import OrcType
from acidctl.orc.write.writer_settings import CODECS, WriterSettings, bloom_columns
from acidctl.rows.convert.matching import alike, fields_of, merge_row_types, table_row_type
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import EventFile


@dataclass(frozen=True, slots=True)
class Writing:
    """The options by which results of compactions are written.

    Attributes:
        overrides: fields of :class:`WriterSettings` that the user chose; with any of them every stripe is re-encoded.
        task_bytes: buckets with more input bytes are cut into segments of about this size; by default they are cut if
            cores would be idle.
        verify: how results are proven.
        reader: the version of Hive that reads the tables. By default it is the version of the metastore; without one,
            whatever versions read differently is refused.
        apply_all_deletes: a major compaction also applies deletes that Hive overlooks because they are in files of
            other buckets, or not sorted. By default such deletes are refused.
    """

    overrides: Mapping[str, Any] = field(default_factory=dict)
    task_bytes: int | None = None
    verify: Verify = Verify.BYTES
    reader: Hive | None = None
    apply_all_deletes: bool = False

    def __post_init__(self) -> None:
        """Accept `reader` as text: ``Writing(reader="hive4")``."""
        if self.reader is not None:
            object.__setattr__(self, "reader", member(Hive, self.reader, "Hive"))

    def settings_for(self, newest: EventFile | None, kind: CompactionKind) -> WriterSettings:
        """Return the recommended settings (section 3.5) with the newest input's codec and stride, and the overrides."""
        tail = newest.tail if newest and newest.format is Format.ORC else None
        make = WriterSettings.for_base if kind is CompactionKind.MAJOR else WriterSettings.for_delta
        settings = make(compression=tail.compression if tail and tail.compression in CODECS else "zlib")
        # Stripes can be copied only into a file of their own stride (see merge/written.py).
        if tail and tail.stride:
            settings = replace(settings, stride=tail.stride, bloom_columns=bloom_columns(tail))
        return replace(settings, **self.overrides)


_WIDER = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))


def output_row_type(snapshot: Snapshot, types: Sequence[OrcType]) -> OrcType:
    """Return the row type of the output.

    If all files have the same columns, the output has them as well, whatever the table's columns are now, so that
    nothing is converted. Otherwise it has the table's columns from the metastore, or those of the newest file.

    Args:
        types: the row types of the files, oldest first; at least one.

    Raises:
        RefusedError: the newest file cannot hold all values of older files, and the table's type is unknown; or the
            files differ, and a property of the table makes the two Hives match their fields in different ways.
    """
    row = merge_row_types(types)
    if all(alike(file_type, row) for file_type in types):
        return row
    if snapshot.table and snapshot.table.columns:
        table = table_row_type(replace(snapshot.table, hive=None), types)  # files on which the Hives differ are refused
        if snapshot.table.levels > 1:
            raise RefusedError(
                f"cannot compact {snapshot.shown}",
                "its files have different columns, and by orc.force.positional.evolution.level Hive 4 finds fields by"
                " position, and Hive 3 by name",
                "let Hive compact it",
            )
        behind = slice(len(table.names), None)  # Hive shows them again when columns are added
        names, children = (*table.names, *row.names[behind]), (*table.children, *row.children[behind])
        return replace(table, children=children, names=names)
    for file_type in dict.fromkeys(types):
        if lost := _lost(file_type, row, is_top=True):
            raise RefusedError(
                f"cannot compact {snapshot.shown}",
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
