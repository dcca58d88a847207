"""zlib as acidctl makes it: the row index leads to the same places as that of the uncompressed stripe."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyorc
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyarrow import orc
from support.files.acid_files import struct
from support.files.encoded import file_of, raw_rows
from support.made.random_values import everything, random_array, row_types

from acidctl.base.errors import VerifyError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import decompress, encode_stream
from acidctl.orc.types import OrcType, renumbered, to_proto
from acidctl.orc.write.file_assembler import OrcAssembler
from acidctl.orc.write.stripe_editor import Layout, StripeParts, places, relocate
from acidctl.orc.write.stripe_encoder import EncodedStripe, encode_stripes, split_stripes
from acidctl.orc.write.writer_settings import WriterSettings

BLOCK = 65536
Positions = dict[int, list[list[tuple[int, ...]]]]


def batch_of(tree: OrcType, rows: pa.StructArray) -> pa.RecordBatch:
    """The rows as a root, which has no nulls of its own."""
    return pa.RecordBatch.from_arrays([rows.field(i) for i in range(len(tree.names))], names=list(tree.names))


def unpacked(stripe: EncodedStripe, compression: str, tree: OrcType) -> tuple[Positions, dict[tuple[int, int], bytes]]:
    """For each column and entry the places (byte before compression, numbers of the run); and the streams' bytes."""
    parts = StripeParts(stripe.data, stripe.info, (compression, BLOCK))
    streams = {key: decompress(raw, compression, BLOCK) for key, raw in parts.streams.items()}
    chunks = {key: _chunks(bytes(raw)) for key, raw in parts.streams.items()} if compression != "none" else {}
    found: Positions = {}
    for node in tree.walk():
        column = node.column_id
        index = parts.row_index(column)
        if index is None:
            continue
        kinds = [kind for at, kind in parts.streams if at == column]
        where = places(node.kind, parts.footer.columns[column], kinds)
        found[column] = []
        for entry in index.entry:
            numbers = iter(entry.positions)
            entry_places = []
            for kind, more in where:
                byte = next(numbers)
                if compression != "none":
                    before, length = chunks[column, kind][byte] if (column, kind) in chunks else (0, 0)
                    inside = next(numbers)
                    assert inside <= length
                    byte = before + inside
                entry_places.append((byte, *(next(numbers) for _ in range(more))))
            assert not list(numbers)
            found[column].append(entry_places)
    return found, {key: data for key, data in streams.items() if key[1] != pb.Stream.ROW_INDEX}


def _chunks(data: bytes) -> dict[int, tuple[int, int]]:
    """Where each chunk begins: the byte before compression, and its length before compression."""
    found = {0: (0, 0)}
    at = before = 0
    while at < len(data):
        end = at + 3 + (int.from_bytes(data[at : at + 3], "little") >> 1)
        length = len(decompress(data[at:end], "zlib", BLOCK))
        found[at] = (before, length)
        at, before = end, before + length
    return found


def large(tree: OrcType, rows: int, seed: int, null_share: float = 0.2) -> list[pa.RecordBatch]:
    """Many rows of few random ones, in a random order: streams of many chunks that are quickly made."""
    rng = random.Random(seed)
    some = [batch_of(tree, random_array(tree, 200 + i, rng, null_share)) for i in range(5)]
    pieces: list[pa.RecordBatch] = []
    while sum(piece.num_rows for piece in pieces) < rows:
        pieces.append(rng.choice(some))
    return pieces


@pytest.mark.sampled
@pytest.mark.parametrize("null_share", [0.0, 0.2, 1.0])
def test_positions_of_every_type_lead_to_the_same_places(null_share: float) -> None:
    """zlib of acidctl, zlib of the ORC library and no compression point to the same places."""
    tree = renumbered(everything(unions=True))
    pieces = large(tree, 24_000, 1, null_share)
    made = {}
    for compression in ("none", "zlib"):
        (stripe,) = encode_stripes(pieces, WriterSettings(compression, block_size=BLOCK, stride=700), tree)
        made[compression] = unpacked(stripe, compression, tree)
    assert made["zlib"] == made["none"]
    places_found = [one for entries in made["zlib"][0].values() for entry in entries for one in entry]
    assert null_share == 1.0 or max(place[0] for place in places_found) > 3 * BLOCK
    tree = renumbered(everything(unions=False))
    table = pa.Table.from_batches(large(tree, 24_000, 1, null_share))
    found = []
    for compression in ("uncompressed", "zlib"):
        sink = pa.BufferOutputStream()
        with orc.ORCWriter(sink, compression=compression, compression_block_size=BLOCK, row_index_stride=700) as writer:
            writer.write(table)
        (stripe,), _ = split_stripes(sink.getvalue())
        found.append(unpacked(stripe, "zlib" if compression == "zlib" else "none", tree))
    assert found[0] == found[1]


def rows_from(data: bytes, at: list[int]) -> Iterator[Any]:
    """The rows that the ORC library finds by the row index."""
    reader = pyorc.Reader(io.BytesIO(data))
    for row in at:
        reader.seek(row)
        yield next(reader)


def leaves_without_times() -> st.SearchStrategy[OrcType]:
    return row_types().filter(lambda tree: not any(node.kind.startswith(("timestamp", "date")) for node in tree.walk()))


@settings(max_examples=20, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # no slow shrinking
@given(
    leaves_without_times(),
    st.integers(1, 8_000),
    st.integers(0, 1 << 30),
    st.sampled_from([1, 33, 100, 1000, 5000]),
    st.sampled_from([0.0, 0.2]),
)
def test_rows_are_found_by_the_index(tree: OrcType, count: int, seed: int, stride: int, null_share: float) -> None:
    tree = renumbered(tree)
    pieces = large(tree, count, seed, null_share)
    data = file_of(pieces, tree, WriterSettings("zlib", block_size=BLOCK, stride=stride))
    assert orc.ORCFile(pa.BufferReader(data)).read().equals(pa.Table.from_batches(pieces))
    rows = raw_rows(data)
    assert rows == raw_rows(file_of(pieces, tree, WriterSettings("none", block_size=BLOCK, stride=stride)))
    rng = random.Random(seed)
    # ORC C++ 2.3 cannot skip empty strings right after a seek, however they are compressed: no row between two groups.
    at = [rng.randrange(len(rows)) // stride * stride for _ in range(20)]
    assert list(rows_from(data, at)) == [rows[row] for row in at]


def test_every_row_group_over_many_chunks() -> None:
    """Random bytes (chunks stored as they are), text (compressed ones), nulls and lists, beyond many chunks."""
    rng = np.random.default_rng(3)
    n = 40_000
    numbers = rng.integers(-(1 << 62), 1 << 62, n)
    texts = pa.array([f"{value:x}" * 3 for value in numbers.tolist()])
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, 2 * n + 1, 2, dtype="i4")), pa.array(np.repeat(numbers, 2)))
    nulls = pa.array(numbers, mask=rng.random(n) < 0.5)
    tree = struct(
        a=OrcType("bigint"),
        b=OrcType("string"),
        c=OrcType("array", children=(OrcType("bigint"),)),
        d=OrcType("bigint"),
    )
    batch = pa.RecordBatch.from_arrays([pa.array(numbers), texts, lists, nulls], names=["a", "b", "c", "d"])
    data = file_of(batch, tree, WriterSettings("zlib", block_size=BLOCK, stride=100, dictionary_threshold=0))
    expected = [tuple(row.values()) for row in batch.to_pylist()]
    at = list(range(0, n, 100))
    random.Random(0).shuffle(at)
    assert list(rows_from(data, at)) == [expected[row] for row in at]


def test_a_wrong_position_is_noticed() -> None:
    """What the tests above rely on: the library goes where the row index says."""
    numbers = np.random.default_rng(3).integers(-(1 << 62), 1 << 62, 40_000)
    tree = renumbered(struct(a=OrcType("bigint")))
    chosen = WriterSettings("zlib", block_size=BLOCK, stride=100)
    batch = pa.RecordBatch.from_arrays([pa.array(numbers)], names=["a"])
    (stripe,) = encode_stripes(batch, chosen, tree)
    parts = StripeParts(stripe.data, stripe.info, ("zlib", BLOCK))
    index = parts.row_index(1)
    assert index is not None
    index.entry[300].positions[2] += 1
    parts.streams[1, pb.Stream.ROW_INDEX] = memoryview(parts.stored(index))
    data, info = parts.joined()
    sink = io.BytesIO()
    assembler = OrcAssembler(sink, compression="zlib", block_size=BLOCK, stride=100)
    assembler.append_stripe(data, info, stripe.statistics)
    assembler.finish(to_proto(tree), {})
    found = [row for (row,) in rows_from(sink.getvalue(), [29_900, 30_000, 30_100])]
    assert [a == b for a, b in zip(found, numbers[[29_900, 30_000, 30_100]], strict=True)] == [True, False, True]


def test_the_end_of_a_stream() -> None:
    """Rows with nothing in a stream begin at its end: in its last chunk, after the last byte, as others say it."""
    _, starts = encode_stream(bytes(150), "zlib", 100)
    layout = Layout(150, 100, np.array(starts))
    where, inside = layout.locate(np.array([0, 99, 100, 149, 150]))
    assert (where.tolist(), inside.tolist()) == ([0, 0, starts[1], starts[1], starts[1]], [0, 99, 0, 49, 50])
    layout = Layout(100, 100, np.array([0]))
    assert [one.tolist() for one in layout.locate(np.array([100]))] == [[0], [100]]
    layout = Layout(0, 100, np.array([], np.int64))
    assert [one.tolist() for one in layout.locate(np.array([0, 0]))] == [[0, 0], [0, 0]]


def test_zlib_chunks_come_back() -> None:
    rng = random.Random(0)
    for data in (b"", b"a", bytes(500), rng.randbytes(500), rng.randbytes(100) * 10):
        for block in (1, 7, 100, 1000):
            packed, starts = encode_stream(data, "zlib", block)
            assert decompress(packed, "zlib", block) == data
            assert len(starts) == -(-len(data) // block)
            assert len(packed) <= len(data) + 3 * len(starts)
            for i, start in list(enumerate(starts))[:20]:
                assert decompress(packed[start:], "zlib", block) == data[i * block :]


@pytest.mark.parametrize("positions", [[0], [0, 1, 2], [101, 0]])
def test_an_index_that_does_not_fit_its_streams(positions: list[int]) -> None:
    index = pb.RowIndex(entry=[pb.RowIndexEntry(positions=positions)])
    where = places("bigint", pb.ColumnEncoding(kind=pb.ColumnEncoding.DIRECT_V2), [pb.Stream.DATA])
    with pytest.raises(VerifyError, match="does not fit its streams"):
        relocate(index, where, [Layout(100, 50, np.array([0, 53]))])
