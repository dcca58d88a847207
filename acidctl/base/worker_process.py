"""Serve tasks in a worker process of :mod:`acidctl.base.worker_pool` until the parent ends."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn, Protocol

from acidctl.base.errors import AcidctlError
from acidctl.base.guardian import NOTES, end_with
from acidctl.base.imports import leave_out_pandas
from acidctl.base.memory_growth import address_space

_BEAT_SECONDS = 0.1  # the time between two signs of life of a worker
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt(3)


class Beat(Protocol):
    """Reports a sign of life; a task that works in steps calls it after each step."""

    def __call__(self, done: int = 0, /) -> None:
        """Report that the task is alive, and how many more bytes of its input are done."""
        ...


class Task(Protocol):
    """A picklable piece of work with a picklable result; `weight` is roughly the bytes that it reads."""

    @property
    def weight(self) -> int: ...

    def run(self, beat: Beat) -> Any:
        """Do the work.  An AcidctlError is a result; any other exception counts as a crash."""
        ...


def serve_as_fork(connection: Connection, line: int, others: list[int]) -> NoReturn:
    """Serve tasks, and exit: a fork ends nothing that its parent began, runs no handlers and flushes no buffers."""
    gc.freeze()  # finalizers of the parent's garbage would use its locks and sockets, py4j's for example
    try:
        for descriptor in others:
            os.close(descriptor)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number is signal.SIGINT else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        end_with(line)
        leave_out_pandas()
        _serve(connection)
        os._exit(0)
    finally:
        os._exit(1)


def serve_tasks(descriptor: int, memory: int) -> None:
    """Serve the tasks that come through a pipe, which closes when the parent ends.

    Args:
        memory: bytes by which the address space may grow; 0 for no limit.
    """
    leave_out_pandas()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it ends us
    line = os.dup(0)
    with Path(os.devnull).open() as empty:  # for whatever a library starts
        os.dup2(empty.fileno(), 0)
    end_with(line)
    if memory and (size := address_space()):  # on Linux only
        with contextlib.suppress(OSError, ValueError):  # a lower limit is set already
            resource.setrlimit(resource.RLIMIT_AS, (size + memory, size + memory))
    _serve(Connection(descriptor))


def _serve(connection: Connection) -> None:
    NOTES.isolates, NOTES.shared = False, None  # it is isolated already, and the notes are its parent's
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _keep_freed_memory()
    with contextlib.suppress(EOFError, OSError):  # nobody listens any more
        while True:
            task = connection.recv()
            connection.send(("beat", 0))
            _answer(connection, task)


class _Beats:
    """Passes signs of life on, at most ten a second."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last = time.monotonic()
        self._waiting = 0

    def __call__(self, done: int = 0, /) -> None:
        self._waiting += done
        if time.monotonic() - self._last >= _BEAT_SECONDS:
            self._connection.send(("beat", self._waiting))
            self._last, self._waiting = time.monotonic(), 0


def _answer(connection: Connection, task: Task) -> None:
    answer: tuple[str, Any]
    try:
        answer = "done", task.run(_Beats(connection))
    except AcidctlError as error:
        answer = "done", error
    except Exception as error:  # noqa: BLE001 - whatever a damaged file does to a reader is a result
        answer = "failed", described(error)
    try:
        connection.send(answer)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - an error of a store's library may not be fit to travel
        connection.send(("failed", described(error)))


def _keep_freed_memory() -> None:
    """Have the C library keep up to 64 MiB of freed memory.

    Otherwise it may return every array of a batch to the kernel, which clears those pages again for the next batch: a
    third of the CPU of some compactions. Its own threshold grows only if a large block happens to be freed early.
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, 32 << 20)  # the most that glibc takes
        mallopt(_TRIM_THRESHOLD, 64 << 20)


def described(error: Exception) -> str:
    """Return the class and the beginning of the text of an exception on one line."""
    text = " ".join(str(error).split())[:200]
    return type(error).__name__ + (f": {text}" if text else "")
