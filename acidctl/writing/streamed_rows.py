"""Rows of an interval of a stream: JSON lines in the types of a table, without those that are loaded already."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from acidctl.base.errors import AcidctlError, BadDataError
from acidctl.metastore.client import Metastore
from acidctl.metastore.tables import HiveTable
from acidctl.orc.hive_types import parse_type
from acidctl.orc.types import arrow_type
from acidctl.writing.constraints import Constraints
from acidctl.writing.rows.conform import RowConformer
from acidctl.writing.rows.json_lines import JsonParser
from acidctl.writing.rows.partition_values import partition_texts


class StreamedRows:
    """Reads lines, and refuses every line that an INSERT would refuse before its transaction is opened.

    Args:
        offset_key: the field with a number that rises from line to line; empty without one.
        seen: rows up to this number are passed over.

    Attributes:
        highest: the highest number so far.
        passed: how many rows were passed over.
    """

    def __init__(self, metastore: Metastore, table: HiveTable, offset_key: str | None, seen: int) -> None:
        self._kinds = {column.name: parse_type(column.type) for column in (*table.columns, *table.partition_keys)}
        self._types = {name: arrow_type(kind) for name, kind in self._kinds.items()}
        self._keys = {column.name for column in table.partition_keys}
        self._key = (offset_key or "").lower()
        self._constraints = Constraints.of(metastore, table)
        self._seen = self.highest = seen
        self.passed = 0

    def read(self, text: bytes) -> pa.Table:
        """Return the rows of whole lines that are not passed over, with columns of the table alone.

        Raises:
            BadDataError: a line cannot be parsed, has a field that the table lacks, a value that does not fit, or no
                offset.
        """
        key = {self._key: pa.int64()} if self._key and self._key not in self._types else {}
        try:
            parser = JsonParser({**self._types, **key}, text)
            rows = parser.table(text).combine_chunks()
            lower = [name.lower() for name in rows.schema.names]
            names = [name for name in rows.schema.names if name.lower() in self._kinds]
            if unknown := [name for name in rows.schema.names if name.lower() not in {*self._kinds, *key}]:
                raise BadDataError(f"the table has no column {unknown[0]}", "", "")
            if rows.num_rows and (absent := self._keys.difference(name.lower() for name in parser.seen)):
                raise BadDataError(f"it has no {min(absent)}, which is a partition key")
            rows = rows if not self._key else self._new(rows, lower.index(self._key))
            self._require_fitting(rows.select(names))
        except pa.ArrowInvalid as error:
            raise BadDataError(str(error).splitlines()[0].partition(" in row ")[0]) from error
        except AcidctlError as error:  # its number is that of a row of this interval
            raise BadDataError(error.why or error.what) from error
        return rows.select(names)

    def _new(self, rows: pa.Table, place: int) -> pa.Table:
        """Return the rows whose offset is above that of every row before them."""
        column = rows.column(place)
        if column.null_count or not pa.types.is_integer(column.type):
            raise BadDataError(f"it has no number {self._key}")
        offsets = column.cast(pa.int64()).to_numpy()
        if len(offsets) and offsets.min() < 0:
            raise BadDataError(f"{self._key} is below 0")
        before = np.maximum.accumulate(np.concatenate(([self._seen], offsets)))
        is_new = offsets > before[:-1]
        self.highest, self.passed = int(before[-1]), int((~is_new).sum())
        return rows.filter(pa.array(is_new))

    def _require_fitting(self, rows: pa.Table) -> None:
        names = [name.lower() for name in rows.schema.names]
        conformer = RowConformer(rows.schema, names, [self._kinds[name] for name in names])
        for batch in rows.to_batches():
            columns = conformer.columns(batch)
            self._constraints.require_values(names, columns)
            for name, column in zip(names, columns, strict=True):
                if name in self._keys:
                    partition_texts(column, self._kinds[name])
