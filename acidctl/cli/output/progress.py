"""The progress of long work: a bar on the last line of the terminal."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from acidctl.cli.output.terminal import LAST_LINE
from acidctl.verbs.events import Progress
from acidctl.wording import duration, human_bytes

_CELLS = 24
_AFTER_SECONDS = 0.4
_RATE_SECONDS = 1.0


class Bar(Progress):
    """Steps or bytes that are done, of a total; any thread may call the methods.

    Args:
        doing: the work, ``cleaning``.
        total: None if it is not known yet.
        is_bytes: whether the counts are sizes.
    """

    def __init__(self, doing: str, total: int | None, *, is_bytes: bool = False) -> None:
        self._doing, self._total, self._is_bytes = doing, total, is_bytes
        self._done = 0
        self._lock = threading.Lock()
        self._begun = time.monotonic()

    def advance(self, count: int = 1) -> None:
        with self._lock:
            self._done += count

    def reach(self, done: int, total: int | None) -> None:
        with self._lock:
            self._done, self._total = done, total

    def grow(self, count: int) -> None:
        with self._lock:
            self._total = (self._total or 0) + count

    def text(self, columns: int) -> str:
        """Return the line for this width; empty in the first moment, in which most work is done."""
        seconds = time.monotonic() - self._begun
        if seconds < _AFTER_SECONDS or not (self._total or self._done):
            return ""
        return bar_text(self._doing, self._done, self._total, seconds, columns, is_bytes=self._is_bytes)


def bar_text(doing: str, done: int, total: int | None, seconds: float, columns: int, *, is_bytes: bool) -> str:
    """Return ``compacting 3 buckets [#####...................]  1.2 of 5.1 GiB, 310.0 MiB/s, 13 s left``."""
    rate = f"{_rate(done / seconds, is_bytes)}/s" if done and seconds >= _RATE_SECONDS else ""
    if not total:
        return f"{doing}: {human_bytes(done) if is_bytes else f'{done:,}'}" + (f", {rate}" if rate else "")
    done = min(done, total)
    filled = _CELLS * done // total
    bar = f"[{'#' * filled}{'.' * (_CELLS - filled)}]"
    parts = [f"{_bytes_of(done, total)} of {human_bytes(total)}" if is_bytes else f"{done:,} of {total:,}"]
    if rate:
        parts += [rate, f"{duration(math.ceil(seconds * (total - done) / done))} left"]
    for kept in range(len(parts), 0, -1):
        line = f"{doing} {bar}  {', '.join(parts[:kept])}"
        if len(line) <= columns:
            return line
    return f"{doing}: {parts[0]}"


def _bytes_of(done: int, total: int) -> str:
    """Return a size in the unit of the total, without the unit's name."""
    number, unit = human_bytes(total).split()
    size = int(float(number) and total / float(number)) or 1
    return f"{done / size:.1f}" if unit != "B" else f"{done}"


def _rate(each_second: float, is_bytes: bool) -> str:
    if is_bytes:
        return human_bytes(int(each_second))
    return f"{each_second:,.1f}" if each_second < 10 else f"{each_second:,.0f}"


@contextmanager
def progress(doing: str, total: int | None = None, *, is_bytes: bool = False) -> Iterator[Bar]:
    """Show a bar within the block."""
    bar = Bar(doing, total, is_bytes=is_bytes)
    with LAST_LINE.showing(bar.text):
        yield bar


@contextmanager
def listings() -> Iterator[None]:
    """Show on a terminal, within the block, how many entries were listed so far, unless another bar is shown."""
    from acidctl.location.walk import listening  # noqa: PLC0415 - what else shows progress lists nothing

    bar = Bar("entries listed", None)
    with listening(lambda _, entries: bar.advance(entries)), LAST_LINE.showing(bar.text):
        yield
