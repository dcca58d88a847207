"""Checks on Spark: each task runs in a process of its own beside Spark's worker, which a damaged file cannot end.

Were the file read in Spark's worker itself, its death would fail the tasks of the same batch, and Spark would run them
all again on other executors before it gives up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from acidctl.base.worker_pool import Limits, Pool
from acidctl.base.worker_process import Task
from acidctl.spark.driver.session import Session
from acidctl.spark.jobs import run_tasks
from acidctl.storage.hdfs.filesystem import delegated
from acidctl.storage.port import FileSystemSpec

_ROUND = 4096
"""Tasks of one Spark job: enough to keep a cluster busy, few enough for the driver to hold."""


def run_isolated(task_and_limits: tuple[Task, Limits]) -> Any:
    """Return what a task gives in Spark's worker: its result, an AcidctlError or a Crash."""
    task, limits = task_and_limits
    pool = _pool(limits)
    key = object()  # a task that was cancelled may still be in the pool
    pool.submit(key, task)
    while True:
        for found, result in pool.results():
            if found is key:
                return result


@lru_cache(maxsize=1)
def _pool(limits: Limits) -> Pool:
    """Return one process beside each of Spark's workers, for as long as Spark keeps that."""
    return Pool(1, limits)


@dataclass(slots=True)
class SparkRunner:
    """A :class:`~acidctl.base.worker_pool.Runner`: what is queued becomes one Spark job after another.

    Tasks are independent of each other: what only the rows of several files show together, the driver compares.

    Attributes:
        open_session: gives the session; called once, with the stores of the tasks that are queued then.
        limits: of the processes that run the tasks.
    """

    open_session: Callable[[Iterable[FileSystemSpec]], Session]
    limits: Limits
    on_notice: Callable[[str], None] | None = None
    ahead: int = field(default=_ROUND, init=False)
    _queue: deque[tuple[Any, Any]] = field(default_factory=deque)
    _session: Session | None = field(default=None, init=False)

    def submit(self, key: Any, task: Task) -> None:
        """Queue a task for the next job; `key` comes back with its result."""
        self._queue.append((key, task))

    def results(self) -> Iterator[tuple[Any, Any]]:
        """(key, result, AcidctlError or Crash) of everything in the queue, as it comes.

        Raises:
            EnvironmentProblem: Spark cannot be started or reached, or it died.
        """
        if not self._queue:
            return
        if self._session is None:
            self._session = self.open_session([task.storage for _, task in self._queue])
        batch = [self._queue.popleft() for _ in range(min(_ROUND, len(self._queue)))]
        # With what opens the store on a machine where nobody logged in.
        tasks = [(replace(task, storage=delegated(task.storage)), self.limits) for _, task in batch]
        weights = [task.weight for _, task in batch]
        for place, result in run_tasks(tasks, run_isolated, self._session, weights, on_notice=self.on_notice):
            yield batch[place][0], result
