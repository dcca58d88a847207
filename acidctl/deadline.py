"""When work is to end, which may be sooner than was thought when it began."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(slots=True)
class Deadline:
    """A moment by ``time.monotonic()``; another thread may bring it forward.

    Attributes:
        at: the moment; without one the work ends when it is done.
    """

    at: float = math.inf

    @property
    def is_over(self) -> bool:
        """Whether the moment has come."""
        return time.monotonic() >= self.at

    def end_now(self) -> None:
        """The moment has come."""
        self.at = -math.inf
