"""Another run that holds the lock of a location."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from acidctl.location.change.lock import Locking
from acidctl.storage.port import FileSystem


@contextmanager
def locked(
    fs: FileSystem, location: str, *, break_stale: bool = False, on_break: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold the lock in whatever store, as commands do that change something."""
    with Locking(True, break_stale=break_stale, tell=on_break).at(fs, location):
        yield
