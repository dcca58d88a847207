"""Worker processes that may die: what a damaged file does to a native reader is a result like any other.

`concurrent.futures` gives up the whole pool when one process dies, and cannot end one that hangs. Here every process
has one task at a time and a time limit between signs of life: the task that was running is known, and the rest goes on.
"""

from __future__ import annotations

import contextlib
import ctypes
import resource
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from acidctl.errors import AcidctlError, EnvironmentProblem
from acidctl.processes import start_worker

_START_SECONDS = 120.0
_AHEAD = 4
"""Tasks in the queue for every process; below that, there is room for more."""
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)

Beat = Callable[[], None]
"""A sign of life: a task that works in steps calls it after each."""


class Task(Protocol):
    """A piece of work: picklable, as is what it returns.

    Attributes:
        weight: bytes that it reads, roughly.
    """

    @property
    def weight(self) -> int: ...

    def run(self, beat: Beat) -> Any:
        """Do it. AcidctlErrors are passed on; any other exception counts as a crash."""
        ...


@dataclass(frozen=True, slots=True)
class Crash:
    """The process that ran a task ended, or had to be ended.

    Attributes:
        reason: one line.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What a worker process may take.

    Attributes:
        seconds: without a sign of life.
        memory: bytes of address space on top of what the process starts with; a reader that wants more fails.
    """

    seconds: float = 300.0
    memory: int = 8 << 30


class Runner(Protocol):
    """Runs tasks somewhere, so that whatever happens to one is its result."""

    @property
    def ahead(self) -> int:
        """With fewer tasks than this waiting, more are welcome."""
        ...

    def submit(self, key: Any, task: Task) -> None:
        """Queue a task; `key` comes back with its result."""
        ...

    def results(self) -> Iterator[tuple[Any, Any]]:
        """(key, result, AcidctlError or Crash) of whatever ends next: at least one while something is unfinished."""
        ...


@dataclass(slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    connection: Connection
    key: Any = None
    deadline: float = 0.0
    busy: bool = False
    is_ready: bool = False


@dataclass(slots=True)
class Pool:
    """Runs tasks in processes of its own, one task a process at a time; a context manager.

    Attributes:
        size: processes; 0 runs tasks here, for stores that live in this process (``memory://``).
    """

    size: int
    limits: Limits = field(default_factory=Limits)
    _queue: deque[tuple[Any, Task]] = field(default_factory=deque)
    _workers: list[_Worker] = field(default_factory=list)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ahead(self) -> int:
        """With fewer tasks than this waiting, more are welcome."""
        return _AHEAD * max(1, self.size)

    def submit(self, key: Any, task: Task) -> None:
        """Queue a task; `key` comes back with its result."""
        self._queue.append((key, task))

    @property
    def unfinished(self) -> int:
        """Tasks that are queued or running."""
        return len(self._queue) + sum(worker.busy for worker in self._workers)

    def results(self) -> Iterator[tuple[Any, Any]]:
        """(key, result, AcidctlError or Crash) of whatever ends next: at least one while something is unfinished.

        Raises:
            EnvironmentProblem: no process can be started.
        """
        if self.size == 0:
            if self._queue:
                key, task = self._queue.popleft()
                yield key, _run_here(task)
            return
        while self.unfinished:
            self._hand_out()
            found = list(self._collect())
            if found:
                yield from found
                return

    def close(self) -> None:
        """End every process at once."""
        self._queue.clear()
        for worker in self._workers:
            _end(worker)
        self._workers.clear()

    def _hand_out(self) -> None:
        while self._queue:
            for worker in [one for one in self._workers if not one.busy and one.process.poll() is not None]:
                self._workers.remove(worker)  # it died without a task: no file is to blame
                _end(worker)
            idle = next((worker for worker in self._workers if not worker.busy), None)
            if idle is None:
                if len(self._workers) >= self.size:
                    return
                idle = self._start()
            key, task = self._queue.popleft()
            idle.key, idle.busy = key, True
            # Starting an interpreter is not the task's doing.
            idle.deadline = time.monotonic() + self.limits.seconds + (0 if idle.is_ready else _START_SECONDS)
            with contextlib.suppress(OSError):  # a dead process is noticed when its result is awaited
                idle.connection.send(task)

    def _start(self) -> _Worker:
        try:  # what a native library says as it dies is not for the terminal
            process, ours = start_worker(serve, self.limits.memory, is_quiet=True)
        except OSError as error:
            raise _not_started(str(error)) from error
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _collect(self) -> Iterator[tuple[Any, Any]]:
        busy = {worker.connection: worker for worker in self._workers if worker.busy}
        left = min(worker.deadline for worker in busy.values()) - time.monotonic()
        for ready in wait(list(busy), max(0.0, left)):
            worker = busy[ready]  # type: ignore[index]
            try:
                kind, value = worker.connection.recv()
            except (EOFError, OSError):
                yield worker.key, Crash(self._drop(worker))
                continue
            if kind == "beat":
                worker.is_ready = True
                worker.deadline = time.monotonic() + self.limits.seconds
            else:
                worker.busy = False
                yield worker.key, value
        now = time.monotonic()
        for worker in [worker for worker in self._workers if worker.busy and worker.deadline <= now]:
            self._drop(worker)
            yield worker.key, Crash(f"the reader gave no sign of life for {self.limits.seconds:g} seconds")

    def _drop(self, worker: _Worker) -> str:
        """Let go of a process; how it ended."""
        self._workers.remove(worker)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(0.5)
        code = worker.process.returncode
        _end(worker)
        if code is None or code >= 0:
            how = f"ended with status {code}"
        else:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            how = f"was ended by {name}"
        if not worker.is_ready and code is not None:
            raise _not_started(f"{sys.executable} {how}")
        return f"the reader's process {how}"


def _not_started(why: str) -> EnvironmentProblem:
    hint = "see whether this Python can import acidctl and pyarrow, and whether there is memory for another process"
    return EnvironmentProblem("a process that reads files cannot be started", why, hint)


def _end(worker: _Worker) -> None:
    worker.connection.close()
    worker.process.kill()
    worker.process.wait()


def _run_here(task: Task) -> Any:
    try:
        return task.run(lambda: None)
    except AcidctlError as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever a damaged file does to a reader is a result
        return Crash(_described(error))


def serve(descriptor: int, memory: int) -> None:
    """The life of a worker process: tasks come through a pipe, which closes when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it ends us
    with contextlib.suppress(OSError, AttributeError):  # no Linux
        # One that hangs would not notice the pipe.
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    connection = Connection(descriptor)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory(memory)
    while True:
        try:
            task = connection.recv()
            connection.send(("beat", None))
        except (EOFError, OSError):
            return
        result: Any
        try:
            result = task.run(lambda: connection.send(("beat", None)))
        except AcidctlError as error:
            result = error
        except Exception as error:  # noqa: BLE001 - as in _run_here
            result = Crash(_described(error))
        try:
            connection.send(("done", result))
        except OSError:
            return
        except Exception as error:  # noqa: BLE001 - an error of a store's library may not be fit to travel
            connection.send(("done", Crash(_described(error))))


def _limit_memory(more: int) -> None:
    """Let the address space grow by `more` bytes."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        limit = pages * resource.getpagesize() + more
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except (OSError, ValueError):
        pass  # no Linux, or a lower limit is set already


def _described(error: Exception) -> str:
    text = " ".join(str(error).split())[:200]
    return f"the reader failed with {type(error).__name__}" + (f": {text}" if text else "")
