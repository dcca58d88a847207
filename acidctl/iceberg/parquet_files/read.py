"""Read the Parquet files of a copy: the keys of their rows, and the rows for the proof."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

import pyarrow as pa

from acidctl.base.errors import BadDataError
from acidctl.iceberg.keys import RUNS
from acidctl.iceberg.parquet_files.schema import types_of
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.types import OrcType
from acidctl.rows.foreign.foreign_reader import one_chunk
from acidctl.rows.foreign.parquet_reader import RowGroups, open_parquet, window_on
from acidctl.storage.port import FileSystem


def text_of(keys: bytes) -> bytes:
    """Return keys as text: some readers refuse files whose key-value metadata is none."""
    return base64.b64encode(keys)


def read_keys(fs: FileSystem, path: str) -> bytes | None:
    """Return the keys in the footer, as :meth:`Runs.to_bytes` made them; None if it has none.

    Raises:
        BadDataError: the file or the keys are damaged.
    """
    source = ByteSource(fs, path)
    with open_parquet(source, window=window_on(source)) as file:
        raw = (file.metadata.metadata or {}).get(RUNS.encode())
    try:
        return None if raw is None else base64.b64decode(raw, validate=True)
    except binascii.Error as error:
        what = f"the keys in {fs.display(path)} are damaged"
        raise BadDataError(what, str(error), "migrate into a new table") from error


def read_rows(fs: FileSystem, path: str) -> tuple[OrcType, Iterator[pa.RecordBatch]]:
    """Return the types of the columns, with Iceberg's ids as attributes, and the rows, a row group at a time.

    Raises:
        BadDataError: the file is damaged, or has a column that acidctl does not write.
    """
    source = ByteSource(fs, path)
    window = None if source.local_whole() else window_on(source)
    file = open_parquet(source, window=window)
    groups = RowGroups(source, file.metadata, window)

    def batches() -> Iterator[pa.RecordBatch]:
        with file:
            for at in range(file.metadata.num_row_groups):
                (table,) = groups.read(at, [file])
                columns = [one_chunk(column) for column in table.columns]
                yield pa.RecordBatch.from_arrays(columns, schema=table.schema)

    return types_of(file.schema_arrow, fs.display(path)), batches()
