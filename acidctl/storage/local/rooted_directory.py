"""Open paths below a directory without following symbolic links.

The owner of a table may put a link anywhere in it, at any moment, so that a check before an access proves nothing.
Therefore the directory is opened once, and paths below it are opened from its descriptor, one component after the
other, each with O_NOFOLLOW. On the way to the directory itself, links of this user and of root are followed.
"""

# ruff: noqa: PTH103, PTH116 (descriptors, not paths, are the subject)
from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from acidctl.base.errors import RefusedError
from acidctl.base.printable import printable

_MOST_LINKS = 40
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class ForeignLinkError(RefusedError):
    """A symbolic link lies on a path where none is followed."""


@contextmanager
def held(descriptor: int) -> Iterator[int]:
    """Close a descriptor at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class RootedDirectory:
    """A directory and everything below it; may be shared by threads.

    Args:
        root: an absolute path; links in it are followed if this user or root owns them.
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
            ForeignLinkError: the path is, or leads through, a symbolic link.
            OSError: as ``os.open``.
        """
        return _open(self._opened(), self._parts(path), flags, path)

    @contextmanager
    def parent(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the directory of a path, and the last component, which may be a link or missing.

        Raises:
            ForeignLinkError: the path leads through a symbolic link.
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
            if above.rstrip("/") in (below.rstrip("/") or None, self.root.rstrip("/")):
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
        parts = _split(path[len(prefix) :])
        if ".." in parts:
            raise RefusedError(f"will not touch {printable(path)}", "'..' leads out of a directory")
        return parts

    def _opened(self) -> int:
        """Return the root's descriptor, opened once, so that the path to it cannot be exchanged afterwards."""
        with self._lock:
            if self._descriptor < 0:
                with held(os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as top:
                    trusted = frozenset((0, os.geteuid()))
                    parts = _split(self.root)
                    self._descriptor = _open(top, parts, os.O_PATH | os.O_DIRECTORY, self.root, trusted)
            return self._descriptor


class Anywhere:
    """The operations of a rooted directory for any path that needs no protection: the kernel follows links."""

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


def _split(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _open(start: int, parts: list[str], flags: int, shown: str, trusted: frozenset[int] = frozenset()) -> int:
    """Open the path that components lead to from a directory's descriptor.

    Args:
        trusted: users whose links are followed.
    """
    rest, links = parts[::-1], 0
    at = os.dup(start)
    try:
        while rest:
            name = rest.pop()
            entry = os.open(name, _LOOK, dir_fd=at)
            try:
                info = os.fstat(entry)
            except OSError:
                os.close(entry)
                raise
            if stat.S_ISLNK(info.st_mode):
                with held(entry):
                    target = os.readlink("", dir_fd=entry)
                if info.st_uid not in trusted:
                    raise _refused(shown, name, info.st_uid)
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), shown)
                rest += _split(target)[::-1]
                if not target.startswith("/"):
                    continue
                entry = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            elif not rest:
                if flags & os.O_PATH and (not flags & os.O_DIRECTORY or stat.S_ISDIR(info.st_mode)):
                    return entry  # with O_PATH the kernel would open a link that has taken its place since
                os.close(entry)
                # A link may have taken its place since: the kernel refuses it then.
                return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = entry
        return os.open(".", flags | os.O_CLOEXEC, dir_fd=at)
    finally:
        os.close(at)


def _refused(shown: str, name: str, owner: int) -> ForeignLinkError:
    what = f"will not follow the symbolic link at {printable(shown)}"
    why = f"links below a location are not followed when it is changed; {printable(name)} belongs to user {owner}"
    return ForeignLinkError(what, why, "replace the link by what it leads to")
