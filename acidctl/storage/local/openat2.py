"""The kernel's ``openat2``, which Python does not have: it opens a path and refuses what it meets on the way."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

NO_XDEV = 0x01
"""Refuse to enter another mount: the error is EXDEV."""
NO_SYMLINKS = 0x04
"""Refuse to follow a symbolic link: the error is ELOOP."""
NUMBER = 437
"""Of the call; the same on every architecture. Linux has it since 5.6."""


@cache
def _libc() -> tuple[Callable[..., int], Callable[[], int]]:
    """The C library's way to call the kernel, and the number of its last error."""
    import ctypes  # noqa: PLC0415 - commands that only look do without

    return ctypes.CDLL(None, use_errno=True).syscall, ctypes.get_errno


def openat2(directory: int, path: bytes, flags: int, resolve: int) -> tuple[int, int]:
    """Open a path below a directory's descriptor.

    Args:
        flags: as for ``os.open``.
        resolve: NO_XDEV, NO_SYMLINKS.

    Returns:
        The descriptor and 0; or -1 and the number of the error: of ENOSYS, EPERM, EINVAL and E2BIG nobody knows whether
        an old kernel or a sandbox said it.
    """
    syscall, last_error = _libc()
    how = struct.pack("=QQQ", flags, 0, resolve)
    found = syscall(NUMBER, directory, path, how, len(how))
    return (found, 0) if found >= 0 else (-1, last_error())


@contextmanager
def held(descriptor: int) -> Iterator[int]:
    """A descriptor that was opened for the block, and is closed at its end."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)
