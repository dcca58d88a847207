"""Put an ORC file together from finished stripes and a footer of our own.

The stripes come from the encoder or byte for byte from another file; positions inside a stripe are relative to it,
so only the footer holds the stripe's offset.  For other codecs than zlib the footer's sections are stored inside
"original" chunks, which every reader accepts under any compression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import BinaryIO, Final

from acidctl import __version__
from acidctl.base.errors import BadDataError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.codecs import COMPRESSION_NAMES, encode_section
from acidctl.orc.tail import MAGIC, stripe_length
from acidctl.orc.varint import encoded
from acidctl.orc.write.statistics import merge_column_statistics

ORC_JAVA: Final = 0
ORC_CPP: Final = 1
CPP_WRITER: Final = (ORC_CPP, 6)
"""Writer code and version of ORC C++, which writes the encoder's stripes."""

_COMMON_VERSION: Final = 6
"""The highest writer version that means the same for every writer: others start at 6, only Java's goes beyond it."""

ByteChunk = bytes | bytearray | memoryview


class OrcAssembler:
    """Writes one ORC file to a sink, stripe after stripe; only the footer is held in memory.

    Args:
        sink: the file to write to; its current position becomes offset 0.  It is not closed.
        compression: the compression of all stripes, one of codecs.COMPRESSION_NAMES.
        block_size: the largest compression block size among the stripes, in bytes.
        stride: the row index stride that all stripes share; 0 if they have no row index.  A wrong stride makes seeks
            silently wrong, so never mix strides.

    Attributes:
        rows: rows of the stripes so far.
        position: bytes written so far.
    """

    def __init__(self, sink: BinaryIO, *, compression: str, block_size: int, stride: int) -> None:
        self._sink = sink
        self._compression = compression
        self._codec = COMPRESSION_NAMES.index(compression)
        self._block_size = block_size
        self._stride = stride
        self._stripes: list[pb.StripeInformation] = []
        self._statistics: list[bytes] = []
        self.rows = 0
        self.position = 0
        self._write(MAGIC)

    @property
    def stripes(self) -> int:
        """Return the number of stripes so far."""
        return len(self._stripes)

    def append_stripe(
        self,
        data: ByteChunk | Iterable[ByteChunk],
        info: pb.StripeInformation,
        statistics: pb.StripeStatistics | bytes,
    ) -> None:
        """Write a stripe.

        Args:
            data: the stripe's bytes (index, data and stripe footer), whole or in consecutive chunks.
            info: lengths and rows of the stripe; the offset is replaced.
            statistics: the stripe's column statistics, as a message or its bytes.

        Raises:
            BadDataError: `data` is not as long as `info` says; the sink then holds a damaged file.
        """
        start = self.position
        for chunk in [data] if isinstance(data, bytes | bytearray | memoryview) else data:
            self._write(chunk)
        expected = stripe_length(info)
        if self.position - start != expected:
            what = f"stripe {len(self._stripes)} of the output is not whole"
            why = f"{self.position - start} bytes came, {expected} were announced"
            raise BadDataError(what, why, "an input file was cut short or overwritten while it was read")
        placed = pb.StripeInformation()
        placed.CopyFrom(info)
        placed.offset = start
        self._stripes.append(placed)
        self._statistics.append(statistics if isinstance(statistics, bytes) else statistics.SerializeToString())
        self.rows += info.numberOfRows

    def finish(
        self,
        types: Sequence[pb.Type],
        user_metadata: Mapping[str, bytes],
        *,
        calendar: int = 0,
        writer: tuple[int, int] = CPP_WRITER,
    ) -> int:
        """Write the footer and return the length of the whole file in bytes.

        Args:
            calendar: 0 unknown, 1 Julian/Gregorian, 2 proleptic Gregorian.
            writer: writer code and version to claim, see :func:`lowest_writer`.

        Raises:
            BadDataError: the stripe statistics do not fit one another or the types.
        """
        # Repeated fields of one message may be written one by one, so stripe statistics need not be parsed again.
        tag = encoded(1 << 3 | 2)  # field 1, of a length
        metadata = b"".join(tag + encoded(len(raw)) + raw for raw in self._statistics)
        footer = pb.Footer(
            headerLength=len(MAGIC),
            contentLength=self.position,
            stripes=self._stripes,
            types=types,
            metadata=[pb.UserMetadataItem(name=name, value=value) for name, value in user_metadata.items()],
            numberOfRows=self.rows,
            statistics=self._merged_statistics(len(types)),
            rowIndexStride=self._stride,
            writer=writer[0],
            softwareVersion=f"acidctl {__version__}",
        )
        if calendar:
            footer.calendar = calendar
        metadata_length = self._write_section(metadata)
        footer_length = self._write_section(footer.SerializeToString())
        postscript = pb.PostScript(
            footerLength=footer_length,
            compression=self._codec,
            compressionBlockSize=self._block_size,
            version=(0, 12),
            metadataLength=metadata_length,
            writerVersion=writer[1],
            stripeStatisticsLength=0,
            magic=MAGIC.decode(),
        ).SerializeToString()
        self._write(postscript + bytes((len(postscript),)))
        return self.position

    def _merged_statistics(self, columns: int) -> list[pb.ColumnStatistics]:
        if not self._statistics:
            return [pb.ColumnStatistics(numberOfValues=0, hasNull=False) for _ in range(columns)]
        vectors = [pb.StripeStatistics.FromString(raw).colStats for raw in self._statistics]
        merged = merge_column_statistics(vectors)
        if len(merged) != columns:
            why = f"they speak of {len(merged)} columns where there are {columns}"
            hint = "the inputs' types differ; re-encode them"
            raise BadDataError("the stripes' statistics do not fit the types", why, hint)
        return merged

    def _write_section(self, data: bytes) -> int:
        stored = encode_section(data, self._compression, self._block_size)
        self._write(stored)
        return len(stored)

    def _write(self, data: ByteChunk) -> None:
        # A raw (unbuffered) file may take less than it is given.
        view = memoryview(data).cast("B")
        while len(view):
            written = self._sink.write(view)
            count = len(view) if written is None else written
            self.position += count
            view = view[count:]


def lowest_writer(writers: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the (writer code, version) to claim for a file with stripes of all `writers`, which promises least.

    A version is a list of fixed writer bugs; readers distrust statistics and bloom filters of old ones.
    """
    pairs = set(writers) or {CPP_WRITER}
    version = min(version for _, version in pairs)
    codes = {code for code, _ in pairs}
    if len(codes) == 1:
        return codes.pop(), version
    return ORC_JAVA, min(version, _COMMON_VERSION)
