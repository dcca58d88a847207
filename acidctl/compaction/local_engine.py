"""The local engine runs tasks in processes of this machine, without Java.

Native libraries read files of unknown origin, and a damaged file may crash the process that reads it. If a separate
process dies, only its task fails.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, BadDataError, EnvironmentProblem, unexpected
from acidctl.base.guardian import FAULTS
from acidctl.base.task_progress import telling
from acidctl.base.worker_pool import Crash, Limits, Pool
from acidctl.base.worker_process import Beat
from acidctl.compaction.tasks import BucketResult, JoinTask, Task
from acidctl.storage import registry

WORTH_A_PROCESS = 32 << 20
"""Input bytes; for less, starting another Python process takes longer than the work."""

_OF_TASKS = "numpy.ma", "pyarrow.orc"
"""Modules that every task needs; they are imported before a fork, which inherits them."""

Result = tuple[int, BucketResult | AcidctlError]
Function = Callable[[Task], BucketResult]
OnBytes = Callable[[Task, int], None]


class LocalEngine:
    """Runs tasks in a separate process, or in several if there is enough work.

    Only tasks of a store in this process's memory (``memory://``) run in this process. The main thread forks for small
    work on a local disk. Other threads start a process, which is kept for later work.

    Args:
        jobs: the most processes at the same time; None for one per core.
        until: from then on no task is started, and running ones are ended.
        on_bytes: called with a task and how many more bytes of its input are done.
    """

    def __init__(self, jobs: int | None = None, until: Deadline | None = None, on_bytes: OnBytes | None = None) -> None:
        self._jobs = jobs or os.cpu_count() or 1
        self._until = until or Deadline()
        self._on_bytes = on_bytes or (lambda _task, _count: None)

    @property
    def cores(self) -> int:
        """Return the most processes that run at the same time."""
        return self._jobs

    def __call__(self, tasks: Sequence[Task], function: Function) -> Iterator[Result]:
        """Yield the index and outcome of every task, in the order in which they end."""
        jobs = min(self._jobs, len(tasks), max(1, sum(task.weight for task in tasks) // WORTH_A_PROCESS))
        specs = {(task.like if isinstance(task, JoinTask) else task).storage for task in tasks}
        if not all(registry.is_shared(spec) for spec in specs):
            return self._here(tasks, function)
        # A lock that another thread holds, an import lock for example, would never be released in a fork.
        is_main = threading.current_thread() is threading.main_thread()
        if forks := jobs == 1 and is_main and all(spec.protocol == "file" for spec in specs):
            for name in _OF_TASKS:
                import_module(name)
        return self._in_processes(tasks, function, jobs, forks=forks, keeps=not is_main)

    def _here(self, tasks: Sequence[Task], function: Function) -> Iterator[Result]:
        for index, task in enumerate(tasks):
            if self._until.is_over:
                return
            outcome: BucketResult | AcidctlError
            try:
                outcome = _run(function, task, partial(self._on_bytes, task))
            except AcidctlError as error:
                outcome = error
            yield index, outcome

    def _in_processes(
        self, tasks: Sequence[Task], function: Function, jobs: int, *, forks: bool, keeps: bool
    ) -> Iterator[Result]:
        def on_done(index: int, count: int) -> None:
            self._on_bytes(tasks[index], count)

        with Pool(jobs, _LIMITS, "the worker", self._until, on_done, is_quiet=False, forks=forks, keeps=keeps) as pool:
            for index in sorted(range(len(tasks)), key=lambda index: -tasks[index].weight):
                pool.submit(index, _InWorker(function, tasks[index]))
            while pool.unfinished and not pool.until.is_over:
                ended = list(pool.results())
                pool.end_idle()  # first: a fork keeps connections open that this process will close
                yield from ((index, _outcome_there(result)) for index, result in ended)


_LIMITS = Limits(seconds=math.inf, memory=0)


@dataclass(frozen=True, slots=True)
class _InWorker:
    function: Function
    task: Task

    @property
    def weight(self) -> int:
        return self.task.weight

    def run(self, beat: Beat) -> BucketResult:
        return _run(self.function, self.task, beat)


def _run(function: Function, task: Task, on_bytes: Callable[[int], None]) -> BucketResult:
    try:
        with telling(on_bytes):
            return function(task)
    except Exception as error:
        raise unexpected(error, "in a task of a compaction") from error


def _outcome_there(result: BucketResult | AcidctlError | Crash) -> BucketResult | AcidctlError:
    if not isinstance(result, Crash):
        return result
    if result.signal in FAULTS:
        hint = "a file of this location crashes the process that reads it: `acidctl validate --deep` names the file"
        return BadDataError("a worker process died", result.reason, hint)
    hint = "often memory: use fewer at once (--jobs 1)"
    return EnvironmentProblem("a worker process died", result.reason, hint)
