"""Limit the calls and the bytes a second that a process exchanges with one store.

Each call and each piece of bytes takes its time from a clock that all threads share; a thread sleeps until its turn.
"""

from __future__ import annotations

import threading
import time
from functools import lru_cache

from acidctl.base.arguments import size_in_bytes
from acidctl.base.errors import UsageProblem
from acidctl.storage.port import FileSystemSpec

CALLS, BYTES = "calls_per_second", "bytes_per_second"
"""The storage options that limit them."""


class Pace:
    """The limits of one store; 0 means no limit.

    Args:
        calls: calls a second.
        size: bytes a second.
    """

    def __init__(self, calls: float = 0.0, size: float = 0.0) -> None:
        self._calls, self._size = calls, size
        self._lock = threading.Lock()
        self._call_at = self._byte_at = 0.0  # when the next call may begin, and when the next bytes may pass

    def turn(self) -> float:
        """Return the seconds to wait before a call that is made now, which is counted."""
        if not self._calls and not self._size:
            return 0.0
        with self._lock:
            now = time.monotonic()
            begin = max(now, self._call_at, self._byte_at)
            if self._calls:
                self._call_at = max(now, self._call_at) + 1 / self._calls
            return begin - now

    def begin(self) -> None:
        """Wait for the turn of a call."""
        if wait := self.turn():
            time.sleep(wait)

    def passed(self, size: int) -> None:
        """Count bytes that were read, or are written next, and wait until those before them have had their time."""
        if not self._size:
            return
        with self._lock:
            now = time.monotonic()
            begin = max(now, self._byte_at)
            self._byte_at = begin + size / self._size
        if begin > now:
            time.sleep(begin - now)


def pace_of(spec: FileSystemSpec) -> Pace:
    """Return the limits of a store, the same object for the whole process.

    Raises:
        UsageProblem: a limit is not a number above 0.
    """
    options = dict(spec.options)
    calls, size = options.get(CALLS, ""), options.get(BYTES, "")
    return _pace(f"{spec.protocol}://{spec.authority}", _number(CALLS, calls), _number(BYTES, size))


@lru_cache(maxsize=256)
def _pace(_: str, calls: float, size: float) -> Pace:
    return Pace(calls, size)


def _number(name: str, text: str) -> float:
    if not text:
        return 0.0
    try:
        number = float(text) if name == CALLS else float(size_in_bytes(text) or 0)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e15:
        example = "50" if name == CALLS else "100m"
        raise UsageProblem(f"not a limit: {name}={text}", "", f"give a number above 0: {name}={example}")
    return number
