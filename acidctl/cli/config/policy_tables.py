"""``[policy."sales.*"]`` of a configuration file: what `acidctl nightly` is to do with some tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from acidctl.errors import UsageProblem
from acidctl.nearest import did_you_mean
from acidctl.verbs.policy import Policies, TablePolicy, require_pattern

_OWN: dict[str, tuple[click.ParamType[Any], str]] = {
    "exclude": (click.BOOL, "write true or false"),
    "kind": (click.Choice(["major", "minor"]), "write major or minor"),
    "priority": (click.INT, "write a whole number: those with a higher one come first"),
}
_OPTIONS = ("min-deltas", "max-ratio", "older-than", "purge-older-than")
KEYS = (*_OWN, *_OPTIONS)
"""The keys of a policy: its own, and those that mean what the option of `acidctl nightly` means."""


def check_policy(pattern: str, key: str, value: Any, command: click.Command) -> None:
    """Refuse what no policy can say.

    Args:
        value: a boolean, or a text.
        command: `acidctl nightly`, whose options have the types of values.

    Raises:
        UsageProblem: the pattern, the key or the value cannot be used.
    """
    require_pattern(pattern)
    if isinstance(value, dict) and key not in KEYS:
        quoted = f'[policy."{pattern}.{key}"]'
        raise UsageProblem("it is a table in a table", "", f"a name with a dot needs quotation marks: {quoted}")
    if key not in KEYS:
        known = f"keys: {', '.join(KEYS)}"
        raise UsageProblem("a policy has no such key", "", did_you_mean(key.replace("_", "-"), KEYS, known))
    if isinstance(value, bool) != (key == "exclude"):
        is_switch = key == "exclude"
        raise UsageProblem(f"it is {'a' if is_switch else 'no'} switch", "", _OWN["exclude"][1] * is_switch)
    policy_of({key: value}, command)


def policy_of(said: Mapping[str, Any], command: click.Command) -> TablePolicy:
    """A policy of the keys and values of its table.

    Raises:
        UsageProblem: a value that cannot be meant.
    """
    options = {f"--{key}": key for key in _OPTIONS}
    types = {options[name]: one.type for one in command.params for name in one.opts if name in options}
    values: dict[str, Any] = {}
    for key, value in said.items():
        kind, hint = _OWN.get(key) or (types[key], "")
        try:
            values[key.replace("-", "_")] = kind.convert(value, None, None)
        except click.BadParameter as error:
            raise UsageProblem(error.message.rstrip("."), "", hint) from None
    return TablePolicy(**values)


def policies_of(settings: Mapping[tuple[str, ...], Any], command: click.Command) -> Policies:
    """The policies of all settings, which were checked when they were read.

    Args:
        settings: values with their origin, by their place in a file.
    """
    by_pattern: dict[str, dict[str, Any]] = {}
    for name, found in settings.items():
        if name[0] == "policy":
            by_pattern.setdefault(name[1], {})[name[2]] = found.value
    return Policies({pattern: policy_of(said, command) for pattern, said in by_pattern.items()})
