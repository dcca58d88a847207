"""Rename without ever replacing: Linux's renameat2 with RENAME_NOREPLACE, and the best substitute without it."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Callable

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EMLINK}
_NOT_HERE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}


def _load() -> Callable[[int, bytes, int, bytes, int], int] | None:
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):  # another libc, another system
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    return function


_renameat2 = _load()


def rename_no_replace(source: str, target: str, source_dir: int | None = None, target_dir: int | None = None) -> None:
    """Move a file or directory to a free name in one step; a link is moved, not its target.

    If the kernel or the file system (NFS, some FUSE file systems) does not have the call, a file gets its new name by a
    hard link, which never replaces either. A directory, or a file on a file system without links, is moved by
    ``os.rename`` after a check that the target is free: a target that appears between the two is replaced if it is a
    file or an EMPTY directory, and still refused if it is a directory with entries.

    Args:
        source_dir, target_dir: descriptors of the directories of the names; None for paths.

    Raises:
        FileExistsError: the target exists, even as a broken symbolic link.
        OSError: as ``os.rename``.
    """
    if "\0" in source or "\0" in target:
        raise ValueError("embedded null byte")  # C would cut the name there and rename something else
    if _renameat2 is not None:
        at = [_AT_FDCWD if directory is None else directory for directory in (source_dir, target_dir)]
        if _renameat2(at[0], os.fsencode(source), at[1], os.fsencode(target), _RENAME_NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
        if number not in _NOT_HERE:
            raise OSError(number, os.strerror(number), source, None, target)
    _rename_after_look(source, target, source_dir, target_dir)


def _rename_after_look(source: str, target: str, source_dir: int | None, target_dir: int | None) -> None:
    if is_there(target, target_dir):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    if stat.S_ISREG(os.lstat(source, dir_fd=source_dir).st_mode):
        try:
            os.link(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        else:
            os.unlink(source, dir_fd=source_dir)
            return
    try:
        os.rename(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir)
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from error
        raise


def is_there(path: str, directory: int | None) -> bool:
    """Return whether anything is at a path, even a broken link."""
    try:
        os.lstat(path, dir_fd=directory)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
