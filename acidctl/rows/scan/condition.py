"""A condition in SQL, parsed by sqlglot in Hive's dialect.

=============================================  ====================================================================
``= == <> != < <= > >= <=>``                   a column with a value or another column
``IN (v, ...)``, ``BETWEEN v AND w``           values; also with ``NOT``
``LIKE 'pattern'``                             ``%`` any text, ``_`` one character, ``\\`` escapes; also ``NOT LIKE``
``IS NULL``, ``IS NOT NULL``                   any column
``IS TRUE``, ``IS FALSE``, the column alone    boolean columns
``AND``, ``OR``, ``NOT``, parentheses
=============================================  ====================================================================

Columns go by their names whatever the case, in back quotes when odd; a dot reaches into structs.  Values are numbers,
``'text'``, ``DATE '2024-02-29'``, ``TIMESTAMP '2024-02-29 12:00:00.5'``, ``TRUE``, ``FALSE``, ``NULL``; text beside a
number, date or timestamp column is read as such a value.  As in SQL a comparison with NULL is neither true nor false,
and only rows for which the condition is true are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import sqlglot
from sqlglot import exp

from acidctl.errors import UsageProblem
from acidctl.nearest import did_you_mean
from acidctl.orc.types import OrcType
from acidctl.rows.scan.compare import MIRRORED, Literal, MismatchError, parse_moment
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
    """A condition names a column that is not there."""


def parse_condition(text: str, columns: OrcType) -> Predicate:
    """A condition in SQL.

    Args:
        columns: what may be used, as a struct type.

    Raises:
        UnknownColumn: a column that is not among them.
        UsageProblem: not a condition of the kind above, or a value that does not fit its column.
    """
    parser = _Parser(text, columns)
    try:
        root = parser.root()
    except sqlglot.errors.SqlglotError as error:
        raise cannot_use(text, str(error).splitlines()[0]) from None
    except RecursionError:
        raise cannot_use(text, "it is nested too deeply") from None
    predicate = Predicate(text, root, parser.paths)
    predicate.check(columns)
    return predicate


class _Parser:
    """From sqlglot's tree to ours.

    Attributes:
        paths: the columns, and fields inside columns, met so far, with the kinds of their types.
    """

    def __init__(self, text: str, types: OrcType) -> None:
        self._text = text
        self._types = types
        self.paths: dict[Path, str] = {}

    def root(self) -> Node:
        """The whole condition."""
        return self._condition(sqlglot.parse_one(self._text, dialect="hive", into=exp.Condition))

    def _refuse(self, why: str) -> UsageProblem:
        return cannot_use(self._text, why)

    def _condition(self, node: exp.Expr) -> Node:
        found = self._plain(node)
        # sqlglot puts the NOT of NOT LIKE into the node itself.
        return Not(found) if node.args.get("negate") else found

    def _plain(self, node: exp.Expr) -> Node:
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
        if not isinstance(left, exp.Column | exp.Dot):
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
        parts = [part.name for part in node.parts]
        whole = ".".join(parts)
        if whole.lower() in map(str.lower, self._types.names):  # names may have dots themselves
            parts = [whole]
        kind, spelled = self._types, list[str]()
        for name in parts:
            known = {own.lower(): own for own in reversed(kind.names)}
            if name.lower() not in known:
                names = [".".join((*spelled, own)) for own in kind.names]
                raise self._unknown(".".join((*spelled, name)) if spelled else whole, names)
            spelled.append(known[name.lower()])
            kind = kind.children[kind.names.index(spelled[-1])]
        path = tuple(spelled)
        self.paths[path] = kind.kind
        return ColumnRef(path, kind.kind == "char")

    def _unknown(self, name: str, known: Sequence[str]) -> UsageProblem:
        what = f"no column {name!r} in the condition"
        why = f"the columns are {', '.join(known)}" if known else "there is nothing inside it"
        return UnknownColumn(what, why, did_you_mean(name, known))

    def _literal(self, node: exp.Expr) -> Literal:
        if isinstance(node, exp.Paren):
            return self._literal(node.this)
        if isinstance(node, exp.Null):
            return None
        if isinstance(node, exp.Neg):
            value = self._literal(node.this)
            if isinstance(value, Decimal):
                return value.copy_negate()  # a minus would round it to 28 digits
            if isinstance(value, int) and not isinstance(value, bool):
                return -value
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Literal):
            return node.name if node.is_string else self._number(node.name)
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
            return self._cast(node)
        raise self._refuse(f"{node.sql(dialect='hive')!r} is not a value")

    def _number(self, text: str) -> int | Decimal:
        try:
            return int(text) if text.isdigit() else Decimal(text)
        except (ValueError, ArithmeticError):
            raise self._refuse(f"{text[:40]!r} is not a number") from None

    def _cast(self, node: exp.Cast) -> Literal:
        kind, text = node.to.this, node.this.name
        if kind in exp.DataType.TEMPORAL_TYPES:
            try:
                moment = parse_moment(text)
            except MismatchError as error:
                raise self._refuse(str(error)) from None
            if kind is exp.DataType.Type.DATE and ":" in text:
                raise self._refuse(f"{text!r} is not a date")
            return moment
        if kind in exp.DataType.NUMERIC_TYPES:
            return self._number(text)
        if kind in exp.DataType.TEXT_TYPES:
            return str(text)
        raise self._refuse(f"{node.sql(dialect='hive')!r} is not a value")
