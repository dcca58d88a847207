"""Run tasks on Spark: one job, results as they come, and no task that takes the others down with it."""

from __future__ import annotations

import contextlib
import functools
import pickle
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, EnvironmentProblem
from acidctl.base.worker_pool import Limits, Pool
from acidctl.base.worker_process import Task
from acidctl.spark.driver import spark_failures
from acidctl.spark.driver.session import Session
from acidctl.spark.shipping import prepare_executors
from acidctl.spark.worker import BatchRunner, Failure, ResultMail, split_pickled
from acidctl.storage.hdfs.filesystem import delegated
from acidctl.storage.port import FileSystemSpec

T = TypeVar("T")
R = TypeVar("R")

POLL_SECONDS = 0.2
LOOK_SECONDS = 2.0
MOST_ROUNDS = 8
MEMORY_HINT = (
    "Often memory: run fewer tasks at once (--master local[1], or fewer executor cores), or give them more memory"
)
# A Spark task costs about 35 ms, opening a bucket's files about as much as copying this many bytes.
TASK_BYTES = 4 << 20
# Below this it does not pay to hand out another Spark task.
SMALLEST_BATCH = 16 << 20
WAVES = 4
_ROUND = 4096  # tasks of one Spark job that come from a queue: enough to keep a cluster busy, few enough to hold
# Lines of Java's log that the user of a cluster should see.
TELLING = ("Initial job has not accepted any resources", "Lost executor")


def run_tasks(
    tasks: Sequence[T],
    function: Callable[[T], R],
    session: Session,
    weights: Sequence[int] | None = None,
    *,
    on_notice: Callable[[str], None] | None = None,
    until: Deadline | None = None,
) -> Iterator[tuple[int, R | AcidctlError]]:
    """Run ``function(task)`` for every task on Spark and yield (index of the task, result) in order of completion.

    A task that raises yields its error instead: an AcidctlError as it is, anything else inside one; the traceback
    of the executor is its attribute ``remote_traceback``.  A task whose worker process dies yields an
    EnvironmentProblem.  The others go on.  Closing the iterator early cancels what still runs.

    A task may run more than once (Spark's retries, speculation, a second try after a worker died), at the same time
    even: it must not leave anything behind that a second run would trip over.

    Args:
        tasks: picklable values; plain pickle is used.
        function: importable by its name on the executors.
        session: stays open.
        weights: bytes per task, for order and batches.
        on_notice: called, from another thread, with what the user of a cluster should know while waiting.
        until: when what still runs is cancelled; the iterator then ends early.

    Raises:
        EnvironmentProblem: Spark cannot be reached, has no executors, or died.
        TypeError: `function` or a task cannot be pickled.
    """
    if getattr(function, "__module__", None) == "__main__":
        raise TypeError(f"{function!r} must be importable by its name; what __main__ defines is not")
    try:
        pickled = pickle.dumps(function, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(f"{function!r} must be importable by its name: {error}") from error
    if weights is not None and len(weights) != len(tasks):
        raise ValueError(f"{len(tasks)} tasks, but {len(weights)} weights")
    if not tasks:
        return iter(())
    return _heard(session, on_notice, _rounds(session, tasks, pickled, weights, until or Deadline()))


def _heard(session: Session, on_notice: Callable[[str], None] | None, results: Iterator[Any]) -> Iterator[Any]:
    """Yield the results, and pass on each line of Java's log that the user of a cluster should see, once."""
    seen: set[str] = set()

    def hear(line: str) -> None:
        at = max(line.find(words) for words in TELLING)
        if at >= 0 and line[at:] not in seen and on_notice is not None:
            seen.add(line[at:])
            on_notice(line[at:])

    session.log.listener = hear
    try:
        yield from results
    finally:
        session.log.listener = None


def _rounds(
    session: Session, tasks: Sequence[Any], function: bytes, weights: Sequence[int] | None, until: Deadline
) -> Iterator[tuple[int, Any]]:
    """Run everything; after a worker's death run what is unfinished again, the suspects each by itself."""
    prepare_executors(session)
    batches = make_batches(weights, len(tasks), session.cores())
    unfinished = set(range(len(tasks)))
    for _ in range(MOST_ROUNDS):
        job = _Job(session, [split_pickled(tasks, batch) for batch in batches], function, until)
        for index, result in job.results():
            if index in unfinished:
                unfinished.remove(index)
                yield index, result
        if not unfinished or until.is_over:
            return
        failure = job.failure
        suspects = list(batches[failure.partition]) if failure and failure.partition < len(batches) else []
        suspects = [index for index in suspects if index in unfinished]
        if failure is not None and len(suspects) == 1:
            unfinished.remove(suspects[0])
            where = f" on {failure.host}" if failure.host else ""
            what = f"The Python worker of a task died{where}"
            yield suspects[0], EnvironmentProblem(what, failure.cause, MEMORY_HINT)
            suspects = []
        rest = [tuple(i for i in batch if i in unfinished and i not in suspects) for batch in batches]
        batches = [(index,) for index in suspects] + [batch for batch in rest if batch]
        if not batches:
            return
    for index in sorted(unfinished):
        yield index, EnvironmentProblem("The task was given up", "too many workers died in one run", MEMORY_HINT)


class _Job:
    """One Spark job whose results arrive while it runs.

    Spark's collect() would hold everything back until the last task.  Accumulators do not: the driver gets their
    updates as each task ends, and Spark counts exactly one successful attempt of each.
    """

    def __init__(self, session: Session, batches: Sequence[bytes], function: bytes, until: Deadline) -> None:
        self._session = session
        self._until = until
        self._batches = batches
        self._function = function
        # Results; at the end what ended the job, None when all went well.
        self._queue: queue.SimpleQueue[tuple[int, bytes] | BaseException | None] = queue.SimpleQueue()
        self._group = f"acidctl-{uuid.uuid4().hex}"
        self._next_look = time.monotonic() + LOOK_SECONDS
        self._had_executors = time.monotonic()
        self.failure: spark_failures.StageFailure | None = None

    def results(self) -> Iterator[tuple[int, Any]]:
        """Yield (index, result) until the job ends.  A crashed worker ends it early and `failure` says how."""
        thread = threading.Thread(target=self._submit, name="acidctl-spark-job", daemon=True)
        thread.start()
        done = False
        try:
            while not self._until.is_over:
                try:
                    item = self._queue.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    if self._session.has_ended:
                        raise self._session.explain(RuntimeError("the Java process of Spark ended")) from None
                    self._check_executors()
                    continue
                if not isinstance(item, tuple):
                    done = True
                    self._judge(item)
                    return
                yield item[0], _unpack(item[1])
        finally:
            if not done:
                self._cancel(thread)

    def _submit(self) -> None:
        ended: BaseException | None = None
        try:
            context: Any = self._session.context
            context.setJobGroup(self._group, self._session.options.app_name, interruptOnCancel=True)
            runner = BatchRunner(context.accumulator(self._queue, ResultMail()), self._function)
            context.parallelize(self._batches, len(self._batches)).foreachPartition(runner)
        except BaseException as caught:  # noqa: BLE001 - it is raised again, in the thread that waits
            ended = caught
        self._queue.put(ended)

    def _check_executors(self) -> None:
        """Give up if a cluster had no executor for as long as a start may take; Spark itself would wait."""
        now = time.monotonic()
        if self._session.is_local or now < self._next_look:
            return
        self._next_look = now + LOOK_SECONDS
        try:
            if self._session.executors() > 0:
                self._had_executors = now
        except Exception:  # noqa: BLE001 - a Java that fails here fails the job too, and says why there
            return
        if now - self._had_executors > self._session.options.start_timeout:
            raise self._session.no_executors()

    def _judge(self, error: BaseException | None) -> None:
        if error is None:
            return
        self.failure = spark_failures.stage_failure(spark_failures.message_of(error))
        if self.failure is None or not self.failure.crashed:
            raise self._session.explain(error) from None

    def _cancel(self, thread: threading.Thread) -> None:
        if self._session.has_ended:
            return
        with contextlib.suppress(Exception):  # whatever Java says now, the caller has its own reason to stop
            self._session.context.cancelJobGroup(self._group)
            thread.join(timeout=2)


def _unpack(payload: bytes) -> Any:
    value = pickle.loads(payload)
    if isinstance(value, Failure):
        value.error.__dict__["remote_traceback"] = value.traceback
        return value.error
    return value


def make_batches(weights: Sequence[int] | None, count: int, parallelism: int) -> list[tuple[int, ...]]:
    """Group the tasks 0..count-1.

    Args:
        weights: bytes per task, or None when they are not known (tasks then count the same).
        count: how many tasks there are.
        parallelism: how many run at once.

    Returns:
        tuples of task indexes, the heaviest batch first: Spark starts them in this order.  Heavy tasks stand alone;
        the rest fill about ``4 * parallelism`` batches, so that the last ones to end are small.
    """
    if weights is not None and len(weights) != count:
        raise ValueError(f"{count} tasks, but {len(weights)} weights")
    slots = max(1, WAVES * parallelism)
    if weights is None:
        return [tuple(range(start, count, slots)) for start in range(min(slots, count))]

    costs = [max(0, weight) + TASK_BYTES for weight in weights]
    target = max(-(-sum(costs) // slots), SMALLEST_BATCH)
    batches: list[list[int]] = []
    filled = target
    for index in sorted(range(count), key=lambda i: (-costs[i], i)):
        if filled + costs[index] > target:
            batches.append([])
            filled = 0
        batches[-1].append(index)
        filled += costs[index]
    return sorted(map(tuple, batches), key=lambda batch: (-sum(costs[index] for index in batch), batch))


def run_isolated(task_and_limits: tuple[Task, Limits]) -> Any:
    """Run a task in a process beside Spark's worker, and return its result, an AcidctlError or a Crash.

    A damaged file cannot end that worker: its death would fail all tasks of the same batch, and Spark would run them
    again on other executors before it gives up.
    """
    task, limits = task_and_limits
    pool = _pool(limits)
    key = object()  # a task that was cancelled may still be in the pool
    pool.submit(key, task)
    while True:
        for ended, result in pool.results():
            if ended is key:
                return result


@functools.lru_cache(maxsize=1)
def _pool(limits: Limits) -> Pool:
    """Return one process beside each of Spark's workers, for as long as Spark keeps that."""
    return Pool(1, limits)


@dataclass(slots=True)
class SparkRunner:
    """A :class:`~acidctl.base.worker_pool.Runner` that turns its queue into one Spark job after another.

    Attributes:
        open_session: returns the session; called once, with the stores of the tasks in the queue.
        limits: the limits of the processes that run the tasks.
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
        """Yield (key, result, AcidctlError or Crash) of everything in the queue, as it comes.

        Raises EnvironmentProblem if Spark cannot be started or reached, or it died.
        """
        if not self._queue:
            return
        if self._session is None:
            self._session = self.open_session([task.storage for _, task in self._queue])
        batch = [self._queue.popleft() for _ in range(min(_ROUND, len(self._queue)))]
        # With what opens the store on a machine where nobody logged in.
        tasks = [(replace(task, storage=delegated(task.storage)), self.limits) for _, task in batch]
        weights = [task.weight for _, task in batch]
        for index, result in run_tasks(tasks, run_isolated, self._session, weights, on_notice=self.on_notice):
            yield batch[index][0], result
