"""Ids that are known from their runs, against Arrow's decoding of the same bytes."""

from __future__ import annotations

import io
import itertools
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc
from support.engines.written_by_hive import HIVE23
from support.files.acid_files import B0, acid_batch, acid_file
from support.files.orc_bytes import Remote, tail_of

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.read.integer_runs import RowIdRun, id_run, progression
from acidctl.orc.read.reader import open_orc
from acidctl.orc.tail import RecordKey
from acidctl.orc.types import ACID_COLUMNS, OrcType
from acidctl.orc.write.file_assembler import OrcAssembler
from acidctl.orc.write.stripe_editor import StripeParts
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.read.events import ID_COLUMNS, Ids, read_ids
from acidctl.storage.local.filesystem import LocalFileSystem

FS = LocalFileSystem()
RUN = 512
"""Values of a run at most."""
ROW = OrcType("struct", children=(OrcType("int"),), names=("a",))


def numbers(values: list[int]) -> tuple[bytearray, int, int]:
    """An ORC file of one column, and where its data stream begins and ends."""
    sink = io.BytesIO()
    orc.write_table(pa.table({"x": pa.array(values, pa.int64())}), sink, compression="uncompressed")
    data = bytearray(sink.getvalue())
    tail = tail_of(bytes(data))
    at = tail.stripes[0].offset
    for stream in tail.stripe_footer(0).streams:
        if (stream.column, stream.kind) == (1, pb.Stream.DATA):
            return data, at, at + stream.length
        at += stream.length
    raise AssertionError("no data")


steps = st.sampled_from([0, 1, 2, -1, 511, -(1 << 40)])
firsts = st.integers(-5, 5) | st.integers(-(1 << 61) + 1, (1 << 61) - 1) | st.sampled_from([60, 8190, 1 << 20, 1 << 41])
counts = st.integers(1, 40) | st.integers(500, 530) | st.integers(4000, 9000)


@given(firsts, steps, counts)
def test_arithmetic_progressions_are_recognised(first: int, step: int, count: int) -> None:
    values = [first + step * i for i in range(count)]
    data, start, end = numbers(values)
    found = progression(bytes(data[start:end]), count)
    assert found in (None, (first, step))
    if count > 3 and step in (0, 1) and count % RUN not in (1, 2, 3):  # writers put the few that are left directly
        assert found is not None, "what writers do with rows that follow each other"
    for wrong in (count - 1, count + 1):
        assert progression(bytes(data[start:end]), wrong) is None


@given(firsts, st.sampled_from([0, 1]), counts, st.integers(0, 10_000), st.integers(-3, 3).filter(bool))
def test_one_value_that_differs_is_seen(first: int, step: int, count: int, place: int, by: int) -> None:
    values = [first + step * i for i in range(max(3, count))]
    values[place % len(values)] += by
    data, start, end = numbers(values)
    assert progression(bytes(data[start:end]), len(values)) in (None, *_as_progression(values))


@pytest.mark.parametrize("at", [1, 5, 11])
def test_a_gap_between_full_runs_is_seen(at: int) -> None:
    """Where only the base of a run tells it."""
    values = [i + (1000 if i >= at * RUN else 0) for i in range(12 * RUN)]
    data, start, end = numbers(values)
    assert progression(bytes(data[start:end]), len(values)) is None


@given(st.integers(0, 1 << 20), st.sampled_from([0, 1]), st.integers(500, 6000), st.integers(0), st.integers(1, 255))
def test_damaged_streams_are_never_taken_for_others(first: int, step: int, count: int, place: int, bits: int) -> None:
    data, start, end = numbers([first + step * i for i in range(count)])
    data[start + place % (end - start)] ^= bits
    found = progression(bytes(data[start:end]), count)
    if found:
        decoded = orc.ORCFile(io.BytesIO(bytes(data))).read_stripe(0).column(0).to_pylist()
        assert decoded == [found[0] + found[1] * i for i in range(count)]


def _as_progression(values: list[int]) -> list[tuple[int, int]]:
    step = values[1] - values[0]
    return [(values[0], step)] if all(b - a == step for a, b in itertools.pairwise(values)) else []


def _checked(run: RowIdRun | None, ids: Ids) -> bool:
    """Whether the run was told; then it must be what was decoded."""
    if run is None:
        return False
    assert run.count == len(ids.current)
    for column, value in ((ids.operation, run.operation), (ids.current, run.current)):
        assert (column == value).all()
    for column, value in zip((ids.keys.original, ids.keys.bucket), run.first[:2], strict=True):
        assert (column == value).all()
    assert (ids.keys.row_id == run.first.row_id + np.arange(run.count)).all()
    assert run.last == (*run.first[:2], run.first.row_id + run.count - 1)
    return True


def test_runs_of_files_that_hive_wrote_are_what_arrow_decodes() -> None:
    told = decoded = 0
    for path in sorted(HIVE23.rglob("bucket_*[0-9]")):
        with suppress(BadDataError), open_orc(FS, str(path)) as file:
            for stripe in range(file.stripe_count):
                if not file.is_acid:
                    assert id_run(file.tail, stripe) is None
                    continue
                ids = read_ids(file.read_stripe(stripe, ID_COLUMNS), str(path))
                told += _checked(id_run(file.tail, stripe), ids)
                decoded += 1
    assert decoded > told > 10


@pytest.mark.parametrize("compression", ["none", "zlib", "zstd"])
@pytest.mark.parametrize("change", ["", "operation", "originalTransaction", "bucket", "rowId", "currentTransaction"])
def test_one_row_that_differs_makes_no_run(change: str, compression: str) -> None:
    rows = 5000
    batch = acid_batch(pa.array([{"a": i} for i in range(rows)], pa.struct([("a", pa.int32())])), 1 << 33)
    columns = batch.columns
    if change:
        place = ACID_COLUMNS.index(change)
        # The last but one: what is in order stays so.
        values = columns[place].to_pylist()
        values[-2:] = [values[-2] + (change != "rowId"), values[-1] + 1]
        columns[place] = pa.array(values, columns[place].type)
    changed = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    data, _ = acid_file(ROW, [changed], WriterSettings(compression=compression))
    with open_orc(Remote(file=data), "file") as file:
        run = id_run(file.tail, 0)
        assert (run is None) is bool(change)
        _checked(run, read_ids(file.read_stripe(0, ID_COLUMNS), "file"))


def test_deletes_are_told_too() -> None:
    batch = acid_batch(pa.nulls(100, pa.struct([("a", pa.int32())])), 5, operation=2, write_id=9)
    data, _ = acid_file(ROW, [batch])
    assert id_run(tail_of(data), 0) == RowIdRun(2, RecordKey(9, B0, 5), 9, 100)


def _with_stream(data: bytes, column: int, kind: pb.Stream.Kind, raw: bytes) -> bytes:
    """A file of one uncompressed stripe with another stream for one of its own, or one more."""
    tail = tail_of(data)
    info = tail.stripes[0]
    parts = StripeParts(memoryview(data)[info.offset : tail.content_end], info, ("none", tail.block_size))
    if (column, kind) not in parts.streams:
        parts.footer.streams.add(column=column, kind=kind)
    parts.streams[column, kind] = memoryview(raw)
    sink = io.BytesIO()
    assembler = OrcAssembler(sink, compression="none", block_size=tail.block_size, stride=tail.stride)
    assembler.append_stripe(*parts.joined(), tail.metadata.stripeStats[0])
    assembler.finish(tail.types, tail.user_metadata)
    return sink.getvalue()


def _hundred_rows() -> bytes:
    rows = pa.array([{"a": i} for i in range(100)], pa.struct([("a", pa.int32())]))
    return acid_file(ROW, [acid_batch(rows)], WriterSettings("none"))[0]


@pytest.mark.parametrize("column", ["operation", "bucket"])
@pytest.mark.parametrize("value", [1 << 32, (1 << 32) + B0, 1 << 31, -(1 << 31) - 1])
def test_more_than_an_int_holds(column: str, value: int) -> None:
    """Readers keep the low 32 bits; a run must not claim the number that is written."""
    stream, number = bytearray((0xC0, 99)), (value << 1 ^ value >> 63)
    while number > 0x7F:
        stream.append(number & 0x7F | 0x80)
        number >>= 7
    data = _with_stream(_hundred_rows(), 1 + ACID_COLUMNS.index(column), pb.Stream.DATA, bytes((*stream, number, 0)))
    read = orc.ORCFile(io.BytesIO(data)).read(columns=[column]).column(0).to_pylist()
    assert progression(bytes((*stream, number, 0)), 100) == (value, 0)
    assert read != [value] * 100
    assert id_run(tail_of(data), 0) is None


def test_rows_that_are_null_as_a_whole() -> None:
    """Then the ids' runs are those of fewer rows than the stripe has."""
    half = bytes((13 - 3, 0x0F))  # a run of 13 bytes
    data = _with_stream(_hundred_rows(), 0, pb.Stream.PRESENT, half)
    read = orc.ORCFile(io.BytesIO(data)).read(columns=["rowId"]).column(0)
    assert read.null_count > 40
    assert id_run(tail_of(data), 0) is None
