"""The loop of a service, which continues after errors of the metastore."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from acidctl.base.errors import AcidctlError

_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0


def repeat(work: Callable[[], None], every: float, stopping: Event, on_error: Callable[[AcidctlError], None]) -> None:
    """Call `work` until `stopping` is set; after a failure, retry sooner, with growing pauses.

    Args:
        every: seconds from the start of a call to the start of the next.
    """
    pause = _FIRST_PAUSE
    while not stopping.is_set():
        start = time.monotonic()
        try:
            work()
            pause, wait = _FIRST_PAUSE, every - (time.monotonic() - start)
        except AcidctlError as error:
            on_error(error)
            pause = min(2 * pause, _LONGEST_PAUSE)
            wait = min(pause, every)
        stopping.wait(max(wait, 0.0))
