"""Read parts of files: random access with one window of read-ahead, exact big reads, and small files within bounds."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from acidctl.base.errors import AcidctlError, BadDataError, StorageError
from acidctl.storage.port import FileSystem

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

READ_AHEAD = 1 << 20
"""Bytes fetched for a small read.  A request takes about as long as a megabyte on HDFS, longer on S3."""

_LOCAL_PIECE = 256 << 10
"""Memory of this size is reused; larger pieces are fresh pages each time, which is up to five times as slow."""

_REMOTE_PIECE = 8 << 20  # pieces are large, since each is a request
MOST_METADATA = 1 << 20
"""The most bytes of a metadata file: ``_metadata_acid`` has 48, ``_orc_acid_version`` one."""

MOST_LENGTHS = 64 << 20
"""The most bytes of a side file with lengths, which has 8 for each commit of a streaming writer."""


def pieces(fs: FileSystem, path: str, offset: int, length: int) -> Iterator[bytes]:
    """Yield a range of a file in pieces of a size that is good for copying; fewer bytes if the file ends before."""
    size = _LOCAL_PIECE if fs.is_local else _REMOTE_PIECE
    with fs.open_input(path) as file:
        file.seek(offset)
        while length:
            piece = file.read(min(length, size))
            if not piece:
                return
            length -= len(piece)
            yield piece


def clamp(offset: int, length: int | None, size: int) -> tuple[int, int]:
    """Return the range ``[start, end)`` of an offset (negative: from the end) and length in a file of `size` bytes."""
    if length is not None and length < 0:
        raise ValueError(f"a length cannot be negative: {length}")
    start = max(0, size + offset) if offset < 0 else min(offset, size)
    return start, size if length is None else min(size, start + length)


def behind_the_end(error: StorageError, offset: int, size_of: Callable[[], int]) -> bytes:
    """Return no bytes if a range that a store refused begins at or behind the end of its file; else raise `error`."""
    try:
        size = size_of()
    except AcidctlError:
        raise error from None
    if offset < size:
        raise error
    return b""


class RangedReader(io.BufferedIOBase):
    """A read-only, seekable binary file of known size.

    A read shorter than `read_ahead` fetches `read_ahead` bytes and serves later reads from them; a longer read fetches
    exactly what is missing.  Like any file object, it must not be used by several threads at once.

    Args:
        fetch: ``fetch(start, end)`` returns all of those bytes; ``0 <= start < end <= size``.
        size: the length of the file in bytes.
        shown: the file's name for messages.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int, shown: str, read_ahead: int = READ_AHEAD) -> None:
        super().__init__()
        self._fetch = fetch
        self._size = size
        self._read_ahead = read_ahead
        self._position = 0
        self._window = b""
        self._window_start = 0
        self.name = shown

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._check_open()
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}.get(whence)
        if start is None:
            raise ValueError(f"whence must be 0, 1 or 2: {whence}")
        if start + offset < 0:
            raise OSError(22, f"cannot seek before the start: {start + offset}")
        self._position = start + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Return exactly `size` bytes, fewer only at the end of the file."""
        self._check_open()
        start, end = clamp(self._position, None if size is None or size < 0 else size, self._size)
        if start >= end:
            return b""
        self._position = end
        window_end = self._window_start + len(self._window)
        if not self._window_start <= start < window_end:
            return self._fill(start, end)
        head = self._window[start - self._window_start : end - self._window_start]
        return head if end <= window_end else head + self._fill(window_end, end)

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(size)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def _fill(self, start: int, end: int) -> bytes:
        ahead = min(self._size, max(end, start + self._read_ahead))
        data = self._fetch(start, ahead)
        if len(data) != ahead - start:
            why = f"asked for {ahead - start} bytes at offset {start}, got {len(data)}"
            hint = "the file was replaced or cut while it was read, or the connection broke: try again"
            raise StorageError(f"cannot read {self.name}", why, hint)
        if end - start < self._read_ahead:  # a big read is not read twice: keeping it would only hold memory
            self._window, self._window_start = data, start
        return data[: end - start]

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")


def read_small(fs: FileSystem, path: str, most: int, size: int | None = None) -> bytes:
    """Read a whole file that is small in every real table.

    Args:
        most: the most bytes it may have.
        size: the size from a listing, which saves a request.

    Raises:
        BadDataError: the file is larger.
        NotFoundError, AccessError, StorageError: the file cannot be read.
    """
    data = b"" if size is not None and size > most else fs.read_bytes(path, 0, most + 1 if size is None else size)
    if max(len(data), size or 0) > most:
        why = f"it is a bomb, or larger than any file of its name is: {most:,} bytes"
        raise BadDataError(f"cannot use {fs.display(path)}", why, "look at it, and at who wrote it; then move it away")
    return data
