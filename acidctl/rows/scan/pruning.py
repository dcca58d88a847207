"""What stripe statistics say of a column, and which stripes a condition therefore cannot match.

Statistics are used where they can be trusted and nowhere else.  Never: files without a row index (their statistics are
meaningless, format section 3.4), CHAR (padding), timestamps without UTC bounds or before 1700, old Hive's strings
(HIVE-8732), dates of two calendars, columns whose type the location's newer files changed or made shorter, bounds that
replaced bytes that were not UTF-8, bounds of floating point numbers beside a NaN.
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
_BOUNDS_WITHOUT_NAN = (2, 4)
"""Presto and Trino: they write no sum, and no bounds where there is a NaN."""
_HIVE_8732 = 1
"""The writer version of Java that made the greatest string of a stripe right."""


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """What is known of a column in some rows.

    Attributes:
        kind: the column's Arrow type.
        nulls: whether there may be a NULL.
        values: whether there may be anything else.
        low: at most the least value, in the units of :func:`acidctl.rows.scan.compare.domain`; None when unknown.
        high: at least the greatest value.
        absent: whether a value, in the same units, is among them for certain not; None where nothing tells that.
    """

    kind: pa.DataType
    nulls: bool = True
    values: bool = True
    low: Any = None
    high: Any = None
    absent: Callable[[Any], bool] | None = None

    def may(self, sign: str, value: Literal, *, negated: bool = False) -> bool:
        """Whether ``column sign value`` may be true for some row, or false when `negated`."""
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
        known = low if sign[0] == "<" else high
        return known is None or bool(compare(known, wanted))


def constant(kind: pa.DataType, value: Literal) -> ColumnBounds:
    """A column with one value in all rows, a partition's for example."""
    if value is None:
        return ColumnBounds(kind, nulls=True, values=False)
    wanted = domain(kind, to_float(value) if isinstance(value, float) and pa.types.is_float32(kind) else value)
    return ColumnBounds(kind, nulls=False, values=True, low=wanted, high=wanted)


def integers(kind: pa.DataType, found: tuple[int, int]) -> ColumnBounds:
    """Whole numbers in a range, no NULL among them."""
    return ColumnBounds(kind, nulls=False, values=True, low=Fraction(found[0]), high=Fraction(found[1]))


def stripe_bounds(tail: Tail, stripe: int) -> Callable[[OrcType, OrcType], ColumnBounds | None]:
    """What is known of the columns of a stripe.

    Returns:
        A function of the column's type in the file and the type it is read as; None when nothing is known.
    """
    statistics = tail.stripe_statistics(stripe) if tail.stride else None
    rows = tail.stripes[stripe].numberOfRows
    # A writer that counts the rows in the root column has kept statistics at all.
    if not statistics or not statistics[0].HasField("numberOfValues") or statistics[0].numberOfValues != rows:
        return lambda own, target: None  # noqa: ARG005
    return lambda own, target: _bounds(tail, statistics, rows, own, target)


def _bounds(
    tail: Tail, statistics: Sequence[pb.ColumnStatistics], rows: int, own: OrcType, target: OrcType
) -> ColumnBounds | None:
    if not 0 < own.column_id < len(statistics):
        return None
    found = statistics[own.column_id]
    if not found.HasField("numberOfValues") or found.numberOfValues > rows:
        return None
    kind = arrow_type(target)
    # A value that the newer type cannot hold is NULL.
    nulls, values = found.numberOfValues < rows or not alike(own, target), found.numberOfValues > 0
    low, high = _range(tail, found, own, target) if values else (None, None)
    if low is not None and high is not None and low > high:
        return ColumnBounds(kind, nulls, values)
    return ColumnBounds(kind, nulls, values, low, high)


def _range(tail: Tail, found: pb.ColumnStatistics, own: OrcType, target: OrcType) -> tuple[Any, Any]:
    """Least and greatest value where they can be trusted; None where not, or where there are no such statistics."""
    if own.kind in _INTEGERS and target.kind in _INTEGERS:
        return _numbers(found.intStatistics)
    if own.kind in _FLOATS and target.kind in (own.kind, "double"):
        low, high = _doubles(found.doubleStatistics, tail.footer.writer)
        # ORC C++ keeps statistics of the doubles that it was given; a FLOAT column holds the nearest floats.
        return (low, high) if own.kind == "double" or low is None else (to_float(low), to_float(high))
    if own.kind in _TEXTS and target.kind in _TEXTS:
        cut = target.kind == "varchar" and not 0 < (own.max_length or 0) <= (target.max_length or 0)
        if not cut and (tail.footer.writer != 0 or tail.writer_version >= _HIVE_8732):
            return _texts(found.stringStatistics)
    if own.kind == target.kind == "date":
        return _dates(found.dateStatistics, hybrid=is_hybrid(tail))
    if own.kind == target.kind and own.kind in TIMESTAMP_KINDS:
        return _times(found.timestampStatistics)
    same_decimals = (own.kind, own.precision, own.scale) == (target.kind, target.precision, target.scale)
    if own.kind == "decimal" and own.precision and same_decimals:
        return _decimals(found.decimalStatistics, own.scale)
    return None, None


def _ends(found: Any, low: str = "minimum", high: str = "maximum") -> tuple[Any, Any]:
    return tuple(getattr(found, name) if found.HasField(name) else None for name in (low, high))  # type: ignore[return-value]


def _numbers(found: pb.IntegerStatistics) -> tuple[Any, Any]:
    low, high = _ends(found)
    return (None if low is None else Fraction(low)), (None if high is None else Fraction(high))


def _doubles(found: pb.DoubleStatistics, writer: int) -> tuple[Any, Any]:
    """Known where no NaN is among the values, which their sum tells, as Java's reader has it.

    ORC's writers start the bounds of a row group with its first value, and no comparison with NaN replaces that: then
    the bounds of the other groups are all that a stripe has, and only the sum of the stripe is NaN.
    """
    low, high = _ends(found)
    if not found.HasField("sum") and writer not in _BOUNDS_WITHOUT_NAN:
        return None, None
    if any(end is None or math.isnan(end) for end in (low, high, found.sum)):
        return None, None
    return low, high


def _texts(found: pb.StringStatistics) -> tuple[Any, Any]:
    low, high = _ends(found)
    shorter, longer = _ends(found, "lowerBound", "upperBound")
    low, high = (shorter if low is None else low), (longer if high is None else high)
    # Java puts U+FFFD for what is not UTF-8, which sorts elsewhere; "" may stand for "none".
    odd = "\N{REPLACEMENT CHARACTER}".encode()
    return (None if low is None or odd in low else low), (None if not high or odd in high else high)


def _dates(found: pb.DateStatistics, *, hybrid: bool) -> tuple[Any, Any]:
    low, high = _ends(found)
    if low is None or high is None or (hybrid and low < SWITCH):
        return None, None
    return Fraction(low), Fraction(high)


def _times(found: pb.TimestampStatistics) -> tuple[Any, Any]:
    """Milliseconds, cut off, and from writers whose idea of a zone's gaps differs: a day more on either side."""
    low, high = _ends(found, "minimumUtc", "maximumUtc")
    if low is None or high is None or low < YEAR_1700_MS or high < low:
        return None, None
    return Fraction((low - DAY_MS) * 1_000_000), Fraction((high + DAY_MS) * 1_000_000)


def _decimals(found: pb.DecimalStatistics, scale: int) -> tuple[Any, Any]:
    ends: list[Fraction | None] = []
    for text in _ends(found):
        try:
            number = Decimal(text) if text else None
        except InvalidOperation:
            number = None
        finite = number is not None and number.is_finite() and abs(number.adjusted()) < 100
        ends.append(Fraction(number) * 10**scale if finite and number is not None else None)
    return ends[0], ends[1]
