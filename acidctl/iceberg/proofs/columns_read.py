"""The columns of both tables as different readers see them: NULLs and a checksum of the values of each column.

acidctl reads the source, and PyIceberg, which did not write the files, reads the copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from acidctl.base.errors import VerifyError
from acidctl.compaction.proof.checksum import add
from acidctl.compaction.proof.values import value_checksum
from acidctl.iceberg.fields import Field
from acidctl.iceberg.target import Target
from acidctl.orc.arrow import struct_of
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

    def add(self, columns: Mapping[str, pa.Array]) -> None:
        """Add some columns of rows; others of the same rows may follow."""
        for name, column in columns.items():
            if name not in self.values:
                continue
            self.nulls[name] += column.null_count
            self.values[name] = add(self.values[name], value_checksum(None, struct_of([column], [name], len(column))))

    def see_times(self, name: str, column: pa.Array) -> None:
        """Note a column whose times PyIceberg does not read; `column` has nanoseconds."""
        if isinstance(column.type, WideTimestamp):
            self.unfit[name] = "it has times that 64 bits of nanoseconds do not hold"
        elif pa.types.is_timestamp(column.type):
            seconds, nanos = parts(column)
            if ((np.asarray(seconds) < 0) & (np.asarray(nanos) % 1000 != 0)).any():
                self.unfit[name] = "it has nanoseconds before 1970"


def require_same_columns(source: ColumnSums, target: Target) -> tuple[str, ...]:
    """Require that PyIceberg reads the columns of the copy as acidctl reads those of the source.

    Args:
        target: with the snapshot to read, which need not be committed.

    Returns:
        A sentence for each column that could not be compared.

    Raises:
        VerifyError: a column differs; it is named.
    """
    fields = [
        field
        for field in (*target.columns, *target.partition)
        if field.name in source.values and field.name not in source.unfit
    ]
    notes = [f"PyIceberg cannot judge column {name}: {why}" for name, why in source.unfit.items()]
    found = ColumnSums(fields)
    try:
        for batch in target.read([field.name for field in fields]) if fields else ():
            found.add(dict(zip(batch.schema.names, batch.columns, strict=True)))
    except Exception as error:  # noqa: BLE001 - it may be a fault of the reader: it has several
        return (*notes, f"PyIceberg cannot read the copy: {type(error).__name__}: {error}")
    for field in fields:
        name = field.name
        if source.nulls[name] != found.nulls[name]:
            why = f"it finds {found.nulls[name]} NULLs, and the source has {source.nulls[name]}"
        elif source.values[name] != found.values[name]:
            why = "the checksums of all values differ"
        else:
            continue
        hint = "nothing was committed; migrate into a new table, and report this"
        raise VerifyError(f"PyIceberg reads other values in column {name} of the copy", why, hint)
    return tuple(notes)
