"""Files that are encoded again as Parquet, read by pyarrow, DuckDB and polars, against what ORC's C++ reader finds."""

from __future__ import annotations

import random
import struct as packing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support.files.acid_files import acid_batch, insert, struct, write_acid, write_by_pyorc, write_plain
from support.made.random_values import everything, random_array
from support.tables import snapshot_of

from acidctl.base.errors import BadDataError, RefusedError
from acidctl.iceberg.difference import Wanted, source_file
from acidctl.iceberg.fields import fields_for
from acidctl.iceberg.keys import RUNS
from acidctl.iceberg.orc_files.metrics import Metrics
from acidctl.iceberg.parquet_files import encode
from acidctl.iceberg.parquet_files.encode import EncodedFile, pieces, write_parquet
from acidctl.iceberg.parquet_files.read import read_keys, read_rows, text_of
from acidctl.iceberg.parquet_files.stored_values import stored_values
from acidctl.orc.read.wide_timestamps import wide
from acidctl.orc.types import OrcType, row_of
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.visibility import load_deletes, open_sources
from acidctl.storage.registry import open_location

D1 = "delta_0000001_0000001_0000"
EVENTS = "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,row:{}>"
TYPES = row_of([pair for pair in everything(unions=False).fields() if pair[0] != "e"])
NONE = np.zeros(0, np.int64)


def source_of(table: Path) -> EventFile:
    (source,) = open_sources(snapshot_of(table))
    return source


def encoded(table: Path, row: OrcType | None = None, **parts: Any) -> tuple[Path, Metrics]:
    """The Parquet file of a table's only file, and its metrics."""
    source = source_of(table)
    row = row or source.row_type
    fs, folder = open_location(str(table.parent))
    parts = {"stripes": None, "dead": NONE, "keys": text_of(b"k\xff"), **parts}
    metrics = write_parquet(source, EncodedFile(row, fields_for(row)), fs, f"{folder}/copy.parquet", **parts)
    return table.parent / "copy.parquet", metrics


def batch_of(seed: int = 5) -> pa.RecordBatch:
    rows = random_array(TYPES, 700, random.Random(seed), 0.2)
    return pa.RecordBatch.from_arrays([rows.field(at) for at in range(len(TYPES.children))], names=list(TYPES.names))


def test_every_type_keeps_its_values(tmp_path: Path) -> None:
    write_acid(tmp_path / "t" / D1 / "bucket_00000", acid_batch(batch_of(), write_id=1), row=TYPES, calendar=2)
    with source_of(tmp_path / "t").open() as reader:
        expected = reader.rows(0).filter(pa.array([at not in (3, 699) for at in range(700)]))
    path, metrics = encoded(tmp_path / "t", dead=np.array([3, 699]))
    found = pq.read_table(path)
    assert metrics.rows == found.num_rows == 698
    for at, name in enumerate(TYPES.names):
        mine, theirs = found[name].combine_chunks(), expected.field(at)
        if name in ("t", "z", "a"):
            assert [cut(one) for one in mine.to_pylist()] == [cut(one) for one in theirs.to_pylist()], name
            continue
        if name == "day":  # also of years beyond Python's
            mine, theirs = mine.cast(pa.int32()), theirs.cast(pa.int32())
        theirs = pc.utf8_rtrim(theirs, " ") if name == "c" else theirs
        assert str(mine.to_pylist()) == str(theirs.to_pylist()), name
    judge = duckdb.sql(f"select i8, n, q, c, count(*) over () from '{path}'").fetchall()
    assert [row[0] for row in judge] == expected.field(TYPES.names.index("i8")).to_pylist()
    assert [row[1] for row in judge] == expected.field(TYPES.names.index("n")).to_pylist()


def cut(value: Any) -> Any:
    """A time, however nested and of any year, as microseconds."""
    if isinstance(value, dict) and value.keys() == {"seconds", "nanos"}:
        return value["seconds"] * 10**6 + value["nanos"] // 1000
    if isinstance(value, dict):
        return {key: cut(one) for key, one in value.items()}
    if isinstance(value, list):
        return [cut(one) for one in value]
    if isinstance(value, datetime):
        past = value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        return (past.days * 86400 + past.seconds) * 10**6 + past.microseconds
    return value


def test_times_are_cut_downwards(tmp_path: Path) -> None:
    """Also before 1970, where towards zero would be upwards."""
    nanos = pa.array([-1_000_000_001, 1, -1_000_001_001, 1999, None], pa.int64())
    batch = pa.RecordBatch.from_pydict({"t": nanos.view(pa.timestamp("ns"))})
    write_acid(tmp_path / "t" / D1 / "bucket_00000", acid_batch(batch, write_id=1), row=struct(t=OrcType("timestamp")))
    path, metrics = encoded(tmp_path / "t")
    assert pq.read_table(path)["t"].cast(pa.int64()).to_pylist() == [-1_000_001, 0, -1_000_002, 1, None]
    assert (metrics.lower[1], metrics.upper[1]) == (packing.pack("<q", -1_000_002), packing.pack("<q", 1))


def test_days_and_times_of_the_old_calendar(tmp_path: Path) -> None:
    days = [date(1400, 1, 1), date(1582, 10, 15), date(9999, 12, 31)]
    row = struct(d=OrcType("date"))
    write_plain(tmp_path / "t" / "000000_0", pa.RecordBatch.from_pydict({"d": days}), row=row, calendar=1)
    with source_of(tmp_path / "t").open() as reader:
        expected = reader.rows(0).field(0).to_pylist()
    assert expected[0] != days[0], "the file counts in another calendar"
    path, _ = encoded(tmp_path / "t")
    assert pq.read_table(path)["d"].to_pylist() == expected
    assert [one for (one,) in duckdb.sql(f"select d from '{path}'").fetchall()] == expected


def test_metrics_are_those_of_the_rows(tmp_path: Path) -> None:
    row = struct(
        b=OrcType("boolean"), s=OrcType("string"), d=OrcType("decimal", precision=9, scale=2),
        n=OrcType("decimal", precision=30, scale=0), f=OrcType("double"), q=struct(x=OrcType("int")),
        l=OrcType("array", children=(OrcType("int"),)), raw=OrcType("binary"), z=OrcType("double"),
    )  # fmt: skip
    rows = [
        (True, "x" * 20, Decimal("-1.50"), Decimal(-(10**29)), 0.0, (7,), [1, 2], b"a", float("nan")),
        (False, "b", Decimal("2.25"), Decimal(10**29), -2.5, None, None, None, 1.0),
        (None, None, None, None, None, (None,), [], b"c", None),
    ]
    write_by_pyorc(tmp_path / "t" / D1, [insert(1, at, one) for at, one in enumerate(rows)], schema=EVENTS.format(
        "struct<b:boolean,s:string,d:decimal(9,2),n:decimal(30,0),f:double,q:struct<x:int>,l:array<int>,raw:binary,"
        "z:double>"
    ))  # fmt: skip
    path, metrics = encoded(tmp_path / "t", row)
    assert (metrics.rows, metrics.length) == (3, path.stat().st_size)
    assert {at: metrics.nulls[at] for at in range(1, 6)} == dict.fromkeys(range(1, 6), 1)
    inside = fields_for(row)[5].children[0].id
    assert metrics.nulls[inside] == 2
    assert (metrics.lower[1], metrics.upper[1]) == (b"\0", b"\1")
    assert (metrics.lower[2], metrics.upper[2]) == (b"b", b"x" * 15 + b"y")
    assert (metrics.lower[3], metrics.upper[3]) == ((-150).to_bytes(2, "big", signed=True), (225).to_bytes(2, "big"))
    assert int.from_bytes(metrics.lower[4], "big", signed=True) == -(10**29)
    assert (metrics.lower[5], metrics.upper[5]) == (packing.pack("<d", -2.5), packing.pack("<d", 0.0))
    assert (metrics.lower[inside], metrics.upper[inside]) == (packing.pack("<i", 7),) * 2
    element = fields_for(row)[6].children[0].id
    assert not {element, 8, 9} & metrics.lower.keys(), "lists, bytes, and a column with NaN have no bounds"
    assert not {7, element} & metrics.values.keys()
    assert set(metrics.sizes) == {1, 2, 3, 4, 5, inside, element, 8, 9}


def test_columns_that_were_changed_in_hive(tmp_path: Path) -> None:
    rows = [(1, "x   ", 1.5, ("y", 1)), (3, "long text", 2.5, None)]
    schema = EVENTS.format("struct<a:smallint,c:varchar(20),d:float,e:struct<q:string,p:int>>")
    write_by_pyorc(tmp_path / "t" / D1, [insert(1, at, row) for at, row in enumerate(rows)], schema=schema)
    row = struct(
        a=OrcType("string"),
        c=OrcType("char", max_length=6),
        d=OrcType("double"),
        e=struct(p=OrcType("int"), r=OrcType("int"), q=OrcType("string")),
        f=OrcType("int"),
    )
    path, metrics = encoded(tmp_path / "t", row)
    assert pq.read_table(path).to_pylist() == [
        {"a": "1", "c": "x", "d": 1.5, "e": {"p": 1, "r": None, "q": "y"}, "f": None},
        {"a": "3", "c": "long t", "d": 2.5, "e": None, "f": None},
    ]
    assert metrics.nulls[5] == 2


def test_what_the_two_hives_convert_differently_is_refused(tmp_path: Path) -> None:
    write_by_pyorc(tmp_path / "t" / D1, [insert(1, 0, (1.1,))], schema=EVENTS.format("struct<a:float>"))
    with pytest.raises(RefusedError, match="column a is float there and string in the result"):
        encoded(tmp_path / "t", struct(a=OrcType("string")))


def test_times_of_any_year_but_those_that_iceberg_cannot_hold() -> None:
    old = wide(np.array([-(1 << 35)]), np.array([1999]), pa.array([1]), instant=False)
    micros = stored_values(old, pa.timestamp("us"), "t", "here").cast(pa.int64())
    assert micros.to_pylist() == [-(1 << 35) * 10**6 + 1]
    far = wide(np.array([1 << 50]), np.array([0]), pa.array([1]), instant=False)
    with pytest.raises(RefusedError, match="column t of"):
        stored_values(far, pa.timestamp("us"), "t", "here")


def test_damage_is_named(tmp_path: Path) -> None:
    write_acid(tmp_path / "t" / D1 / "bucket_00000", insert(1, 0, (1, "a")))
    path, _ = encoded(tmp_path / "t", keys=b"\xc3\xa4")
    fs, _ = open_location(str(tmp_path))
    with pytest.raises(BadDataError, match="the keys in"):
        read_keys(fs, str(path))
    path.write_bytes(path.read_bytes()[:-9] + b"\0" * 9)
    with pytest.raises(BadDataError, match="cannot be read"):
        read_keys(fs, str(path))


def test_keys_and_ids_are_in_the_file(tmp_path: Path) -> None:
    write_acid(tmp_path / "t" / D1 / "bucket_00000", acid_batch(batch_of(), write_id=1), row=TYPES, calendar=2)
    path, _ = encoded(tmp_path / "t")
    fs, _ = open_location(str(tmp_path))
    assert read_keys(fs, str(path)) == b"k\xff"
    assert pq.read_metadata(path).metadata[RUNS.encode()].isascii()
    row, batches = read_rows(fs, str(path))
    ids = [int(dict(node.attributes)["iceberg.id"]) for node in row.walk() if node is not row]
    assert ids == [node.id for top in fields_for(TYPES) for node in top.walk()]
    assert sum(batch.num_rows for batch in batches) == 700


def test_a_large_file_becomes_several(tmp_path: Path) -> None:
    row = struct(id=OrcType("int"))
    parts = [acid_batch(pa.RecordBatch.from_pydict({"id": pa.array([at, at], pa.int32())}), 2 * at) for at in range(4)]
    write_acid(tmp_path / "t" / "delta_0000007_0000007_0000" / "bucket_00000", *parts, row=row)
    snapshot = snapshot_of(tmp_path / "t")
    events = source_of(tmp_path / "t")
    file = source_file(events, snapshot, load_deletes([events], snapshot.write_ids))
    whole = Wanted(file, None, file.keys.runs, np.array([1, 4, 5, 7]))
    assert [piece.stripes for piece in pieces(whole)] == [(0, 1, 2, 3)]
    one, two, four = pieces(whole, 1)
    assert (one.stripes, one.dead.tolist(), one.runs.first.tolist()) == ((0,), [1], [0])
    assert (two.stripes, two.dead.tolist(), two.runs.first.tolist()) == ((1,), [], [2])
    assert (four.stripes, four.dead.tolist(), four.rows) == ((3,), [1], 1)


def test_row_groups_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "_ROW_GROUP", 1000)
    numbers = pa.RecordBatch.from_pydict({"id": pa.array(range(1000), pa.int32())})
    write_acid(tmp_path / "t" / D1 / "bucket_00000", acid_batch(numbers, write_id=1), row=struct(id=OrcType("int")))
    path, metrics = encoded(tmp_path / "t", dead=np.array([0]))
    footer = pq.read_metadata(path)
    assert footer.num_row_groups == len(metrics.offsets) == 4
    assert (metrics.lower[1], metrics.upper[1]) == (packing.pack("<i", 1), packing.pack("<i", 999))
    assert pq.read_table(path)["id"].to_pylist() == list(range(1, 1000))


def test_dead_rows_of_several_stripes(tmp_path: Path) -> None:
    row = struct(id=OrcType("int"))
    parts = [
        acid_batch(pa.RecordBatch.from_pydict({"id": pa.array([2 * at, 2 * at + 1], pa.int32())}), 2 * at)
        for at in range(4)
    ]
    write_acid(tmp_path / "t" / "delta_0000007_0000007_0000" / "bucket_00000", *parts, row=row)
    path, _ = encoded(tmp_path / "t", dead=np.array([0, 3, 6]))
    assert pq.read_table(path)["id"].to_pylist() == [1, 2, 4, 5, 7]
    path.unlink()
    path, _ = encoded(tmp_path / "t", stripes=(1, 3), dead=np.array([0, 3]))
    assert pq.read_table(path)["id"].to_pylist() == [3, 6]


def test_bounds_are_those_of_all_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of NULLs alone have none and need none; long texts have none in the footer."""
    monkeypatch.setattr(encode, "_ROW_GROUP", 1)
    numbers = pa.array([None, 7, 3], pa.int32())
    batch = pa.RecordBatch.from_pydict({"same": ["x"] * 3, "id": numbers, "long": ["a", "b" * 100_000, "c"]})
    row = struct(same=OrcType("string"), id=OrcType("int"), long=OrcType("string"))
    write_acid(tmp_path / "t" / D1 / "bucket_00000", acid_batch(batch, write_id=1), row=row)
    path, metrics = encoded(tmp_path / "t")
    assert pq.read_metadata(path).num_row_groups == 3
    assert (metrics.nulls[2], metrics.lower[2], metrics.upper[2]) == (1, packing.pack("<i", 3), packing.pack("<i", 7))
    assert 3 not in metrics.lower
    assert metrics.offsets[0] == 4, "the dictionary is the first page"
