"""The settings that are in effect, each with its origin; all of them are checked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click

from acidctl.base.errors import UsageProblem
from acidctl.cli.command_table import SUMMARIES, walk
from acidctl.cli.config.settings import Name, Settings, Value, options_of, variable_of, wrong_variables
from acidctl.cli.output.redact import shown_setting
from acidctl.orc.limits import LIMITS
from acidctl.verbs.policy import specificity


def effective(settings: Settings) -> dict[Name, Value]:
    """Return every setting of the file and the environment by its place in a file, without secrets.

    Policies come in the order in which a table takes each key from the first that matches it.

    Raises:
        UsageProblem: a value cannot be used.
    """
    found: dict[Name, Value] = {}
    for name, value in settings.items():
        if name[0] not in SUMMARIES:
            found[name] = value._replace(value=shown_setting(name[-1], value.value))
    for limit in LIMITS:
        if text := os.environ.get(limit.variable):
            found["limits", limit.key] = Value(text, f"environment {limit.variable}")
    for limit in LIMITS:
        _ = limit.value  # raises if the environment has no number
    for path, command in walk():
        found |= _of_command(command, path, settings)
    return {name: found[name] for name in sorted(found, key=_order)}


def wrong_in_environment() -> Iterator[UsageProblem]:
    """Yield why commands would refuse to run because of a variable."""
    for path, command in walk():
        if len(path) == 1:
            yield from wrong_variables(command, path)


def key_of(name: Name) -> str:
    """Return the place of a setting as TOML writes it: ``clean.jobs``, ``storage."s3://b".user``."""
    is_bare = (part.replace("-", "").replace("_", "").isalnum() and part.isascii() for part in name)
    return ".".join(part if bare else f'"{part}"' for part, bare in zip(name, is_bare, strict=True))


def _order(name: Name) -> tuple[Any, ...]:
    return (name[0], specificity(name[1]), name[2:]) if name[0] == "policy" else (name[0], (0, 0, ""), name[1:])


def _of_command(command: click.Command, path: Name, settings: Settings) -> Iterator[tuple[Name, Value]]:
    context = click.Context(command, info_name=path[-1])
    for name, option in options_of(command).items():
        variable, found = variable_of(path, name), settings.get((*path, name))
        if text := os.environ.get(variable):
            several = option.multiple and option.type.split_envvar_value(text)
            found = Value(tuple(several) if several else text, f"environment {variable}")
        if found:
            try:
                option.type_cast_value(context, found.value)
            except click.BadParameter as error:
                what = f"{found.origin}: {'.'.join((*path, name))} cannot be used"
                raise UsageProblem(what, error.message) from None
            yield (*path, name), Value(shown_setting("", found.value), found.origin)
