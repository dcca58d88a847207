"""The values of a column of Hive as the Parquet files of Iceberg hold them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidctl.base.errors import RefusedError
from acidctl.orc.arrow import below, validity
from acidctl.orc.read.wide_timestamps import WideTimestamp, parts

_FAR = (1 << 63) // 10**6 - 1
"""The most seconds from 1970 whose microseconds fit into 64 bits."""


def stored_values(column: pa.Array, kind: pa.DataType, name: str, shown: str) -> pa.Array:
    """Return a column in the type of the file; times are cut down to microseconds.

    Args:
        column: in the ORC type of the same Iceberg type, as :func:`plain_values` returns it.
        name, shown: the column and the file that it was read from, for messages.

    Raises:
        RefusedError: Iceberg cannot hold a time.
    """
    if pa.types.is_timestamp(kind):
        return _micros(column, kind, name, shown)
    if not pa.types.is_nested(kind):
        return column if column.type == kind else column.cast(kind)
    inner = list(kind) if pa.types.is_struct(kind) else [kind.field(at) for at in range(kind.num_fields)]
    if pa.types.is_map(kind):
        inner = [kind.key_field, kind.item_field]
    children = [
        stored_values(child, field.type, name, shown) for child, field in zip(below(column), inner, strict=True)
    ]
    if pa.types.is_struct(kind):
        return pa.Array.from_buffers(kind, len(column), [validity(column)], children=children)
    if pa.types.is_map(kind):
        children = [pa.Array.from_buffers(pa.struct(inner), len(children[0]), [None], children=children)]
    return pa.Array.from_buffers(kind, len(column), column.buffers()[:2], offset=column.offset, children=children)


def _micros(column: pa.Array, kind: pa.DataType, name: str, shown: str) -> pa.Array:
    if isinstance(column.type, WideTimestamp):
        seconds, nanos = parts(column)
        if len(seconds) and np.abs(seconds).max() > _FAR:
            why = "a time is too far from 1970 for microseconds of 64 bits"
            raise RefusedError(f"column {name} of {shown} cannot be copied", why, "leave it out by --drop-column")
        micros = seconds * 10**6 + nanos // 1000
    else:
        micros = pc.fill_null(column.view(pa.int64()), 0).to_numpy() // 1000
    return pa.Array.from_buffers(kind, len(column), [validity(column), pa.py_buffer(micros)])
