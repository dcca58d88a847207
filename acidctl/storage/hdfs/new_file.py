"""Write files from start to end, complete once they are closed."""

from __future__ import annotations

import io
import queue
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from acidctl.base.errors import StorageError
from acidctl.base.printable import printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_CHUNKS_WAITING = 4


class NewFile(io.RawIOBase):
    """The common part of raw files over a store."""

    def __init__(self) -> None:
        super().__init__()
        self._position = 0
        self._failure: BaseException | None = None

    @abstractmethod
    def _send(self, chunk: bytes) -> None:
        """Pass on bytes, at least one."""

    @abstractmethod
    def _finish(self) -> None:
        """Finish the file after all bytes have been passed on."""

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: ReadableBuffer, /) -> int:
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        if self._failure is not None:  # a buffer above passes its bytes once more when it is closed
            raise self._failure
        chunk = bytes(data)
        if chunk:
            try:
                self._send(chunk)
            except BaseException as error:
                self._failure = error
                raise
            self._position += len(chunk)
        return len(chunk)

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        try:
            self._finish()
        except BaseException:
            if self._failure is None:
                raise
        if self._failure is not None:
            raise self._failure


class CutShortError(StorageError):
    """The server reported success before it had everything: the file is ours, and incomplete."""


class Upload(NewFile):
    """A raw file over a function that takes an iterator; at most a few megabytes wait in memory.

    Args:
        create: ``create(path, chunks)`` creates the file; it is called in a thread of its own.
        shown: the path for messages.
    """

    def __init__(self, create: Callable[[str, Iterator[bytes]], None], path: str, shown: str) -> None:
        super().__init__()
        self._create, self._path, self._shown = create, path, shown
        self._chunks: queue.Queue[bytes | None] = queue.Queue(_CHUNKS_WAITING)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="acidctl-upload", daemon=True)
        self._thread.start()

    def _send(self, chunk: bytes) -> None:
        self._put(chunk)

    def _finish(self) -> None:
        self._put(None, report=False)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _put(self, chunk: bytes | None, report: bool = True) -> None:
        while self._thread.is_alive():
            try:
                self._chunks.put(chunk, timeout=0.2)
            except queue.Full:  # the sender may have died meanwhile
                continue
            return
        if report:
            why = f"the server ended the transfer after about {self.tell():,} bytes and said that all is well"
            hint = "look whether it is full or a quota is used up, then run it again"
            raise self._error or CutShortError(f"cannot write {printable(self._shown)}", why, hint)

    def _run(self) -> None:
        try:
            self._create(self._path, iter(self._chunks.get, None))
        except BaseException as error:  # noqa: BLE001 - raised in the writer's thread
            self._error = error
