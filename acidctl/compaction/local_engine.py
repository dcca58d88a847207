"""The local engine: tasks in processes of this machine, without Java."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from acidctl.compaction.tasks import BucketResult, Task
from acidctl.compaction.working import telling
from acidctl.errors import AcidctlError, EnvironmentProblem, out_of_memory
from acidctl.processes import start_worker

WORTH_A_PROCESS = 32 << 20
"""Input bytes below which starting another Python takes longer than the work."""
_TELL_SECONDS = 0.1
"""Between two words of a worker about its bytes."""

Result = tuple[int, BucketResult | AcidctlError]
Function = Callable[[Task], BucketResult]
OnBytes = Callable[[Task, int], None]


class LocalEngine:
    """Runs tasks in this process, or in several where there is enough to do.

    Args:
        jobs: most processes at once; None for one a core.
        until: ``time.monotonic()`` after which no further task is begun and running ones are ended.
        on_bytes: told of every task how many more bytes of its input are done.
    """

    def __init__(self, jobs: int | None = None, until: float | None = None, on_bytes: OnBytes | None = None) -> None:
        self._jobs = jobs or os.cpu_count() or 1
        self._until = until
        self._on_bytes = on_bytes or (lambda _task, _count: None)

    def __call__(self, tasks: Sequence[Task], function: Function) -> Iterator[Result]:
        """The place and outcome of every task, in the order they end."""
        jobs = min(self._jobs, len(tasks), max(1, sum(task.weight for task in tasks) // WORTH_A_PROCESS))
        return self._in_processes(tasks, function, jobs) if jobs > 1 else self._here(tasks, function)

    def _is_over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def _here(self, tasks: Sequence[Task], function: Function) -> Iterator[Result]:
        for place, task in enumerate(tasks):
            if self._is_over():
                return
            yield place, self._outcome_here(task, function)

    def _outcome_here(self, task: Task, function: Function) -> BucketResult | AcidctlError:
        try:
            with telling(lambda count: self._on_bytes(task, count)):
                return function(task)
        except AcidctlError as error:
            return error
        except MemoryError as error:
            return out_of_memory(detail=str(error))

    def _in_processes(self, tasks: Sequence[Task], function: Function, jobs: int) -> Iterator[Result]:
        smallest_first = sorted(range(len(tasks)), key=lambda place: tasks[place].weight)
        workers: list[_Worker] = []
        try:
            while smallest_first or workers:
                while smallest_first and len(workers) < jobs:
                    workers.append(_Worker.start())
                    workers[-1].begin(smallest_first.pop(), tasks, function)
                left = None if self._until is None else max(0.0, self._until - time.monotonic())
                ready = wait([worker.connection for worker in workers], left)
                for worker in [worker for worker in workers if worker.connection in ready]:
                    kind, value = worker.take()
                    if kind == "bytes":
                        self._on_bytes(tasks[worker.place], value)
                        continue
                    if kind == "raised":
                        raise value
                    yield worker.place, value
                    if kind == "done" and smallest_first:
                        worker.begin(smallest_first.pop(), tasks, function)
                    else:
                        workers.remove(worker)
                        worker.end()
                if self._is_over():
                    return
        finally:
            for worker in workers:
                worker.end()


@dataclass(slots=True)
class _Worker:
    """A process, and the place of the task that it works on."""

    process: subprocess.Popen[bytes]
    connection: Connection
    place: int = -1

    @classmethod
    def start(cls) -> _Worker:
        try:
            return cls(*start_worker(serve))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise EnvironmentProblem(
                "a worker process cannot be started", why, "use fewer at once: --jobs 1"
            ) from error

    def begin(self, place: int, tasks: Sequence[Task], function: Function) -> None:
        self.place = place
        with suppress(OSError):  # that it is dead is noticed when its result is awaited
            self.connection.send((function, tasks[place]))

    def take(self) -> tuple[str, Any]:
        """What it says, or that it ended without a word."""
        try:
            kind, value = self.connection.recv()
        except (EOFError, OSError):
            self.process.wait()
            return "dead", self._ended()
        return kind, value

    def _ended(self) -> EnvironmentProblem:
        code = self.process.returncode
        names = {number.value: number.name for number in signal.Signals}
        how = f"was ended by {names.get(-code, -code)}" if code < 0 else f"ended with status {code}"
        hint = "often memory: use fewer at once (--jobs 1) or smaller --task-bytes"
        return EnvironmentProblem("a worker process died", f"it {how}", hint)

    def end(self) -> None:
        """At once: what it wrote is staged only."""
        self.connection.close()
        self.process.kill()
        self.process.wait()


def serve(descriptor: int) -> None:
    """The life of a worker: tasks come through a pipe, and with its other end it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    connection = Connection(descriptor)
    work: queue.SimpleQueue[tuple[Function, Task]] = queue.SimpleQueue()

    def receive() -> None:
        # Beside the work: nobody works on for a parent that was killed.
        try:
            while True:
                work.put(connection.recv())
        finally:
            os._exit(1)

    threading.Thread(target=receive, daemon=True).start()
    while True:
        function, task = work.get()
        try:
            connection.send(("done", _outcome(function, task, connection)))
        except Exception as error:  # noqa: BLE001 - a bug is the parent's to tell
            connection.send(
                ("raised", AcidctlError(f"unexpected {type(error).__name__}: {error}", "in a worker process"))
            )


def _outcome(function: Function, task: Task, connection: Connection) -> BucketResult | AcidctlError:
    said, waiting = time.monotonic(), 0

    def tell(count: int) -> None:
        nonlocal said, waiting
        waiting += count
        if time.monotonic() - said >= _TELL_SECONDS:
            connection.send(("bytes", waiting))
            said, waiting = time.monotonic(), 0

    try:
        with telling(tell):
            return function(task)
    except AcidctlError as error:
        return error
    except MemoryError as error:
        return out_of_memory(detail=str(error))
