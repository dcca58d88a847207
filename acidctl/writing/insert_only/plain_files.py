"""Make the data files of insert-only tables, in the table's format and with the names that Hive gives them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO, cast

import pyarrow as pa

from acidctl.acid.compaction_kind import Hive
from acidctl.location.metastore_schema import declared_by
from acidctl.metastore.tables import HivePartition, HiveTable
from acidctl.orc.types import OrcType
from acidctl.orc.write.writer_settings import CODECS, WriterSettings
from acidctl.rows.export.sinks import Gate, OrcSink, Sink
from acidctl.storage.port import FileSystem
from acidctl.writing.insert_only.text_form import TextForm, TextSink

INPUTS = {
    "ORC": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    "Parquet": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "text": "org.apache.hadoop.mapred.TextInputFormat",
}
"""The input format in Hive of each format that acidctl writes."""

_PARQUET_CODECS = ("uncompressed", "snappy", "gzip", "zstd")
_WITH_HIVE = "write it with Hive"


def format_reasons(table: HiveTable) -> Iterator[tuple[str, str]]:
    """Yield the reasons why files of a table cannot be written, each with what to do."""
    stored = table.stored_as
    if stored.format not in INPUTS:
        yield f"its files are {stored.format or stored.serde}; acidctl writes ORC, Parquet and text", _WITH_HIVE
    elif stored.input_format != INPUTS[stored.format]:
        yield f"its input format is {stored.input_format}", _WITH_HIVE
    codecs = CODECS if stored.format == "ORC" else _PARQUET_CODECS
    if stored.format != "text" and (codec := _codec(table)) not in codecs:
        yield f"its compression is {codec}; acidctl writes {', '.join(codecs)}", _WITH_HIVE
    if layout := declared_by(table).text:
        yield from ((why, _WITH_HIVE) for why in TextForm.of(layout).problems(table))
        if table.partition_keys and layout != declared_by(replace(table, parameters={})).text:
            hint = "set them by ALTER TABLE ... SET SERDEPROPERTIES"
            yield "its delimiters are in TBLPROPERTIES, which only some of Hive's readers apply to partitions", hint


def partition_reasons(table: HiveTable, partition: HivePartition) -> Iterator[tuple[str, str]]:
    """Yield the reasons why a partition cannot be written in the way of its table.

    Hive reads an insert-only partition by the format and the columns that the partition was made with; for ORC it also
    takes columns that were added to the table later.
    """
    stored, usual = partition.stored_as, table.stored_as
    name = "/".join(f"{key}={value}" for key, value in partition.values)
    count = len(stored.columns) if usual.format == "ORC" else len(usual.columns)
    if stored.columns != usual.columns[:count]:
        yield f"the partition {name} has other columns than the table", "change them by ALTER TABLE ... CASCADE"
    properties = {**usual.properties, **stored.properties}
    if (stored.serde, stored.input_format, properties) != (usual.serde, usual.input_format, dict(usual.properties)):
        yield f"the partition {name} is stored in another way than the table", _WITH_HIVE


class PlainFiles:
    """Makes the files of a table; see :class:`acidctl.writing.rows.files.FileKind`."""

    def __init__(self, table: HiveTable, row: OrcType, hive: Hive) -> None:
        self._table, self._row, self._hive = table, row, hive

    def prepare(self, fs: FileSystem, directory: str) -> None:
        """Do nothing: these directories have data files only."""

    def name(self, bucket: int) -> str:
        """Return ``000000_0``, as the first attempt of Hive's task 0 names its file."""
        return f"{bucket:06}_0"

    def open(self, out: BinaryIO, bucket: int) -> PlainFile:  # noqa: ARG002 - rows have no ids
        """Return a new file that is written to a stream."""
        gate = Gate(out)
        with gate.opened():
            return PlainFile(gate, self._sink(gate))

    def _sink(self, out: Gate) -> Sink:
        if self._table.stored_as.format == "Parquet":
            from acidctl.writing.insert_only.parquet_sink import (  # noqa: PLC0415 - Arrow's Parquet is slow to import
                ParquetSink,
            )

            return ParquetSink(out, self._row, _codec(self._table), self._hive)
        if layout := declared_by(self._table).text:
            return TextSink(out, self._row, TextForm.of(layout))
        return OrcSink(cast(BinaryIO, out), self._row, WriterSettings.for_delta(_codec(self._table)))


class PlainFile:
    """A file that is being written."""

    def __init__(self, out: Gate, sink: Sink) -> None:
        self._out, self._sink = out, sink
        self._rows = 0

    def write(self, rows: pa.StructArray) -> None:
        """Append rows.

        Raises:
            BadDataError: a value cannot be written in this format.
        """
        with self._out.opened():
            self._sink.write(pa.RecordBatch.from_struct_array(rows))
        self._rows += len(rows)

    def close(self) -> tuple[int, int]:
        """Write the rest, and return the numbers of rows and bytes written; the stream stays open."""
        with self._out.opened():
            self._sink.close()
        return self._rows, self._out.count


def _codec(table: HiveTable) -> str:
    """Return the compression that properties of the table ask for, in lower case, or the usual one."""
    key, usual = ("orc.compress", "zlib") if table.stored_as.format == "ORC" else ("parquet.compression", "snappy")
    return table.parameters.get(key, usual).lower()
