"""``--watch``: the same listing again and again, on a terminal."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from acidctl.cli.options.param_types import DURATION
from acidctl.cli.options.shared import BareOption, typed_option
from acidctl.errors import UsageProblem

F = TypeVar("F", bound=Callable[..., Any])

LEAST = 1.0
"""Seconds between two listings: a store has other things to do."""


class _Seconds(type(DURATION)):  # type: ignore[misc]
    """A duration of which a plain number is seconds, as for `watch`."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value)
        seconds = super().convert(f"{text}s" if text.isascii() and text.isdigit() else value, param, ctx)
        if seconds < LEAST:
            self.fail(f"{value!r} is too often: give a second or more", param, ctx)
        return float(seconds)


def watch_option(function: F) -> F:
    """``--watch[=SECONDS]``; it goes first of all decorators below the command, which it calls again and again."""

    @typed_option(
        "--watch",
        cls=BareOption,
        bare="2",
        type=_Seconds(),
        metavar="[=SECONDS]",
        help="List again so long (2) after each listing, on one screen, until Ctrl-C.",
    )
    @functools.wraps(function)
    def wrapper(*args: Any, watch: float | None, **given: Any) -> Any:
        if watch is None:
            return function(*args, **given)
        if given["output"] != "table":
            raise click.UsageError(f"--watch is for a screen: leave out -o {given['output']}.")
        if not sys.stdout.isatty():
            raise UsageProblem(
                "--watch needs a terminal", "standard output is none", "run it from a shell or cron without"
            )
        from acidctl.cli.output.watching import watch as watching  # noqa: PLC0415 - with rich: only for --watch

        context = click.get_current_context()
        return watching(lambda: _anew(context, function, *args, **given), watch, title_of(context))

    return wrapper  # type: ignore[return-value]


def _anew(context: click.Context, function: Callable[..., Any], *args: Any, **given: Any) -> Any:
    """Call it as if it had been typed again: what it opens is closed when it is done."""
    with click.Context(context.command, parent=context.parent, info_name=context.info_name) as again:
        again.params = context.params
        for name in context.params:
            if source := context.get_parameter_source(name):
                again.set_parameter_source(name, source)
        return function(*args, **given)


def title_of(context: click.Context) -> str:
    """The command with the places that it was given."""
    places = next((context.params[name] for name in ("locations", "paths") if context.params.get(name)), ())
    return " ".join([context.command_path, *places])
