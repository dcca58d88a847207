"""Share the code of all stores behind a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from acidctl.acid.listing import Entry
from acidctl.errors import AcidctlError, NotFoundError
from acidctl.storage import os_errors
from acidctl.storage.port import FileSystemSpec
from acidctl.storage.tail_cache import TailCache


class RemoteStore(ABC):
    """The part of :class:`acidctl.storage.port.FileSystem` that needs only :meth:`stat` and :meth:`_read`."""

    def __init__(self, spec: FileSystemSpec) -> None:
        self.spec = spec
        self.url = f"{spec.protocol}://{spec.authority}"
        self.is_local = False
        self._tails = TailCache()

    @abstractmethod
    def stat(self, path: str) -> Entry: ...

    @abstractmethod
    def _read(self, path: str, offset: int, length: int | None) -> bytes:
        """Read a range as :meth:`read_bytes` does, but from the store, not from memory."""

    def display(self, path: str) -> str:
        return self.url + path

    def local_path(self, path: str) -> str | None:  # noqa: ARG002 - nothing here is on the disk
        return None

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except NotFoundError:
            return False
        return True

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._tails.read(path, offset, length, self._read)

    def _require_free(self, path: str) -> None:
        if self.exists(path):
            raise os_errors.already_exists("create", self.display(path))

    def _holds(self, path: str, data: bytes) -> bool:
        """Return whether a file holds this content; False if the store cannot tell."""
        try:
            return self.read_bytes(path) == data
        except AcidctlError:
            return False

    def __reduce__(self) -> tuple[type[Self], tuple[FileSystemSpec]]:
        return type(self), (self.spec,)
