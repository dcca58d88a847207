"""Conversion of numbers and text to times, and of TIMESTAMP to numbers, as ORC's readers in Hive 3.1.3 and 4.0.1 do it.

Numbers are seconds since 1970, in every time zone. acidctl converts times from 15 October 1582 on: before, Hive's
calendars differ. It converts no times whose milliseconds are beyond 64 bits, where Hive returns other times or fails.

Of text, Hive 4 takes what Java's ``DateTimeFormatter`` takes: ISO dates, and times behind one blank. Hive 3 takes what
Java's ``Date.valueOf`` and ``Timestamp.valueOf`` take: numbers without leading zeros, with a plus, of any alphabet; a
day or an hour that is too large leads into the next month or day; and days before 15 October 1582 are Julian. All other
text is NULL. The tests compare all of this with what both Hives read.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.acid.compaction_kind import Hive
from acidctl.orc.read.wide_timestamps import SWITCH, as_nanoseconds, parts, wide
from acidctl.rows.convert.java_floats import java_texts


class NoConversion(Exception):
    """A type cannot be converted to another; the text says why."""


class HivesDifferError(Exception):
    """Hive 3 and Hive 4 read different values."""


_DAY = 86_400
_FIRST_SECOND, _END = SWITCH * _DAY, (2**63 - 1) // 1000
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


_MOST_YEARS = 999_999_999
_JULIAN_MARCH = 719_470
"""The days from 1 March of the Julian year 0 to 1970."""
_BLANKS = "".join(map(chr, range(33)))
_ISO_DATE = r"^(?P<year>-?\d{4}|[+-]\d{5,10})-(?P<month>\d\d)-(?P<day>\d\d)"
_ISO_TIME = r" (?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{0,9}))?)?"
_VALUE_OF_DATE = r"^(?P<year>\d{4}|\+\d{3})-(?P<month>\+?\d|\d\d)-(?P<day>\+?\d|\d\d)"
_VALUE_OF_TIME = (
    r" (?P<hour>[+-]?0*\d{1,9}):(?P<minute>[+-]?0*\d{1,9}):(?P<second>[+-]?0*\d{1,9})(?:\.(?P<fraction>\d{1,9}))?"
)


def dates_of(column: pa.Array, by: Hive) -> pa.Array:
    """Return text as ``date32``; other text than dates is NULL."""
    if by is Hive.HIVE3:
        column = _with_plain_digits(column)
    fields = _Fields(column, (_VALUE_OF_DATE if by is Hive.HIVE3 else _ISO_DATE) + "$")
    days = fields.days(by, clip=False)
    return fields.array(days.astype(np.int32), pa.int32()).cast(pa.date32())  # Java keeps 32 bits of the number, too


def timestamps_of(column: pa.Array, by: Hive) -> pa.Array:
    """Return text as timestamps, ``timestamp[ns]`` or in the wide form; other text than times is NULL.

    Args:
        by: Hive 3 reads them in the time zone of its process, which is taken for UTC.

    Raises:
        NoConversion: the milliseconds of a time are beyond 64 bits.
    """
    if by is Hive.HIVE3:
        column = pc.utf8_trim(_with_plain_digits(column), _BLANKS)
    pattern = _VALUE_OF_DATE + _VALUE_OF_TIME if by is Hive.HIVE3 else _ISO_DATE + _ISO_TIME
    fields = _Fields(column, pattern + "$")
    days = fields.days(by, clip=True)
    hour, minute, second = (fields.number(name) for name in ("hour", "minute", "second"))
    fraction = pc.ascii_rpad(pc.fill_null(fields.texts("fraction"), ""), 9, "0")
    nanos = fraction.cast(pa.int64()).to_numpy()
    if by is Hive.HIVE4:
        is_midnight = (hour == 24) & (minute == 0) & (second == 0) & (nanos == 0)
        fields.valid &= ((hour < 24) | is_midnight) & (minute < 60) & (second < 60)
    seconds = np.where(fields.valid, days * _DAY + hour * 3600 + minute * 60 + second, 0)
    if np.any(np.abs(seconds) >= _END):
        raise NoConversion("it has times that are hundreds of millions of years away")
    return as_nanoseconds(wide(seconds, nanos, fields.array(seconds, pa.int64()), instant=False))


class _Fields:
    """The numbers in texts of one form.

    Attributes:
        valid: where a text is of that form, and its numbers are in their ranges.
    """

    def __init__(self, column: pa.Array, pattern: str) -> None:
        self._found = pc.extract_regex(column, pattern)
        self.valid: Any = self._found.is_valid().to_numpy(zero_copy_only=False)

    def texts(self, name: str) -> pa.Array:
        """Return the texts of a field; NULL where the column is of another form."""
        return pc.struct_field(self._found, name)

    def number(self, name: str) -> Any:
        """Return a field as int64; 0 where it is missing."""
        texts = pc.utf8_ltrim(pc.fill_null(self.texts(name), "0"), "+")
        return pc.if_else(pc.equal(texts, ""), "0", texts).cast(pa.int64()).to_numpy()

    def days(self, by: Hive, *, clip: bool) -> Any:
        """Return days since 1970.

        Args:
            clip: Hive 4 takes the last day of a month for one that the month does not have; otherwise it is not valid.
        """
        year, month, day = (self.number(name) for name in ("year", "month", "day"))
        self.valid &= (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
        months = (np.where(self.valid, year, 1970) - 1970) * 12 + np.where(self.valid, month, 1) - 1
        first, after = (_first_days(months + ahead) for ahead in (0, 1))
        if by is Hive.HIVE3:
            days = first + day - 1
            return np.where(days < SWITCH, _julian(year, month, day), days)
        is_negative_zero = (year == 0) & pc.starts_with(pc.fill_null(self.texts("year"), ""), "-").to_numpy(False)
        self.valid &= ~is_negative_zero & (np.abs(year) <= _MOST_YEARS)
        if clip:
            return np.minimum(first + day, after) - 1
        self.valid &= day <= after - first
        return first + day - 1

    def array(self, values: Any, kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind, mask=~self.valid)


def _first_days(months: Any) -> Any:
    """Return days since 1970 of the first day of each month, counted from January 1970."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _julian(year: Any, month: Any, day: Any) -> Any:
    """Return days since 1970 of dates of the Julian calendar."""
    since_march = (month + 9) % 12
    year = year - (month <= 2)  # counted from March, so that a leap day ends its year
    return 365 * year + year // 4 + (153 * since_march + 2) // 5 + day - 1 - _JULIAN_MARCH


def _with_plain_digits(column: pa.Array) -> pa.Array:
    """Return texts with the digits 0 to 9 instead of other alphabets' digits, once per distinct text."""
    if pc.all(pc.string_is_ascii(column)).as_py() is not False:
        return column
    encoded = column.dictionary_encode()
    texts = (text.decode("utf-8", "replace") for text in encoded.dictionary.cast(pa.binary()).to_pylist())
    return pa.array([re.sub(r"\d", lambda digit: str(int(digit[0])), text) for text in texts]).take(encoded.indices)
