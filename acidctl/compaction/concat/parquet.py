"""Concatenation of Parquet files of insert-only tables, row group by row group.

Hive and Spark interpret a file by its footer: the calendar of dates, the zone by which timestamps of 96 bits were
moved, even the writer's name. If inputs differ in these, no file can hold the rows of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from acidctl.base.errors import RefusedError
from acidctl.compaction.concat.parquet_footer import FooterSink, meaning, merged_metadata
from acidctl.compaction.concat.parquet_types import (
    cast,
    difference,
    holds,
    leaves,
    numbers_of_times,
    same_shape,
    target_type,
)
from acidctl.compaction.proof.checksum import RowProof
from acidctl.compaction.proof.sent import SummedSink, mismatch, require_bytes
from acidctl.compaction.proof.values import value_checksum
from acidctl.compaction.tasks import ConcatTask, OutputFile
from acidctl.compaction.working import done
from acidctl.orc.byte_source import ByteSource, ReadAheadFile, native_errors
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import Gathered
from acidctl.rows.foreign.format import read_any_tail
from acidctl.rows.foreign.parquet_file import ParquetTime, RowGroups, open_parquet, parquet_time, window_on
from acidctl.rows.read.events import EventFile
from acidctl.storage.port import FileSystem

ROW_GROUP: Final = 128 << 20
"""Decoded bytes at which a row group ends."""

_CODECS: Final = {"SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "UNCOMPRESSED": "none", "BROTLI": "brotli"}
_FAR: Final = 9_223_372_036_854_774
"""Microseconds from 1970 that nanoseconds of 64 bits can certainly represent."""
_JAVA: Final = "parquet-mr"
_LET_HIVE: Final = "let Hive compact this table"


@dataclass(frozen=True)
class _Input:
    source: EventFile
    window: ReadAheadFile
    metadata: Any
    schema: pa.Schema

    @classmethod
    def of(cls, source: EventFile) -> _Input:
        with native_errors(source.path):
            window = window_on(source.tail.source)
            file = open_parquet(source.tail.source, window=window)
            return cls(source, window, file.metadata, file.schema_arrow)

    @property
    def shown(self) -> str:
        return self.source.fs.display(self.source.path)

    @cached_property
    def pairs(self) -> dict[bytes, bytes]:
        """Return the key-value metadata."""
        return dict(self.metadata.metadata or {})

    @cached_property
    def physical_times(self) -> set[str]:
        columns = [self.metadata.schema.column(i) for i in range(len(self.metadata.schema))]
        return {c.physical_type for c in columns if c.physical_type == "INT96" or c.logical_type.type == "TIMESTAMP"}

    @property
    def has_int96(self) -> bool:
        return "INT96" in self.physical_times

    @property
    def time(self) -> ParquetTime:
        return parquet_time(self.metadata.created_by or "", self.pairs, int96=self.has_int96)

    def open(self, unit: str) -> Any:
        return open_parquet(self.source.tail.source, unit=unit, window=self.window)

    @cached_property
    def groups(self) -> RowGroups:
        return RowGroups(self.source.tail.source, self.metadata, self.window)

    @property
    def by_java(self) -> bool:
        """Say if Hive and Impala treat its timestamps of 96 bits as moved by a time zone."""
        return bool((self.metadata.created_by or "").startswith(_JAVA))

    @property
    def codec(self) -> str:
        """Return the codec of its first column, or one that every Hive can read."""
        metadata = self.metadata
        if not metadata.num_row_groups or not metadata.num_columns:
            return "snappy"
        return _CODECS.get(metadata.row_group(0).column(0).compression, "snappy")


def write_parquet(fs: FileSystem, sources: Sequence[EventFile], task: ConcatTask, newest: int) -> OutputFile:
    """Write the rows of all sources to one new file, in their order, and read it again.

    About two row groups of decoded rows are in memory.

    Args:
        sources: in read order, each with rows.
        newest: index of the source from which the output takes the compression and the names of programs.

    Raises:
        BadDataError: an input cannot be read.
        RefusedError: the inputs give their values different meanings, or hold timestamps that cannot be kept exactly.
        VerifyError: the file differs from the inputs.
    """
    row, path = task.row, task.new_attempt(task.name)
    inputs = [_Input.of(source) for source in sources]
    for item in inputs:
        _require_columns(item, row)
    times = any(node.kind == "date" or node.kind.startswith("timestamp") for node in row.walk())
    if times:
        _require_one_meaning(inputs, row)
    old = any(item.has_int96 for item in inputs)
    units = _units_of_old_times(inputs, row) if old else {}
    schema = _schema(inputs, row, units)
    model = inputs[newest]
    created_by = model.metadata.created_by if times and model.by_java else None
    expected = RowProof()
    with fs.open_output(path, private=True) as file:
        sink = SummedSink(file)
        writer = _Writer(sink, schema, model.codec, created_by, old_times=old)
        try:
            for item, stored, proof in _converted(inputs, schema, row):
                expected += proof
                writer.write(stored)
                done(item.source.file.size * stored.num_rows // item.metadata.num_rows)
            groups, size = writer.close(merged_metadata([item.pairs for item in inputs], newest))
        except BaseException:
            writer.abandon()
            raise
    require_bytes(fs, path, sink)
    if task.verify.compares_values:  # the inputs are read a second time
        expected = sum((proof for _, _, proof in _converted(inputs, schema, row)), RowProof())
    written = replace(sources[0], path=path, length=None, tail=read_any_tail(ByteSource(fs, path)).tail)
    output = _Input.of(written)
    found = sum((_proof(batch) for batch in _batches(output, schema)), RowProof())
    rows = sum(item.metadata.num_rows for item in inputs)
    if found != expected or not rows == found.rows == output.metadata.num_rows:
        why = f"{rows} rows were to be written and {found.rows} are there, or values differ"
        raise mismatch(output.shown, why)
    if times and (output.time, output.by_java) != (model.time, model.by_java):
        raise mismatch(output.shown, "its footer gives dates and timestamps another meaning than the inputs'")
    return OutputFile(path, task.name, size, groups, 0, expected, found, (found.rows, 0, 0))


def _converted(
    inputs: Sequence[_Input], schema: pa.Schema, row: OrcType
) -> Iterator[tuple[_Input, pa.RecordBatch, RowProof]]:
    """Yield all rows in the output's types, with the proof of the original values if the types are the same."""
    for item in inputs:
        is_same = same_shape(item.source.row_type, row)
        for batch in _batches(item, schema):
            stored = _as_stored(item, batch, schema)
            yield item, stored, _proof(_filled(batch, schema) if is_same else stored)


def _filled(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    for i in range(batch.num_columns, len(schema.names)):
        batch = batch.append_column(schema.field(i), pa.nulls(batch.num_rows, schema.field(i).type))
    return batch


def _proof(batch: pa.RecordBatch) -> RowProof:
    rows = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    return RowProof(batch.num_rows, 0, value_checksum(None, rows))


# --- what the inputs must agree on -----------------------------------------------------------------------------------


def _require_columns(item: _Input, row: OrcType) -> None:
    """Refuse files in which names and positions of columns disagree: Hive matches names, acidctl positions."""
    why = difference(item.source.row_type, row, "")
    unsigned = next((field.name for field in item.schema if holds(field.type, pa.uint64())), None)
    if unsigned:
        why = f"its column {unsigned} has unsigned numbers of 64 bits, for which Hive has no type"
    if why:
        raise RefusedError(f"cannot compact {item.shown} with the other files", why, _LET_HIVE)


def _require_one_meaning(inputs: Sequence[_Input], row: OrcType) -> None:
    """Refuse inputs with footers that give the same numbers different meanings."""
    timestamps = any(node.kind.startswith("timestamp") for node in row.walk())
    first = inputs[0]
    old = next((item for item in inputs if item.has_int96), None)
    for item in inputs:
        if old and item.physical_times and item.physical_times != {"INT96"}:
            _refuse(old, item, "one has timestamps of 96 bits, the other of 64, which Hive moves by other zones")
        ours, theirs = (meaning(input_.pairs, timestamps=timestamps) for input_ in (first, item))
        for key in sorted(ours.keys() | theirs.keys()):
            if ours.get(key) != theirs.get(key):
                here, there = (of.get(key, "missing") for of in (ours, theirs))
                _refuse(first, item, f"{key} is {here} in one and {there} in the other")
        if item.by_java != first.by_java and (old or item.time != first.time):
            _refuse(first, item, f"one is by {_JAVA}, the other not: they count days or zones in other ways")


def _refuse(one: _Input, other: _Input, why: str) -> None:
    raise RefusedError(
        f"cannot put {one.shown} and {other.shown} into one file",
        why,
        "their dates or timestamps would change; " + _LET_HIVE,
    )


# --- types -----------------------------------------------------------------------------------------------------------


def _schema(inputs: Sequence[_Input], row: OrcType, units: Mapping[int, str]) -> pa.Schema:
    """Return the Arrow types for which Arrow writes the inputs' Parquet types."""
    fields = []
    for i, (name, child) in enumerate(row.fields()):
        kinds = [item.schema.field(i).type for item in inputs if i < len(item.schema.names)]
        fields.append(pa.field(name, target_type(child, kinds, units.get(i))))
    return pa.schema(fields)


def _units_of_old_times(inputs: Sequence[_Input], row: OrcType) -> dict[int, str]:
    """Return, for each column with timestamps of 96 bits, the unit from which Arrow writes all of its values exactly.

    Nanoseconds of 64 bits end in 2262, so a column with later values is written from microseconds.

    Raises:
        RefusedError: such a column also has finer fractions than microseconds.
    """
    columns = [i for i, child in enumerate(row.children) if any(n.kind == "timestamp" for n in child.walk())]
    far, fine = set(), {}
    for item in inputs:
        names = {i: item.schema.names[i] for i in columns if i < len(item.schema.names)}
        files = [item.open(unit) for unit in ("ns", "us")]
        for group in range(item.metadata.num_row_groups):
            # Columns with dots in their names cannot be selected.
            only = None if any("." in name for name in names.values()) else list(names.values())
            exact, coarse = item.groups.read(group, files, only)
            for i, name in names.items():
                nanos, micros = (numbers_of_times(table.column(name)) for table in (exact, coarse))
                if len(micros) and (micros.min() < -_FAR or micros.max() > _FAR):
                    far.add(i)
                # Beyond that range nanoseconds overflow, and so does this product.
                if i not in fine and np.any(nanos != micros * np.int64(1000)):
                    fine[i] = item
    for i in far & fine.keys():
        raise RefusedError(
            f"cannot compact {fine[i].shown} exactly",
            f"column {row.names[i]} has times before 1677 or after 2262 as well as fractions finer than microseconds,"
            " which no type of Arrow holds both",
            _LET_HIVE,
        )
    return {i: "us" if i in far else "ns" for i in columns}


def _batches(item: _Input, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield all rows as they are stored, because readers will convert the output's dates and times as the inputs'.

    Timestamps of 96 bits have the unit of their column in `schema`.
    """
    wanted = [_unit(field) for field in schema][: len(item.schema.names)]
    # A reader has one unit for all columns; columns without timestamps may come from any reader.
    units = {unit for unit in wanted if unit} if item.has_int96 else set()
    files = {unit: item.open(unit) for unit in units or {"ns"}}
    first = next(iter(files))
    for group in range(item.metadata.num_row_groups):
        tables = dict(zip(files, item.groups.read(group, list(files.values())), strict=True))
        columns = [tables.get(unit, tables[first]).column(i) for i, unit in enumerate(wanted)]
        yield from pa.Table.from_arrays(columns, names=item.schema.names).to_batches()


def _unit(field: pa.Field) -> str:
    return next((leaf.type.unit for leaf in leaves([field]) if pa.types.is_timestamp(leaf.type)), "")


def _as_stored(item: _Input, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for i, field in enumerate(schema):
        try:
            column = cast(batch.column(i), field.type) if i < batch.num_columns else None
        except pa.ArrowInvalid as error:
            raise RefusedError(
                f"cannot compact {item.shown} exactly",
                f"column {field.name} does not fit {field.type}, which other files have: {str(error).splitlines()[0]}",
                _LET_HIVE,
            ) from error
        columns.append(pa.nulls(batch.num_rows, field.type) if column is None else column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


# --- writing ---------------------------------------------------------------------------------------------------------


class _Writer:
    def __init__(
        self, sink: SummedSink, schema: pa.Schema, codec: str, created_by: str | None, *, old_times: bool
    ) -> None:
        self._sink = FooterSink(sink, created_by)
        self._file = pa.PythonFile(self._sink, mode="w")
        # Names and nesting are those of the format since 2.4, which Hive and Spark read like their own files, without
        # metadata that only Arrow understands.
        self._writer = pq.ParquetWriter(
            self._file, schema, compression=codec, use_deprecated_int96_timestamps=old_times, store_schema=False
        )
        self._schema = schema
        self._gathered = Gathered(ROW_GROUP, self._write_group)
        self._groups = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._gathered.add(batch)

    def close(self, pairs: dict[bytes, bytes]) -> tuple[int, int]:
        """Write the remaining rows and the footer; return the number of row groups and the length of the file."""
        self._gathered.flush()
        self._writer.add_key_value_metadata(pairs)
        self._file.flush()
        self._sink.hold()
        self._writer.close()
        self._file.flush()
        return self._groups, self._sink.finish()

    def abandon(self) -> None:
        """Write nothing more to the sink: Arrow's writer would write a footer when it is destroyed."""
        self._sink.abandon()
        with suppress(pa.ArrowException, OSError):
            self._writer.close()

    def _write_group(self, batches: Sequence[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(batches, self._schema)
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._groups += 1
