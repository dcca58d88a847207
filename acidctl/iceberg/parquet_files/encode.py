"""Encode rows of a data file of Hive again, as a Parquet file of Iceberg."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isnan
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from acidctl.compaction.proof.checksum import SummedSink, require_bytes
from acidctl.iceberg.difference import Wanted
from acidctl.iceberg.fields import Field
from acidctl.iceberg.keys import RUNS, Longs
from acidctl.iceberg.orc_files.metrics import Metrics
from acidctl.iceberg.orc_files.plain_values import plain_values
from acidctl.iceberg.parquet_files.metrics import metrics_of
from acidctl.iceberg.parquet_files.schema import Leaf, leaves_of, parquet_schema
from acidctl.iceberg.parquet_files.stored_values import stored_values
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import Gathered
from acidctl.rows.convert.matching import fields_of
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.selection import kept_rows
from acidctl.rows.scan.columns import FileColumns
from acidctl.storage.port import FileSystem

_FILE = 128 << 20
"""A file gets whole stripes of about this many bytes together."""

_ROW_GROUP = 64 << 20
"""Decoded bytes at which a row group ends."""

_SAMPLE = 20_000


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """The columns of a data file that is encoded again as a whole.

    Attributes:
        row: the columns of the Hive table, without its partition columns.
        fields: those of the Iceberg table, in the same order; a column that is left out is None.
    """

    row: OrcType
    fields: tuple[Field | None, ...]

    @property
    def kept(self) -> tuple[Field, ...]:
        """Return the columns of the copy."""
        return tuple(field for field in self.fields if field)


def pieces(wanted: Wanted, most: int = _FILE) -> Iterator[Wanted]:
    """Cut the stripes to copy into consecutive ones of about `most` bytes, each for a file of its own.

    Dead rows do not get into these files, so that the keys of a piece are still those of all rows that were read.
    """
    source, row = wanted.source, 0
    chosen = range(len(source.ends)) if wanted.stripes is None else wanted.stripes
    taken: list[int] = []
    rows = size = 0
    for number, stripe in enumerate(chosen, 1):
        taken.append(stripe)
        rows += source.ends[stripe] - (source.ends[stripe - 1] if stripe else 0)
        size += source.sizes[stripe]
        if size >= most or number == len(chosen):
            low, high = np.searchsorted(wanted.dead, (row, row + rows))
            if high - low < rows:
                yield Wanted(source, tuple(taken), wanted.runs.slices(row, row + rows), wanted.dead[low:high] - row)
            row, taken, rows, size = row + rows, [], 0, 0


def write_parquet(
    source: EventFile,
    columns: EncodedFile,
    fs: FileSystem,
    path: str,
    *,
    stripes: Sequence[int] | None,
    dead: Longs,
    keys: bytes,
) -> Metrics:
    """Write the rows of a file but the dead ones, compare all bytes, and return the metrics of the new file.

    Args:
        stripes: the numbers of those to read; None for all.
        dead: sorted positions in these stripes of the rows to leave out.
        keys: of the other rows, as text.

    Raises:
        BadDataError: a stripe cannot be read, or a value cannot be converted.
        RefusedError: Iceberg cannot hold a time.
        StorageError, VerifyError: the store did not keep the bytes.
    """
    batches = _batches(source, columns, stripes, dead)
    first = next(batches)
    footers: list[Any] = []
    with fs.open_output(path) as out:
        sink = SummedSink(out)
        with pq.ParquetWriter(
            pa.PythonFile(_Sink(sink), mode="w"),
            first.schema,
            compression="zstd",
            use_dictionary=[leaf.path for leaf in leaves_of(columns.kept) if _repeats(leaf, first)],
            write_statistics=_counted(source, columns),
            store_schema=False,
            store_decimal_as_integer=True,
            metadata_collector=footers,
        ) as writer:

            def write(group: Sequence[pa.RecordBatch]) -> None:
                table = pa.Table.from_batches(group)
                writer.write_table(table, row_group_size=table.num_rows)

            gathered = Gathered(_ROW_GROUP, write)
            for batch in chain([first], batches):
                gathered.add(batch)
            gathered.flush()
            writer.add_key_value_metadata({RUNS: keys})
    require_bytes(fs, path, sink)
    return metrics_of(footers[0], sink.count, columns.kept)


def _batches(
    source: EventFile, columns: EncodedFile, stripes: Sequence[int] | None, dead: Longs
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each stripe but the dead ones, as the file holds them."""
    wanted = [
        (at, kind, into) for at, (kind, into) in enumerate(zip(columns.row.children, columns.fields, strict=True))
    ]
    places = [(at,) for at, _, into in wanted if into]
    files = FileColumns(source.row_type, columns.row, places, source.format, source.declared, for_good=True)
    schema = parquet_schema(columns.kept)
    start = 0
    with source.open() as events:
        for stripe in range(events.stripes) if stripes is None else stripes:
            rows = events.rows(stripe, files.names)
            count = len(rows)
            low, high = np.searchsorted(dead, (start, start + count))
            if high > low:
                keep = np.ones(count, np.bool_)
                keep[dead[low:high] - start] = False
                rows = kept_rows(rows, keep)
            start += count
            arrays: list[pa.Array] = []
            for at, kind, into in wanted:
                if into:
                    values = plain_values(files.get(rows, (at,), source.shown), kind, into)
                    arrays.append(stored_values(values, schema.field(len(arrays)).type, into.name, source.shown))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _repeats(leaf: Leaf, rows: pa.RecordBatch) -> bool:
    """Return whether a column repeats its values, so that a dictionary does not only cost time."""
    place = rows.schema.get_field_index(leaf.path)
    if place < 0 or pa.types.is_nested(rows.schema.field(place).type):
        return True
    some = rows.column(place).slice(0, _SAMPLE)
    return bool(2 * pc.count_distinct(some).as_py() <= len(some))


def _counted(source: EventFile, columns: EncodedFile) -> list[str]:
    """Return the columns of Parquet that get statistics: all but floats that may be NaN.

    Arrow leaves NaN out of bounds, so that readers to whom NaN is above all numbers would miss it.  The sum in an ORC
    footer is NaN if a value is.
    """
    numbers = set()
    places = fields_of(source.row_type, columns.row, is_top=True)
    for place, into in zip(places, columns.fields, strict=True):
        own = source.row_type.children[place] if place is not None else None
        found = source.tail.true_statistics(own.column_id) if own and own.kind in ("float", "double") else None
        floats = found.doubleStatistics if found else None
        if into and floats and floats.HasField("sum") and not isnan(floats.sum):
            numbers.add(into.id)
    return [
        leaf.path
        for leaf in leaves_of(columns.kept)
        if leaf.field.kind not in ("float", "double") or leaf.field.id in numbers
    ]


class _Sink(io.RawIOBase):
    """The file as Arrow writes it."""

    def __init__(self, sink: SummedSink) -> None:
        super().__init__()
        self._sink = sink

    def write(self, data: Any) -> int:
        """Take all bytes."""
        view = memoryview(data).cast("B")
        size = len(view)
        while len(view):
            view = view[self._sink.write(view) :]
        return size

    def tell(self) -> int:
        """Return the position."""
        return self._sink.count

    def writable(self) -> bool:
        """Return True."""
        return True
