"""The standard streams and signals of a run: what fails there is told as what it is, and never as a bug."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from acidctl.errors import StorageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_CLEAN_UP_SECONDS = 5.0


class OutputError(StorageError):
    """Standard output is full, closed or broken in another way than a pipe without a reader."""


class _Output(io.BufferedWriter):
    """Standard output: a pipe without a reader stays a BrokenPipeError, every other failure is an OutputError.

    It fails once; what is written later, or was buffered then, is dropped, as Python flushes once more at exit.  The
    raw file below is Python's own: a signal between its writing and its saying so would repeat what was written.
    """

    def __init__(self, descriptor: int | None) -> None:
        self._closed_before = descriptor is None
        self._failed = False
        super().__init__(io.FileIO(os.devnull if descriptor is None else descriptor, "w", closefd=descriptor is None))

    def write(self, data: ReadableBuffer, /) -> int:
        if self._failed:
            return memoryview(data).nbytes
        with self._told():
            if self._closed_before:
                raise OutputError("cannot write to standard output: it is closed")
            return super().write(data)

    def flush(self) -> None:
        if not self._failed:
            with self._told():
                super().flush()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (BrokenPipeError, OutputError):
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
    if None in before:
        _occupy()
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - until the process ends
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    if sys.stdout is not None:
        sys.stdout.flush()
    watched = _watched(before[1])
    sys.stdout = watched
    try:
        yield
    finally:
        # When this fails the command has ended with an error of its own: one that was well has flushed before.
        with suppress(BrokenPipeError, OutputError):
            watched.flush()
        sys.stdin, sys.stdout, sys.stderr = before


def _watched(stdout: TextIO | None) -> io.TextIOWrapper:
    """The stream that takes the place of `sys.stdout`.  What its encoding cannot hold becomes an escape."""
    out = _Output(None if stdout is None else stdout.fileno())
    return io.TextIOWrapper(
        out,
        encoding=stdout.encoding if stdout else "utf-8",
        errors="backslashreplace",
        newline="\n",
        line_buffering=out.isatty(),
    )


def _occupy() -> None:
    """Fill the descriptors 0 to 2: a data file that is opened later must never become a standard stream."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


@contextmanager
def ending_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: KeyboardInterrupt, so that everything cleans up.

    What is ignored stays ignored (`nohup`).  A further one soon after is dropped: service managers and terminals send
    two at once, and the second would end the clean-up that the first has begun.
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
            raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in before.items():
        if handler is signal.SIG_DFL:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is signal.SIG_DFL:
                signal.signal(number, handler)
