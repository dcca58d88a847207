"""Convert rows to Arrow batches of exactly the types that Spark's own schema stands for.

=====================================  =============================================================================
in ORC                                 in Spark
=====================================  =============================================================================
timestamp                              TIMESTAMP_NTZ: Hive's TIMESTAMP is what a clock on the wall showed, in no zone
timestamp with local time zone         TIMESTAMP
nanoseconds                            microseconds, the rest cut off (towards the past), as Spark reads ORC itself
string, varchar, char                  STRING; char(n) padded with blanks to n characters
uniontype                              STRUCT of ``tag`` (0 for the first member) and ``field0``, ``field1``, ...
struct without fields                  STRUCT of one null field ``_empty``
decimal without a precision            DECIMAL(38, 6)
=====================================  =============================================================================

All else keeps its name.  The conversion is that of the Parquet export, but for timestamps.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import types as st
from pyspark.sql.pandas.types import from_arrow_type

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts
from acidctl.orc.types import OrcType, arrow_type
from acidctl.rows.export.storable import Storable
from acidctl.rows.export.text import nulls

_MICROS = 1_000_000
_SECONDS_LIMIT = np.iinfo(np.int64).max // _MICROS - 1

_INTEGERS: tuple[type[st.DataType], ...] = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)


class SparkForm(Storable):
    """Columns in Spark's types.  A plain subclass: nested columns come through :meth:`column` too."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(parquet=True)

    def column(self, array: pa.Array, types: OrcType | None, target: pa.DataType | None, where: str) -> pa.Array:
        """Return one column, nested ones with all below them.

        Raises BadDataError if a timestamp lies beyond 292 000 years from 1970, or a value does not fit `target`.
        """
        if isinstance(array.type, WideTimestamp):
            return _wide_micros(array, where)
        if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
            return _micros(array)
        return super().column(array, types, target, where)


def _micros(array: pa.Array) -> pa.Array:
    """Cut nanoseconds to microseconds: Arrow's own cast refuses, or rounds towards 1970."""
    ticks: NDArray[np.int64] = np.asarray(array.view(pa.int64()).fill_null(0))
    mask = nulls(array) if array.null_count else None
    return pa.array(ticks // 1000, pa.timestamp("us", array.type.tz), mask=mask)


def _wide_micros(array: pa.ExtensionArray, where: str) -> pa.Array:
    seconds, nanos = parts(array)
    if (np.abs(seconds) > _SECONDS_LIMIT).any():
        raise BadDataError(f"column {where}: a timestamp is too far from 1970 for Spark")
    zone = "UTC" if array.type.instant else None
    return pa.array(seconds * _MICROS + nanos // 1000, pa.timestamp("us", zone), mask=nulls(array))


def spark_type(orc: OrcType) -> st.DataType:
    """Return the type that Spark shows for a column."""
    column = SparkForm().column(pa.nulls(0, arrow_type(orc)), orc, None, "")
    return from_arrow_type(column.type, prefer_timestamp_ntz=True)


def check_asked(field: st.StructField, actual: st.DataType, path: str) -> None:
    """Refuse a column's type in the user's schema unless all values of the file's type fit it.

    Raises UsageProblem for another type, and for NOT NULL, which nothing in the files promises.
    """
    if not field.nullable:
        why, hint = "its files do not promise it, and Spark would trust it", "leave NOT NULL away in the schema"
        raise UsageProblem(f"column {field.name} of {path} cannot be read as NOT NULL", why, hint)
    if not _fits(actual, field.dataType):
        what = f"column {field.name} of {path} cannot be read as {field.dataType.simpleString()}"
        raise UsageProblem(what, f"it is {actual.simpleString()}", "give that type, or no schema, and cast in SQL")


def _fits(actual: st.DataType, asked: st.DataType) -> bool:
    if actual == asked:
        return True
    kinds = type(actual), type(asked)
    if kinds[0] in _INTEGERS and kinds[1] in _INTEGERS:
        return _INTEGERS.index(kinds[0]) < _INTEGERS.index(kinds[1])
    if isinstance(actual, st.DecimalType) and isinstance(asked, st.DecimalType):
        return asked.scale >= actual.scale and asked.precision - asked.scale >= actual.precision - actual.scale
    if isinstance(actual, st.StringType) and isinstance(asked, st.CharType | st.VarcharType):
        return False
    return kinds == (st.FloatType, st.DoubleType)
