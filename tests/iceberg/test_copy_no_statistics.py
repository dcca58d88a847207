"""Files without an index, whose statistics say that there are no values at all: as Hive 3's compactor writes them."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from support.files.acid_files import acid_batch, struct, write_acid
from support.files.orc_bytes import encode_original, tail_of
from support.migrating import copy, rows

from acidctl.base.errors import RefusedError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.types import OrcType
from acidctl.orc.write.writer_settings import WriterSettings

ROW = struct(a=OrcType("int"), d=OrcType("date"))


def without_statistics(path: Path) -> None:
    """Give a file the statistics that Java's ORC writes for a row index stride of 0."""
    data = path.read_bytes()
    tail = tail_of(data)
    footer, postscript, metadata = pb.Footer(), pb.PostScript(), pb.Metadata()
    for message, own in ((footer, tail.footer), (postscript, tail.postscript), (metadata, tail.metadata)):
        message.CopyFrom(own)
    for one in (*footer.statistics, *(one for stripe in metadata.stripeStats for one in stripe.colStats)):
        one.numberOfValues, one.hasNull = 0, False
        one.ClearField("dateStatistics")
        if one.HasField("intStatistics"):
            one.intStatistics.CopyFrom(pb.IntegerStatistics(sum=0))
    for message, kind in zip(footer.statistics, footer.types, strict=True):
        if kind.kind == pb.Type.DOUBLE:
            message.doubleStatistics.CopyFrom(pb.DoubleStatistics(sum=0))
    sections = [
        encode_original(made.SerializeToString(), tail.compression, tail.block_size) for made in (metadata, footer)
    ]
    postscript.metadataLength, postscript.footerLength = map(len, sections)
    end = postscript.SerializeToString()
    path.write_bytes(data[: tail.content_end] + b"".join(sections) + end + bytes((len(end),)))


def compacted(table: Path, *days: datetime.date | None, operation: int = 0, calendar: int = 2) -> None:
    count = len(days)
    batch = pa.RecordBatch.from_arrays([pa.array(range(count), pa.int32()), pa.array(days, pa.date32())], ["a", "d"])
    events = acid_batch(batch, write_id=1)
    if operation:
        events = events.set_column(0, "operation", pa.array([operation] * count, pa.int32()))
    path = write_acid(
        table / "base_0000001" / "bucket_00000", events, row=ROW, settings=WriterSettings(stride=0), calendar=calendar
    )
    without_statistics(path)


def test_filters_find_rows_of_files_without_statistics(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    compacted(table, datetime.date(2020, 1, 1), None)
    copy(table, to)
    scanned = StaticTable.from_metadata(str(to))
    assert scanned.scan(row_filter="a = 1").to_arrow()["a"].to_pylist() == [1]
    assert scanned.scan(row_filter="d is null").to_arrow()["a"].to_pylist() == [1]
    assert scanned.scan(row_filter="d = '2020-01-01'").to_arrow()["a"].to_pylist() == [0]


def test_old_days_of_files_without_statistics_are_encoded_again(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    compacted(table, datetime.date(1500, 1, 1), calendar=1)
    assert "d" in copy(table, to, format="orc").encoded


def test_files_without_statistics_are_caught_up_with(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    compacted(table, datetime.date(2020, 1, 1))
    copy(table, to)
    new = pa.RecordBatch.from_arrays([pa.array([7], pa.int32()), pa.array([None], pa.date32())], ["a", "d"])
    write_acid(table / "delta_0000002_0000002_0000" / "bucket_00000", acid_batch(new, write_id=2), row=ROW)
    done = copy(table, to)
    assert (done.rows, done.deleted, rows(to)) == (1, 0, [(0, datetime.date(2020, 1, 1)), (7, None)])


def test_updates_in_place_are_refused_by_what_the_rows_say(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    compacted(table, datetime.date(2020, 1, 1))
    copy(table, to)
    compacted(table, datetime.date(2020, 1, 2), operation=1)
    with pytest.raises(RefusedError, match="cannot be copied"):
        copy(table, to)


def test_floats_of_files_without_statistics_may_be_nan_in_parquet(tmp_path: Path) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    batch = pa.RecordBatch.from_arrays([pa.array([1.0, float("nan")])], ["f"])
    row, settings = struct(f=OrcType("double")), WriterSettings(stride=0)
    path = write_acid(
        table / "base_0000001" / "bucket_00000", acid_batch(batch, write_id=1), row=row, settings=settings
    )
    without_statistics(path)
    copy(table, to, format="parquet")
    (task,) = StaticTable.from_metadata(str(to)).scan().plan_files()
    assert task.file.upper_bounds == {}, "a bound of 1.0 would hide NaN, which is above all numbers to Spark"
