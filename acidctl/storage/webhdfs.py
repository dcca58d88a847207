"""HDFS over HTTP: ``webhdfs://`` and, with TLS, ``swebhdfs://``."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, cast

from acidctl.acid.listing import Entry, Listing
from acidctl.errors import AcidctlError, NotFoundError, StorageError
from acidctl.storage import problems
from acidctl.storage.port import FileSystemSpec, base_name, join
from acidctl.storage.ranged import RangedReader, clamp
from acidctl.storage.webhdfs_client import Upload, WebHdfsClient

_LISTERS = 8
_WRITE_BUFFER = 1 << 20


class WebHdfsFileSystem:
    """One HDFS.  Files and directories are created with the server's default permissions, by the spec's user."""

    def __init__(self, spec: FileSystemSpec) -> None:
        self.spec = spec
        self.url = f"{spec.protocol}://{spec.authority}"
        self.can_rename = True
        self._client = WebHdfsClient(spec)

    def display(self, path: str) -> str:
        return self.url + path

    def local_path(self, path: str) -> str | None:  # noqa: ARG002 - nothing here is on the disk
        return None

    def list_tree(self, path: str) -> Listing:
        """One LISTSTATUS a directory, the directories of one depth side by side."""
        entries: list[Entry] = []
        level = [""]
        with ThreadPoolExecutor(_LISTERS, "acidctl-list") as pool:
            while level:
                below: list[str] = []
                gone: set[str] = set()
                for prefix, found in zip(level, pool.map(lambda below: self._below(path, below), level), strict=True):
                    if found is None:
                        gone.add(prefix)
                        continue
                    entries += found
                    below += [entry.path for entry in found if entry.is_dir]
                if gone:
                    entries = [entry for entry in entries if entry.path not in gone]
                level = below
        return Listing(path, tuple(sorted(entries, key=lambda entry: entry.path)))

    def list_dir(self, path: str) -> Listing:
        return Listing(path, tuple(sorted(self._children(path, ""), key=lambda entry: entry.path)))

    def stat(self, path: str) -> Entry:
        return _entry(self._client.status(path, "look at"), base_name(path))

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except NotFoundError:
            return False
        return True

    def open_input(self, path: str) -> BinaryIO:
        size = self._file_size(path)
        return cast(
            BinaryIO,
            RangedReader(
                lambda start, end: self._client.read(path, start, end - start),
                size,
                problems.printable(self.display(path)),
            ),
        )

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        if offset >= 0 and length:  # the common case: one request, when all of it is there
            try:
                data = self._client.read(path, offset, length)
            except StorageError as error:  # HDFS refuses an offset behind the end
                try:
                    size = self._file_size(path)
                except AcidctlError:
                    raise error from None
                if offset < size:
                    raise
                return b""
            if len(data) == length:
                return data
        start, end = clamp(offset, length, self._file_size(path))
        data = self._client.read(path, start, end - start) if start < end else b""
        if len(data) != end - start:
            raise StorageError(
                f"cannot read {problems.printable(self.display(path))}",
                f"asked for {end - start} bytes at offset {start}, got {len(data)}",
                "the connection broke, or the file changes: try again",
            )
        return data

    def write_bytes(self, path: str, data: bytes) -> None:
        self.create_exclusive(path, data)

    def create_exclusive(self, path: str, data: bytes) -> None:
        self._require_free(path)  # else a big body meets a closed connection instead of the reason
        self._client.create(path, data)

    def open_output(self, path: str) -> BinaryIO:
        self._require_free(path)
        return cast(BinaryIO, io.BufferedWriter(Upload(self._client, path), _WRITE_BUFFER))

    def make_dirs(self, path: str) -> None:
        self._client.make_dirs(path)

    def rename(self, source: str, target: str) -> None:
        doing = f"rename {problems.printable(self.display(source))} to"
        if self.exists(target):  # the server refuses too, but HttpFS would nest
            raise problems.already_exists(doing, self.display(target))
        if not self._client.rename(source, target):
            nested = join(target, base_name(source))
            if base_name(source) != base_name(target) and self.exists(nested):
                raise StorageError(
                    f"cannot {doing} {problems.printable(self.display(target))}",
                    f"the target appeared meanwhile and HttpFS moved the source into it: {problems.printable(nested)}",
                    "move it out by hand; use the NameNode's WebHDFS, whose rename is safe",
                )

    def remove_tree(self, path: str) -> None:
        if path == "/":
            raise problems.root_is_kept(self.display(path))
        if not self._client.delete(path):
            raise problems.missing("remove", self.display(path))

    def __reduce__(self) -> tuple[type[WebHdfsFileSystem], tuple[FileSystemSpec]]:
        return type(self), (self.spec,)

    def _below(self, root: str, prefix: str) -> list[Entry] | None:
        """The children of a directory below `root`; None when it has vanished since its parent was listed."""
        try:
            return self._children(root, prefix)
        except NotFoundError:
            if not prefix:
                raise
            return None

    def _children(self, root: str, prefix: str) -> list[Entry]:
        directory = join(root, prefix) if prefix else root
        statuses = self._client.list_status(directory)
        # For a file, a NameNode answers with its status without a name, HttpFS with its name.
        if len(statuses) == 1 and statuses[0]["type"] != "DIRECTORY":
            name = statuses[0]["pathSuffix"]
            if not name or (name == base_name(directory) and not self.stat(directory).is_dir):
                raise problems.not_a_directory("list", self.display(directory))
        start = f"{prefix}/" if prefix else ""
        return [_entry(status, start + status["pathSuffix"]) for status in statuses]

    def _file_size(self, path: str) -> int:
        status = self._client.status(path, "read")
        if status["type"] == "DIRECTORY":
            raise problems.is_a_directory("read", self.display(path))
        return int(status["length"])

    def _require_free(self, path: str) -> None:
        if self.exists(path):
            raise problems.already_exists("create", self.display(path))


def _entry(status: dict[str, Any], path: str) -> Entry:
    is_dir = status["type"] == "DIRECTORY"
    return Entry(path, 0 if is_dir else int(status["length"]), status["modificationTime"] / 1000, is_dir)
