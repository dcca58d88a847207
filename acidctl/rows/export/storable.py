"""Conversion of columns to plain types that every reader of Parquet and Arrow supports.

========================  =========================================================================================
in ORC                    in Parquet and Arrow IPC
========================  =========================================================================================
timestamp                 ``timestamp[ns]``; a column with a value that 64-bit nanoseconds cannot hold is
                          ``timestamp[us]`` if microseconds hold all of its values exactly, else an error
uniontype                 Arrow: ``sparse_union``; Parquet, which has no unions: a struct of ``tag`` (0 for the first
                          member) and ``field0``, ``field1``, ..., all null but the one that is set; NULL is a null
                          struct in Parquet; in Arrow, whose unions have no nulls, its first member is null
char(n)                   string padded with blanks to n characters
string, varchar, char     bytes that are not UTF-8 become U+FFFD
struct without fields     Parquet, which has none: a struct of one null column ``_empty``
fields of one name        Parquet: the later ones become ``name_2``, ``name_3``, ...
========================  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.errors import BadDataError
from acidctl.orc.read.union_nulls import has_null_member
from acidctl.orc.read.wide_timestamps import TICKS_PER_SECOND, WideTimestamp, parts
from acidctl.orc.types import OrcType
from acidctl.rows.export.json_lines import (
    char_length,
    child_types,
    list_parts,
    nth_child,
    union_parts,
)
from acidctl.rows.export.text import cleaned, nulls

_HINT = "write jsonl or csv, which hold every timestamp"


@dataclass(frozen=True, slots=True)
class Storable:
    """Conversion of batches for Parquet or for Arrow.

    Attributes:
        parquet: whether unions, empty structs and repeated names must be replaced.
    """

    parquet: bool

    def batch(self, batch: pa.RecordBatch, types: OrcType | None, target: pa.Schema | None) -> pa.RecordBatch:
        """Return the batch in storable form, with schema `target` if it is given.

        Raises:
            BadDataError: a value does not fit the column's type, or the columns differ from those of `target`.
        """
        names = self._names(batch.schema.names)
        if target is not None and names != target.names:
            raise BadDataError(
                f"the columns changed from {', '.join(target.names)} to {', '.join(names)}",
                "one file cannot hold both",
                "write jsonl, or choose columns that all files have",
            )
        columns = [
            self.column(column, child, None if target is None else target.field(place).type, names[place])
            for place, (column, child) in enumerate(
                zip(batch.columns, child_types(types, batch.schema.names), strict=True)
            )
        ]
        if target is None:
            target = pa.schema([pa.field(name, column.type) for name, column in zip(names, columns, strict=True)])
        return pa.RecordBatch.from_arrays(columns, schema=target)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of :meth:`batch` for a batch of that schema without rows."""
        # Not schema.empty_table(), which does not support unions.
        columns = [pa.nulls(0, kind) for kind in schema.types]
        return self.batch(pa.RecordBatch.from_arrays(columns, names=schema.names), None, None).schema

    def column(self, array: pa.Array, types: OrcType | None, target: pa.DataType | None, where: str) -> pa.Array:
        """Convert one column and all nested columns; `where` names it in errors."""
        kind = array.type
        if isinstance(kind, WideTimestamp):
            return _narrow(array, "ns" if target in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")) else "us", where)
        if pa.types.is_string(kind):
            array, length = cleaned(array), char_length(types)
            array = pc.utf8_rpad(array, width=length) if length else array
        elif pa.types.is_struct(kind):
            array = self._struct(array, types, target, where)
        elif pa.types.is_map(kind) or pa.types.is_list(kind):
            array = self._list(array, types, target, where)
        elif pa.types.is_union(kind):
            array = self._union(array, types, target, where)
        if target is None or array.type == target:
            return array
        try:
            return array.cast(target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadDataError(
                f"column {where}: a value of type {array.type} does not fit {target}, the type of the rows before",
                str(error),
                _HINT if pa.types.is_timestamp(target) else "",
            ) from error

    def _names(self, names: Iterable[str]) -> list[str]:
        result: list[str] = []
        for name in names:
            unique, count = name, 1
            while self.parquet and unique in result:
                count += 1
                unique = f"{name}_{count}"
            result.append(unique)
        return result

    def _struct(
        self, array: pa.StructArray, types: OrcType | None, target: pa.DataType | None, where: str
    ) -> pa.StructArray:
        names = array.type.names
        mask = pa.array(nulls(array)) if array.null_count else None
        if not names:
            if not self.parquet:
                return array
            return pa.StructArray.from_arrays([pa.nulls(len(array), pa.bool_())], names=["_empty"], mask=mask)
        children = [
            self.column(array.field(i), child, _field_type(target, i), f"{where}.{names[i]}")
            for i, child in enumerate(child_types(types, names))
        ]
        return pa.StructArray.from_arrays(children, names=self._names(names), mask=mask)

    def _list(self, array: pa.Array, types: OrcType | None, target: pa.DataType | None, where: str) -> pa.Array:
        offsets, columns = list_parts(array)
        starts = pa.array(offsets, pa.int32())
        mask = pa.array(nulls(array)) if array.null_count else None
        if pa.types.is_map(array.type):
            wanted = (None, None) if target is None else (target.key_type, target.item_type)
            keys, items = (
                self.column(column, nth_child(types, i), wanted[i], f"{where}.{('key', 'value')[i]}")
                for i, column in enumerate(columns)
            )
            return pa.MapArray.from_arrays(starts, keys, items, mask=mask)
        wanted_item = None if target is None else target.value_type
        item = self.column(columns[0], nth_child(types, 0), wanted_item, f"{where}.item")
        return pa.ListArray.from_arrays(starts, item, mask=mask)

    def _union(self, array: pa.UnionArray, types: OrcType | None, target: pa.DataType | None, where: str) -> pa.Array:
        which, children = union_parts(array)
        missing = None
        if has_null_member(array.type):
            # Unions in Arrow have no nulls: a NULL is stored as a null in the first member.
            children.pop()
            missing = which == len(children)
            which = np.where(missing, 0, which)
            children[0] = children[0].take(pa.array(np.arange(len(which)), mask=missing))
        columns = []
        for place, child in enumerate(children):
            wanted = _field_type(target, place + 1 if self.parquet else place)
            # Members that are not set may hold undefined values, which must not fail a check.
            values = child.take(pa.array(np.arange(len(child)), mask=which != place)) if self.parquet else child
            columns.append(self.column(values, nth_child(types, place), wanted, f"{where}.{place}"))
        if not self.parquet:
            names = [array.type.field(i).name for i in range(len(columns))]
            return pa.UnionArray.from_sparse(pa.array(which, pa.int8()), columns, names)
        names = ["tag", *(f"field{place}" for place in range(len(columns)))]
        mask = None if missing is None else pa.array(missing)
        return pa.StructArray.from_arrays([pa.array(which, pa.int8()), *columns], names=names, mask=mask)


def _field_type(target: pa.DataType | None, place: int) -> pa.DataType | None:
    return None if target is None else target.field(place).type


def _narrow(array: pa.ExtensionArray, unit: str, where: str) -> pa.Array:
    """Convert a wide timestamp column to 64 bits; raise BadDataError if that is not exact."""
    seconds, nanos = parts(array)
    missing = nulls(array)
    per_second = TICKS_PER_SECOND[unit]
    nanos_per_unit = TICKS_PER_SECOND["ns"] // per_second
    bound = np.iinfo(np.int64).max // per_second
    far = (seconds >= bound) | (seconds <= -bound)
    inexact = nanos % nanos_per_unit != 0
    if (far | inexact).any():
        why = "it is too far from 1970" if far.any() else "it has nanoseconds, and the column years that exclude them"
        raise BadDataError(f"column {where}: a timestamp does not fit timestamp[{unit}]", why, _HINT)
    ticks = seconds * per_second + nanos // nanos_per_unit
    return pa.array(ticks, pa.timestamp(unit, "UTC" if array.type.instant else None), mask=missing)
