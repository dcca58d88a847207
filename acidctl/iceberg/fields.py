"""The columns of an Iceberg table as plain values, and how those of Hive become them; without PyIceberg.

A column of a data file is copied if Iceberg's readers read its streams as the table's type.  Otherwise its values are
encoded again.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from acidctl.base.errors import RefusedError
from acidctl.orc.tail import Tail
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType, hive_type
from acidctl.rows.convert.matching import fields_of

_KINDS = {
    "boolean": "boolean", "tinyint": "int", "smallint": "int", "int": "int", "bigint": "long", "float": "float",
    "double": "double", "decimal": "decimal", "string": "string", "varchar": "string", "char": "string",
    "binary": "binary", "date": "date", "timestamp": "timestamp", "timestamp with local time zone": "timestamptz",
    "struct": "struct", "array": "list", "map": "map",
}  # fmt: skip
"""Iceberg's name of each type of Hive that it has."""

_PLAIN = {
    "long": "bigint", "timestamptz": "timestamp with local time zone", "list": "array",
}  # fmt: skip
"""The ORC types of the Iceberg types that have another name there."""

_READ_AS = {
    "boolean": ("boolean",), "tinyint": ("int",), "smallint": ("int", "long"), "int": ("int", "long"),
    "bigint": ("long",), "float": ("float", "double"), "double": ("double",), "string": ("string",),
    "varchar": ("string",), "binary": ("binary",), "date": ("date",), "timestamp": ("timestamp",),
    "timestamp with local time zone": ("timestamptz",), "decimal": ("decimal",),
}  # fmt: skip
"""The Iceberg types as which readers take the streams of an ORC type, after it was relabelled."""

DAY_KINDS = ("date", *TIMESTAMP_KINDS)
"""The types of Hive with days."""

RESERVED = frozenset((
    "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number", "_change_type",
    "_change_ordinal", "_commit_snapshot_id",
))  # fmt: skip
"""Names of Iceberg's metadata columns."""

_FIRST_OF_CALENDAR = (date(1582, 10, 15) - date(1970, 1, 1)).days
"""The first day that has the same number in both calendars, counted from 1970."""

_DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class Field:
    """A column of an Iceberg table, a field of a struct, the element of a list, or the key or value of a map.

    Attributes:
        kind: Iceberg's name of its type, without parameters.
        children: the fields of a struct, the element of a list, the key and value of a map.
    """

    id: int
    name: str
    kind: str
    precision: int = 0
    scale: int = 0
    children: tuple[Field, ...] = ()

    @property
    def stored(self) -> OrcType:
        """Return the ORC type of a column that is encoded for this field."""
        names = tuple(child.name for child in self.children) if self.kind == "struct" else ()
        kind = _PLAIN.get(self.kind, self.kind)
        children = tuple(child.stored for child in self.children)
        return OrcType(
            kind, children=children, names=names, precision=self.precision, scale=self.scale, attributes=_ids(self)
        )

    @property
    def type_name(self) -> str:
        """Return Iceberg's type in words: ``decimal(10,2)``, ``struct<a: int>``."""
        inner = ", ".join(child.type_name for child in self.children)
        if self.kind == "struct":
            inner = ", ".join(f"{child.name}: {child.type_name}" for child in self.children)
        if self.kind == "decimal":
            return f"decimal({self.precision},{self.scale})"
        return f"{self.kind}<{inner}>" if self.children else self.kind

    def walk(self) -> Iterator[Field]:
        """Yield this field and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def fields_for(row: OrcType) -> tuple[Field, ...]:
    """Return the fields of the columns of a Hive table; ids are counted from 1, those of the columns first.

    Raises:
        RefusedError: Iceberg has no such type, or the name cannot be used; the column is named.
    """
    _refuse_names(row, "")
    ids = itertools.count(len(row.children) + 1)
    return tuple(_field(at, name, kind, name, ids) for at, (name, kind) in enumerate(row.fields(), 1))


def _field(id_: int, name: str, kind: OrcType, path: str, ids: Iterator[int]) -> Field:
    if kind.kind not in _KINDS:
        raise RefusedError(
            f"column {path} cannot become a column of Iceberg",
            f"Iceberg has no type for {hive_type(kind)}",
            "leave it out by --drop-column, or change its type in Hive first",
        )
    if kind.kind == "decimal" and not kind.precision:
        why = "its files do not state the precision of the decimals"
        raise RefusedError(f"column {path} cannot become a column of Iceberg", why, "name the table: hive:db.table")
    if kind.kind == "struct":
        if not kind.children:
            why = "it is a struct without fields, which no reader of Iceberg takes"
            raise RefusedError(f"column {path} cannot become a column of Iceberg", why, "leave it out by --drop-column")
        _refuse_names(kind, f"{path}.")
    names = kind.names or {"array": ("element",), "map": ("key", "value")}.get(kind.kind, ())
    own = [next(ids) for _ in kind.children]
    triples = zip(own, names, kind.children, strict=True)
    children = tuple(_field(at, child, inner, f"{path}.{child}", ids) for at, child, inner in triples)
    return Field(id_, name.lower(), _KINDS[kind.kind], kind.precision, kind.scale, children)


def _refuse_names(row: OrcType, prefix: str) -> None:
    for name, count in Counter(map(str.lower, row.names)).items():
        why = "several columns have this name, if case does not count" if count > 1 else ""
        if not prefix and name in RESERVED:
            why = "Iceberg uses this name itself"
        if why:
            hint = "rename it in Hive first: ALTER TABLE ... CHANGE; or leave the column out by --drop-column"
            raise RefusedError(f"column {prefix}{name} cannot become a column of Iceberg", why, hint)


def _ids(field: Field) -> tuple[tuple[str, str], ...]:
    return (("iceberg.id", str(field.id)), ("iceberg.required", "false"))


@dataclass(frozen=True, slots=True)
class CopiedColumn:
    """A column of a data file whose streams are copied.

    Attributes:
        type: its type in the new file, with Iceberg's ids.
        ids: the column ids in the file of `type` and all types below it.
    """

    type: OrcType
    ids: tuple[int, ...]


class NotCopied(Exception):
    """The values of a column must be encoded again; the text says why."""


def copied_column(own: OrcType, target: OrcType, field: Field, tail: Tail) -> CopiedColumn:
    """Return how the streams of a column of a file are copied.

    Args:
        own, target: its types in the file and in the Hive table.

    Raises:
        NotCopied: Iceberg's readers would not find the values that Hive shows.
    """
    if own.kind == "uniontype" or own.kind not in _KINDS:
        raise NotCopied(f"{own.kind} has no streams that Iceberg reads")
    if own.kind in ("struct", "array", "map"):
        return _nested(own, target, field, tail)
    if own.kind == "char":
        raise NotCopied("Iceberg's readers would find its padding")
    if field.kind not in _READ_AS[own.kind] or _is_narrower(own, target):
        raise NotCopied(f"its type was {hive_type(own)}")
    if own.kind in DAY_KINDS and _may_be_old(own, tail):
        raise NotCopied("it has days before 1582-10-15 of the old calendar")
    label = field.kind if own.kind in ("smallint", "int", "varchar") else own.kind
    kind = OrcType(_PLAIN.get(label, label), precision=field.precision, scale=field.scale, attributes=_ids(field))
    return CopiedColumn(kind, (own.column_id,))


def _is_narrower(own: OrcType, target: OrcType) -> bool:
    """Return whether Hive changes values of a file when it reads them as the table's type of the same Iceberg type."""
    if own.kind == "decimal":
        return not own.precision or own.scale != target.scale or own.precision > target.precision
    longest = target.max_length if target.kind in ("char", "varchar") else 0
    return bool(longest) and (own.kind != "varchar" or own.max_length > longest)


def _nested(own: OrcType, target: OrcType, field: Field, tail: Tail) -> CopiedColumn:
    if own.kind != target.kind:
        raise NotCopied(f"its type was {hive_type(own)}")
    places: Sequence[int | None] = range(len(own.children))
    if own.kind == "struct":
        places = fields_of(own, target)
        if all(place is None for place in places):
            raise NotCopied("none of its fields is in the file")
    parts = [
        copied_column(own.children[place], kind, inner, tail)
        for place, kind, inner in zip(places, target.children, field.children, strict=True)
        if place is not None
    ]
    names: tuple[str, ...] = ()
    if own.kind == "struct":
        names = tuple(inner.name for place, inner in zip(places, field.children, strict=True) if place is not None)
    kind = OrcType(own.kind, children=tuple(part.type for part in parts), names=names, attributes=_ids(field))
    return CopiedColumn(kind, (own.column_id, *itertools.chain(*(part.ids for part in parts))))


def _may_be_old(own: OrcType, tail: Tail) -> bool:
    """Return whether a column may have days that the two calendars number differently.

    Iceberg's readers take every file as one of the old calendar, and days as the proleptic calendar numbers them.
    """
    return tail.calendar != "proleptic_gregorian" and may_have_old_days(own, tail)


def may_have_old_days(own: OrcType, tail: Tail) -> bool:
    """Return whether a column of days or times may have some before 1582-10-15, by the statistics of its file."""
    statistics = tail.true_statistics(own.column_id)
    if statistics is None:
        return True
    if statistics.HasField("numberOfValues") and not statistics.numberOfValues:
        return False
    if own.kind == "date":
        dates = statistics.dateStatistics
        return not dates.HasField("minimum") or dates.minimum < _FIRST_OF_CALENDAR
    times = statistics.timestampStatistics
    if times.HasField("minimumUtc"):
        return times.minimumUtc < _FIRST_OF_CALENDAR * _DAY
    return not times.HasField("minimum") or times.minimum - _DAY < _FIRST_OF_CALENDAR * _DAY
