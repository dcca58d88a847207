"""The tasks of a compaction on Spark: one session, which starts with the first task, for all calls of the engine."""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from acidctl.compaction.plan import CompactionPlan
from acidctl.compaction.run import Engine
from acidctl.compaction.tasks import BucketResult, JoinTask, Task
from acidctl.errors import AcidctlError
from acidctl.spark.driver.session import start_session
from acidctl.spark.driver.session_plan import SparkOptions
from acidctl.spark.jobs import run_tasks
from acidctl.storage.hdfs.delegation import delegated


@contextmanager
def spark_engine(
    options: SparkOptions, until: float | None = None, on_notice: Callable[[str], None] | None = None
) -> Iterator[Engine]:
    """An engine on Spark, for :func:`acidctl.compaction.request.carry_out`.

    Args:
        until: ``time.monotonic()`` at which what still runs is ended.
        on_notice: told a sentence that the user should read, such as that the cluster has no room.
    """
    with ExitStack() as stack:
        open_session = functools.cache(lambda: stack.enter_context(start_session(options)))

        def on_spark(
            tasks: Sequence[Task], function: Callable[[Task], BucketResult]
        ) -> Iterator[tuple[int, BucketResult | AcidctlError]]:
            weights = [task.weight for task in tasks]
            sent = [_for_executors(task) for task in tasks]
            return run_tasks(sent, function, open_session(), weights, on_notice=on_notice, until=until)

        yield on_spark


def _for_executors(task: Task) -> Task:
    """The task with what opens its store on a machine where nobody logged in."""
    if isinstance(task, JoinTask):
        return replace(task, like=replace(task.like, storage=delegated(task.like.storage)))
    return replace(task, storage=delegated(task.storage))


def application_name(plans: Sequence[CompactionPlan]) -> str:
    """Hive's own convention: ``<host>-compactor-<db>.<table>.<partition>``."""
    parts = [part for part in plans[0].snapshot.path.split("/") if part][-3:]
    shown = ".".join(parts[-2:]) if len(plans) == 1 else f"{len(plans)}-locations"
    return f"{socket.gethostname()}-compactor-{shown}"
