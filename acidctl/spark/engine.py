"""Runs tasks on Spark: one session, one job, results as they come, and no task that takes the others down with it."""

from __future__ import annotations

import contextlib
import pickle
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from acidctl.errors import AcidctlError, EnvironmentProblem
from acidctl.spark.batches import make_batches
from acidctl.spark.driver import failures
from acidctl.spark.driver.session import Session, start_session
from acidctl.spark.driver.session_plan import SparkOptions
from acidctl.spark.shipping import prepare_executors
from acidctl.spark.worker import BatchRunner, Failure, split_pickled

if TYPE_CHECKING:
    from pyspark.accumulators import AccumulatorParam

T = TypeVar("T")
R = TypeVar("R")
Result = tuple[int, R | AcidctlError]

POLL_SECONDS = 0.2
LOOK_SECONDS = 2.0
MOST_ROUNDS = 8


def run_tasks(
    tasks: Sequence[T],
    function: Callable[[T], R],
    options: SparkOptions,
    weights: Sequence[int] | None = None,
    *,
    session: Session | None = None,
    on_result: Callable[[int, R | AcidctlError], None] | None = None,
    on_notice: Callable[[str], None] | None = None,
    until: float | None = None,
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
        options: the Spark to start; not used when `session` is given.
        weights: bytes a task, for order and batches.
        session: a session that is open already, and stays open.
        on_result: called with each (index, result) before it is yielded.
        on_notice: called, from another thread, with what the user of a cluster should know while waiting.
        until: ``time.monotonic()`` at which what still runs is cancelled; the iterator then ends early.

    Raises:
        EnvironmentProblem: Spark cannot be started, cannot be reached, has no executors, or died.
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
    limits = _Limits(until)
    return _run(tasks, pickled, options, weights, limits, session=session, on_result=on_result, on_notice=on_notice)


@dataclass(frozen=True, slots=True)
class _Limits:
    """When to give up; a value of ``time.monotonic()``."""

    until: float | None

    def is_over(self) -> bool:
        return self.until is not None and time.monotonic() >= self.until


def _run(
    tasks: Sequence[Any],
    function: bytes,
    options: SparkOptions,
    weights: Sequence[int] | None,
    limits: _Limits,
    *,
    session: Session | None,
    on_result: Callable[[int, Any], None] | None,
    on_notice: Callable[[str], None] | None,
) -> Iterator[tuple[int, Any]]:
    if not tasks:
        return
    with contextlib.ExitStack() as stack:
        if session is None:
            session = stack.enter_context(start_session(options))
        prepare_executors(session)
        if on_notice is not None:
            session.log.listener = _Notices(on_notice)
            stack.callback(setattr, session.log, "listener", None)
        for index, result in _rounds(session, tasks, function, weights, limits):
            if on_result is not None:
                on_result(index, result)
            yield index, result


class _Notices:
    """Passes on, once each, the few lines of Java's log that the user of a cluster should see."""

    TELLING = ("Initial job has not accepted any resources", "Lost executor")

    def __init__(self, pass_on: Callable[[str], None]) -> None:
        self._pass_on = pass_on
        self._seen: set[str] = set()

    def __call__(self, line: str) -> None:
        for words in self.TELLING:
            at = line.find(words)
            if at >= 0 and line[at:] not in self._seen:
                self._seen.add(line[at:])
                self._pass_on(line[at:])
                return


def _rounds(
    session: Session, tasks: Sequence[Any], function: bytes, weights: Sequence[int] | None, limits: _Limits
) -> Iterator[tuple[int, Any]]:
    """Run everything; after a worker's death run what is unfinished again, the suspects each by itself."""
    try:
        parallelism = session.context.defaultParallelism
    except Exception as error:  # noqa: BLE001 - Java may be gone
        raise session.explain(error) from None
    batches = make_batches(weights, len(tasks), parallelism)
    unfinished = set(range(len(tasks)))
    for _ in range(MOST_ROUNDS):
        job = _Job(session, [split_pickled(tasks, batch) for batch in batches], function, limits)
        for index, result in job.results():
            if index in unfinished:
                unfinished.remove(index)
                yield index, result
        if not unfinished or limits.is_over():
            return
        failure = job.failure
        suspects = list(batches[failure.partition]) if failure and failure.partition < len(batches) else []
        suspects = [index for index in suspects if index in unfinished]
        if failure is not None and len(suspects) == 1:
            unfinished.remove(suspects[0])
            yield suspects[0], _worker_died(failure)
            suspects = []
        rest = [tuple(i for i in batch if i in unfinished and i not in suspects) for batch in batches]
        batches = [(index,) for index in suspects] + [batch for batch in rest if batch]
        if not batches:
            return
    for index in sorted(unfinished):
        yield index, EnvironmentProblem("The task was given up", "too many workers died in one run", MEMORY_HINT)


MEMORY_HINT = (
    "Often memory: run fewer tasks at once (--master local[1], or fewer executor cores), or give executors more memory"
)


def _worker_died(failure: failures.StageFailure) -> EnvironmentProblem:
    where = f" on {failure.host}" if failure.host else ""
    return EnvironmentProblem(f"The Python worker of a task died{where}", failure.cause, MEMORY_HINT)


@dataclass(frozen=True, slots=True)
class _Ended:
    """The job's thread is done, with or without an error."""

    error: BaseException | None


class _Job:
    """One Spark job whose results arrive while it runs.

    Spark's collect() would hold everything back until the last task.  Accumulators do not: the driver gets their
    updates as each task ends, and Spark counts exactly one successful attempt of each.
    """

    def __init__(self, session: Session, batches: Sequence[bytes], function: bytes, limits: _Limits) -> None:
        self._session = session
        self._limits = limits
        self._batches = batches
        self._function = function
        self._queue: queue.SimpleQueue[tuple[int, bytes] | _Ended] = queue.SimpleQueue()
        self._group = f"acidctl-{uuid.uuid4().hex}"
        self._next_look = time.monotonic() + LOOK_SECONDS
        self._had_executors = time.monotonic()
        self.failure: failures.StageFailure | None = None

    def results(self) -> Iterator[tuple[int, Any]]:
        """Yield (index, result) until the job ends.  A crashed worker ends it early and is told by `failure`."""
        thread = threading.Thread(target=self._submit, name="acidctl-spark-job", daemon=True)
        thread.start()
        done = False
        try:
            while not self._limits.is_over():
                try:
                    item = self._queue.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    self._check_driver()
                    self._check_executors()
                    continue
                if isinstance(item, _Ended):
                    done = True
                    self._judge(item.error)
                    return
                yield item[0], _unpack(item[1])
        finally:
            if not done:
                self._cancel(thread)

    def _submit(self) -> None:
        error: BaseException | None = None
        try:
            context = self._session.context
            context.setJobGroup(self._group, self._session.options.app_name, interruptOnCancel=True)
            mail: Any = context.accumulator(Mailbox(self._queue), mail_param())
            runner = BatchRunner(mail, self._function)
            context.parallelize(self._batches, len(self._batches)).foreachPartition(runner)
        except BaseException as caught:  # noqa: BLE001 - it is raised again, in the thread that waits
            error = caught
        self._queue.put(_Ended(error))

    def _check_driver(self) -> None:
        driver = self._session.driver
        if driver is not None and driver.status is not None:
            raise self._session.explain(RuntimeError("the Java process of Spark ended"))

    def _check_executors(self) -> None:
        """Give up when a cluster had no executor at all for as long as a start may take: Spark itself would wait on."""
        now = time.monotonic()
        if self._session.is_local or now < self._next_look:
            return
        self._next_look = now + LOOK_SECONDS
        try:
            if self._session.executors() > 0:
                self._had_executors = now
        except Exception:  # noqa: BLE001 - a Java that fails here fails the job too, and says why there
            return
        patience = self._session.options.start_timeout
        if now - self._had_executors > patience:
            raise failures.no_executors(self._session.master, self._session.log.text(), patience)

    def _judge(self, error: BaseException | None) -> None:
        if error is None:
            return
        self.failure = failures.stage_failure(failures.text_of(error))
        if self.failure is None or not self.failure.crashed:
            raise self._session.explain(error) from None

    def _cancel(self, thread: threading.Thread) -> None:
        driver = self._session.driver
        if driver is not None and driver.status is not None:
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


class Mailbox:
    """The driver's end of the accumulator: what arrives goes into a queue."""

    def __init__(self, items: queue.SimpleQueue[Any]) -> None:
        self.items = items


def mail_param() -> AccumulatorParam[Any]:
    """The accumulator's rule: append to a list on the executors, pass on to the queue in the driver."""
    from acidctl.spark.mail import MailParam  # noqa: PLC0415 - with pyspark: once Spark runs

    return MailParam()
