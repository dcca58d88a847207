"""NULL unions and unions that hold NULL are two things in ORC, one in Arrow: acidctl keeps them apart."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from support.files.acid_files import acid_batch, acid_file
from support.files.json_text import encode_json_lines
from support.files.union_values import DEEP, PLAIN, TIME, flags, opened, plain, rows_of, sprinkled
from support.made.random_values import random_array

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import decompress
from acidctl.orc.read.common_type import same_types
from acidctl.orc.read.union_nulls import null_unions, with_nulls
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import OrcType, arrow_type
from acidctl.orc.write.writer_settings import CODECS, WriterSettings
from acidctl.rows.export.storable import Storable


@pytest.mark.sampled
@pytest.mark.parametrize("compression", CODECS)
def test_nulls_survive_a_rewrite(compression: str) -> None:
    rng = random.Random(compression)
    rows = [sprinkled(random_array(DEEP, n, rng), DEEP, rng) for n in (700, 1, 900)]
    batches = [acid_batch(row, start) for row, start in zip(rows, (0, 700, 701), strict=True)]
    data, _ = acid_file(DEEP, batches, WriterSettings(compression, block_size=65536, stripe_size=40_000))
    wanted = [row for array in rows for row in plain(array)]
    assert rows_of(data) == wanted
    with opened(data) as file:
        assert file.stripe_count > 1
        some = [file.read_stripe(i, ["row.s.a.b", "row.uu"]).column(0) for i in range(file.stripe_count)]
        again = [acid_batch(file.read_stripe(i, ["row"]).column(0), i) for i in range(file.stripe_count)]
    assert [row for array in some for row in plain(array)] == [None if r is None else (r[3], r[4]) for r in wanted]
    assert rows_of(acid_file(DEEP, again, check_order=False)[0]) == wanted


def test_null_unions_beside_far_years_stay_null() -> None:
    """The second way to read a stripe marks NULLs as well."""
    far = OrcType("struct", children=(PLAIN, TIME), names=("u", "t"))
    members = [pa.array([1, None, 2], pa.int32()), pa.array(["a", "b", None])]
    union = with_nulls(pa.array([0, 0, 1], pa.int8()).to_numpy(), members, flags(True, False, False))
    times = pa.array([0, 253_370_764_800, None], pa.int64()).cast(pa.timestamp("s"))
    row = pa.StructArray.from_arrays([union, times], names=["u", "t"])
    with opened(acid_file(far, [acid_batch(row)])[0]) as file:
        rows = file.read_stripe(0).column("row")
    assert isinstance(rows.field("t").type, WideTimestamp)
    assert plain(rows.field("u")) == [None, (0, None), (1, None)]


def test_the_bytes_of_the_present_stream() -> None:
    nulls = flags(True, False, False, True, True, False, True, False)
    members = [pa.nulls(8, pa.int32()), pa.nulls(8, pa.string())]
    union = with_nulls(pa.array([0] * 8, pa.int8()).to_numpy(), members, nulls)
    tree = OrcType("struct", children=(PLAIN,), names=("u",))
    data, _ = acid_file(tree, [acid_batch(pa.StructArray.from_arrays([union], names=["u"]))], WriterSettings("zlib"))
    with opened(data) as file:
        tail = file.tail
    at = tail.stripes[0].offset
    streams = {}
    for stream in tail.stripe_footer(0).streams:
        raw = decompress(data[at : at + stream.length], tail.compression, tail.block_size)
        streams[stream.column, stream.kind] = raw
        at += stream.length
    assert tail.footer.types[7].kind == pb.Type.UNION
    assert tail.footer.statistics[7].numberOfValues == 4
    assert tail.footer.statistics[7].hasNull
    # One literal byte of the run-length encoding, the first value's bit the highest; then four tags of 0, a run.
    assert streams[7, pb.Stream.PRESENT] == bytes((0xFF, 0b01100101))
    assert streams[7, pb.Stream.DATA] == bytes((1, 0))
    assert streams[8, pb.Stream.PRESENT] == bytes((0xFF, 0))  # the four unions hold NULL


def test_null_union_is_exported_as_null() -> None:
    members = [pa.array([1, None, 2], pa.int32()), pa.array(["a", "b", "c"])]
    union = with_nulls(pa.array([0, 0, 1], pa.int8()).to_numpy(), members, flags(True, False, False))
    batch = pa.RecordBatch.from_arrays([union], names=["u"])
    types = OrcType("struct", children=(PLAIN,), names=("u",))
    assert encode_json_lines(batch, types) == b'{"u":null}\n{"u":null}\n{"u":"c"}\n'
    target = pa.schema([("u", arrow_type(PLAIN))])
    for parquet in (False, True):
        storable = Storable(parquet)
        rows = storable.batch(batch, types, storable.schema(target)).column(0)
        nothing = {"tag": 0, "field0": None, "field1": None}
        wanted = [None, nothing, nothing | {"tag": 1, "field1": "c"}] if parquet else [None, None, "c"]
        assert rows.to_pylist() == wanted


def test_null_unions_of_a_type_are_all_null() -> None:
    nothing = null_unions(3, arrow_type(PLAIN))
    assert plain(nothing) == [None] * 3
    assert null_unions(2, nothing.type).type == nothing.type


def test_one_type_for_all_stripes() -> None:
    """Of two stripes only one has NULL unions and far years: they are brought together."""
    rng = random.Random(1)
    row = random_array(DEEP, 50, rng)
    marked = sprinkled(random_array(DEEP, 50, rng), DEEP, rng)
    one, other = same_types([row, marked])
    assert one.type == other.type == marked.type
    assert (plain(one), plain(other)) == (plain(row), plain(marked))
    assert plain(pa.concat_arrays([one, other])) == plain(row) + plain(marked)
