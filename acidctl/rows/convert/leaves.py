"""Conversion of values of one primitive type to another, as ORC's readers in Hive 3.1.3 and 4.0.1 convert them.

A value that the new type cannot hold is NULL. If the two Hives differ, :func:`hives_differ` is true, and the values
are those of Hive 4, or of Hive 3 on request. The tests compare all of this with the values that both read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.acid.compaction_kind import Hive
from acidctl.orc.arrow import cut_text
from acidctl.orc.read.wide_timestamps import SWITCH, WideTimestamp, parts, widened
from acidctl.orc.types import TIMESTAMP_KINDS, OrcType, arrow_type
from acidctl.rows.convert.java_floats import java_texts
from acidctl.rows.convert.times import (
    HivesDifferError,
    NoConversion,
    dates_of,
    double_seconds,
    exact_seconds,
    times_of,
    timestamps_of,
    whole_seconds,
)

_TEXTS = ("string", "varchar", "char")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_FLOATS = ("float", "double")
_NUMBERS = (*_INTEGERS, *_FLOATS, "decimal")
_TIMES = ("date", *TIMESTAMP_KINDS)
_WHOLE = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_FLOAT = re.compile(r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_JAVA_BLANKS = "".join(map(chr, range(33)))
# A power of ten: as DECIMAL, Hive reads 1e-46 as 0, and numbers with far more decimal places as NULL.
_LEAST_POWER = -100
_DAY = 86_400


def convert_leaf(
    column: pa.Array, own: OrcType, target: OrcType, *, parquet: bool = False, by: Hive = Hive.HIVE4
) -> pa.Array:
    """Convert a column of a primitive type to another primitive type.

    Args:
        parquet: whether the file is Parquet; only conversions that Hive does the same for both formats are done then.
        by: the version of Hive whose conversion is used: Hive 3 or Hive 4.

    Raises:
        NoConversion: Hive does not convert it, or acidctl does not know how Hive does.
    """
    kinds = own.kind, target.kind
    if by is Hive.HIVE3 and own.kind == "float" and target.kind in ("double", "decimal"):
        column, own = _each(java_texts(column), float, OrcType("double")), OrcType("double")
        return column if target.kind == "double" else convert_leaf(column, own, target, by=by)
    if parquet and own.kind in _TEXTS and target.kind in _TIMES:
        raise NoConversion("no Hive reads that from Parquet: give the column its old type again")
    if parquet and not _is_common(*kinds):
        raise NoConversion("Hive converts that from Parquet in its own way, which acidctl does not know")
    if why := why_not_converted(*kinds):
        raise NoConversion(why)
    try:
        if own.kind in TIMESTAMP_KINDS and target.kind in TIMESTAMP_KINDS:
            return column if isinstance(column.type, WideTimestamp) else column.cast(arrow_type(target))
        if parquet and own.kind == "binary":  # text that Parquet does not mark as text
            column, own = column.cast(pa.string()), OrcType("string")
        if target.kind in _TEXTS:
            return _fitted(column if own.kind in _TEXTS else _texts(column, own, by), own, target)
        if own.kind in _TEXTS:
            if own.kind == "char":  # as text it has no padding, as BINARY all of it
                column = pc.ascii_rtrim(column, " ")
                column = pc.utf8_rpad(column, own.max_length) if target.kind == "binary" else column
            return _parsed(column, target, by)
        if own.kind == "boolean" and target.kind in _NUMBERS:
            return convert_leaf(column.cast(pa.int32()), OrcType("int"), target)
        if own.kind in _NUMBERS and target.kind in ("boolean", *_NUMBERS):
            return _number(column, own, target)
        return _time(column, own, target, by)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise NoConversion(str(error).splitlines()[0]) from error


def why_not_converted(own: str, target: str) -> str:
    """Return why acidctl does not convert one primitive kind to another, whatever the values are; empty if it does."""
    numbers = ("boolean", *_NUMBERS)
    if target in _TEXTS or (own in TIMESTAMP_KINDS and target in TIMESTAMP_KINDS):
        return ""
    if own in _TEXTS and target != "timestamp with local time zone":
        return ""
    if own in numbers and target in (*numbers, "timestamp"):
        return ""
    if (own == "timestamp" and target in ("date", *numbers)) or (own, target) == ("date", "timestamp"):
        return ""
    return (
        "acidctl does not convert it as Hive does" if is_converted(own, target) else "Hive does not convert it either"
    )


def hives_differ(own: OrcType, target: OrcType) -> bool:
    """Return whether Hive 3 and Hive 4 read some values of `own` as different values of `target`."""
    if own.kind == target.kind or any(
        own.kind in kinds and target.kind in kinds for kinds in (_TEXTS, TIMESTAMP_KINDS)
    ):
        return False
    if own.kind == "float":
        return target.kind in ("double", "decimal", *_TEXTS, *_TIMES)
    if own.kind == "decimal" or (own.kind == "timestamp" and target.kind in _NUMBERS):
        return own.kind == "timestamp" and target.kind == "decimal"
    if own.kind in _TEXTS:
        return target.kind in ("binary", *_TIMES)
    return own.kind in _TIMES or target.kind in _TIMES


def is_converted(own: str, target: str) -> bool:
    """Return whether ORC's readers convert one kind to another (``ConvertTreeReaderFactory.canConvert``)."""
    if own == "binary" or target == "binary":
        return own in _TEXTS or target in _TEXTS
    if own == "date":
        return target in _TEXTS or target in _TIMES
    return target != "date" or own in _TEXTS or own in _TIMES


def require_known(column: pa.Array, own: OrcType, target: OrcType, by: Hive | None) -> None:
    """Raise HivesDifferError if Hive 3 and Hive 4 convert some of these values of `own` differently to `target`.

    Args:
        by: the version of Hive that reads them, if it is known; for Hive 3, acidctl has only some conversions.
    """
    if own.kind in _TEXTS and target.kind in ("date", "timestamp"):
        _require_known_times(column, own, target, by)
        return
    if by is Hive.HIVE4 or not hives_differ(own, target):
        return
    is_of_numbers = own.kind in ("boolean", *_NUMBERS) and target.kind == "timestamp"
    has_both = own.kind == "float" or is_of_numbers or (own.kind, target.kind) == ("timestamp", "decimal")
    if has_both and by is Hive.HIVE3:
        return
    if has_both and "timestamp" in (own.kind, target.kind):
        by_three, by_four = (convert_leaf(column, own, target, by=hive) for hive in (Hive.HIVE3, Hive.HIVE4))
        differs = not by_three.equals(by_four)
    elif has_both:
        near = column.cast(pa.string()).cast(pa.float64())  # as Hive 3 has it
        is_other = pc.and_(pc.not_equal(near, column.cast(pa.float64())), pc.invert(pc.is_nan(near)))
        differs = pc.any(is_other).as_py()
    elif own.kind == "date" and target.kind in _TEXTS:
        differs = pc.any(pc.less(column.cast(pa.int32()), SWITCH)).as_py()
    else:  # Hive 3 converts times in the time zone of its process
        differs = column.null_count < len(column)
    if differs:
        raise HivesDifferError("Hive 3 and Hive 4 convert some of its values differently")


def _require_known_times(column: pa.Array, own: OrcType, target: OrcType, by: Hive | None) -> None:
    """Raise HivesDifferError if the times that text became depend on a calendar, a time zone or the version of Hive."""
    hives = (Hive.HIVE3, Hive.HIVE4) if by is None else (by,)
    values = [convert_leaf(column, own, target, by=hive) for hive in hives]
    if any(np.any(parts(one)[0] < SWITCH * _DAY) for one in values):
        raise HivesDifferError("it has dates before 15 October 1582, when calendars differ")
    if by is not Hive.HIVE4 and target.kind == "timestamp" and any(one.null_count < len(one) for one in values):
        raise HivesDifferError("Hive 3 reads its times in the time zone of its process")
    if not values[0].equals(values[-1]):
        raise HivesDifferError("Hive 3 and Hive 4 convert some of its values differently")


def _is_common(own: str, target: str) -> bool:
    """Return whether Hive 4 converts these values from Parquet as it does from ORC."""
    if own == target or (own in TIMESTAMP_KINDS and target in TIMESTAMP_KINDS):
        return True
    if own in _INTEGERS:
        return target in (*_NUMBERS, *_TEXTS) and (own, target) != ("int", "double")
    if own in _FLOATS:
        return target == "decimal" or (own, target) == ("float", "double")
    return target in {"decimal": (*_FLOATS, *_TEXTS), "binary": _TEXTS}.get(own, _TEXTS if own in _TEXTS else ())


# --- numbers ---------------------------------------------------------------------------------------------------------


def _number(column: pa.Array, own: OrcType, target: OrcType) -> pa.Array:
    if target.kind == "boolean":
        if own.kind in _FLOATS:  # those below 1 are false
            return pc.not_equal(_long(column, own), 0)
        return pc.not_equal(column, pa.scalar(Decimal(0) if own.kind == "decimal" else 0, column.type))
    if target.kind in _INTEGERS:
        return _narrowed(_long(column, own), arrow_type(target))
    if target.kind in _FLOATS:
        if own.kind == "decimal":  # by its text, which is rounded once
            column = column.cast(pa.string()).cast(pa.float64())
        return column.cast(arrow_type(target), safe=False)  # large integers lose digits, in Hive too
    if own.kind in _FLOATS:
        return _each(java_texts(column.cast(pa.float64())), _parser(target), target)
    return _decimal(column, target)


def _long(column: pa.Array, own: OrcType) -> pa.Array:
    """Truncate numbers to BIGINT; NULL if they do not fit."""
    if own.kind in _INTEGERS:
        return column.cast(pa.int64())
    if own.kind == "decimal":
        column = pc.round(column, 0, "towards_zero").cast(pa.decimal128(38, 0))
        low, high = (pa.scalar(Decimal(end), column.type) for end in (-(1 << 63), (1 << 63) - 1))
        return _where(pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high)), column).cast(pa.int64())
    column = column.cast(pa.float64())
    fits = pc.and_(pc.greater_equal(column, -(2.0**63)), pc.less(column, 2.0**63))
    return pc.trunc(_where(fits, column)).cast(pa.int64(), safe=False)


def _narrowed(column: pa.Array, target: pa.DataType) -> pa.Array:
    limits = np.iinfo(str(target))
    fits = pc.and_(pc.greater_equal(column, int(limits.min)), pc.less_equal(column, int(limits.max)))
    return _where(fits, column).cast(target)


def _decimal(column: pa.Array, target: OrcType) -> pa.Array:
    """Round whole numbers and decimals half up; NULL if they do not fit."""
    if pa.types.is_integer(column.type):
        column = column.cast(pa.decimal128(19, 0))
    # 76 digits, so that none is lost before it is known which values fit.
    column = column.cast(pa.decimal256(76, column.type.scale))
    if column.type.scale > target.scale:
        column = pc.round(column, target.scale, "half_towards_infinity")
    column = column.cast(pa.decimal256(76, target.scale))
    limit = pa.scalar(Decimal(10) ** (target.precision - target.scale), pa.decimal256(76, target.scale))
    fits = pc.and_(pc.less(column, limit), pc.greater(column, pc.negate(limit)))
    return _where(fits, column).cast(arrow_type(target))


def _where(fits: pa.BooleanArray, column: pa.Array) -> pa.Array:
    return pc.if_else(fits, column, pa.scalar(None, column.type))


def _each(column: pa.Array, convert: Callable[[str], Any], target: OrcType) -> pa.Array:
    """Apply a function to each text of a column, once per distinct text."""
    encoded = column.dictionary_encode()
    texts = (text.decode("utf-8", "replace") for text in encoded.dictionary.cast(pa.binary()).to_pylist())
    return pa.array([convert(text) for text in texts], arrow_type(target)).take(encoded.indices)


# --- times -----------------------------------------------------------------------------------------------------------


def _time(column: pa.Array, own: OrcType, target: OrcType, by: Hive) -> pa.Array:
    """Convert to or from a time."""
    if target.kind == "date":
        return column.cast(arrow_type(target), safe=False)
    if target.kind == "timestamp":
        return _timestamps(column.cast(pa.timestamp("s"))) if own.kind == "date" else times_of(column, by)
    if target.kind == "decimal" and by is Hive.HIVE4:
        return _decimal(exact_seconds(column), target)
    if target.kind in (*_FLOATS, "decimal"):
        return _number(double_seconds(column), OrcType("double"), target)
    return _number(whole_seconds(column), OrcType("bigint"), target)


def _timestamps(column: pa.Array) -> pa.Array:
    """Convert whole seconds to TIMESTAMP, in the wide form if nanoseconds do not fit into 64 bits."""
    try:
        return column.cast(pa.timestamp("ns"))
    except pa.ArrowInvalid:
        return widened(column)


# --- text ------------------------------------------------------------------------------------------------------------


def _parsed(column: pa.Array, target: OrcType, by: Hive) -> pa.Array:
    if target.kind == "binary":
        return column.cast(pa.binary())
    if target.kind == "date":
        return dates_of(column, by)
    if target.kind == "timestamp":
        return timestamps_of(column, by)
    return _each(column, _parser(target), target)


def _parser(target: OrcType) -> Callable[[str], Any]:
    """Return a parser from text to a type, like Java's ``parseLong``, ``parseDouble`` and Hive's decimals."""
    if target.kind == "decimal":
        return lambda text: _decimal_of(_stripped(text), target)
    if target.kind in _FLOATS:
        return lambda text: float(text.rstrip("fFdD")) if _FLOAT.fullmatch(text := _stripped(text)) else None
    if target.kind == "boolean":
        return lambda text: None if (value := _whole(text, pa.int64())) is None else value != 0
    return lambda text: _whole(text, arrow_type(target))


def _decimal_of(text: str, target: OrcType) -> Decimal | None:
    value = Decimal(text) if _DECIMAL.fullmatch(text) else None
    if value is None or (value and not _LEAST_POWER < value.adjusted() < target.precision):
        return None
    with localcontext() as context:
        context.prec = max(len(text), 400)
        rounded = value.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP)
        return rounded if abs(rounded) < Decimal(10) ** (target.precision - target.scale) else None


def _stripped(text: str) -> str:
    return text.strip(_JAVA_BLANKS)


def _whole(text: str, kind: pa.DataType) -> int | None:
    if len(text) > 400 or not _WHOLE.fullmatch(text):
        return None
    limits, value = np.iinfo(str(kind)), int(text)
    return value if limits.min <= value <= limits.max else None


def _fitted(column: pa.Array, own: OrcType, target: OrcType) -> pa.Array:
    """Fit text to its new type: CHAR loses its padding, and text longer than the type's length is cut."""
    if "char" in (own.kind, target.kind):
        column = pc.ascii_rtrim(column, characters=" ")
    if target.max_length and target.kind != "string":
        column = cut_text(column, target.max_length)
    return pc.ascii_rtrim(column, characters=" ") if target.kind == "char" else column


def _texts(column: pa.Array, own: OrcType, by: Hive) -> pa.Array:
    from acidctl.rows.export.json_lines import unquoted  # noqa: PLC0415 - few columns are converted to text
    from acidctl.rows.export.text import wrapped  # noqa: PLC0415 - few columns are converted to text

    if own.kind == "boolean":
        return pc.if_else(column, "TRUE", "FALSE")
    if own.kind == "binary":
        return pa.array([None if value is None else value.hex(" ") for value in column.to_pylist()], pa.string())
    if own.kind in _FLOATS:
        column = _where(pc.invert(pc.is_nan(column)), column)
        return java_texts(column if by is Hive.HIVE3 else column.cast(pa.float64()))
    texts = wrapped(unquoted(column, None)).cast(pa.string())
    return pc.replace_substring_regex(texts, r"\.0$", "") if own.kind in TIMESTAMP_KINDS else texts
