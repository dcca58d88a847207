"""The walk-through table: three rows inserted, one updated, that one deleted, as Hive 3.1 leaves them on disk."""

from __future__ import annotations

import pyarrow as pa

from acidctl.acid import bucket
from acidctl.acid.names import Kind, format_directory
from acidctl.demo.write import Event, write_directory
from acidctl.orc.types import OrcType
from acidctl.orc.write.stripe_encoder import WriterSettings
from acidctl.storage.port import FileSystem

ROW = OrcType("struct", children=(OrcType("int"), OrcType("string")), names=("id", "value"))
_ARROW = pa.struct([("id", pa.int32()), ("value", pa.string())])
_BUCKET = bucket.encode(0, 0)

STEPS: tuple[tuple[Kind, int, list[Event]], ...] = (
    (
        Kind.DELTA,
        1,
        [Event(0, 1, _BUCKET, row, 1, value) for row, value in enumerate(((1, "A"), (2, "B"), (3, "C")))],
    ),
    (Kind.DELETE_DELTA, 2, [Event(2, 1, _BUCKET, 2, 2, None)]),
    (Kind.DELTA, 2, [Event(0, 2, _BUCKET, 0, 2, (3, "CC"))]),
    (Kind.DELETE_DELTA, 3, [Event(2, 2, _BUCKET, 0, 3, None)]),
)
"""INSERT (1,'A'),(2,'B'),(3,'C'); UPDATE id=3 SET value='CC'; DELETE id=3: one statement per write id."""


def write_walkthrough(fs: FileSystem, path: str) -> list[str]:
    """Write the table at `path`; returns the names of its directories in the order they were written."""
    names = []
    for kind, write_id, events in STEPS:
        name = format_directory(kind, write_id, write_id, 0)
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array([event.operation for event in events], pa.int32()),
                pa.array([event.original for event in events], pa.int64()),
                pa.array([event.bucket for event in events], pa.int32()),
                pa.array([event.row_id for event in events], pa.int64()),
                pa.array([event.current for event in events], pa.int64()),
                pa.array([dict(zip(ROW.names, e.row, strict=True)) if e.row else None for e in events], _ARROW),
            ],
            names=["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"],
        )
        write_directory(fs, f"{path}/{name}", {0: [batch]}, ROW, WriterSettings.for_delta())
        names.append(name)
    return names
