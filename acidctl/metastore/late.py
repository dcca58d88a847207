"""What a server does late: the line broke after a question, and it is still at work on it when it is asked again."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 10.0
"""Seconds in which a server has done what it was asked for, or will not do it."""

_PAUSES = (0.0, 0.03, 0.07, 0.2)
"""Before each look, as parts of the patience."""


def look_again(look: Callable[[], object], patience: float | None = None) -> None:
    """Look, and some more times, until there is something to be seen.

    Args:
        look: says whether there was.
        patience: without it :data:`PATIENCE`.
    """
    for pause in _PAUSES:
        time.sleep(pause * (PATIENCE if patience is None else patience))
        if look():
            return
