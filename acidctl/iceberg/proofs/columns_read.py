"""NULLs and a checksum of the values of each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from acidctl.compaction.proof.checksum import add
from acidctl.iceberg.fields import Field
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts


class ColumnSums:
    """NULLs and the checksum of each column without inner fields; the order of rows does not count.

    Attributes:
        nulls, values: by the name of the column.
        unfit: the columns that PyIceberg 0.12 reads wrongly or not at all, with the reason.
    """

    def __init__(self, columns: Sequence[Field], partition: Sequence[Field] = ()) -> None:
        names = [field.name for field in (*columns, *partition) if not field.children]
        self.nulls, self.values = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
        self.unfit: dict[str, str] = {}

    def add(self, columns: Mapping[str, pa.Array], checksums: Sequence[int]) -> None:
        """Add some columns of rows, with the :func:`column_checksum` of each; others of the same rows may follow."""
        for (name, column), checksum in zip(columns.items(), checksums, strict=True):
            if name in self.values:
                self.nulls[name] += column.null_count
                self.values[name] = add(self.values[name], checksum)

    def see_times(self, name: str, column: pa.Array) -> None:
        """Note a column whose times PyIceberg does not read; `column` has nanoseconds."""
        if isinstance(column.type, WideTimestamp):
            self.unfit[name] = "it has times that 64 bits of nanoseconds do not hold"
        elif pa.types.is_timestamp(column.type):
            seconds, nanos = parts(column)
            if ((np.asarray(seconds) < 0) & (np.asarray(nanos) % 1000 != 0)).any():
                self.unfit[name] = "it has nanoseconds before 1970"
