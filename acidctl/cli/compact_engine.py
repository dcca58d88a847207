"""Where `acidctl compact` runs its tasks: on Spark, or in processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
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

    kind: str
    master: str | None
    conf: tuple[tuple[str, str], ...]
    queue: str | None
    name: str | None
    jobs: int | None
    until: float | None = None

    def check(self) -> None:
        """Raises UsageError for options of the other engine."""
        if self.kind == "local" and (self.master or self.conf or self.queue or self.name):
            raise click.UsageError("--master, --conf, --queue and --name are for --engine spark.")
        if self.kind == "spark" and self.jobs:
            raise click.UsageError("--jobs is for --engine local; Spark's is --master local[N].")


@contextmanager
def open_engine(options: EngineOptions, plans: Sequence[CompactionPlan]) -> Iterator[Engine]:
    """An engine for these plans; Spark starts with the first task and serves all calls."""
    if options.kind == "local":
        from acidctl.compaction.local import LocalEngine

        yield LocalEngine(options.jobs, options.until)
        return
    from acidctl.cli.output import note
    from acidctl.spark.engine import run_tasks
    from acidctl.spark.session import Session, SparkOptions, start_session

    wanted = SparkOptions(options.master, options.conf, options.name or application_name(plans), options.queue)
    with ExitStack() as stack:
        sessions: list[Session] = []

        def on_spark(
            tasks: Sequence[Task], function: Callable[[Task], BucketResult]
        ) -> Iterator[tuple[int, BucketResult | AcidctlError]]:
            if not sessions:
                sessions.append(stack.enter_context(start_session(wanted)))
            weights = [task.weight for task in tasks]
            return run_tasks(tasks, function, wanted, weights, session=sessions[0], on_notice=note, until=options.until)

        yield on_spark


def application_name(plans: Sequence[CompactionPlan]) -> str:
    """Hive's own convention: ``<host>-compactor-<db>.<table>.<partition>``."""
    import socket

    parts = [part for part in plans[0].snapshot.path.split("/") if part][-3:]
    shown = ".".join(parts[-2:]) if len(plans) == 1 else f"{len(plans)}-locations"
    return f"{socket.gethostname()}-compactor-{shown}"
