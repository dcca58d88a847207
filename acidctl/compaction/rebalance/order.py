"""What a rebalance sorts rows by, as SQL says it, and where each row then comes: NULLs last; first if descending."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.errors import RefusedError
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts

SORTABLE = frozenset(("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date")) | {
    "string", "varchar", "char", "timestamp",
}  # fmt: skip
"""Kinds of columns that are sorted as Hive does it."""

_BEFORE = re.compile(r"\s*order\s+by\s+", re.IGNORECASE)
_COLUMN = re.compile(
    r"\s*(?:`([^`]+)`|(\w+))(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\s*", re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class SortColumn:
    """One of the columns that rows are sorted by.

    Attributes:
        position: among the table's columns.
    """

    position: int
    descending: bool = False
    nulls_first: bool = False


def parse_order(text: str, columns: Sequence[str]) -> tuple[SortColumn, ...]:
    """What SQL has behind ORDER BY, which may stand there, too: names of columns alone.

    Args:
        columns: of the table.

    Raises:
        RefusedError: it has anything else.
    """
    places = {name.lower(): place for place, name in enumerate(columns)}
    found = []
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
        found.append(SortColumn(places[name], descending, nulls_first))
    return tuple(found)


def sort_keys(rows: pa.StructArray, order: Sequence[SortColumn]) -> pa.Table:
    """What rows are sorted by, as :func:`sorted_places` takes it: whether a column is NULL or NaN, and its values."""
    columns: list[pa.Array] = []
    names: list[str] = []
    for one in order:
        is_there = one.position < rows.type.num_fields  # else the files know nothing of it yet
        column = rows.field(one.position) if is_there else pa.nulls(len(rows), pa.int8())
        found = _values(column)
        columns += [column.is_null(), *found]
        ways = (one.nulls_first, *[one.descending] * len(found))
        names += [f"{len(names) + place} {_WAYS[way]}" for place, way in enumerate(ways)]
    return pa.table(columns, names=names)


def sorted_places(keys: Sequence[pa.Table]) -> NDArray[np.int64]:
    """The places of rows in their order; of equal ones the first stays first.

    Args:
        keys: of :func:`sort_keys`, in the order of the rows.
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
        is_nan = pc.fill_null(pc.is_nan(column), fill_value=False)  # above all others, as Java has it
        return [is_nan, pc.if_else(is_nan, pa.scalar(0, column.type), column)]
    if pa.types.is_boolean(column.type):
        return [column.cast(pa.uint8())]
    if pa.types.is_decimal(column.type) or pa.types.is_integer(column.type) or pa.types.is_date32(column.type):
        return [column]
    return [column.cast(pa.large_binary())]
