"""Bounds of a column from stripe statistics, by which stripes that cannot match a condition are skipped.

Statistics are used only if they can be trusted. Never: files without a row index (their statistics are
meaningless, format section 3.4), CHAR (padding), timestamps without UTC bounds or before 1700, old Hive's strings
(HIVE-8732), dates of two calendars, columns whose type the location's newer files changed or made shorter, bounds that
replaced bytes that were not UTF-8, bounds of floating point numbers with a NaN among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import pyarrow as pa

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.read.wide_timestamps import SWITCH, is_hybrid
from acidctl.orc.tail import Tail
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType, arrow_type
from acidctl.rows.convert.matching import alike
from acidctl.rows.scan.compare import NEGATED, OPERATORS, Literal, MismatchError, domain, to_float

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_FLOATS = ("float", "double")
_TEXTS = ("string", "varchar")
DAY_MS = 86_400_000
YEAR_1700_MS = -8_520_336_000_000
# Presto and Trino write no sum, and no bounds if there is a NaN.
_BOUNDS_WITHOUT_NAN = (2, 4)
# The writer version of Java that corrected the greatest string of a stripe.
_HIVE_8732 = 1


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """The possible values of a column in some rows.

    Attributes:
        kind: the column's Arrow type.
        nulls: whether there may be a NULL.
        values: whether there may be anything else.
        low: at most the least value, in the units of :func:`acidctl.rows.scan.compare.domain`; None if unknown.
        high: at least the greatest value.
        absent: returns whether a value, in the same units, is certainly not among them; None if unknown.
    """

    kind: pa.DataType
    nulls: bool = True
    values: bool = True
    low: Any = None
    high: Any = None
    absent: Callable[[Any], bool] | None = None

    def may(self, sign: str, value: Literal, *, negated: bool = False) -> bool:
        """Return whether ``column sign value`` may be true for some row, or false if `negated`."""
        if value is None or not self.values:
            return False  # a comparison with NULL is neither
        if negated:
            if pa.types.is_floating(self.kind):
                return True  # a NaN makes every comparison but <> false
            sign = NEGATED[sign]
        try:
            wanted = domain(self.kind, value)
        except MismatchError:
            return True
        low, high = self.low, self.high
        compare = OPERATORS[sign]
        if sign == "=":
            within = (low is None or low <= wanted) and (high is None or high >= wanted)
            return within and not (self.absent and self.absent(wanted))
        if sign == "<>":
            return pa.types.is_floating(self.kind) or low is None or low != high or low != wanted
        bound = low if sign[0] == "<" else high
        return bound is None or bool(compare(bound, wanted))


def constant(kind: pa.DataType, value: Literal) -> ColumnBounds:
    """Return the bounds of a column with one value in all rows, for example of a partition."""
    if value is None:
        return ColumnBounds(kind, nulls=True, values=False)
    wanted = domain(kind, to_float(value) if isinstance(value, float) and pa.types.is_float32(kind) else value)
    return ColumnBounds(kind, nulls=False, values=True, low=wanted, high=wanted)


def integers(kind: pa.DataType, limits: tuple[int, int]) -> ColumnBounds:
    """Return the bounds of whole numbers in a range without NULLs."""
    return ColumnBounds(kind, nulls=False, values=True, low=Fraction(limits[0]), high=Fraction(limits[1]))


def stripe_bounds(tail: Tail, stripe: int) -> Callable[[OrcType, OrcType], ColumnBounds | None]:
    """Return a function from a column's type in the file, and the type it is read as, to its bounds in a stripe.

    The function returns None for unknown bounds.
    """
    statistics = tail.stripe_statistics(stripe) if tail.stride else None
    rows = tail.stripes[stripe].numberOfRows
    # A writer that does not count the rows in the root column wrote no usable statistics.
    if not statistics or not statistics[0].HasField("numberOfValues") or statistics[0].numberOfValues != rows:
        return lambda own, target: None  # noqa: ARG005
    return lambda own, target: _bounds(tail, statistics, rows, own, target)


def _bounds(
    tail: Tail, statistics: Sequence[pb.ColumnStatistics], rows: int, own: OrcType, target: OrcType
) -> ColumnBounds | None:
    if not 0 < own.column_id < len(statistics):
        return None
    column = statistics[own.column_id]
    if not column.HasField("numberOfValues") or column.numberOfValues > rows:
        return None
    kind = arrow_type(target)
    # A value that the newer type cannot hold is NULL.
    nulls, values = column.numberOfValues < rows or not alike(own, target), column.numberOfValues > 0
    low, high = _range(tail, column, own, target) if values else (None, None)
    if low is not None and high is not None and low > high:
        return ColumnBounds(kind, nulls, values)
    return ColumnBounds(kind, nulls, values, low, high)


def _range(tail: Tail, column: pb.ColumnStatistics, own: OrcType, target: OrcType) -> tuple[Any, Any]:
    """Return the least and the greatest value; None if the statistics are missing or cannot be trusted."""
    if own.kind in _INTEGERS and target.kind in _INTEGERS:
        low, high = _ends(column.intStatistics)
        return (None if low is None else Fraction(low)), (None if high is None else Fraction(high))
    if own.kind in _FLOATS and target.kind in (own.kind, "double"):
        low, high = _doubles(column.doubleStatistics, tail.footer.writer)
        # ORC C++ keeps statistics of the doubles that it was given; a FLOAT column holds the nearest floats.
        return (low, high) if own.kind == "double" or low is None else (to_float(low), to_float(high))
    if own.kind in _TEXTS and target.kind in _TEXTS:
        cut = target.kind == "varchar" and not 0 < (own.max_length or 0) <= (target.max_length or 0)
        if not cut and (tail.footer.writer != 0 or tail.writer_version >= _HIVE_8732):
            return _texts(column.stringStatistics)
    if own.kind == target.kind == "date":
        low, high = _ends(column.dateStatistics)
        is_known = low is not None and high is not None and not (is_hybrid(tail) and low < SWITCH)
        return (Fraction(low), Fraction(high)) if is_known else (None, None)
    if own.kind == target.kind and own.kind in TIMESTAMP_KINDS:
        return _times(column.timestampStatistics)
    same_decimals = (own.kind, own.precision, own.scale) == (target.kind, target.precision, target.scale)
    if own.kind == "decimal" and own.precision and same_decimals:
        return _decimals(column.decimalStatistics, own.scale)
    return None, None


def _ends(statistics: Any, low: str = "minimum", high: str = "maximum") -> tuple[Any, Any]:
    return tuple(getattr(statistics, name) if statistics.HasField(name) else None for name in (low, high))  # type: ignore[return-value]


def _doubles(statistics: pb.DoubleStatistics, writer: int) -> tuple[Any, Any]:
    """Return the bounds if the sum shows, as in Java's reader, that there is no NaN among the values.

    ORC's writers start the bounds of a row group with its first value, and no comparison replaces a NaN. Then
    the stripe has only the bounds of its other row groups, and only the sum of the stripe is NaN.
    """
    low, high = _ends(statistics)
    if not statistics.HasField("sum") and writer not in _BOUNDS_WITHOUT_NAN:
        return None, None
    if any(end is None or math.isnan(end) for end in (low, high, statistics.sum)):
        return None, None
    return low, high


def _texts(statistics: pb.StringStatistics) -> tuple[Any, Any]:
    low, high = _ends(statistics)
    shorter, longer = _ends(statistics, "lowerBound", "upperBound")
    low, high = (shorter if low is None else low), (longer if high is None else high)
    # Java replaces bytes that are not UTF-8 with U+FFFD, which sorts differently; "" may mean that there is no bound.
    odd = "\N{REPLACEMENT CHARACTER}".encode()
    return (None if low is None or odd in low else low), (None if not high or odd in high else high)


def _times(statistics: pb.TimestampStatistics) -> tuple[Any, Any]:
    """Return bounds a day wider, since milliseconds are truncated and writers treat gaps of time zones differently."""
    low, high = _ends(statistics, "minimumUtc", "maximumUtc")
    if low is None or high is None or low < YEAR_1700_MS or high < low:
        return None, None
    return Fraction((low - DAY_MS) * 1_000_000), Fraction((high + DAY_MS) * 1_000_000)


def _decimals(statistics: pb.DecimalStatistics, scale: int) -> tuple[Any, Any]:
    ends: list[Fraction | None] = []
    for text in _ends(statistics):
        try:
            number = Decimal(text) if text else None
        except InvalidOperation:
            number = None
        finite = number is not None and number.is_finite() and abs(number.adjusted()) < 100
        ends.append(Fraction(number) * 10**scale if finite and number is not None else None)
    return ends[0], ends[1]
