"""Where `acidctl compact` runs its tasks: on Spark, or in processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acidctl.cli.output.console import note
from acidctl.compaction.local_engine import LocalEngine

if TYPE_CHECKING:
    from acidctl.cli.options.engine import EngineChoice
    from acidctl.compaction.plan import CompactionPlan
    from acidctl.compaction.run import Engine
    from acidctl.compaction.tasks import Task


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
    """An engine for these plans.

    Args:
        on_bytes: told how many more bytes of a task are done, by an engine that knows.
    """
    if options.choice.kind == "local":
        yield LocalEngine(options.jobs, options.until, on_bytes)
        return
    from acidctl.spark.compaction_engine import application_name, spark_engine  # noqa: PLC0415 - py4j, PySpark

    with spark_engine(options.choice.spark(application_name(plans)), options.until, note) as engine:
        yield engine
