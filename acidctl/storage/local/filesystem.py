"""Access the local disk, and whatever is mounted on it, with durable writes and renames that never replace."""

# ruff: noqa: PTH118, PTH120
# Paths stay text: pathlib would fold "//" and ".", and one object per call buys nothing here.
from __future__ import annotations

import errno
import io
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO, cast

from acidctl.acid.listing import Entry, Listing
from acidctl.base.errors import BadDataError, ConflictError, RefusedError, StorageError
from acidctl.base.printable import printable
from acidctl.storage import os_errors
from acidctl.storage.local.permissions import access_of, all_access, require_made_here, set_access
from acidctl.storage.local.rename import is_there, rename_no_replace
from acidctl.storage.local.rooted_directory import Anywhere, RootedDirectory, held
from acidctl.storage.local.tree import UNREADABLE_BYTES, list_children, list_everything
from acidctl.storage.port import Access, FileSystemSpec, base_name, parent_of
from acidctl.storage.ranged import clamp
from acidctl.storage.read_back import incomplete, require_content

_WRITE_BUFFER = 128 << 10  # larger pieces go to the disk as they come, and are not copied once more
_READ_CHUNK = 1 << 30  # one read call never returns more than 2 GiB on Linux
_CHECKSUM_MAGIC = b"crc\0"
_DESCRIPTORS = "/proc/self/fdinfo"

BENEATH = "beneath"
"""An option of the spec: a directory below which no symbolic link is followed."""


class LocalFileSystem:
    """Files of this machine.  Names that are not UTF-8 are kept, by Python's surrogateescape.

    If the spec names a directory (:data:`BENEATH`), only paths below it are accepted, and other users' symbolic links
    are not followed.

    Hadoop's local file system keeps a checksum of `name` in a hidden `.name.crc` beside it and refuses to read `name`
    if the two differ; so the checksum file is moved and removed with its file, and never stays beside a new one.
    """

    def __init__(self, spec: FileSystemSpec | None = None) -> None:
        self.url = "file://"
        self.can_rename = True
        self.can_copy = False
        self.can_lock = True
        self.is_local = True
        self.spec = spec or FileSystemSpec("file")
        root = dict(self.spec.options).get(BENEATH)
        self._rooted = RootedDirectory(root) if root else None
        self._paths: RootedDirectory | Anywhere = self._rooted or Anywhere()
        self._new_mode = 0o644 if root else 0o666  # default ACLs take the place of the umask

    def display(self, path: str) -> str:
        return path

    def local_path(self, path: str) -> str | None:
        if self._rooted:
            return None  # opening it by its name would follow links
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            return None  # C++ libraries accept UTF-8 only; open_input accepts any name
        return path

    def list_tree(self, path: str, top: Listing | None = None) -> Listing:
        with os_errors.mapped("list", path):
            return Listing(path, tuple(list_everything(path, top.entries if top else None, self._rooted)))

    def list_dir(self, path: str) -> Listing:
        with os_errors.mapped("list", path):
            return Listing(path, tuple(list_children(path, self._rooted)))

    def stat(self, path: str) -> Entry:
        with os_errors.mapped("look at", path):
            info = self._paths.stat(path)
        is_dir = stat.S_ISDIR(info.st_mode)
        size = info.st_size if stat.S_ISREG(info.st_mode) else 0 if is_dir else UNREADABLE_BYTES
        return Entry(base_name(path), size, info.st_mtime, is_dir)

    def exists(self, path: str) -> bool:
        with os_errors.mapped("look at", path):
            return self._paths.exists(path)

    def open_input(self, path: str) -> BinaryIO:
        descriptor, _ = self._open_file(path)
        return cast(BinaryIO, io.BufferedReader(_Input(path, descriptor)))  # the caller closes it

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        descriptor, size = self._open_file(path)
        try:
            start, end = clamp(offset, length, size)
            chunks = []
            with os_errors.mapped("read", path):
                while start < end:
                    chunk = os.pread(descriptor, min(_READ_CHUNK, end - start), start)
                    if not chunk:  # somebody else has cut the file meanwhile
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
            require_content(self, path, data)
        except BaseException:
            with os_errors.mapped("remove", path), suppress(FileNotFoundError), self._paths.parent(path) as (at, name):
                os.unlink(name, dir_fd=at)  # it is ours, by O_EXCL; half a file must not look like a whole one
            raise

    def access(self, path: str) -> Access | None:
        with os_errors.mapped("look at", path), held(self._paths.open(path, os.O_RDONLY | os.O_NONBLOCK)) as descriptor:
            return access_of(os.fstat(descriptor), descriptor)

    def access_below(self, path: str, name: str | None = None) -> dict[str, Access]:
        with os_errors.mapped("list", path), held(self._paths.open(path, os.O_RDONLY | os.O_DIRECTORY)) as descriptor:
            return all_access(descriptor, name)

    def set_access(self, path: str, access: Access) -> None:
        with os_errors.mapped("set the owner and the mode of", path), self._paths.parent(path) as (at, name):
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            with held(os.open(name, flags, dir_fd=at)) as descriptor:
                if at is not None:
                    require_made_here(descriptor, at)
                set_access(descriptor, access)

    def open_output(self, path: str, *, private: bool = False) -> BinaryIO:
        with os_errors.mapped("create", path):
            raw = _DurableFile(path, self._paths, 0o600 if private else self._new_mode)
            with self._paths.parent(path) as (at, name):
                _remove_checksum(name, at)
        return cast(BinaryIO, io.BufferedWriter(raw, _WRITE_BUFFER))

    def make_dirs(self, path: str, *, below: str = "") -> None:
        with os_errors.mapped("create", path):
            self._paths.make_dirs(path, below)

    def rename(self, source: str, target: str) -> None:
        doing = f"rename {printable(source)} to"
        with (
            os_errors.mapped(doing, target),
            self._parent(source, "rename", source) as (old_at, old),
            self._parent(target, f"rename {source} into", parent_of(target)) as (new_at, new),
        ):
            try:
                is_file = not stat.S_ISDIR(os.lstat(old, dir_fd=old_at).st_mode)
            except FileNotFoundError:
                raise os_errors.missing("rename", source) from None
            try:
                rename_no_replace(old, new, old_at, new_at)
            except FileExistsError:
                raise os_errors.already_exists(doing, target) from None
            except FileNotFoundError:
                if self.exists(source):
                    raise os_errors.missing(f"rename {source} into", parent_of(target)) from None
                raise os_errors.missing("rename", source) from None
            if is_file:
                _move_checksum(old, new, old_at, new_at)
            self._sync(parent_of(source), parent_of(target))

    def replace(self, source: str, target: str) -> None:
        doing = f"rename {printable(source)} to"
        with (
            os_errors.mapped(doing, target),
            self._parent(source, "rename", source) as (old_at, old),
            self._parent(target, "replace", target) as (new_at, new),
        ):
            for name, at, path in ((old, old_at, source), (new, new_at, target)):
                if not is_there(name, at) or not stat.S_ISREG(os.lstat(name, dir_fd=at).st_mode):
                    raise os_errors.missing("rename" if path == source else "replace", path)
            # This comes first: Hadoop refuses a file that differs from its checksum, and accepts a file without one.
            _remove_checksum(new, new_at)
            os.replace(old, new, src_dir_fd=old_at, dst_dir_fd=new_at)
            _move_checksum(old, new, old_at, new_at)
            self._sync(parent_of(source), parent_of(target))

    def copy(self, source: str, target: str) -> None:  # noqa: ARG002 - never done
        raise os_errors.cannot_copy(self.display(source))

    def remove_tree(self, path: str) -> None:
        if os.path.normpath(path) == "/":
            raise os_errors.root_is_kept(path)
        with os_errors.mapped("remove", path), self._paths.parent(path) as (at, name):
            if stat.S_ISDIR(os.lstat(name, dir_fd=at).st_mode):
                _remove_directory(path, name, at)
            else:
                os.unlink(name, dir_fd=at)
                _remove_checksum(name, at)

    def remove_empty(self, path: str) -> None:
        with os_errors.mapped("remove", path):
            try:
                with self._paths.parent(path) as (at, name):
                    os.rmdir(name, dir_fd=at)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                    raise

    def __reduce__(self) -> tuple[type[LocalFileSystem], tuple[FileSystemSpec]]:
        return type(self), (self.spec,)

    @contextmanager
    def _parent(self, path: str, doing: str, missing: str) -> Iterator[tuple[int | None, str]]:
        """Yield the parent of a path; if a directory is missing, the error names `missing`."""
        with ExitStack() as stack:
            try:
                parent = stack.enter_context(self._paths.parent(path))
            except FileNotFoundError:
                raise os_errors.missing(doing, missing) from None
            yield parent

    def _open_file(self, path: str) -> tuple[int, int]:
        """Return a descriptor of a regular file, and its size."""
        with os_errors.mapped("read", path):
            # Without O_NONBLOCK, opening a pipe would wait for a writer for ever.
            descriptor = self._paths.open(path, os.O_RDONLY | os.O_NONBLOCK)
            try:
                info = os.fstat(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
        if stat.S_ISREG(info.st_mode):
            return descriptor, info.st_size
        os.close(descriptor)
        if stat.S_ISDIR(info.st_mode):
            raise os_errors.is_a_directory("read", path)
        raise BadDataError(f"cannot read {printable(path)}", "it is a device or a pipe, not a file")

    def _sync(self, *directories: str) -> None:
        for directory in set(directories):
            sync_directory(directory, self._paths)


class _Input(io.FileIO):
    """A file that is read, with the kernel's errors mapped to errors that name the file."""

    def __init__(self, path: str, descriptor: int) -> None:
        super().__init__(descriptor, "rb")
        self._path = path

    def readinto(self, buffer: object, /) -> int | None:
        with os_errors.mapped("read", self._path):
            return super().readinto(buffer)  # type: ignore[arg-type]

    def readall(self) -> bytes:
        with os_errors.mapped("read", self._path):
            return super().readall()


class _DurableFile(io.FileIO):
    """A new file whose bytes, and whose name, are on the disk once ``close()`` has returned.

    A file that could not be written whole is removed when it is closed.
    """

    def __init__(self, path: str, paths: RootedDirectory | Anywhere, mode: int = 0o666) -> None:
        with paths.parent(path) as (at, name):
            super().__init__(path, "xb", opener=lambda _, flags: os.open(name, flags, mode, dir_fd=at))
        self._path, self._paths = path, paths
        self._written = 0
        self._is_whole = True

    def write(self, data: object, /) -> int:
        try:
            with os_errors.mapped("write", self._path):
                count = super().write(data)  # type: ignore[arg-type]
        except BaseException:
            self._is_whole = False
            raise
        self._written += count
        return count

    def close(self) -> None:
        if self.closed:
            return
        try:
            with os_errors.mapped("write", self._path):
                os.fsync(self.fileno())
                size = os.fstat(self.fileno()).st_size
            if size != self._written:
                raise incomplete(self._path, self._written, size)
        except BaseException:
            self._is_whole = False
            raise
        finally:
            if not self._is_whole:
                self._unlink()
            super().close()
        with os_errors.mapped("write", self._path):
            sync_directory(parent_of(self._path), self._paths)

    def _unlink(self) -> None:
        """Remove the name if it still belongs to this file."""
        with suppress(OSError), self._paths.parent(self._path) as (at, name):
            if os.path.samestat(os.lstat(name, dir_fd=at), os.fstat(self.fileno())):
                os.unlink(name, dir_fd=at)


def sync_directory(path: str, paths: RootedDirectory | Anywhere | None = None) -> None:
    """Make new names in a directory survive a power cut, if the file system can; otherwise do nothing."""
    try:
        descriptor = (paths or Anywhere()).open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # we may not read the directory: the bytes are safe, only the name is not forced to the disk
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(descriptor)


def _remove_directory(path: str, name: str, at: int | None) -> None:
    """Remove a tree by ``shutil.rmtree``, which follows no link, while others may change the same tree."""
    for attempt in range(3):
        try:
            refuse_mounts(path, name, at)
            shutil.rmtree(name, dir_fd=at)
        except FileNotFoundError:
            if not is_there(name, at):
                return
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or attempt == 2:
                raise
        except RecursionError as error:
            why = "directories are nested too deeply"
            raise StorageError(f"cannot remove {printable(path)}", why, "use rm -r") from error
        else:
            return
    if is_there(name, at):
        hint = "something else works in it: try again when it is done"
        raise ConflictError(f"cannot remove {printable(path)}", "it changes while it is removed", hint)


def _checksum_of(name: str) -> str:
    return os.path.join(os.path.dirname(name), f".{base_name(name)}.crc")


def _is_checksum(name: str, at: int | None) -> bool:
    """Recognise a checksum file by Hadoop's magic bytes, so that a user's own file of such a name is kept."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with held(os.open(name, flags, dir_fd=at)) as descriptor:
            return os.read(descriptor, len(_CHECKSUM_MAGIC)) == _CHECKSUM_MAGIC
    except OSError:
        return False


def _remove_checksum(name: str, at: int | None) -> None:
    if _is_checksum(_checksum_of(name), at):
        os.unlink(_checksum_of(name), dir_fd=at)


def _move_checksum(source: str, target: str, source_at: int | None, target_at: int | None) -> None:
    old, new = _checksum_of(source), _checksum_of(target)
    if _is_checksum(old, source_at):
        os.replace(old, new, src_dir_fd=source_at, dst_dir_fd=target_at)
    else:
        _remove_checksum(target, target_at)


def refuse_mounts(path: str, name: str, at: int | None) -> None:
    """Look for mount points in a directory before any of it is removed.

    Args:
        path: the path for messages.
        name, at: the directory, and a descriptor of its parent; None if `name` is a path.

    Raises:
        RefusedError: the directory is, or contains, a mount point; its content would be deleted.
        OSError: the directory cannot be read. Children that cannot be listed cannot be removed, and are skipped.
    """
    parent = os.path.dirname(name) or "."
    with held(os.open(parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)) as above:
        mount = _mount_of(above)
    _refuse_mount(path, name, at, mount)
    for here, directories, _, descriptor in os.fwalk(name, dir_fd=at):
        for child in directories:  # before it is listed, which may not be allowed
            _refuse_mount(f"{path}{here[len(name) :]}/{child}", child, descriptor, mount)


def _refuse_mount(shown: str, name: str, at: int | None, mount: str) -> None:
    try:
        descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.ENOENT):  # a link, or gone meanwhile
            return
        raise
    with held(descriptor):
        if _mount_of(descriptor) != mount:
            why = "it is a mount point: what is mounted there would be deleted"
            raise RefusedError(f"will not remove {printable(shown)}", why, "unmount it, and run it again")


def _mount_of(descriptor: int) -> str:
    """Return what identifies the mount: two mounts of one disk differ, if the kernel says so in /proc."""
    with suppress(OSError), open(f"{_DESCRIPTORS}/{descriptor}", encoding="ascii") as lines:  # noqa: PTH123
        if mount := next((line for line in lines if line.startswith("mnt_id:")), ""):
            return mount
    return str(os.fstat(descriptor).st_dev)
