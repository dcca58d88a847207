"""``ACIDCTL_*``: an environment variable for every option of every command."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click
from click.core import ParameterSource

from acidctl.cli.config.settings import CommandPath, options_of, typed_only, variable_of
from acidctl.errors import UsageProblem
from acidctl.nearest import did_you_mean


def take_variables(command: click.Command, path: CommandPath) -> None:
    """Let click read the variables of a command, and of the commands below it.

    They are named by the option as it is typed, which is not always the name of click's parameter.

    Raises:
        UsageProblem: a variable is set for an option that counts on the command line only, or for none.
    """
    for problem in wrong_variables(command, path):
        raise problem
    for name, option in _named(command, path):
        if option.envvar is None:
            option.envvar = name


def wrong_variables(command: click.Command, path: CommandPath) -> Iterator[UsageProblem]:
    """What the environment sets for a command, or one below it, that cannot be set there."""
    known = {name for name, _ in _named(command, path)}
    typed = dict(_typed_only(command, path))
    prefix = variable_of(path, "")
    for name, value in sorted(os.environ.items()):
        if not value or not name.startswith(prefix) or name in known:
            continue
        if name in typed:
            yield UsageProblem(f"{name} is set", f"{typed[name]} counts on the command line only", f"unset {name}")
            continue
        yield UsageProblem(
            f"{name} is set, but `acidctl {' '.join(path)}` has no such option",
            "",
            did_you_mean(name, known, f"unset {name}"),
        )


def _named(command: click.Command, path: CommandPath) -> Iterator[tuple[str, click.Option]]:
    """The variable of every option, and the option."""
    for name, option in options_of(command).items():
        yield variable_of(path, name), option
    for name, below in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _named(below, (*path, name))


def _typed_only(command: click.Command, path: CommandPath) -> Iterator[tuple[str, str]]:
    """What would be the variable of an option that has none, and the option."""
    for name in typed_only(command):
        yield variable_of(path, name), f"--{name}"
    for name, below in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _typed_only(below, (*path, name))


def source_of(context: click.Context, parameter: click.Parameter) -> str:
    """Where the value of a parameter is from, for people; empty for the command line and for defaults."""
    source = context.get_parameter_source(parameter.name or "")
    if source == ParameterSource.ENVIRONMENT and parameter.envvar:
        names = [parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar
        return f"it is from the environment: {next((name for name in names if os.environ.get(name)), '')}"
    settings = context.find_root().meta.get("acidctl.settings")
    if source != ParameterSource.DEFAULT_MAP or settings is None:
        return ""
    path = tuple(context.command_path.split(" ")[1:])
    names = [name for name, option in options_of(context.command).items() if option is parameter]
    return f"it is from the {settings.options[path][names[0]].origin}"
