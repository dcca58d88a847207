"""A condition in SQL, parsed by sqlglot in Hive's dialect.

=============================================  ====================================================================
``= == <> != < <= > >= <=>``                   a column with a value or another column
``IN (v, ...)``, ``BETWEEN v AND w``           values; also with ``NOT``
``LIKE 'pattern'``                             ``%`` any text, ``_`` one character, ``\\`` escapes; also ``NOT LIKE``
``IS NULL``, ``IS NOT NULL``                   any column
``IS TRUE``, ``IS FALSE``, the column alone    boolean columns
``AND``, ``OR``, ``NOT``, parentheses
=============================================  ====================================================================

Column names ignore case; unusual names need back quotes; a dot reaches into structs. Values are numbers, ``'text'``,
``DATE '2024-02-29'``, ``TIMESTAMP '2024-02-29 12:00:00.5'``, ``TRUE``, ``FALSE``, ``NULL``; text compared with a
number, date or timestamp column is converted to its type. As in SQL a comparison with NULL is neither true nor false;
only rows for which the condition is true are kept. A cast to FLOAT or DOUBLE rounds as
Hive does it, next to a column of that type; everything else is refused.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from enum import Enum

import sqlglot
from sqlglot import exp

from acidctl.base.arguments import require_type
from acidctl.base.errors import UsageProblem
from acidctl.base.nearest import did_you_mean
from acidctl.orc.types import OrcType
from acidctl.rows.scan.compare import MIRRORED, Literal, MismatchError, parse_moment, to_float
from acidctl.rows.scan.predicate import (
    AllOf,
    AnyOf,
    ColumnComparison,
    ColumnRef,
    IsNull,
    Like,
    Node,
    Not,
    Path,
    Predicate,
    cannot_use,
)

_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


class UnknownColumn(UsageProblem):
    """A condition names a column that does not exist."""


def parse_condition(text: str, columns: OrcType) -> Predicate:
    """Parse a condition in SQL.

    Args:
        columns: the columns that may be used, as a struct type.

    Raises:
        UnknownColumn: the condition uses another column.
        UsageProblem: the condition is not of the kind above, or a value does not fit its column.
    """
    require_type(text, str, "a condition", "write it as SQL: 'id = 2'")
    parser = _Parser(text, columns)
    try:
        root = parser.root()
    except sqlglot.errors.SqlglotError as error:
        places = getattr(error, "errors", None)
        why = "it cannot be read: is a quote or a comment left open?"
        if places:  # without the names of sqlglot's classes
            why = f"it cannot be read at {places[0]['highlight']!r}, which ends at character {places[0]['col']}"
        raise cannot_use(text, why) from None
    except RecursionError:
        raise cannot_use(text, "it is nested too deeply") from None
    predicate = Predicate(text, root, parser.paths)
    predicate.check(columns)
    return predicate


# The supported arguments, by class of node; for all other classes the operands.
_HANDLED: dict[type[exp.Expr], frozenset[str]] = {
    exp.Column: frozenset(("this", "table", "db", "catalog")),
    exp.Identifier: frozenset(("this", "quoted")),
    exp.In: frozenset(("this", "expressions")),
    exp.Between: frozenset(("this", "low", "high")),
    exp.Like: frozenset(("this", "expression", "negate")),
    exp.Literal: frozenset(("this", "is_string")),
    exp.Cast: frozenset(("this", "to")),
    exp.TryCast: frozenset(("this", "to")),
    exp.DataType: frozenset(("this", "expressions", "nested")),
}
_OPERANDS = frozenset(("this", "expression"))
# A backslash before a character that Hive and sqlglot may read differently.
_ESCAPES = re.compile(r"\\(?![\\'\"ntr%_])")


class _Parser:
    """Translates sqlglot's tree into ours; it refuses every part of a node that it does not support.

    Attributes:
        paths: the columns, and fields inside columns, that have been used, with the kinds of their types.
    """

    def __init__(self, text: str, types: OrcType) -> None:
        self._text = text
        self._types = types
        self.paths: dict[Path, str] = {}

    def root(self) -> Node:
        if _ESCAPES.search(self._text):
            raise self._refuse("only \\\\, \\', \\\", \\n, \\t, \\r, \\% and \\_ are known after a backslash")
        return self._condition(sqlglot.parse_one(self._text, dialect="hive", into=exp.Condition))

    def _refuse_unsupported(self, node: exp.Expr) -> None:
        handled = _HANDLED.get(type(node), _OPERANDS)
        if any(value and name not in handled for name, value in node.args.items()):
            raise self._refuse(f"{node.sql(dialect='hive')!r} cannot be used here")

    def _refuse(self, why: str) -> UsageProblem:
        return cannot_use(self._text, why)

    def _condition(self, node: exp.Expr) -> Node:
        condition = self._plain(node)
        # sqlglot puts the NOT of NOT LIKE into the node itself.
        return Not(condition) if node.args.get("negate") else condition

    def _plain(self, node: exp.Expr) -> Node:
        self._refuse_unsupported(node)
        if isinstance(node, exp.Paren):
            return self._condition(node.this)
        if isinstance(node, exp.And | exp.Or):
            parts = tuple(self._condition(part) for part in node.flatten())
            return AllOf(parts) if isinstance(node, exp.And) else AnyOf(parts)
        if isinstance(node, exp.Not):
            return Not(self._condition(node.this))
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, exp.In) and node.expressions:
            column = self._column(node.this)
            return AnyOf(tuple(ColumnComparison(column, "=", self._literal(item)) for item in node.expressions))
        if isinstance(node, exp.Between):
            low, high = (self._literal(node.args[side]) for side in ("low", "high"))
            column = self._column(node.this)
            return AllOf((ColumnComparison(column, ">=", low), ColumnComparison(column, "<=", high)))
        if isinstance(node, exp.Like):
            pattern = self._literal(node.expression)
            if not isinstance(pattern, str):
                raise self._refuse("LIKE needs a text")
            return Like(self._column(node.this), pattern)
        if isinstance(node, exp.Column | exp.Dot):
            column = self._column(node)
            if self.paths[column.path] != "boolean":
                raise self._refuse(f"{'.'.join(column.path)!r} alone is not a condition: compare it with something")
            return ColumnComparison(column, "=", True)
        return self._comparison(node)

    def _comparison(self, node: exp.Expr) -> Node:
        null_safe = isinstance(node, exp.NullSafeEQ)
        sign = "=" if null_safe else _SIGNS.get(type(node))
        if sign is None:
            raise self._refuse(f"{node.sql(dialect='hive')!r} is not a comparison that is known here")
        left, right = node.this, node.expression
        if isinstance(right, exp.Column | exp.Dot) and not isinstance(left, exp.Column | exp.Dot):
            left, right, sign = right, left, MIRRORED[sign]
        column = self._column(left)
        if isinstance(right, exp.Column | exp.Dot):
            return ColumnComparison(column, sign, self._column(right), null_safe)
        return ColumnComparison(column, sign, self._literal(right), null_safe)

    def _is(self, node: exp.Is) -> Node:
        column = self._column(node.this)
        if isinstance(node.expression, exp.Null):
            return IsNull(column)
        if isinstance(node.expression, exp.Boolean):
            return ColumnComparison(column, "=", bool(node.expression.this), null_safe=True)
        raise self._refuse(f"{node.sql(dialect='hive')!r} is not a comparison that is known here")

    def _column(self, node: exp.Expr) -> ColumnRef:
        if not isinstance(node, exp.Column | exp.Dot):
            raise self._refuse(f"{node.sql(dialect='hive')!r} is not a column")
        for part in node.parts:
            self._refuse_unsupported(part)
            if not isinstance(part, exp.Identifier):
                raise self._refuse(f"{node.sql(dialect='hive')!r} is not a column, nor a field inside one")
        self._refuse_unsupported(node)
        parts = [part.name for part in node.parts]
        whole = ".".join(parts)
        if whole.lower() in map(str.lower, self._types.names):  # names may have dots themselves
            parts = [whole]
        kind, spelled = self._types, list[str]()
        for name in parts:
            by_lower = {field.lower(): field for field in reversed(kind.names)}
            if name.lower() not in by_lower:
                names = [".".join((*spelled, field)) for field in kind.names]
                unknown = ".".join((*spelled, name)) if spelled else whole
                why = f"the columns are {', '.join(names)}" if names else "there is nothing inside it"
                raise UnknownColumn(f"no column {unknown!r} in the condition", why, did_you_mean(unknown, names))
            spelled.append(by_lower[name.lower()])
            kind = kind.children[kind.names.index(spelled[-1])]
        path = tuple(spelled)
        self.paths[path] = kind.kind
        return ColumnRef(path, kind.kind == "char")

    def _literal(self, node: exp.Expr) -> Literal:
        self._refuse_unsupported(node)
        if isinstance(node, exp.Paren):
            return self._literal(node.this)
        if isinstance(node, exp.Null):
            return None
        if isinstance(node, exp.Neg):
            value = self._literal(node.this)
            if isinstance(value, Decimal):
                return value.copy_negate()  # a minus would round it to 28 digits
            if isinstance(value, int | float) and not isinstance(value, bool):
                return type(value)(-value)
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Literal):
            return node.name if node.is_string else self._number(node.name)
        if isinstance(node, exp.Cast):
            return self._cast(node)
        raise self._refuse(f"{node.sql(dialect='hive')!r} is not a value")

    def _number(self, text: str) -> int | Decimal:
        try:
            return int(text) if text.isdigit() else Decimal(text)
        except (ValueError, ArithmeticError):
            raise self._refuse(f"{text[:40]!r} is not a number") from None

    def _cast(self, node: exp.Cast) -> Literal:
        """Return a date, a timestamp, or a number rounded to FLOAT or DOUBLE as Hive does it."""
        self._refuse_unsupported(node.to)
        kind, value = node.to.this, self._literal(node.this)
        if value is None:
            return None
        if kind in (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP) and isinstance(value, str):
            return self._moment(kind, value)
        if kind in (exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE):
            value = self._number(value) if isinstance(value, str) else value
            if isinstance(value, int | Decimal) and not isinstance(value, bool):
                rounded = to_float(value) if kind is exp.DataType.Type.FLOAT else float(value)
                if not math.isfinite(rounded):
                    raise self._refuse(f"{value} is too large for {kind.value}")
                return rounded
        raise self._refuse(f"{node.sql(dialect='hive')!r} is not supported: write the value itself")

    def _moment(self, kind: Enum, text: str) -> Literal:
        try:
            moment = parse_moment(text)
        except MismatchError as error:
            raise self._refuse(str(error)) from None
        if kind is exp.DataType.Type.DATE and ":" in text:
            raise self._refuse(f"{text!r} is not a date")
        return moment
