"""Exact comparison of one column with one value: the meaning of a condition for every type.

Integers, decimals, dates and timestamps are counted in the smallest unit of the column (1, ``10^-scale``, a day, a
nanosecond), so that ``id < 2.5`` and ``ts = '1500-01-01'`` are decided without rounding. Floating point numbers follow
IEEE: NaN is not equal to, less or greater than anything. Text compares by its bytes, CHAR without the padding.
"""

from __future__ import annotations

import datetime
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.orc.read.wide_timestamps import TICKS_PER_SECOND, WideTimestamp, parts
from acidctl.orc.types import hive_word

_TIME = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)(?:[ T](\d\d?):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?", re.ASCII)
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_SECOND = 1_000_000_000
_DAY = 86_400 * _SECOND
_WIDE_DECIMALS = Context(prec=100)

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_KERNELS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or a timestamp without a zone: nanoseconds since 1970-01-01 00:00:00."""

    ns: int

    @classmethod
    def of(cls, value: datetime.date) -> Moment:
        """Convert a date, or a ``datetime`` without a zone."""
        if isinstance(value, datetime.datetime):
            since = value - datetime.datetime(1970, 1, 1)
            return cls(since.days * _DAY + (since.seconds * 10**6 + since.microseconds) * 1000)
        return cls((value.toordinal() - _EPOCH) * _DAY)


Literal = None | bool | int | float | Decimal | str | Moment
"""A value in a condition; only a cast makes it a float."""


class Single(float):
    """A value that a cast made a FLOAT; next to a DOUBLE column Hive may read its text instead."""


def to_float(value: float | Decimal) -> Single:
    """Return the nearest FLOAT to a value, as a double: Hive converts a number that is compared with a FLOAT column."""
    with np.errstate(over="ignore"):
        return Single(np.float32(float(value)))


class MismatchError(ValueError):
    """A column and a value cannot be compared; the text explains why."""


def parse_moment(text: str) -> Moment:
    """Parse ``yyyy-MM-dd``, optionally with ``HH:mm[:ss[.f]]`` and up to nine digits; years 1 to 9999.

    Raises:
        MismatchError: the text has another form.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise MismatchError(f"{text!r} is not a date or timestamp, as in 2024-02-29 or 2024-02-29 23:59:59.5")
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    try:
        moment = Moment.of(datetime.datetime(year, month, day, hour, minute, second))
    except ValueError as error:
        raise MismatchError(f"{text!r} is not a date or timestamp: {error}") from None
    return Moment(moment.ns + int((match[7] or "").ljust(9, "0")))


def ticks_of(kind: pa.DataType) -> Fraction | None:
    """Return the smallest unit of a type of exact values, in 1 or nanoseconds; None for other types."""
    if pa.types.is_integer(kind):
        return Fraction(1)
    if pa.types.is_decimal(kind):
        return Fraction(1, 10**kind.scale)
    if pa.types.is_date(kind):
        return Fraction(_DAY)
    if isinstance(kind, WideTimestamp):
        return Fraction(1)
    if pa.types.is_timestamp(kind):
        return Fraction(_SECOND // TICKS_PER_SECOND[kind.unit])
    return None


def domain(kind: pa.DataType, value: bool | float | Decimal | str | Moment) -> Fraction | float | bytes | bool:
    """Convert a value to compare it with a column of this type: to units, a double, bytes or a truth value.

    Raises:
        MismatchError: they cannot be compared.
    """
    if isinstance(value, float):
        is_double = pa.types.is_float64(kind) and not isinstance(value, Single)
        if not (is_double or (pa.types.is_float32(kind) and to_float(value) == value)):
            raise MismatchError(f"{value!r} of a cast cannot be compared with a column of type {hive_word(kind)}")
        return value
    unit = ticks_of(kind)
    if unit is not None and not isinstance(value, bool):
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            return Fraction(_number(kind, value)) / unit
        moment = parse_moment(value) if isinstance(value, str) else value
        if isinstance(moment, Moment):
            return Fraction(moment.ns) / unit
    elif pa.types.is_floating(kind) and not isinstance(value, bool):
        return float(_number(kind, value))
    elif _is_text(kind) and isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    elif pa.types.is_boolean(kind):
        truth = {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else value
        if isinstance(truth, bool):
            return truth
    raise MismatchError(f"{_shown(value)} cannot be compared with a column of type {hive_word(kind)}")


def conversion(kind: pa.DataType, value: Literal) -> tuple[str, str] | None:
    """Return how a version of Hive compares a value with a column in another way than acidctl, and what to write.

    None if all of them agree; :func:`domain` has refused what cannot be compared at all.
    """
    if pa.types.is_float32(kind) and isinstance(value, int | Decimal | str) and not isinstance(value, bool):
        exact = Fraction(_number(kind, value))
        if Fraction(to_float(float(exact))) != exact:
            return "a FLOAT cannot hold this number, which Hive 3 rounds to it", f"CAST({value} AS FLOAT)"
    if not isinstance(value, str):
        return None
    if pa.types.is_boolean(kind):
        return "Hive compares no text with a BOOLEAN", value.upper()
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return ("Hive does not read a number with blanks around it", value.strip()) if value != value.strip() else None
    if pa.types.is_date(kind) and parse_moment(value).ns % _DAY:
        return "Hive ignores the time in a text that is compared with a DATE", f"TIMESTAMP '{value.strip()}'"
    if ticks_of(kind) and not pa.types.is_date(kind) and lacks_seconds(value):
        return NO_SECONDS, f"'{value.strip()}:00'"
    return None


NO_SECONDS = "Hive 3 ignores a time without seconds"


def lacks_seconds(text: str) -> bool:
    """Return whether a text of a date or timestamp has hours and minutes, but no seconds."""
    match = _TIME.fullmatch(text.strip())
    return bool(match and match[4] and not match[6])


def compare_value(column: pa.Array, sign: str, value: Literal) -> pa.BooleanArray:
    """Return ``column sign value`` for every row; NULL if either is NULL.

    Raises:
        MismatchError: they cannot be compared.
    """
    if value is None:
        return pa.nulls(len(column), pa.bool_())
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.bool_())
    wanted = domain(kind, value)
    if isinstance(wanted, Fraction):
        return _compare_ticks(column, sign, wanted)
    if isinstance(wanted, float):
        return _KERNELS[sign](column, pa.scalar(wanted, pa.float64()))
    if isinstance(wanted, bytes):
        # By bytes: files may hold text that is not UTF-8.
        return _KERNELS[sign](_as_bytes(column), pa.scalar(wanted, _bytes_type(kind)))
    return _KERNELS[sign](column.cast(pa.uint8()), pa.scalar(int(wanted), pa.uint8()))  # FALSE is less than TRUE


def compare_columns(left: pa.Array, sign: str, right: pa.Array) -> pa.BooleanArray:
    """Return ``left sign right`` row by row; NULL if either is NULL.

    Raises:
        MismatchError: columns of such types cannot be compared.
    """
    kinds = left.type, right.type
    if any(isinstance(kind, WideTimestamp) or pa.types.is_timestamp(kind) for kind in kinds):
        if not all(isinstance(k, WideTimestamp) or pa.types.is_timestamp(k) or pa.types.is_date(k) for k in kinds):
            raise _mismatch(*kinds)
        seconds, nanos = zip(*(parts(column) for column in (left, right)), strict=True)
        return _masked(_by_parts(seconds[0], nanos[0], sign, seconds[1], nanos[1]), left, right)
    if all(_is_text(kind) for kind in kinds):
        return _KERNELS[sign](_as_bytes(left), _as_bytes(right))
    numbers = [pa.types.is_integer(k) or pa.types.is_floating(k) or pa.types.is_decimal(k) for k in kinds]
    if all(numbers) and any(pa.types.is_floating(kind) for kind in kinds):
        left, right = (column.cast(pa.float64(), safe=False) for column in (left, right))
    elif not all(numbers) and kinds[0] != kinds[1]:
        raise _mismatch(*kinds)
    if pa.types.is_nested(left.type):
        raise _mismatch(*kinds)
    if pa.types.is_boolean(left.type):
        left, right = left.cast(pa.uint8()), right.cast(pa.uint8())
    try:
        return _KERNELS[sign](left, right)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise MismatchError(str(error).splitlines()[0]) from None


def unpadded(column: pa.Array) -> pa.Array:
    """Return CHAR without the blanks at the end, which comparisons ignore."""
    return pc.ascii_rtrim(column, characters=" ") if _is_text(column.type) else column


def _compare_ticks(column: pa.Array, sign: str, wanted: Fraction) -> pa.BooleanArray:
    """Compare with a value that may lie between two units, or outside the type's range."""
    if wanted.denominator != 1:
        if sign in ("=", "<>"):
            return _constant(column, truth=sign == "<>")
        below = sign in ("<", "<=")
        sign, wanted = ("<=", Fraction(math.floor(wanted))) if below else (">=", Fraction(math.ceil(wanted)))
    ticks = int(wanted)
    kind = column.type
    if isinstance(kind, WideTimestamp):
        seconds, nanos = parts(column)
        least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        whole, rest = divmod(ticks, _SECOND)
        assert least <= whole <= most  # literals have four-digit years
        return _masked(_by_parts(seconds, nanos, sign, np.int64(whole), np.int64(rest)), column)
    scalar = _tick_scalar(kind, ticks)
    if scalar is None:
        return _constant(column, truth=bool(OPERATORS[sign](0, ticks)))
    return _KERNELS[sign](column, scalar)


def _tick_scalar(kind: pa.DataType, ticks: int) -> pa.Scalar | None:
    """Return this number of units as a value of the type; None if it is out of range."""
    if pa.types.is_decimal(kind):
        if abs(ticks) >= 10**kind.precision:
            return None
        return pa.scalar(Decimal(ticks).scaleb(-kind.scale, _WIDE_DECIMALS), kind)
    storage = kind if pa.types.is_integer(kind) else pa.int32() if pa.types.is_date32(kind) else pa.int64()
    bits = storage.bit_width - 1
    if not -(1 << bits) <= ticks < 1 << bits:
        return None
    return pa.scalar(ticks, storage).cast(kind)


def _constant(column: pa.Array, *, truth: bool) -> pa.BooleanArray:
    return _masked(np.full(len(column), truth), column)


def _masked(truth: Any, *columns: pa.Array) -> pa.BooleanArray:
    missing = np.zeros(len(columns[0]), np.bool_)
    for column in columns:
        if column.null_count:
            missing |= column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(truth, pa.bool_(), mask=missing)


def _by_parts(seconds: Any, nanos: Any, sign: str, other_seconds: Any, other_nanos: Any) -> Any:
    same = seconds == other_seconds
    if sign == "=":
        return same & (nanos == other_nanos)
    if sign == "<>":
        return ~(same & (nanos == other_nanos))
    strict = OPERATORS[sign[0]]
    return strict(seconds, other_seconds) | (same & OPERATORS[sign](nanos, other_nanos))


def _number(kind: pa.DataType, value: int | Decimal | str | Moment) -> Decimal | int:
    if isinstance(value, str):
        try:
            parsed = Decimal(value.strip())
        except InvalidOperation:
            parsed = Decimal("NaN")
        if not parsed.is_finite():
            raise MismatchError(f"{value!r} is not a number, and the column is of type {hive_word(kind)}")
        value = parsed
    if isinstance(value, Moment):
        raise MismatchError(f"a date or timestamp cannot be compared with a column of type {hive_word(kind)}")
    if isinstance(value, Decimal) and abs(value.adjusted()) > 1000:
        raise MismatchError(f"{_shown(value)} is too large or too small a number to compare with")
    return value


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _bytes_type(kind: pa.DataType) -> pa.DataType:
    return pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()


def _as_bytes(column: pa.Array) -> pa.Array:
    return column.cast(_bytes_type(column.type))


def _mismatch(left: pa.DataType, right: pa.DataType) -> MismatchError:
    return MismatchError(f"columns of type {hive_word(left)} and {hive_word(right)} cannot be compared")


def _shown(value: object) -> str:
    if isinstance(value, Moment):
        return "a date or timestamp"
    return repr(value) if isinstance(value, str) else str(value).upper()
