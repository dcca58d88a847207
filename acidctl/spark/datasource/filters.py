"""Filters that Spark hands down: which partitions and stripes cannot hold a row that meets them.

Spark gets every filter back and applies it to the rows itself, so a filter is only ever used to leave out what
statistics exclude.  Left alone are floating-point columns, where NaN is the greatest value to Spark and none to
statistics, and fields inside columns.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from acidctl.orc.types import OrcType, arrow_type
from acidctl.rows.read.events import EventFile
from acidctl.rows.scan.columns import PartitionColumn
from acidctl.rows.scan.compare import Literal, Moment
from acidctl.rows.scan.pruning import ColumnBounds, constant, stripe_bounds

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_SIGNS = {"EqualTo": "=", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">="}


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter as values alone: small, picklable, the same in every version of Spark.

    Attributes:
        column: a top-level column's name as the schema has it.
        kind: a comparison sign, ``in``, ``null`` or ``not null``.
        values: what is compared with.
        negated: whether it must be false.
    """

    column: str
    kind: str
    values: tuple[Literal, ...] = ()
    negated: bool = False

    def may(self, known: ColumnBounds) -> bool:
        """Whether a row may meet it, by what is known of the column."""
        if self.kind == "null":
            return known.values if self.negated else known.nulls
        if self.kind == "not null":
            return known.nulls if self.negated else known.values
        if self.kind == "in":
            return known.values if self.negated else any(known.may("=", value) for value in self.values)
        return known.may(self.kind, self.values[0], negated=self.negated)


def conditions(filters: Iterable[Any]) -> list[Condition]:
    """Those of Spark's filters that can be used; the others are left out."""
    return [found for one in filters if (found := _condition(one)) is not None]


def _condition(one: Any) -> Condition | None:
    name = type(one).__name__
    if name == "Not":
        inner = _condition(one.child)
        if inner is None or inner.negated:
            return None
        return Condition(inner.column, inner.kind, inner.values, negated=True)
    if len(getattr(one, "attribute", ())) != 1:
        return None
    column = one.attribute[0]
    if name in ("IsNull", "IsNotNull"):
        return Condition(column, "null" if name == "IsNull" else "not null")
    if name == "In":
        values = [_literal(value) for value in one.value if value is not None]
        return None if None in values else Condition(column, "in", tuple(values))
    if name in _SIGNS:
        value = _literal(one.value)
        return None if value is None else Condition(column, _SIGNS[name], (value,))
    return None


def _literal(value: Any) -> Literal:
    """A value of Spark's in terms of :mod:`acidctl.rows.scan.compare`; None for kinds that statistics do not decide."""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            return None
        since = value - datetime.datetime(1970, 1, 1)
        return Moment(((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000)
    if isinstance(value, datetime.date):
        return Moment((value.toordinal() - _EPOCH) * 86_400 * 1_000_000_000)
    return value if isinstance(value, bool | int | str | Decimal) else None


def may_match(found: Iterable[Condition], bounds: Callable[[str], ColumnBounds | None]) -> bool:
    """Whether a row may meet all conditions; `bounds` gives None for what it does not know."""
    return all((known := bounds(one.column)) is None or one.may(known) for one in found)


def partition_bounds(partition: Iterable[PartitionColumn]) -> dict[str, ColumnBounds]:
    """What a location's partition values say of its partition columns."""
    return {column.name: constant(arrow_type(OrcType(column.kind)), column.literal) for column in partition}


def stripes_that_may_match(
    sources: Iterable[EventFile],
    only: Mapping[str, range],
    found: list[Condition],
    positions: Mapping[str, int],
    row_type: OrcType,
) -> dict[str, range]:
    """The stripes of `only` that may hold rows which meet all conditions: of each file from the first to the last.

    Args:
        positions: of the data columns in `row_type`, by the names that conditions use.

    Raises:
        BadDataError: a file's statistics are damaged.
    """
    kept: dict[str, range] = {}
    for source in sources:
        path, own = source.file.path, source.row_type.children
        hits = []
        for stripe in only.get(path, range(0)):
            known = stripe_bounds(source.tail, stripe)

            def bounds(name: str, known: Any = known, own: Any = own) -> ColumnBounds | None:
                position = positions.get(name)
                if position is None or position >= len(own):
                    return None
                target = row_type.children[position]
                unsafe = target.kind in ("float", "double") or own[position].kind in ("float", "double")
                return None if unsafe else known(own[position], target)

            if may_match(found, bounds):
                hits.append(stripe)
        if hits:
            kept[path] = range(hits[0], hits[-1] + 1)
    return kept
