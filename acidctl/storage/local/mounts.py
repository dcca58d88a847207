"""Mount points in what is about to be removed: what is mounted there is not the table's, and would be emptied first."""

from __future__ import annotations

import errno
import os

from acidctl.errors import RefusedError
from acidctl.storage.local.openat2 import NO_XDEV, held, openat2
from acidctl.storage.os_errors import printable

_LOOK = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def refuse_mounts(path: str, name: str, at: int | None) -> None:
    """Look for mount points in a directory before any of it is removed.

    Args:
        path: the path for messages.
        name, at: the directory, and a descriptor of its parent; None if `name` is a path.

    Raises:
        RefusedError: the directory is, or contains, a mount point; its content would be deleted.
        OSError: the directory cannot be read. Children that cannot be listed cannot be removed, and are skipped.
    """
    parent, _, last = name.rpartition("/")
    if at is not None:
        _refuse(path, last, at)
    elif last:
        parent = parent or ("/" if name.startswith("/") else ".")
        with held(os.open(parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as above:
            _refuse(path, last, above)
    for here, directories, _, descriptor in os.fwalk(name, dir_fd=at):
        for child in directories:
            _refuse(f"{path}{here[len(name) :]}/{child}", child, descriptor)


def _refuse(shown: str, name: str, at: int) -> None:
    if _is_mount(name, at):
        raise RefusedError(
            f"will not remove {printable(shown)}",
            "it is a mount point: what is mounted there would be deleted",
            "unmount it, and run it again",
        )


def _is_mount(name: str, at: int) -> bool:
    """Return whether something is mounted on a directory; False for a link to a mount point."""
    descriptor, number = openat2(at, os.fsencode(name), _LOOK, NO_XDEV)
    if descriptor >= 0:
        os.close(descriptor)
        return False
    if number == errno.EXDEV:
        return True
    if number in (errno.ENOTDIR, errno.ELOOP, errno.ENOENT):  # a link, or gone meanwhile
        return False
    # If the kernel lacks the call or a sandbox forbids it, only another device shows a mount.
    return os.stat(name, dir_fd=at, follow_symlinks=False).st_dev != os.fstat(at).st_dev
