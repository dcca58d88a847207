"""Values of one primitive type as another."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from acidctl.orc.arrow import cut_text
from acidctl.orc.types import OrcType, arrow_type

_TEXTS = ("string", "varchar", "char")
_MAX_DIGITS = 38


class NoConversion(Exception):
    """A type is not converted to another; its text says why where there is more to say."""


def convert_leaf(column: pa.Array, own: OrcType, target: OrcType) -> pa.Array:
    """A column of a primitive type as another primitive type.

    Raises:
        NoConversion: there is none.
    """
    try:
        if target.kind in _TEXTS:
            return _fitted(column if own.kind in _TEXTS else _texts(column, own), own, target)
        return _cast(column, arrow_type(target))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise NoConversion(str(error).splitlines()[0]) from error


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    own = column.type
    if pa.types.is_floating(target) and (pa.types.is_integer(own) or pa.types.is_floating(own)):
        return column.cast(target, safe=False)  # large integers lose digits, in Hive too
    if pa.types.is_decimal(target) and pa.types.is_integer(own):
        column = column.cast(pa.decimal128(19, 0))
    if pa.types.is_decimal(target) and pa.types.is_decimal(column.type):
        if column.type.scale > target.scale:
            column = pc.round(column, target.scale, "half_towards_infinity")
        room = min(_MAX_DIGITS, column.type.precision - column.type.scale + target.scale)
        column = column.cast(pa.decimal128(max(room, target.precision), target.scale))
    return column.cast(target)


def _fitted(column: pa.Array, own: OrcType, target: OrcType) -> pa.Array:
    """Text as its newer type holds it: CHAR loses its padding, and what is longer than the type's length is cut off."""
    if "char" in (own.kind, target.kind):
        column = pc.ascii_rtrim(column, characters=" ")
    if target.max_length and target.kind != "string":
        column = cut_text(column, target.max_length)
    return pc.ascii_rtrim(column, characters=" ") if target.kind == "char" else column


def _texts(column: pa.Array, own: OrcType) -> pa.Array:
    """The values as text, in the form of the exports."""
    from acidctl.rows.export.cells import unquoted  # noqa: PLC0415 - with all exports: few columns ever become STRING
    from acidctl.rows.export.text import Kernels  # noqa: PLC0415 - the same

    if own.kind == "binary":
        raise NoConversion
    kernels = Kernels(large=False)
    if pa.types.is_boolean(column.type):
        return pc.if_else(column, "TRUE", "FALSE")  # as Hive converts them
    return kernels.wrapped(unquoted(column, None, kernels)).cast(pa.string())
