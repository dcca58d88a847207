"""Hold rows of many files until each file is written, because every open file takes the memory of a stripe."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acidctl.storage.os_errors import from_os_error

_LIMIT = 64 << 20


class SpilledRows:
    """Rows by the number of their group, in memory up to a limit, and then in a file of the local temporary directory.

    Args:
        limit: bytes of rows in memory; sorting takes three times as much.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit, self._bytes = limit, 0
        self._pending: list[tuple[pa.StructArray, NDArray[np.int64]]] = []
        self._sorted: dict[int, pa.StructArray] = {}
        self._file: IO[bytes] | None = None
        self._pieces: dict[int, list[tuple[int, int]]] = {}

    def add(self, rows: pa.StructArray, groups: NDArray[np.int64]) -> None:
        """Add rows, each to its group.

        Raises:
            StorageError: the temporary directory is full.
        """
        if self._pending and self._pending[-1][0].type != rows.type:
            self._spill()  # stripes with times outside of nanoseconds have another type
        self._pending.append((rows, groups))
        self._bytes += rows.nbytes
        if self._bytes > self._limit:
            self._spill()

    def seal(self) -> None:
        """Sort the rows in memory; afterwards threads may read, and nothing may be added."""
        if self._pending:
            self._sorted = dict(self._take_pending())
        if self._file:
            self._file.flush()

    def read(self, group: int) -> Iterator[pa.StructArray]:
        """Yield the rows of a group in the order in which they were added."""
        for offset, length in self._pieces.get(group, ()):
            assert self._file
            for batch in pa.ipc.open_stream(os.pread(self._file.fileno(), length, offset)):
                yield batch.to_struct_array()
        if group in self._sorted:
            yield self._sorted[group]

    def close(self) -> None:
        """Remove the file."""
        if self._file:
            self._file.close()

    def _take_pending(self) -> Iterator[tuple[int, pa.StructArray]]:
        groups = np.concatenate([numbers for _, numbers in self._pending])
        rows = pa.concat_arrays([part for part, _ in self._pending])
        self._pending.clear()
        self._bytes = 0
        order = np.argsort(groups, kind="stable")
        rows, groups = rows.take(pa.array(order)), groups[order]
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        for start, end in pairwise([*starts, len(groups)]):
            yield int(groups[start]), rows.slice(start, end - start)

    def _spill(self) -> None:
        try:
            if not self._file:
                self._file = tempfile.TemporaryFile(prefix="acidctl-rows-")  # noqa: SIM115 - close() does
            for group, rows in self._take_pending():
                batch, sink = pa.RecordBatch.from_struct_array(rows), pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, batch.schema) as stream:
                    stream.write_batch(batch)
                data = sink.getvalue()
                self._pieces.setdefault(group, []).append((self._file.tell(), data.size))
                self._file.write(data)
        except OSError as error:
            raise from_os_error(error, "write", tempfile.gettempdir()) from error
