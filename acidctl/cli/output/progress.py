"""How far long work is: a bar on the last line of the terminal, nothing anywhere else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from acidctl.cli.output.console import human_bytes
from acidctl.cli.output.last_line import LAST_LINE

_CELLS = 24
_AFTER_SECONDS = 0.4
_RATE_SECONDS = 1.0


class Bar:
    """Steps or bytes that are done, of all; any thread may tell.

    Args:
        doing: what, ``cleaning``.
        total: None where nobody knows yet.
        is_bytes: they are shown as sizes, with a rate.
    """

    def __init__(self, doing: str, total: int | None, *, is_bytes: bool = False) -> None:
        self._doing, self._total, self._is_bytes = doing, total, is_bytes
        self._done = 0
        self._lock = threading.Lock()
        self._begun = time.monotonic()

    def advance(self, count: int = 1) -> None:
        """So much more is done."""
        with self._lock:
            self._done += count

    def reach(self, done: int, total: int | None) -> None:
        """So much is done, of all that is known now."""
        with self._lock:
            self._done, self._total = done, total

    def grow(self, count: int) -> None:
        """There is more to do."""
        with self._lock:
            self._total = (self._total or 0) + count

    def text(self, columns: int) -> str:
        """The line, with what has room: nothing in the first moment, as most work is done by then."""
        seconds = time.monotonic() - self._begun
        if seconds < _AFTER_SECONDS:
            return ""
        return bar_text(self._doing, self._done, self._total, seconds, columns, is_bytes=self._is_bytes)


def bar_text(doing: str, done: int, total: int | None, seconds: float, columns: int, *, is_bytes: bool) -> str:
    """``compacting 3 buckets [#####...................]  1.2 GiB of 5.1 GiB, 310.0 MiB/s, 0:13 left``."""

    def amount(count: int) -> str:
        return human_bytes(count) if is_bytes else f"{count:,}"

    if not total:
        return f"{doing}: {amount(done)}"
    done = min(done, total)
    filled = _CELLS * done // total
    bar = f"[{'#' * filled}{'.' * (_CELLS - filled)}]"
    parts = [f"{amount(done)} of {amount(total)}"]
    if done and seconds >= _RATE_SECONDS:
        parts += [f"{amount(int(done / seconds))}/s"] if is_bytes else []
        parts += [f"{_clock(seconds * (total - done) / done)} left"]
    for kept in range(len(parts), 0, -1):
        line = f"{doing} {bar}  {', '.join(parts[:kept])}"
        if len(line) <= columns:
            return line
    return f"{doing}: {parts[0]}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def progress(doing: str, total: int | None = None, *, is_bytes: bool = False) -> Iterator[Bar]:
    """A bar within the block."""
    bar = Bar(doing, total, is_bytes=is_bytes)
    with LAST_LINE.showing(bar.text):
        yield bar
