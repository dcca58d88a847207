"""All batches of a Python scan have the scan's schema, whatever their values need."""

from __future__ import annotations

import datetime
import io
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from pyarrow import parquet
from support.files.acid_files import SMALL_GROUPS, struct, write_deletes, write_delta, write_plain
from support.files.orc_bytes import RAW, retailed
from support.made.random_values import random_array

import acidctl
from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.orc.read.wide_timestamps import WIDE_STORAGE, WideTimestamp
from acidctl.orc.types import OrcType
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.export.sinks import OrcSink
from acidctl.rows.read.events import EventReader
from acidctl.rows.scan.table_scan import TableScan

TIME, INSTANT, INT = OrcType("timestamp"), OrcType("timestamp with local time zone"), OrcType("int")
NOON = datetime.datetime(2024, 1, 1, 12)
NEAR, FAR = (1_704_110_400, 5), (253_402_300_799, 999_999_999)


def of(kind: str, *children: OrcType) -> OrcType:
    return OrcType(kind, children=children)


UNION = of("uniontype", INT, TIME)
ROW = struct(
    id=INT,
    t=TIME,
    z=INSTANT,
    a=of("array", struct(t=TIME, i=INT)),
    m=of("map", OrcType("string"), TIME),
    u=UNION,
    s=struct(u=UNION, t=TIME),
)


def batch_of(rows: pa.StructArray) -> pa.RecordBatch:
    """The fields of structs; not by flattening, which aborts the process where one is a union."""
    columns = [rows.field(i) for i in range(rows.type.num_fields)]
    return pa.RecordBatch.from_arrays(columns, names=[one.name for one in rows.type])


def together(scan: TableScan) -> pa.Table:
    """What a user would do, in both orders."""
    batches = list(scan.to_batches())
    table = pa.Table.from_batches(batches, scan.schema)
    assert pa.Table.from_batches(scan.to_batches(), scan.schema).num_rows == table.num_rows == scan.count()
    assert scan.to_table().schema == scan.schema
    assert all(batch.schema == scan.schema for batch in scan.to_batches(limit=7))
    return table


def written(path: Path, shape: str, stripes: list[list[Any]], **options: Any) -> None:
    """An original file of pyorc, a stripe for each list of rows."""
    out = io.BytesIO()
    size = max(map(len, stripes))
    writer = pyorc.Writer(out, shape, converters=RAW, stripe_size=1, batch_size=size, **options)
    for rows in stripes:
        writer.writerows(rows)
        writer.flush() if hasattr(writer, "flush") else None
    writer.close()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(out.getvalue())


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
def test_random_rows_of_several_files(tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)
    batches = [batch_of(random_array(ROW, 40, luck)) for _ in range(3)]
    write_delta(tmp_path, 1, *batches, row=ROW)
    write_deletes(tmp_path, 2, 1, [3, 50], row=ROW)
    older = struct(**dict(list(ROW.fields())[:3]))
    write_delta(tmp_path, 3, batch_of(random_array(older, 9, luck)), row=older)
    table = acidctl.open_table(tmp_path)
    for columns in (None, ["s.t", "id"], ["s.u", "t"], ["a", "m"], ["id"]):
        together(table.scan(columns))
        together(table.scan(columns, "id > 0", row_id=True))
        together(table.scan(columns, deleted=True))


@pytest.mark.parametrize("stride", [1000, 0])
@pytest.mark.parametrize("far", [False, True])
def test_one_timestamp_that_needs_it_widens_all(tmp_path: Path, stride: int, far: bool) -> None:
    stripes = [[(1, NEAR, [NEAR])] * 8, [(2, FAR if far else NEAR, [NEAR])] * 8, [(3, None, None)] * 8]
    written(tmp_path / "000000_0", "struct<i:int,t:timestamp,a:array<timestamp>>", stripes, row_index_stride=stride)
    scan = acidctl.open_table(tmp_path).scan()
    plain = pa.timestamp("ns")
    assert scan.schema.types == [pa.int32(), WideTimestamp() if far else plain, pa.list_(plain)]
    assert scan.declared.types == [pa.int32(), plain, pa.list_(plain)]
    table = together(scan)
    if far:
        seconds = [one and one["seconds"] for one in table.column("t").combine_chunks().storage.to_pylist()]
        assert seconds == [NEAR[0]] * 8 + [FAR[0]] * 8 + [None] * 8
    assert acidctl.open_table(tmp_path).schema == scan.schema


def test_statistics_spare_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = struct(i=INT, t=TIME)
    batch = pa.RecordBatch.from_pylist(
        [{"i": 1, "t": NOON}] * 50, pa.schema([("i", pa.int32()), ("t", "timestamp[ns]")])
    )
    write_delta(tmp_path, 1, batch, batch, row=row)
    with monkeypatch.context() as patch:
        patch.setattr(EventReader, "rows", None)
        patch.setattr(EventReader, "ids_with_rows", None)
        scan = acidctl.open_table(tmp_path).scan()
        assert scan.schema.field("t").type == pa.timestamp("ns")
    assert together(scan).num_rows == 100


def test_what_cat_prints_looks_at_nothing_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "000000_0", "struct<t:timestamp>", [[(NEAR,)], [(FAR,)]], row_index_stride=0)
    monkeypatch.setattr("acidctl.rows.scan.table_scan.add_wide", None)
    kinds = [batch.schema.types[0] for batch in acidctl.open_table(tmp_path).scan().batches_as_read()]
    assert WideTimestamp() in kinds


def test_statistics_that_lie_are_damage(tmp_path: Path) -> None:
    out = io.BytesIO()
    sink = OrcSink(out, struct(t=TIME), WriterSettings(stride=1000))
    storage = pa.array([{"seconds": FAR[0], "nanos": 0}], WIDE_STORAGE)
    column = pa.ExtensionArray.from_storage(WideTimestamp(), storage)
    sink.write(pa.RecordBatch.from_arrays([column], names=["t"]))
    sink.close()

    def change(footer: Any, postscript: Any) -> None:
        block = footer.statistics[1].timestampStatistics
        block.minimumUtc = block.maximumUtc = NEAR[0] * 1000

    (tmp_path / "000000_0").write_bytes(retailed(out.getvalue(), change))
    scan = acidctl.open_table(tmp_path).scan()
    with pytest.raises(BadDataError, match="statistics"):
        list(scan.to_batches())


def test_a_union_always_has_its_null(tmp_path: Path) -> None:
    shape = "struct<u:uniontype<int,string>>"
    written(tmp_path / "000000_0", shape, [[(1,), (2,)]])
    written(tmp_path / "000001_0", shape, [[("x",), (None,)]])
    scan = acidctl.open_table(tmp_path).scan()
    assert [field.name for field in scan.schema.field("u").type] == ["_union_0", "_union_1", "_null"]
    assert together(scan).column("u").to_pylist() == [1, 2, "x", None]
    (tmp_path / "000001_0").unlink()
    scan = acidctl.open_table(tmp_path).scan()
    assert scan.schema.field("u").type.num_fields == 3
    assert together(scan).column("u").to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", None]).dictionary_encode(), pa.array(["x", None], pa.string_view()),
        pa.array([b"x", None], pa.binary_view()), pa.array([["x"], None], pa.large_list(pa.large_string())),
        pa.array([1 << 60, None], pa.timestamp("us")), pa.array([1, None], pa.timestamp("ms", "Europe/Berlin")),
        pa.array([{"a": "x"}, None], pa.struct([("a", pa.dictionary(pa.int32(), pa.string()))])),
        pa.array([1, None], pa.date64()), pa.array([1.5, None], pa.float16()), pa.array([1, None], pa.uint64()),
    ],
    ids=lambda one: str(one.type)[:20],
)  # fmt: skip
def test_parquet_batches_have_the_type_of_the_scan(tmp_path: Path, column: pa.Array) -> None:
    directory = tmp_path / "delta_0000001_0000001_0000"
    directory.mkdir()
    schema = pa.schema([pa.field("c", column.type, metadata={"k": "v"})])
    parquet.write_table(pa.Table.from_arrays([column], schema=schema), directory / "000000_0", row_group_size=1)
    assert together(acidctl.open_table(tmp_path).scan()).num_rows == 2


def test_scan_without_batches_has_a_schema(tmp_path: Path) -> None:
    write_plain(tmp_path / "000000_0", row=ROW, settings=SMALL_GROUPS)
    scan = acidctl.open_table(tmp_path).scan()
    assert together(scan).num_rows == 0


def test_any_kind_of_path_is_opened(tmp_path: Path) -> None:
    write_delta(tmp_path, 1, pa.RecordBatch.from_pydict({"i": pa.array([1], pa.int32())}), row=struct(i=INT))

    class Own:
        def __fspath__(self) -> str:
            return str(tmp_path)

    for path in (tmp_path, str(tmp_path), Own(), bytes(tmp_path), f"file://{tmp_path}"):
        assert acidctl.open_table(path).scan().count() == 1  # type: ignore[arg-type]
    with pytest.raises(UsageProblem):
        acidctl.open_table(None)  # type: ignore[arg-type]
