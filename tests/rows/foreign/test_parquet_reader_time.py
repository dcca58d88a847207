"""Parquet's calendars and zones: what the footer says of a file, and columns moved accordingly."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from support.tables import json_rows, snapshot_of

from acidctl.acid.compaction_kind import Hive
from acidctl.base.errors import BadDataError
from acidctl.location.metastore_schema import Declared
from acidctl.rows.foreign import parquet_reader
from acidctl.rows.foreign.parquet_reader import ParquetTime, as_meant, parquet_time
from acidctl.rows.scan.scan import Scan

JAVA = "parquet-mr version 1.11.1 (build ...)"
TOKYO = {b"writer.time.zone": b"Asia/Tokyo"}
NOT_LEGACY = {b"writer.zone.conversion.legacy": b"false"}
SPARK = b"org.apache.spark.version"


@pytest.mark.parametrize(
    ("created_by", "entries", "int96", "want"),
    [
        (JAVA, {}, True, ParquetTime(True, True)),
        (JAVA, {}, False, ParquetTime(True, False)),
        (JAVA, {b"writer.date.proleptic": b"true"}, True, ParquetTime(False, True)),
        (JAVA, {b"writer.date.proleptic": b"false"}, False, ParquetTime(True, False)),
        (JAVA, TOKYO, True, ParquetTime(True, True, "Asia/Tokyo", True)),
        (JAVA, {**TOKYO, b"writer.date.proleptic": b"true"}, True, ParquetTime(False, True, "Asia/Tokyo", False)),
        (
            JAVA,
            {**TOKYO, **NOT_LEGACY, b"writer.date.proleptic": b"false"},
            True,
            ParquetTime(True, True, "Asia/Tokyo", True),
        ),
        (JAVA, TOKYO, False, ParquetTime(True, False)),
        (JAVA, {b"writer.time.zone": b"UTC", b"writer.date.proleptic": b"true"}, False, ParquetTime()),
        (JAVA, {SPARK: b"3.5.1"}, True, ParquetTime()),
        (JAVA, {SPARK: b"2.4.8"}, True, ParquetTime(True, True)),
        (JAVA, {SPARK: b"3.5.1", b"org.apache.spark.legacyDateTime": b""}, False, ParquetTime(True, True)),
        (JAVA, {SPARK: b"3.5.1", b"org.apache.spark.legacyINT96": b""}, True, ParquetTime(False, True)),
        ("parquet-cpp-arrow version 26.0.0", {}, True, ParquetTime()),
        ("impala version 4.0.0", {b"writer.time.zone": b"Asia/Tokyo"}, True, ParquetTime()),
    ],
)
def test_footer_says_calendar_and_zone(
    created_by: str, entries: dict[bytes, bytes], int96: bool, want: ParquetTime
) -> None:
    assert parquet_time(created_by, entries, int96=int96) == want


def write(table: Path, columns: dict[str, pa.Array], **entries: str) -> None:
    folder = table / "delta_0000001_0000001_0000"
    folder.mkdir(parents=True)
    rows = pa.table(columns).replace_schema_metadata(entries)
    pq.write_table(rows, folder / "000000_0", use_deprecated_int96_timestamps=True)


def rows_of(table: Path) -> list[dict[str, Any]]:
    return json_rows(Scan(snapshot_of(table)))


def julian(day: datetime.date) -> datetime.date:
    """The proleptic name of the day that the Julian calendar calls so, of 1500 and after: ten days later."""
    return day + datetime.timedelta(days=10)


def test_julian_dates_are_moved_however_nested(tmp_path: Path) -> None:
    days = [julian(datetime.date(1500, 3, 1)), julian(datetime.date(1582, 10, 4)), datetime.date(1582, 10, 15), None]
    columns = {"d": pa.array(days), "s": pa.array([[{"x": day}] for day in days])}
    write(tmp_path / "said", columns, **{"writer.date.proleptic": "false"})
    write(tmp_path / "proleptic", columns, **{"writer.date.proleptic": "true"})
    labels = ["1500-03-01", "1582-10-04", "1582-10-15", None]
    assert rows_of(tmp_path / "said") == [{"d": day, "s": [{"x": day}]} for day in labels]
    stored = [None if day is None else day.isoformat() for day in days]
    assert rows_of(tmp_path / "proleptic") == [{"d": day, "s": [{"x": day}]} for day in stored]


def test_hive_3_takes_days_as_they_are_stored(tmp_path: Path) -> None:
    write(tmp_path, {"d": pa.array([julian(datetime.date(1500, 3, 1))])}, **{"writer.date.proleptic": "false"})
    for hive, day in ((Hive.HIVE3, "1500-03-11"), (Hive.HIVE4, "1500-03-01"), (None, "1500-03-01")):
        declared = Declared((("d", "date"),), "Parquet", hive=hive)
        assert json_rows(Scan(replace(snapshot_of(tmp_path), declared=declared))) == [{"d": day}]


@pytest.mark.parametrize("by_place", [False, True])
def test_columns_in_other_places_are_refused_where_places_count(tmp_path: Path, by_place: bool) -> None:
    write(tmp_path, {"A": pa.array([1]), "b": pa.array([2])})
    for columns, row in (("ab", {"a": 1, "b": 2}), ("abc", {"a": 1, "b": 2, "c": None}), ("ba", {"b": 2, "a": 1})):
        declared = Declared(tuple((name, "bigint") for name in columns), "Parquet", by_place=by_place)
        snapshot = replace(snapshot_of(tmp_path), declared=declared)
        if by_place and columns == "ba":
            with pytest.raises(BadDataError, match="places"):
                json_rows(Scan(snapshot))
        else:
            assert json_rows(Scan(snapshot)) == [row]


def test_timestamps_come_back_to_the_zone_of_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [
        datetime.datetime(2021, 1, 1, 20, 0, 0, 5),
        datetime.datetime(2021, 7, 1, 7, 30),
        datetime.datetime(9999, 12, 31),
        datetime.datetime(1500, 3, 11, 8),
        None,
    ]
    stamps = pa.array(moments, pa.timestamp("us"))
    entries = {"writer.time.zone": "America/Los_Angeles", "writer.date.proleptic": "true"}
    write(tmp_path / "all", {"t": stamps}, **entries)
    write(tmp_path / "few", {"t": stamps.take(pa.array([0, 1, 4]))}, **entries)
    assert rows_of(tmp_path / "few")[0] == {"t": "2021-01-01 20:00:00.000005"}, "not by Java: no zone of Hive's"

    def by_java(created_by: str, found: Any, *, int96: bool) -> ParquetTime:
        assert created_by.startswith("parquet-cpp-arrow")
        return parquet_time(JAVA, found, int96=int96)

    monkeypatch.setattr(parquet_reader, "parquet_time", by_java)
    recent = ["2021-01-01 12:00:00.000005", "2021-07-01 00:30:00.0"]
    assert [row["t"] for row in rows_of(tmp_path / "few")] == [*recent, None]
    assert [row["t"] for row in rows_of(tmp_path / "all")] == [
        *recent,
        "9999-12-30 16:00:00.0",
        "1500-03-01 00:00:00.0",
        None,
    ]


@pytest.mark.parametrize(
    ("zone", "stored", "wanted"),
    [
        ("Asia/Kolkata", "1883-11-18 06:42:48", "1883-11-18 12:03:58"),
        ("America/New_York", "1677-09-22 04:56:02", "1677-09-22 00:00:00"),
        ("America/New_York", "1883-11-18 17:00:00", "1883-11-18 12:00:00"),
        ("Europe/Amsterdam", "1900-01-01 00:00:00", "1900-01-01 00:19:32"),
    ],
)
def test_before_standard_time_the_zones_local_mean_time_counts(zone: str, stored: str, wanted: str) -> None:
    array = pa.array([datetime.datetime.fromisoformat(stored)], pa.timestamp("ns"))
    (found,) = as_meant(array, ParquetTime(zone=zone, local_mean=True)).cast("string").to_pylist()
    assert found[:19] == wanted


def test_timestamps_moved_beyond_nanoseconds_become_wide() -> None:
    ends = pa.array([-(2**63) + 1, 2**63 - 1, None], pa.timestamp("ns"))
    moved = as_meant(ends, ParquetTime(zone="Asia/Tokyo")).storage.to_pylist()
    assert [one and one["seconds"] for one in moved] == [-9223372037 + 32_400, 9223372036 + 32_400, None]
    assert as_meant(ends.slice(2), ParquetTime(zone="Asia/Tokyo")).to_pylist() == [None]
