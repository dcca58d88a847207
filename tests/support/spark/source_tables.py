"""The tables that the data source's tests read."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from acidctl.acid.names import Kind, format_directory
from acidctl.orc.read.wide_timestamps import WIDE_STORAGE, WideTimestamp
from acidctl.orc.types import OrcType
from acidctl.storage.registry import open_location
from support.files.acid_files import batch_of, struct, write_deletes, write_delta
from support.made.big_tables import BigOptions, write_big
from support.tables import mark

Row = tuple[Any, ...]

INT, BIGINT, STRING = OrcType("int"), OrcType("bigint"), OrcType("string")
BIG_ROWS = 400_000
BIG_DELETES = 500
CITIES = [("Oslo", "NO"), ("Zürich", "CH"), ("Lisbon", "PT"), ("Atlantis", "??")]
PARTITIONS = [
    ("land=a%2Fb c%3Dd%25", "year=2020", "day=2020-02-29", [1, 2]),
    ("land=x", "year=2021", "day=2021-01-01", [3]),
    ("land=ünder", "year=2020", "day=2020-01-02", [4]),
    ("land=__HIVE_DEFAULT_PARTITION__", "year=2019", "day=__HIVE_DEFAULT_PARTITION__", [5]),
    ("land=gone", "year=2019", "day=2019-01-01", []),
]
MOMENTS = [
    datetime.datetime(2024, 2, 29, 12, 0, 0, 123456),
    datetime.datetime(1969, 12, 31, 12, 0, 0, 999999),
    None,
]
FAR = [(253_402_300_799, 123_456_789), (-62_135_596_800, 0)]
"""Seconds and nanoseconds of 9999-12-31 23:59:59.123456789 and 0001-01-01."""


def insert(table: Path, write_id: int, row: OrcType, *rows: Row, base: bool = False) -> None:
    """A delta or base of one bucket."""
    mark(write_delta(table, write_id, batch_of(row, *rows), row=row, base=base).parent)


def delete(table: Path, write_id: int, row: OrcType, original: int, *row_ids: int) -> None:
    """A delete delta that kills rows of one write id."""
    mark(write_deletes(table, write_id, original, row_ids, row).parent)


def write_all(folder: Path) -> None:
    """Every table that source_scenarios.py names."""
    fs, path = open_location(str(folder / "big"))
    write_big(fs, path, BigOptions(rows=BIG_ROWS, write_ids=2, deletes=BIG_DELETES, base=True))
    cities = OrcType("struct", children=(STRING, STRING), names=("the city", "land.code"))
    insert(folder / "cities", 1, cities, *CITIES)
    _odd(folder)
    _broken(folder)


def _odd(folder: Path) -> None:
    for land, year, day, numbers in PARTITIONS:
        insert(folder / "parts" / land / year / day, 1, struct(n=INT), *((n,) for n in numbers))
    inner = OrcType("struct", children=(INT, STRING), names=("p.q", "r s"))
    names = OrcType("struct", children=(INT, STRING, inner, STRING), names=("a.b", "row", "x y", "ROW ID"))
    insert(folder / "names", 1, names, (1, "one", {"p.q": 5, "r s": "deep"}, "`"), (2, None, None, "ä"))
    (folder / "empty").mkdir()
    insert(folder / "deleted", 1, struct(a=INT), (1,), (2,))
    delete(folder / "deleted", 2, struct(a=INT), 1, 0, 1)
    insert(folder / "grown", 1, struct(_col0=OrcType("smallint")), (1,), (2,), (3,))
    insert(folder / "grown", 2, struct(_col0=INT, _col1=STRING), (4, "four"))
    insert(folder / "grown", 3, struct(a=BIGINT, b=STRING, c=OrcType("array", children=(INT,))), (1 << 40, None, [1]))
    delete(folder / "grown", 4, struct(a=BIGINT, b=STRING), 1, 1)
    times = struct(id=INT, t=OrcType("timestamp"), i=OrcType("timestamp with local time zone"))
    insert(folder / "times", 1, times, *((n, moment, moment) for n, moment in enumerate(MOMENTS)))
    far = pa.array([{"seconds": seconds, "nanos": nanos} for seconds, nanos in FAR], WIDE_STORAGE)
    columns = [
        pa.array([10, 11], pa.int32()),
        pa.ExtensionArray.from_storage(WideTimestamp(), far),
        pa.nulls(2, pa.timestamp("ns", "UTC")),
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=list(times.names))
    mark(write_delta(folder / "times", 2, batch, row=times).parent)
    for write_id in (1, 2):
        insert(folder / "moving", write_id, struct(a=INT), (write_id,))
    name = format_directory(Kind.DELTA, 2, 2, 0)
    (folder / "moving" / name).rename(folder / name)


def _broken(folder: Path) -> None:
    for name in ("vanishing", "damaged", "db/t1", "db/t2"):
        insert(folder / name, 1, struct(a=INT, b=STRING), *((n, f"text {n * 7919 % 1000}") for n in range(2000)))
    insert(folder / "compacted", 5, struct(a=INT), (1,), base=True)
    (folder / "text").mkdir()
    (folder / "text" / "000000_0").write_text("a,b\n1,2\n")
    damaged = folder / "damaged" / "delta_0000001_0000001_0000" / "bucket_00000"
    data = bytearray(damaged.read_bytes())
    data[3:600] = bytes(597)  # stripes are damaged, the tail is not
    damaged.write_bytes(data)
