"""Open paths below a directory without following other users' symbolic links.

The owner of a table may put a link anywhere in it, at any moment, so that a check before an access proves nothing.
Therefore the directory is opened once, and paths below it are opened from its descriptor, one component after the
other. A link is followed only if its owner also owns the target, which he could have put there himself. He need not
own the directories above the target, so a ``..`` is refused after another user's link.
"""

# ruff: noqa: PTH103, PTH116 (descriptors, not paths, are the subject)
from __future__ import annotations

import errno
import os
import stat
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from acidctl.base.errors import RefusedError
from acidctl.base.printable import printable

NO_XDEV = 0x01
"""Refuse to enter another mount: the error is EXDEV."""
NO_SYMLINKS = 0x04
"""Refuse to follow a symbolic link: the error is ELOOP."""
OPENAT2 = 437
"""The number of the call, the same on every architecture; Linux has had it since 5.6."""

_WALKED = (errno.ELOOP, errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG, errno.EAGAIN)
"""Errors of ``openat2`` after which a path is opened component by component."""
_MOST_LINKS = 40
LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class ForeignLinkError(RefusedError):
    """A symbolic link leads to what somebody else owns."""


def _parent_behind(path: str, link: str, owner: int) -> ForeignLinkError:
    return ForeignLinkError(
        f"will not follow the '..' in {printable(path)}",
        f"it stands behind the symbolic link {printable(link)} of user {owner}, who decides by it where that leads",
        "write the path without '..', or, if that is meant, say so: `follow_links`",
    )


@cache
def _libc() -> tuple[Callable[..., int], Callable[[], int]]:
    """Return the C library's function for calls of the kernel, and the function for the last error."""
    import ctypes  # noqa: PLC0415 - commands that only read do not need it

    return ctypes.CDLL(None, use_errno=True).syscall, ctypes.get_errno


def openat2(directory: int, path: bytes, flags: int, resolve: int) -> tuple[int, int]:
    """Open a path below a directory's descriptor with the kernel's ``openat2``, which Python does not have.

    Args:
        flags: as for ``os.open``.
        resolve: NO_XDEV or NO_SYMLINKS.

    Returns:
        The descriptor and 0; or -1 and the number of the error. ENOSYS, EPERM, EINVAL and E2BIG may come from an old
        kernel or from a sandbox.
    """
    syscall, last_error = _libc()
    how = struct.pack("=QQQ", flags, 0, resolve)
    descriptor = syscall(OPENAT2, directory, path, how, len(how))
    return (descriptor, 0) if descriptor >= 0 else (-1, last_error())


@contextmanager
def held(descriptor: int) -> Iterator[int]:
    """Close a descriptor at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_without_links(directory: int, path: bytes, flags: int) -> int:
    """Open a path without symbolic links; return -1 if there is one, or the kernel does not have openat2.

    Raises:
        OSError: as ``os.open``.
    """
    descriptor, number = openat2(directory, path, flags, NO_SYMLINKS)
    if descriptor >= 0 or number in _WALKED:
        return descriptor
    raise OSError(number, os.strerror(number), os.fsdecode(path))


class RootedDirectory:
    """A directory and everything below it; may be shared by threads.

    Args:
        root: an absolute path; links in it are followed if we or root own them, or if their owner owns the target.
    """

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"
        self._lock = threading.Lock()
        self._descriptor = -1

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def open(self, path: str, flags: int) -> int:
        """Return a descriptor of a path below the root, or of the root.

        Args:
            flags: for ``os.open``, without flags that create.

        Raises:
            ForeignLinkError: the path is, or leads through, a link to what somebody else owns.
            OSError: as ``os.open``.
        """
        parts = self._parts(path)
        if not parts:
            return os.open(".", flags | os.O_CLOEXEC, dir_fd=self._opened())
        relative = "/".join(parts)
        descriptor = _open_without_links(self._opened(), os.fsencode(relative), flags | os.O_CLOEXEC)
        if descriptor >= 0:
            return descriptor
        with _Walk(self._opened(), path) as walk:
            return walk.open(parts, flags)

    @contextmanager
    def parent(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the directory of a path, and the last component, which may be a link or missing.

        Raises:
            ForeignLinkError: the path leads through a link to what somebody else owns.
            RefusedError: the path is the root, or outside of it.
            OSError: as ``os.open``.
        """
        if not self._parts(path):
            raise RefusedError(f"will not change {printable(path)} itself", "it is where the work begins")
        directory, _, name = path.rstrip("/").rpartition("/")
        with held(self.open(directory or "/", os.O_PATH | os.O_DIRECTORY)) as descriptor:
            yield descriptor, name

    def stat(self, path: str) -> os.stat_result:
        """Return the status of a path; errors as for :meth:`open`."""
        with held(self.open(path, os.O_PATH)) as descriptor:
            return os.fstat(descriptor)

    def exists(self, path: str) -> bool:
        """Return whether anything is at a path; a link exists wherever it leads."""
        if not self._parts(path):
            self._opened()
            return True
        try:
            with self.parent(path) as (at, name):
                os.lstat(name, dir_fd=at)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def make_dirs(self, path: str, below: str = "") -> None:
        """Make directories as ``os.makedirs`` does if they may exist; only this user may write to new ones.

        The mode is explicit because a default ACL replaces the umask: the owner of the directory above could gain
        access by it.

        Args:
            below: an ancestor; neither it nor directories above it are made.
        """
        if path.rstrip("/") in (self.root.rstrip("/"), ""):
            return
        try:
            with self.parent(path) as (at, name):
                os.mkdir(name, 0o755, dir_fd=at)
        except FileNotFoundError:
            above = path.rstrip("/").rpartition("/")[0]
            if above.rstrip("/") == below.rstrip("/") != "":
                raise
            self.make_dirs(above, below)
            self.make_dirs(path, below)
        except FileExistsError:
            if not stat.S_ISDIR(self.stat(path).st_mode):
                raise

    def _parts(self, path: str) -> list[str]:
        if "\0" in path:
            raise ValueError("embedded null byte")
        prefix = self.root if self.root == "/" else f"{self.root}/"
        if path.rstrip("/") == self.root.rstrip("/"):
            return []
        if not path.startswith(prefix):
            raise RefusedError(f"will not touch {printable(path)}", f"it is outside of {printable(self.root)}")
        parts = path[len(prefix) :].split("/")
        if ".." in parts:
            raise RefusedError(f"will not touch {printable(path)}", "'..' leads out of a directory")
        return [part for part in parts if part not in ("", ".")]

    def _opened(self) -> int:
        """Return the root's descriptor, opened once, so that the path to it cannot be exchanged afterwards."""
        with self._lock:
            if self._descriptor < 0:
                with (
                    held(os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as top,
                    _Walk(top, self.root, trusted=frozenset({0, os.geteuid()})) as walk,
                ):
                    parts = [part for part in self.root.split("/") if part not in ("", ".")]
                    self._descriptor = walk.open(parts, os.O_PATH | os.O_DIRECTORY)
            return self._descriptor


class Anywhere:
    """The same operations for any path, with links followed as the kernel does, for paths that need no protection."""

    def open(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC)

    @contextmanager
    def parent(self, path: str) -> Iterator[tuple[int | None, str]]:
        yield None, path

    def stat(self, path: str) -> os.stat_result:
        return os.stat(path)

    def exists(self, path: str) -> bool:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def make_dirs(self, path: str, below: str = "") -> None:
        if below:
            os.stat(below)
        os.makedirs(path, exist_ok=True)


class _Walk:
    """Opens a path below a directory component by component.

    Attributes:
        trusted: users whose links are followed wherever they lead.
    """

    def __init__(self, start: int, shown: str, trusted: frozenset[int] = frozenset()) -> None:
        self._shown, self._trusted = shown, trusted
        self._at = os.dup(start)
        self._links = 0
        self._open: list[tuple[int, int, str]] = []  # (components left when the target is reached, owner, link)
        self._arrived: tuple[int, str] | None = None  # owner and link that was followed last, if not trusted

    def __enter__(self) -> _Walk:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._at)

    def open(self, parts: list[str], flags: int) -> int:
        """Open what the components lead to; of a link its target."""
        rest = parts[::-1]
        while rest:
            name = rest.pop()
            if name == ".." and self._arrived and not self._open:
                raise _parent_behind(self._shown, self._arrived[1], self._arrived[0])
            entry = os.open(name, LOOK, dir_fd=self._at)
            info = os.fstat(entry)
            if stat.S_ISLNK(info.st_mode):
                self._follow(entry, info, name, rest)
                continue
            try:
                self._arrive(info, len(rest))
            except ForeignLinkError:
                os.close(entry)
                raise
            if rest:
                os.close(self._at)
                self._at = entry
                continue
            os.close(entry)
            return self._last(name, flags, info)
        self._arrive(os.fstat(self._at), 0)  # a link may have led to the root
        return os.open(".", flags | os.O_CLOEXEC, dir_fd=self._at)

    def _follow(self, link: int, info: os.stat_result, name: str, rest: list[str]) -> None:
        try:
            target = os.readlink("", dir_fd=link)
        finally:
            os.close(link)
        self._links += 1
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self._shown)
        if info.st_uid not in self._trusted:
            self._open.append((len(rest), info.st_uid, name))
        rest += [part for part in target.split("/") if part not in ("", ".")][::-1]
        if target.startswith("/"):
            os.close(self._at)
            self._at = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def _arrive(self, info: os.stat_result, remaining: int) -> None:
        """Check that the targets of links that were reached belong to the links' owners."""
        while self._open and self._open[-1][0] >= remaining:
            _, owner, name = self._open.pop()
            if info.st_uid != owner:
                raise ForeignLinkError(
                    f"will not follow the symbolic link at {printable(self._shown)}",
                    f"{printable(name)} is of user {owner}, and leads to what is of user {info.st_uid}",
                    "if that is meant, say so: `follow_links`",
                )
            self._arrived = owner, name

    def _last(self, name: str, flags: int, seen: os.stat_result) -> int:
        """Open what was checked before, with O_NOFOLLOW, as a link may have replaced it meanwhile."""
        descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._at)
        info = os.fstat(descriptor)
        if (info.st_dev, info.st_ino) != (seen.st_dev, seen.st_ino):
            os.close(descriptor)
            raise OSError(errno.ESTALE, "it was exchanged meanwhile", self._shown)
        return descriptor
