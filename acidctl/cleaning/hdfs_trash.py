"""The user's trash of HDFS, as Hadoop's TrashPolicyDefault fills it."""

from __future__ import annotations

import time

from acidctl.errors import ConflictError, NotFoundError, UsageProblem
from acidctl.storage.port import FileSystem, join, parent_of

_PROTOCOLS = ("webhdfs", "swebhdfs", "hdfs")
_ATTEMPTS = 3


def require_hdfs(fs: FileSystem) -> None:
    """Raises UsageProblem for a store that is not HDFS, or cannot rename."""
    if fs.spec.protocol not in _PROTOCOLS or not fs.can_rename:
        raise UsageProblem(
            f"{fs.url} has no trash of HDFS", "", "leave out --trash hdfs: the trash of the location itself serves"
        )


def trash_of(fs: FileSystem) -> str:
    """``/user/<user>/.Trash/Current``, from which HDFS makes checkpoints, and deletes them by ``fs.trash.interval``.

    Raises:
        UsageProblem: who the user is, is not known.
    """
    user = dict(fs.spec.options).get("user", "")
    if not user:
        raise UsageProblem("whose trash of HDFS?", "the user is not known", "give --storage-option user=NAME")
    return f"/user/{user}/.Trash/Current"


def move_to_hdfs_trash(fs: FileSystem, source: str) -> str:
    """Move a file or directory to the user's trash.

    It keeps its absolute path there; the time is put behind a name that is taken, as Hadoop does. A location in an
    encryption zone has a trash of its own in Hadoop; a move out of the zone fails, and leaves everything as it was.

    Returns:
        Where it is now.

    Raises:
        NotFoundError: there is no such source.
        StorageError, AccessError: the store says no.
    """
    root = trash_of(fs)
    folder = _make_folder(fs, root, parent_of(source))
    plain = join(folder, source.rpartition("/")[2])
    target = plain
    for _ in range(_ATTEMPTS):
        while fs.exists(target):
            target = _with_time(plain)
        try:
            fs.rename(source, target)
        except ConflictError:  # somebody else took the name meanwhile
            continue
        return target
    raise ConflictError(f"cannot move {fs.display(source)} to the trash", f"{fs.display(plain)} is always taken")


def _make_folder(fs: FileSystem, root: str, path: str) -> str:
    """The path below the root, as a directory; where a file is in the way, the name of that part gets the time."""
    folder = root + path if path != "/" else root
    try:
        fs.make_dirs(folder)
    except (ConflictError, NotFoundError):
        folder = root
        for part in path.strip("/").split("/"):
            folder = join(folder, part)
            if fs.exists(folder) and not fs.stat(folder).is_dir:
                folder = _with_time(folder)
        fs.make_dirs(folder)
    return folder


def _with_time(path: str) -> str:
    return f"{path}{time.time_ns() // 1_000_000}"
