"""The sort order of a rebalance, as in SQL: NULLs come last, or first in a descending column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.base.errors import RefusedError
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts

SORTABLE = frozenset(("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date")) | {
    "string", "varchar", "char", "timestamp",
}  # fmt: skip
"""Types of columns that acidctl sorts as Hive does."""

_BEFORE = re.compile(r"\s*order\s+by\s+", re.IGNORECASE)
_COLUMN = re.compile(
    r"\s*(?:`([^`]+)`|(\w+))(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\s*", re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column by which rows are sorted, with its position among the table's columns."""

    position: int
    descending: bool = False
    nulls_first: bool = False


def parse_order(text: str, columns: Sequence[str]) -> tuple[SortColumn, ...]:
    """Parse the names of columns after ORDER BY in SQL; the keywords ORDER BY are optional.

    Args:
        columns: the names of the table's columns.

    Raises:
        RefusedError: the text has anything but columns of the table.
    """
    places = {name.lower(): place for place, name in enumerate(columns)}
    order = []
    start = _BEFORE.match(text)
    for part in text[start.end() if start else 0 :].split(","):
        match = _COLUMN.fullmatch(part)
        name = (match[1] or match[2]).lower() if match else ""
        if match is None or name not in places:
            raise RefusedError(
                f"rows cannot be sorted by {text}",
                f"{part.strip()!r} is no column of the table with asc, desc, nulls first or nulls last",
                "sort by columns, or let Hive's own workers do it",
            )
        descending = (match[3] or "").lower() == "desc"
        nulls_first = match[4].lower() == "first" if match[4] else descending
        order.append(SortColumn(places[name], descending, nulls_first))
    return tuple(order)


def sort_keys(rows: pa.StructArray, order: Sequence[SortColumn]) -> pa.Table:
    """Return the keys of rows for :func:`sorted_places`: if a column is NULL or NaN, and its values."""
    columns: list[pa.Array] = []
    names: list[str] = []
    for by in order:
        is_stored = by.position < rows.type.num_fields  # a column that was added later is in no file
        column = rows.field(by.position) if is_stored else pa.nulls(len(rows), pa.int8())
        values = _values(column)
        columns += [column.is_null(), *values]
        ways = (by.nulls_first, *[by.descending] * len(values))
        names += [f"{len(names) + place} {_WAYS[way]}" for place, way in enumerate(ways)]
    return pa.table(columns, names=names)


def sorted_places(keys: Sequence[pa.Table]) -> NDArray[np.int64]:
    """Return the indices of rows in sorted order; equal rows keep their order.

    Args:
        keys: from :func:`sort_keys`, in the order of the rows.
    """
    table = pa.concat_tables(keys)
    by = [(name, name.partition(" ")[2]) for name in table.column_names]
    return np.asarray(pc.sort_indices(table, sort_keys=by).to_numpy(), np.int64)


_WAYS = {False: "ascending", True: "descending"}


def _values(column: pa.Array) -> list[pa.Array]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(column.type, WideTimestamp) or pa.types.is_timestamp(column.type):
        return [pa.array(part) for part in parts(column)]
    if pa.types.is_floating(column.type):
        is_nan = pc.fill_null(pc.is_nan(column), fill_value=False)  # above all others, as in Java
        return [is_nan, pc.if_else(is_nan, pa.scalar(0, column.type), column)]
    if pa.types.is_boolean(column.type):
        return [column.cast(pa.uint8())]
    if pa.types.is_decimal(column.type) or pa.types.is_integer(column.type) or pa.types.is_date32(column.type):
        return [column]
    return [column.cast(pa.large_binary())]
