"""Where `acidctl compact` runs its tasks: on Spark, or in processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acidctl.cli.options.engine import EngineChoice
    from acidctl.compaction.plan import CompactionPlan
    from acidctl.compaction.run import Engine
    from acidctl.compaction.tasks import BucketResult, Task
    from acidctl.errors import AcidctlError


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What was asked of the engine.

    Attributes:
        until: ``time.monotonic()`` at which what still runs is ended.
    """

    choice: EngineChoice
    jobs: int | None
    until: float | None = None

    def check(self) -> None:
        """Raises UsageError for options of the other engine."""
        self.choice.check("--jobs", self.jobs)


@contextmanager
def open_engine(
    options: EngineOptions, plans: Sequence[CompactionPlan], on_bytes: Callable[[Task, int], None]
) -> Iterator[Engine]:
    """An engine for these plans; Spark starts with the first task and serves all calls.

    Args:
        on_bytes: told how many more bytes of a task are done, by an engine that knows.
    """
    if options.choice.kind == "local":
        from acidctl.compaction.local_engine import LocalEngine

        yield LocalEngine(options.jobs, options.until, on_bytes)
        return
    from acidctl.cli.output.console import note
    from acidctl.spark.driver.session import Session, start_session
    from acidctl.spark.engine import run_tasks

    wanted = options.choice.spark(application_name(plans))
    with ExitStack() as stack:
        sessions: list[Session] = []

        def on_spark(
            tasks: Sequence[Task], function: Callable[[Task], BucketResult]
        ) -> Iterator[tuple[int, BucketResult | AcidctlError]]:
            if not sessions:
                sessions.append(stack.enter_context(start_session(wanted)))
            weights = [task.weight for task in tasks]
            tasks = [_for_executors(task) for task in tasks]
            return run_tasks(tasks, function, wanted, weights, session=sessions[0], on_notice=note, until=options.until)

        yield on_spark


def _for_executors(task: Task) -> Task:
    """The task with what opens its store on a machine where nobody logged in."""
    from acidctl.compaction.tasks import JoinTask
    from acidctl.storage.hdfs.delegation import delegated

    if isinstance(task, JoinTask):
        return replace(task, like=replace(task.like, storage=delegated(task.like.storage)))
    return replace(task, storage=delegated(task.storage))


def application_name(plans: Sequence[CompactionPlan]) -> str:
    """Hive's own convention: ``<host>-compactor-<db>.<table>.<partition>``."""
    import socket

    parts = [part for part in plans[0].snapshot.path.split("/") if part][-3:]
    shown = ".".join(parts[-2:]) if len(plans) == 1 else f"{len(plans)}-locations"
    return f"{socket.gethostname()}-compactor-{shown}"
