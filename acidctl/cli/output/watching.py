"""A listing again and again on one screen, without flicker: drawn at its side, then put in place line by line."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from acidctl.cli.output.console import console
from acidctl.cli.output.last_line import LAST_LINE
from acidctl.cli.output.redact import hidden
from acidctl.cli.output.streams import uninterrupted
from acidctl.errors import AcidctlError
from acidctl.printable import printable
from acidctl.wording import duration

Listing = Callable[[], Any]
"""Lists once, as the command would without watching, and gives its exit status."""


class _Drawn(io.TextIOBase):
    """Takes the place of standard output, or error, and keeps what is written there."""

    def __init__(self, encoding: str, parts: list[str], *, is_terminal: bool) -> None:
        super().__init__()
        self._encoding = encoding
        self._parts, self._is_terminal = parts, is_terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):  # by which click asks whether it is a stream of bytes
            raise TypeError("text is written here")
        self._parts.append(text)
        return len(text)

    def isatty(self) -> bool:
        return self._is_terminal


def watch(listing: Listing, seconds: float, title: str) -> int:
    """List until Ctrl-C; the exit status is that of a tool that was told to end.

    One listing is over before the next begins: `seconds` lie between the two. An error that has nothing to do with how
    the command was typed stands on the screen, and goes with the next listing that is well; where the first one fails
    there is nothing to watch.

    Raises:
        AcidctlError: of the first listing.
    """
    parts: list[str] = []
    _list_once(listing, parts)
    screen = console()
    with LAST_LINE.hidden(), Live(console=screen, screen=True, auto_refresh=False) as live:
        try:
            while True:
                with uninterrupted():  # half a frame would be the last that is written
                    live.update(_frame(screen, title, seconds, parts), refresh=True)
                time.sleep(seconds)
                parts = []
                try:
                    _list_once(listing, parts)
                except AcidctlError as error:
                    parts.append(f"error: {printable(hidden(str(error)))}\n")
        except KeyboardInterrupt:
            return 0


def _list_once(listing: Listing, parts: list[str]) -> None:
    with _kept(parts), LAST_LINE.hidden():
        listing()


@contextmanager
def _kept(parts: list[str]) -> Iterator[None]:
    """What is written to the standard streams within the block is kept, in its order."""
    before = sys.stdout, sys.stderr
    # Tables are as wide as the terminal, and coloured; on a terminal's error there would be progress, too.
    sys.stdout = cast("Any", _Drawn(before[0].encoding, parts, is_terminal=True))
    sys.stderr = cast("Any", _Drawn(before[1].encoding, parts, is_terminal=False))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _frame(screen: Console, title: str, seconds: float, parts: list[str]) -> Group:
    """What fits the screen of it; the last line says what does not."""
    now = time.strftime("%H:%M:%S", time.gmtime())
    head = Text(f"{now} UTC  every {duration(seconds)}, Ctrl-C ends it  {printable(hidden(title))}", "dim")
    head.truncate(screen.width, overflow="ellipsis")
    lines = [
        line
        for text in "".join(parts).rstrip("\n").split("\n")
        for line in Text.from_ansi(text).wrap(screen, max(1, screen.width), no_wrap=False, overflow="fold")
    ]
    room = max(1, screen.height - 1)
    if len(lines) > room:
        left = len(lines) - room + 1
        lines = [*lines[: room - 1], Text(f"{left:,} more lines: a larger window shows them", "dim")]
    return Group(head, *lines)
