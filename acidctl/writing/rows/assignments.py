"""The new values of an UPDATE: ``value = 'CC', n = n + 1``, parsed by sqlglot in Hive's dialect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from acidctl.base.errors import UsageProblem
from acidctl.orc.read.wide_timestamps import wide
from acidctl.orc.types import OrcType
from acidctl.rows.scan.compare import NO_SECONDS, MismatchError, lacks_seconds, parse_moment
from acidctl.writing.rows.conform import column_hint

_SECOND = 10**9
_DAY = 86_400 * _SECOND
"""In nanoseconds."""

_ARITHMETIC: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: pc.add_checked,
    exp.Sub: pc.subtract_checked,
    exp.Mul: pc.multiply_checked,
}


@dataclass(frozen=True, slots=True)
class Assignments:
    """The expressions of an UPDATE, by the column that each is assigned to."""

    text: str
    by_column: Mapping[str, exp.Expr]

    def values(self, batch: pa.RecordBatch) -> dict[str, Any]:
        """Return the new values of a batch by column: arrays, or scalars that all rows get.

        Raises:
            UsageProblem: an expression does not fit the types of its columns.
        """
        try:
            return {name: _assigned(name, node, batch) for name, node in self.by_column.items()}
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise UsageProblem(f"cannot compute {self.text}", str(error).splitlines()[0], "") from error


def parse_assignments(text: str, row: OrcType, fixed: Mapping[str, str]) -> Assignments:
    """Parse a list of assignments as it follows SET in HiveQL.

    Args:
        row: the columns of the table.
        fixed: columns that may not be changed, each with the reason.

    Raises:
        UsageProblem: the text cannot be parsed, assigns a column twice, uses a column that does not exist or may not be
            changed, or an expression that is not supported.
    """
    try:
        statement = sqlglot.parse_one(f"UPDATE t SET {text}", dialect="hive")
    except sqlglot.errors.SqlglotError as error:
        raise UsageProblem(
            f"cannot use {text!r}", "it is not COLUMN = VALUE", "write \"name = 'x', n = n + 1\""
        ) from error
    nodes = statement.args.get("expressions")
    if not nodes:
        raise UsageProblem(f"cannot use {text!r}", "it assigns nothing", "write \"name = 'x', n = n + 1\"")
    by_column: dict[str, exp.Expr] = {}
    for node in nodes:
        if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
            raise UsageProblem(
                f"cannot use {text!r}", f"{node.sql('hive')} is not COLUMN = VALUE", "write \"name = 'x', n = n + 1\""
            )
        if why := fixed.get(node.this.name.lower()):
            what = f"column {node.this.name} cannot be updated"
            raise UsageProblem(what, why, "delete the row, and insert the new one")
        name = _column_name(node.this, row, text)
        if name in by_column:
            raise UsageProblem(f"cannot use {text!r}", f"{name} is assigned twice", "assign it once")
        _check(node.expression, row, text)
        kind, value = row.children[row.names.index(name)].kind, node.expression
        if kind == "timestamp" and isinstance(value, exp.Literal) and value.is_string and lacks_seconds(value.name):
            raise UsageProblem(f"cannot use {text!r}", f"{NO_SECONDS}: {value.sql('hive')}", "write the seconds, too")
        by_column[name] = node.expression
    if any(statement.args.get(part) for part in ("where", "from", "order", "limit")):
        raise UsageProblem(f"cannot use {text!r}", "it has more than assignments", "give a condition as --where")
    return Assignments(text, by_column)


def _column_name(column: exp.Column, row: OrcType, text: str) -> str:
    name = column.name.lower()
    if column.args.get("table") or name not in row.names:
        raise UsageProblem(
            f"cannot use {text!r}", f"the table has no column {column.sql('hive')}", column_hint(name, row.names)
        )
    return name


def _check(node: exp.Expr, row: OrcType, text: str) -> None:
    if isinstance(node, exp.Column):
        _column_name(node, row, text)
    elif isinstance(node, (*_ARITHMETIC, exp.Paren, exp.Neg, exp.DPipe)):
        for child in node.iter_expressions():
            _check(child, row, text)
    elif not isinstance(node, (exp.Literal, exp.Null, exp.Boolean)) and not _is_moment(node):
        raise UsageProblem(
            f"cannot use {text!r}",
            f"{node.sql('hive')} is not a value, a column, or their combination by +, -, * and ||",
            "give the new rows to `acidctl merge`, or update with Hive",
        )


def _is_moment(node: exp.Expr) -> bool:
    return (
        isinstance(node, exp.Cast) and node.to.this.name in ("DATE", "TIMESTAMP") and isinstance(node.this, exp.Literal)
    )


def _assigned(name: str, node: exp.Expr, batch: pa.RecordBatch) -> Any:
    """Return the value of an expression; arithmetic for a FLOAT is rounded to it, as Hive does it."""
    value, kind = _value(node, batch), batch.schema.field(name).type
    if isinstance(node, exp.Column) or not (pa.types.is_float64(value.type) and pa.types.is_float32(kind)):
        return value
    doubles = pa.repeat(value, len(batch)) if isinstance(value, pa.Scalar) else value
    floats = doubles.cast(kind, safe=False)
    if pc.any(pc.and_(pc.is_finite(doubles), pc.invert(pc.is_finite(floats)))).as_py():
        raise pa.ArrowInvalid(f"a value for {name} is beyond the range of FLOAT")
    return floats


def _value(node: exp.Expr, batch: pa.RecordBatch) -> Any:
    if isinstance(node, exp.Column):
        return batch.column(batch.schema.names.index(node.name.lower()))
    if isinstance(node, exp.Paren):
        return _value(node.this, batch)
    if isinstance(node, exp.Neg):
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return _number(f"-{node.this.this}")  # the lowest BIGINT is not the negative of any other
        return pc.negate_checked(_value(node.this, batch))
    if isinstance(node, exp.DPipe):
        return pc.binary_join_element_wise(*(_joinable(_value(side, batch)) for side in (node.left, node.right)), "")
    if function := _ARITHMETIC.get(type(node)):
        return function(*_operands(*(_value(side, batch) for side in (node.left, node.right))))  # type: ignore[attr-defined]
    return _literal(node)


def _joinable(value: Any) -> Any:
    return value.cast(pa.string()) if pa.types.is_null(value.type) else value


def _operands(left: Any, right: Any) -> tuple[Any, Any]:
    """Return both operands of arithmetic in types that Arrow can combine: a DECIMAL next to a FLOAT as DOUBLE."""
    kinds = left.type, right.type
    if any(map(pa.types.is_floating, kinds)) and any(map(pa.types.is_decimal, kinds)):
        return left.cast(pa.float64()), right.cast(pa.float64())
    return _operand(left), _operand(right)


def _operand(value: Any) -> Any:
    """Widen a decimal, so that results of arithmetic fit; :func:`fitted` casts them to the column's type."""
    if pa.types.is_decimal128(value.type):
        return value.cast(pa.decimal256(value.type.precision, value.type.scale))
    return value


def _literal(node: exp.Expr) -> Any:
    if isinstance(node, exp.Null):
        return pa.scalar(None)
    if isinstance(node, exp.Boolean):
        return pa.scalar(bool(node.this))
    if isinstance(node, exp.Cast):
        try:
            return _moment(node.this.this, is_date=node.to.this.name == "DATE")
        except MismatchError as error:
            raise UsageProblem(f"cannot use {node.sql('hive')}", str(error), "") from None
    return pa.scalar(node.this) if node.is_string else _number(node.this)


def _moment(text: str, *, is_date: bool) -> pa.Scalar:
    nanos = parse_moment(text).ns
    if is_date:
        return pa.scalar(nanos // _DAY, pa.date32())
    second, nano = divmod(nanos, _SECOND)
    return wide(np.array([second]), np.array([nano]), like=pa.array([nano]), instant=False)[0]


def _number(text: str) -> pa.Scalar:
    digits = text.removeprefix("-")
    is_long = digits.isdecimal() and -(2**63) <= int(text) < 2**63
    if is_long:
        return pa.scalar(int(text))
    try:
        return pa.scalar(Decimal(text))
    except pa.ArrowInvalid:  # more digits than a DECIMAL has
        if math.isfinite(number := float(text)):
            return pa.scalar(number)
        raise pa.ArrowInvalid("a number is beyond the range of DOUBLE") from None
