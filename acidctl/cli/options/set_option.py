"""``--set SECTION.KEY=VALUE``: settings of the metastore and of stores by their names in the configuration file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from acidctl.base.nearest import did_you_mean
from acidctl.cli.output.command_lines import ASSIGNED
from acidctl.cli.output.redact import remember_pair

SECTIONS_OF_SETTINGS = ("metastore", "storage")
_STORAGE = "acidctl_takes_storage"
ORIGIN = "environment: ACIDCTL_SET"
"""The source of settings that were not typed, as messages name it."""


def take_settings(context: click.Context, _: click.Parameter, items: Sequence[str]) -> None:
    """Check the settings of a command line, as the callback of the program's option, and keep them for the command."""
    pairs: dict[str, dict[str, str]] = {}
    for item in items:
        name, value = key_and_value(item, "--set")
        section, dot, key = name.partition(".")
        if not dot or not key:
            raise click.BadParameter("one of its values is not SECTION.KEY=VALUE", param_hint="--set")
        if section not in SECTIONS_OF_SETTINGS:
            near = did_you_mean(section, SECTIONS_OF_SETTINGS, f"sections: {', '.join(SECTIONS_OF_SETTINGS)}")
            raise click.BadParameter(f"{section} is not a section; {near}", param_hint="--set")
        pairs.setdefault(section, {})[key] = value
    context.meta[ASSIGNED] = pairs


def key_and_value(item: str, option: str) -> tuple[str, str]:
    """Return the parts of a ``KEY=VALUE``, whose value is hidden from now on if the key names a secret.

    Args:
        option: the name of the option, for the error.

    Raises:
        BadParameter: the item has another form.
    """
    key, value = parts_of(item, option)
    remember_pair(key, value)
    return key, value


def parts_of(item: str, option: str) -> tuple[str, str]:
    """Split a ``KEY=VALUE`` without hiding its value: the key is a column, even if it is called "password".

    Args:
        option: the name of the option, for the error.

    Raises:
        BadParameter: the item has another form.
    """
    key, equals, value = item.partition("=")
    if not key or not equals:
        # The text itself is not shown: it may be a password.
        raise click.BadParameter("one of its values is not KEY=VALUE", param_hint=option)
    return key, value


def assigned(section: str) -> dict[str, str]:
    """Return the settings of one section that this command line gave."""
    return dict(click.get_current_context().meta.get(ASSIGNED, {}).get(section, {}))


def takes_storage(function: Callable[..., Any]) -> None:
    """Mark the function of a command that has a use for the settings of stores."""
    function.__dict__[_STORAGE] = True  # what wraps it has the same dictionary


def refuse_useless(context: click.Context, command: click.Command, name: str) -> None:
    """Refuse settings that the command does not use.

    Args:
        name: the command, as it is typed.

    Raises:
        UsageError: one was typed; the environment may set them for other lines as well.
    """
    commands = list(command.commands.values()) if isinstance(command, click.Group) else [command]
    used = {
        "metastore": any(param.name == "metastore" for each in commands for param in each.params),
        "storage": any(_STORAGE in getattr(each.callback, "__dict__", {}) for each in commands),
    }
    of_command = click.Context(command, parent=context, info_name=name.rpartition(" ")[2])
    for section in context.meta.get(ASSIGNED, {}):
        if not used[section] and is_typed(context):
            raise click.UsageError(f"--set {section}.* has no effect on `{name}`: leave it out.", of_command)


def is_typed(context: click.Context) -> bool:
    """Return whether the settings were typed, and are not from the environment."""
    return context.find_root().get_parameter_source("assignments") == ParameterSource.COMMANDLINE


def refuse_assigned(beside: str, section: str) -> None:
    """Refuse settings of a section that would change nothing.

    Raises:
        UsageError: one was typed; the environment may set them for other lines as well.
    """
    if assigned(section) and is_typed(click.get_current_context()):
        raise click.UsageError(f"--set {section}.* has no effect on {beside}: leave it out.")
