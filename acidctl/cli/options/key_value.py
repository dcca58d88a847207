"""The form KEY=VALUE of options that may be given several times."""

from __future__ import annotations

import click

from acidctl.cli.output.redact import remember_pair


def key_and_value(item: str, option: str) -> tuple[str, str]:
    """A ``KEY=VALUE`` of an option; raises BadParameter for what is none."""
    key, equals, value = item.partition("=")
    if not key or not equals:
        # The text itself is not shown: it may be a password.
        raise click.BadParameter("one of its values is not KEY=VALUE", param_hint=option)
    remember_pair(key, value)
    return key, value
