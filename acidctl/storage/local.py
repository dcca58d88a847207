"""The local disk (and whatever is mounted on it): one scandir walk, exclusive creates, durable writes, safe renames."""

# ruff: noqa: PTH103, PTH105, PTH108, PTH112, PTH113, PTH116, PTH118, PTH120, PTH123, PTH106
# Paths stay text: pathlib would fold "//" and ".", and an object a call buys nothing here.
from __future__ import annotations

import errno
import io
import os
import shutil
import stat
from typing import BinaryIO, cast

from acidctl.acid.listing import Entry, Listing
from acidctl.errors import BadDataError, ConflictError, StorageError
from acidctl.storage import problems
from acidctl.storage.local_rename import rename_no_replace
from acidctl.storage.local_walk import list_children, list_everything
from acidctl.storage.port import FileSystemSpec, base_name, parent_of
from acidctl.storage.ranged import clamp

_WRITE_BUFFER = 128 << 10  # larger pieces go to the disk as they come, and are not copied once more
_READ_CHUNK = 1 << 30  # one read call never returns more than 2 GiB on Linux
_CHECKSUM_MAGIC = b"crc\0"


class LocalFileSystem:
    """Files of this machine.  Names that are not UTF-8 are kept, by Python's surrogateescape.

    Hadoop's local file system keeps a checksum of `name` in a hidden `.name.crc` beside it and refuses to read `name`
    when the two differ; so the checksum file moves and goes with its file, and never outlives it under a new one.
    """

    def __init__(self, spec: FileSystemSpec | None = None) -> None:
        self.url = "file://"
        self.can_rename = True
        self.can_copy = False
        self.spec = spec or FileSystemSpec("file")

    def display(self, path: str) -> str:
        return path

    def local_path(self, path: str) -> str | None:
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            return None  # C++ libraries take UTF-8 only; open_input takes any name
        return path

    def list_tree(self, path: str, top: Listing | None = None) -> Listing:
        with problems.mapped("list", path):
            return Listing(path, tuple(list_everything(path, top.entries if top else None)))

    def list_dir(self, path: str) -> Listing:
        with problems.mapped("list", path):
            return Listing(path, tuple(list_children(path)))

    def stat(self, path: str) -> Entry:
        with problems.mapped("look at", path):
            info = os.stat(path)
        is_dir = stat.S_ISDIR(info.st_mode)
        return Entry(base_name(path), info.st_size if stat.S_ISREG(info.st_mode) else 0, info.st_mtime, is_dir)

    def exists(self, path: str) -> bool:
        with problems.mapped("look at", path):
            try:
                os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def open_input(self, path: str) -> BinaryIO:
        descriptor, _ = _open_file(path)
        return cast(BinaryIO, open(descriptor, "rb"))  # the caller closes it

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        descriptor, size = _open_file(path)
        try:
            start, end = clamp(offset, length, size)
            chunks = []
            with problems.mapped("read", path):
                while start < end:
                    chunk = os.pread(descriptor, min(_READ_CHUNK, end - start), start)
                    if not chunk:  # cut by somebody else meanwhile
                        break
                    chunks.append(chunk)
                    start += len(chunk)
        finally:
            os.close(descriptor)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def write_bytes(self, path: str, data: bytes) -> None:
        self.create_exclusive(path, data)

    def create_exclusive(self, path: str, data: bytes) -> None:
        output = self.open_output(path)
        try:
            with output:
                output.write(data)
        except BaseException:
            with problems.mapped("remove", path):
                os.unlink(path)  # ours, since O_EXCL let us make it; half a file must not look like a whole one
            raise

    def open_output(self, path: str) -> BinaryIO:
        with problems.mapped("create", path):
            raw = _DurableFile(path)
            _remove_checksum(path)
        return cast(BinaryIO, io.BufferedWriter(raw, _WRITE_BUFFER))

    def make_dirs(self, path: str) -> None:
        with problems.mapped("create", path):
            os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        doing = f"rename {problems.printable(source)} to"
        with problems.mapped(doing, target):
            if not os.path.lexists(source):
                raise problems.missing("rename", source)
            is_file = not os.path.isdir(source)
            try:
                rename_no_replace(source, target)
            except FileExistsError:
                raise problems.already_exists(doing, target) from None
            except FileNotFoundError:
                if os.path.lexists(source):
                    raise problems.missing(f"rename {source} into", parent_of(target)) from None
                raise problems.missing("rename", source) from None
            if is_file:
                _move_checksum(source, target)
            for directory in {parent_of(source), parent_of(target)}:
                sync_directory(directory)

    def replace(self, source: str, target: str) -> None:
        doing = f"rename {problems.printable(source)} to"
        with problems.mapped(doing, target):
            for path in (source, target):
                if not os.path.isfile(path):
                    raise problems.missing("rename" if path == source else "replace", path)
            # Before: Hadoop refuses a file that differs from its checksum, and takes one without.
            _remove_checksum(target)
            os.replace(source, target)
            _move_checksum(source, target)
            for directory in {parent_of(source), parent_of(target)}:
                sync_directory(directory)

    def copy(self, source: str, target: str) -> None:  # noqa: ARG002 - never done
        raise problems.cannot_copy(self.display(source))

    def remove_tree(self, path: str) -> None:
        if os.path.normpath(path) == "/":
            raise problems.root_is_kept(path)
        with problems.mapped("remove", path):
            if stat.S_ISDIR(os.lstat(path).st_mode):
                _remove_directory(path)
            else:
                os.unlink(path)
                _remove_checksum(path)

    def remove_empty(self, path: str) -> None:
        with problems.mapped("remove", path):
            try:
                os.rmdir(path)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                    raise

    def __reduce__(self) -> tuple[type[LocalFileSystem], tuple[FileSystemSpec]]:
        return type(self), (self.spec,)


def _open_file(path: str) -> tuple[int, int]:
    """A descriptor of an ordinary file, and its size."""
    with problems.mapped("read", path):
        # Without O_NONBLOCK, opening a pipe would wait for a writer for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode):
        return descriptor, found.st_size
    os.close(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise problems.is_a_directory("read", path)
    raise BadDataError(f"cannot read {problems.printable(path)}", "it is a device or a pipe, not a file")


class _DurableFile(io.FileIO):
    """A new file whose bytes, and whose name, are on the disk once ``close()`` has returned."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "xb")
        self._path = path

    def write(self, data: object, /) -> int:
        with problems.mapped("write", self._path):
            return super().write(data)  # type: ignore[arg-type]

    def close(self) -> None:
        if self.closed:
            return
        try:
            with problems.mapped("write", self._path):
                os.fsync(self.fileno())
        finally:
            super().close()
        with problems.mapped("write", self._path):
            sync_directory(parent_of(self._path))


def sync_directory(path: str) -> None:
    """Make new names in a directory survive a power cut, where the file system can; else do nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # not readable for us: the bytes are safe, only the name is not forced out
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(descriptor)


def _remove_directory(path: str) -> None:
    """``shutil.rmtree`` that does not mind others who remove from, or add to, the same tree."""
    for attempt in range(3):
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            if not os.path.lexists(path):
                return
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or attempt == 2:
                raise
        except RecursionError as error:
            raise StorageError(
                f"cannot remove {problems.printable(path)}", "directories are nested too deeply", "use rm -r"
            ) from error
        else:
            return
    if os.path.lexists(path):
        raise ConflictError(
            f"cannot remove {problems.printable(path)}",
            "it changes while it is removed",
            "something else works in it: try again when it is done",
        )


def _checksum_of(path: str) -> str:
    return os.path.join(os.path.dirname(path), f".{base_name(path)}.crc")


def _is_checksum(path: str) -> bool:
    """Told by Hadoop's magic bytes, so that a user's own file of such a name is left alone."""
    try:
        with open(path, "rb") as source:
            return source.read(len(_CHECKSUM_MAGIC)) == _CHECKSUM_MAGIC
    except OSError:
        return False


def _remove_checksum(path: str) -> None:
    if _is_checksum(_checksum_of(path)):
        os.unlink(_checksum_of(path))


def _move_checksum(source: str, target: str) -> None:
    if _is_checksum(_checksum_of(source)):
        os.replace(_checksum_of(source), _checksum_of(target))
    else:
        _remove_checksum(target)
