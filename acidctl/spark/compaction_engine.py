"""The tasks of a compaction on Spark: one session, which starts with the first task, for all calls of the engine."""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError
from acidctl.compaction.run import Engine
from acidctl.compaction.tasks import BucketResult, JoinTask, Task
from acidctl.spark.driver.session import Session, start_session
from acidctl.spark.driver.session_plan import SparkOptions
from acidctl.spark.jobs import run_tasks
from acidctl.storage.hdfs.filesystem import delegated


@contextmanager
def spark_engine(
    options: SparkOptions, until: Deadline | None = None, on_notice: Callable[[str], None] | None = None
) -> Iterator[Engine]:
    """An engine on Spark, for :func:`acidctl.compaction.request.carry_out`.

    Args:
        until: when what still runs is ended.
        on_notice: told a sentence that the user should read, such as that the cluster has no room.
    """
    with ExitStack() as stack:
        open_session = functools.cache(lambda: stack.enter_context(start_session(options)))
        yield _SparkEngine(open_session, until, on_notice)


@contextmanager
def spark_engines(
    options: SparkOptions, on_notice: Callable[[str], None] | None = None
) -> Iterator[tuple[Callable[[Deadline], Engine], str]]:
    """Engines on one session of Spark, which starts now: for several compactions at once, each with its own end.

    Yields:
        What makes an engine that ends with a deadline, and the id of Spark's application.
    """
    conf = options.conf if "spark.scheduler.mode" in dict(options.conf) else (*options.conf, _FAIR)
    with start_session(replace(options, conf=conf)) as session:
        application = str(session.context.applicationId)
        yield (lambda until: _SparkEngine(lambda: session, until, on_notice)), application


_FAIR = ("spark.scheduler.mode", "FAIR")
"""Small compactions do not wait for the tasks of a large one."""


@dataclass(frozen=True, slots=True)
class _SparkEngine:
    """See :class:`acidctl.compaction.run.Engine`."""

    open_session: Callable[[], Session]
    until: Deadline | None
    on_notice: Callable[[str], None] | None

    @property
    def cores(self) -> int:
        """The cores of all executors that run, or that Spark may ask for."""
        return self.open_session().cores()

    def __call__(
        self, tasks: Sequence[Task], function: Callable[[Task], BucketResult]
    ) -> Iterator[tuple[int, BucketResult | AcidctlError]]:
        """Run tasks as one job."""
        weights = [task.weight for task in tasks]
        sent = [_for_executors(task) for task in tasks]
        return run_tasks(sent, function, self.open_session(), weights, on_notice=self.on_notice, until=self.until)


def _for_executors(task: Task) -> Task:
    """Return the task with what opens its store on a machine where nobody logged in."""
    if isinstance(task, JoinTask):
        return replace(task, like=replace(task.like, storage=delegated(task.like.storage)))
    return replace(task, storage=delegated(task.storage))


def application_name(paths: Sequence[str]) -> str:
    """Hive's own convention: ``<host>-compactor-<db>.<table>.<partition>``.

    Args:
        paths: of the locations.
    """
    parts = [part for part in paths[0].split("/") if part][-3:]
    shown = ".".join(parts[-2:]) if len(paths) == 1 else f"{len(paths)}-locations"
    return f"{socket.gethostname()}-compactor-{shown}"
