"""Write Parquet files whose dates and times Hive 3 and Hive 4 read alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet as pq

from acidctl.acid.compaction_kind import Hive
from acidctl.base.errors import BadDataError
from acidctl.orc.arrow import below, with_children
from acidctl.orc.read.wide_timestamps import parts
from acidctl.orc.types import OrcType, arrow_type
from acidctl.orc.write.acid_writer import Gathered
from acidctl.rows.export.text import nulls

_ROW_GROUP = 16 << 20
"""Bytes of rows that an open file holds in memory; it is small because files of many partitions are open together."""

_TIME = {"writer.date.proleptic": "true", "writer.time.zone": "UTC", "writer.zone.conversion.legacy": "false"}
"""Hive 4 converts dates and timestamps of files without these entries; Hive 3 does not convert those of Arrow."""

_GREGORIAN = -12_219_292_800
"""The first second of 1582-10-15: Hive 4 counts the days of timestamps before it by the old calendar, Hive 3 does not.
"""


_NANOS_LAST = 9_200_000_000
"""The largest number of seconds since 1970 whose nanoseconds fit into 64 bits, rounded down."""


class ParquetSink:
    """Writes one file.

    Args:
        row: the struct of the columns.
        hive: the version that reads it; Hive 3 fails on the empty dictionary that Arrow writes for a column of NULLs.
    """

    def __init__(self, out: Any, row: OrcType, compression: str, hive: Hive) -> None:
        self._out, self._row = out, row
        self._options = {
            "compression": "none" if compression == "uncompressed" else compression,
            "use_dictionary": hive is Hive.HIVE4,
            "use_deprecated_int96_timestamps": True,  # the only ones that Hive 3 reads
            "store_schema": False,
        }
        self._writer: Any = None
        self._gathered = Gathered(_ROW_GROUP, self._write_group)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows.

        Raises:
            BadDataError: a timestamp cannot be written; see :func:`_times`.
        """
        self._gathered.add(batch)

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        self._gathered.flush()
        if not self._writer:
            self._begin(list(arrow_type(self._row)))
        self._writer.add_key_value_metadata(_TIME)
        self._writer.close()

    def _begin(self, fields: Sequence[pa.Field]) -> None:
        self._writer = pq.ParquetWriter(self._out, pa.schema(fields), **self._options)

    def _write_group(self, batches: Sequence[pa.RecordBatch]) -> None:
        units = [field.type for field in self._writer.schema] if self._writer else [None] * len(self._row.names)
        columns = [
            self._column(name, kind, [batch.column(place) for batch in batches], units[place])
            for place, (name, kind) in enumerate(self._row.fields())
        ]
        rows = pa.Table.from_arrays(columns, names=list(self._row.names))
        if not self._writer:
            self._begin(list(rows.schema))
        self._writer.write_table(rows)

    def _column(self, name: str, kind: OrcType, pieces: Sequence[pa.Array], unit: pa.DataType | None) -> pa.Array:
        if kind.kind == "timestamp":
            return _times(name, pieces, unit)
        return _stripped(pa.concat_arrays(pieces), kind)


def _times(name: str, pieces: Sequence[pa.Array], unit: pa.DataType | None) -> pa.Array:
    """Return timestamps in the file's unit; INT96 could hold any, but Arrow takes a single unit for a column.

    Args:
        unit: None for the first rows, which choose it: nanoseconds if they need them, else microseconds.
    """
    seconds, nanos = (np.concatenate(numbers) for numbers in zip(*map(parts, pieces), strict=True))
    if unit is None:
        unit = pa.timestamp("ns" if (nanos % 1000).any() else "us")
    is_micros = unit.unit == "us"
    _refuse(name, seconds, seconds < _GREGORIAN, "Hive 3 and Hive 4 read timestamps before 1582-10-15 differently")
    beyond = nanos % 1000 != 0 if is_micros else np.abs(seconds) > _NANOS_LAST
    _refuse(name, seconds, beyond, "one file cannot hold nanoseconds and years outside of 1679 to 2260")
    ticks = seconds * 10**6 + nanos // 1000 if is_micros else seconds * 10**9 + nanos
    return pa.array(ticks, unit, mask=np.concatenate([nulls(piece) for piece in pieces]))


def _refuse(name: str, seconds: NDArray[np.int64], flags: NDArray[np.bool_], why: str) -> None:
    if flags.any():
        shown = np.datetime64(int(seconds[np.flatnonzero(flags)[0]]), "s")
        hint = "nothing was written; change the value, or write to a table in ORC"
        raise BadDataError(f"the Parquet files of the table cannot hold {shown} in column {name}", why, hint)


def _stripped(array: pa.Array, kind: OrcType) -> pa.Array:
    """Return values of CHAR without the blanks at their ends, as Hive stores them."""
    if kind.kind == "char":
        return pc.utf8_rtrim(array, characters=" ")
    if not any(node.kind == "char" for node in kind.walk()):
        return array
    return with_children(array, [_stripped(*pair) for pair in zip(below(array), kind.children, strict=True)])
