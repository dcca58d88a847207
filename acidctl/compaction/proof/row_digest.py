"""A checksum of the rows of a scan that no order of rows or files changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from acidctl.compaction.proof.checksum import add
from acidctl.compaction.proof.values import value_checksum
from acidctl.orc.types import hive_type, row_of
from acidctl.rows.read.delete_set import Keys

if TYPE_CHECKING:
    from acidctl.rows.scan.table import TableScan


@dataclass(frozen=True, slots=True)
class RowDigest:
    """The checksums of some rows; no order of rows or files changes them.

    Attributes:
        values: 128 bits of all values, row by row, as hexadecimal digits.
        row_ids: 128 bits of all values with their ROW__IDs.
        columns: names and types.
    """

    rows: int
    values: str
    row_ids: str
    columns: str


def row_digest(scan: TableScan) -> RowDigest:
    """Digest all rows of a scan, a stripe at a time.

    Args:
        scan: has ROW__ID as its first column.

    Raises:
        BadDataError, NotFoundError, HistoryError: not all rows can be read.
    """
    kinds = list(scan.output_type.fields())[1:]
    row = row_of(kinds)
    count = values = row_ids = 0
    for batch in scan.batches_as_read() if kinds else ():
        rows = pa.StructArray.from_arrays(batch.columns[1:], fields=list(batch.schema)[1:])
        values = add(values, value_checksum(None, rows, row))
        row_ids = add(row_ids, value_checksum(_keys(batch.column(0)), rows, row))
        count += batch.num_rows
    columns = ", ".join(f"{name} {hive_type(kind)}" for name, kind in kinds)
    return RowDigest(count, f"{values:032x}", f"{row_ids:032x}", columns)


def _keys(ids: pa.StructArray) -> Keys:
    parts = [np.asarray(ids.field(i).to_numpy(zero_copy_only=False), np.int64) for i in range(3)]
    return Keys(*parts)
