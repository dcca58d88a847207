"""The local engine: tasks in processes of this machine, without Java."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for

from acidctl.compaction.tasks import BucketResult, Task
from acidctl.errors import AcidctlError, EnvironmentProblem, out_of_memory

WORTH_A_PROCESS = 32 << 20
"""Input bytes below which starting another Python takes longer than the work."""

Result = tuple[int, BucketResult | AcidctlError]


class LocalEngine:
    """Runs tasks in this process, or in several where there is enough to do.

    Args:
        jobs: most processes at once; None for one a core.
        until: ``time.monotonic()`` after which no further task is begun and running ones are ended.
    """

    def __init__(self, jobs: int | None = None, until: float | None = None) -> None:
        self._jobs = jobs or os.cpu_count() or 1
        self._until = until

    def __call__(self, tasks: Sequence[Task], function: Callable[[Task], BucketResult]) -> Iterator[Result]:
        """The place and outcome of every task, in the order they end."""
        jobs = min(self._jobs, len(tasks), max(1, sum(task.weight for task in tasks) // WORTH_A_PROCESS))
        return self._in_processes(tasks, function, jobs) if jobs > 1 else self._here(tasks, function)

    def _is_over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def _here(self, tasks: Sequence[Task], function: Callable[[Task], BucketResult]) -> Iterator[Result]:
        for place, task in enumerate(tasks):
            if self._is_over():
                return
            try:
                yield place, function(task)
            except AcidctlError as error:
                yield place, error
            except MemoryError as error:
                yield place, out_of_memory(detail=str(error))

    def _in_processes(
        self, tasks: Sequence[Task], function: Callable[[Task], BucketResult], jobs: int
    ) -> Iterator[Result]:
        # Forked processes would inherit the threads' locks of Arrow.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_worker)
        done = False
        try:
            largest_first = sorted(range(len(tasks)), key=lambda place: -tasks[place].weight)
            places = {pool.submit(function, tasks[place]): place for place in largest_first}
            waiting = set(places)
            while waiting:
                left = None if self._until is None else max(0.0, self._until - time.monotonic())
                ended, waiting = wait(waiting, left, FIRST_COMPLETED)
                for future in ended:
                    yield places[future], _outcome(future)
                if self._is_over():
                    return
            done = True
        finally:
            pool.shutdown(wait=done, cancel_futures=True)
            if not done:
                for child in multiprocessing.active_children():
                    child.terminate()


def _outcome(future: Future[BucketResult]) -> BucketResult | AcidctlError:
    try:
        return future.result()
    except AcidctlError as error:
        return error
    except MemoryError as error:
        return out_of_memory(detail=str(error))
    except BrokenProcessPool as error:
        return EnvironmentProblem(
            "a worker process died", str(error), "often memory: use fewer at once (--jobs 1) or smaller --task-bytes"
        )


def _begin_worker() -> None:
    """Ctrl-C is the parent's to handle; and nobody works on for a parent that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
