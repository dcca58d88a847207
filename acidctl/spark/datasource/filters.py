"""Turn Spark's filters into conditions that leave out partitions and stripes without matching rows.

Filters come as Spark's own objects, or in the notes of the rule of :mod:`acidctl.spark.datasource.pruning`.  Spark
applies every filter to the rows as well, so a condition only leaves out what statistics exclude.  Filters on fields
inside columns are ignored, and those on floating-point columns, where NaN is the greatest value to Spark only.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from acidctl.orc.types import TIMESTAMP_KINDS
from acidctl.rows.scan.columns import ColumnSource, PartitionColumn, ScanColumn
from acidctl.rows.scan.compare import Literal, Moment
from acidctl.rows.scan.predicate import AllOf, AnyOf, ColumnComparison, ColumnRef, IsNull, Node, Not, Path, Predicate
from acidctl.rows.scan.pruning import ColumnBounds

_Reader = Callable[[Any, Mapping[str, ColumnRef]], Node | None]

_SIGNS = {"EqualTo": "=", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">="}
_DAY, _MICROSECOND = 86_400 * 10**9, 1000
_LITERALS: dict[str, Callable[[str], Literal]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    "boolean": lambda text: text == "true",
    "string": str,
    "date": lambda text: Moment(int(text) * _DAY),
    "timestamp_ntz": lambda text: Moment(int(text) * _MICROSECOND),
}
"""Values by the type of Spark, out of the text of a note; that of a decimal has numbers in its name."""


def condition_of(filters: Iterable[Any], columns: Mapping[str, ScanColumn]) -> Predicate | None:
    """Return Spark's usable filters as one condition, None if there are none; `columns` are by the filters' names."""
    return _condition(filters, columns, _node)


def noted_condition(notes: Iterable[Mapping[str, Any]], columns: Mapping[str, ScanColumn]) -> Predicate | None:
    """Return the condition of the optimizer rule's notes."""
    return _condition(notes, columns, _noted)


def _condition(filters: Iterable[Any], columns: Mapping[str, ScanColumn], read: _Reader) -> Predicate | None:
    usable = {name: ColumnRef((column.name,)) for name, column in columns.items() if _is_usable(column)}
    nodes = [node for item in filters if (node := read(item, usable)) is not None]
    return Predicate("Spark's filters", AllOf(tuple(nodes)), [ref.path for ref in usable.values()]) if nodes else None


def _is_usable(column: ScanColumn) -> bool:
    if column.kind is ColumnSource.ROW_ID or len(column.place) != 1 or column.type.kind in ("float", "double"):
        return False
    # Of a partition the value is known to the nanosecond, and without padding; Spark sees microseconds, and padding.
    return column.kind is not ColumnSource.PARTITION or column.type.kind not in (*TIMESTAMP_KINDS, "char")


def _noted(note: Mapping[str, Any], columns: Mapping[str, ColumnRef]) -> Node | None:
    """Return the condition of a note; None unless all of it can be used."""
    sign = note["op"]
    if "parts" in note:
        parts = tuple(node for part in note["parts"] if (node := _noted(part, columns)) is not None)
        if len(parts) < len(note["parts"]):
            return None
        return Not(parts[0]) if sign == "not" else AllOf(parts) if sign == "and" else AnyOf(parts)
    column = columns.get(note["column"])
    if column is None:
        return None
    if sign in ("null", "not null"):
        return IsNull(column) if sign == "null" else Not(IsNull(column))
    literal = _LITERALS.get(note["type"], Decimal)
    values = tuple(
        ColumnComparison(column, "=" if sign in ("in", "<=>") else sign, literal(text)) for text in note["values"]
    )
    return AnyOf(values) if sign != "<=>" else AllOf((Not(IsNull(column)), *values))


def _node(item: Any, columns: Mapping[str, ColumnRef]) -> Node | None:
    name = type(item).__name__
    if name == "Not":
        inner = _node(item.child, columns)
        return None if inner is None else Not(inner)
    attribute: tuple[str, ...] = getattr(item, "attribute", ())
    column = columns.get(attribute[0]) if len(attribute) == 1 else None
    if column is None:
        return None
    if name in ("IsNull", "IsNotNull"):
        return IsNull(column) if name == "IsNull" else Not(IsNull(column))
    if name not in ("In", *_SIGNS):
        return None
    # NULL in a list makes no row meet the filter.
    values = [_literal(value) for value in (item.value if name == "In" else (item.value,)) if value is not None]
    if None in values:
        return None
    parts = tuple(ColumnComparison(column, _SIGNS.get(name, "="), value) for value in values)
    return AnyOf(parts)


def _literal(value: Any) -> Literal:
    """Return a value of Spark for :mod:`acidctl.rows.scan.compare`; None for kinds that statistics do not decide."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return None
    if isinstance(value, datetime.date):
        return Moment.of(value)
    return value if isinstance(value, bool | int | str | Decimal) else None


def partition_bounds(partition: Iterable[PartitionColumn], hidden: Iterable[str]) -> dict[Path, ColumnBounds]:
    """Return the bounds of a location's partition columns, except those that the data columns `hidden` hide."""
    taken = {name.lower() for name in hidden}
    return {
        (column.name,): bounds for column in partition if column.name.lower() not in taken and (bounds := column.bounds)
    }
