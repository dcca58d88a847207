"""Parquet files as Hive reads them: the physical types, and what the footer says of dates and times."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from acidctl.acid.compaction_kind import Hive
from acidctl.base.errors import BadDataError
from acidctl.orc.read.wide_timestamps import widened
from acidctl.orc.types import arrow_type, columns_of
from acidctl.writing.insert_only.parquet_sink import ParquetSink


def written(columns: str, *rows: tuple[object, ...], hive: Hive = Hive.HIVE4) -> pq.ParquetFile:
    row = columns_of(columns)
    values = zip(*rows, strict=True)
    arrays = [pa.array(list(column), arrow_type(kind)) for column, kind in zip(values, row.children, strict=True)]
    out = io.BytesIO()
    sink = ParquetSink(out, row, "snappy", hive)
    sink.write(pa.RecordBatch.from_arrays(arrays, list(row.names)))
    sink.close()
    return pq.ParquetFile(io.BytesIO(out.getvalue()))


def test_types_are_those_that_hive_3_reads() -> None:
    moment = datetime.datetime(2026, 7, 1, 12, 30)
    file = written(
        "ts timestamp, n decimal(5,2), a array<timestamp>, da date",
        (moment, Decimal("1.50"), [moment], datetime.date(1, 1, 1)),
    )
    physical = [file.schema.column(i).physical_type for i in range(4)]
    assert physical == ["INT96", "FIXED_LEN_BYTE_ARRAY", "INT96", "INT32"]
    assert file.schema.column(1).length == 3


def test_the_footer_says_how_time_is_counted() -> None:
    metadata = written("da date", (None,)).metadata.metadata
    assert metadata == {
        b"writer.date.proleptic": b"true", b"writer.time.zone": b"UTC", b"writer.zone.conversion.legacy": b"false"
    }  # fmt: skip


FAR, NEAR = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), datetime.datetime(1600, 1, 1)


def times(*groups: pa.Array) -> list[int]:
    """The microseconds of a file, whose row groups are given."""
    out = io.BytesIO()
    sink = ParquetSink(out, columns_of("ts timestamp"), "snappy", Hive.HIVE3)
    for group in groups:
        sink.write(pa.record_batch([group], ["ts"]))
        sink._gathered.flush()
    sink.close()
    read = pq.ParquetFile(io.BytesIO(out.getvalue()), coerce_int96_timestamp_unit="us").read()
    return [None if ticks is None else int(ticks) for ticks in read["ts"].cast(pa.int64()).to_pylist()]


def test_timestamps_reach_as_far_as_those_of_hive() -> None:
    usual = pa.array([FAR, NEAR, None], pa.timestamp("us"))
    near = pa.array([0, 1000, None], pa.timestamp("ns"))
    assert times(widened(usual), near) == [*usual.cast(pa.int64()).to_pylist(), 0, 1, None]
    assert times(near, widened(usual)) == [0, 1, None, *usual.cast(pa.int64()).to_pylist()]
    assert times(pa.array([1], pa.timestamp("ns"))) == [0]


BAD_TIMES = {
    "before the calendar of today": [pa.array([datetime.datetime(1582, 10, 14)], pa.timestamp("us"))],
    "nanoseconds behind microseconds": [pa.array([0], pa.timestamp("ns")), pa.array([1], pa.timestamp("ns"))],
    "a far year behind nanoseconds": [pa.array([1], pa.timestamp("ns")), pa.array([FAR], pa.timestamp("us"))],
}


@pytest.mark.parametrize("name", BAD_TIMES)
def test_a_timestamp_that_does_not_fit_is_refused(name: str) -> None:
    with pytest.raises(BadDataError, match="column ts"):
        times(*map(widened, BAD_TIMES[name]))


@pytest.mark.parametrize("hive", Hive)
def test_hive_3_gets_no_dictionary(hive: Hive) -> None:
    chunk = written("s string", (None,), (None,), hive=hive).metadata.row_group(0).column(0)
    assert chunk.has_dictionary_page == (hive is Hive.HIVE4)


def test_char_has_no_blanks_at_its_end() -> None:
    file = written("h char(5), a array<struct<h:char(5)>>", ("ab  ", [{"h": "c "}]), ("", None))
    assert file.read().to_pylist() == [{"h": "ab", "a": [{"h": "c"}]}, {"h": "", "a": None}]
