"""`--where`: a condition in SQL, parsed by sqlglot in Hive's dialect, as an Arrow expression.

Columns, numbers, strings, dates and timestamps compared by ``= <> < <= > >=``, ``AND``, ``OR``, ``NOT``, ``IN``,
``BETWEEN``, ``LIKE`` and ``IS NULL``. As in SQL a comparison with NULL is neither true nor false: the row goes.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from acidctl.errors import UsageProblem

_COMPARE: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
}


class Predicate:
    """A parsed condition over named columns.

    Args:
        text: the condition.
        columns: names that may be used; case does not matter, a dot reaches into structs.

    Raises:
        UsageProblem: not a condition of the kind above, or an unknown column.
    """

    def __init__(self, text: str, columns: Sequence[str]) -> None:
        self._text = text
        self._columns = {name.lower(): name for name in columns}
        try:
            tree = sqlglot.parse_one(text, dialect="hive", into=exp.Condition)
        except sqlglot.errors.SqlglotError as error:
            raise self._refuse(str(error).splitlines()[0]) from None
        self.used: set[str] = set()
        self.expression: pc.Expression = self._condition(tree)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows for which the condition is true.

        Raises:
            UsageProblem: a column cannot be compared with the value given.
        """
        try:
            return batch.filter(self.expression)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise self._refuse(str(error).splitlines()[0]) from None

    def _refuse(self, why: str) -> UsageProblem:
        return UsageProblem(
            f"cannot use the condition {self._text!r}",
            why,
            "write it like: operation = 2 AND rowId BETWEEN 10 AND 20",
        )

    def _condition(self, node: exp.Expr) -> Any:
        if isinstance(node, exp.Paren):
            return self._condition(node.this)
        if isinstance(node, exp.And | exp.Or):
            left, right = self._condition(node.left), self._condition(node.right)
            return left & right if isinstance(node, exp.And) else left | right
        if isinstance(node, exp.Not):
            return ~self._condition(node.this)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return self._value(node.this).is_null()
        if isinstance(node, exp.In) and node.expressions:
            values = [self._literal(item) for item in node.expressions]
            return self._value(node.this).isin(values)
        if isinstance(node, exp.Between):
            value = self._value(node.this)
            return (value >= self._value(node.args["low"])) & (value <= self._value(node.args["high"]))
        if isinstance(node, exp.Like):
            return pc.match_like(self._value(node.this), str(self._literal(node.expression)))
        compare = _COMPARE.get(type(node))
        if compare is None:
            raise self._refuse(f"{node.sql(dialect='hive')!r} is no comparison that is known here")
        return compare(self._value(node.this), self._value(node.expression))

    def _value(self, node: exp.Expr) -> Any:
        if isinstance(node, exp.Column | exp.Dot):
            return self._column(node)
        return pc.scalar(self._literal(node))

    def _column(self, node: exp.Expr) -> Any:
        parts = [part.name for part in node.parts]  # type: ignore[attr-defined]
        whole = ".".join(parts).lower()
        if whole in self._columns:
            name = self._columns[whole]
            self.used.add(name)
            return pc.field(*name.split(".")) if "." in name else pc.field(name)
        first = self._columns.get(parts[0].lower())
        if first is None or len(parts) == 1:
            near = get_close_matches(whole, list(self._columns), 3)
            hint = f"did you mean {', '.join(self._columns[name] for name in near)}?" if near else ""
            known = ", ".join(self._columns.values())
            raise UsageProblem(f"no column {'.'.join(parts)!r} in the condition", f"the columns are {known}", hint)
        self.used.add(first)
        return pc.field(first, *parts[1:])

    def _literal(self, node: exp.Expr) -> Any:
        if isinstance(node, exp.Paren):
            return self._literal(node.this)
        if isinstance(node, exp.Neg):
            return -self._literal(node.this)
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Literal):
            if node.is_string:
                return node.name
            return int(node.name) if node.is_int else float(node.name)
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
            return self._temporal(node)
        raise self._refuse(f"{node.sql(dialect='hive')!r} is no value")

    def _temporal(self, node: exp.Cast) -> Any:
        try:
            if node.to.this is exp.DataType.Type.DATE:
                return datetime.date.fromisoformat(node.this.name)
            return datetime.datetime.fromisoformat(node.this.name)
        except ValueError as error:
            raise self._refuse(str(error)) from None
