"""Merge the column statistics of several stripes or files into statistics of their union.

Readers skip data because of statistics, so the rule of the whole module is: rather unknown than wrong.  A typed block
(integers, strings, ...) is kept only if every input that holds values has it whole; Java would read a block with a
missing bound as a bound of zero, or as "all values are null".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal, InvalidOperation
from functools import reduce
from itertools import chain
from typing import Any, TypeVar

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb

_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1
_UNSIGNED_MAX = (1 << 64) - 1
_DECIMAL_DIGITS = 38
# Exact for sums of decimals that _decimal() lets through, whatever their scales.
_DECIMAL_CONTEXT = Context(prec=4 * _DECIMAL_DIGITS)
_MAX_NANOS = 999_999  # the nanoseconds within a millisecond that an absent `maximumNanos` means
_Value = TypeVar("_Value", int, str, bytes)


def merge_column_statistics(vectors: Sequence[Sequence[pb.ColumnStatistics]]) -> list[pb.ColumnStatistics]:
    """Return the statistics of the union of several stripes or files, column by column.

    Args:
        vectors: for each stripe or file, the statistics in the order of the column ids.

    Raises:
        BadDataError: the vectors differ in length.
    """
    if len({len(vector) for vector in vectors}) > 1:
        why = f"they speak of {sorted({len(vector) for vector in vectors})} columns"
        hint = "the inputs' types differ; re-encode them"
        raise BadDataError("column statistics of different schemas cannot be merged", why, hint)
    return [merge_statistics(column) for column in zip(*vectors, strict=True)]


def merge_statistics(inputs: Sequence[pb.ColumnStatistics]) -> pb.ColumnStatistics:
    """Return the statistics of one column over the union of `inputs`."""
    merged = pb.ColumnStatistics()
    values = sum(column.numberOfValues for column in inputs)
    if all(column.HasField("numberOfValues") for column in inputs) and values <= _UNSIGNED_MAX:
        merged.numberOfValues = values
    # An absent hasNull means "perhaps" to every reader.
    if any(column.hasNull for column in inputs):
        merged.hasNull = True
    elif all(column.HasField("hasNull") for column in inputs):
        merged.hasNull = False
    size = sum(column.bytesOnDisk for column in inputs)
    if inputs and all(column.HasField("bytesOnDisk") for column in inputs) and size <= _UNSIGNED_MAX:
        merged.bytesOnDisk = size

    holders = [column for column in inputs if column.numberOfValues or not column.HasField("numberOfValues")]
    # If all values are null the blocks are empty, but Java needs them to choose the class of the statistics.
    sources = holders or inputs
    for name, merge in _MERGERS.items():
        if all(column.HasField(name) for column in sources) and sources:
            block = merge([getattr(column, name) for column in sources], bool(holders))
            if block is not None:
                getattr(merged, name).CopyFrom(block)
    return merged


def _values(blocks: Iterable[Any], field: str) -> list[Any] | None:
    """Return the `field` of every block, None if it is missing in a block."""
    values = [getattr(block, field) if block.HasField(field) else None for block in blocks]
    return None if None in values else values


def _extreme(blocks: Iterable[Any], field: str, choose: Callable[[Iterable[_Value]], _Value]) -> _Value | None:
    """Return the least or greatest `field` of `blocks`, None if it is missing in a block."""
    values = _values(blocks, field)
    return choose(values) if values else None


def _sum(blocks: Iterable[Any], field: str = "sum") -> int | None:
    """Return the sum of the blocks' sums, None if one is missing or the total leaves 64 bits (as ORC does)."""
    values = _values(blocks, field)
    return sum(values) if values is not None and _LONG_MIN <= sum(values) <= _LONG_MAX else None


def _bounded(kind: type[Any], low: str, high: str, total: str = "") -> Callable[[Sequence[Any], bool], Any]:
    """Return how to merge blocks of integers: the least `low`, the greatest `high`, and the sum of `total`."""

    def merge(blocks: Sequence[Any], filled: bool) -> Any:
        bounds = {low: _extreme(blocks, low, min), high: _extreme(blocks, high, max)}
        # ORC C++ leaves out the bounds of collections and writes a total of 0: such a block is not a statistic.
        if filled and None in bounds.values():
            return None
        return kind(**bounds, **({total: _sum(blocks, total)} if total else {}))

    return merge


def _signed(value: float) -> tuple[float, float]:
    """Return a sort key under which -0.0 comes before 0.0, as Java orders them."""
    return value, math.copysign(1.0, value)


def _doubles(blocks: Sequence[pb.DoubleStatistics], filled: bool) -> pb.DoubleStatistics | None:
    bounds = [
        (block.minimum, block.maximum) for block in blocks if block.HasField("minimum") and block.HasField("maximum")
    ]
    sums = [block.sum for block in blocks if block.HasField("sum")]
    total = sum(sums)
    whole = total if len(sums) == len(blocks) else None
    if not filled:
        return pb.DoubleStatistics(sum=whole)
    # A NaN is in no range and makes bounds meaningless, but Java trusts them unless the sum is NaN.
    if len(bounds) < len(blocks) or any(map(math.isnan, (*chain.from_iterable(bounds), total))):
        return None
    minimum = min((low for low, _ in bounds), key=_signed)
    maximum = max((high for _, high in bounds), key=_signed)
    return pb.DoubleStatistics(minimum=minimum, maximum=maximum, sum=whole)


def _bound(
    blocks: Iterable[pb.StringStatistics], exact: str, loose: str, choose: Callable[[Iterable[bytes]], bytes]
) -> tuple[bytes, bool] | None:
    """Return the extreme of exact values and of bounds, and whether it is a value that occurs; None if unknown."""
    values: list[bytes] = []
    bounds: list[bytes] = []
    for block in blocks:
        if block.HasField(exact):
            values.append(getattr(block, exact))
        elif block.HasField(loose):
            bounds.append(getattr(block, loose))
        else:
            return None
    best = choose(values + bounds)
    # A value that is at least as extreme as every bound is the true extreme: values behind a bound cannot beat it.
    return best, best in values


def _strings(blocks: Sequence[pb.StringStatistics], filled: bool) -> pb.StringStatistics | None:
    merged = pb.StringStatistics(sum=_sum(blocks))
    if not filled:
        return merged
    low = _bound(blocks, "minimum", "lowerBound", min)
    high = _bound(blocks, "maximum", "upperBound", max)
    if low is None or high is None:
        return None
    setattr(merged, "minimum" if low[1] else "lowerBound", low[0])
    setattr(merged, "maximum" if high[1] else "upperBound", high[0])
    return merged


def _buckets(blocks: Sequence[pb.BucketStatistics], filled: bool) -> pb.BucketStatistics | None:
    """Merge booleans: the first count is the number of true values."""
    if len({len(block.count) for block in blocks}) != 1 or (filled and not blocks[0].count):
        return None
    totals = [sum(counts) for counts in zip(*(block.count for block in blocks), strict=True)]
    return pb.BucketStatistics(count=totals) if max(totals, default=0) <= _UNSIGNED_MAX else None


def _decimal(text: str) -> Decimal | None:
    """Return the number, None if a DECIMAL column cannot hold it (a hostile exponent, for example)."""
    if len(text) > 4 * _DECIMAL_DIGITS:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    is_small = value.is_finite() and abs(value.adjusted()) <= _DECIMAL_DIGITS
    return value if is_small and len(value.as_tuple().digits) <= 2 * _DECIMAL_DIGITS else None


def _decimals(blocks: Sequence[pb.DecimalStatistics], filled: bool) -> pb.DecimalStatistics | None:
    merged = pb.DecimalStatistics()
    total = _decimal_sum(blocks)
    if total is not None:
        merged.sum = total
    if not filled:
        return merged
    lows = [(_decimal(block.minimum), block.minimum) for block in blocks]
    highs = [(_decimal(block.maximum), block.maximum) for block in blocks]
    if any(value is None for value, _ in lows + highs):
        return None
    # The text itself is kept: its scale is the writer's.
    merged.minimum = min(lows)[1]
    merged.maximum = max(highs)[1]
    return merged


def _decimal_sum(blocks: Sequence[pb.DecimalStatistics]) -> str | None:
    """Return the sum as plain text without needless zeros, None if a sum is unknown or it needs more than 38 digits."""
    sums = [_decimal(block.sum) for block in blocks]
    if None in sums:
        return None
    total = reduce(_DECIMAL_CONTEXT.add, (value for value in sums if value is not None), Decimal(0))
    text = format(total, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    if len(text.lstrip("-").replace(".", "").lstrip("0")) > _DECIMAL_DIGITS:
        return None
    return "0" if text in ("-0", "") else text


def _timestamps(blocks: Sequence[pb.TimestampStatistics], filled: bool) -> pb.TimestampStatistics | None:
    """Merge milliseconds in the writer's local time (old writers) and in UTC, with the nanoseconds within them.

    The nanosecond fields are stored plus one; absent they mean the widest: 0 for the minimum, 999999 for the maximum.
    """
    merged = pb.TimestampStatistics()
    local = _extreme(blocks, "minimum", min), _extreme(blocks, "maximum", max)
    if local[0] is not None and local[1] is not None:
        merged.minimum, merged.maximum = local[0], local[1]
    if blocks and all(block.HasField("minimumUtc") and block.HasField("maximumUtc") for block in blocks):
        low = min((b.minimumUtc, b.minimumNanos - 1 if b.minimumNanos > 0 else 0) for b in blocks)
        high = max((b.maximumUtc, b.maximumNanos - 1 if b.maximumNanos > 0 else _MAX_NANOS) for b in blocks)
        merged.minimumUtc, merged.maximumUtc = low[0], high[0]
        if low[1] != 0:
            merged.minimumNanos = low[1] + 1
        if high[1] != _MAX_NANOS:
            merged.maximumNanos = high[1] + 1
    elif filled and not merged.HasField("minimum"):
        return None
    return merged


def _binaries(blocks: Sequence[pb.BinaryStatistics], filled: bool) -> pb.BinaryStatistics | None:  # noqa: ARG001
    total = _sum(blocks)
    return None if total is None else pb.BinaryStatistics(sum=total)


_MERGERS: dict[str, Callable[[Sequence[Any], bool], Any]] = {
    "intStatistics": _bounded(pb.IntegerStatistics, "minimum", "maximum", "sum"),
    "doubleStatistics": _doubles,
    "stringStatistics": _strings,
    "bucketStatistics": _buckets,
    "decimalStatistics": _decimals,
    "dateStatistics": _bounded(pb.DateStatistics, "minimum", "maximum"),
    "timestampStatistics": _timestamps,
    "binaryStatistics": _binaries,
    "collectionStatistics": _bounded(pb.CollectionStatistics, "minChildren", "maxChildren", "totalChildren"),
}
