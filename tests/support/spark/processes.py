"""Finding the processes of a run, in order to show that none is left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def marked(mark: str) -> list[int]:
    """The processes that have `mark` in their environment, apart from this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    """Whether `condition` became true within `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return bool(condition())
