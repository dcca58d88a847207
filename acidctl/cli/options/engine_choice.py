"""Options that choose the engine, for commands that are not made from the options of a verb."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from acidctl.cli.options.set_option import key_and_value
from acidctl.cli.options.shared import F, passed_as

if TYPE_CHECKING:
    from acidctl.verbs.engine import EngineOptions


def _choice(engine: str, master: str | None, conf: tuple[str, ...]) -> EngineOptions:
    from acidctl.verbs.engine import EngineOptions  # noqa: PLC0415 - --help does without

    pairs = tuple(key_and_value(item, "--conf") for item in conf)
    return EngineOptions(engine=engine, master=master, conf=pairs)


_SPARK = (
    click.option("--master", metavar="URL", help="Spark master; by default Spark runs on this machine (local[*])."),
    click.option(
        "--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting, e.g. spark.yarn.queue=etl. Repeatable."
    ),
)

spark_options = passed_as("engine", partial(_choice, "spark"), *_SPARK)
"""``--master`` and ``--conf``, passed on as the keyword `engine`: always Spark."""


def engine_options(default: str) -> Callable[[F], F]:
    """Return ``--engine``, ``--master`` and ``--conf``, passed on as the keyword `engine`.

    Args:
        default: the engine without ``--engine``.
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
        *_SPARK,
    )
