"""A rename that never replaces: Linux's renameat2 with RENAME_NOREPLACE, and the best that is left without it."""

# ruff: noqa: PTH104
# The file system calls themselves are the subject.
from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
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


def rename_no_replace(source: str, target: str) -> None:
    """Move a file or directory to a name that is free, in one step.

    Where the kernel or the file system (NFS, some FUSE ones) has no such call, the target is looked for first and then
    ``os.rename`` is used: a target that appears between the two is replaced if it is a file or an EMPTY directory,
    and still refused if it is a directory with something in it.

    Raises:
        FileExistsError: the target exists, as a broken symbolic link too.
        OSError: as ``os.rename``.
    """
    if "\0" in source or "\0" in target:
        raise ValueError("embedded null byte")  # C would cut the name there and rename something else
    if _renameat2 is not None:
        if _renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
        if number not in _NOT_HERE:
            raise OSError(number, os.strerror(number), source, None, target)
    _rename_after_look(source, target)


def _rename_after_look(source: str, target: str) -> None:
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from error
        raise
