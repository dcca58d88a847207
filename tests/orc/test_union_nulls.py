"""NULL unions and unions that hold NULL are two things in ORC, one in Arrow: acidctl keeps them apart."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from support.json_text import encode_json_lines
from support.reader_data import Remote
from support.writer_data import acid_batch, acid_file, random_array

from acidctl.orc import orc_pb2 as pb
from acidctl.orc.arrow import below, tags_of, with_children
from acidctl.orc.codecs import decompress
from acidctl.orc.read.common_type import same_types
from acidctl.orc.read.reader import OrcFile, open_orc
from acidctl.orc.read.union_nulls import has_null_member, null_unions, with_nulls
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.orc.types import OrcType, arrow_type
from acidctl.orc.write.writer_settings import CODECS, WriterSettings
from acidctl.rows.export.storable import Storable

INT, TEXT, TIME = OrcType("int"), OrcType("string"), OrcType("timestamp")
PLAIN = OrcType("uniontype", children=(INT, TEXT))
DEEP = OrcType(
    "struct",
    names=("u", "l", "m", "uu", "s", "t"),
    children=(
        PLAIN,
        OrcType("array", children=(PLAIN,)),
        OrcType("map", children=(INT, PLAIN)),
        OrcType(
            "uniontype",
            children=(
                PLAIN,
                OrcType("struct", children=(PLAIN, TIME), names=("v", "t")),
                OrcType("array", children=(PLAIN,)),
                INT,
            ),
        ),
        OrcType("struct", children=(OrcType("struct", children=(PLAIN,), names=("b",)),), names=("a",)),
        OrcType("uniontype", children=(TIME,)),
    ),
)


def flags(*values: bool) -> Any:
    return pa.array(values, pa.bool_()).to_numpy(zero_copy_only=False)


def sprinkled(array: pa.Array, tree: OrcType, rng: random.Random) -> pa.Array:
    """The array with NULLs in its unions."""
    if isinstance(array.type, WideTimestamp):
        return array
    children = [sprinkled(child, kind, rng) for child, kind in zip(below(array), tree.children, strict=False)]
    if tree.kind == "uniontype":
        return with_nulls(tags_of(array), children, flags(*(rng.random() < 0.3 for _ in range(len(array)))))
    return with_children(array, children) if children else array


def plain(array: pa.Array) -> list[Any]:
    """Values in which NULL is None and a union holding NULL is (tag, None)."""
    kind = array.type
    if isinstance(kind, WideTimestamp):
        return [None if v is None else v["seconds"] * 10**9 + v["nanos"] for v in array.storage.to_pylist()]
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return array.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_union(kind):
        members = [plain(array.field(i)) for i in range(kind.num_fields)]
        none = kind.num_fields - 1 if has_null_member(kind) else -1
        return [None if tag == none else (tag, members[tag][i]) for i, tag in enumerate(tags_of(array))]
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        columns = [plain(array.field(i)) for i in range(kind.num_fields)]
        return [tuple(column[i] for column in columns) if there else None for i, there in enumerate(valid)]
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        values = list(zip(*map(plain, below(array)), strict=True))
        starts = array.offsets.to_pylist()
        return [values[starts[i] : starts[i + 1]] if there else None for i, there in enumerate(valid)]
    return array.to_pylist()  # type: ignore[no-any-return]


def opened(data: bytes) -> OrcFile:
    return open_orc(Remote(file=data), "file")


def rows_of(data: bytes) -> list[Any]:
    with opened(data) as file:
        return [row for i in range(file.stripe_count) for row in plain(file.read_stripe(i, ["row"]).column(0))]


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


def test_years_out_of_range() -> None:
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


def test_exports_show_null() -> None:
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


def test_null_unions() -> None:
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
