"""Small tables for tests, with as many stripes and events as a test asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import AcidWriter
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.export.orc_sink import OrcSink
from acidctl.storage.registry import open_location

BUCKET = 536870912
"""Bucket 0 of statement 0."""

EVERY_BATCH = WriterSettings(stripe_size=1, stride=1000)
"""Every batch becomes a stripe."""


def write_original(table: Path, types: OrcType, batches: Sequence[pa.RecordBatch], name: str = "000000_0") -> None:
    """An original file with a stripe for every batch."""
    table.mkdir(parents=True, exist_ok=True)
    with (table / name).open("wb") as out:
        sink = OrcSink(out, types, EVERY_BATCH)
        for batch in batches:
            sink.write(batch)
        sink.close()


def write_delta(
    table: Path,
    types: OrcType,
    write_id: int,
    batches: Sequence[pa.RecordBatch],
    first_row: int = 0,
    base: bool = False,
) -> None:
    """A delta (or a base) of inserts with a stripe for every batch; rows numbered on."""
    name = f"base_{write_id:07}" if base else f"delta_{write_id:07}_{write_id:07}_0000"
    (table / name).mkdir(parents=True)
    with (table / name / "bucket_00000").open("wb") as out:
        writers = AcidWriter(out, types, WriterSettings(stripe_size=8 << 20, stride=1000))
        for batch in batches:
            rows = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
            writers.write(_events(0, write_id, np.arange(first_row, first_row + batch.num_rows), write_id, rows))
            writers._flush()
            first_row += batch.num_rows
        writers.close()


def write_deletes(table: Path, types: OrcType, write_id: int, original: int, row_ids: Sequence[int]) -> None:
    """A delete delta that kills rows of one write id."""
    directory = table / f"delete_delta_{write_id:07}_{write_id:07}_0000"
    directory.mkdir(parents=True)
    with (directory / "bucket_00000").open("wb") as out:
        writer = AcidWriter(out, types)
        ids = np.sort(np.asarray(row_ids, np.int64))
        writer.write(_events(2, original, ids, write_id, pa.nulls(len(ids))))
        writer.close()


def damage_stripe(path: Path, number: int) -> None:
    """Overwrite the data and the footer of a stripe."""
    fs, inner = open_location(str(path))
    stripe = read_tail(ByteSource(fs, inner)).stripes[number]
    data = bytearray(path.read_bytes())
    start = stripe.offset + stripe.indexLength
    length = stripe.dataLength + stripe.footerLength
    data[start : start + length] = b"\xff" * length
    path.write_bytes(data)


def _events(operation: int, original: int, row_ids: np.ndarray, current: int, rows: pa.Array) -> pa.RecordBatch:
    count = len(row_ids)
    columns = [
        pa.array(np.full(count, operation, np.int32)),
        pa.array(np.full(count, original, np.int64)),
        pa.array(np.full(count, BUCKET, np.int32)),
        pa.array(row_ids.astype(np.int64)),
        pa.array(np.full(count, current, np.int64)),
        rows,
    ]
    names = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"]
    return pa.RecordBatch.from_arrays(columns, names=names)
