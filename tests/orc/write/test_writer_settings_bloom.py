"""Bloom filters and the other settings of the writer."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from support.files.acid_files import acid_batch, acid_file, struct
from support.files.encoded import batch_of as unnamed
from support.files.encoded import read, root, wide
from support.files.orc_bytes import tail_of
from support.made.random_values import everything, random_array

from acidctl.base.errors import UsageProblem
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import decompress
from acidctl.orc.types import OrcType, acid_tree, renumbered
from acidctl.orc.write.stripe_editor import StripeParts
from acidctl.orc.write.stripe_encoder import EncodedStripe, encode_stripes
from acidctl.orc.write.writer_settings import BLOOM_KINDS, CODECS, WriterSettings, bloom_ids

BLOCK = 65536


def filters(stripe: EncodedStripe, compression: str) -> dict[int, bytes]:
    """The bloom filters of a stripe, by column id."""
    parts = StripeParts(stripe.data, stripe.info, (compression, BLOCK))
    found = {}
    for (column, kind), raw in parts.streams.items():
        assert kind != pb.Stream.BLOOM_FILTER
        if kind == pb.Stream.BLOOM_FILTER_UTF8:
            found[column] = decompress(raw, compression, BLOCK)
    return found


@pytest.mark.parametrize("compression", CODECS)
def test_the_columns_that_were_named_get_them(compression: str) -> None:
    """After a union, whose columns are written as other ones, inside a struct, in any case; the same for all codecs."""
    union = OrcType("uniontype", children=(OrcType("int"), OrcType("string")))
    tree = renumbered(struct(u=union, A=OrcType("string"), q=struct(x=OrcType("int"), y=OrcType("bigint"))))
    rows = random_array(tree, 1000, random.Random(0), 0.0)
    batch = pa.RecordBatch.from_arrays([rows.field(i) for i in range(3)], names=list(tree.names))
    chosen = WriterSettings(compression, block_size=BLOCK, stride=100, bloom_columns=("a", "Q.y"), bloom_fpp=0.01)
    (stripe,) = encode_stripes(batch, chosen, tree)
    found = filters(stripe, compression)
    assert sorted(found) == [4, 7]
    (plain,) = encode_stripes(batch, WriterSettings(**{**_fields(chosen), "compression": "none"}), tree)
    assert found == filters(plain, "none")
    assert len(set(found.values())) == 2
    (without,) = encode_stripes(batch, WriterSettings(compression, block_size=BLOCK, stride=100), tree)
    assert filters(without, compression) == {}


def _fields(chosen: WriterSettings) -> dict[str, Any]:
    return {name: getattr(chosen, name) for name in WriterSettings.__slots__}


def test_a_smaller_rate_gives_larger_filters() -> None:
    batch = unnamed(pa.array(range(10_000)))
    sizes = []
    for rate in (0.5, 0.05, 0.001):
        chosen = WriterSettings(block_size=BLOCK, bloom_columns=("f0",), bloom_fpp=rate)
        (stripe,) = encode_stripes(batch, chosen, root(OrcType("bigint")))
        sizes.append(len(filters(stripe, "zlib")[1]))
    assert sizes == sorted(sizes) and len(set(sizes)) == 3


def test_bloom_filters_of_every_type_that_can_hold_the_values() -> None:
    row = everything(unions=False)
    names = tuple(name for name, kind in row.fields() if kind.kind in BLOOM_KINDS)
    tree = acid_tree(row)
    assert {node.kind for node in row.children if node.kind in BLOOM_KINDS} == set(BLOOM_KINDS)
    batch = acid_batch(random_array(row, 3000, random.Random(0)))
    times = [i for i, kind in enumerate(row.children) if kind.kind.startswith("timestamp")]
    arrays = batch.column("row").flatten()
    for i in times:  # after 1970: one half
        arrays[i] = pa.array(range(3000), arrays[i].type)
    batch = acid_batch(pa.StructArray.from_arrays(arrays, names=list(row.names)))
    chosen = WriterSettings(block_size=BLOCK, stride=1000, bloom_columns=names)
    (stripe,) = encode_stripes(batch, chosen, tree)
    assert sorted(filters(stripe, "zlib")) == sorted(bloom_ids(names, tree).values())
    data, _ = acid_file(row, [batch], chosen)
    assert read(data).equals(pa.Table.from_batches([batch]))
    assert tail_of(data).stride == 1000


def test_times_in_two_halves_have_none() -> None:
    """Their filters would know whole seconds only, and hide rows."""
    tree = root(OrcType("timestamp"), OrcType("timestamp"))
    batch = unnamed(wide([(-5, 500_000_000)]), pa.array([7], pa.timestamp("ns")))
    chosen = WriterSettings(block_size=BLOCK, bloom_columns=("f0", "f1"))
    (stripe,) = encode_stripes(batch, chosen, tree)
    assert list(filters(stripe, "zlib")) == [2]


@pytest.mark.parametrize("name", ["zz", "s.t", "q.zz", "", "row.s", "rowId", "a.x"])
def test_a_column_that_is_not_there(name: str) -> None:
    tree = acid_tree(struct(s=OrcType("string"), q=struct(x=OrcType("int")), a=OrcType("array", children=(struct(),))))
    with pytest.raises(UsageProblem, match="the table has no column"):
        bloom_ids([name], tree)
    with pytest.raises(UsageProblem, match="the table has no column"):  # before any row comes
        acid_file(tree.children[-1], [], WriterSettings(bloom_columns=(name,)))


def test_names_with_dots_find_their_column() -> None:
    row = struct(**{"a.b": OrcType("int"), "a": struct(c=OrcType("int"), **{"d.e": OrcType("int")})})
    assert list(bloom_ids(["a.b", "a.c", "a.d.e"], renumbered(row)).values()) == [1, 3, 4]


@pytest.mark.parametrize("kind", ["boolean", "struct", "array"])
def test_a_type_that_has_no_filters(kind: str) -> None:
    children = (OrcType("int"),) if kind == "array" else ()
    tree = root(OrcType(kind, children=children))
    with pytest.raises(UsageProblem, match="cannot have bloom filters"):
        encode_stripes(unnamed(pa.array([1])), WriterSettings(bloom_columns=("f0",)), tree)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bloom_fpp": 0.0}, "false positive rate"),
        ({"bloom_fpp": 1.0}, "false positive rate"),
        ({"bloom_fpp": float("nan")}, "false positive rate"),
        ({"bloom_columns": ("a",), "stride": 0}, "row index stride of 0"),
        ({"bloom_columns": ("a",), "stride": 1 << 30}, "MiB for every"),
        ({"bloom_columns": ("a",), "bloom_fpp": 1e-300, "stride": 1_000_000}, "MiB for every"),
        ({"stride": -5}, "it must be from 0 to"),
        ({"stripe_size": 0}, "it must be from 1 to"),
    ],
)
def test_settings_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        WriterSettings(**options)
    assert message in str(caught.value)
