"""The tables that the data source's tests read."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from acidctl.acid import bucket
from acidctl.acid.names import METADATA_ACID, Kind, format_directory
from acidctl.acid.sidefiles import METADATA_ACID_COMPACTED
from acidctl.demo.big import BigOptions, write_big
from acidctl.demo.write import write_directory
from acidctl.orc.read.wide_timestamps import WIDE_STORAGE, WideTimestamp
from acidctl.orc.types import OrcType, arrow_type
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.storage.registry import open_location

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


def struct(**columns: OrcType) -> OrcType:
    """A row type."""
    return OrcType("struct", children=tuple(columns.values()), names=tuple(columns))


def insert(table: Path, write_id: int, row: OrcType, rows: list[Row], kind: Kind = Kind.DELTA) -> None:
    """A delta or base of one bucket."""
    count = len(rows)
    values = zip(*rows, strict=True) if rows else [()] * len(row.children)
    columns = [pa.array(list(of), field.type) for of, field in zip(values, arrow_type(row), strict=True)]
    write_events(table, kind, write_id, [0] * count, [(write_id, n) for n in range(count)], row, columns)


def delete(table: Path, write_id: int, row: OrcType, keys: list[tuple[int, int]]) -> None:
    """A delete delta that kills (write id, row id)."""
    write_events(table, Kind.DELETE_DELTA, write_id, [2] * len(keys), keys, row, None)


def write_events(
    table: Path,
    kind: Kind,
    write_id: int,
    operations: list[int],
    keys: list[tuple[int, int]],
    row: OrcType,
    columns: list[pa.Array] | None,
) -> None:
    """One directory of one bucket."""
    fs, path = open_location(str(table))
    count = len(keys)
    rows = pa.nulls(count, arrow_type(row))
    if columns is not None:
        fields = [pa.field(name, column.type) for name, column in zip(row.names, columns, strict=True)]
        rows = pa.StructArray.from_arrays(columns, fields=fields)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(operations, pa.int32()),
            pa.array([original for original, _ in keys], pa.int64()),
            pa.array([bucket.encode(0, 0)] * count, pa.int32()),
            pa.array([row_id for _, row_id in keys], pa.int64()),
            pa.array([write_id] * count, pa.int64()),
            rows,
        ],
        names=["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"],
    )
    name = format_directory(kind, write_id, write_id, 0) if kind is not Kind.BASE else f"base_{write_id:07d}"
    write_directory(fs, f"{path}/{name}", {0: [batch]}, row, WriterSettings.for_delta())
    if kind is Kind.BASE:
        fs.write_bytes(f"{path}/{name}/{METADATA_ACID}", METADATA_ACID_COMPACTED)


def write_all(folder: Path) -> None:
    """Every table that source_scenarios.py names."""
    fs, path = open_location(str(folder / "big"))
    write_big(fs, path, BigOptions(rows=BIG_ROWS, write_ids=2, deletes=BIG_DELETES, base=True))
    cities = OrcType("struct", children=(STRING, STRING), names=("the city", "land.code"))
    insert(folder / "cities", 1, cities, list(CITIES))
    _odd(folder)
    _broken(folder)


def _odd(folder: Path) -> None:
    for land, year, day, numbers in PARTITIONS:
        insert(folder / "parts" / land / year / day, 1, struct(n=INT), [(n,) for n in numbers])
    inner = OrcType("struct", children=(INT, STRING), names=("p.q", "r s"))
    names = OrcType("struct", children=(INT, STRING, inner, STRING), names=("a.b", "row", "x y", "ROW ID"))
    insert(folder / "names", 1, names, [(1, "one", {"p.q": 5, "r s": "deep"}, "`"), (2, None, None, "ä")])
    (folder / "empty").mkdir()
    insert(folder / "deleted", 1, struct(a=INT), [(1,), (2,)])
    delete(folder / "deleted", 2, struct(a=INT), [(1, 0), (1, 1)])
    insert(folder / "grown", 1, struct(_col0=OrcType("smallint")), [(1,), (2,), (3,)])
    insert(folder / "grown", 2, struct(_col0=INT, _col1=STRING), [(4, "four")])
    insert(folder / "grown", 3, struct(a=BIGINT, b=STRING, c=OrcType("array", children=(INT,))), [(1 << 40, None, [1])])
    delete(folder / "grown", 4, struct(a=BIGINT, b=STRING), [(1, 1)])
    times = struct(id=INT, t=OrcType("timestamp"), i=OrcType("timestamp with local time zone"))
    insert(folder / "times", 1, times, [(n, moment, moment) for n, moment in enumerate(MOMENTS)])
    far = pa.array([{"seconds": seconds, "nanos": nanos} for seconds, nanos in FAR], WIDE_STORAGE)
    columns = [
        pa.array([10, 11], pa.int32()),
        pa.ExtensionArray.from_storage(WideTimestamp(), far),
        pa.nulls(2, pa.timestamp("ns", "UTC")),
    ]
    write_events(folder / "times", Kind.DELTA, 2, [0, 0], [(2, 0), (2, 1)], times, columns)
    for write_id in (1, 2):
        insert(folder / "moving", write_id, struct(a=INT), [(write_id,)])
    name = format_directory(Kind.DELTA, 2, 2, 0)
    (folder / "moving" / name).rename(folder / name)


def _broken(folder: Path) -> None:
    for name in ("vanishing", "damaged", "db/t1", "db/t2"):
        insert(folder / name, 1, struct(a=INT, b=STRING), [(n, f"text {n * 7919 % 1000}") for n in range(2000)])
    insert(folder / "compacted", 5, struct(a=INT), [(1,)], Kind.BASE)
    (folder / "text").mkdir()
    (folder / "text" / "rows.csv").write_text("a,b\n1,2\n")
    damaged = folder / "damaged" / "delta_0000001_0000001_0000" / "bucket_00000"
    data = bytearray(damaged.read_bytes())
    data[3:600] = bytes(597)  # stripes are damaged, the tail is not
    damaged.write_bytes(data)
