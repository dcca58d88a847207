"""Run the tasks of compactions on Spark, by one session for all calls of the engine."""

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
    """Yield an engine on Spark, which starts with the first task, for :func:`acidctl.compaction.request.carry_out`.

    Args:
        until: the time at which running tasks are cancelled.
        on_notice: receives sentences for the user, such as that the cluster has no room.
    """
    with ExitStack() as stack:
        open_session = functools.cache(lambda: stack.enter_context(start_session(options)))
        yield _SparkEngine(open_session, until, on_notice)


@contextmanager
def spark_engines(
    options: SparkOptions, on_notice: Callable[[str], None] | None = None
) -> Iterator[tuple[Callable[[Deadline], Engine], str]]:
    """Start Spark for several compactions at once, each with its own deadline.

    Yields:
        A function from a deadline to an engine, and the id of Spark's application.
    """
    conf = options.conf if "spark.scheduler.mode" in dict(options.conf) else (*options.conf, _FAIR)
    with start_session(replace(options, conf=conf)) as session:
        application = str(session.context.applicationId)
        yield (lambda until: _SparkEngine(lambda: session, until, on_notice)), application


_FAIR = ("spark.scheduler.mode", "FAIR")  # small compactions do not wait for the tasks of a large one


@dataclass(frozen=True, slots=True)
class _SparkEngine:
    """See :class:`acidctl.compaction.run.Engine`."""

    open_session: Callable[[], Session]
    until: Deadline | None
    on_notice: Callable[[str], None] | None

    @property
    def cores(self) -> int:
        """Return the cores of all executors that run, or that Spark may ask for."""
        return self.open_session().cores()

    def __call__(
        self, tasks: Sequence[Task], function: Callable[[Task], BucketResult]
    ) -> Iterator[tuple[int, BucketResult | AcidctlError]]:
        """Run tasks as one job."""
        weights = [task.weight for task in tasks]
        # With what opens the store on a machine where nobody logged in.
        sent = [
            replace(task, like=replace(task.like, storage=delegated(task.like.storage)))
            if isinstance(task, JoinTask)
            else replace(task, storage=delegated(task.storage))
            for task in tasks
        ]
        return run_tasks(sent, function, self.open_session(), weights, on_notice=self.on_notice, until=self.until)


def application_name(paths: Sequence[str]) -> str:
    """Return a name by Hive's convention, ``<host>-compactor-<db>.<table>.<partition>``, for the paths of locations."""
    parts = [part for part in paths[0].split("/") if part][-3:]
    shown = ".".join(parts[-2:]) if len(paths) == 1 else f"{len(paths)}-locations"
    return f"{socket.gethostname()}-compactor-{shown}"
