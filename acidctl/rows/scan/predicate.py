"""A condition over the rows of a batch, and over what statistics say of many rows.

As in SQL a comparison with NULL is neither true nor false, and only rows for which the condition is true are kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from acidctl.errors import UsageProblem
from acidctl.orc.arrow import null_where, struct_of, tags_of
from acidctl.orc.read.union_nulls import has_null_member
from acidctl.orc.types import OrcType, arrow_type
from acidctl.rows.scan.compare import Literal, MismatchError, compare_columns, compare_value, type_name, unpadded
from acidctl.rows.scan.pruning import ColumnBounds

Path = tuple[str, ...]
"""A column: its name, and the names of the fields inside it."""


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column or a field inside one; of a CHAR the blanks at the end do not count."""

    path: Path
    is_char: bool = False


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    """``column sign value``; `null_safe` makes NULL a value like others (``<=>``)."""

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


class Predicate:
    """A condition over named columns; :func:`acidctl.rows.scan.condition.parse_condition` makes it from SQL.

    Args:
        text: the condition as it was written, for messages.
        root: what it means.
        paths: the columns, and fields inside columns, that it looks at.
    """

    def __init__(self, text: str, root: Node, paths: Iterable[Path]) -> None:
        self._text, self._root = text, root
        self.paths = tuple(paths)

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
            found = functools.cache(lambda one: unpadded(column(one.path)) if one.is_char else column(one.path))
            return _evaluate(self._root, found)
        except MismatchError as error:
            raise cannot_use(self._text, str(error)) from None
        except pa.ArrowException as error:
            raise cannot_use(self._text, str(error).splitlines()[0]) from None

    def may_match(self, bounds: Callable[[Path], ColumnBounds | None]) -> bool:
        """Whether some row may meet the condition, by what is known of the columns; True when in doubt."""
        return _may(self._root, bounds, negated=False)

    def without(self, missing: Collection[Path], *, hopeful: bool) -> Predicate | bool:
        """What is left of the condition where some columns are not known; True or False where that settles it.

        Args:
            missing: of :attr:`paths`, those of which a row may have any value.
            hopeful: true for every row that some values could make true; else for those that all values do.
        """
        left = _without(self._root, missing, hopeful)
        return left if isinstance(left, bool) else Predicate(self._text, left, _paths_in(left))

    def check(self, types: OrcType) -> None:
        """Whether all values fit the columns of a struct type.

        Raises:
            UsageProblem: one cannot be compared with its column.
        """
        empty = [pa.nulls(0, arrow_type(child)) for child in types.children]
        rows = struct_of(empty, types.names, 0)
        self.mask(lambda path: _field(rows, path))


def cannot_use(text: str, why: str) -> UsageProblem:
    """The error for a condition."""
    return UsageProblem(
        f"cannot use the condition {text!r}",
        why,
        "write it like: id = 2 AND (name LIKE 'a%' OR day BETWEEN '2024-01-01' AND '2024-01-31')",
    )


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
    return array if missing is None else null_where(array, missing)


def _evaluate(node: Node, column: Callable[[ColumnRef], pa.Array]) -> pa.BooleanArray:
    match node:
        case AllOf(parts):
            return functools.reduce(pc.and_kleene, (_evaluate(part, column) for part in parts))
        case AnyOf(parts):
            return functools.reduce(pc.or_kleene, (_evaluate(part, column) for part in parts))
        case Not(inner):
            return pc.invert(_evaluate(inner, column))
        case IsNull(one):
            return _is_null(column(one))
        case Like(one, pattern):
            array = column(one)
            if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
                raise MismatchError(f"LIKE is for text, and {'.'.join(one.path)} is of type {type_name(array.type)}")
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
        found = compare_columns(array, node.sign, other)
        if node.null_safe:
            both = pc.and_(array.is_null(), other.is_null())
            return pc.or_(pc.fill_null(found, False), both)
        return found
    if node.null_safe and node.value is None:
        return _is_null(array)
    found = compare_value(array, node.sign, _trimmed(node.column, node.value))
    return pc.fill_null(found, False) if node.null_safe else found


def _without(node: Node, missing: Collection[Path], value: bool) -> Node | bool:
    """The node where a comparison with a missing column counts as `value`, or as its contrary below a NOT."""
    match node:
        case AllOf(parts) | AnyOf(parts):
            decisive = isinstance(node, AnyOf)
            left = [_without(part, missing, value) for part in parts]
            if any(part is decisive for part in left):
                return decisive
            kept = tuple(part for part in left if not isinstance(part, bool))
            return type(node)(kept) if kept else not decisive
        case Not(inner):
            found = _without(inner, missing, not value)
            return not found if isinstance(found, bool) else Not(found)
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


def _trimmed(column: ColumnRef, value: Literal) -> Literal:
    return value.rstrip(" ") if column.is_char and isinstance(value, str) else value


def _may(node: Node, bounds: Callable[[Path], ColumnBounds | None], *, negated: bool) -> bool:
    """Whether some row may make the node true, or false when `negated`."""
    match node:
        case AllOf(parts) | AnyOf(parts):
            every = isinstance(node, AllOf) is not negated
            return (all if every else any)(_may(part, bounds, negated=negated) for part in parts)
        case Not(inner):
            return _may(inner, bounds, negated=not negated)
        case IsNull(one):
            known = bounds(one.path)
            return known is None or (known.values if negated else known.nulls)
        case Like(one, _):
            known = bounds(one.path)
            return known is None or known.values
        case ColumnComparison(one, sign, value, null_safe):
            known = bounds(one.path)
            if known is None or isinstance(value, ColumnRef) or null_safe:
                return True
            return known.may(sign, _trimmed(one, value), negated=negated)
