"""Map errors of the operating system, and of libraries that use its classes, to acidctl's own."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from acidctl.base.errors import (
    AccessError,
    AcidctlError,
    ConflictError,
    NoSpaceError,
    NotFoundError,
    RefusedError,
    StorageError,
)
from acidctl.base.printable import printable

_Row = tuple[type[AcidctlError], str, str]

_NOT_FOUND: _Row = (NotFoundError, "no such file or directory", "check the spelling of the path")
_NOT_DIRECTORY: _Row = (NotFoundError, "it or a parent of it is a file, not a directory", "give the directory's path")
_IS_DIRECTORY: _Row = (NotFoundError, "it is a directory, not a file", "give the path of a file")
_DENIED: _Row = (AccessError, "permission denied", "run as a user who may, or ask the owner for the permission")
_READ_ONLY: _Row = (AccessError, "the file system is read-only", "mount it for writing, or work on a copy")
_EXISTS: _Row = (ConflictError, "it exists already", "something else made it meanwhile, or an earlier run left it")
_NOT_EMPTY: _Row = (ConflictError, "the directory is not empty", "something writes into it: try again when it is done")
_FULL: _Row = (NoSpaceError, "no space left on the device", "free some space and run it again")
_QUOTA: _Row = (NoSpaceError, "the disk quota is used up", "free some space or raise the quota")
_LOOP: _Row = (StorageError, "too many symbolic links in the path", "look for a link that points at its own parent")
_TOO_LONG: _Row = (StorageError, "the name is too long for the file system", "use a shorter path")
_TWO_DISKS: _Row = (StorageError, "source and target are on different file systems", "keep both on one file system")
_BUSY: _Row = (StorageError, "the device or a mount point is busy", "find out what uses it and try again")

_MOST = 4096
_ENDS = 60  # characters of either end of a name that is too long that are shown
_BY_ERRNO: dict[int, _Row] = {
    errno.ENOENT: _NOT_FOUND, errno.ENOTDIR: _NOT_DIRECTORY, errno.EISDIR: _IS_DIRECTORY, errno.EACCES: _DENIED,
    errno.EPERM: _DENIED, errno.EROFS: _READ_ONLY, errno.EEXIST: _EXISTS, errno.ENOTEMPTY: _NOT_EMPTY,
    errno.ENOSPC: _FULL, errno.EDQUOT: _QUOTA, errno.ELOOP: _LOOP, errno.ENAMETOOLONG: _TOO_LONG,
    errno.EXDEV: _TWO_DISKS, errno.EBUSY: _BUSY,
}  # fmt: skip

# Libraries raise these classes with a message only, without a number.
_BY_CLASS: tuple[tuple[type[OSError], _Row], ...] = (
    (FileNotFoundError, _NOT_FOUND), (NotADirectoryError, _NOT_DIRECTORY), (IsADirectoryError, _IS_DIRECTORY),
    (PermissionError, _DENIED), (FileExistsError, _EXISTS),
)  # fmt: skip


def from_os_error(error: OSError, doing: str, shown: str) -> AcidctlError:
    """Return the error to raise for `error`, met while `doing` ("read", "list"...) the path `shown`."""
    row = _BY_ERRNO.get(error.errno) if error.errno is not None else None
    if row is None:
        row = next((row for cls, row in _BY_CLASS if isinstance(error, cls)), None)
    is_too_long = row is _TOO_LONG
    # Such a name would also fill the screen.
    is_cut = len(shown) > 2 * _ENDS and (is_too_long or len(shown) > _MOST)
    what = f"cannot {doing} {printable(f'{shown[:_ENDS]}...{shown[-_ENDS:]}' if is_cut else shown)}"
    if row is None:
        return StorageError(what, printable(error.strerror or str(error) or type(error).__name__), "try again")
    kind, why, hint = row
    # Deep inside a tree the path that failed differs from the path that was asked for.
    name = error.filename
    if isinstance(name, str) and name and not shown.endswith(name) and not is_too_long:
        why = f"{why}: {printable(name)}"
    return kind(what, why, hint)


@contextmanager
def mapped(doing: str, shown: str) -> Iterator[None]:
    """Map the operating system's errors of the block to acidctl's."""
    try:
        yield
    except OSError as error:
        raise from_os_error(error, doing, shown) from error
    except ValueError as error:  # a NUL byte, or text that is not a file name at all
        why = f"no file can have this name ({error})"
        raise NotFoundError(f"cannot {doing} {printable(shown)}", why, _NOT_FOUND[2]) from error


def already_exists(doing: str, shown: str) -> ConflictError:
    """Return the error for a target that must not exist."""
    return ConflictError(f"cannot {doing} {printable(shown)}", _EXISTS[1], _EXISTS[2])


def missing(doing: str, shown: str) -> NotFoundError:
    """Return the error for a path that does not exist."""
    return NotFoundError(f"cannot {doing} {printable(shown)}", _NOT_FOUND[1], _NOT_FOUND[2])


def not_a_directory(doing: str, shown: str) -> NotFoundError:
    """Return the error for a file that must be a directory."""
    return NotFoundError(f"cannot {doing} {printable(shown)}", "it is a file, not a directory", _NOT_DIRECTORY[2])


def is_a_directory(doing: str, shown: str) -> NotFoundError:
    """Return the error for a directory that must be a file."""
    return NotFoundError(f"cannot {doing} {printable(shown)}", _IS_DIRECTORY[1], _IS_DIRECTORY[2])


def cannot_rename(shown: str, scheme: str) -> StorageError:
    """Return the error for a store without renames."""
    why = f"{scheme} has no rename that is one step and never replaces"
    hint = "copy the table to HDFS or a disk, work there, and copy it back"
    return StorageError(f"cannot rename {printable(shown)}", why, hint)


def cannot_copy(shown: str) -> StorageError:
    """Return the error for a store without copies that appear in one step."""
    why = "this store has no copy of a file that appears in one step"
    return StorageError(f"cannot copy {printable(shown)}", why, "copy it with the store's own tool")


def root_is_kept(shown: str) -> RefusedError:
    """Return the error for an attempt to remove a whole file system."""
    return RefusedError(f"will not remove {printable(shown)}", "it is the root of the file system")
