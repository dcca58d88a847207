"""Limit how much this process may grow while a native reader works, so that a small file cannot take the machine.

Nothing is measured before: the kernel refuses memory above the bound, and the reader fails with a MemoryError.
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_THREAD = 80 << 20  # address space of a thread that a reader starts: its stack, and what the C library reserves for it
_LIBRARIES = 256 << 20  # address space that readers take besides their rows, when they start


def address_space() -> int:
    """Return the bytes of address space that this process has; 0 where the system does not say."""
    with suppress(OSError, ValueError):
        return int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    return 0


class MemoryGrowth:
    """The limit on the address space of this process; several threads may read at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers = self._most = 0
        self._usual = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        os.register_at_fork(after_in_child=self._forked)

    @contextmanager
    def limited(self, more: int) -> Iterator[bool]:
        """Let this process grow by no more than `more` bytes, and what threads take, within the block.

        All threads share the bound that the last of them sets. It is the soft limit, which is set back after the last
        block.

        Yields:
            Whether there is such a bound: not beside a lower limit that was set already, and on Linux only.
        """
        with self._lock:
            if not self._readers:
                self._usual, self._most = resource.getrlimit(resource.RLIMIT_AS), 0
            self._readers += 1
            size = address_space()
            bound = size + more + _LIBRARIES + _THREAD * (os.cpu_count() or 1) if size else 0
            self._most = max(self._most, bound)
            is_bound = self._set()
        try:
            yield is_bound
        finally:
            with self._lock:
                self._readers -= 1
                if not self._readers:
                    self._reset()

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Start a process within the block: it would inherit the bound. Readers that begin wait for the end."""
        with self._lock:
            if self._readers:
                self._reset()
            try:
                yield
            finally:
                if self._readers:
                    self._set()

    def _set(self) -> bool:
        usual = [limit for limit in self._usual if limit != resource.RLIM_INFINITY]
        if not self._most or self._most >= min(usual, default=self._most + 1):
            return False
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (self._most, self._usual[1]))
            return True
        return False

    def _reset(self) -> None:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, self._usual)

    def _forked(self) -> None:
        if self._readers:  # a fork has none of the threads that read here
            self._reset()
        self._readers, self._lock = 0, threading.Lock()


GROWTH = MemoryGrowth()
"""The limit of this process: the kernel has one for all its threads."""
