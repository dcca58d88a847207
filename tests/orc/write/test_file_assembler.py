"""Files put together from stripes: what the tail says, and that two readers agree on the rows."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa
import pyorc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc
from support.files.orc_bytes import tail_of

from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.types import OrcType, to_proto
from acidctl.orc.write.file_assembler import CPP_WRITER, OrcAssembler, lowest_writer
from acidctl.orc.write.stripe_encoder import EncodedStripe, encode_stripes
from acidctl.orc.write.writer_settings import CODECS, WriterSettings

TREE = OrcType("struct", children=(OrcType("int"), OrcType("string")), names=("a", "b"))


def stripes_of(batches: list[pa.RecordBatch], compression: str = "zlib") -> list[EncodedStripe]:
    chosen = WriterSettings(compression, block_size=65536)
    return [stripe for batch in batches for stripe in encode_stripes(batch, chosen, TREE)]


def batch(first: int, rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "a": pa.array(range(first, first + rows), pa.int32()),
            "b": pa.array([f"v{i}" for i in range(rows)], pa.string()),
        }
    )


def assemble(stripes: list[EncodedStripe], compression: str, block_size: int = 65536, **tail: object) -> bytes:
    sink = io.BytesIO()
    assembler = OrcAssembler(sink, compression=compression, block_size=block_size, stride=10_000)
    for stripe in stripes:
        assembler.append_stripe(stripe.data, stripe.info, stripe.statistics)
    length = assembler.finish(to_proto(TREE), **{"user_metadata": {}, **tail})  # type: ignore[arg-type]
    assert length == len(sink.getvalue()) == assembler.position
    return sink.getvalue()


@pytest.mark.parametrize("compression", CODECS)
def test_assembled_stripes_are_read_with_a_true_tail(compression: str) -> None:
    batches = [batch(0, 10), batch(10, 1), batch(11, 20_000)]
    user = {"k": b"\0\xff", "long": b"x" * 200_000}
    data = assemble(stripes_of(batches, compression), compression, user_metadata=user, calendar=2)
    table = orc.ORCFile(pa.BufferReader(data)).read()
    assert table.equals(pa.Table.from_batches(batches))
    assert [row[0] for row in pyorc.Reader(io.BytesIO(data))] == list(range(20_011))
    tail = tail_of(data)
    assert tail.user_metadata == user
    assert [stripe.numberOfRows for stripe in tail.stripes] == [10, 1, 20_000]
    assert tail.stripes[0].offset == 3 == tail.footer.headerLength
    last = tail.stripes[-1]
    assert tail.footer.contentLength == last.offset + last.indexLength + last.dataLength + last.footerLength
    assert (tail.footer.writer, tail.writer_version) == CPP_WRITER
    assert (tail.calendar, tail.compression, tail.stride) == ("proleptic_gregorian", compression, 10_000)
    assert tail.software_version is not None and tail.software_version.startswith("acidctl ")
    assert len(tail.metadata.stripeStats) == 3
    statistics = tail.footer.statistics[1].intStatistics
    assert (statistics.minimum, statistics.maximum) == (0, 20_010)


@pytest.mark.parametrize("compression", ["none", "zlib"])
def test_statistics_are_those_of_one_file(compression: str) -> None:
    """Merged, they are what ORC C++ says when it writes the same rows at once."""
    whole = pa.Table.from_batches([batch(0, 10), batch(10, 20)]).combine_chunks().to_batches()
    apart = tail_of(assemble(stripes_of([batch(0, 10), batch(10, 20)], compression), compression))
    once = tail_of(assemble(stripes_of(whole, compression), compression))
    assert list(apart.footer.statistics) == list(once.footer.statistics)


def test_tail_larger_than_a_block() -> None:
    """A chunk may not be longer than the block size: Java refuses it."""
    stripes = stripes_of([batch(i * 3, 3) for i in range(50)])
    for block_size in (16, 100, 1000):
        data = assemble(stripes, "zlib", block_size, user_metadata={"index": b"1,2,3;" * 1000})
        tail = tail_of(data)
        raw = data[tail.metadata_start : len(data) - 1 - data[-1]]
        at = 0
        while at < len(raw):
            header = int.from_bytes(raw[at : at + 3], "little")
            assert 0 < header >> 1 <= block_size
            at += 3 + (header >> 1)
        assert at == len(raw)
        assert tail.user_metadata["index"] == b"1,2,3;" * 1000


def test_file_without_stripes_is_valid() -> None:
    for compression in CODECS:
        data = assemble([], compression)
        assert orc.ORCFile(pa.BufferReader(data)).read().num_rows == 0
        assert list(pyorc.Reader(io.BytesIO(data))) == []
        assert [one.numberOfValues for one in tail_of(data).footer.statistics] == [0, 0, 0]


def chunks(data: memoryview) -> Iterator[memoryview]:
    for at in range(0, len(data), 7):
        yield data[at : at + 7]


def test_chunks_and_raw_statistics_give_the_same_file() -> None:
    (stripe,) = stripes_of([batch(0, 100)])
    sink = io.BytesIO()
    assembler = OrcAssembler(sink, compression="zlib", block_size=65536, stride=10_000)
    assembler.append_stripe(chunks(stripe.data), stripe.info, stripe.statistics.SerializeToString())
    assembler.finish(to_proto(TREE), {})
    assert sink.getvalue() == assemble([stripe], "zlib")
    assert (assembler.rows, assembler.stripes) == (100, 1)


class Reluctant(io.RawIOBase):
    """A raw file that takes five bytes at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        self.data += data[:5]
        return min(5, len(data))


def test_a_sink_that_takes_little() -> None:
    (stripe,) = stripes_of([batch(0, 100)])
    sink = Reluctant()
    assembler = OrcAssembler(sink, compression="zlib", block_size=65536, stride=10_000)  # type: ignore[arg-type]
    assembler.append_stripe(stripe.data, stripe.info, stripe.statistics)
    assembler.finish(to_proto(TREE), {})
    assert bytes(sink.data) == assemble([stripe], "zlib")


@pytest.mark.parametrize("change", [-1, 1])
def test_a_stripe_that_is_not_whole(change: int) -> None:
    (stripe,) = stripes_of([batch(0, 100)])
    data = bytes(stripe.data)[:change] if change < 0 else bytes(stripe.data) + b"x"
    assembler = OrcAssembler(io.BytesIO(), compression="zlib", block_size=65536, stride=10_000)
    with pytest.raises(BadDataError, match="not whole"):
        assembler.append_stripe(data, stripe.info, stripe.statistics)


def test_stripe_with_statistics_of_other_types_is_refused() -> None:
    (stripe,) = stripes_of([batch(0, 100)])
    assembler = OrcAssembler(io.BytesIO(), compression="zlib", block_size=65536, stride=10_000)
    assembler.append_stripe(stripe.data, stripe.info, pb.StripeStatistics(colStats=[pb.ColumnStatistics()]))
    with pytest.raises(BadDataError, match="do not fit"):
        assembler.finish(to_proto(TREE), {})


def test_several_writers_are_told_as_the_lowest() -> None:
    assert lowest_writer([]) == CPP_WRITER
    assert lowest_writer([(1, 6), (1, 6)]) == (1, 6)
    assert lowest_writer([(0, 9), (0, 7)]) == (0, 7)
    assert lowest_writer([(0, 9), (1, 6)]) == (0, 6)
    assert lowest_writer([(0, 1), (1, 6)]) == (0, 1)
    assert lowest_writer([(0, 9), (4, 9)]) == (0, 6)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=6), st.sampled_from(CODECS))
def test_any_number_of_stripes_comes_back(sizes: list[int], compression: str) -> None:
    batches = [batch(sum(sizes[:i]), size) for i, size in enumerate(sizes)]
    data = assemble(stripes_of(batches, compression), compression)
    table = orc.ORCFile(pa.BufferReader(data)).read()
    assert table.equals(pa.Table.from_batches(batches, schema=batch(0, 0).schema))
