"""Rows that are kept, cut out of Arrow's columns: the quickest way for few and for many that go."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from acidctl.rows.deletes import Bools

_MANY = 8
"""Where more than one row of so many goes, taking the others by their places is quicker than a mask."""


def kept_rows(rows: pa.StructArray, keep: Bools) -> pa.StructArray:
    """The structs for which `keep` is true.

    Measured on 600,000 rows of seven columns: column by column a mask takes two thirds of the time that Arrow takes for
    the structs as a whole; of the mask, ``pa.array`` of NumPy's booleans would take most.
    """
    if rows.null_count or not rows.type.num_fields:
        return rows.filter(_mask(keep))
    columns = _kept([rows.field(i) for i in range(rows.type.num_fields)], keep)
    return pa.StructArray.from_arrays(columns, fields=list(rows.type))


def kept_batch(batch: pa.RecordBatch, keep: Bools) -> pa.RecordBatch:
    """The rows for which `keep` is true."""
    if not batch.num_columns:
        return batch.filter(_mask(keep))
    return pa.RecordBatch.from_arrays(_kept(batch.columns, keep), schema=batch.schema)


def _kept(columns: list[pa.Array], keep: Bools) -> list[pa.Array]:
    dead = len(keep) - int(np.count_nonzero(keep))
    if dead * _MANY > len(keep):
        places = pa.array(np.flatnonzero(keep))
        return [column.take(places) for column in columns]
    mask = _mask(keep)
    return [column.filter(mask) for column in columns]


def _mask(keep: Bools) -> pa.BooleanArray:
    bits = pa.py_buffer(np.packbits(keep, bitorder="little"))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(keep), [None, bits])
