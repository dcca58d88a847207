"""A set of keys as the condition of a scan: statistics and bloom filters rule out stripes, a lookup finds the rows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.base.errors import UsageProblem
from acidctl.base.nearest import did_you_mean
from acidctl.metastore.tables import HiveTable
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import OrcType, parse_type
from acidctl.rows.scan.compare import unpadded
from acidctl.rows.scan.condition import UnknownColumn
from acidctl.rows.scan.predicate import Path
from acidctl.rows.scan.pruning import ColumnBounds
from acidctl.writing.rows.conform import RowConformer
from acidctl.writing.rows.key_lookup import KeyLookup

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "date", "timestamp")
_TEXTS = ("string", "varchar")
_FEW = 16
"""Bloom filters are not asked for more keys than these: they would hardly ever rule out all of them."""

Bounds = Callable[[Path], ColumnBounds | None]


class KeyFilter:
    """A condition that is true for the rows with one of some keys; a NULL in a key matches nothing.

    Args:
        names: the key columns; those that rule out most at once, such as partition columns, come first.
        types: of the columns.
        columns: values of the keys, in the Arrow types of `types`.
        places: the number that :meth:`find` returns for each key; by default keys are counted from 0.

    Attributes:
        paths: the key columns, as conditions have them.
    """

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[OrcType],
        columns: Sequence[pa.Array],
        places: NDArray[np.int64] | None = None,
    ) -> None:
        self._places = places
        self.paths: tuple[Path, ...] = tuple((name,) for name in names)
        self._types = types
        self._columns = [_trimmed(*pair) for pair in zip(types, columns, strict=True)]

    @classmethod
    def of(cls, table: HiveTable, keys: pa.Table) -> KeyFilter:
        """Return the filter of keys that a user gave: columns of the table, by name.

        Raises:
            UsageProblem: the keys have no column, or one that the table lacks.
            BadDataError: a value does not fit its column; the message has the number of its row.
        """
        types = {column.name: parse_type(column.type) for column in (*table.partition_keys, *table.columns)}
        given = [name.lower() for name in keys.column_names]
        for name in given:
            if name not in types:
                raise UsageProblem(f"the table has no column {name}", "", did_you_mean(name, list(types)))
        if not given:
            raise UsageProblem("the keys have no columns", "", "give the columns that identify a row")
        names = [name for name in types if name in given]
        chosen = [types[name] for name in names]
        refuse_nested(names, chosen)
        conformer = RowConformer(keys.schema, names, chosen)
        return cls(names, chosen, conformer.all_columns(keys.to_batches()))

    def bound_to(self, columns: OrcType) -> KeyFilter:
        """Return the same keys, once all their columns are known to be among others.

        Raises:
            UnknownColumn: a key column is not among them.
        """
        for (name,) in self.paths:
            if name not in map(str.lower, columns.names):
                raise UnknownColumn(f"no column {name!r} for the keys", "", did_you_mean(name, list(columns.names)))
        return self

    def without(self, missing: Collection[Path], *, hopeful: bool) -> KeyFilter | bool:
        """Return the keys without columns whose values are unknown; see :meth:`Predicate.without`."""
        kept = [at for at, path in enumerate(self.paths) if path not in missing]
        if len(kept) == len(self.paths):
            return self
        if not hopeful or not kept:
            return hopeful and bool(self.count)
        return KeyFilter(
            [self.paths[at][0] for at in kept], [self._types[at] for at in kept], [self._columns[at] for at in kept]
        )

    @property
    def count(self) -> int:
        """Return the number of keys without a NULL: the others match nothing."""
        return int(np.count_nonzero(self._has_values))

    @property
    def nulls(self) -> int:
        """Return the number of keys with a NULL."""
        return len(self._has_values) - self.count

    @cached_property
    def _has_values(self) -> NDArray[np.bool_]:
        has_values = np.ones(len(self._columns[0]), np.bool_)
        for column in self._columns:
            has_values &= np.asarray(column.is_valid())
        return has_values

    @cached_property
    def _lookup(self) -> KeyLookup:
        return KeyLookup(self._columns)

    def find(self, columns: Sequence[pa.Array]) -> NDArray[np.int64]:
        """Return the number of the key of each row, -1 for none; if keys are equal, the number of any of them."""
        found = self._lookup.find([_trimmed(*pair) for pair in zip(self._types, columns, strict=True)])
        return found if self._places is None else np.append(self._places, -1)[found]

    def mask(self, column: Callable[[Path], pa.Array]) -> pa.BooleanArray:
        """Return a mask of the rows whose key is in the set."""
        return pa.array(self.find([column(path) for path in self.paths]) >= 0)

    def may_match(self, bounds: Bounds) -> bool:
        """Return whether a row within bounds may have one of the keys."""
        rows = self._within(bounds)
        known = [bounds(path) for path in self.paths]
        if not 0 < len(rows) <= _FEW:
            return bool(len(rows))
        return not all(self._is_absent(int(row), known) for row in rows)

    def narrowed(self, bounds: Bounds) -> KeyFilter:
        """Return the filter for rows within bounds, which is quicker; columns of one value are left out.

        The keys keep their numbers.
        """
        rows = self._within(bounds)
        known = [bounds(path) for path in self.paths]
        pairs = enumerate(zip(self._ranked, known, strict=True))
        kept = [at for at, (column, each) in pairs if not (each and column.is_comparable and _is_one_value(each))]
        kept = kept or list(range(len(known)))
        return KeyFilter(
            [self.paths[at][0] for at in kept],
            [self._types[at] for at in kept],
            [self._columns[at].take(pa.array(rows)) for at in kept],
            rows if self._places is None else self._places[rows],
        )

    def _within(self, bounds: Bounds) -> NDArray[np.int64]:
        """Return the places of the keys that may be within bounds."""
        rows: NDArray[np.int64] | None = None
        for path, column in zip(self.paths, self._ranked, strict=True):
            known = bounds(path)
            if known is not None and not known.values:
                return np.empty(0, np.int64)
            low, high = column.range(known)
            rows = column.places(low, high) if rows is None else rows[column.is_in(rows, low, high)]
        assert rows is not None
        return rows

    @cached_property
    def _ranked(self) -> list[_RankedColumn]:
        return [_RankedColumn(*pair) for pair in zip(self._types, self._columns, strict=True)]

    def _is_absent(self, row: int, known: Sequence[ColumnBounds | None]) -> bool:
        for column, bounds in zip(self._ranked, known, strict=True):
            if bounds is not None and bounds.absent is not None and column.is_comparable:
                value = column.value_of(row)
                if bounds.absent(Fraction(value) if isinstance(value, int) else value):
                    return True
        return False


def refuse_nested(names: Sequence[str], types: Sequence[OrcType]) -> None:
    """Raise UsageProblem if a key column is an array, a map, a struct or a union."""
    for name, kind in zip(names, types, strict=True):
        if kind.children:
            why = f"it is {kind.kind} in the table, and such values have no equality in Hive"
            raise UsageProblem(f"the column {name} cannot be a key", why, "choose columns of plain values")


class _RankedColumn:
    """A column of keys, with the rank of each value among all values; NULL has the rank -1.

    Attributes:
        is_comparable: its values can be compared with bounds.
    """

    def __init__(self, kind: OrcType, column: pa.Array) -> None:
        self.is_comparable = kind.kind in (*_NUMBERS, *_TEXTS) and not isinstance(column.type, WideTimestamp)
        if not self.is_comparable:
            self._ranks = np.where(np.asarray(column.is_valid()), 0, -1)
        else:
            plain = column.cast(pa.binary()) if kind.kind in _TEXTS else _as_longs(column)
            values = pc.unique(plain.drop_null())
            self._values = values.take(pc.sort_indices(values))
            ranks = pc.index_in(plain, value_set=self._values, skip_nulls=True)
            self._ranks = np.asarray(pc.fill_null(ranks, -1), np.int64)
        self._order = np.argsort(self._ranks, kind="stable")
        self._sorted = self._ranks[self._order]

    def range(self, bounds: ColumnBounds | None) -> tuple[int, int]:
        """Return the first rank within bounds, and the first above them."""
        count = len(self._values) if self.is_comparable else 1
        if bounds is None or not self.is_comparable:
            return 0, count
        low = 0 if bounds.low is None else bisect_left(range(count), bounds.low, key=self._value)
        return low, count if bounds.high is None else bisect_right(range(count), bounds.high, key=self._value)

    def places(self, low: int, high: int) -> NDArray[np.int64]:
        """Return the places of the keys with these ranks."""
        start, end = np.searchsorted(self._sorted, (low, high))
        return self._order[start:end]

    def is_in(self, rows: NDArray[np.int64], low: int, high: int) -> NDArray[np.bool_]:
        """Return a mask of the keys in `rows` that have these ranks."""
        ranks = self._ranks[rows]
        return (ranks >= low) & (ranks < high)

    def value_of(self, row: int) -> Any:
        """Return the value of a key, in the units of bounds."""
        return self._value(int(self._ranks[row]))

    def _value(self, rank: int) -> Any:
        return self._values[rank].as_py()


def _is_one_value(bounds: ColumnBounds) -> bool:
    return not bounds.nulls and bounds.low is not None and bounds.low == bounds.high


def _as_longs(column: pa.Array) -> pa.Array:
    """Return whole numbers, dates in days, times in the units of their type."""
    days = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    return days.cast(pa.int64())


def _trimmed(kind: OrcType, column: pa.Array) -> pa.Array:
    return unpadded(column) if kind.kind == "char" else column
