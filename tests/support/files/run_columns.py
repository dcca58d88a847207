"""Files whose ids are written as runs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acidctl.orc.types import ACID_COLUMNS, OrcType
from acidctl.orc.write.stripe_encoder import WriterSettings
from support.files.acid_files import acid_batch, acid_file

ROW = OrcType("struct", children=(OrcType("int"), OrcType("string")), names=("a", "b"))

BLOCK = 65536

Column = NDArray[np.int64]


def events(row_ids: Column, original: Column | int = 7, current: Column | int = 7) -> pa.RecordBatch:
    """Rows with these ids."""
    count = len(row_ids)
    rows = pa.StructArray.from_arrays([np.arange(count, dtype=np.int32), pa.array(["x"] * count)], names=["a", "b"])
    columns = acid_batch(rows).columns
    columns[1] = pa.array(np.broadcast_to(original, count).astype(np.int64))
    columns[3] = pa.array(row_ids)
    columns[4] = pa.array(np.broadcast_to(current, count).astype(np.int64))
    return pa.RecordBatch.from_arrays(columns, names=list(ACID_COLUMNS))


def written(batch: pa.RecordBatch, compression: str, stride: int = 1000, bloom: tuple[str, ...] = ()) -> bytes:
    """As an ACID file; ids in any order."""
    chosen = WriterSettings(compression, block_size=BLOCK, stride=stride, bloom_columns=bloom)
    return acid_file(ROW, [batch], chosen, check_order=False)[0]
