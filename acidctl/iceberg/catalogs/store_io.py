"""Let PyIceberg read and write its metadata by acidctl's own stores, with their logins."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any, cast

from pyiceberg.catalog import Catalog
from pyiceberg.io import PY_IO_IMPL, FileIO, InputFile, InputStream, OutputFile, OutputStream

from acidctl.base.errors import NotFoundError
from acidctl.iceberg.copy import open_file
from acidctl.storage.port import FileSystem, parent_of
from acidctl.storage.registry import open_location

_STORAGE = "acidctl.storage"
"""The property of a catalog in this process with the options of the stores."""


class StoreIO(FileIO):
    """The files of all stores that acidctl knows.

    Args:
        properties: of the catalog; :func:`use_stores` puts the options of the stores there.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        super().__init__(dict(properties))
        self._storage: Mapping[str, str] | None = properties.get(_STORAGE)

    def new_input(self, location: str) -> InputFile:
        """Return a file to read."""
        return _Input(location, *open_file(location, self._storage))

    def new_output(self, location: str) -> OutputFile:
        """Return a file to write; its directory is made."""
        _make_folder(location.rpartition("/")[0], self._storage)
        return _Output(location, *open_file(location, self._storage))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Remove a file."""
        fs, path = open_file(location if isinstance(location, str) else location.location, self._storage)
        fs.remove_tree(path)


def store_io(storage: Mapping[str, str] | None) -> StoreIO:
    """Return the files of all stores by these options."""
    return StoreIO({_STORAGE: storage})


def use_stores(catalog: Catalog, storage: Mapping[str, str] | None) -> None:
    """Let a catalog reach its tables' metadata as acidctl reaches their data, unless its settings name another way."""
    if not catalog.properties.get(PY_IO_IMPL):
        name = f"{StoreIO.__module__}.{StoreIO.__qualname__}"
        catalog.properties = {**catalog.properties, PY_IO_IMPL: name, _STORAGE: cast(str, storage)}


def _make_folder(url: str, storage: Mapping[str, str] | None) -> None:
    """Make a directory, from the nearest one that exists: a store that follows no links cannot begin elsewhere."""
    fs, path = open_location(url, storage)
    folder = path
    while fs.is_local and path != "/":
        try:
            fs.stat(path)
            break
        except NotFoundError:
            path = parent_of(path)
            fs, _ = open_location(path, storage)
    fs.make_dirs(folder)


class _File:
    """A file of a store, as PyIceberg's classes of files want it."""

    def __init__(self, location: str, fs: FileSystem, path: str) -> None:
        super().__init__(location)  # type: ignore[call-arg]
        self._fs, self._path = fs, path

    def __len__(self) -> int:
        return self._fs.stat(self._path).size

    def exists(self) -> bool:
        return self._fs.exists(self._path)


class _Input(_File, InputFile):
    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002 - PyIceberg's signature
        return cast(InputStream, self._fs.open_input(self._path))


class _Output(_File, OutputFile):
    def to_input_file(self) -> InputFile:
        return _Input(self.location, self._fs, self._path)

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: ARG002 - names are never used twice
        return cast(OutputStream, _NewFile(self._fs, self._path))


class _NewFile(BytesIO):
    """A file that is written at its end: those of Iceberg's metadata are small."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        super().__init__()
        self._fs, self._path = fs, path

    def close(self) -> None:
        if not self.closed:
            data = self.getvalue()
            super().close()
            self._fs.write_bytes(self._path, data)
