"""The terminal: how much is printed, whether in colour, and the last line, which shows progress.

The last line stays below everything that is printed. Every write to a standard stream passes through here: the line is
erased before, and drawn again once the output has ended with a line feed.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import click


class Verbosity:
    """Keep what `-v`, `-q` and `--color` say for this run.

    Attributes:
        is_verbose: every location and every entry has lines of its own.
        is_quiet: results for people and remarks are not printed; results for programs and errors are.
        has_traces: --debug shows the trace of a bug.
        color: auto, always or never.
    """

    def __init__(self) -> None:
        self.is_verbose = self.is_quiet = self.has_traces = False
        self.color = "auto"

    def set(self, *, is_verbose: bool = False, is_quiet: bool = False, color: str = "auto") -> None:
        """Take the options; without any, reset them at the beginning of a run."""
        if is_verbose and is_quiet:
            raise click.UsageError("-v says more and -q says less: leave one of them out.")
        self.is_verbose, self.is_quiet, self.color = is_verbose, is_quiet, color

    def has_colors(self, *, is_terminal: bool) -> bool:
        """Return whether a stream gets colours: by default terminals that understand them, unless NO_COLOR is set."""
        if self.color != "auto":
            return self.color == "always"
        return is_terminal and not os.environ.get("NO_COLOR") and not is_dumb()


def is_dumb() -> bool:
    """Return whether the terminal understands no control sequences."""
    return os.environ.get("TERM", "").lower() in ("", "dumb", "unknown")


VERBOSITY = Verbosity()


_EVERY = 0.2
"""Seconds between two updates of the line."""
USUAL_COLUMNS = 80
"""Columns of a terminal that does not report its size."""
ERASE = "\r\x1b[K"


def own_stream(stream: TextIO) -> TextIO:
    """Return the stream behind a :class:`acidctl.cli.output.streams.Screened`, or the stream itself."""
    behind: TextIO = getattr(stream, "behind", stream)
    return behind


Text = Callable[[int], str]
"""Returns the text of the line for a number of columns; empty for nothing."""


class LastLine:
    """The last line of the process; nothing is ever shown with `-q`, or if standard error is not a terminal."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._texts: list[Text] = []
        self._shown = ""
        self._is_free = True
        self._hidden = 0
        self._ticking: threading.Event | None = None

    @contextmanager
    def showing(self, text: Text) -> Iterator[None]:
        """Show a text within the block; of several, the innermost one that is not empty."""
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
        """Show nothing within the block: another program reads the output, and may write to the same terminal."""
        with self._lock:
            self._put("")
            self._hidden += 1
        try:
            yield
        finally:
            with self._lock:
                self._hidden -= 1

    def begin(self) -> None:
        """Erase the line, as something is about to be written to the terminal."""
        if self._texts or self._shown:
            with self._lock:
                self._is_free = False
                self._put("")

    def end(self, last: str | bytes) -> None:
        """Allow the line again if `last`, the end of what was written, is a line feed."""
        self._is_free = last in ("\n", b"\n")

    def draw(self) -> None:
        """Draw the line now, if it may be shown."""
        with self._lock:
            if not self._is_free or self._ticking is None or VERBOSITY.is_quiet:
                return
            width = terminal_columns()
            texts = (text(width - 1)[: width - 1] for text in reversed(self._texts))
            self._put(next(filter(None, texts), ""))

    def _put(self, text: str) -> None:
        if text == self._shown or self._hidden:
            return
        with suppress(OSError, ValueError):  # the terminal is gone: the next output will report it
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


def terminal_columns() -> int:
    """Return the width of the terminal of standard error, or else of standard output.

    A terminal without a size, as of `script`, reports 0: the usual width stands in.
    """
    for descriptor in (2, 1):
        with suppress(OSError, ValueError):
            return max(20, os.get_terminal_size(descriptor).columns or USUAL_COLUMNS)
    return USUAL_COLUMNS
