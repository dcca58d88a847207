"""``--where``: a condition in SQL, parsed by sqlglot in Hive's dialect.

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

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from acidctl.errors import UsageProblem
from acidctl.orc.types import OrcType, arrow_type
from acidctl.orc.union_nulls import has_null_member
from acidctl.orc.wide_time import tags_of
from acidctl.rows.compare import (
    MIRRORED,
    Literal,
    MismatchError,
    compare,
    compare_columns,
    parse_moment,
    unpadded,
)
from acidctl.rows.pruning import Bounds

Path = tuple[str, ...]
"""A column: its name, and the names of the fields inside it."""

_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


@dataclass(frozen=True, slots=True)
class _Column:
    path: Path
    is_char: bool = False


@dataclass(frozen=True, slots=True)
class _Compare:
    """``column sign value``; `null_safe` makes NULL a value like others (``<=>``)."""

    column: _Column
    sign: str
    value: Literal | _Column
    null_safe: bool = False


@dataclass(frozen=True, slots=True)
class _In:
    column: _Column
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class _Like:
    column: _Column
    pattern: str


@dataclass(frozen=True, slots=True)
class _IsNull:
    column: _Column


@dataclass(frozen=True, slots=True)
class _Not:
    inner: _Node


@dataclass(frozen=True, slots=True)
class _All:
    parts: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Any:
    parts: tuple[_Node, ...]


_Node = _Compare | _In | _Like | _IsNull | _Not | _All | _Any


class Predicate:
    """A parsed condition over named columns.

    Args:
        text: the condition.
        columns: what may be used: names, or better a struct type, by which fields and values are checked at once.

    Attributes:
        used: names of the top-level columns that it looks at.
        paths: the columns, and fields inside columns, that it looks at.

    Raises:
        UsageProblem: not a condition of the kind above, an unknown column, or a value that does not fit its column.
    """

    def __init__(self, text: str, columns: Sequence[str] | OrcType) -> None:
        self._text = text
        self._types = columns if isinstance(columns, OrcType) else None
        names = columns.names if isinstance(columns, OrcType) else columns
        self._columns = {name.lower(): name for name in reversed(list(names))}
        self.paths: dict[Path, None] = {}
        try:
            tree = sqlglot.parse_one(text, dialect="hive", into=exp.Condition)
            self._root = self._condition(tree)
        except sqlglot.errors.SqlglotError as error:
            raise self._refuse(str(error).splitlines()[0]) from None
        except RecursionError:
            raise self._refuse("it is nested too deeply") from None
        self.used = {path[0] for path in self.paths}
        if self._types is not None:
            self._check(self._types)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows for which the condition is true.

        Raises:
            UsageProblem: a column cannot be compared with the value given.
        """
        return batch.filter(self.mask(functools.partial(column_at, batch)))

    def mask(self, column: Callable[[Path], pa.Array]) -> pa.BooleanArray:
        """Whether the condition is true, NULL where it is unknown, for every row.

        Args:
            column: gives the column or field of a path in :attr:`paths`.

        Raises:
            UsageProblem: a column cannot be compared with the value given.
        """
        try:
            return _evaluate(self._root, lambda one: unpadded(column(one.path)) if one.is_char else column(one.path))
        except MismatchError as error:
            raise self._refuse(str(error)) from None
        except pa.ArrowException as error:
            raise self._refuse(str(error).splitlines()[0]) from None

    def may_match(self, bounds: Callable[[Path], Bounds | None]) -> bool:
        """Whether some row may meet the condition, by what is known of the columns; True when in doubt."""
        return _may(self._root, bounds, negated=False)

    def _check(self, types: OrcType) -> None:
        empty = [pa.nulls(0, arrow_type(child)) for child in types.children]
        fields = [pa.field(name, array.type) for name, array in zip(types.names, empty, strict=True)]
        rows = pa.StructArray.from_arrays(empty, fields=fields)
        self.mask(lambda path: _field(rows, path))

    def _refuse(self, why: str) -> UsageProblem:
        return UsageProblem(
            f"cannot use the condition {self._text!r}",
            why,
            "write it like: id = 2 AND (name LIKE 'a%' OR day BETWEEN '2024-01-01' AND '2024-01-31')",
        )

    def _condition(self, node: exp.Expr) -> _Node:
        found = self._plain(node)
        # sqlglot puts the NOT of NOT LIKE into the node itself.
        return _Not(found) if node.args.get("negate") else found

    def _plain(self, node: exp.Expr) -> _Node:
        if isinstance(node, exp.Paren):
            return self._condition(node.this)
        if isinstance(node, exp.And | exp.Or):
            parts = tuple(self._condition(part) for part in node.flatten())
            return _All(parts) if isinstance(node, exp.And) else _Any(parts)
        if isinstance(node, exp.Not):
            return _Not(self._condition(node.this))
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, exp.In) and node.expressions:
            return _In(self._column(node.this), tuple(self._literal(item) for item in node.expressions))
        if isinstance(node, exp.Between):
            low, high = (self._literal(node.args[side]) for side in ("low", "high"))
            column = self._column(node.this)
            return _All((_Compare(column, ">=", low), _Compare(column, "<=", high)))
        if isinstance(node, exp.Like):
            pattern = self._literal(node.expression)
            if not isinstance(pattern, str):
                raise self._refuse("LIKE needs a text")
            return _Like(self._column(node.this), pattern)
        if isinstance(node, exp.Column | exp.Dot):
            column = self._column(node)
            if self._types is None or self._type_of(column.path).kind != "boolean":
                raise self._refuse(f"{'.'.join(column.path)!r} alone is no condition: compare it with something")
            return _Compare(column, "=", True)
        return self._comparison(node)

    def _comparison(self, node: exp.Expr) -> _Node:
        null_safe = isinstance(node, exp.NullSafeEQ)
        sign = "=" if null_safe else _SIGNS.get(type(node))
        if sign is None:
            raise self._refuse(f"{node.sql(dialect='hive')!r} is no comparison that is known here")
        left, right = node.this, node.expression
        if not isinstance(left, exp.Column | exp.Dot):
            left, right, sign = right, left, MIRRORED[sign]
        column = self._column(left)
        if isinstance(right, exp.Column | exp.Dot):
            return _Compare(column, sign, self._column(right), null_safe)
        return _Compare(column, sign, self._literal(right), null_safe)

    def _is(self, node: exp.Is) -> _Node:
        column = self._column(node.this)
        if isinstance(node.expression, exp.Null):
            return _IsNull(column)
        if isinstance(node.expression, exp.Boolean):
            return _Compare(column, "=", bool(node.expression.this), null_safe=True)
        raise self._refuse(f"{node.sql(dialect='hive')!r} is no comparison that is known here")

    def _column(self, node: exp.Expr) -> _Column:
        if not isinstance(node, exp.Column | exp.Dot):
            raise self._refuse(f"{node.sql(dialect='hive')!r} is no column")
        parts = tuple(part.name for part in node.parts)
        whole = ".".join(parts)
        if whole.lower() in self._columns:
            path: Path = (self._columns[whole.lower()],)
        elif parts[0].lower() in self._columns and len(parts) > 1:
            path = (self._columns[parts[0].lower()], *parts[1:])
        else:
            raise self._unknown(whole, list(self._columns.values())[::-1])
        if self._types is not None:
            path = self._spelled(path)
        self.paths[path] = None
        return _Column(path, self._types is not None and self._type_of(path).kind == "char")

    def _spelled(self, path: Path) -> Path:
        """The path as the types spell it."""
        assert self._types is not None
        node, spelled = self._types, list[str]()
        for name in path:
            known = {own.lower(): own for own in reversed(node.names)}
            if name.lower() not in known:
                raise self._unknown(".".join((*spelled, name)), [".".join((*spelled, own)) for own in node.names])
            spelled.append(known[name.lower()])
            node = node.children[node.names.index(spelled[-1])]
        return tuple(spelled)

    def _type_of(self, path: Path) -> OrcType:
        assert self._types is not None
        node = self._types
        for name in path:
            node = node.children[node.names.index(name)]
        return node

    def _unknown(self, name: str, known: Sequence[str]) -> UsageProblem:
        folded = {one.lower(): one for one in known}
        near = [folded[one] for one in get_close_matches(name.lower(), list(folded), 3)]
        what = f"no column {name!r} in the condition"
        why = f"the columns are {', '.join(known)}" if known else "there is nothing inside it"
        return UsageProblem(what, why, f"did you mean {', '.join(near)}?" if near else "")

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
        raise self._refuse(f"{node.sql(dialect='hive')!r} is no value")

    def _number(self, text: str) -> int | Decimal:
        try:
            return int(text) if text.isdigit() else Decimal(text)
        except (ValueError, ArithmeticError):
            raise self._refuse(f"{text[:40]!r} is no number") from None

    def _cast(self, node: exp.Cast) -> Literal:
        kind, text = node.to.this, node.this.name
        if kind in exp.DataType.TEMPORAL_TYPES:
            try:
                moment = parse_moment(text)
            except MismatchError as error:
                raise self._refuse(str(error)) from None
            if kind is exp.DataType.Type.DATE and ":" in text:
                raise self._refuse(f"{text!r} is no date")
            return moment
        if kind in exp.DataType.NUMERIC_TYPES:
            return self._number(text)
        if kind in exp.DataType.TEXT_TYPES:
            return str(text)
        raise self._refuse(f"{node.sql(dialect='hive')!r} is no value")


def column_at(batch: pa.RecordBatch, path: Path) -> pa.Array:
    """A column of a batch, or a field inside it; NULL where a struct around it is."""
    column = batch.column(batch.schema.get_field_index(path[0]))
    return _field(column, path[1:])


def _field(array: pa.Array, path: Path) -> pa.Array:
    missing = None
    for name in path:
        kind = array.type
        names = [kind.field(i).name for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
        place = next((i for i, own in enumerate(names) if own.lower() == name.lower()), None)
        if place is None:
            raise MismatchError(f"there is no field {name!r}")
        if array.null_count:
            here = array.is_null()
            missing = here if missing is None else pc.or_(missing, here)
        array = array.field(place)
    return array if missing is None else hidden(array, missing)


def hidden(array: pa.Array, missing: pa.BooleanArray) -> pa.Array:
    """The array, NULL where `missing`."""
    mask = missing.to_numpy(zero_copy_only=False)
    return array.take(pa.array(np.arange(len(array), dtype=np.int64), mask=mask))


def _evaluate(node: _Node, column: Callable[[_Column], pa.Array]) -> pa.BooleanArray:
    match node:
        case _All(parts):
            return functools.reduce(pc.and_kleene, (_evaluate(part, column) for part in parts))
        case _Any(parts):
            return functools.reduce(pc.or_kleene, (_evaluate(part, column) for part in parts))
        case _Not(inner):
            return pc.invert(_evaluate(inner, column))
        case _IsNull(one):
            return _is_null(column(one))
        case _In(one, values):
            array = column(one)
            return functools.reduce(pc.or_kleene, (compare(array, "=", _trimmed(one, value)) for value in values))
        case _Like(one, pattern):
            array = column(one)
            if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
                raise MismatchError(f"LIKE is for text, and {'.'.join(one.path)} is of type {array.type}")
            return pc.match_like(array, pattern)
        case _Compare():
            return _compared(node, column)


def _is_null(array: pa.Array) -> pa.BooleanArray:
    if pa.types.is_union(array.type) and has_null_member(array.type):
        return pa.array(tags_of(array) == array.type.num_fields - 1)
    return array.is_null()


def _compared(node: _Compare, column: Callable[[_Column], pa.Array]) -> pa.BooleanArray:
    array = column(node.column)
    if isinstance(node.value, _Column):
        other = column(node.value)
        found = compare_columns(array, node.sign, other)
        if node.null_safe:
            both = pc.and_(array.is_null(), other.is_null())
            return pc.or_(pc.fill_null(found, False), both)
        return found
    if node.null_safe and node.value is None:
        return _is_null(array)
    found = compare(array, node.sign, _trimmed(node.column, node.value))
    return pc.fill_null(found, False) if node.null_safe else found


def _trimmed(column: _Column, value: Literal) -> Literal:
    return value.rstrip(" ") if column.is_char and isinstance(value, str) else value


def _may(node: _Node, bounds: Callable[[Path], Bounds | None], *, negated: bool) -> bool:
    """Whether some row may make the node true, or false when `negated`."""
    match node:
        case _All(parts) | _Any(parts):
            every = isinstance(node, _All) is not negated
            return (all if every else any)(_may(part, bounds, negated=negated) for part in parts)
        case _Not(inner):
            return _may(inner, bounds, negated=not negated)
        case _IsNull(one):
            known = bounds(one.path)
            return known is None or (known.values if negated else known.nulls)
        case _In(one, values):
            known = bounds(one.path)
            if known is None:
                return True
            if negated:
                return known.values
            return any(known.may("=", _trimmed(one, value)) for value in values)
        case _Like(one, _):
            known = bounds(one.path)
            return known is None or known.values
        case _Compare(one, sign, value, null_safe):
            known = bounds(one.path)
            if known is None or isinstance(value, _Column) or null_safe:
                return True
            return known.may(sign, _trimmed(one, value), negated=negated)
