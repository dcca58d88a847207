"""Run tasks in processes that may die: what a damaged file does to a native reader is a result like any other.

`concurrent.futures` gives up the whole pool when one process dies, and cannot end one that hangs. Here every process
has one task at a time and a time limit between signs of life: the task that was running is known, and the rest goes on.

Workers are separate interpreters, or forks, which start in milliseconds. Forks are for small tasks on local disks:
Arrow restarts its threads in a fork, but clients of remote stores do not. Neither is started by multiprocessing, which
would run the main module, a user's script, a second time, and import from the current directory.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, BadDataError, EnvironmentProblem
from acidctl.base.guardian import FAULTS, NOTES, SILENT_SECONDS
from acidctl.base.imports import child_environment, import_path
from acidctl.base.memory_growth import GROWTH
from acidctl.base.worker_process import Beat, Task, described, serve_as_fork

FORK_SECONDS = 60.0
"""Without a sign of life of a fork: it waits forever for a lock that another thread of its parent held, in a library
for example. Forks get small tasks, which take seconds.
"""
_START_SECONDS = 120.0
_POLL_SECONDS = 0.001  # between two checks whether a fork that is about to end has ended
_LOOK_SECONDS = 1.0  # between two looks at whether the time is up
_FREED_AT_ONCE = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""For a process with a limit: Arrow's usual allocator keeps the address space of what it frees."""
_AHEAD = 4  # tasks in the queue for every process; below that, there is room for more
_CODE = (
    "import sys; sys.path[:] = sys.argv[3:]; from acidctl.base.worker_process import serve_tasks; "
    "serve_tasks(int(sys.argv[1]), int(sys.argv[2]))"
)


@dataclass(frozen=True, slots=True)
class Crash:
    """The process that ran a task ended, or had to be ended.

    Attributes:
        reason: one line.
        signal: the number of the signal that ended it; 0 if none did.
    """

    reason: str
    signal: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a worker process.

    Attributes:
        seconds: without a sign of life.
        memory: bytes of address space on top of what the process starts with; a reader that wants more fails.
            0 for no limit.
    """

    seconds: float = 300.0
    memory: int = 8 << 30


class Runner(Protocol):
    """Runs tasks somewhere, so that whatever happens to one is its result; see :class:`Pool`."""

    @property
    def ahead(self) -> int: ...

    def submit(self, key: Any, task: Task) -> None: ...

    def results(self) -> Iterator[tuple[Any, Any]]: ...


@dataclass(slots=True)
class _Fork:
    """A forked child with the interface of `subprocess.Popen`; it ends when its `stdin` is closed."""

    pid: int
    stdin: io.FileIO
    returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the child runs."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode

    def wait(self, timeout: float = math.inf) -> None:
        """Wait until the child has ended.  TimeoutExpired if it does not."""
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("fork", timeout)
            time.sleep(_POLL_SECONDS)

    def kill(self) -> None:
        """End the child at once."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


@dataclass(slots=True)
class _Worker:
    process: subprocess.Popen[bytes] | _Fork
    connection: Connection
    key: Any = None
    task: Task | None = None
    deadline: float = 0.0
    busy: bool = False
    is_ready: bool = False

    def end(self) -> None:
        """End the process at once."""
        self.connection.close()
        self.process.kill()
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()

    def how_it_ended(self) -> tuple[int | None, str]:
        """Return the exit code of a process that closed its pipe, None if it does not end, and the same in words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(0.5)
        code = self.process.returncode
        self.end()
        if code is None or code >= 0:
            return code, f"ended with status {code}"
        return code, f"was ended by {signal.Signals(-code).name if -code in set(signal.Signals) else -code}"


@dataclass(slots=True)
class Pool:
    """Runs tasks in processes of its own, one task per process at a time; a context manager.

    Workers end with the pool, and with this process however it ends.

    Attributes:
        size: the most processes, fewer if one does not come up; 0 runs tasks here, for stores that live in this
            process (``memory://``).
        worker: the name of a worker in a Crash.
        until: the time after which there are no more results.
        on_done: receives a task's key and how many more bytes of its input are done.
        is_quiet: whether output of workers, a native library's last words, is discarded.
        forks: whether workers are forks of this process; `limits.memory` and `is_quiet` have no effect on them. A
            silent fork is ended after :data:`FORK_SECONDS`, and another Python does its task.
        keeps: whether idle workers stay for later pools that keep theirs, one per core or at least four: starting
            Python takes longer than a small task.
    """

    size: int
    limits: Limits = field(default_factory=Limits)
    worker: str = "the reader"
    until: Deadline = field(default_factory=Deadline)
    on_done: Callable[[Any, int], None] = lambda _key, _count: None
    is_quiet: bool = True
    forks: bool = False
    keeps: bool = False
    _queue: deque[tuple[Any, Task]] = field(default_factory=deque)
    _workers: list[_Worker] = field(default_factory=list)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ahead(self) -> int:
        """Return the number of waiting tasks below which more may be submitted."""
        return _AHEAD * max(1, self.size)

    def submit(self, key: Any, task: Task) -> None:
        """Queue a task; `key` comes back with its result."""
        self._queue.append((key, task))

    @property
    def unfinished(self) -> int:
        """Return the number of tasks that are queued or running."""
        return len(self._queue) + sum(worker.busy for worker in self._workers)

    @property
    def is_idle(self) -> bool:
        """Return whether it has processes, and all of them live and have nothing to do."""
        return bool(self._workers) and not any(w.busy or w.process.poll() is not None for w in self._workers)

    def results(self) -> Iterator[tuple[Any, Any]]:
        """Yield (key, result, AcidctlError or Crash) of whatever ends next: at least one while any is unfinished.

        Raises EnvironmentProblem if no process can be started.
        """
        if self.size == 0:
            if self._queue and not self.until.is_over:
                key, task = self._queue.popleft()
                yield key, self._run_here(key, task)
            return
        while self.unfinished and not self.until.is_over:
            self._hand_out()
            if ended := list(self._collect()):
                yield from ended
                return

    def end_idle(self) -> None:
        """End the processes that have nothing to do, since they hold memory; no more tasks follow."""
        for worker in [worker for worker in self._workers if not worker.busy and not self._queue]:
            self._workers.remove(worker)
            if self.keeps and worker.process.poll() is None and len(_SPARE) < max(_SPARES, os.cpu_count() or 1):
                _SPARE.append(worker)
            else:
                worker.end()

    def close(self) -> None:
        """End every process at once."""
        self._queue.clear()
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def _hand_out(self) -> None:
        while self._queue:
            for worker in [w for w in self._workers if not w.busy and w.process.poll() is not None]:
                self._workers.remove(worker)
                worker.end()  # it died without a task: no file is to blame
            idle = next((worker for worker in self._workers if not worker.busy), None)
            if idle is None:
                if len(self._workers) >= self.size:
                    return
                idle = self._start()
            self._give(idle)

    def _give(self, worker: _Worker) -> None:
        worker.key, worker.task = self._queue.popleft()
        worker.busy = True
        # Starting an interpreter is not the task's doing.
        worker.deadline = time.monotonic() + self._patience(worker) + (0 if worker.is_ready else _START_SECONDS)
        with contextlib.suppress(OSError):  # a dead process is noticed when its result is awaited
            worker.connection.send(worker.task)

    def _start(self) -> _Worker:
        try:
            worker = self._spare() or (_fork() if self.forks else _start(self.limits.memory, is_quiet=self.is_quiet))
        except OSError as error:
            raise _not_started((error.strerror or str(error)).lower()) from error
        self._workers.append(worker)
        return worker

    def _spare(self) -> _Worker | None:
        for worker in list(_SPARE) if self.keeps else ():
            if isinstance(worker.process, _Fork) == self.forks:
                with contextlib.suppress(ValueError):  # other threads take them, too
                    _SPARE.remove(worker)
                    if worker.process.poll() is None:
                        return worker
                    worker.end()
        return None

    def _collect(self) -> Iterator[tuple[Any, Any]]:
        busy = {worker.connection: worker for worker in self._workers if worker.busy}
        left = min(self.until.at, *(worker.deadline for worker in busy.values())) - time.monotonic()
        for ready in wait(list(busy), max(0.0, min(left, _LOOK_SECONDS))):
            worker = busy[ready]  # type: ignore[index]
            try:
                kind, value = worker.connection.recv()
            except (EOFError, OSError):
                yield from self._ended(worker)
                continue
            if kind == "beat":
                worker.is_ready = True
                worker.deadline = time.monotonic() + self._patience(worker)
                if value:
                    self.on_done(worker.key, value)
                continue
            key, worker.busy = worker.key, False
            if self._queue and worker.process.poll() is None:  # it works on while its result is looked at
                self._give(worker)
            yield key, value if kind == "done" else Crash(f"{self.worker} failed with {value}")
        now = time.monotonic()
        for worker in [worker for worker in self._workers if worker.busy and worker.deadline <= now]:
            self._workers.remove(worker)
            worker.end()
            if isinstance(worker.process, _Fork) and worker.task is not None:
                self.forks = False
                self._queue.appendleft((worker.key, worker.task))
                continue
            yield worker.key, Crash(f"{self.worker} gave no sign of life for {self.limits.seconds:g} seconds")

    def _patience(self, worker: _Worker) -> float:
        return min(self.limits.seconds, FORK_SECONDS) if isinstance(worker.process, _Fork) else self.limits.seconds

    def _ended(self, worker: _Worker) -> Iterator[tuple[Any, Any]]:
        """Yield the crash of a task; if its process never came up, another does the task, and the pool gets smaller."""
        self._workers.remove(worker)
        code, how = worker.how_it_ended()
        if worker.is_ready or code is None:
            yield worker.key, Crash(f"{self.worker}'s process {how}", max(0, -(code or 0)))
        elif self.size > 1 and worker.task is not None:
            self.size -= 1
            self._queue.appendleft((worker.key, worker.task))
        else:
            raise _not_started(f"{sys.executable} {how}")

    def _run_here(self, key: Any, task: Task) -> Any:
        try:
            return task.run(lambda count=0, /: self.on_done(key, count))
        except AcidctlError as error:
            return error
        except Exception as error:  # noqa: BLE001 - whatever a damaged file does to a reader is a result
            return Crash(f"{self.worker} failed with {described(error)}")


class Elsewhere:
    """A file that is read in a process that may die, as :meth:`acidctl.base.guardian.Notes.isolated` asks for.

    Args:
        path: the path for messages.
        opens: a picklable function that opens the file there.
        stripes: the number of its stripes.
        forks: whether a fork may open it. A fork stays for the next file only if this process itself soon ends: it
            keeps connections open that this process closes. After a few files another Python, which stays, is cheaper.
    """

    def __init__(self, path: str, opens: Callable[[], Any], stripes: int, *, forks: bool) -> None:
        self.stripe_count = stripes
        self._path, self._opens, self._number = path, opens, next(_numbers)
        stays = NOTES.shared is not None
        forks = forks and threading.current_thread() is threading.main_thread() and (stays or self._number < _FORKS)
        self._pool = Pool(1, Limits(SILENT_SECONDS, 0), forks=forks, keeps=not forks or stays)

    def read_stripe(self, i: int, columns: Sequence[str] | None = None) -> Any:
        """Return the rows of a stripe.  Raises the reader's errors, and BadDataError if it crashes or hangs."""
        return self._asked("read_stripe", i, columns)

    def read_first(self, count: int) -> Any:
        """Return the first rows of an ORC file, as :meth:`read_stripe`."""
        return self._asked("read_first", count)

    def _asked(self, method: str, *values: Any) -> Any:
        self._pool.submit(None, _Question(self._number, self._opens, method, values))
        ((_, result),) = self._pool.results()
        if isinstance(result, AcidctlError):
            raise result
        if isinstance(result, Crash):
            what = f"{self._path} cannot be read"
            if result.signal and result.signal not in FAULTS:
                raise EnvironmentProblem(what, result.reason, "often memory: read fewer columns, or give it more")
            raise BadDataError(what, result.reason, "restore the file from its source")
        return result

    def close(self) -> None:
        """Leave an idle process to the next file, without this one, and end a busy process."""
        if self._pool.keeps and self._pool.is_idle:  # the process would keep the space of a deleted file
            with contextlib.suppress(AcidctlError):
                self._asked(_CLOSE)
        self._pool.end_idle()
        self._pool.close()


@dataclass(frozen=True, slots=True)
class _Question:
    number: int
    opens: Callable[[], Any]
    method: str
    values: tuple[Any, ...]
    weight: int = 0

    def run(self, _: Beat) -> Any:
        if self.method == _CLOSE:
            if (file := _opened.pop(self.number, None)) is not None:
                file.close()
            return None
        if self.number not in _opened:
            _opened.clear()
            _opened[self.number] = self.opens()
        return getattr(_opened[self.number], self.method)(*self.values)


_numbers = itertools.count()  # a worker may serve files of several pools in turn, and tells them apart by number
_SPARES = 4  # threads that read files have four open at a time
_FORKS = 8  # eight forks cost about as much as the start of one Python
_CLOSE = "close"
_opened: dict[int, Any] = {}  # in a worker, the file that it read last: all requests about one file come to one process
_SPARE: list[_Worker] = []  # idle workers of all pools that keep theirs; they end with this process


def _not_started(why: str) -> EnvironmentProblem:
    hint = "see whether this Python can import acidctl and pyarrow; where memory is short, use fewer at once: --jobs 1"
    return EnvironmentProblem("a worker process cannot be started", why, hint)


def _start(memory: int, *, is_quiet: bool) -> _Worker:
    """Start a Python that serves tasks: one pipe carries them and results; the other, its input, shows that we live."""
    ours, theirs = multiprocessing.Pipe()
    stream = subprocess.DEVNULL if is_quiet else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # Ctrl-C is ours, while it comes up, too
    try:
        with GROWTH.lifted():
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _CODE, str(theirs.fileno()), str(memory), *import_path()],
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=stream,
                pass_fds=[theirs.fileno()],
                env=child_environment() | (_FREED_AT_ONCE if memory else {}),
            )
    except OSError:
        ours.close()
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
    return _Worker(process, ours)


def _fork() -> _Worker:
    """Fork this process to serve tasks. Only the main thread may: another fork would hold these pipes open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads: this fork uses none of them
        ours, theirs = multiprocessing.Pipe()
        reads, writes = os.pipe()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = os.fork()
            if pid == 0:
                serve_as_fork(theirs, reads, [ours.fileno(), writes])
        except OSError:
            ours.close()
            os.close(writes)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            theirs.close()
            os.close(reads)
        return _Worker(_Fork(pid, io.FileIO(writes, "w")), ours)
