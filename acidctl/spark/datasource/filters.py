"""Filters that Spark hands down: which partitions and stripes cannot hold a row that meets them.

Spark gets every filter back and applies it to the rows itself, so a filter is only ever used to leave out what
statistics exclude.  Left alone are floating-point columns, where NaN is the greatest value to Spark and none to
statistics, and fields inside columns.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from acidctl.rows.scan.columns import ColumnSource, PartitionColumn, ScanColumn
from acidctl.rows.scan.compare import Literal, Moment
from acidctl.rows.scan.predicate import AllOf, AnyOf, ColumnComparison, ColumnRef, IsNull, Node, Not, Path, Predicate
from acidctl.rows.scan.pruning import ColumnBounds

_SIGNS = {"EqualTo": "=", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">="}


def condition_of(filters: Iterable[Any], columns: Mapping[str, ScanColumn]) -> Predicate | None:
    """Those of Spark's filters that can be used, as one condition; None where there is none.

    Args:
        columns: by the names that filters use.
    """
    usable = {
        name: ColumnRef((column.name,))
        for name, column in columns.items()
        if column.kind is not ColumnSource.ROW_ID
        and len(column.place) == 1
        and column.type.kind not in ("float", "double")
    }
    nodes = [node for one in filters if (node := _node(one, usable)) is not None]
    return Predicate("Spark's filters", AllOf(tuple(nodes)), [ref.path for ref in usable.values()]) if nodes else None


def _node(one: Any, columns: Mapping[str, ColumnRef]) -> Node | None:
    name = type(one).__name__
    if name == "Not":
        inner = _node(one.child, columns)
        return None if inner is None else Not(inner)
    attribute: tuple[str, ...] = getattr(one, "attribute", ())
    column = columns.get(attribute[0]) if len(attribute) == 1 else None
    if column is None:
        return None
    if name in ("IsNull", "IsNotNull"):
        return IsNull(column) if name == "IsNull" else Not(IsNull(column))
    if name not in ("In", *_SIGNS):
        return None
    # NULL in a list makes no row meet the filter.
    values = [_literal(value) for value in (one.value if name == "In" else (one.value,)) if value is not None]
    if None in values:
        return None
    parts = tuple(ColumnComparison(column, _SIGNS.get(name, "="), value) for value in values)
    return AnyOf(parts)


def _literal(value: Any) -> Literal:
    """A value of Spark's in terms of :mod:`acidctl.rows.scan.compare`; None for kinds that statistics do not decide."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return None
    if isinstance(value, datetime.date):
        return Moment.of(value)
    return value if isinstance(value, bool | int | str | Decimal) else None


def partition_bounds(partition: Iterable[PartitionColumn], hidden: Iterable[str]) -> dict[Path, ColumnBounds]:
    """What a location's partition values say of its partition columns, but those that data columns `hidden` hide."""
    taken = {name.lower() for name in hidden}
    return {
        (column.name,): bounds for column in partition if column.name.lower() not in taken and (bounds := column.bounds)
    }
