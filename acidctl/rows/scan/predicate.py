"""A condition over the rows of a batch, and over the statistics of many rows.

As in SQL a comparison with NULL is neither true nor false, and only rows for which the condition is true are kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.errors import UsageProblem
from acidctl.orc.arrow import null_where, struct_of, tags_of
from acidctl.orc.read.union_nulls import has_null_member
from acidctl.orc.types import OrcType, arrow_type, hive_word
from acidctl.rows.scan.compare import (
    Literal,
    MismatchError,
    compare_columns,
    compare_value,
    conversion,
    unpadded,
)
from acidctl.rows.scan.pruning import ColumnBounds

Path = tuple[str, ...]
"""The name of a column, and the names of the fields inside it."""


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column or a field inside one; comparisons ignore the blanks at the end of a CHAR."""

    path: Path
    is_char: bool = False


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    """``column sign value``; with `null_safe` (``<=>``) NULL equals NULL."""

    column: ColumnRef
    sign: str
    value: Literal | ColumnRef
    null_safe: bool = False


@dataclass(frozen=True, slots=True)
class Like:
    """``column LIKE pattern``; ``\\`` escapes."""

    column: ColumnRef
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """``column IS NULL``."""

    column: ColumnRef


@dataclass(frozen=True, slots=True)
class Not:
    """``NOT inner``."""

    inner: Node


@dataclass(frozen=True, slots=True)
class AllOf:
    """``part AND part ...``."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """``part OR part ...``."""

    parts: tuple[Node, ...]


Node = ColumnComparison | Like | IsNull | Not | AllOf | AnyOf
"""A condition as a tree."""


class RowCondition(Protocol):
    """The methods of a condition that a scan calls; :class:`Predicate` documents their results."""

    paths: tuple[Path, ...]

    def mask(self, column: Callable[[Path], pa.Array]) -> pa.BooleanArray: ...

    def may_match(self, bounds: Callable[[Path], ColumnBounds | None]) -> bool: ...


class PartialCondition(RowCondition, Protocol):
    """A condition that can be judged without some of its columns; see :meth:`Predicate.without`."""

    def without(self, missing: Collection[Path], *, hopeful: bool) -> PartialCondition | bool: ...


class Predicate:
    """A condition over named columns; :func:`acidctl.rows.scan.condition.parse_condition` makes it from SQL.

    Args:
        text: the condition as it was written, for messages.
        paths: the columns, and fields inside columns, that it uses.
    """

    def __init__(self, text: str, root: Node, paths: Iterable[Path]) -> None:
        self._text, self._root = text, root
        self.paths = tuple(paths)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows for which the condition is true.

        Raises:
            UsageProblem: a column cannot be compared with the value.
        """
        return batch.filter(
            self.mask(lambda path: _field(batch.column(batch.schema.get_field_index(path[0])), path[1:]))
        )

    def mask(self, column: Callable[[Path], pa.Array]) -> pa.BooleanArray:
        """Return for every row whether the condition is true, NULL if that is unknown.

        Args:
            column: returns the column or field of a path in :attr:`paths`.

        Raises:
            UsageProblem: a column cannot be compared with the value.
        """
        try:
            cached = functools.cache(lambda ref: unpadded(column(ref.path)) if ref.is_char else column(ref.path))
            return _evaluate(self._root, cached)
        except MismatchError as error:
            raise cannot_use(self._text, str(error)) from None
        except pa.ArrowException as error:
            raise cannot_use(self._text, str(error).splitlines()[0]) from None

    def may_match(self, bounds: Callable[[Path], ColumnBounds | None]) -> bool:
        """Return whether some row may meet the condition, by the bounds of the columns; True if unsure."""
        return _may(self._root, bounds, negated=False)

    def without(self, missing: Collection[Path], *, hopeful: bool) -> Predicate | bool:
        """Return the condition without columns whose values are unknown; True or False if that decides it.

        Args:
            missing: members of :attr:`paths` that may have any value.
            hopeful: the result is true for rows that some values could make true; else for those that all values do.
        """
        rest = _without(self._root, missing, hopeful)
        return rest if isinstance(rest, bool) else Predicate(self._text, rest, _paths_in(rest))

    def check(self, types: OrcType) -> None:
        """Check that all values fit the columns of a struct type.

        Raises:
            UsageProblem: a value cannot be compared with its column.
        """
        empty = [pa.nulls(0, arrow_type(child)) for child in types.children]
        rows = struct_of(empty, types.names, 0)
        self.mask(lambda path: _field(rows, path))

    def refuse_conversions(self, types: OrcType) -> None:
        """Refuse values that some version of Hive converts in another way, and so would select other rows.

        Args:
            types: the columns as a struct type.

        Raises:
            UsageProblem: there is such a value.
        """
        rows = struct_of([pa.nulls(0, arrow_type(child)) for child in types.children], types.names, 0)
        for node in _comparisons(self._root):
            if isinstance(node.value, ColumnRef) or not (
                found := conversion(_field(rows, node.column.path).type, node.value)
            ):
                continue
            why, instead = found
            column = ".".join(node.column.path)
            raise cannot_use(self._text, f"{why}: {column} {node.sign} {node.value!r}", f"write {instead}")


def cannot_use(
    text: str,
    why: str,
    hint: str = "write it like: id = 2 AND (name LIKE 'a%' OR day BETWEEN '2024-01-01' AND '2024-01-31')",
) -> UsageProblem:
    """Return the error for a condition."""
    return UsageProblem(f"cannot use the condition {text!r}", why, hint)


def _field(array: pa.Array, path: Path) -> pa.Array:
    missing = None
    for name in path:
        kind = array.type
        names = [kind.field(i).name for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
        place = next((i for i, field in enumerate(names) if field.lower() == name.lower()), None)
        if place is None:
            raise MismatchError(f"there is no field {name!r}")
        if array.null_count:
            here = array.is_null()
            missing = here if missing is None else pc.or_(missing, here)
        array = array.field(place)
    return array if missing is None else null_where(array, missing)


def _evaluate(node: Node, column: Callable[[ColumnRef], pa.Array]) -> pa.BooleanArray:
    match node:
        case AllOf(parts):
            return functools.reduce(pc.and_kleene, (_evaluate(part, column) for part in parts))
        case AnyOf(parts):
            return functools.reduce(pc.or_kleene, (_evaluate(part, column) for part in parts))
        case Not(inner):
            return pc.invert(_evaluate(inner, column))
        case IsNull(ref):
            return _is_null(column(ref))
        case Like(ref, pattern):
            array = column(ref)
            if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
                raise MismatchError(f"LIKE is for text, and {'.'.join(ref.path)} is of type {hive_word(array.type)}")
            return pc.match_like(array, pattern)
        case ColumnComparison():
            return _compared(node, column)


def _is_null(array: pa.Array) -> pa.BooleanArray:
    if pa.types.is_union(array.type) and has_null_member(array.type):
        return pa.array(tags_of(array) == array.type.num_fields - 1)
    return array.is_null()


def _compared(node: ColumnComparison, column: Callable[[ColumnRef], pa.Array]) -> pa.BooleanArray:
    array = column(node.column)
    if isinstance(node.value, ColumnRef):
        other = column(node.value)
        mask = compare_columns(array, node.sign, other)
        if node.null_safe:
            both = pc.and_(array.is_null(), other.is_null())
            return pc.or_(pc.fill_null(mask, False), both)
        return mask
    if node.null_safe and node.value is None:
        return _is_null(array)
    mask = compare_value(array, node.sign, _trimmed(node.column, node.value))
    return pc.fill_null(mask, False) if node.null_safe else mask


def _without(node: Node, missing: Collection[Path], value: bool) -> Node | bool:
    """Return the node without comparisons with a missing column: they count as `value`, or its opposite below a NOT."""
    match node:
        case AllOf(parts) | AnyOf(parts):
            decisive = isinstance(node, AnyOf)
            rest = [_without(part, missing, value) for part in parts]
            if any(part is decisive for part in rest):
                return decisive
            kept = tuple(part for part in rest if not isinstance(part, bool))
            return type(node)(kept) if kept else not decisive
        case Not(inner):
            negated = _without(inner, missing, not value)
            return not negated if isinstance(negated, bool) else Not(negated)
    return value if any(path in missing for path in _paths_in(node)) else node


def _paths_in(node: Node) -> tuple[Path, ...]:
    match node:
        case AllOf(parts) | AnyOf(parts):
            return tuple(dict.fromkeys(path for part in parts for path in _paths_in(part)))
        case Not(inner):
            return _paths_in(inner)
        case ColumnComparison(column, _, ColumnRef(path)):
            return column.path, path
    return (node.column.path,)


def _comparisons(node: Node) -> Iterator[ColumnComparison]:
    match node:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _comparisons(part)
        case Not(inner):
            yield from _comparisons(inner)
        case ColumnComparison():
            yield node


def _trimmed(column: ColumnRef, value: Literal) -> Literal:
    return value.rstrip(" ") if column.is_char and isinstance(value, str) else value


def _may(node: Node, bounds: Callable[[Path], ColumnBounds | None], *, negated: bool) -> bool:
    """Return whether some row may make the node true, or false if `negated`."""
    match node:
        case AllOf(parts) | AnyOf(parts):
            every = isinstance(node, AllOf) is not negated
            return (all if every else any)(_may(part, bounds, negated=negated) for part in parts)
        case Not(inner):
            return _may(inner, bounds, negated=not negated)
        case IsNull(ref):
            column_bounds = bounds(ref.path)
            return column_bounds is None or (column_bounds.values if negated else column_bounds.nulls)
        case Like(ref, _):
            column_bounds = bounds(ref.path)
            return column_bounds is None or column_bounds.values
        case ColumnComparison(ref, sign, value, null_safe):
            column_bounds = bounds(ref.path)
            if column_bounds is None or isinstance(value, ColumnRef) or null_safe:
                return True
            return column_bounds.may(sign, _trimmed(ref, value), negated=negated)
