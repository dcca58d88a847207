"""A file that is written from start to end, and is complete once it is closed."""

from __future__ import annotations

import io
from abc import abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class NewFile(io.RawIOBase):
    """What raw files over a store have in common."""

    def __init__(self) -> None:
        super().__init__()
        self._position = 0
        self._failure: BaseException | None = None

    @abstractmethod
    def _send(self, chunk: bytes) -> None:
        """Pass on bytes, of which there is at least one."""

    @abstractmethod
    def _finish(self) -> None:
        """All has been passed on."""

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: ReadableBuffer, /) -> int:
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        if self._failure is not None:  # a buffer above gives its bytes once more when it is closed
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
