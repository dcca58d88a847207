"""Where a command runs its tasks, on Spark or in processes of this machine: the options, and the session."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import click

from acidctl.cli.options.key_value import key_and_value
from acidctl.cli.options.shared import F, passed_as, refuse_unused

if TYPE_CHECKING:
    from acidctl.spark.driver.session_plan import SparkOptions
    from acidctl.storage.port import FileSystemSpec


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """What was asked of the engine.

    Attributes:
        conf: properties of Spark and their values.
        name: of the Spark application.
    """

    kind: str
    master: str | None = None
    conf: tuple[tuple[str, str], ...] = ()
    queue: str | None = None
    name: str | None = None

    def check(self, local_option: str = "", given: object = None) -> None:
        """Raises UsageError for options of the other engine, and for those that Spark would ignore.

        Args:
            local_option: the one that says how many processes the local engine has.
        """
        if self.kind == "local" and (self.master or self.conf or self.queue or self.name):
            raise click.UsageError("--master, --conf, --queue and --name are for --engine spark.")
        if self.kind == "spark" and given:
            raise click.UsageError(f"{local_option} is for --engine local; Spark's is --master local[N].")
        foreign = [key for key, _ in self.conf if not key.startswith("spark.")]
        if self.kind == "spark" and foreign:
            raise click.UsageError(f"--conf {foreign[0]}: Spark ignores what does not begin with spark.")
        if self.master:
            from acidctl.spark.driver.spark_failures import master_addresses  # noqa: PLC0415 - with sockets: only for a master

            master_addresses(self.master)  # what is none is refused before anything is looked at
        if self.master and not self.master.startswith("yarn"):
            refuse_unused(f"--master {self.master}", "queue")

    def in_queue_of(self, queues: Collection[str]) -> EngineChoice:
        """The same in the queue of YARN that all tables name for their compactions, where none was given.

        Args:
            queues: of each table; empty for one that names none.
        """
        is_open = self.kind == "spark" and self.queue is None and (self.master or "").startswith("yarn")
        (queue, *others) = {*queues} or {""}
        return replace(self, queue=queue) if is_open and queue and not others else self

    def spark(self, name: str, stores: Iterable[FileSystemSpec] = ()) -> SparkOptions:
        """What to start.

        Args:
            name: where the user gave none.
            stores: what tasks read and write.
        """
        from acidctl.spark.driver.session_plan import SparkOptions  # noqa: PLC0415 - only for Spark

        return SparkOptions(self.master, self.conf, self.name or name, self.queue, stores=tuple(dict.fromkeys(stores)))


def _choice(
    engine: str, master: str | None, conf: tuple[str, ...], queue: str | None, name: str | None
) -> EngineChoice:
    return EngineChoice(engine, master, tuple(key_and_value(item, "--conf") for item in conf), queue, name)


def _spark_options(usual_name: str) -> tuple[Callable[[F], F], ...]:
    return (
        click.option("--master", metavar="URL", help="Spark master; without it Spark runs on this machine (local[*])."),
        click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting. Repeatable."),
        click.option("--queue", metavar="NAME", help="YARN queue."),
        click.option("--name", metavar="NAME", help=f"Name of the Spark application; without it {usual_name}."),
    )


def spark_options(usual_name: str) -> Callable[[F], F]:
    """``--master``, ``--conf``, ``--queue`` and ``--name``: passed on as the keyword `engine`, which is Spark."""
    return passed_as("engine", partial(_choice, "spark"), *_spark_options(usual_name))


def engine_options(default: str, usual_name: str) -> Callable[[F], F]:
    """``--engine``, ``--master``, ``--conf``, ``--queue`` and ``--name``: passed on as the keyword `engine`.

    Args:
        default: the engine.
        usual_name: of the application, for the help.
    """
    return passed_as(
        "engine",
        _choice,
        click.option(
            "--engine",
            type=click.Choice(["spark", "local"]),
            default=default,
            show_default=True,
            help="Spark, or processes of this machine without Java.",
        ),
        *_spark_options(usual_name),
    )
