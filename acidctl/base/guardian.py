"""Watch a command from a parent process, because a bad file may crash a native reader and the process that reads.

:func:`watched` forks before anything heavy is imported and before any client exists. The child runs the whole command
with the terminal, streams and process group of its parent. The parent waits, passes signals on, and ends as the child
ends; only after a crash it goes on, to name the file that was being read.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from acidctl.base.errors import BadDataError

FAULTS = frozenset((signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL))
"""Signals that a process gets because of a fault of its own."""

SILENT_SECONDS = 600.0
"""The time limit of one native read, if the command goes on without the file."""
_LOOK_SECONDS = 5.0
_HANDLED = (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGCONT)
"""Any other signal ends the parent as it would end the command, and the kernel ends the child with it."""
_SI_KERNEL = 0x80  # the code of a signal from the terminal, which the whole process group gets
_SLOT, _NAMES = 4096, ("file", "begun", "ended", "written")


class Notes:
    """Short texts by name that a watched command leaves for its parent, in memory that both share.

    ``file`` is the file that was read last, ``begun`` and ``ended`` count native reads, ``written`` is the state of
    standard output.

    Attributes:
        isolates: whether each file is read in a process that may die.
        crash: how the process of the command ended, after a crash.
        before: the crash after which the command begins again.
        shared: the memory; None if no parent reads it.
    """

    def __init__(self) -> None:
        self.isolates = False
        self.crash = self.before = ""
        self.shared: mmap.mmap | None = None
        self._begun = self._ended = 0
        self._lock = threading.Lock()

    def __setitem__(self, name: str, text: str) -> None:
        if self.shared is not None:
            data, at = os.fsencode(text)[: _SLOT - 2], _NAMES.index(name) * _SLOT
            self.shared[at : at + 2 + len(data)] = len(data).to_bytes(2, "big") + data

    def __getitem__(self, name: str) -> str:
        assert self.shared is not None
        at = _NAMES.index(name) * _SLOT
        length = int.from_bytes(self.shared[at : at + 2], "big")
        return os.fsdecode(self.shared[at + 2 : at + 2 + length])

    @contextmanager
    def reading(self, path: str) -> Iterator[None]:
        """Name the file that a native reader works on within the block; several threads may do so."""
        with self._lock:
            self._begun += 1
            self["file"], self["begun"] = path, str(self._begun)
        try:
            yield
        finally:
            with self._lock:
                self._ended += 1
                self["ended"] = str(self._ended)

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Read files in another process within the block: a file that crashes its native reader counts as damaged.

        Every batch of rows is copied from there, so this is for commands that go on without the file.
        """
        before, self.isolates = self.isolates, True
        try:
            yield
        finally:
            self.isolates = before

    @property
    def error(self) -> BadDataError:
        """Return the error for the crash."""
        hint = "restore the file from its source; `acidctl validate --deep` names all such files of a location"
        if self["begun"] != self["ended"]:
            return BadDataError(f"{self['file']} cannot be read", f"the process that read it {self.crash}", hint)
        last = f"; the last file that it read is {self['file']}" if self["file"] else ""
        return BadDataError("the command crashed", f"its process {self.crash}{last}", hint)


NOTES = Notes()
"""The notes of this process: readers deep below a command write them, and only its parent reads them."""


def watched(*, ends_hanging: bool = False) -> bool:
    """Continue in a child process, which this process watches.

    Args:
        ends_hanging: whether a native reader that takes too long counts as crashed.

    Returns:
        True in the parent of a child that crashed; if a child ends in another way, its parent ends here, too. False in
        the child, and if no process can be forked.
    """
    if not hasattr(signal, "sigtimedwait"):
        return False
    NOTES.shared = mmap.mmap(-1, _SLOT * len(_NAMES))
    reads, writes = os.pipe()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    usual = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        child = os.fork()
        if child:
            NOTES.crash = _crash_of(child, _LOOK_SECONDS if ends_hanging else None)
            os.close(reads)
        else:
            end_with(reads)
        os.close(writes)
    except BlockingIOError:  # no process can be forked: the command runs unwatched
        child = 0
        NOTES.shared = None
    signal.signal(signal.SIGCHLD, usual)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return bool(child)


def end_with(line: int) -> None:
    """Have the kernel end this process when the other end of a pipe closes, even while native code hangs.

    PR_SET_PDEATHSIG would end it as soon as the thread that started it ends, even if the parent lives on.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGIO])
    fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(line, fcntl.F_SETFL, os.O_ASYNC)


# --- in the parent ---


def _crash_of(child: int, look: float | None) -> str:
    """Wait for the child's crash, and return how it ended; if it ends otherwise, this process ends, too.

    Args:
        look: seconds between two checks whether a native reader hangs; None for no checks.
    """
    seen, same, how = "", 0, ""
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        came = signal.sigtimedwait(_HANDLED, look) if look else signal.sigwaitinfo(_HANDLED)
        if came is not None:
            _pass_on(came, child)
            continue
        counts = f"{NOTES['begun']} {NOTES['ended']}"
        same = same + 1 if counts == seen and NOTES["begun"] != NOTES["ended"] else 0
        seen = counts
        # Checks are counted, since time goes on while this process is stopped.
        if look and same * look >= SILENT_SECONDS:
            how = f"did not answer for {SILENT_SECONDS:g} seconds"
            os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(ended[1])
    if not how and -code not in FAULTS:
        _end_with_status(code)
    return how or f"was ended by {signal.Signals(-code).name}"


def _pass_on(came: signal.struct_siginfo, child: int) -> None:
    """Send a signal to the child that the terminal has not sent to it, and stop together with the child."""
    number = signal.Signals(came.si_signo)
    # If a terminal is gone, only the first process of its session is told.
    if number is not signal.SIGCHLD and (came.si_code != _SI_KERNEL or number is signal.SIGHUP):
        os.kill(child, number)
    if number is signal.SIGTSTP:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)  # the kernel stops only what somebody can continue
        signal.pthread_sigmask(signal.SIG_BLOCK, [number])


def _end_with_status(code: int) -> NoReturn:
    """End like the child: with its exit code, or by the same signal, but without a core file."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)
