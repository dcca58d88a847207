"""Read text in blocks that each hold the end of a row, which Arrow's readers of CSV and JSON lines require."""

from __future__ import annotations

import atexit
import io
from threading import Event, Lock

MOST = 64 << 20
"""The longest row, in bytes."""

_BLOCK = 1 << 20


class LineBlocks:
    """A file for Arrow's streaming readers, which take each result of :meth:`read` as a block.

    Blocks have 1 MiB, or more if a row is longer. Blocks of 64 MiB for all files would take gigabytes, because Arrow
    reads 32 of them ahead, in a thread. This thread must end before the file is closed and before Python ends: it
    would abort the process. So use this object as a context manager.

    Args:
        has_quotes: a row does not end inside double quotes.

    Attributes:
        first: the first block.
    """

    closed = False

    def __init__(self, file: io.BufferedReader, *, has_quotes: bool) -> None:
        self._file, self._has_quotes, self._in_quotes = file, has_quotes, False
        self._reading, self._stops, self._ended = Lock(), False, Event()
        self.first = self._next()
        self._pending = self.first

    def __enter__(self) -> LineBlocks:
        atexit.register(self._stop)  # an error may keep the reader alive until then
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        atexit.unregister(self._stop)

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Do nothing: the file belongs to the caller."""

    def read(self, _: int = -1) -> bytes:
        """Return the next block, of any size; empty at the end."""
        with self._reading:
            block = b"" if self._stops else self._pending or self._next()
            self._pending = b""
        if not block:
            self._ended.set()
        return block

    def _stop(self) -> None:
        """End the file for Arrow's thread, and let it see that; a read that hangs is not waited for."""
        self._stops = True
        if self._reading.acquire(timeout=5):
            self._reading.release()
            self._ended.wait(0.1)  # in vain if the thread has ended because nothing takes its blocks

    def _next(self) -> bytes:
        block = self._file.read(_BLOCK)
        while not self._ends_row(block):
            if len(block) >= MOST:
                self._has_quotes = self._in_quotes = False  # probably a quote inside a text, which opens nothing
                break
            more = self._file.read(min(len(block), MOST - len(block)))
            if not more:
                break
            block += more
        if self._has_quotes:
            self._in_quotes ^= block.count(b'"') % 2 == 1
        return block

    def _ends_row(self, block: bytes) -> bool:
        """Return whether a row ends in a block; True for the empty block at the end of the file."""
        if not self._has_quotes:
            return not block or b"\n" in block or b"\r" in block
        at, in_quotes = 0, self._in_quotes
        while (quote := block.find(b'"', at)) >= 0:
            if not in_quotes and (block.find(b"\n", at, quote) >= 0 or block.find(b"\r", at, quote) >= 0):
                return True
            at, in_quotes = quote + 1, not in_quotes
        return not block or (not in_quotes and (block.find(b"\n", at) >= 0 or block.find(b"\r", at) >= 0))
