"""Access any store that fsspec has an implementation for: S3, Google Cloud Storage, Azure, SFTP..."""

from __future__ import annotations

import asyncio
import errno
import io
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, BinaryIO, cast

import fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.registry import known_implementations

from acidctl.acid.listing import Entry, Listing
from acidctl.base.errors import (
    AccessError,
    AcidctlError,
    ConflictError,
    EnvironmentProblem,
    NotFoundError,
    StorageError,
    UsageProblem,
)
from acidctl.base.printable import printable
from acidctl.storage import os_errors
from acidctl.storage.pace import BYTES, CALLS
from acidctl.storage.port import Access, FileSystemSpec, base_name
from acidctl.storage.ranged import RangedReader, behind_the_end, clamp
from acidctl.storage.read_back import require_content, require_length
from acidctl.storage.remote import RemoteStore
from acidctl.storage.retry import PassingError, RetryPolicy

_EXTRAS = {"s3": "'acidctl[s3]'", "gs": "gcsfs", "abfs": "adlfs", "sftp": "paramiko", "http": "aiohttp"}
_EXCLUSIVE_CREATE = {"s3", "gs", "abfs"}
"""Stores whose fsspec adapter sends a condition with ``mode="create"`` that the server checks."""

_WHOLE_COPY = {"s3", "gs"}
"""Stores whose fsspec adapter copies inside the store, and whose copy appears only once it is whole.  Azure's adapter
starts a copy and does not wait for its end.
"""

_WITHOUT_DIRECTORIES = {"s3", "gs", "abfs", "oss", "http", "https"}
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
_GLOB = set("*?[")
_BATCH = 1000
_CONNECT_TIMEOUT = 10.0
_LEGACY_MARKER = "_$folder$"
"""The suffix of an empty object by which EMR's and Hadoop's first S3 clients mark a directory; they hide it."""


class FsspecFileSystem(RemoteStore):
    """One bucket or host of a store.  It cannot rename: object stores copy, and others may nest or replace."""

    def __init__(self, spec: FileSystemSpec) -> None:
        super().__init__(spec)
        self.can_rename = False
        self.can_copy = spec.protocol in _WHOLE_COPY
        self.can_lock = spec.protocol in _EXCLUSIVE_CREATE
        self._protocol = spec.protocol
        self._fs, self._root = _connect(spec, self.url)
        # S3's adapter repeats requests and lists by pages, so its requests themselves are counted.
        self._counts_requests = spec.protocol == "s3"
        if self._counts_requests:
            self._fs.acidctl_pace = self._pace
        self._has_directories = spec.protocol not in _WITHOUT_DIRECTORIES

    def list_tree(self, path: str, top: Listing | None = None) -> Listing:  # noqa: ARG002 - one listing is enough
        with self._mapped("list", path):
            # fsspec's own find() silently leaves out what it may not read; a store's find() is one listing.
            infos = list(self._find(path).values() if self._finds_at_once() else self._descend(path))
        return self._tails.listed(self._listing(path, infos, whole=True), whole=True)

    def list_dir(self, path: str) -> Listing:
        with self._mapped("list", path):
            infos = self._children(path)
        return self._tails.listed(self._listing(path, infos, whole=False), whole=False)

    def stat(self, path: str) -> Entry:
        with self._mapped("look at", path):
            return self._tails.looked(path, _entry(self._info(path), base_name(path)))

    def open_input(self, path: str) -> BinaryIO:
        entry = self.stat(path)
        if entry.is_dir:
            raise os_errors.is_a_directory("read", self.display(path))
        if isinstance(self._fs, AsyncFileSystem):
            reader = RangedReader(lambda start, end: self._fetch(path, start, end), entry.size, self.display(path))
            return cast(BinaryIO, reader)
        with self._mapped("read", path):  # a range of its own would open the file again for every piece
            return cast(BinaryIO, self._fs.open(self._inner(path), "rb"))

    def _read(self, path: str, offset: int, length: int | None) -> bytes:
        if offset >= 0 and length:  # the common case needs no request for the size first
            try:
                return self._fetch(path, offset, offset + length)
            except StorageError as error:  # some stores refuse a range that begins at or after the end
                return behind_the_end(error, offset, lambda: self.stat(path).size)
        entry = self.stat(path)
        if entry.is_dir:
            raise os_errors.is_a_directory("read", self.display(path))
        start, end = clamp(offset, length, entry.size)
        return self._fetch(path, start, end) if start < end else b""

    def write_bytes(self, path: str, data: bytes) -> None:
        if self._protocol in _EXCLUSIVE_CREATE:
            self._create(path, data)
        else:
            self._require_free(path)
            self._pace.passed(len(data))
            with self._mapped("create", path):
                self._fs.pipe_file(self._inner(path), data)
        self.require_arrived(path, len(data))

    def create_exclusive(self, path: str, data: bytes) -> None:
        if self._protocol not in _EXCLUSIVE_CREATE:
            why = f"{self._protocol}:// has no create that only one of several writers wins"
            raise StorageError(f"cannot create {printable(self.display(path))} exclusively", why)
        self._create(path, data)
        self._await(path)
        require_content(self, path, data)

    def _create(self, path: str, data: bytes) -> None:
        self._require_free(path)
        self._pace.passed(len(data))
        try:
            with self._mapped("create", path):
                self._fs.pipe_file(self._inner(path), data, mode="create")
        except ConflictError:
            # If the first answer is lost, the package repeats the request by itself, and finds its own file.  If this
            # cannot be read now, nobody knows whose it is: a conflict would let the caller remove what it has written.
            if not data or self.read_bytes(path) != data:
                raise

    def require_arrived(self, path: str, written: int) -> None:
        """Refuse, by StorageError, a new file that the store does not show in its full length."""
        require_length(self, path, written, look=self._await)

    def _await(self, path: str) -> Entry:
        """Return the entry at a path, waiting a moment for it: few S3 servers show new files as soon as Amazon's."""

        def look() -> Entry:
            try:
                return self.stat(path)
            except NotFoundError as error:
                raise PassingError(error.what, error.why, error.hint) from error

        try:
            return RetryPolicy().call(look)
        except PassingError as error:
            raise NotFoundError(error.what, error.why, error.hint) from error

    def access(self, path: str) -> Access | None:  # noqa: ARG002 - these stores have no owners
        return None

    def access_below(self, path: str, name: str | None = None) -> dict[str, Access]:  # noqa: ARG002
        return {}

    def set_access(self, path: str, access: Access) -> None:
        pass

    def open_output(self, path: str, *, private: bool = False) -> BinaryIO:  # noqa: ARG002
        self._require_free(path)
        with self._mapped("create", path):
            mode = "xb" if self._protocol == "s3" else "wb"
            return cast(BinaryIO, _MappedOutput(self, path, self._fs.open(self._inner(path), mode)))

    def make_dirs(self, path: str, *, below: str = "") -> None:
        if not self._has_directories:  # fsspec would make a bucket
            return
        if below:
            self.stat(below)
        with self._mapped("create", path):
            self._fs.makedirs(self._inner(path), exist_ok=True)

    def rename(self, source: str, target: str) -> None:  # noqa: ARG002 - never done
        raise os_errors.cannot_rename(self.display(source), f"{self._protocol}://")

    def replace(self, source: str, target: str) -> None:
        self.rename(source, target)

    def copy(self, source: str, target: str) -> None:
        if not self.can_copy:
            raise os_errors.cannot_copy(self.display(source))
        entry = self.stat(source)
        if entry.is_dir:
            raise os_errors.is_a_directory("copy", self.display(source))
        self._require_free(target)
        with self._mapped("create", target):
            # S3 checks this up to 5 GB; gcsfs, and s3fs for what is larger, leave the condition out.
            self._fs.cp_file(self._inner(source), self._inner(target), IfNoneMatch="*")
        self.require_arrived(target, entry.size)

    def remove_tree(self, path: str) -> None:
        if path == "/":
            raise os_errors.root_is_kept(self.display(path))
        self._tails.forget()
        entry = self.stat(path)
        if not entry.is_dir:
            if not self._has_directories and self._is_prefix(path):
                self._remove_marker(path, entry)
            else:
                with self._mapped("remove", path):
                    self._fs.rm_file(self._inner(path))
                return
        with self._mapped("remove", path):
            listed = self._find(path).values() if self._finds_at_once() else self._descend(path)
            infos = sorted(listed, key=lambda info: str(info["name"]), reverse=True)
            self._remove_files([info["name"] for info in infos if info["type"] != "directory"])
            if self._has_directories:
                for info in infos:
                    if info["type"] == "directory" and info["name"].rstrip("/") != self._inner(path):
                        self._fs.rmdir(info["name"])
                self._fs.rmdir(self._inner(path))
            elif self._protocol == "s3":
                # An empty object named "dir/", Hadoop's directory, which s3fs lists but has no call to remove: left
                # behind, it would still be an (empty) base to every reader.
                for info in infos:
                    if info["name"].endswith("/"):
                        self._fs.call_s3("delete_object", Bucket=self._root, Key=info["name"][len(self._root) + 1 :])
        if self.exists(path):
            why = "something is still there after everything listed was removed"
            hint = "something writes into it, or the store keeps directory markers: look with the store's own tool"
            raise StorageError(f"cannot remove {printable(self.display(path))}", why, hint)

    def _is_prefix(self, path: str) -> bool:
        """Return whether something lies below the path of an object, which is then a directory, too."""
        with self._mapped("list", path):
            self._fs.invalidate_cache()
            return any(
                name.rstrip("/") != self._inner(path) for name in self._fs.find(self._inner(path), withdirs=True)
            )

    def _remove_marker(self, path: str, entry: Entry) -> None:
        """Remove the empty object that marks a directory; an object with content is somebody's file."""
        if entry.size:
            hint = "look with the store's own tool which of them is meant, and move the other away"
            raise StorageError(
                f"cannot remove {printable(self.display(path))}", "a file and a directory have this name", hint
            )
        with self._mapped("remove", path):
            self._fs.rm_file(self._inner(path))

    def remove_empty(self, path: str) -> None:
        # fsspec has no such call; in stores without directories an empty directory does not exist.
        if self.exists(path) and not self.list_dir(path).entries:
            self.remove_tree(path)

    def _remove_files(self, names: list[str]) -> None:
        if isinstance(self._fs, AsyncFileSystem):  # many in one call
            # But rm treats *, ? and [ as patterns, and S3's XML has no control characters.
            simple = [name for name in names if name.isprintable() and not _GLOB & set(name)]
            for start in range(0, len(simple), _BATCH):
                self._fs.rm(simple[start : start + _BATCH])
            names = sorted(set(names) - set(simple))
        for name in names:
            self._fs.rm_file(name)

    def _inner(self, path: str) -> str:
        return self._root + path if path != "/" else self._root or "/"

    def _info(self, path: str) -> dict[str, Any]:
        self._fs.invalidate_cache()
        return dict(self._fs.info(self._inner(path)))

    def _fetch(self, path: str, start: int, end: int) -> bytes:
        with self._mapped("read", path):
            data = bytes(self._fs.cat_file(self._inner(path), start=start, end=end))
        self._pace.passed(len(data))
        return data

    def _finds_at_once(self) -> bool:
        if isinstance(self._fs, AsyncFileSystem):
            return type(self._fs)._find is not AsyncFileSystem._find
        return type(self._fs).find is not fsspec.AbstractFileSystem.find

    def _find(self, path: str) -> dict[str, dict[str, Any]]:
        self._fs.invalidate_cache()
        # If a file and a directory have one name, s3fs keeps the directory, which keys imply anyway.
        withdirs = self._protocol != "s3"
        infos: dict[str, dict[str, Any]] = self._fs.find(self._inner(path), withdirs=withdirs, detail=True)
        if not infos or (list(infos) == [self._inner(path)] and infos[self._inner(path)]["type"] != "directory"):
            self._require_directory(path)
        return infos

    def _children(self, path: str) -> list[dict[str, Any]]:
        self._fs.invalidate_cache()
        infos = list(self._fs.ls(self._inner(path), detail=True))
        if len(infos) == 1 and infos[0]["name"].rstrip("/") == self._inner(path):
            self._require_directory(path)
        return [info for info in infos if info["name"].rstrip("/") != self._inner(path)]

    def _descend(self, path: str) -> Iterator[dict[str, Any]]:
        waiting = [path]
        while waiting:
            for info in self._children(waiting.pop()):
                yield info
                if info["type"] == "directory":
                    waiting.append(info["name"].rstrip("/")[len(self._root) :])

    def _require_directory(self, path: str) -> None:
        if path != "/" and self._info(path)["type"] != "directory":
            raise os_errors.not_a_directory("list", self.display(path))

    def _listing(self, path: str, infos: list[dict[str, Any]], *, whole: bool) -> Listing:
        prefix = len(self._inner(path).rstrip("/")) + 1
        directories: dict[str, Entry] = {}
        files: list[Entry] = []
        for info in infos:
            relative = info["name"][prefix:]
            # The directory itself, or a key like "table//x", which has no path: Hadoop leaves it out, too.
            if not relative or relative.startswith("/"):
                continue
            if info.get("size") == 0 and relative.endswith(_LEGACY_MARKER):
                continue
            if info["type"] == "directory" or relative.endswith("/"):
                entry = _entry(info | {"type": "directory"}, relative.rstrip("/"))
                directories[entry.path] = entry
            else:
                files.append(_entry(info, relative))
        for entry in files:  # not every store names the directories that its keys imply
            name = entry.path
            while name := name.rpartition("/")[0].rstrip("/"):
                directories.setdefault(name, Entry(name, 0, None, True))
        # An empty object with a directory's name is another old marker of a directory.
        files = [entry for entry in files if entry.size or entry.path not in directories]
        if whole and (both := [entry.path for entry in files if entry.path in directories]):
            # An object called "name/" is not a directory if nothing is below it and "name" has content.
            parents = {name.rpartition("/")[0] for name in (*directories, *(entry.path for entry in files))}
            for name in both:
                if name not in parents:
                    del directories[name]
        return Listing(path, tuple(sorted([*files, *directories.values()], key=lambda entry: entry.path)))

    @contextmanager
    def _mapped(self, doing: str, path: str) -> Iterator[None]:
        """Map all errors to acidctl's, since any library may stand behind fsspec, with errors of its own."""
        shown = self.display(path)
        if not self._counts_requests:
            self._pace.begin()
        try:
            yield
        except AcidctlError:
            raise
        except OSError as error:
            raise os_errors.from_os_error(error, doing, shown) from error
        except Exception as error:
            name = type(error).__name__
            what, why = f"cannot {doing} {printable(shown)}", printable(f"{name}: {error}")
            if "Credential" in name or "Auth" in name or "Token" in name:
                raise AccessError(what, why, f"give the credentials for {self.url}") from error
            raise StorageError(what, why, f"check that {self.url} can be reached and the storage options") from error


class _MappedOutput(io.RawIOBase):
    """An fsspec file being written, whose errors are mapped to acidctl's."""

    def __init__(self, fs: FsspecFileSystem, path: str, inner: Any) -> None:
        super().__init__()
        self._fs, self._path, self._inner = fs, path, inner
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        with self._fs._mapped("write", self._path):
            size: int = self._inner.write(data)
        self._fs._pace.passed(size)
        self._written += size
        return size

    def tell(self) -> int:
        position: int = self._inner.tell()
        return position

    def close(self) -> None:
        if not self.closed:
            try:
                with self._fs._mapped("write", self._path):
                    self._inner.close()
            finally:
                super().close()
            self._fs.require_arrived(self._path, self._written)


def _connect(spec: FileSystemSpec, url: str) -> tuple[Any, str]:
    """Return the fsspec file system and the prefix of paths in it: a bucket, or nothing."""
    protocol = spec.protocol
    try:
        cls = fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        package = _EXTRAS.get(protocol)
        hint = f"pip install {package}" if package else str(known_implementations.get(protocol, {}).get("err", ""))
        raise EnvironmentProblem(f"cannot open {url}", f"its Python package is missing: {error}", hint) from error
    except ValueError as error:
        hint = "use a path, webhdfs:// or s3://"
        raise UsageProblem(f"cannot open {url}", f"unknown scheme {protocol}://", hint) from error
    # A cached listing would show entries that a compaction has since removed.
    own = spec.options if protocol != "s3" else _with_retries(spec)
    given = _nested(tuple(pair for pair in own if pair[0] not in (CALLS, BYTES)))
    options = {"use_listings_cache": False, **cls._get_kwargs_from_urls(f"{url}/x"), **given}
    try:
        root = str(cls._strip_protocol(f"{url}/x")).removesuffix("/x")
        fs = cls(**options)
        if protocol == "s3":
            _require_listings(fs)
        return fs, root
    except ImportError as error:
        hint = f"pip install {_EXTRAS.get(protocol, protocol)}"
        raise EnvironmentProblem(f"cannot open {url}", f"a Python package is missing: {error}", hint) from error
    except (TypeError, ValueError) as error:
        raise UsageProblem(f"cannot open {url}", str(error), "check the storage options") from error
    except OSError as error:
        raise os_errors.from_os_error(error, "open", url) from error


def _require_listings(fs: Any) -> None:
    """Make s3fs refuse answers that are not listings, which it would take for empty directories, and keep its pace."""
    if "_call_s3" in vars(fs):  # fsspec returns the same object for the same options
        return
    call = fs._call_s3

    async def checked(method: str, *arguments: Any, **more: Any) -> Any:
        if wait := fs.acidctl_pace.turn():
            await asyncio.sleep(wait)
        answer = await call(method, *arguments, **more)
        if method == "list_objects_v2" and not answer.keys() - {"ResponseMetadata"}:
            raise OSError(errno.EIO, "the server answered with success and without a listing")
        return answer

    fs._call_s3 = checked


def _with_retries(spec: FileSystemSpec) -> tuple[tuple[str, Any], ...]:
    """Return ``timeout`` and ``retries`` under the names of S3's client, which repeats requests by itself."""
    options: dict[str, Any] = dict(spec.options)
    policy = RetryPolicy.of(options)
    if options.pop("timeout", None):
        options["config_kwargs.read_timeout"] = policy.timeout
        options["config_kwargs.connect_timeout"] = min(policy.timeout, _CONNECT_TIMEOUT)
    if options.pop("retries", None):
        options["config_kwargs.retries.max_attempts"] = policy.retries
    return tuple(sorted(options.items()))


def _nested(options: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """Turn ``true`` and ``false`` into booleans, and put ``client_kwargs.region_name`` into a dictionary."""
    nested: dict[str, Any] = {}
    for key, value in options:
        *outer, last = key.split(".")
        inner = nested
        for name in outer:
            inner = inner.setdefault(name, {})
        inner[last] = {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value
    return nested


def _entry(info: dict[str, Any], path: str) -> Entry:
    is_dir = info["type"] == "directory"
    return Entry(path, 0 if is_dir else int(info.get("size") or 0), _modified(info), is_dir)


def _modified(info: dict[str, Any]) -> float | None:
    value = next((info[key] for key in _TIMES if info.get(key)), None)
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) else None
