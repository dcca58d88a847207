"""Mount points in what is about to be removed: what is mounted there is not the table's, and would be emptied first."""

from __future__ import annotations

import errno
import os

from acidctl.errors import RefusedError
from acidctl.storage.local.openat2 import NO_XDEV, held, openat2
from acidctl.storage.os_errors import printable

_LOOK = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def refuse_mounts(path: str, name: str, at: int | None) -> None:
    """Look through a directory before any of it is removed.

    Args:
        path: how it is shown.
        name, at: where it is, and a descriptor of the directory that the name is in; None for a path.

    Raises:
        RefusedError: it is a mount point, or one lies in it.
        OSError: it cannot be looked at. What in it cannot be listed cannot be removed either, and is left out.
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
    """Whether something else is mounted on a directory; a link to one is not."""
    found, number = openat2(at, os.fsencode(name), _LOOK, NO_XDEV)
    if found >= 0:
        os.close(found)
        return False
    if number == errno.EXDEV:
        return True
    if number in (errno.ENOTDIR, errno.ELOOP, errno.ENOENT):  # a link, or gone meanwhile
        return False
    # A kernel without the call, or a sandbox that forbids it: then another device is all that can be seen.
    return os.stat(name, dir_fd=at, follow_symlinks=False).st_dev != os.fstat(at).st_dev
