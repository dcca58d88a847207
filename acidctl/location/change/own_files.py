"""Files of acidctl's own: on the local disk, put in place in one step, and in the hidden runs of a location."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from acidctl.errors import RefusedError
from acidctl.printable import printable
from acidctl.storage.local.beneath import Beneath, ForeignLinkError, held
from acidctl.storage.port import Access, FileSystem, join, parent_of
from acidctl.storage.read_back import require_content

MOST_BYTES = 64 << 20
"""No manifest or note of ours is longer."""

TORN = "_torn.json"
"""In a hidden run: a small file that is being written."""
_MOST_LINKS = 40
_OPEN_FILES = "/proc/", "/dev/fd/"
_THROUGH = os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC


def replace_file(path: Path, data: bytes, *, is_private: bool = False) -> None:
    """Put content at a path in one step; what is not a file (a pipe, /dev/stdout) is just written to.

    It is written beside, to a new file with a random name that only this user may read until it is in its place.

    Args:
        is_private: it stays so; else it has the mode of the file that it replaces, or that of a new one.

    Raises:
        OSError: it cannot be done; what was there is there still.
        RefusedError: a link of another user lies there.
    """
    target = followed(path)
    if str(target).startswith(_OPEN_FILES) and not target.exists() and path.exists():  # a pipe
        _write_through(os.open(path, _THROUGH), data)
        return
    with held(open_folder(target.parent)) as folder:
        if _is_stream(target.name, folder):
            _write_through(os.open(target.name, _THROUGH | os.O_NOFOLLOW, dir_fd=folder), data)
            return
        staged = f".acidctl-{secrets.token_hex(8)}.tmp"
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(descriptor, 0o600 if is_private else _mode(target.name, folder))
                os.fsync(descriptor)
            os.replace(staged, target.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(staged, dir_fd=folder)
            raise


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Reading a file of a folder and replacing it is one step for all runs of this machine that share it."""
    with held(os.open(folder, os.O_RDONLY)) as descriptor:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def open_folder(folder: Path) -> int:
    """A descriptor of a directory that this user's files go to.

    Raises:
        RefusedError: a link of another user on the way to it leads to what is not his.
        OSError: it cannot be opened.
    """
    here = os.path.join(Path.cwd(), folder)  # noqa: PTH118 - with its "..", which lead out of what links lead to
    try:
        return Beneath(here).open(here, os.O_RDONLY | os.O_DIRECTORY)
    except ForeignLinkError as error:
        raise RefusedError(f"will not write to {printable(str(folder))}", error.why, "give another place") from None


def _is_stream(name: str, folder: int) -> bool:
    """Whether what is there is written to, and not replaced."""
    try:
        return not stat.S_ISREG(kind := os.lstat(name, dir_fd=folder).st_mode) and not stat.S_ISLNK(kind)
    except FileNotFoundError:
        return False


def _write_through(descriptor: int, data: bytes) -> None:
    """Neither made nor emptied, should it be a file by now."""
    with os.fdopen(descriptor, "wb") as stream:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        stream.write(data)


def followed(path: Path) -> Path:
    """Where links at a path lead to, while they are this user's or root's.

    Raises:
        RefusedError: one is of another user, who could have any file written or replaced so.
        OSError: they lead in a circle.
    """
    for _ in range(_MOST_LINKS):
        try:
            status = path.lstat()
        except FileNotFoundError:
            return path.parent / path.name
        if status.st_uid not in (os.geteuid(), 0) and not stat.S_ISREG(status.st_mode):
            what = "a link" if stat.S_ISLNK(status.st_mode) else "what lies there is no file, and"
            raise RefusedError(f"will not write to {path}", f"{what} of another user", "give another place")
        if not stat.S_ISLNK(status.st_mode):
            return path.parent / path.name
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _mode(name: str, folder: int) -> int:
    """Of this user's file that is replaced; else what the user gives to new files."""
    with suppress(FileNotFoundError):
        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if before.st_uid == os.geteuid():
            return stat.S_IMODE(before.st_mode) & 0o666
    usual = os.umask(0o077)
    os.umask(usual)
    return 0o666 & ~usual


def new_run_id() -> str:
    """``<UTC time>-<id>``, in milliseconds: the runs of a moment keep their order, since they are undone backwards."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"[:-3] + f"Z-{uuid.uuid4().hex[:8]}"


def not_ours(fs: FileSystem, parent: str, name: str) -> str:
    """Why a hidden directory that acidctl could have made does not count as its own; empty where it does.

    Whoever may write into a table may plant one: it has to be a directory of who runs this, or of the superuser.

    Raises:
        NotFoundError: there is no such parent.
    """
    return foreign(fs.access_below(parent, name).get(name))


def foreign(access: Access | None) -> str:
    """The same of an entry whose access is known; None where its store keeps none."""
    if access is None or (access.is_own and not access.is_link):
        return ""
    return "it is a symbolic link" if access.is_link else f"it belongs to the user {access.owner}"


def require_ours(fs: FileSystem, parent: str, name: str) -> None:
    """Raises RefusedError where such a directory is somebody else's: what goes into it would be his."""
    if why := not_ours(fs, parent, name):
        raise not_ours_error(fs, join(parent, name), why)


def not_ours_error(fs: FileSystem, path: str, why: str) -> RefusedError:
    """What there is to say of what is somebody else's."""
    return RefusedError(
        f"will not use {printable(fs.display(path))}",
        f"{why}, and acidctl uses directories of its own only",
        "look who made it; run as that user, or move it away",
    )


def write_checked(fs: FileSystem, path: str, content: bytes) -> None:
    """A small file that something is about to depend on: read again, and removed when it is not whole.

    Raises:
        ConflictError: it exists.
        StorageError: the store took it, and gives something else back.
    """
    fs.write_bytes(path, content)
    require_content(fs, path, content)


def write_whole(fs: FileSystem, path: str, content: bytes) -> None:
    """A small file in a location, whole or not at all: torn, it would look like damage; read again before it appears.

    Raises:
        ConflictError: it exists.
        StorageError: the store took it, and gives something else back.
    """
    torn = f"{parent_of(path)}/{TORN}"
    if fs.exists(torn):
        fs.remove_tree(torn)
    write_checked(fs, torn, content)
    fs.rename(torn, path)
