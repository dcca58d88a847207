"""Options that choose the engine, for commands that are not made from the options of a verb."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from acidctl.cli.options.metastore import key_and_value
from acidctl.cli.options.shared import F, passed_as, refuse_unused

if TYPE_CHECKING:
    from acidctl.verbs.engine import EngineOptions


def check_engine(engine: EngineOptions, local_option: str = "", given: object = None) -> None:
    """Refuse options of the other engine, and those that Spark would ignore.

    Args:
        local_option: the option for the number of processes of the local engine.

    Raises:
        UsageProblem, UsageError: such an option was given.
    """
    engine.check(local_option, given)
    if engine.master and not engine.master.startswith("yarn"):
        refuse_unused(f"--master {engine.master}", "queue")


def _choice(
    engine: str, master: str | None, conf: tuple[str, ...], queue: str | None, name: str | None
) -> EngineOptions:
    from acidctl.verbs.engine import EngineOptions  # noqa: PLC0415 - --help does without

    pairs = tuple(key_and_value(item, "--conf") for item in conf)
    return EngineOptions(engine=engine, master=master, conf=pairs, queue=queue, name=name)


def _spark_options(usual_name: str) -> tuple[Callable[[F], F], ...]:
    return (
        click.option("--master", metavar="URL", help="Spark master; by default Spark runs on this machine (local[*])."),
        click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting. Repeatable."),
        click.option("--queue", metavar="NAME", help="YARN queue."),
        click.option("--name", metavar="NAME", help=f"Name of the Spark application; by default {usual_name}."),
    )


def spark_options(usual_name: str) -> Callable[[F], F]:
    """Return ``--master``, ``--conf``, ``--queue`` and ``--name``, passed on as the keyword `engine`: always Spark."""
    return passed_as("engine", partial(_choice, "spark"), *_spark_options(usual_name))


def engine_options(default: str, usual_name: str) -> Callable[[F], F]:
    """Return ``--engine``, ``--master``, ``--conf``, ``--queue`` and ``--name``, passed on as the keyword `engine`.

    Args:
        default: the engine without ``--engine``.
        usual_name: the default name of the application, for the help.
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
