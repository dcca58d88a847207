"""Write columns of integers that repeat or count as runs, without ORC's library, which reads every value.

The ids of ACID rows are such columns: a write id or a bucket is one number throughout, and row ids are consecutive
except for deleted rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import encode_stream
from acidctl.orc.read.integer_runs import LONGEST, encoded_runs
from acidctl.orc.write.stripe_editor import INDEX_KINDS, Int64, Layout, StripeParts, places, relocate, set_repeated

_ROWS_A_RUN: Final = 64  # if runs are shorter than this on average, writing them is not faster than value by value
_MOST: Final = 1 << 62  # counting on from numbers below this does not leave 64 bits
_ENCODING: Final = pb.ColumnEncoding(kind=pb.ColumnEncoding.DIRECT_V2)


@dataclass(frozen=True, slots=True)
class RunColumn:
    """A column of an uncompressed stripe: its DATA stream, its row index and the stripe's statistics."""

    data: bytes
    index: pb.RowIndex
    statistics: pb.ColumnStatistics


def run_columns(columns: Sequence[NDArray[np.signedinteger]], stride: int) -> list[RunColumn] | None:
    """Return columns without NULLs as runs.

    Args:
        columns: arrays of one length, at least 1.
        stride: rows per row-index entry.

    Returns:
        None if a column is not worth it: it has many short runs, or numbers that are too large to count on.
    """
    encoded = []
    for column in columns:
        run_column = _run_column(np.asarray(column, np.int64), stride)
        if run_column is None:
            return None
        encoded.append(run_column)
    return encoded


def insert_first(parts: StripeParts, columns: Sequence[RunColumn], statistics: pb.StripeStatistics) -> None:
    """Insert `columns` before the columns of a stripe.

    Args:
        parts: the stripe, changed in place.  Its root is a struct without NULLs.
        columns: columns of the same rows and stride.
        statistics: the statistics of the stripe's columns, changed in place.
    """
    more = len(columns)
    parts.streams = {(column and column + more, kind): raw for (column, kind), raw in parts.streams.items()}
    for stream in parts.footer.streams:
        stream.column = stream.column and stream.column + more
    streams = list(parts.footer.streams)
    first_data = next((i for i, stream in enumerate(streams) if stream.kind not in INDEX_KINDS), len(streams))
    # The root's index comes first, as other writers do it.
    after_root = next((i for i, stream in enumerate(streams) if stream.column), first_data)
    indexes, data = [], []
    for number, column in enumerate(columns, 1):
        index, raw = pb.RowIndex(), column.data
        index.CopyFrom(column.index)
        if parts.codec[0] != "none":
            raw, starts = encode_stream(raw, *parts.codec)
            layout = Layout(len(column.data), parts.codec[1], np.array(starts, np.int64))
            relocate(index, places("bigint", _ENCODING, (pb.Stream.DATA,)), [layout])
        parts.streams[number, pb.Stream.ROW_INDEX] = memoryview(parts.stored(index))
        parts.streams[number, pb.Stream.DATA] = memoryview(raw)
        indexes.append(pb.Stream(kind=pb.Stream.ROW_INDEX, column=number))
        data.append(pb.Stream(kind=pb.Stream.DATA, column=number))
    ordered = [*streams[:after_root], *indexes, *streams[after_root:first_data], *data, *streams[first_data:]]
    encodings = [parts.footer.columns[0], *[_ENCODING] * more, *parts.footer.columns[1:]]
    set_repeated(parts.footer.streams, ordered)
    set_repeated(parts.footer.columns, encodings)
    present = statistics.colStats
    set_repeated(present, [present[0], *(column.statistics for column in columns), *present[1:]])


def _run_column(values: Int64, stride: int) -> RunColumn | None:
    low, high = int(values.min()), int(values.max())
    if low <= -_MOST or high >= _MOST:
        return None
    rows = len(values)
    if low == high or (high - low == rows - 1 and bool((np.diff(values) == 1).all())):
        return _one_run(low, int(low != high), rows, stride)
    steps = np.diff(values)
    step = int(np.count_nonzero(steps == 1) > np.count_nonzero(steps == 0))
    starts = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(steps != step) + 1])
    if len(starts) > rows // _ROWS_A_RUN + 1:
        return None
    return _column(values, starts, step, stride)


@lru_cache(maxsize=256)
def _one_run(first: int, step: int, rows: int, stride: int) -> RunColumn:
    """Return a column that is one run; thousands of small files of one statement have the same."""
    values = first + step * np.arange(rows)
    return _column(values, np.zeros(1, np.int64), step, stride)


def _column(values: Int64, starts: Int64, step: int, stride: int) -> RunColumn:
    rows, low, high = len(values), int(values.min()), int(values.max())
    starts = _cut(starts, rows)
    data, places_of = encoded_runs(values[starts], np.diff(starts, append=rows), step)
    firsts = np.arange(0, rows, stride)
    runs = np.searchsorted(starts, firsts, "right") - 1
    index = pb.RowIndex()
    positions = np.column_stack([places_of[runs], firsts - starts[runs]]).tolist()
    for position, statistics in zip(positions, _statistics(values, firsts, (low, high)), strict=True):
        index.entry.add(positions=position, statistics=statistics)
    (whole,) = _statistics(values, firsts[:1], (low, high))
    return RunColumn(data, index, whole)


def _cut(starts: Int64, rows: int) -> Int64:
    """Return the starts of runs after cutting those that are longer than a run can be."""
    lengths = np.diff(starts, append=rows)
    pieces = -(-lengths // LONGEST)
    before = np.cumsum(pieces) - pieces
    number = np.arange(int(pieces.sum())) - np.repeat(before, pieces)
    cut: Int64 = np.repeat(starts, pieces) + number * LONGEST
    return cut


def _statistics(values: Int64, firsts: Int64, bounds: tuple[int, int]) -> list[pb.ColumnStatistics]:
    """Return the statistics of the rows from each of `firsts` to before the next."""
    low, high = bounds
    counts = np.diff(firsts, append=len(values)).tolist()
    if low == high:
        triples = [(low, high, low * count) for count in counts]
    else:
        lows, highs = np.minimum.reduceat(values, firsts).tolist(), np.maximum.reduceat(values, firsts).tolist()
        sums = np.add.reduceat(values, firsts).tolist()
        triples = list(zip(lows, highs, sums, strict=True))
    result = []
    for count, (least, most, total) in zip(counts, triples, strict=True):
        block = pb.IntegerStatistics(minimum=least, maximum=most)
        if max(-least, most) * count < _MOST:  # otherwise it may have overflowed, and writers leave it out
            block.sum = total
        result.append(pb.ColumnStatistics(numberOfValues=count, intStatistics=block, hasNull=False))
    return result
