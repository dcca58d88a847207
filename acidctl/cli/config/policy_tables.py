"""``[policy."sales.*"]`` of a configuration file: what `acidctl nightly` is to do with some tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from acidctl.cli.command_table import command_named
from acidctl.errors import UsageProblem
from acidctl.nearest import did_you_mean
from acidctl.verbs.policy import Policies, TablePolicy, require_pattern

_OWN: dict[str, click.ParamType[Any]] = {
    "exclude": click.BOOL,
    "kind": click.Choice(["major", "minor"]),
    "priority": click.INT,
}
_OPTIONS = ("min-deltas", "max-ratio", "older-than", "purge-older-than")
KEYS = (*_OWN, *_OPTIONS)
"""The keys of a policy: its own, and those that mean what the option of `acidctl nightly` means."""


def policy_of(pattern: str, table: Mapping[str, Any]) -> TablePolicy:
    """Return the policy of the tables whose name matches.

    Raises:
        UsageProblem: the pattern, a key or a value cannot be used.
    """
    require_pattern(pattern)
    nightly = command_named("nightly")
    types = _OWN | {
        key: one.type for one in (nightly.params if nightly else ()) for key in _OPTIONS if f"--{key}" in one.opts
    }
    values: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict | list):
            hint = f'a name with a dot needs quotation marks: [policy."{pattern}.{key}"]'
            raise UsageProblem("it is a table in a table", "", hint)
        if key not in types:
            raise UsageProblem(
                "a policy has no such key", "", did_you_mean(key.replace("_", "-"), KEYS, f"keys: {', '.join(KEYS)}")
            )
        if isinstance(value, bool) != (key == "exclude"):
            raise UsageProblem("it is no switch" if key != "exclude" else "it is a switch", "", "write true or false")
        try:
            values[key.replace("-", "_")] = types[key].convert(
                value if isinstance(value, bool) else str(value), None, None
            )
        except click.BadParameter as error:
            raise UsageProblem(error.message.rstrip(".")) from None
    return TablePolicy(**values)


def policies_of(settings: Mapping[tuple[str, ...], Any]) -> Policies:
    """Return the policies of all settings, which were checked when they were read.

    Args:
        settings: values with their origin, by their place in a file.
    """
    by_pattern: dict[str, dict[str, Any]] = {}
    for name, found in settings.items():
        if name[0] == "policy":
            by_pattern.setdefault(name[1], {})[name[2]] = found.value
    return Policies({pattern: policy_of(pattern, table) for pattern, table in by_pattern.items()})
