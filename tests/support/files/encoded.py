"""Rows encoded into stripes and files, and read back, in memory."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyorc
from pyarrow import orc

from acidctl.orc.read.wide_timestamps import WIDE_STORAGE, WideTimestamp
from acidctl.orc.types import OrcType, renumbered, to_proto
from acidctl.orc.write.file_assembler import OrcAssembler
from acidctl.orc.write.stripe_encoder import WriterSettings, encode_stripes

SMALL = WriterSettings(block_size=65536, stride=100)


def root(*kinds: OrcType) -> OrcType:
    names = tuple(f"f{i}" for i in range(len(kinds)))
    return renumbered(OrcType("struct", children=kinds, names=names))


def file_of(data: Any, tree: OrcType, chosen: WriterSettings = SMALL) -> bytes:
    sink = io.BytesIO()
    assembler = OrcAssembler(sink, compression=chosen.compression, block_size=chosen.block_size, stride=chosen.stride)
    for stripe in encode_stripes(data, chosen, tree):
        assembler.append_stripe(stripe.data, stripe.info, stripe.statistics)
    assembler.finish(to_proto(tree), {})
    return sink.getvalue()


def batch_of(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=[f"f{i}" for i in range(len(columns))])


def read(data: bytes) -> pa.Table:
    return orc.ORCFile(pa.BufferReader(data)).read()


class Raw(pyorc.converters.ORCConverter):  # type: ignore[misc]
    """Timestamps as (seconds, nanoseconds)."""

    @staticmethod
    def from_orc(seconds: int, nanos: int, zone: Any) -> tuple[int, int]:
        return seconds, nanos


def raw_rows(data: bytes) -> list[Any]:
    kinds = (pyorc.TypeKind.TIMESTAMP, pyorc.TypeKind.TIMESTAMP_INSTANT)
    return list(pyorc.Reader(io.BytesIO(data), converters=dict.fromkeys(kinds, Raw)))


def wide(values: list[tuple[int, int] | None], instant: bool = False) -> pa.Array:
    storage = pa.array([None if v is None else {"seconds": v[0], "nanos": v[1]} for v in values], WIDE_STORAGE)
    return pa.ExtensionArray.from_storage(WideTimestamp(instant), storage)
