"""``memory://`` in tests: fsspec's store of this process.

With the storage option ``objects=true`` it is as poor as an object store: it has no rename and no directories, and a
file is not there before it is whole.
"""

from __future__ import annotations

import io
import posixpath
import threading
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, cast

import fsspec
from fsspec.implementations.memory import MemoryFile

from acidctl.acid.listing import Entry, Listing
from acidctl.base.errors import ConflictError
from acidctl.storage import os_errors
from acidctl.storage.port import Access, FileSystemSpec, base_name, parent_of
from acidctl.storage.ranged import clamp
from acidctl.storage.read_back import incomplete
from acidctl.storage.registry import AddedStore, add_store

_LOCK = threading.RLock()
"""One for all instances, since fsspec's store is one for the process."""


class MemoryFileSystem:
    """Works on fsspec's dictionaries themselves: its own calls rename by copying, expand ``*`` in names, and hand the
    same file object, with one position, to every reader.
    """

    def __init__(self, spec: FileSystemSpec | None = None) -> None:
        self.url = "memory://"
        self.spec = spec or FileSystemSpec("memory")
        self.can_rename = ("objects", "true") not in self.spec.options
        self.can_copy = True
        self.can_lock = True
        self.is_local = False
        self._fs: Any = fsspec.filesystem("memory")

    def display(self, path: str) -> str:
        return f"memory://{path}"

    def local_path(self, path: str) -> str | None:
        return None

    def list_tree(self, path: str, top: Listing | None = None) -> Listing:
        prefix = path.rstrip("/") + "/"
        with _LOCK:
            self._require_directory("list", path)
            found = {
                name[len(prefix) :]: self._entry(name, name[len(prefix) :])
                for name in [*self._fs.store, *self._fs.pseudo_dirs]
                if name.startswith(prefix) and name != prefix and not name.startswith(f"{prefix}/")
            }
            for name in list(found):  # a directory may be there only because something is in it
                while name := name.rpartition("/")[0]:
                    found.setdefault(name, Entry(name, 0, None, True))
        return Listing(path, tuple(found[name] for name in sorted(found)))

    def list_dir(self, path: str) -> Listing:
        return Listing(path, tuple(entry for entry in self.list_tree(path).entries if "/" not in entry.path))

    def stat(self, path: str) -> Entry:
        with _LOCK:
            if not self.exists(path):
                raise os_errors.missing("look at", self.display(path))
            return self._entry(path, base_name(path))

    def exists(self, path: str) -> bool:
        with _LOCK:
            return path in self._fs.store or self._is_directory(path)

    def open_input(self, path: str) -> BinaryIO:
        return io.BytesIO(self.read_bytes(path))

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with _LOCK:
            file = self._fs.store.get(path)
            if file is None:
                shown = self.display(path)
                raise (os_errors.is_a_directory if self._is_directory(path) else os_errors.missing)("read", shown)
            data: bytes = file.getvalue()
        start, end = clamp(offset, length, len(data))
        return data[start:end]

    def write_bytes(self, path: str, data: bytes) -> None:
        self._create(path, data)

    def create_exclusive(self, path: str, data: bytes) -> None:
        self._create(path, data)

    def access(self, path: str) -> Access | None:
        return None

    def access_below(self, path: str, name: str | None = None) -> dict[str, Access]:
        return {}

    def set_access(self, path: str, access: Access) -> None:
        pass

    def open_output(self, path: str, *, private: bool = False) -> BinaryIO:
        if self.can_rename:
            file = self._create(path, b"")
            return cast(BinaryIO, _MemoryOutput(lambda data: self._fill(file, data)))
        with _LOCK:
            if self.exists(path):
                raise os_errors.already_exists("create", self.display(path))
        return cast(BinaryIO, _MemoryOutput(lambda data: self._create(path, data)))

    def make_dirs(self, path: str, *, below: str = "") -> None:
        if not self.can_rename:  # it has no directories
            return
        with _LOCK:
            if below and not self._is_directory(below):
                raise os_errors.missing("create", self.display(path))
            while path != "/":
                if path in self._fs.store:
                    raise ConflictError(f"cannot create {self.display(path)}", "a file is there", "use another path")
                if path not in self._fs.pseudo_dirs:
                    self._fs.pseudo_dirs.append(path)
                path = parent_of(path)

    def rename(self, source: str, target: str) -> None:
        doing = f"rename {self.display(source)} to"
        if not self.can_rename:
            raise os_errors.cannot_rename(self.display(source), self.url)
        with _LOCK:
            if not self.exists(source):
                raise os_errors.missing("rename", self.display(source))
            if self.exists(target):
                raise os_errors.already_exists(doing, self.display(target))
            if target.startswith(source + "/"):
                raise ConflictError(f"cannot {doing} {self.display(target)}", "the target lies inside the source")
            if not self._is_directory(parent_of(target)):
                raise os_errors.missing(f"rename {self.display(source)} into", self.display(parent_of(target)))
            self.make_dirs(parent_of(source))  # which is not to vanish with the last thing in it
            self.make_dirs(parent_of(target))
            for name in [name for name in self._fs.store if _is_within(name, source)]:
                file = self._fs.store.pop(name)
                file.path = target + name[len(source) :]
                self._fs.store[file.path] = file
            self._fs.pseudo_dirs[:] = [
                target + name[len(source) :] if _is_within(name, source) else name for name in self._fs.pseudo_dirs
            ]

    def copy(self, source: str, target: str) -> None:
        with _LOCK:
            self._create(target, self.read_bytes(source))

    def replace(self, source: str, target: str) -> None:
        if not self.can_rename:
            raise os_errors.cannot_rename(self.display(source), self.url)
        with _LOCK:
            for path in (source, target):
                if path not in self._fs.store:
                    raise os_errors.missing("rename" if path == source else "replace", self.display(path))
            self.make_dirs(parent_of(source))
            file = self._fs.store.pop(source)
            file.path = target
            self._fs.store[target] = file

    def remove_tree(self, path: str) -> None:
        if path == "/":
            raise os_errors.root_is_kept(self.display(path))
        with _LOCK:
            if not self.exists(path):
                raise os_errors.missing("remove", self.display(path))
            self.make_dirs(parent_of(path))
            for name in [name for name in self._fs.store if _is_within(name, path)]:
                del self._fs.store[name]
            self._fs.pseudo_dirs[:] = [name for name in self._fs.pseudo_dirs if not _is_within(name, path)]

    def remove_empty(self, path: str) -> None:
        with _LOCK:
            if self.exists(path) and not self.list_dir(path).entries:
                self.remove_tree(path)

    def __reduce__(self) -> tuple[type[MemoryFileSystem], tuple[FileSystemSpec]]:
        return type(self), (self.spec,)

    def _create(self, path: str, data: bytes) -> Any:
        with _LOCK:
            if self.exists(path):
                raise os_errors.already_exists("create", self.display(path))
            self.make_dirs(parent_of(path))
            file = self._fs.store[path] = MemoryFile(self._fs, path, data)
            self._require_whole(file, data)
            return file

    def _fill(self, file: Any, data: bytes) -> None:
        with _LOCK:
            file.seek(0)
            file.write(data)
            self._require_whole(file, data)

    def _require_whole(self, file: Any, data: bytes) -> None:
        """As of every store; this one has been heard to run out of memory only."""
        if file.size != len(data):
            raise incomplete(self.display(file.path), len(data), file.size)

    def _entry(self, name: str, relative: str) -> Entry:
        file = self._fs.store.get(name)
        return Entry(relative, 0, None, True) if file is None else Entry(relative, file.size, _modified(file), False)

    def _is_directory(self, path: str) -> bool:
        prefix = path + "/"
        return (
            path == "/"
            or path in self._fs.pseudo_dirs
            or any(name.startswith(prefix) for name in [*self._fs.store, *self._fs.pseudo_dirs])
        )

    def _require_directory(self, doing: str, path: str) -> None:
        if path in self._fs.store:
            raise os_errors.not_a_directory(doing, self.display(path))
        if not self._is_directory(path):
            raise os_errors.missing(doing, self.display(path))


class _MemoryOutput(io.BytesIO):
    """Bytes that are in the store once ``close()`` has returned, wherever the file was renamed to meanwhile."""

    def __init__(self, arrive: Callable[[bytes], None]) -> None:
        super().__init__()
        self._arrive = arrive

    def close(self) -> None:
        if not self.closed:
            data = self.getvalue()
            super().close()
            self._arrive(data)


def _is_within(name: str, path: str) -> bool:
    return name == path or name.startswith(path + "/")


def _modified(file: Any) -> float:
    modified: float = file.modified.timestamp()
    return modified


def _locate(authority: str, path: str, options: Mapping[str, str]) -> tuple[FileSystemSpec, str]:
    own = tuple(item for item in options.items() if item == ("objects", "true"))
    return FileSystemSpec("memory", own), "/" + posixpath.normpath(f"/{authority}{path}").lstrip("/")


def install() -> None:
    """From now on ``memory://`` URLs work in this process."""
    add_store("memory", AddedStore(_locate, MemoryFileSystem, is_shared=False))
