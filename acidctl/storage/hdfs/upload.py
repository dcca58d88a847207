"""A new file that is sent over HTTP while it is written; at most a few megabytes wait in memory."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

from acidctl.errors import StorageError
from acidctl.storage.hdfs.new_file import NewFile
from acidctl.storage.os_errors import printable

_CHUNKS_WAITING = 4


class CutShortError(StorageError):
    """The server said that it has all before it had: the file is ours, and not whole."""


class Upload(NewFile):
    """A raw file over a function that takes an iterator.

    Args:
        create: ``create(path, chunks)`` makes the file; called in a thread of its own.
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
            raise self._error or CutShortError(
                f"cannot write {printable(self._shown)}",
                f"the server ended the transfer after about {self.tell():,} bytes and said that all is well",
                "look whether it is full or a quota is used up, then run it again",
            )

    def _run(self) -> None:
        try:
            self._create(self._path, iter(self._chunks.get, None))
        except BaseException as error:  # noqa: BLE001 - raised in the writer's thread
            self._error = error
