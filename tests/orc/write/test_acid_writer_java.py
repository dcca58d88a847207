"""Files that acidctl writes, read by the reference: Java ORC, and Hive 2.3's own ACID reader, in Spark's jars."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyorc
import pytest
from pyarrow import orc
from support.files.acid_files import B0, acid_batch, acid_file, struct
from support.files.orc_bytes import tail_of
from support.files.union_values import DEEP, plain, rows_of, sprinkled
from support.judge.java_writer import Java
from support.made.random_values import random_array

from acidctl.orc.read.wide_timestamps import WIDE_STORAGE, WideTimestamp
from acidctl.orc.types import OrcType
from acidctl.orc.write.writer_settings import CODECS, WriterSettings
from acidctl.rows.scan.table import open_table

pytestmark = pytest.mark.spark


INT, LONG, TEXT, TIME = OrcType("int"), OrcType("bigint"), OrcType("string"), OrcType("timestamp")
EVERYTHING = struct(
    b=OrcType("boolean"),
    i1=OrcType("tinyint"),
    i2=OrcType("smallint"),
    i4=INT,
    i8=LONG,
    f=OrcType("float"),
    d=OrcType("double"),
    s=TEXT,
    c=OrcType("char", max_length=5),
    v=OrcType("varchar", max_length=5),
    raw=OrcType("binary"),
    day=OrcType("date"),
    t=TIME,
    z=OrcType("timestamp with local time zone"),
    n=OrcType("decimal", precision=38, scale=10),
    m=OrcType("decimal", precision=9, scale=2),
    a=OrcType("array", children=(struct(x=INT, t=TIME),)),
    k=OrcType("map", children=(TEXT, OrcType("array", children=(LONG,)))),
    u=OrcType("uniontype", children=(INT, TEXT, OrcType("uniontype", children=(TIME, OrcType("double"))))),
    e=struct(),
    q=struct(u=OrcType("uniontype", children=(TEXT, LONG)), n=struct(x=INT, u=OrcType("uniontype", children=(INT,)))),
)


class Raw(pyorc.converters.ORCConverter):  # type: ignore[misc]
    """Timestamps as (seconds, nanoseconds)."""

    @staticmethod
    def from_orc(seconds: int, nanos: int, zone: Any) -> tuple[int, int]:
        return seconds, nanos


def read(path: Path) -> pa.Table:
    return orc.ORCFile(str(path)).read()


@pytest.mark.sampled
@pytest.mark.parametrize("compression", CODECS)
@pytest.mark.parametrize("stride", [0, 1000])
def test_java_reads_every_type(java: Java, tmp_path: Path, compression: str, stride: int) -> None:
    rng = random.Random(stride)
    batches = [acid_batch(random_array(EVERYTHING, n, rng), first) for first, n in ((0, 1), (1, 1500), (1501, 2500))]
    batches.append(acid_batch(pa.nulls(100), 4001, operation=2))
    chosen = WriterSettings(compression, block_size=65536, stride=stride, stripe_size=batches[1].nbytes // 2)
    data, result = acid_file(EVERYTHING, batches, chosen)
    assert result.stripes > 4
    path = tmp_path / "bucket_00000"
    path.write_bytes(data)
    expected = pa.Table.from_batches([*batches[:3], _typed(batches[3], batches[0])])
    assert read(java.rewritten(path)).equals(expected)
    ends = np.cumsum([stripe.numberOfRows for stripe in tail_of(data).stripes]).tolist()
    if stride:  # Java cannot seek without an index
        for at in [0, *ends[:-1], ends[-1] - 1, 777, 2001, 3999]:
            assert java.row_ids(path, seek=at)[0] == at


def _typed(batch: pa.RecordBatch, like: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [*batch.columns[:5], pa.nulls(batch.num_rows, like.schema.field("row").type)], schema=like.schema
    )


def wide(values: list[tuple[int, int] | None]) -> pa.Array:
    storage = pa.array([None if v is None else {"seconds": v[0], "nanos": v[1]} for v in values], WIDE_STORAGE)
    return pa.ExtensionArray.from_storage(WideTimestamp(), storage)


@pytest.mark.parametrize("compression", ["none", "zlib"])
def test_java_reads_timestamps_of_any_year(java: Java, tmp_path: Path, compression: str) -> None:
    rng = random.Random(1)
    fractions = (0, 1, 1000, 999_999, 1_000_000, 123_456_789, 999_999_999)
    values: list[tuple[int, int] | None] = [
        None if rng.random() < 0.1 else (rng.randrange(-62_135_596_800, 253_402_300_800), rng.choice(fractions))
        for _ in range(5000)
    ]
    row = struct(i=INT, t=TIME)
    numbers = pa.array(range(5000), pa.int32())
    batch = acid_batch(pa.StructArray.from_arrays([numbers, wide(values)], names=["i", "t"]))
    path = tmp_path / "bucket_00000"
    path.write_bytes(acid_file(row, [batch], WriterSettings(compression, stride=1000))[0])
    with java.rewritten(path).open("rb") as file:
        found = [one[5] for one in pyorc.Reader(file, converters={pyorc.TypeKind.TIMESTAMP: Raw})]
    assert found == list(zip(range(5000), values, strict=True))
    for at in (999, 1000, 2500, 4321):
        assert java.row_ids(path, seek=at)[0] == at


def test_java_finds_rows_by_the_row_index(java: Java, tmp_path: Path) -> None:
    """Predicates name the table's columns; the long is beyond 32 bits, since py4j would send less as an Integer."""
    n, first = 50_000, 5_000_000_000
    row = struct(x=LONG, c=OrcType("char", max_length=12))
    texts = pa.array([f"k{i:06d}" for i in range(n)])
    batch = acid_batch(pa.StructArray.from_arrays([pa.array(range(first, first + n)), texts], names=["x", "c"]), first)
    path = tmp_path / "bucket_00000"
    data, result = acid_file(row, [batch], WriterSettings(stride=1000, stripe_size=batch.nbytes // 3 + 1000))
    path.write_bytes(data)
    assert result.stripes == 3
    start = tail_of(data).stripes[0].numberOfRows  # row groups count from the start of their stripe
    start *= 34_567 // start
    group = start + (34_567 - start) // 1000 * 1000
    search = java.jvm.org.apache.hadoop.hive.ql.io.sarg
    kind = getattr(search, "PredicateLeaf$Type")
    for name, leaf, value in (
        ("x", kind.LONG, first + 34_567),
        ("c", kind.STRING, "k034567     "),
    ):
        where = search.SearchArgumentFactory.newBuilder().startAnd().equals(name, leaf, value).end().build()
        assert java.row_ids(path, where=where) == list(range(first + group, first + group + 1000))
    where = search.SearchArgumentFactory.newBuilder().startAnd().equals("x", kind.LONG, first - 1).end().build()
    assert java.row_ids(path, where=where) == []


def test_java_and_acidctl_find_rows_beside_nan(java: Java, tmp_path: Path) -> None:
    """The first row group is plain, all others begin with NaN; both readers find the last row of both writers."""
    n, first = 5000, 5_000_000_000
    values = np.arange(n) % 10.0
    values[1000::1000] = np.nan
    values[-1] = 999.0
    for kind, arrow in (("double", pa.float64()), ("float", pa.float32())):
        path = tmp_path / kind / "delta_0000001_0000001_0000" / "bucket_00000"
        path.parent.mkdir(parents=True)
        row = struct(x=OrcType(kind))
        batch = acid_batch(pa.StructArray.from_arrays([pa.array(values, arrow)], names=["x"]), first, write_id=1)
        path.write_bytes(acid_file(row, [batch], WriterSettings(stride=1000))[0])
        search = java.jvm.org.apache.hadoop.hive.ql.io.sarg
        leaf = getattr(search, "PredicateLeaf$Type").FLOAT
        where = search.SearchArgumentFactory.newBuilder().startAnd().equals("x", leaf, 999.0).end().build()
        assert first + n - 1 in java.row_ids(path, where=where)
        by_java = java.rewritten(path, stride=1000)
        bounds = tail_of(by_java.read_bytes()).metadata.stripeStats[0].colStats[7].doubleStatistics
        assert (bounds.minimum, bounds.maximum) == (0.0, 9.0)
        for file in (path, by_java):
            path.write_bytes(file.read_bytes())
            scan = open_table(str(path.parent.parent)).scan(where="x = 999")
            assert (scan.count(), scan.to_table().num_rows) == (1, 1)


@pytest.mark.parametrize("compression", ["none", "zlib"])
def test_java_finds_a_zero_that_comes_after_a_negative_one(java: Java, tmp_path: Path, compression: str) -> None:
    """Java orders -0.0 before 0.0 where it compares bounds, ORC C++ where it makes them does not."""
    n, first = 3000, 5_000_000_000
    values = np.full(n, -0.0)
    values[n - 1], values[0] = 0.0, 7.0  # the last row group has zeros only, the stripe has more
    for kind, arrow in (("double", pa.float64()), ("float", pa.float32())):
        path = tmp_path / kind
        row = struct(x=OrcType(kind))
        batch = acid_batch(pa.StructArray.from_arrays([pa.array(values, arrow)], names=["x"]), first, write_id=1)
        path.write_bytes(acid_file(row, [batch], WriterSettings(compression, stride=1000))[0])
        search = java.jvm.org.apache.hadoop.hive.ql.io.sarg
        leaf = getattr(search, "PredicateLeaf$Type").FLOAT
        where = search.SearchArgumentFactory.newBuilder().startAnd().equals("x", leaf, 0.0).end().build()
        assert first + n - 1 in java.row_ids(path, where=where)


@pytest.mark.slow
def test_java_reads_a_tail_longer_than_a_block(java: Java, tmp_path: Path) -> None:
    n = 1600
    row = struct(x=LONG)
    batch = acid_batch(pa.StructArray.from_arrays([pa.array(range(n))], names=["x"]), 1 << 62, write_id=(1 << 63) - 1)
    data, result = acid_file(row, [batch], WriterSettings("snappy", block_size=65536, stripe_size=1))
    assert result.stripes == n
    assert len(tail_of(data).user_metadata["hive.acid.key.index"]) > 65536
    path = tmp_path / "bucket_00000"
    path.write_bytes(data)
    assert java.row_ids(path) == list(range(1 << 62, (1 << 62) + n))
    assert java.reader(path).getNumberOfRows() == n


def test_java_reads_no_rows(java: Java, tmp_path: Path) -> None:
    for compression in CODECS:
        path = tmp_path / compression
        path.write_bytes(acid_file(EVERYTHING, [], WriterSettings(compression))[0])
        reader = java.reader(path)
        assert reader.getNumberOfRows() == 0 and java.row_ids(path) == []
        assert reader.getWriterVersion().toString() == "ORC_CPP_ORIGINAL"
        assert reader.hasMetadataValue("hive.acid.key.index")


class Hive:
    """Hive 2.3's reader of an ACID table a:int, b:string."""

    def __init__(self, spark: Any, table: Path) -> None:
        self.jvm, self.table = spark._jvm, table
        self.hadoop = self.jvm.org.apache.hadoop
        conf = self.hadoop.mapred.JobConf(spark._jsc.hadoopConfiguration())
        settings = {
            "columns": "a,b",
            "columns.types": "int,string",
            "schema.evolution.columns": "a,b",
            "schema.evolution.columns.types": "int,string",
            "bucket_count": "1",
            "transactional": "true",
            "transactional_properties": "default",
            "hive.transactional.table.scan": "true",
            "hive.orc.splits.include.fileid": "false",
            "hive.io.file.readcolumn.all": "true",
            "mapreduce.input.fileinputformat.inputdir": str(table),
            "hive.exec.orc.split.strategy": "BI",
        }
        for name, value in settings.items():
            conf.set(name, value)
        io_package = self.hadoop.hive.ql.io
        properties = getattr(io_package.AcidUtils, "AcidOperationalProperties").getDefault()  # noqa: B009
        io_package.AcidUtils.setAcidOperationalProperties(conf, properties)
        self.conf, self.io = conf, io_package

    def rows(self, valid: str) -> list[tuple[tuple[int, int, int], str]]:
        """(ROW__ID, text of the row) of the snapshot `valid`."""
        self.conf.set("hive.txn.valid.txns", self.hadoop.hive.common.ValidReadTxnList(valid).toString())
        format_ = self.io.orc.OrcInputFormat()
        found = []
        for split in format_.getSplits(self.conf, 1):
            reader = format_.getReader(split, getattr(self.io, "AcidInputFormat$Options")(self.conf))
            key, value = reader.createKey(), reader.createValue()
            while reader.next(key, value):
                found.append(((key.getTransactionId(), key.getBucketId(), key.getRowId()), value.toString()))
            reader.close()
        return sorted(found)


@pytest.mark.sampled
@pytest.mark.parametrize("compression", CODECS)
def test_hive_reads_base_delta_and_delete_delta(spark: Any, tmp_path: Path, compression: str) -> None:
    row = struct(a=INT, b=TEXT)

    def rows(first: int, n: int) -> pa.StructArray:
        numbers, texts = pa.array(range(first, first + n), pa.int32()), [f"v{i}" for i in range(first, first + n)]
        return pa.StructArray.from_arrays([numbers, pa.array(texts, pa.string())], names=["a", "b"])

    def put(directory: str, batches: list[pa.RecordBatch], chosen: WriterSettings) -> None:
        path = tmp_path / directory / "bucket_00000"
        path.parent.mkdir()
        data, result = acid_file(row, batches, chosen)
        path.write_bytes(data)
        assert result.stripes >= 2

    base = [acid_batch(rows(0, 3000), bucket=0, write_id=1), acid_batch(rows(3000, 2000), bucket=0, write_id=3)]
    put("base_0000003", base, WriterSettings(compression, stripe_size=50_000, stride=1000))
    small = WriterSettings(compression, block_size=65536, stripe_size=3000, stride=100)
    put("delta_0000004_0000004_0000", [acid_batch(rows(9000, 200), bucket=0, write_id=4)], small)
    deleted = [10, 11, 1500, 2999]
    events = [pa.nulls(len(deleted)), pa.nulls(150)]
    batches = [acid_batch(event, operation=2, write_id=5, bucket=0) for event in events]
    keys: Callable[[pa.RecordBatch, int, list[int]], pa.RecordBatch] = lambda batch, write_id, ids: batch.set_column(  # noqa: E731
        1, "originalTransaction", pa.array([write_id] * len(ids), pa.int64())
    ).set_column(3, "rowId", pa.array(ids))
    batches = [keys(batches[0], 1, deleted), keys(batches[1], 4, list(range(20, 170)))]
    put("delete_delta_0000005_0000005_0000", batches, small)

    hive = Hive(spark, tmp_path)
    inserted = [((1, 0, i), f"{{{i}, v{i}}}") for i in range(3000)]
    inserted += [((3, 0, i), f"{{{3000 + i}, v{3000 + i}}}") for i in range(2000)]
    assert hive.rows("3:9223372036854775807:") == sorted(inserted)
    inserted += [((4, 0, i), f"{{{9000 + i}, v{9000 + i}}}") for i in range(200)]
    assert hive.rows("4:9223372036854775807:") == sorted(inserted)
    gone = {(1, 0, i) for i in deleted} | {(4, 0, i) for i in range(20, 170)}
    assert hive.rows("5:9223372036854775807:") == sorted(one for one in inserted if one[0] not in gone)


def test_pyorc_agrees_with_java(java: Java, tmp_path: Path) -> None:
    """The bucket column and the other four survive Java as they were."""
    batch = acid_batch(random_array(struct(a=INT), 10, random.Random(0)), bucket=B0 + 5)
    path = tmp_path / "bucket_00000"
    path.write_bytes(acid_file(struct(a=INT), [batch])[0])
    rows = [tuple(one.values())[:5] for one in batch.to_pylist()]
    for data in (path.read_bytes(), java.rewritten(path).read_bytes()):
        assert [one[:5] for one in pyorc.Reader(io.BytesIO(data))] == rows


def test_java_sees_the_same_null_unions(java: Java, tmp_path: Path) -> None:
    """Java decodes and writes the rows again; what it took for NULL stays what acidctl meant."""
    for tree in (DEEP, EVERYTHING):
        rng = random.Random(5)
        row = sprinkled(random_array(tree, 1500, rng), tree, rng)
        path = tmp_path / f"bucket_{len(tree.names):05d}"
        path.write_bytes(acid_file(tree, [acid_batch(row)])[0])
        assert rows_of(path.read_bytes()) == plain(row)
        assert rows_of(java.rewritten(path).read_bytes()) == plain(row)
