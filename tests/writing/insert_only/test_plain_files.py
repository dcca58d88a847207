"""Files of insert-only tables: names, formats, what readers see, and what is refused."""

from __future__ import annotations

import datetime
import gc
import io
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc
from pyarrow import parquet as pq
from support.metastore import fake_metastore
from support.metastore.fake_hive import FakeHive
from support.metastore.writable import INSERT_ONLY, SERDES, client, files_of, rows_of, table_of, writable

import acidctl
from acidctl.acid.compaction_kind import Hive
from acidctl.base.errors import AcidctlError, RefusedError
from acidctl.metastore import interface as wire
from acidctl.orc.read.wide_timestamps import parts
from acidctl.orc.types import OrcType, row_of
from acidctl.rows.foreign.foreign_reader import one_chunk
from acidctl.writing.change import Change
from acidctl.writing.insert import Insert
from acidctl.writing.insert_only.plain_files import PlainFiles
from acidctl.writing.write import Written

FORMATS = ("orc", "parquet", "text")
DELTA = "delta_0000001_0000001_0000"


@pytest.fixture(params=[3, 4], ids=["hive-3", "hive-4"])
def hive(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FakeHive:
    monkeypatch.setitem(fake_metastore.METHODS, "get_partitions_by_names", wire.GET_PARTITIONS_WITH_FILES)
    fake = FakeHive(request.param, remembers=True)
    request.addfinalizer(fake.__exit__)
    return fake


def insert(hive: FakeHive, overwrite: bool = False, **columns: Any) -> Written:
    return Insert(client(hive), table_of(hive), pa.table(columns).to_reader(), overwrite=overwrite).run()


@pytest.mark.parametrize("stored_as", FORMATS)
def test_rows_are_added_and_replaced_in_the_format_of_the_table(hive: FakeHive, stored_as: str, tmp_path: Path) -> None:
    writable(hive, tmp_path / "t", stored_as=stored_as, parameters=INSERT_ONLY)
    written = insert(hive, a=[1, 2], b=["x", None])
    assert (written.inserted, written.lock) == (2, "SHARED_READ")
    assert written.bytes == (tmp_path / "t" / DELTA / "000000_0").stat().st_size
    insert(hive, a=[3])
    assert rows_of(hive) == [(1, "x"), (2, None), (3, None)]
    insert(hive, overwrite=True, a=[4], b=["é"])
    assert rows_of(hive) == [(4, "é")]
    insert(hive, overwrite=True, a=pa.array([], pa.int32()))
    assert rows_of(hive) == []
    assert files_of(tmp_path / "t") == [
        "base_0000003/000000_0", "base_0000004/000000_0", f"{DELTA}/000000_0", "delta_0000002_0000002_0000/000000_0"
    ]  # fmt: skip


@pytest.mark.parametrize("stored_as", FORMATS)
def test_values_of_simple_types_are_read_back(hive: FakeHive, stored_as: str, tmp_path: Path) -> None:
    types = (
        "i tinyint, l bigint, f float, d double, n decimal(20,5), s string, v varchar(5), h char(4), o boolean, "
        "da date, ts timestamp"
    )
    writable(hive, tmp_path / "t", types, stored_as=stored_as, parameters=INSERT_ONLY)
    rows: list[tuple[Any, ...]] = [
        (1, -(2**63), 0.5, 1e300, Decimal("0.00001"), "é \\", "v", "char", True, datetime.date(1, 1, 1),
         datetime.datetime(1900, 1, 1, 1, 2, 3, 456789)),
        (None,) * 11,
    ]  # fmt: skip
    names = [column.partition(" ")[0] for column in types.split(", ")]
    kinds = (
        pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(20, 5), pa.string(), pa.string(), pa.string(),
        pa.bool_(), pa.date32(), pa.timestamp("us"),
    )  # fmt: skip
    columns = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    insert(hive, **dict(zip(names, columns, strict=True)))
    assert rows_of(hive) == sorted(rows, key=str)


@pytest.mark.parametrize("stored_as", FORMATS)
def test_timestamps_of_far_and_near_years_stand_in_one_file(hive: FakeHive, stored_as: str, tmp_path: Path) -> None:
    writable(hive, tmp_path / "t", "ts timestamp", stored_as=stored_as, parameters=INSERT_ONLY)
    years = (2020, 9999, 1600, None, 2021)
    values = [year and datetime.datetime(year, 1, 2, 3, 4, 5, 6000) for year in years]
    rows = pa.table({"ts": pa.array(values, pa.timestamp("us"))})
    Insert(client(hive), table_of(hive), rows.to_reader(max_chunksize=1)).run()
    found = acidctl.open_table("hive:db.t", metastore=hive.address).scan().to_table()
    read, expected = (one_chunk(table["ts"]) for table in (found, rows))
    assert read.is_valid().to_pylist() == expected.is_valid().to_pylist()
    for ours, given in zip(parts(read), parts(expected), strict=True):
        assert ours.tolist() == given.tolist()


def test_files_have_the_table_s_columns_alone(hive: FakeHive, tmp_path: Path) -> None:
    for stored_as in ("orc", "parquet"):
        path = tmp_path / stored_as
        writable(hive, path, stored_as=stored_as, parameters=INSERT_ONLY)
        hive.write_ids.clear()
        insert(hive, b=["x"], a=[1])
        file = path / DELTA / "000000_0"
        names = orc.ORCFile(file).schema.names if stored_as == "orc" else pq.ParquetFile(file).schema_arrow.names
        assert names == ["a", "b"]


@pytest.mark.parametrize("stored_as", FORMATS)
def test_a_file_that_is_given_up_writes_no_more_bytes(hive: FakeHive, stored_as: str, tmp_path: Path) -> None:
    writable(hive, tmp_path / "t", "a int", stored_as=stored_as, parameters=INSERT_ONLY)
    out = io.BytesIO()
    file = PlainFiles(table_of(hive), row_of([("a", OrcType("int"))]), Hive.HIVE4).open(out, 0)
    file.write(pa.StructArray.from_arrays([pa.array([1], pa.int32())], names=["a"]))
    length = out.tell()
    del file
    gc.collect()
    assert out.tell() == length


@pytest.mark.parametrize("stored_as", FORMATS)
def test_partitions_and_buckets_have_their_own_files(hive: FakeHive, stored_as: str, tmp_path: Path) -> None:
    parameters = {**INSERT_ONLY, "bucketing_version": "2"}
    buckets = {"buckets": 4, "bucket_columns": ("a",)}
    writable(hive, tmp_path / "t", keys="day string", stored_as=stored_as, parameters=parameters, **buckets)
    insert(hive, a=[1, 2, 2], b=["x", "y", "z"], day=["1", "1", "2"])
    insert(hive, a=[7], day=["2"])
    assert rows_of(hive) == [(1, "x", "1"), (2, "y", "1"), (2, "z", "2"), (7, None, "2")]
    assert files_of(tmp_path / "t" / "day=1") == [f"{DELTA}/000000_0", f"{DELTA}/000001_0"]


@pytest.mark.parametrize("call", ["lock", "add_partitions_req", "heartbeat", "commit_txn"])
def test_a_failure_leaves_no_file(hive: FakeHive, call: str, tmp_path: Path) -> None:
    writable(hive, tmp_path / "t", keys="day string", stored_as="parquet", parameters=INSERT_ONLY)
    hive.fault(call, "failed")
    with pytest.raises(AcidctlError):
        insert(hive, a=[1], day=["1"])
    assert files_of(tmp_path / "t") == []


def test_an_unwritable_value_leaves_no_file(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path / "t", stored_as="text", parameters=INSERT_ONLY)
    with pytest.raises(AcidctlError, match="column b"):
        insert(hive, a=[1, 2], b=["x", "a\nb"])
    assert files_of(tmp_path / "t") == []


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "CSV": ({"stored_as": "csv"}, "CSV"),
    "a SequenceFile": (
        {"stored_as": "text", "input_format": "org.apache.hadoop.mapred.SequenceFileInputFormat"},
        "SequenceFileInputFormat",
    ),
    "LZO": ({"stored_as": "orc", "parameters": {**INSERT_ONLY, "orc.compress": "LZO"}}, "lzo"),
    "LZO in Parquet": ({"stored_as": "parquet", "parameters": {**INSERT_ONLY, "parquet.compression": "LZO"}}, "lzo"),
    "a header": ({"stored_as": "text", "parameters": {**INSERT_ONLY, "skip.header.line.count": "1"}}, "before"),
    "one delimiter twice": ({"stored_as": "text", "delimiters": {"field.delim": "\2"}}, "distinct"),
    "another encoding": ({"stored_as": "text", "delimiters": {"serialization.encoding": "GBK"}}, "GBK"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_not_known_are_refused(hive: FakeHive, name: str, tmp_path: Path) -> None:
    options, why = REFUSED[name]
    writable(hive, tmp_path / "t", **{"parameters": INSERT_ONLY, **options})
    with pytest.raises(RefusedError, match=why):
        insert(hive, a=[1])
    assert "open_txns" not in hive.calls


def stored_otherwise(hive: FakeHive, **changes: Any) -> None:
    """Let the partition day=1 differ from its table."""
    storage = hive.tables["db", "t"].storage
    assert storage and storage.location
    usual = wire.PartitionFiles(storage.columns, f"{storage.location}/day=1", storage.input_format, storage.serde)
    odd: Any = replace(hive.partitions["db", "t"]["day=1"], storage=replace(usual, **changes))
    hive.partitions["db", "t"]["day=1"] = odd


@pytest.mark.parametrize("stored_as", FORMATS)
def test_a_partition_in_another_format_is_refused(hive: FakeHive, stored_as: str, tmp_path: Path) -> None:
    writable(hive, tmp_path / "t", keys="day string", stored_as=stored_as, parameters=INSERT_ONLY)
    insert(hive, a=[1], day=["1"])
    stored_otherwise(hive, serde=wire.SerDeInfo("", SERDES["text"], {"field.delim": ","}))
    with pytest.raises(RefusedError, match="stored in another way"):
        insert(hive, a=[1], day=["1"])


@pytest.mark.parametrize("stored_as", FORMATS)
def test_a_partition_that_lacks_a_column_takes_rows_in_orc_alone(
    hive: FakeHive, stored_as: str, tmp_path: Path
) -> None:
    writable(hive, tmp_path / "t", keys="day string", stored_as=stored_as, parameters=INSERT_ONLY)
    insert(hive, a=[1], day=["1"])
    stored_otherwise(hive, columns=(wire.FieldSchema("a", "int"),))
    if stored_as == "orc":
        insert(hive, a=[2], b=["x"], day=["1"])
        assert rows_of(hive) == [(1, None, "1"), (2, "x", "1")]
    else:
        with pytest.raises(RefusedError, match="other columns"):
            insert(hive, a=[1], day=["1"])
    stored_otherwise(hive, columns=(wire.FieldSchema("a", "string"),))
    with pytest.raises(RefusedError, match="other columns"):
        insert(hive, a=[1], day=["1"])


def test_properties_of_the_table_count_before_those_of_its_serde(hive: FakeHive, tmp_path: Path) -> None:
    parameters = {**INSERT_ONLY, "field.delim": "|", "serialization.null.format": "nil"}
    writable(hive, tmp_path / "t", stored_as="text", parameters=parameters, delimiters={"field.delim": ","})
    insert(hive, a=[1, None], b=["\\N", None])
    assert (tmp_path / "t" / DELTA / "000000_0").read_text() == "1|\\N\nnil|nil\n"
    assert rows_of(hive) == [(1, "\\N"), (None, None)]
    writable(hive, tmp_path / "p", keys="day string", stored_as="text", parameters=parameters)
    with pytest.raises(RefusedError, match="TBLPROPERTIES"):
        insert(hive, a=[1], day=["1"])


def test_rows_of_an_insert_only_table_are_not_changed(hive: FakeHive, tmp_path: Path) -> None:
    writable(hive, tmp_path / "t", stored_as="orc", parameters=INSERT_ONLY)
    with pytest.raises(RefusedError, match="insert-only"):
        Change(client(hive), table_of(hive), "a = 1").run()
