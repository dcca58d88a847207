"""The standard streams and signals of a run, whose failures are never reported as bugs."""

from __future__ import annotations

import io
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

from acidctl.base.errors import StorageError
from acidctl.base.guardian import NOTES
from acidctl.base.printable import printable
from acidctl.cli.output.terminal import LAST_LINE

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_CLEAN_UP_SECONDS = 5.0


class OutputError(StorageError):
    """Standard output is full, closed or broken; a pipe without a reader is a BrokenPipeError instead."""


class Screened(io.TextIOBase):
    """A standard stream that escapes everything a terminal would act on, except for line feeds.

    Libraries print warnings, click prints help with defaults from files, and tracebacks quote what they failed on.
    Code that has made its text printable and adds colours writes to the stream behind.

    Attributes:
        behind: the stream itself.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, behind: TextIO) -> None:
        super().__init__()
        self.behind = behind

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.behind.fileno()

    @property
    def buffer(self) -> BinaryIO:
        """Return the stream for bytes."""
        return self.behind.buffer

    def write(self, text: str, /) -> int:
        with on_terminal(self.behind, text):
            self.behind.write("\n".join(map(printable, text.split("\n"))))
        return len(text)

    def flush(self) -> None:
        if not self.behind.closed:  # Python flushes this when it is collected, maybe after the stream behind
            self.behind.flush()

    def isatty(self) -> bool:
        return self.behind.isatty()


@contextmanager
def on_terminal(stream: TextIO, text: str) -> Iterator[None]:
    """Make room on the last line of a terminal while the block writes a text to it."""
    if not text or not stream.isatty():
        yield
        return
    LAST_LINE.begin()
    yield
    LAST_LINE.end(text[-1])


class _Output(io.BufferedWriter):
    """Standard output: a pipe without a reader raises BrokenPipeError, every other failure OutputError.

    It fails once; later and buffered output is dropped, as Python flushes once more at exit.  The raw file below is
    Python's own: with a raw file in Python, a signal between a write and its return would repeat the output.

    Args:
        piped: hides the last line of the terminal once the first byte goes to a pipe: the reader of the pipe may write
            to the same terminal at any time, as `head` does.
    """

    def __init__(self, descriptor: int | None, piped: ExitStack) -> None:
        self._closed_before = descriptor is None
        self._failed = False
        self._is_terminal = descriptor is not None and os.isatty(descriptor)
        mode = 0 if descriptor is None else os.fstat(descriptor).st_mode
        self._hides = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        self._piped = piped
        self._unsaid = b""
        super().__init__(io.FileIO(os.devnull if descriptor is None else descriptor, "w", closefd=descriptor is None))

    def write(self, data: ReadableBuffer, /) -> int:
        if self._failed:
            return memoryview(data).nbytes
        with self._told():
            NOTES["written"] = "yes"
            if self._closed_before:
                raise OutputError("cannot write to standard output: it is closed")
            if self._hides:
                self._hides = False
                self._piped.enter_context(LAST_LINE.hidden())
            if self._is_terminal:
                LAST_LINE.begin()
                self._unsaid = bytes(memoryview(data).cast("B")[-1:]) or self._unsaid
            return super().write(data)

    def flush(self) -> None:
        if not self._failed:
            with self._told():
                super().flush()
            if self._unsaid:
                LAST_LINE.end(self._unsaid)
                self._unsaid = b""

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (BrokenPipeError, OutputError, KeyboardInterrupt):
            # After an interrupt, going on would wait for the same reader again.
            self._failed = True
            raise
        except OSError as error:
            self._failed = True
            why = (error.strerror or str(error)).lower()
            raise OutputError(f"cannot write to standard output: {why}") from error


@contextmanager
def standard_streams() -> Iterator[None]:
    """Stand in for standard streams that are closed, and watch standard output.

    Yields:
        Nothing; writing to ``sys.stdout`` raises OutputError or BrokenPipeError, once: later output is dropped.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    if None in before:  # fill the descriptors 0 to 2: no data file that is opened later becomes a standard stream
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - until the process ends
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    if sys.stdout is not None:
        sys.stdout.flush()
    piped = ExitStack()
    watched = _watched(before[1], piped)
    sys.stdout = cast("TextIO", Screened(watched))
    sys.stderr = cast("TextIO", Screened(sys.stderr))
    try:
        yield
    finally:
        # A successful command has flushed before; after a failure its own error matters.
        with suppress(BrokenPipeError, OutputError):
            watched.flush()
        piped.close()
        sys.stdin, sys.stdout, sys.stderr = before


def _watched(stdout: TextIO | None, piped: ExitStack) -> io.TextIOWrapper:
    """Return the replacement of `sys.stdout`; characters that its encoding lacks are escaped."""
    out = _Output(None if stdout is None else stdout.fileno(), piped)
    return io.TextIOWrapper(
        out,
        encoding=stdout.encoding if stdout else "utf-8",
        errors="backslashreplace",
        newline="\n",
        line_buffering=out.isatty(),
    )


class _Interrupts:
    """The state of the signal handlers.

    Attributes:
        held: how many blocks of :func:`uninterrupted` are active.
        is_waiting: a signal came within such a block.
    """

    def __init__(self) -> None:
        self.held = 0
        self.is_waiting = False

    def come(self, *_: object) -> None:
        """Raise KeyboardInterrupt; within such a block, only for the second signal."""
        if self.held and not self.is_waiting:
            self.is_waiting = True
            return
        self.is_waiting = False
        raise KeyboardInterrupt


_interrupts = _Interrupts()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay a signal until the block is done, as half a record is useless.

    A second signal ends the block at once, as the output may have no reader any more.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _interrupts.held += 1
    try:
        yield
    finally:
        _interrupts.held -= 1
        if _interrupts.is_waiting and not _interrupts.held:
            _interrupts.come()


@contextmanager
def ending_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt as Ctrl-C does, so that everything cleans up.

    Ignored signals stay ignored (`nohup`).  A second signal soon after the first is dropped: service managers and
    terminals send two at once, and the second would interrupt the clean-up.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last = -_CLEAN_UP_SECONDS

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _CLEAN_UP_SECONDS:
            last = now
            _interrupts.come()

    ours: dict[signal.Signals, tuple[Any, Any]] = dict.fromkeys(_ENDING, (signal.SIG_DFL, interrupt))
    ours[signal.SIGINT] = (signal.default_int_handler, _interrupts.come)
    changed = {number: usual for number, (usual, _) in ours.items() if signal.getsignal(number) is usual}
    for number in changed:
        signal.signal(number, ours[number][1])
    try:
        yield
    finally:
        _interrupts.held, _interrupts.is_waiting = 0, False
        for number, usual in changed.items():
            signal.signal(number, usual)
