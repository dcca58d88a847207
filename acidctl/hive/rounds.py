"""Work that is done again and again, by a service that outlives a server that is away for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from acidctl.errors import AcidctlError

_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0


def repeat(work: Callable[[], None], every: float, stopping: Event, on_error: Callable[[AcidctlError], None]) -> None:
    """Do it until `stopping` is set. After a failure it is tried again sooner, and later each time.

    Args:
        every: seconds from the begin of one to that of the next.
    """
    pause = _FIRST_PAUSE
    while not stopping.is_set():
        begun = time.monotonic()
        try:
            work()
            pause, wait = _FIRST_PAUSE, every - (time.monotonic() - begun)
        except AcidctlError as error:
            on_error(error)
            pause = min(2 * pause, _LONGEST_PAUSE)
            wait = min(pause, every)
        stopping.wait(max(wait, 0.0))
