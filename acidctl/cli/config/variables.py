"""``ACIDCTL_*``: an environment variable for every option of every command."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click
from click.core import ParameterSource

from acidctl.cli.config.layers import CommandPath, options_of, variable_of
from acidctl.errors import UsageProblem
from acidctl.nearest import did_you_mean


def take_variables(command: click.Command, path: CommandPath) -> None:
    """Let click read the variables of a command, and of the commands below it.

    They are named by the option as it is typed: ``auto_envvar_prefix`` takes the name of click's parameter, which
    cannot be that of ``--from`` or ``--for``, and passes over a variable that no option has.

    Raises:
        UsageProblem: a variable is set for an option that counts on the command line only, or for none.
    """
    for problem in wrong_variables(command, path):
        raise problem
    for name, option in _variables(command, path).items():
        if option.envvar is None:
            option.envvar = name


def wrong_variables(command: click.Command, path: CommandPath) -> Iterator[UsageProblem]:
    """What the environment sets for a command, or one below it, that cannot be set there."""
    known = _variables(command, path)
    typed = _variables(command, path, typed_only=True)
    prefix = variable_of(path, "")
    for name, value in sorted(os.environ.items()):
        if not value or not name.startswith(prefix) or name in known:
            continue
        if name in typed:
            option = next(word for word in typed[name].opts if word.startswith("--"))
            yield UsageProblem(f"{name} is set", f"{option} counts on the command line only", f"unset {name}")
            continue
        yield UsageProblem(
            f"{name} is set, but `acidctl {' '.join(path)}` has no such option",
            "",
            did_you_mean(name, list(known), f"unset {name}"),
        )


def _variables(command: click.Command, path: CommandPath, *, typed_only: bool = False) -> dict[str, click.Option]:
    """Options by their variable, or by what would be the variable of those that have none."""
    found = {variable_of(path, name): option for name, option in options_of(command, typed_only=typed_only).items()}
    for name, below in command.commands.items() if isinstance(command, click.Group) else ():
        found |= _variables(below, (*path, name), typed_only=typed_only)
    return found


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
