"""Parse durations, and hold deadlines that may be brought forward."""

from __future__ import annotations

import math
import re
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from numbers import Real

from acidctl.base.errors import UsageProblem

Duration = float | str | timedelta
"""A duration in Python: seconds, ``"24h"`` or a timedelta."""

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def duration_seconds(text: str) -> float | None:
    """Return the seconds of ``90s``, ``30m``, ``2h``, ``1d``, ``1h30m`` or ``0``; None for any other text."""
    known = text.strip().lower()
    if not re.fullmatch(r"(\d+(\.\d+)?[smhdw])+|0", known):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+(?:\.\d+)?)([smhdw])", known))


def duration_text(seconds: float) -> str:
    """Return ``90s``, ``30m``, ``24h`` or ``7d``, as :func:`duration_seconds` takes it; ``0`` for no time."""
    for unit in "dhm":
        size = _SECONDS[unit]
        if seconds % size == 0 and seconds >= (2 * size if unit == "d" else size):
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s" if seconds else "0"


def as_seconds(value: Duration, name: str) -> float:
    """Return the seconds of a duration that a caller gives; UsageProblem if it is not one, or is negative.

    Args:
        value: seconds, ``"24h"`` as on the command line, or a timedelta.
        name: the parameter, for messages.
    """
    seconds: float | None = None
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, str):
        seconds = duration_seconds(value)
    elif isinstance(value, Real) and not isinstance(value, bool) and value < sys.maxsize:
        seconds = float(value)
    if seconds is None or not seconds >= 0:
        hint = "give seconds, a text such as '90s', '24h' or '7d', or a timedelta"
        raise UsageProblem(f"{name} is not a duration: {value!r}", "", hint)
    return seconds


@dataclass(slots=True)
class Deadline:
    """A moment by ``time.monotonic()``, which a signal or another thread may bring forward.

    Attributes:
        at: the moment; infinity lets the work end when it is done.
    """

    at: float = math.inf

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """Return the deadline of work that begins now; None for work without one."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    @property
    def is_over(self) -> bool:
        """Return whether the moment has come; work asks between two steps, where nothing is half-done."""
        return time.monotonic() >= self.at

    def end_now(self) -> None:
        """End the work at its next safe point."""
        self.at = -math.inf
