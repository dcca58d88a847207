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
"""The number of the call, the same on every architecture; Linux has had it since 5.6."""


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
    descriptor = syscall(NUMBER, directory, path, how, len(how))
    return (descriptor, 0) if descriptor >= 0 else (-1, last_error())


@contextmanager
def held(descriptor: int) -> Iterator[int]:
    """Close a descriptor at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)
