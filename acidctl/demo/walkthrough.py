"""Write a directory of a demo table, and the walk-through table: rows inserted, updated and deleted as by Hive 3.1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from acidctl.acid import bucket
from acidctl.acid.names import ORC_ACID_VERSION, Kind, format_bucket, format_directory
from acidctl.acid.sidefiles import ORC_ACID_VERSION_2
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import AcidWriter
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.read.delete_set import Keys
from acidctl.rows.read.events import Ids, with_ids
from acidctl.storage.port import FileSystem

ROW = OrcType("struct", children=(OrcType("int"), OrcType("string")), names=("id", "value"))
_ARROW = pa.struct([("id", pa.int32()), ("value", pa.string())])
_BUCKET = bucket.encode(0, 0)

_STEPS: tuple[tuple[Kind, int, int, list[int], list[tuple[int, str] | None]], ...] = (
    (Kind.DELTA, 1, 1, [0, 1, 2], [(1, "A"), (2, "B"), (3, "C")]),
    (Kind.DELETE_DELTA, 2, 1, [2], [None]),
    (Kind.DELTA, 2, 2, [0], [(3, "CC")]),
    (Kind.DELETE_DELTA, 3, 2, [0], [None]),
)
"""INSERT (1,'A'),(2,'B'),(3,'C'); UPDATE id=3 SET value='CC'; DELETE id=3: one statement per write id.

Each directory with its write id, and of its events the original write id, the row ids and the rows.
"""


def write_walkthrough(fs: FileSystem, path: str) -> list[str]:
    """Write the table at `path`; return the paths of its directories in the order in which they were written."""
    paths = []
    for kind, write_id, original, row_ids, rows in _STEPS:
        name = format_directory(kind, write_id, write_id, 0)
        count = len(rows)
        operation = 0 if kind is Kind.DELTA else 2
        keys = Keys(np.full(count, original), np.full(count, _BUCKET), np.array(row_ids))
        ids = Ids(np.full(count, operation), keys, np.full(count, write_id))
        values = pa.array([row and dict(zip(ROW.names, row, strict=True)) for row in rows], _ARROW)
        paths.append(f"{path}/{name}")
        write_directory(fs, paths[-1], {0: [with_ids(ids, values)]}, ROW, WriterSettings.for_delta())
    return paths


def write_directory(
    fs: FileSystem,
    path: str,
    buckets: Mapping[int, Iterable[pa.RecordBatch]],
    row: OrcType,
    settings: WriterSettings,
) -> None:
    """Write ``bucket_N`` files from batches of the six ACID columns, in the order of their keys.

    Raises:
        ConflictError: a file exists already.
    """
    fs.make_dirs(path)
    for number, batches in buckets.items():
        with fs.open_output(f"{path}/{format_bucket(number)}") as sink:
            writer = AcidWriter(sink, row, settings)
            for batch in batches:
                writer.write(batch)
            writer.close()
    fs.write_bytes(f"{path}/{ORC_ACID_VERSION}", ORC_ACID_VERSION_2)
