"""A pager for long lists on a terminal, by git's rules: none if the list fits, or if the variable is empty."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from acidctl.base.guardian import NOTES
from acidctl.cli.output.last_line import LAST_LINE
from acidctl.cli.output.verbosity import is_dumb

if TYPE_CHECKING:
    import subprocess

_STYLE = re.compile(rb"\x1b\[[0-9;]*m")


class Pager:
    """Holds back the output for a terminal until it is longer than the screen; from then on it goes to the pager.

    Args:
        command: the words of the pager's command line.
        columns, lines: the size of the screen.
    """

    def __init__(self, command: list[str], columns: int, lines: int) -> None:
        self._command, self._columns, self._room = command, columns, lines - 1
        self._held = bytearray()
        self._counted = self._lines = 0
        self._process: subprocess.Popen[bytes] | None = None

    def write(self, data: bytes) -> None:
        """Hold the data, or pass it to the pager."""
        if self._process and self._process.stdin:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        else:
            self._held += data
            self._count()
            if self._command and self._lines > self._room:
                self._start()

    def close(self) -> bytes:
        """Wait until the user leaves the pager; return what was held back if it fits on the screen."""
        process, self._process = self._process, None
        if process is None:
            return bytes(self._held)
        with suppress(BrokenPipeError):
            if process.stdin:
                process.stdin.close()
        while True:
            try:
                process.wait()
                NOTES["pager"] = ""
                return b""
            except KeyboardInterrupt:  # the pager got it as well, and goes on
                continue

    def _count(self) -> None:
        """Count the lines of the screen that are held; a long line takes several."""
        end = self._held.rfind(b"\n") + 1
        for line in self._held[self._counted : end].split(b"\n")[:-1]:
            self._lines += max(1, -(-len(_STYLE.sub(b"", line)) // self._columns))
        self._counted = max(self._counted, end)

    def _start(self) -> None:
        import subprocess  # noqa: PLC0415 - only where a list is longer than the screen

        LAST_LINE.hide()
        environ = {"LESS": "FRX", "LV": "-c", **os.environ}
        try:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, env=environ)
        except OSError:  # the pager cannot be started: show the output without it
            self._command = []
            return
        NOTES["pager"] = str(self._process.pid)
        held, self._held = bytes(self._held), bytearray()
        self.write(held)


def pager_command() -> list[str]:
    """Return the words of ACIDCTL_PAGER, PAGER or `less`; empty for no pager."""
    import shlex  # noqa: PLC0415 - only on a terminal
    import shutil  # noqa: PLC0415 - only on a terminal

    asked = next((value for name in ("ACIDCTL_PAGER", "PAGER") if (value := os.environ.get(name)) is not None), "less")
    try:
        words = shlex.split(asked)
    except ValueError:
        return []
    if not words or words == ["cat"] or is_dumb() or shutil.which(words[0]) is None:
        return []
    return words


class Paging:
    """Whether lists are paged, and the current pager.

    Attributes:
        is_off: whether `--no-pager` was given.
    """

    def __init__(self) -> None:
        self.is_off = False
        self.pager: Pager | None = None
        self._later: list[Callable[[], object]] = []

    @contextmanager
    def begun(self, columns: int, lines: int, put: Callable[[bytes], object]) -> Iterator[None]:
        """Page what the block writes to standard output.

        Args:
            put: writes the output if it fits on the screen.
        """
        command = [] if self.is_off else pager_command()
        if not command or self.pager is not None:
            yield
            return
        self.pager = pager = Pager(command, columns, lines)
        try:
            yield
        finally:
            held = pager.close()
            self.pager = None
            LAST_LINE.end("\n")
            if held:
                put(held)
            later, self._later = self._later, []
            for say in later:
                say()

    def is_later(self, say: Callable[[], object]) -> bool:
        """Return whether a message must wait for the pager; if so it is printed when the pager has ended."""
        if self.pager is not None:
            self._later.append(say)
        return self.pager is not None


PAGING = Paging()
