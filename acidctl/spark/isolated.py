"""Checks on Spark: each task runs in a process of its own beside Spark's worker, which a damaged file cannot end.

Were the file read in Spark's worker itself, its death would fail the tasks of the same batch, and Spark would run them
all again on other executors before it gives up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from acidctl.spark.driver.session import Session
from acidctl.spark.engine import run_tasks
from acidctl.storage.hdfs.delegation import delegated
from acidctl.worker_pool import Limits, Pool, Task

_ROUND = 4096
"""Tasks of one Spark job: enough to keep a cluster busy, few enough for the driver to hold."""


@dataclass(frozen=True, slots=True)
class Isolated:
    """A task as it travels.

    Attributes:
        limits: of the process that will run it.
    """

    task: Task
    limits: Limits


def run_isolated(isolated: Isolated) -> Any:
    """What the task gives: its result, an AcidctlError or a Crash. Runs in Spark's worker."""
    pool = _pool(isolated.limits)
    key = object()  # a task that was cancelled may still be in the pool
    pool.submit(key, isolated.task)
    while True:
        for found, result in pool.results():
            if found is key:
                return result


@lru_cache(maxsize=1)
def _pool(limits: Limits) -> Pool:
    """One process beside each of Spark's workers, for as long as Spark keeps that."""
    return Pool(1, limits)


@dataclass(slots=True)
class SparkRunner:
    """A :class:`~acidctl.worker_pool.Runner`: what is queued becomes one Spark job after another.

    Tasks are independent of each other: what only the rows of several files show together, the driver compares.

    Attributes:
        open_session: starts Spark; called once, with the first task.
    """

    open_session: Callable[[], Session]
    limits: Limits
    on_notice: Callable[[str], None] | None = None
    _queue: deque[tuple[Any, Task]] = field(default_factory=deque)
    _session: Session | None = None

    @property
    def ahead(self) -> int:
        """With fewer tasks than this waiting, more are welcome."""
        return _ROUND

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
        batch = [self._queue.popleft() for _ in range(min(_ROUND, len(self._queue)))]
        session = self._session = self._session or self.open_session()
        tasks = [Isolated(_for_executors(task), self.limits) for _, task in batch]
        weights = [task.weight for _, task in batch]
        results = run_tasks(tasks, run_isolated, session.options, weights, session=session, on_notice=self.on_notice)
        for place, result in results:
            yield batch[place][0], result


def _for_executors(task: Any) -> Task:
    """The task with what opens its store on a machine where nobody logged in."""
    made: Task = replace(task, storage=delegated(task.storage))
    return made
