"""Files that acidctl writes, replaced in one step or in hidden runs of a location, and the process that wrote them."""

from __future__ import annotations

import errno
import fcntl
import getpass
import json
import os
import secrets
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from acidctl.base.errors import RefusedError
from acidctl.base.printable import printable
from acidctl.storage.local.rooted_directory import ForeignLinkError, RootedDirectory, held
from acidctl.storage.port import Access, FileSystem, join, parent_of
from acidctl.storage.ranged import MOST_METADATA, read_small
from acidctl.storage.read_back import require_content

MOST_BYTES = 64 << 20
"""Manifests of acidctl are never longer."""

TORN = "_torn.json"
"""In a hidden run: the name of a small file while it is being written."""
_MOST_LINKS = 40
_OPEN_FILES = "/proc/", "/dev/fd/"
_THROUGH = os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC


def replace_file(path: Path, data: bytes, *, is_private: bool = False) -> None:
    """Replace a file in one step; anything else (a pipe, /dev/stdout) is just written to.

    The content goes to a new file beside it, with a random name, that only this user may read until it is in its place.

    Args:
        is_private: keep the file private; else it gets the mode of the file that it replaces, or of a new file.

    Raises:
        OSError: the file cannot be replaced; the old one is still there.
        RefusedError: the path is a link of another user.
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
    """Lock a folder, so that processes on this machine read and replace a file of it one after the other."""
    with held(os.open(folder, os.O_RDONLY)) as descriptor:
        with suppress(OSError):  # the file system has no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def open_folder(folder: Path) -> int:
    """Return a descriptor of a directory that this user's files go to.

    Raises:
        RefusedError: a link of another user on the way leads out of that user's files.
        OSError: it cannot be opened.
    """
    absolute = os.path.join(Path.cwd(), folder)  # noqa: PTH118 - keeps "..", which apply after links
    try:
        return RootedDirectory(absolute).open(absolute, os.O_RDONLY | os.O_DIRECTORY)
    except ForeignLinkError as error:
        raise RefusedError(f"will not write to {printable(str(folder))}", error.why, "give another place") from None


def _is_stream(name: str, folder: int) -> bool:
    """Return whether a file is written to rather than replaced."""
    try:
        return not stat.S_ISREG(kind := os.lstat(name, dir_fd=folder).st_mode) and not stat.S_ISLNK(kind)
    except FileNotFoundError:
        return False


def _write_through(descriptor: int, data: bytes) -> None:
    """Write to an open stream; fail if it has become a regular file, which is neither created nor emptied."""
    with os.fdopen(descriptor, "wb") as stream:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        stream.write(data)


def followed(path: Path) -> Path:
    """Follow links at a path, as long as they belong to this user or root.

    Raises:
        RefusedError: a link belongs to another user, who could redirect the write to any file.
        OSError: the links form a circle.
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
    """Return the mode of this user's file that is replaced; else the default mode of new files."""
    with suppress(FileNotFoundError):
        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if before.st_uid == os.geteuid():
            return stat.S_IMODE(before.st_mode) & 0o666
    usual = os.umask(0o077)
    os.umask(usual)
    return 0o666 & ~usual


def new_run_id() -> str:
    """Return ``<UTC time>-<id>``, in milliseconds: runs are undone in reverse order."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"[:-3] + f"Z-{uuid.uuid4().hex[:8]}"


def not_ours(fs: FileSystem, parent: str, name: str) -> str:
    """Return why a hidden directory does not count as acidctl's own; empty if it does.

    Anyone who may write into a table could plant one: it must belong to the current user or to the superuser.

    Raises:
        NotFoundError: the parent does not exist.
    """
    return foreign(fs.access_below(parent, name).get(name))


def foreign(access: Access | None) -> str:
    """Return why an entry with this access does not count as acidctl's own; None is an unknown access."""
    if access is None or (access.is_own and not access.is_link):
        return ""
    return "it is a symbolic link" if access.is_link else f"it belongs to the user {access.owner}"


def require_ours(fs: FileSystem, parent: str, name: str) -> None:
    """Raise RefusedError if another user owns a directory: that user would control everything in it."""
    if why := not_ours(fs, parent, name):
        raise not_ours_error(fs, join(parent, name), why)


def not_ours_error(fs: FileSystem, path: str, why: str) -> RefusedError:
    """Return the error for a file or directory of another user."""
    return RefusedError(
        f"will not use {printable(fs.display(path))}",
        f"{why}, and acidctl uses directories of its own only",
        "look who made it; run as that user, or move it away",
    )


def write_checked(fs: FileSystem, path: str, content: bytes) -> None:
    """Write a small file that something is about to depend on; read it again, and remove it if it differs.

    Raises:
        ConflictError: it exists.
        StorageError: the store returned other content.
    """
    fs.write_bytes(path, content)
    require_content(fs, path, content)


def write_whole(fs: FileSystem, path: str, content: bytes) -> None:
    """Write a small file, whole or not at all: it gets its name only after it was read again.

    Raises:
        ConflictError: it exists.
        StorageError: the store returned other content.
    """
    torn = f"{parent_of(path)}/{TORN}"
    if fs.exists(torn):
        fs.remove_tree(torn)
    write_checked(fs, torn, content)
    fs.rename(torn, path)


OWNER = "_owner.json"
"""In a staging directory: the process that works there."""

_NO_PID = 1 << 31
"""Process ids are below this."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process.

    Attributes:
        started: when the process began, in the kernel's ticks; 0 if not known. It distinguishes reused process ids.
        since: when it began this work, seconds since the epoch.
        where: the machine, its boot, and the namespace of process ids, since containers have their own, often under the
            name of their host; empty if not known.
    """

    host: str
    pid: int
    started: int
    user: str
    since: float
    where: str = ""

    @classmethod
    def this(cls) -> Owner:
        """Return the running process."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # the user id has no name, as in a container
            user = str(os.getuid())
        return cls(os.uname().nodename, os.getpid(), _started(os.getpid()), user, time.time(), _here())

    def to_bytes(self) -> bytes:
        """Return its JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Owner | None:
        """Parse a file; return None if it is torn, or not acidctl's."""
        try:
            record = json.loads(data)
            names = str(record["host"]), int(record["pid"]), int(record["started"]), str(record["user"])
            owner = cls(*names, float(record["since"]), str(record.get("where", "")))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None
        return owner if 0 < owner.pid < _NO_PID else None  # os.kill would address a group

    def is_dead(self) -> bool:
        """Return whether the process certainly ended, which shows only on its own machine and in its container."""
        if not self.is_here():  # unless the machine was restarted, which ended all its processes
            old, new = self.where.split("/"), _here().split("/")
            is_known = self.host == os.uname().nodename and len(old) == len(new) == 3 and bool(old[0])
            return is_known and old[0] == new[0] and old[1] != new[1]
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return self.started != 0 and _started(self.pid) not in (0, self.started)

    def is_alive(self) -> bool:
        """Return whether the process certainly still runs on this machine, and not another one with the same id."""
        return self.is_here() and not self.is_dead()

    def is_here(self) -> bool:
        """Return whether its process id means the same here."""
        return self.host == os.uname().nodename and (not self.where or self.where == _here())

    def __str__(self) -> str:
        return f"process {self.pid} of {self.user} on {self.host}"


def owner_at(fs: FileSystem, path: str) -> Owner | None:
    """Return the process that a file names: a lock, a claim on one, or the file in a staging directory.

    Returns:
        None if it is torn, or not acidctl's file.

    Raises:
        BadDataError: it is longer than any of acidctl's, or not a file.
        NotFoundError, AccessError, RefusedError, StorageError: it cannot be read.
    """
    return Owner.from_bytes(read_small(fs, path, MOST_METADATA))


def started_at() -> float:
    """Return when this machine was started, in seconds since the epoch; 0 if the kernel does not show it."""
    try:
        return time.time() - float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0


def _here() -> str:
    """Return ``<machine>/<boot>/<namespace of process ids>``; empty if the kernel does not show it."""
    machine = ""  # as in many containers
    with suppress(OSError):
        machine = Path("/etc/machine-id").read_text().strip().replace("/", "")
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{machine}/{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> int:
    """Return the kernel's start time of a process; 0 without /proc."""
    try:
        # The name, in parentheses, may hold spaces.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
