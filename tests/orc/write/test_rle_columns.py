"""Ids written as runs: read by Arrow, by ORC C++ from every entry of the row index; with true statistics."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyorc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import orc
from support.files.orc_bytes import tail_of
from support.files.run_columns import BLOCK, Column, events, written

from acidctl.orc.types import ACID_COLUMNS
from acidctl.orc.write import acid_writer
from acidctl.orc.write.rle_columns import run_columns
from acidctl.orc.write.stripe_editor import StripeParts
from acidctl.orc.write.writer_settings import CODECS

_numbers = st.sampled_from([0, 1, -1, 63, 64, -64, -65, 8191, 8192, 1 << 29, 1 << 31, -(1 << 31), 1 << 40, 1 << 61])
_lengths = st.sampled_from([1, 1, 2, 3, 10, 511, 512, 513, 1024, 1025, 3000])
_runs = st.lists(st.tuples(_numbers, st.sampled_from([0, 0, 1, 1, 1, -1, 7]), _lengths), min_size=1, max_size=8)


def column_of(runs: list[tuple[int, int, int]]) -> Column:
    """Values of runs: first value, step, length."""
    return np.concatenate([first + step * np.arange(length) for first, step, length in runs])


@settings(max_examples=40, deadline=None)
@given(_runs, _runs, st.sampled_from(CODECS), st.sampled_from([0, 1, 100, 1000, 10_000]))
@example([(5, 1, 3000), (4000, 1, 1), (5000, 1, 700)], [(3, 0, 5000)], "zstd", 100)
def test_what_is_written_is_read(
    row_ids: list[tuple[int, int, int]], write_ids: list[tuple[int, int, int]], compression: str, stride: int
) -> None:
    ids = column_of(row_ids)
    others = np.resize(column_of(write_ids), len(ids))
    if stride == 1:
        ids, others = ids[:100], others[:100]
    batch = events(ids, others, others[::-1])
    data = written(batch, compression, stride, ("b",) if stride else ())
    assert orc.ORCFile(io.BytesIO(data)).read().equals(pa.Table.from_batches([batch]))
    if not stride or len(ids) > 1 << 16:
        return
    reader = pyorc.Reader(io.BytesIO(data), column_names=ACID_COLUMNS[:5])
    expected = list(zip(*(column.to_pylist() for column in batch.columns[:5]), strict=True))
    for first in range(0, len(ids), stride):
        reader.seek(first)
        assert next(reader) == expected[first]
        last = min(first + stride, len(ids)) - 1
        reader.seek(last)
        assert next(reader) == expected[last]


@pytest.mark.parametrize("compression", CODECS)
def test_statistics_and_streams_are_those_of_the_orc_library(compression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the stripe, of every entry of the index, and of the file; every column has the streams it had."""
    row_ids = np.delete(np.arange(30_000), np.arange(0, 30_000, 700))
    batch = events(row_ids, np.where(row_ids < 20_000, 3, 9), 12)
    found = []
    for ours in (True, False):
        if not ours:
            monkeypatch.setattr(acid_writer, "run_columns", lambda *_: None)
        data = written(batch, compression, bloom=("b",))
        tail = tail_of(data)
        info = tail.stripes[0]
        end = info.offset + info.indexLength + info.dataLength + info.footerLength
        parts = StripeParts(memoryview(data)[info.offset : end], info, (compression, BLOCK))
        entries = {i: parts.row_index(i) for i in range(9)}
        found.append(
            (
                tail.metadata.stripeStats[0].SerializeToString(deterministic=True),
                [s.SerializeToString(deterministic=True) for s in tail.footer.statistics],
                {i: [entry.statistics for entry in index.entry] for i, index in entries.items() if index},
                [(stream.column, stream.kind) for stream in parts.footer.streams],
                [(one.kind, one.dictionarySize) for one in parts.footer.columns],
                tail.rows,
            )
        )
    ours, theirs = found
    assert ours == theirs


def test_what_is_left_to_the_orc_library() -> None:
    """Many short runs, and numbers that cannot be counted on."""
    constant = np.full(6400, 7)
    assert run_columns([constant, np.arange(6400)], 100)
    assert run_columns([constant, np.arange(0, 12_800, 2)], 100) is None
    assert run_columns([np.full(10, -(1 << 63))], 100) is None
    assert run_columns([np.full(10, (1 << 63) - 1)], 100) is None


@pytest.mark.sampled
@pytest.mark.parametrize("compression", CODECS)
def test_runs_longer_than_a_chunk_come_back(compression: str) -> None:
    """More bytes of runs than one compressed chunk holds."""
    rows = 2_500_000
    row_ids = np.delete(np.arange(1 << 45, (1 << 45) + rows), np.arange(0, rows, 90))
    batch = events(row_ids)
    data = written(batch, compression, 10_000)
    streams = {(s.column, int(s.kind)): s.length for s in tail_of(data).stripe_footer(0).streams}
    assert compression != "none" or streams[4, 1] > 2 * BLOCK
    assert orc.ORCFile(io.BytesIO(data)).read(columns=["rowId"]).column(0).to_numpy().tolist() == row_ids.tolist()
    reader = pyorc.Reader(io.BytesIO(data), column_names=["rowId"])
    for first in range(0, len(row_ids), 70_000):
        reader.seek(first)
        assert next(reader) == (row_ids[first],)
