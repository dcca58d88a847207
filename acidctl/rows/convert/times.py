"""Conversion of numbers to TIMESTAMP and back, as ORC's readers in Hive 3.1.3 and 4.0.1 convert them.

The numbers are seconds since 1970, in every time zone. acidctl converts times from 15 October 1582 on: before, Hive's
calendars differ. It converts no times whose milliseconds are beyond 64 bits, where Hive returns other times or fails.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.acid.compaction_kind import Hive
from acidctl.orc.read.wide_timestamps import SWITCH, as_nanoseconds, parts, wide
from acidctl.rows.convert.errors import NoConversion
from acidctl.rows.convert.java_floats import java_texts

_FIRST_SECOND, _END = SWITCH * 86_400, (2**63 - 1) // 1000
_NANOS = 1_000_000_000
_ONE_NANO = pa.scalar(Decimal(1).scaleb(-9), pa.decimal128(10, 9))
_WIDE_DECIMAL = 60
# The digits of any DOUBLE from a nanosecond on fit.
_TEXT_OF_DOUBLE = pa.decimal256(_WIDE_DECIMAL, 26)
_LONG_LIMIT = 2.0**63


def times_of(column: pa.Array, by: Hive) -> pa.Array:
    """Return numbers of seconds as timestamps, ``timestamp[ns]`` or in the wide form; NULL stays NULL.

    DECIMAL is cut to nanoseconds. A FLOAT or DOUBLE is rounded to milliseconds by Hive 4, and cut to nanoseconds by
    Hive 3, which takes the digits that Java prints. Integers and BOOLEAN are milliseconds for Hive 3.

    Raises:
        NoConversion: a time lies before 15 October 1582, or its milliseconds are beyond 64 bits.
    """
    if pa.types.is_decimal(column.type):
        return _of_decimals(column)
    if not pa.types.is_floating(column.type):
        number = _numbers(column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column, pa.int64(), 0)
        seconds, millis = np.divmod(number, 1000) if by is Hive.HIVE3 else (number, np.zeros_like(number))
        return _of_parts(seconds, millis * 1_000_000, column)
    doubles = _numbers(column, pa.float64(), np.nan)
    return _rounded_to_millis(doubles) if by is Hive.HIVE4 else _cut_to_nanos(doubles)


def whole_seconds(column: pa.Array) -> pa.Array:
    """Return timestamps as whole seconds since 1970, rounded down.

    Raises:
        NoConversion: see :func:`times_of`.
    """
    seconds, _ = parts(column)
    _require_reach(seconds)
    return pa.array(seconds, mask=column.is_null().to_numpy(zero_copy_only=False))


def double_seconds(column: pa.Array) -> pa.Array:
    """Return timestamps as DOUBLE: seconds since 1970 with their fraction.

    Raises:
        NoConversion: see :func:`times_of`.
    """
    return pc.add(whole_seconds(column).cast(pa.float64()), pa.array(parts(column)[1] / _NANOS))


def exact_seconds(column: pa.Array) -> pa.Array:
    """Return timestamps as DECIMAL: seconds since 1970 with nine digits of their fraction.

    Raises:
        NoConversion: see :func:`times_of`.
    """
    fraction = pc.multiply(pa.array(parts(column)[1]).cast(pa.decimal128(19, 0)), _ONE_NANO)
    return pc.add(whole_seconds(column).cast(pa.decimal128(19, 0)), fraction)


def _of_parts(seconds: Any, nanos: Any, like: pa.Array) -> pa.Array:
    _require_reach(seconds)
    return as_nanoseconds(wide(seconds, nanos, like, instant=False))


def _require_reach(seconds: Any) -> None:
    if np.any((seconds < _FIRST_SECOND) | (seconds >= _END)):
        raise NoConversion("it has times before 15 October 1582, or hundreds of millions of years away")


def _of_decimals(column: pa.Array) -> pa.Array:
    wider = column.cast(pa.decimal256(_WIDE_DECIMAL, column.type.scale))
    cut = pc.round(wider, 9, "towards_zero") if column.type.scale > 9 else wider
    whole = pc.round(cut, 0, "down")
    nanos = np.rint(_numbers(pc.subtract(cut, whole), pa.float64(), 0) * _NANOS)
    _require_reach(_numbers(whole, pa.float64(), 0))
    return _of_parts(_numbers(whole, pa.int64(), 0), nanos.astype(np.int64), column)


def _rounded_to_millis(seconds: Any) -> pa.Array:
    """Round as ``Math.round`` of Java; NULL if that is beyond a long, or if the sign is lost: -0.0004."""
    with np.errstate(invalid="ignore", over="ignore"):
        exact = seconds * 1000
        below = np.floor(exact)
        millis = below + (exact - below >= 0.5)
        is_time = (np.abs(exact) <= _LONG_LIMIT) & ((millis >= 0) == (exact >= 0))
    millis = np.where(is_time, millis, 0)
    _require_reach(millis / 1000)
    whole, rest = np.divmod(millis.astype(np.int64), 1000)
    return _of_parts(whole, rest * 1_000_000, pa.array(whole, mask=~is_time))


def _cut_to_nanos(seconds: Any) -> pa.Array:
    is_time = np.isfinite(seconds)
    seconds = np.where(is_time & (np.abs(seconds) >= 1 / _NANOS), seconds, 0)
    _require_reach(seconds)
    return _of_decimals(java_texts(pa.array(seconds, mask=~is_time)).cast(_TEXT_OF_DOUBLE))


def _numbers(column: pa.Array, kind: pa.DataType, missing: float) -> Any:
    """Return a column as an array of numpy, with a number for NULL."""
    return pc.fill_null(column.cast(kind, safe=False), missing).to_numpy(zero_copy_only=False)
