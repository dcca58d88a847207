"""Parquet files opened and read within limits: on the parts that a footer claims, and on the memory of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

from acidctl.orc.byte_source import ByteSource, ReadAheadFile, damaged, native_read
from acidctl.orc.limits import COLUMNS, STRIPE_MEMORY, STRIPES, TAIL

# The number of bytes that Arrow reads first.
_FIRST_READ = 64 * 1024
_MAGIC = b"PAR1"
_LENGTH_AND_MAGIC = 8
# Bytes of a row's ids.
_IDS = 32
# Chunks of old writers may be longer than they claim by this many bytes; Arrow reads these too.
_PADDING = 100


def open_parquet(source: ByteSource, *, unit: str | None = None, window: ReadAheadFile | None = None) -> Any:
    """Return Arrow's reader of a file whose footer is within limits.

    Args:
        unit: of timestamps of 96 bits.
        window: reads a remote file; None makes a new one if the file is not local.

    Raises:
        BadDataError: the footer is damaged.
        LimitError: it has too many parts.
    """
    local = source.local_whole() if window is None else None
    if local is None and window is None:
        window = window_on(source)
    most = _most_elements(source, window)
    with native_read(source.path):
        opened = pq.ParquetFile(
            pa.OSFile(local) if window is None else pa.PythonFile(window.sibling(), mode="r"),
            coerce_int96_timestamp_unit=unit,
            thrift_container_size_limit=most,
            arrow_extensions_enabled=False,
        )
    _check_parts(opened.metadata, source.path)
    return opened


def window_on(source: ByteSource) -> ReadAheadFile:
    """Return a file object for Arrow that has the end of the file already."""
    return ReadAheadFile(source, source.read_end(_FIRST_READ))


def _most_elements(source: ByteSource, window: ReadAheadFile | None) -> int:
    """Return how many elements a list of the footer can have, whatever it claims: each takes a byte at least."""
    count = min(_LENGTH_AND_MAGIC, source.size)
    end = (source.read if window is None else window.piece)(source.size - count, count)
    length = int.from_bytes(end[: -len(_MAGIC)], "little")
    if not end.endswith(_MAGIC) or not 0 < length <= source.size - _LENGTH_AND_MAGIC:
        return 1  # opening the file will raise the error
    TAIL.check(length, source.path, "size of its footer")
    return min(length, max(COLUMNS.value, STRIPES.value))


def _check_parts(metadata: Any, path: str) -> None:
    COLUMNS.check(metadata.num_columns, path, "number of its columns")
    STRIPES.check(metadata.num_row_groups, path, "number of its row groups")
    chunks = sum(metadata.row_group(i).num_columns for i in range(metadata.num_row_groups))
    STRIPES.check(chunks, path, "number of the column chunks of its row groups")


class RowGroups:
    """Reads the row groups of a file within limits.

    Args:
        window: reads a remote file; the wanted ranges are fetched ahead.
    """

    def __init__(self, source: ByteSource, metadata: Any, window: ReadAheadFile | None = None) -> None:
        self._source = source
        self._metadata = metadata
        self._window = window

    def read(self, i: int, files: Sequence[Any], columns: Sequence[str] | None = None) -> list[pa.Table]:
        """Return the rows of row group `i`, from each of several readers of the file.

        Args:
            columns: names as Arrow expects them; None for all.

        Raises:
            LimitError: its rows take more memory than the limit.
            BadDataError: it contradicts itself, or cannot be read.
        """
        where = f"row group {i} of {self._source.path}"
        ranges = self._ranges(i, where, columns)
        if self._window is not None:
            self._window.fetch(ranges)
        wanted = None if columns is None else list(columns)
        with native_read(self._source.path, where):
            tables = [file.read_row_group(i, columns=wanted) for file in files]
        rows = self._metadata.row_group(i).num_rows
        for table in tables:
            STRIPE_MEMORY.check(table.nbytes, where, "decompressed size of its rows")
            # Arrow does not detect pages with fewer values than the footer claims.
            if any(len(column) != rows for column in table.columns):
                raise damaged(self._source.path, f"row group {i} does not hold the {rows} rows that it claims")
        return tables

    def _ranges(self, i: int, where: str, columns: Sequence[str] | None) -> list[tuple[int, int]]:
        group = self._metadata.row_group(i)
        STRIPE_MEMORY.check(group.num_rows * _IDS, where, "decompressed size of its row ids")
        if group.num_columns != self._metadata.num_columns:
            why = f"row group {i} has {group.num_columns} columns, the schema {self._metadata.num_columns}"
            raise damaged(self._source.path, why)
        chunks = (group.column(j) for j in range(group.num_columns))
        return [self._range(chunk) for chunk in chunks if columns is None or _is_in(chunk.path_in_schema, columns)]

    def _range(self, chunk: Any) -> tuple[int, int]:
        start, length = chunk.data_page_offset, chunk.total_compressed_size
        dictionary = chunk.dictionary_page_offset
        if dictionary is not None and 0 < dictionary < start:
            start = dictionary
        if start < 0 or length < 0 or start + length > self._source.size:
            raise damaged(self._source.path, "a column chunk claims bytes behind its end")
        return start, min(start + length + _PADDING, self._source.size)


def _is_in(path: str, columns: Sequence[str]) -> bool:
    return any(f"{path}.".startswith(f"{name}.") for name in columns)
