"""Look up keys of one or more columns, in Arrow and NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.orc.read.wide_timestamps import WideTimestamp, parts

Longs = NDArray[np.int64]


class KeyLookup:
    """An index of keys, each of one or more columns; a key with a NULL is never found.

    Args:
        columns: the columns of the keys, which are distinct apart from those with a NULL.
    """

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        columns = comparable(columns)
        self._columns: list[tuple[pa.Array, Longs]] = []
        rows = np.arange(len(columns[0]))
        codes = np.zeros(len(rows), np.int64)
        for column in columns:
            values = pc.unique(column.drop_null())
            rows, codes = _extended(rows, codes, column, values)
            known, codes = np.unique(codes, return_inverse=True)  # dense, so that no product overflows
            self._columns.append((values, known))
        self._places = np.full(len(known), -1, np.int64)
        self._places[codes] = rows

    def find(self, columns: Sequence[pa.Array]) -> Longs:
        """Return the index of each key among those given to the constructor, -1 for a missing key."""
        columns = comparable(columns)
        found = np.full(len(columns[0]), -1, np.int64)
        rows = np.arange(len(found))
        codes = np.zeros(len(found), np.int64)
        for column, (values, known) in zip(columns, self._columns, strict=True):
            rows, codes = _extended(rows, codes, column, values)
            at = np.minimum(np.searchsorted(known, codes), max(len(known) - 1, 0))
            is_known = known[at] == codes if len(known) else np.zeros(len(codes), np.bool_)
            rows, codes = rows[is_known], at[is_known]
        found[rows] = self._places[codes]
        return found


def key_numbers(columns: Sequence[pa.Array]) -> Longs:
    """Return the number of each key, which only equal keys share; -1 for a key with a NULL."""
    numbers = np.full(len(columns[0]), -1, np.int64)
    rows, codes = np.arange(len(numbers)), np.zeros(len(numbers), np.int64)
    for column in comparable(columns):
        rows, codes = _extended(rows, codes, column, pc.unique(column.drop_null()))
        codes = np.unique(codes, return_inverse=True)[1]
    numbers[rows] = codes
    return numbers


def comparable(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Return columns in which equal values have the same bits, and which Arrow can sort.

    A timestamp column becomes two, of seconds and nanoseconds. -0.0 becomes 0.0, and all NaN are the same.
    """
    plain = []
    for column in columns:
        if isinstance(column.type, WideTimestamp) or pa.types.is_timestamp(column.type):
            nulls = np.asarray(column.is_null())
            plain += [pa.array(part, mask=nulls) for part in parts(column)]
        elif pa.types.is_floating(column.type):
            zero, nan = (pa.scalar(value, column.type) for value in (0.0, math.nan))
            plain.append(pc.if_else(pc.is_nan(column), nan, pc.add(column, zero)))
        else:
            plain.append(column)
    return plain


def _extended(rows: Longs, codes: Longs, column: pa.Array, values: pa.Array) -> tuple[Longs, Longs]:
    """Return the rows whose value is in `values`, and the codes of their keys up to and including this column."""
    part = column if len(rows) == len(column) else column.take(pa.array(rows))
    places = pc.index_in(part.cast(values.type), value_set=values)
    is_known = np.asarray(places.is_valid())
    added = np.asarray(places.drop_null(), np.int64)
    return rows[is_known], codes[is_known] * max(len(values), 1) + added
