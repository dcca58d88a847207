"""The engines that run the tasks of compactions: Spark, or processes of this machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
    """The options that choose the engine and set up Spark."""

    engine: str = option(
        "spark", "--engine", choices=("spark", "local"), help="Spark, or processes of this machine without Java."
    )
    master: str | None = option(
        None, "--master", metavar="URL", help="Spark master; by default Spark runs on this machine (local[*])."
    )
    conf: tuple[tuple[str, str], ...] = option((), "--conf", kind=Kind.PAIRS, help="A Spark setting. Repeatable.")

    @property
    def is_local(self) -> bool:
        """Return whether tasks run without Java."""
        return self.engine == "local"

    def check(self, local_option: str = "", given: object = None) -> None:
        """Refuse options of the other engine, and those that Spark would ignore.

        Args:
            local_option: the option for the number of local processes.
            given: its value.

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
        """Return these options with the YARN queue that all tables name for their compactions, unless one was given.

        Args:
            queues: the queue of each table; an empty text for a table that names none.
        """
        is_open = not self.is_local and _QUEUE not in dict(self.conf) and (self.master or "").startswith("yarn")
        (queue, *others) = {*queues} or {""}
        return replace(self, conf=(*self.conf, (_QUEUE, queue))) if is_open and queue and not others else self

    def spark(self, name: str, stores: Iterable[FileSystemSpec] = ()) -> SparkOptions:
        """Return the session to start.

        Args:
            name: the name of the application, unless --conf has one.
            stores: the stores that tasks read and write.
        """
        from acidctl.spark.driver.session_plan import SparkOptions

        return SparkOptions(self.master, self.conf, name, stores=tuple(dict.fromkeys(stores)))


@dataclass(frozen=True, kw_only=True)
class TaskOptions(EngineOptions):
    """The engine and its number of processes."""

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
        until: when running tasks are ended.
        paths: the paths of the locations, for the name of Spark's application.
        stores: the stores of the locations.
        on_bytes: called by the local engine with a task and the number of bytes of its input that were just done.
    """
    if options.is_local:
        from acidctl.compaction.local_engine import LocalEngine

        yield LocalEngine(options.jobs, until, on_bytes)
        return
    from acidctl.spark.compaction_engine import application_name, spark_engine

    with spark_engine(options.spark(application_name(paths), stores), until, events.note) as engine:
        yield engine


class RunEngine:
    """The engine of a run, opened at first use, and opened again for locations with another queue or store.

    Args:
        given: the engine that a caller of Python gives, instead of that of the options.
    """

    def __init__(self, options: TaskOptions, until: Deadline, events: Events, given: Engine | None) -> None:
        self._options, self._until, self._events, self._given = options, until, events, given
        self._wanted: TaskOptions | None = None
        self._stores: frozenset[FileSystemSpec] = frozenset()
        self._paths: Sequence[str] = ()
        self._open = ExitStack()
        self._engine: Engine | None = None

    def prepare(self, queues: Collection[str], stores: Iterable[FileSystemSpec], paths: Sequence[str]) -> None:
        """Say for which locations the engine is needed next: their YARN queues, stores and paths."""
        wanted, needed = self._options.in_queue_of(queues), frozenset(stores)
        if self._wanted != wanted or not needed <= self._stores:  # it needs a session of its own
            self.close()
            self._wanted, self._stores, self._paths = wanted, needed, paths

    def get(self, on_bytes: OnBytes | None) -> Engine:
        """Return the open engine."""
        if self._given is not None:
            return self._given
        if self._engine is None:
            assert self._wanted  # it is prepared
            opened = open_engine(
                self._wanted, self._until, self._events, paths=self._paths, stores=self._stores, on_bytes=on_bytes
            )
            self._engine = self._open.enter_context(opened)
        return self._engine

    def close(self) -> None:
        """End the engine."""
        self._engine = None
        self._open.close()
