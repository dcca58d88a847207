"""Where the tasks of a compaction run: on Spark, or in processes of this machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from acidctl.base.errors import UsageProblem
from acidctl.verbs.options import Kind, Options, option

if TYPE_CHECKING:
    from acidctl.base.deadline import Deadline
    from acidctl.compaction.local_engine import OnBytes
    from acidctl.compaction.run import Engine
    from acidctl.spark.driver.session_plan import SparkOptions
    from acidctl.storage.port import FileSystemSpec
    from acidctl.verbs.events import Events

_QUEUE = "spark.yarn.queue"


@dataclass(frozen=True, kw_only=True)
class EngineOptions(Options):
    """Which engine, and what Spark is asked for."""

    engine: str = option(
        "spark",
        "--engine",
        choices=("spark", "local"),
        shown="spark",
        help="Spark, or processes of this machine without Java.",
    )
    master: str | None = option(
        None, "--master", metavar="URL", help="Spark master; by default Spark runs on this machine (local[*])."
    )
    conf: tuple[tuple[str, str], ...] = option(
        (), "--conf", kind=Kind.PAIRS, metavar="KEY=VALUE", help="A Spark setting. Repeatable."
    )

    @property
    def is_local(self) -> bool:
        """Whether tasks run without Java."""
        return self.engine == "local"

    def check(self, local_option: str = "", given: object = None) -> None:
        """Refuse options of the other engine, and those that Spark would ignore.

        Args:
            local_option: the one that says how many processes the local engine has.

        Raises:
            UsageProblem: there is such an option.
        """
        if self.is_local and (self.master or self.conf):
            raise UsageProblem("--master and --conf are for --engine spark", "", "leave them out")
        if not self.is_local and given:
            raise UsageProblem(f"{local_option} is for --engine local", "", "Spark's is --master local[N]")
        foreign = [key for key, _ in self.conf if not key.startswith("spark.")]
        if not self.is_local and foreign:
            raise UsageProblem(
                f"--conf {foreign[0]} does nothing", "Spark ignores it", "give keys that begin with spark."
            )
        if self.master:
            from acidctl.spark.driver.spark_failures import master_addresses

            master_addresses(self.master)  # an address that cannot be used is refused before anything is looked at

    def in_queue_of(self, queues: Collection[str]) -> Self:
        """Return these options with the queue of YARN that all tables name for their compactions, unless one was given.

        Args:
            queues: of each table; empty for one that names none.
        """
        is_open = not self.is_local and _QUEUE not in dict(self.conf) and (self.master or "").startswith("yarn")
        (queue, *others) = {*queues} or {""}
        return replace(self, conf=(*self.conf, (_QUEUE, queue))) if is_open and queue and not others else self

    def spark(self, name: str, stores: Iterable[FileSystemSpec] = ()) -> SparkOptions:
        """Return the session to start.

        Args:
            name: of the application, unless --conf has one.
            stores: what tasks read and write.
        """
        from acidctl.spark.driver.session_plan import SparkOptions

        return SparkOptions(self.master, self.conf, name, stores=tuple(dict.fromkeys(stores)))


@dataclass(frozen=True, kw_only=True)
class TaskOptions(EngineOptions):
    """The engine, and how many processes it has."""

    jobs: int | None = option(
        None, "--jobs", kind=Kind.COUNT, help="Processes of --engine local; by default one per core."
    )


@contextmanager
def open_engine(
    options: TaskOptions,
    until: Deadline,
    events: Events,
    *,
    paths: Sequence[str],
    stores: Iterable[FileSystemSpec],
    on_bytes: OnBytes | None = None,
) -> Iterator[Engine]:
    """Open the engine for compactions of some locations.

    Args:
        until: when tasks that still run are ended.
        paths: of the locations, for the name of Spark's application.
        stores: of the locations.
        on_bytes: called for each task of the local engine with how many more bytes of its input are done.
    """
    if options.is_local:
        from acidctl.compaction.local_engine import LocalEngine

        yield LocalEngine(options.jobs, until, on_bytes)
        return
    from acidctl.spark.compaction_engine import application_name, spark_engine

    with spark_engine(options.spark(application_name(paths), stores), until, events.note) as engine:
        yield engine
