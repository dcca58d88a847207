"""Concatenation of Parquet files of insert-only tables: Arrow reads them and writes one file.

Hive and Spark interpret a file by its footer: the calendar of dates, the zone by which timestamps of 96 bits were
moved, even the writer's name. If inputs differ in these, no file can hold the rows of all.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from acidctl.base.errors import RefusedError, VerifyError
from acidctl.base.task_progress import done
from acidctl.compaction.concat.parquet_types import cast, difference, numbers_of_times, same_shape, target_type
from acidctl.compaction.proof.checksum import RowProof, SummedSink, mismatch, require_bytes
from acidctl.compaction.proof.values import value_checksum
from acidctl.compaction.tasks import ConcatTask, OutputFile
from acidctl.orc.byte_source import ByteSource, ReadAheadFile, native_errors
from acidctl.orc.types import OrcType
from acidctl.orc.varint import encoded
from acidctl.orc.write.acid_writer import Gathered
from acidctl.rows.foreign.format import read_any_tail
from acidctl.rows.foreign.parquet_reader import ParquetTime, RowGroups, open_parquet, parquet_time, window_on
from acidctl.rows.read.events import EventFile
from acidctl.storage.port import FileSystem

ROW_GROUP: Final = 128 << 20
"""Decoded bytes at which a row group ends."""

_CODECS: Final = {"SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "UNCOMPRESSED": "none", "BROTLI": "brotli"}
_FAR: Final = 9_223_372_036_854_774
"""Microseconds from 1970 that nanoseconds of 64 bits can certainly represent."""
_JAVA: Final = "parquet-mr"
_LET_HIVE: Final = "let Hive compact this table"

_ZONES: Final = (
    b"writer.time.zone",
    b"writer.zone.conversion.legacy",
    b"org.apache.spark.timeZone",
    b"org.apache.spark.legacyINT96",
)
"""Keys of the footer that decide which instant a timestamp is."""
_CALENDARS: Final = (b"writer.date.proleptic", b"org.apache.spark.legacyDateTime")
_SPARK: Final = b"org.apache.spark.version"
_PROGRAMS: Final = (b"writer.model.name", _SPARK)
"""Keys with versions of writers: the newest file's values are kept if the files differ."""
_NOT_KEPT: Final = (b"ARROW:schema", b"pandas")
"""Keys with types of a library that may not have written all files."""


@dataclass(frozen=True)
class _Input:
    """An open file; its timestamps of 96 bits are read in `unit`."""

    source: EventFile
    window: ReadAheadFile
    unit: str

    @classmethod
    def of(cls, source: EventFile, unit: str = "ns") -> _Input:
        with native_errors(source.path):
            return cls(source, window_on(source.tail.source), unit)

    @cached_property
    def file(self) -> Any:
        with native_errors(self.source.path):
            return open_parquet(self.source.tail.source, unit=self.unit, window=self.window)

    @property
    def metadata(self) -> Any:
        return self.file.metadata

    @cached_property
    def schema(self) -> pa.Schema:
        return self.file.schema_arrow

    @property
    def shown(self) -> str:
        return self.source.shown

    @cached_property
    def pairs(self) -> dict[bytes, bytes]:
        """Return the key-value metadata."""
        return dict(self.metadata.metadata or {})

    @cached_property
    def physical_times(self) -> set[str]:
        columns = [self.metadata.schema.column(i) for i in range(len(self.metadata.schema))]
        return {c.physical_type for c in columns if c.physical_type == "INT96" or c.logical_type.type == "TIMESTAMP"}

    @property
    def time(self) -> ParquetTime:
        return parquet_time(self.metadata.created_by or "", self.pairs, int96="INT96" in self.physical_times)

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

    def tables(self, *others: _Input, columns: Sequence[str] | None = None) -> Iterator[list[pa.Table]]:
        """Yield the rows of each row group as they are stored, also as `others`, in other units, read them.

        Readers will convert the dates and times of the output as those of the inputs.
        """
        groups = RowGroups(self.source.tail.source, self.metadata, self.window)
        for group in range(self.metadata.num_row_groups):
            yield groups.read(group, [item.file for item in (self, *others)], columns)


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
        if why := difference(item.source.row_type, item.schema, row):
            raise RefusedError(f"cannot compact {item.shown} with the other files", why, _LET_HIVE)
    times = any(node.kind == "date" or node.kind.startswith("timestamp") for node in row.walk())
    if times:
        _require_one_meaning(inputs, row)
    is_old = any("INT96" in item.physical_times for item in inputs)
    unit = _unit_of_old_times(inputs, row) if is_old else "ns"
    if unit != "ns":
        inputs = [replace(item, unit=unit) for item in inputs]
    schema = _schema(inputs, row, unit if is_old else None)
    model = inputs[newest]
    created_by = model.metadata.created_by if times and model.by_java else None
    expected = RowProof()
    with fs.open_output(path, private=True) as file:
        sink = SummedSink(file)
        writer = _Writer(sink, schema, model.codec, old_times=is_old)
        try:
            for item, stored, proof in _converted(inputs, schema, row):
                expected += proof
                writer.write(stored)
                done(item.source.file.size * stored.num_rows // item.metadata.num_rows)
            writer.close(_merged_metadata([item.pairs for item in inputs], newest), created_by)
        except BaseException:
            writer.abandon()
            raise
    require_bytes(fs, path, sink)
    if task.verify.compares_values:  # the inputs are read a second time
        expected = sum((proof for _, _, proof in _converted(inputs, schema, row)), RowProof())
    output = _Input.of(replace(sources[0], path=path, length=None, tail=read_any_tail(ByteSource(fs, path)).tail), unit)
    found = sum((_proof(batch) for (table,) in output.tables() for batch in table.to_batches()), RowProof())
    rows = sum(item.metadata.num_rows for item in inputs)
    if found != expected or not rows == found.rows == output.metadata.num_rows:
        why = f"{rows} rows were to be written and {found.rows} are there, or values differ"
        raise mismatch(output.shown, why)
    if times and (output.time, output.by_java) != (model.time, model.by_java):
        raise mismatch(output.shown, "its footer gives dates and timestamps another meaning than the inputs'")
    groups = output.metadata.num_row_groups
    return OutputFile(path, task.name, sink.count, groups, 0, expected, found, (found.rows, 0, 0))


def _converted(
    inputs: Sequence[_Input], schema: pa.Schema, row: OrcType
) -> Iterator[tuple[_Input, pa.RecordBatch, RowProof]]:
    """Yield all rows in the output's types, with the proof of the original values if the types are the same."""
    for item in inputs:
        is_same = same_shape(item.source.row_type, row)
        for (table_read,) in item.tables():
            table = table_read
            for field in list(schema)[table.num_columns :]:
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
            for batch in table.to_batches():
                stored = _as_stored(item, batch, schema)
                yield item, stored, _proof(batch if is_same else stored)


def _as_stored(item: _Input, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        try:
            columns.append(cast(column, field.type))
        except pa.ArrowInvalid as error:
            raise RefusedError(
                f"cannot compact {item.shown} exactly",
                f"column {field.name} does not fit {field.type}, which other files have: {str(error).splitlines()[0]}",
                _LET_HIVE,
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _proof(batch: pa.RecordBatch) -> RowProof:
    rows = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    return RowProof(batch.num_rows, 0, value_checksum(None, rows))


# --- what the inputs must agree on -----------------------------------------------------------------------------------


def _require_one_meaning(inputs: Sequence[_Input], row: OrcType) -> None:
    """Refuse inputs with footers that give the same numbers different meanings."""
    timestamps = any(node.kind.startswith("timestamp") for node in row.walk())
    first = inputs[0]
    old = next((item for item in inputs if "INT96" in item.physical_times), None)
    for item in inputs:
        if old and item.physical_times and item.physical_times != {"INT96"}:
            raise _differing(
                old, item, "one has timestamps of 96 bits, the other of 64, which Hive moves by other zones"
            )
        ours, theirs = (_meaning(input_.pairs, timestamps=timestamps) for input_ in (first, item))
        for key in sorted(ours.keys() | theirs.keys()):
            if ours.get(key) != theirs.get(key):
                here, there = (of.get(key, "missing") for of in (ours, theirs))
                raise _differing(first, item, f"{key} is {here} in one and {there} in the other")
        if item.by_java != first.by_java and (old or item.time != first.time):
            raise _differing(first, item, f"one is by {_JAVA}, the other not: they count days or zones in other ways")


def _differing(first: _Input, other: _Input, why: str) -> RefusedError:
    what = f"cannot put {first.shown} and {other.shown} into one file"
    return RefusedError(what, why, "their dates or timestamps would change; " + _LET_HIVE)


def _meaning(pairs: Mapping[bytes, bytes], *, timestamps: bool) -> dict[str, str]:
    """Return the key-value metadata that decide the meaning of dates, and of timestamps if there are any."""
    keys = (*_CALENDARS, *_ZONES) if timestamps else _CALENDARS
    deciding = {key.decode(): pairs[key].decode(errors="replace") for key in keys if key in pairs}
    if version := re.match(rb"(\d+)\.(\d+)", pairs.get(_SPARK, b"")):
        # Spark 3.0 changed its calendar, 3.1 that of timestamps of 96 bits.
        release = (int(version[1]), int(version[2]))
        era = "before 3.0" if release < (3, 0) else "3.0" if release < (3, 1) and timestamps else "later"
        deciding[_SPARK.decode()] = era
    return deciding


def _merged_metadata(files: Sequence[Mapping[bytes, bytes]], newest: int) -> dict[bytes, bytes]:
    """Return the key-value metadata in which all files agree, and the newest file's versions of programs."""
    agreed = {
        key: value
        for key, value in files[0].items()
        if key not in _NOT_KEPT and all(other.get(key) == value for other in files)
    }
    return {**agreed, **{key: files[newest][key] for key in _PROGRAMS if key in files[newest]}}


def _schema(inputs: Sequence[_Input], row: OrcType, unit: str | None) -> pa.Schema:
    """Return the Arrow types for which Arrow writes the inputs' Parquet types."""
    fields = []
    for i, (name, child) in enumerate(row.fields()):
        kinds = [item.schema.field(i).type for item in inputs if i < len(item.schema.names)]
        fields.append(pa.field(name, target_type(child, kinds, unit)))
    return pa.schema(fields)


def _unit_of_old_times(inputs: Sequence[_Input], row: OrcType) -> str:
    """Return the unit in which Arrow reads and writes all timestamps of 96 bits exactly.

    Nanoseconds of 64 bits end in 2262, and microseconds have no finer fractions.

    Raises:
        RefusedError: some times are beyond that range, and some have finer fractions.
    """
    columns = [i for i, child in enumerate(row.children) if any(n.kind == "timestamp" for n in child.walk())]
    fine: tuple[_Input, str] | None = None
    is_far = False
    for item in inputs:
        names = [item.schema.names[i] for i in columns if i < len(item.schema.names)]
        # Columns with dots in their names cannot be selected.
        only = None if any("." in name for name in names) else names
        for exact, coarse in item.tables(replace(item, unit="us"), columns=only):
            for name in names:
                nanos, micros = (numbers_of_times(table.column(name)) for table in (exact, coarse))
                is_far |= len(micros) > 0 and bool(micros.min() < -_FAR or micros.max() > _FAR)
                # Beyond that range nanoseconds overflow, and so does this product.
                if not fine and np.any(nanos != micros * np.int64(1000)):
                    fine = item, name
    if fine and is_far:
        raise RefusedError(
            f"cannot compact {fine[0].shown} exactly",
            f"column {fine[1]} has fractions finer than microseconds, others are before 1677 or after 2262, and all"
            " timestamps of 96 bits in a file are written in one unit",
            _LET_HIVE,
        )
    return "us" if is_far else "ns"


# --- writing ---------------------------------------------------------------------------------------------------------


class _Writer:
    """Writes row groups of about :data:`ROW_GROUP` decoded bytes."""

    def __init__(self, sink: SummedSink, schema: pa.Schema, codec: str, *, old_times: bool) -> None:
        self._sink = _FooterSink(sink)
        # Names and nesting are those of the format since 2.4, which Hive and Spark read like their own files, without
        # metadata that only Arrow understands.
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._sink, mode="w"),
            schema,
            compression=codec,
            use_deprecated_int96_timestamps=old_times,
            store_schema=False,
        )
        self._schema = schema
        self._gathered = Gathered(ROW_GROUP, self._write_group)

    def write(self, batch: pa.RecordBatch) -> None:
        self._gathered.add(batch)

    def close(self, pairs: dict[bytes, bytes], created_by: str | None) -> None:
        """Write the remaining rows and the footer, with the name of another writer if wanted."""
        self._gathered.flush()
        self._writer.add_key_value_metadata(pairs)
        self._sink.footer = bytearray()
        self._writer.close()
        footer = bytes(self._sink.footer)
        self._sink.footer = None
        self._sink.write(renamed(footer, created_by) if created_by else footer)

    def abandon(self) -> None:
        """Write nothing more to the sink: Arrow's writer would write a footer when it is destroyed."""
        self._sink.footer = bytearray()
        with suppress(pa.ArrowException, OSError):
            self._writer.close()

    def _write_group(self, batches: Sequence[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(batches, self._schema)
        self._writer.write_table(table, row_group_size=table.num_rows)


class _FooterSink(io.RawIOBase):
    """Passes the bytes of Arrow's writer on, or collects them in `footer`."""

    def __init__(self, sink: SummedSink) -> None:
        super().__init__()
        self._sink = sink
        self.footer: bytearray | None = None

    def write(self, data: Any) -> int:
        """Take bytes."""
        view = memoryview(data).cast("B")
        size = len(view)
        if self.footer is not None:
            self.footer += view
        else:
            while len(view):
                view = view[self._sink.write(view) :]
        return size

    def tell(self) -> int:
        """Return the position."""
        return self._sink.count + len(self.footer or b"")

    def writable(self) -> bool:
        return True


def renamed(footer: bytes, created_by: str) -> bytes:
    """Replace the writer's name in a footer, for which Arrow has no option; the footer's offsets stay right.

    For Hive and Impala the name decides if timestamps of 96 bits were moved by a time zone. It is a field of Thrift's
    compact protocol, preceded by its length.

    Raises:
        VerifyError: the bytes are not a footer, or the name is not where it is expected.
    """
    body, length, magic = footer[:-8], footer[-8:-4], footer[-4:]
    own = f"parquet-cpp-arrow version {pa.cpp_version}".encode()
    at = body.rfind(bytes((len(own),)) + own)
    if magic != b"PAR1" or int.from_bytes(length, "little") != len(body) or at < 0:
        raise VerifyError("the Parquet library wrote a footer of another shape", "its name is not where it was", "")
    name = created_by.encode()
    body = body[:at] + encoded(len(name)) + name + body[at + 1 + len(own) :]
    return body + len(body).to_bytes(4, "little") + magic
