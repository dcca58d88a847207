"""Files that are copied by their streams, read by ORC's C++ reader alone."""

from __future__ import annotations

import random
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import orc
from support.files.acid_files import acid_batch, insert, struct, write_acid, write_by_pyorc, write_plain
from support.made.random_values import everything, random_array
from support.tables import snapshot_of

from acidctl.base.errors import RefusedError
from acidctl.iceberg.fields import fields_for
from acidctl.iceberg.orc_files.metrics import Metrics, metrics_of
from acidctl.iceberg.orc_files.splice import FileColumns, Splice, file_columns
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.orc.types import OrcType, row_of
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.read.events import EventFile
from acidctl.rows.read.visibility import open_sources
from acidctl.storage.registry import open_location

D1 = "delta_0000001_0000001_0000"
EVENTS = "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,row:{}>"
TYPES = row_of([pair for pair in everything(unions=False).fields() if pair[0] != "e"])


def source_of(table: Path) -> EventFile:
    (source,) = open_sources(snapshot_of(table))
    return source


def copied(
    table: Path, row: OrcType | None = None, stripes: Any = None, columns: Any = None
) -> tuple[pa.Table, FileColumns, Metrics]:
    """The rows of the copy of a table's only file, how its columns came there, and its metrics."""
    source = source_of(table)
    row = row or source.row_type
    fields = fields_for(row)
    kept = file_columns(source, row, fields)
    fs, folder = open_location(str(table.parent))
    path = f"{folder}/copy.orc"
    made = Splice(source, kept, stripes).write(fs, path, {"acidctl.keys": b"k"})
    by_id = {field.id: field for top in fields for field in top.walk()}
    return orc.ORCFile(path).read(columns=columns), kept, metrics_of(made, by_id)


def reasons(columns: FileColumns) -> dict[str, str]:
    return {column.field.name: column.why for column in columns.encoded}


@pytest.mark.parametrize("compression", ["none", "zlib", "snappy", "lz4", "zstd"])
def test_every_type_keeps_its_values(compression: str, tmp_path: Path) -> None:
    rows = random_array(TYPES, 700, random.Random(compression), 0.2)
    rows = pa.StructArray.from_arrays([rows.field(at) for at in range(len(TYPES.children))], names=TYPES.names)
    settings = WriterSettings(compression=compression, stride=1000, bloom_columns=("s", "i8"))
    write_acid(
        tmp_path / "t" / D1 / "bucket_00000", acid_batch(rows, write_id=1), row=TYPES, settings=settings, calendar=2
    )
    found, columns, metrics = copied(tmp_path / "t")
    assert reasons(columns) == {"c": "Iceberg's readers would find its padding"}
    written = orc.ORCFile(tmp_path / "t" / D1 / "bucket_00000").read()["row"].combine_chunks()
    for at, name in enumerate(TYPES.names):
        expected = written.field(at)
        if name == "c":
            expected = pc.utf8_rtrim(expected, " ")
        if name in ("i1", "i2"):
            expected = expected.cast(found[name].type)
        assert found[name].combine_chunks().equals(expected), name
    assert metrics.rows == 700
    assert metrics.nulls[1] == written.field(0).null_count
    numbers = written.field(TYPES.names.index("i8"))
    at = TYPES.names.index("i8") + 1
    assert int.from_bytes(metrics.lower[at], "little", signed=True) == pc.min(numbers).as_py()
    assert int.from_bytes(metrics.upper[at], "little", signed=True) == pc.max(numbers).as_py()


def test_one_of_several_stripes(tmp_path: Path) -> None:
    batches = [
        acid_batch(pa.RecordBatch.from_pydict({"id": pa.array([at, at], pa.int32())}), 2 * at) for at in range(4)
    ]
    row = struct(id=OrcType("int"))
    write_acid(tmp_path / "t" / "delta_0000007_0000007_0000" / "bucket_00000", *batches, row=row)
    found, _, metrics = copied(tmp_path / "t", stripes=[3, 1])
    assert found["id"].to_pylist() == [1, 1, 3, 3]
    assert (metrics.rows, len(metrics.offsets), metrics.lower[1]) == (4, 2, (1).to_bytes(4, "little"))


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_times_of_a_zone_beside_times_that_are_encoded_again(zone: str, tmp_path: Path) -> None:
    """A stripe has one time zone for all of its columns."""
    times = [(datetime(2020, 6, 1, 12), datetime(1500, 1, 1, 3), date(2000, 1, 1)), (datetime(1950, 1, 2), None, None)]
    schema = EVENTS.format("struct<a:timestamp,b:timestamp,d:date>")
    events = [insert(1, at, row) for at, row in enumerate(times)]
    write_by_pyorc(tmp_path / "t" / D1, events, schema=schema, timezone=_zone(zone))
    source = source_of(tmp_path / "t")
    with source.open() as reader:
        expected = reader.rows(0)
    found, columns, _ = copied(tmp_path / "t", columns=["a"])
    assert set(reasons(columns)) == {"a", "b"}, "both, because of the second"
    assert found["a"].to_pylist() == expected.field(0).to_pylist()


def _zone(name: str) -> Any:
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


def test_days_of_the_old_calendar_are_encoded_again(tmp_path: Path) -> None:
    days = [(date(1400, 1, 1), date(2020, 2, 29)), (date(1582, 10, 15), date(1600, 1, 1))]
    row = struct(old=OrcType("date"), new=OrcType("date"))
    batch = pa.RecordBatch.from_pydict({"old": [a for a, _ in days], "new": [b for _, b in days]})
    write_plain(tmp_path / "t" / "000000_0", batch, row=row, calendar=1)
    found, columns, _ = copied(tmp_path / "t")
    assert set(reasons(columns)) == {"old"}
    source = source_of(tmp_path / "t")
    with source.open() as reader:
        shown = reader.rows(0)
    assert found["old"].to_pylist() == shown.field(0).to_pylist()
    assert found["old"].to_pylist() != [a for a, _ in days], "the file counts in another calendar"
    assert found["new"].to_pylist() == [b for _, b in days]
    fs, path = open_location(str(tmp_path))
    assert read_tail(ByteSource(fs, f"{path}/copy.orc")).calendar == "julian_gregorian"


def test_columns_that_were_changed_in_hive(tmp_path: Path) -> None:
    rows = [(1, 2, "x", 1.5, {"p": 1, "q": "y"}), (3, 4, "long text", 2.5, None)]
    schema = EVENTS.format("struct<a:smallint,b:int,c:varchar(20),d:float,e:struct<p:int,q:string>>")
    events = [
        insert(1, at, row)
        for at, row in enumerate([(*row[:4], tuple(row[4].values()) if row[4] else None) for row in rows])
    ]
    write_by_pyorc(tmp_path / "t" / D1, events, schema=schema)
    row = struct(
        a=OrcType("bigint"),
        b=OrcType("string"),
        c=OrcType("varchar", max_length=4),
        d=OrcType("double"),
        e=struct(q=OrcType("string"), r=OrcType("int"), p=OrcType("int")),
        f=OrcType("int"),
    )
    found, columns, _ = copied(tmp_path / "t", row)
    assert set(reasons(columns)) == {"b", "c"}
    assert found["a"].type == pa.int64()
    assert found["a"].to_pylist() == [1, 3]
    assert found["b"].to_pylist() == ["2", "4"]
    assert found["c"].to_pylist() == ["x", "long"]
    assert found["d"].to_pylist() == [1.5, 2.5]
    assert found["e"].to_pylist() == [{"q": "y", "p": 1}, None]
    assert "f" not in found.column_names


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (struct(u=OrcType("uniontype", children=(OrcType("int"),))), "u"),
        (struct(_pos=OrcType("int")), "_pos"),
        (struct(a=struct(x=OrcType("int"), X=OrcType("int"))), "a.x"),
        (struct(d=OrcType("decimal")), "d"),
        (struct(e=struct()), "e"),
        (struct(l=OrcType("array", children=(OrcType("uniontype", children=(OrcType("int"),)),))), "l.element"),
    ],
)
def test_what_iceberg_has_no_column_for_is_refused_by_name(row: OrcType, named: str) -> None:
    with pytest.raises(RefusedError, match=rf"column {named} cannot become"):
        fields_for(row)
