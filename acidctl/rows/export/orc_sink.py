"""Export to a plain ORC file with the table's own types (CHAR, VARCHAR, unions), stripe by stripe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO

import pyarrow as pa

from acidctl.orc.types import OrcType, renumbered, to_proto
from acidctl.orc.write.acid_writer import Gathered
from acidctl.orc.write.file_assembler import OrcAssembler
from acidctl.orc.write.stripe_encoder import encode_stripes
from acidctl.orc.write.writer_settings import WHOLE, WriterSettings

_PROLEPTIC = 2


class OrcSink:
    """Writes one file.

    Args:
        out: the output; it is not closed.
        types: the struct whose fields are the columns.
        settings: of the writer; :meth:`WriterSettings.for_base` by default.
    """

    def __init__(self, out: BinaryIO, types: OrcType, settings: WriterSettings | None = None) -> None:
        settings = settings or WriterSettings.for_base("zstd")
        self._types = renumbered(types)
        # This class cuts stripes, by the decoded size of rows.
        self._encoder = replace(settings, stripe_size=WHOLE)
        self._assembler = OrcAssembler(
            out, compression=settings.compression, block_size=settings.block_size, stride=settings.stride
        )
        self._gathered = Gathered(settings.stripe_size, self._encode)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows. Raises BadDataError for a value that ORC cannot hold."""
        self._gathered.add(batch)

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        self._gathered.flush()
        self._assembler.finish(to_proto(self._types), {}, calendar=_PROLEPTIC)

    def _encode(self, batches: Sequence[pa.RecordBatch]) -> None:
        for stripe in encode_stripes(batches, self._encoder, self._types):
            self._assembler.append_stripe(stripe.data, stripe.info, stripe.statistics)
