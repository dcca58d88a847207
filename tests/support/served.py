"""A server for as long as it is needed, or a test that is skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import pytest

from support.servers.hdfs_server import ServerUnavailable


class _Server(Protocol):
    def stop(self) -> None: ...


S = TypeVar("S", bound=_Server)


@contextmanager
def served(start: Callable[[], S]) -> Iterator[S]:
    """What `start` gives, ended in any case; where it cannot be had the test is skipped with the reason."""
    try:
        server = _started(start)
    except ServerUnavailable as error:
        pytest.skip(f"no server to test with: {error}")
    try:
        yield server
    finally:
        server.stop()


def _started(start: Callable[[], S]) -> S:
    """Once more, on other ports, where a process beside took one that was free a moment ago."""
    try:
        return start()
    except ServerUnavailable as error:
        if "Address already in use" not in str(error):
            raise
    return start()
