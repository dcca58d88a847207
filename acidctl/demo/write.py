"""Writing one directory of a demo table: its bucket files and its version file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from acidctl.acid.names import ORC_ACID_VERSION, format_bucket
from acidctl.acid.sidefiles import ORC_ACID_VERSION_2
from acidctl.orc.types import OrcType
from acidctl.orc.write.acid_writer import AcidWriter
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.storage.port import FileSystem


def write_directory(
    fs: FileSystem,
    path: str,
    buckets: Mapping[int, Iterable[pa.RecordBatch]],
    row: OrcType,
    settings: WriterSettings,
) -> None:
    """Write ``bucket_N`` files from batches of the six ACID columns, in the order of their keys.

    Raises:
        ConflictError: a file exists already.
    """
    fs.make_dirs(path)
    for number, batches in buckets.items():
        with fs.open_output(f"{path}/{format_bucket(number)}") as sink:
            writer = AcidWriter(sink, row, settings)
            for batch in batches:
                writer.write(batch)
            writer.close()
    fs.write_bytes(f"{path}/{ORC_ACID_VERSION}", ORC_ACID_VERSION_2)
