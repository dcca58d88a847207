"""The user's trash of HDFS, filled as Hadoop's TrashPolicyDefault fills it."""

from __future__ import annotations

import time
from collections.abc import Callable

from acidctl.base.errors import AccessError, ConflictError, NotFoundError, StorageError, UsageProblem
from acidctl.storage.port import FileSystem, join, parent_of

_PROTOCOLS = ("webhdfs", "swebhdfs", "hdfs")
_ATTEMPTS = 3


def is_hdfs(fs: FileSystem) -> bool:
    """Say if a store is HDFS."""
    return fs.spec.protocol in _PROTOCOLS


def require_hdfs(fs: FileSystem) -> None:
    """Raise UsageProblem for a store that is not HDFS, or cannot rename."""
    if not is_hdfs(fs) or not fs.can_rename:
        raise UsageProblem(
            f"{fs.url} has no trash of HDFS", "", "leave out --trash hdfs: the trash of the location itself serves"
        )


def trash_of(fs: FileSystem, location: str) -> str:
    """Return the trash directory for a location; HDFS makes checkpoints and deletes them by ``fs.trash.interval``.

    It is ``/user/<user>/.Trash/Current``, or ``<zone>/.Trash/<user>/Current`` in an encryption zone, because nothing
    can be moved out of a zone. Only WebHDFS of Hadoop 2.9 and later reports zones; otherwise it is the home's trash.

    Raises:
        UsageProblem: the user is not known.
        AccessError, StorageError: the store does not answer.
    """
    trash_root: Callable[[str], str | None] = getattr(fs, "trash_root", lambda _: None)
    root = trash_root(location)
    if root and root.startswith("/"):
        return f"{root.rstrip('/')}/Current"
    user = dict(fs.spec.options).get("user", "")
    if not user:
        raise UsageProblem("whose trash of HDFS?", "the user is not known", "give --set storage.user=NAME")
    return f"/user/{user}/.Trash/Current"


def move_to_hdfs_trash(fs: FileSystem, source: str, root: str) -> str:
    """Move a file or directory to the user's trash and return its new path.

    It keeps its absolute path below `root`; the time is added to a name that is taken, as Hadoop does.

    Args:
        root: the trash directory, from :func:`trash_of`.

    Raises:
        NotFoundError: the source does not exist.
        StorageError, AccessError: the store refuses.
    """
    folder = _make_folder(fs, root, parent_of(source))
    plain = join(folder, source.rpartition("/")[2])
    target = plain
    for _ in range(_ATTEMPTS):
        while fs.exists(target):
            target = _with_time(plain)
        try:
            fs.rename(source, target)
        except ConflictError:  # another process took the name meanwhile
            continue
        except StorageError as error:
            raise _with_zone_hint(error) from error
        return target
    raise ConflictError(f"cannot move {fs.display(source)} to the trash", f"{fs.display(plain)} is always taken")


def _make_folder(fs: FileSystem, root: str, path: str) -> str:
    """Make the path below the root; the time is added to the name of a part that is taken by a file."""
    folder = root + path if path != "/" else root
    try:
        fs.make_dirs(folder)
    except AccessError as error:
        if not parent_of(parent_of(root)).endswith("/.Trash"):
            raise
        hint = f"an administrator makes the trash of an encryption zone: hdfs crypto -provisionTrash; or {_OWN}"
        raise AccessError(error.what, error.why, hint) from error
    except (ConflictError, NotFoundError):
        folder = root
        for part in path.strip("/").split("/"):
            folder = join(folder, part)
            if fs.exists(folder) and not fs.stat(folder).is_dir:
                folder = _with_time(folder)
        fs.make_dirs(folder)
    return folder


_OWN = "leave out --trash hdfs, for the trash of the location itself"


def _with_zone_hint(error: StorageError) -> StorageError:
    if "encryption zone" not in error.why:
        return error
    hint = f"WebHDFS (webhdfs://) of Hadoop 2.9 and later says where the trash of the zone is; or {_OWN}"
    return type(error)(error.what, error.why, hint)


def _with_time(path: str) -> str:
    return f"{path}{time.time_ns() // 1_000_000}"
