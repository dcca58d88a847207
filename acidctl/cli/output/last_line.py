"""The last line of the terminal: how far the work is, below all that is printed, and never in the midst of it.

Whoever writes to a standard stream of the run passes here: the line goes away before, and comes back when what was
written has ended with a line feed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from acidctl.cli.output.verbosity import VERBOSITY

_EVERY = 0.2
"""Seconds between two looks at what is to be shown."""
USUAL_COLUMNS = 80
"""Columns of a terminal that does not tell."""
ERASE = "\r\x1b[K"


def own_stream(stream: TextIO) -> TextIO:
    """What is behind a screen (:class:`acidctl.cli.output.streams.Screened`), where there is one."""
    behind: TextIO = getattr(stream, "behind", stream)
    return behind


Text = Callable[[int], str]
"""What is to be shown on so many columns; empty for nothing."""


class LastLine:
    """One for the process; where standard error is not a terminal, and with `-q`, nothing is ever shown."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._texts: list[Text] = []
        self._shown = ""
        self._is_free = True
        self._hidden = 0
        self._ticking: threading.Event | None = None

    @contextmanager
    def showing(self, text: Text) -> Iterator[None]:
        """Within the block; of several, the one that was begun last and has something to show."""
        with self._lock:
            self._texts.append(text)
            self._tick()
        try:
            yield
        finally:
            with self._lock:
                self._texts.remove(text)
                if not self._texts:
                    self._stop()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Never within the block: somebody has the whole screen, or all that is written."""
        with self._lock:
            self._put("")
            self._hidden += 1
        try:
            yield
        finally:
            with self._lock:
                self._hidden -= 1

    def begin(self) -> None:
        """Something is about to be written to the terminal."""
        if self._texts or self._shown:
            with self._lock:
                self._is_free = False
                self._put("")

    def hide(self) -> None:
        """Nothing is shown until :meth:`end`: the screen is another program's."""
        with self._lock:
            self._is_free = False
            self._put("")

    def end(self, last: str | bytes) -> None:
        """It was written; `last` is the end of it."""
        self._is_free = last in ("\n", b"\n")

    def draw(self) -> None:
        """Show what there is to show."""
        with self._lock:
            if not self._is_free or self._ticking is None or VERBOSITY.is_quiet:
                return
            width = terminal_columns()
            texts = (text(width - 1)[: width - 1] for text in reversed(self._texts))
            self._put(next(filter(None, texts), ""))

    def _put(self, text: str) -> None:
        if text == self._shown or self._hidden:
            return
        with suppress(OSError, ValueError):  # the terminal is gone: what is to be printed will say so
            behind = own_stream(sys.stderr)
            behind.write(ERASE + text)
            behind.flush()
        self._shown = text

    def _tick(self) -> None:
        if self._ticking is None and sys.stderr.isatty() and not is_dumb():
            self._ticking = done = threading.Event()
            threading.Thread(target=self._follow, args=(done,), name="acidctl-last-line", daemon=True).start()

    def _follow(self, done: threading.Event) -> None:
        while not done.wait(_EVERY):
            self.draw()

    def _stop(self) -> None:
        if self._ticking:
            self._ticking.set()
            self._ticking = None
        self._put("")


LAST_LINE = LastLine()


def is_dumb() -> bool:
    """Whether the terminal understands nothing but lines."""
    return os.environ.get("TERM", "").lower() in ("", "dumb", "unknown")


def terminal_columns() -> int:
    """How wide the terminal is."""
    return terminal_size()[0]


def terminal_size() -> tuple[int, int]:
    """Columns and lines of the terminal of standard error, or else of output; one of a script, say, may not know them,
    and tells 0.
    """
    for descriptor in (2, 1):
        with suppress(OSError, ValueError):
            size = os.get_terminal_size(descriptor)
            return max(20, size.columns or USUAL_COLUMNS), size.lines or 24
    return USUAL_COLUMNS, 24


class Listed:
    """What was listed so far, shown while it still becomes more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._directories = self._entries = 0
        self._begun = self._changed = time.monotonic()

    def add(self, directories: int, entries: int) -> None:
        """Called by any thread."""
        with self._lock:
            self._directories += directories
            self._entries += entries
            self._changed = time.monotonic()

    def text(self, _: int) -> str:
        """Nothing before there is something and a moment has passed, nor after the last listing."""
        now = time.monotonic()
        if (
            not (self._directories or self._entries)
            or now - self._begun < 2 * _EVERY
            or now - self._changed > 5 * _EVERY
        ):
            return ""
        rate = f", {self._entries / (now - self._begun):,.0f}/s" if now - self._begun >= 1 else ""
        return f"listed {self._directories:,} directories, {self._entries:,} entries{rate}"


@contextmanager
def listings() -> Iterator[None]:
    """Show within the block, where there is a terminal, how much was listed so far."""
    if not sys.stderr.isatty():
        yield
        return
    from acidctl.location.walk import listening  # noqa: PLC0415 - --help lists nothing

    listed = Listed()
    with listening(listed.add), LAST_LINE.showing(listed.text):
        yield
