"""``ACIDCTL_*``: an environment variable for every option of every command."""

from __future__ import annotations

import os

import click
from click.core import ParameterSource

from acidctl.cli.settings import CommandPath, options_of, typed_only, variable_of
from acidctl.errors import UsageProblem


def take_variables(command: click.Command, path: CommandPath) -> None:
    """Let click read the variables of a command, and of the commands below it.

    They are named by the option as it is typed, which is not always the name of click's parameter.

    Raises:
        UsageProblem: a variable is set for an option that counts on the command line only, or for none.
    """
    known = _named(command, path)
    prefix = variable_of(path, "")
    for name, value in os.environ.items():
        if value and name.startswith(prefix) and name not in known:
            from difflib import get_close_matches

            close = get_close_matches(name, known)
            raise UsageProblem(
                f"{name} is set, but `acidctl {' '.join(path)}` has no such option",
                "",
                f"did you mean {' or '.join(close)}?" if close else f"unset {name}",
            )


def _named(command: click.Command, path: CommandPath) -> set[str]:
    """The variables that click knows now."""
    known = set()
    for name, option in options_of(command).items():
        variable = variable_of(path, name)
        if option.envvar is None:
            option.envvar = variable
        known.add(variable)
    for name in typed_only(command):
        variable = variable_of(path, name)
        if os.environ.get(variable):
            raise UsageProblem(f"{variable} is set", f"--{name} counts on the command line only", f"unset {variable}")
    for name, below in command.commands.items() if isinstance(command, click.Group) else ():
        known |= _named(below, (*path, name))
    return known


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
