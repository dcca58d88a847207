"""The standard streams and signals of a run: what fails there is told as what it is, and never as a bug."""

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

from acidctl.cli.output.last_line import LAST_LINE, terminal_size
from acidctl.cli.output.pager import PAGING
from acidctl.errors import StorageError
from acidctl.guardian import NOTES
from acidctl.printable import printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_CLEAN_UP_SECONDS = 5.0


class OutputError(StorageError):
    """Standard output is full, closed or broken in another way than a pipe without a reader."""


class StandIn(io.TextIOBase):
    """Takes the place of a standard stream for text.

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


class Screened(StandIn):
    """A standard stream for text that anybody writes: of what a terminal would act on, line feeds alone get through.

    Libraries warn there, click prints help with defaults from files, and tracebacks quote what they failed on.
    Those that made their text printable and add colours write to what is behind.
    """

    @property
    def buffer(self) -> BinaryIO:
        """For bytes."""
        return self.behind.buffer

    def write(self, text: str, /) -> int:
        with on_terminal(self.behind, text):
            self.behind.write("\n".join(map(printable, text.split("\n"))))
        return len(text)

    def flush(self) -> None:
        if not self.behind.closed:  # as Python flushes what is collected, when what is behind has gone before
            self.behind.flush()

    def isatty(self) -> bool:
        return self.behind.isatty()


@contextmanager
def on_terminal(stream: TextIO, text: str) -> Iterator[None]:
    """Around writing a text to a stream: on a terminal, where what is on its last line makes room."""
    if not text or not stream.isatty():
        yield
        return
    LAST_LINE.begin()
    yield
    LAST_LINE.end(text[-1])


class _Output(io.BufferedWriter):
    """Standard output: a pipe without a reader stays a BrokenPipeError, every other failure is an OutputError.

    It fails once; what is written later, or was buffered then, is dropped, as Python flushes once more at exit.  The
    raw file below is Python's own: a signal between its writing and its saying so would repeat what was written.

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
        self._paging = PAGING  # which is still here when Python ends, and flushes what it had kept
        super().__init__(io.FileIO(os.devnull if descriptor is None else descriptor, "w", closefd=descriptor is None))

    def write(self, data: ReadableBuffer, /) -> int:
        if self._failed:
            return memoryview(data).nbytes
        with self._told():
            NOTES["written"] = "yes"
            if self._closed_before:
                raise OutputError("cannot write to standard output: it is closed")
            if self._is_terminal and PAGING.pager:
                PAGING.pager.write(bytes(memoryview(data).cast("B")))
                return memoryview(data).nbytes
            if self._hides:
                self._hides = False
                self._piped.enter_context(LAST_LINE.hidden())
            if self._is_terminal:
                LAST_LINE.begin()
                self._unsaid = bytes(memoryview(data).cast("B")[-1:]) or self._unsaid
            return super().write(data)

    def flush(self) -> None:
        if not self._failed and not self._paging.pager:
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
            # Interrupted in the midst of it: to go on would be to wait for the same reader once more.
            self._failed = True
            raise
        except OSError as error:
            self._failed = True
            why = (error.strerror or str(error)).lower()
            raise OutputError(f"cannot write to standard output: {why}") from error


@contextmanager
def paged() -> Iterator[None]:
    """Show what the block writes to standard output in a pager, on a terminal, where it is more than the screen.

    What is said meanwhile on standard error comes when the pager has ended.
    """
    screened = sys.stdout
    if not (isinstance(screened, Screened) and screened.isatty() and sys.stderr.isatty()):
        yield
        return
    screened.flush()

    def put(data: bytes) -> None:
        screened.buffer.write(data)
        screened.buffer.flush()

    with PAGING.begun(*terminal_size(), put):
        yield
        screened.flush()


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
    piped = ExitStack()
    watched = _watched(before[1], piped)
    sys.stdout = cast("TextIO", Screened(watched))
    sys.stderr = cast("TextIO", Screened(sys.stderr))
    try:
        yield
    finally:
        # When this fails the command has ended with an error of its own: one that was well has flushed before.
        with suppress(BrokenPipeError, OutputError):
            watched.flush()
        piped.close()
        sys.stdin, sys.stdout, sys.stderr = before


def _watched(stdout: TextIO | None, piped: ExitStack) -> io.TextIOWrapper:
    """The stream that takes the place of `sys.stdout`.  What its encoding cannot hold becomes an escape."""
    out = _Output(None if stdout is None else stdout.fileno(), piped)
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


class _Interrupts:
    """What the handlers of signals have to know.

    Attributes:
        held: how many blocks of :func:`uninterrupted` there are around the code that runs.
        is_waiting: a signal came meanwhile.
    """

    def __init__(self) -> None:
        self.held = 0
        self.is_waiting = False

    def come(self, *_: object) -> None:
        """Ctrl-C: at once, but for the first one in such a block."""
        if self.held and not self.is_waiting:
            self.is_waiting = True
            return
        self.is_waiting = False
        raise KeyboardInterrupt


_interrupts = _Interrupts()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A signal that ends the run does so when the block is done: half a record is worth nothing. A second one does at
    once, as nobody may be reading any more.
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
