"""Parquet files, whose row groups are read as stripes of the types that ORC has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.acid.compaction_kind import Hive
from acidctl.base.errors import BadDataError
from acidctl.location.metastore_schema import Declared
from acidctl.orc.arrow import below, with_children
from acidctl.orc.byte_source import ByteSource, ReadAheadFile, native_errors
from acidctl.orc.limits import DecodingBudget
from acidctl.orc.read.wide_timestamps import wide, widened
from acidctl.orc.tail import Tail
from acidctl.orc.types import OrcType, arrow_type, like_arrow, row_of, row_type_of
from acidctl.rows.foreign.foreign_reader import ForeignReader, made_tail, one_chunk
from acidctl.rows.foreign.parquet_file import ParquetTime, RowGroups, as_meant, open_parquet, parquet_time, window_on


class ParquetReader(ForeignReader):
    """Reads row groups as stripes."""

    @staticmethod
    def describe(source: ByteSource, declared: Declared | None = None) -> Tail:
        """Return the footer that an ORC file of these rows would have.

        Args:
            declared: gives the table's columns, which Hive finds by their names, unless a property of the table says
                otherwise.
        """
        with native_errors(source.path):
            file = open_parquet(source, window=window_on(source))
            metadata, schema = file.metadata, file.schema_arrow
        row = row_of((field.name, _orc_type(field, source.path)) for field in schema)
        if declared and declared.columns:  # the table's columns in its order, each with the file's type if it has one
            by_name = {name.lower(): (name, child) for name, child in reversed(list(row.fields()))}
            columns = list(row_type_of(declared.columns).fields())
            if declared.by_place and any(
                one.lower() != name.lower() for one, (name, _) in zip(row.names, columns, strict=False)
            ):
                raise BadDataError(
                    f"{source.path} cannot be read",
                    "its columns have other places than the table's, and by parquet.column.index.access places count",
                    "let Hive read it",
                )
            row = row_of([by_name.get(name.lower(), (name, child)) for name, child in columns])
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        return made_tail(source, row, [(group.num_rows, group.total_byte_size) for group in groups])

    @cached_property
    def _file(self) -> Any:
        # Timestamps of 96 bits may not fit into 64 bits of nanoseconds: Arrow would wrap them around.
        return self._open("us")

    @cached_property
    def _window(self) -> ReadAheadFile | None:
        return window_on(self._source) if self._source.local_whole() is None else None

    @cached_property
    def _groups(self) -> RowGroups:
        return RowGroups(self._source, self._file.metadata, self._window)

    @cached_property
    def _work(self) -> DecodingBudget:
        return DecodingBudget(self._source.path, self._source.size)

    def _open(self, unit: str) -> Any:
        return open_parquet(self._source, unit=unit, window=self._window)

    @cached_property
    def _exact(self) -> Any:
        """Return the file opened with nanoseconds, which may overflow; None if no column has 96 bits."""
        return self._open("ns") if self._has_int96 else None

    @property
    def _has_int96(self) -> bool:
        columns = self._file.schema
        return any(columns.column(i).physical_type == "INT96" for i in range(len(columns)))

    @cached_property
    def _time(self) -> ParquetTime:
        metadata = self._file.metadata
        time = parquet_time(metadata.created_by or "", metadata.metadata or {}, int96=self._has_int96)
        if self._hive is Hive.HIVE3:  # it takes days as they are stored
            return replace(time, julian_dates=False, julian_timestamps=False)
        return time

    def _read(self, i: int, columns: Sequence[str] | None) -> pa.RecordBatch:
        wanted = None if columns is None else list(columns)
        with native_errors(self._source.path, i):
            self._work.require()
            files = [self._file] if self._exact is None else [self._file, self._exact]
            table, *more = self._groups.read(i, files, wanted)
            exact = more[0] if more else table
            self._work.add_part(i, table.nbytes)
            arrays, names = [], []
            places = {name: place for place, name in enumerate(table.schema.names)}
            if len(places) != table.num_columns:
                raise BadDataError(f"{self._source.path} cannot be read", "several of its columns have one name")
            for name, kind in self._tail.type_tree.fields():
                if name not in places and (wanted is None or name in wanted):
                    arrays.append(pa.nulls(table.num_rows, arrow_type(kind)))  # a column of the table that is newer
                    names.append(name)
                elif name in places:
                    column = one_chunk(table.column(places[name]))
                    if self._exact is not None:
                        column = _finer(column, one_chunk(exact.column(places[name])))
                    array = _as_orc(column, kind)
                    arrays.append(array if self._time.is_plain else as_meant(array, self._time))
                    names.append(name)
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def close(self) -> None:
        for name in ("_file", "_exact"):
            file = self.__dict__.pop(name, None)
            if file is not None:
                file.close(force=True)


def _finer(coarse: pa.Array, fine: pa.Array) -> pa.Array:
    """Return timestamps with their nanoseconds, in the wide form if 64 bits do not hold them.

    Args:
        coarse: in microseconds, which hold every time.
        fine: the same in nanoseconds, wrapped around if they do not fit.
    """
    if coarse.type == fine.type:
        return coarse
    if not pa.types.is_timestamp(coarse.type):
        return with_children(coarse, [_finer(*pair) for pair in zip(below(coarse), below(fine), strict=True)])
    micros, nanos = (pc.fill_null(array.cast(pa.int64()), 0).to_numpy() for array in (coarse, fine))
    limit = (1 << 63) // 1000 - 1
    if ((-limit <= micros) & (micros <= limit)).all():
        return fine
    # The last three digits are right even in values that wrapped around.
    rest = nanos.view(np.uint64) - micros.view(np.uint64) * np.uint64(1000)
    seconds, part = np.divmod(micros, 10**6)
    return wide(seconds, part * 1000 + rest.view(np.int64), coarse, instant=coarse.type.tz is not None)


def _orc_type(field: pa.Field, path: str) -> OrcType:
    if kind := like_arrow(field.type, OrcType("string")):
        return kind
    raise BadDataError(f"{path} cannot be read", f"Hive has no type for its column {field.name} of {field.type}")


def _as_orc(array: pa.Array, tree: OrcType) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if tree.kind.startswith("timestamp"):
        return _timestamps(array, tree)
    if tree.kind == "struct":
        # Only some of the fields may have been read.
        kinds = dict(tree.fields())
        names = [child.name for child in kind]
        return with_children(
            array, [_as_orc(c, kinds[name]) for c, name in zip(below(array), names, strict=True)], names
        )
    if tree.kind == "array" and not pa.types.is_list(kind):
        array = array.cast(pa.list_(kind.value_type))
    if tree.kind in ("array", "map"):
        return with_children(array, [_as_orc(c, k) for c, k in zip(below(array), tree.children, strict=True)])
    target = arrow_type(tree)
    if kind == pa.uint64():
        return _decimals(array, target)  # Arrow has no such cast
    return array if kind == target else array.cast(target)


def _decimals(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert unsigned numbers of 64 bits to decimals, whose lower half they are."""
    halves = np.zeros((len(array), 2), np.uint64)
    halves[:, 0] = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    is_valid = pa.py_buffer(np.packbits(array.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))
    return pa.Array.from_buffers(target, len(array), [is_valid, pa.py_buffer(halves)])


def _timestamps(array: pa.Array, tree: OrcType) -> pa.Array:
    target = arrow_type(tree)
    if isinstance(array.type, pa.BaseExtensionType):
        return array  # in the wide form already
    if target.tz is not None and array.type.tz != "UTC":
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        return widened(array)
