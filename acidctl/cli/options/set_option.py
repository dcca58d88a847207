"""``--set SECTION.KEY=VALUE``: settings of the metastore and of stores by their names in the configuration file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from acidctl.base.nearest import did_you_mean
from acidctl.cli.output.redact import HIDDEN, is_secret_name, remember_pair

F = TypeVar("F", bound=Callable[..., Any])
Pairs = tuple[tuple[str, str], ...]

_META = "acidctl.set"
_PARAMETER = "assignments"
_HELP = {
    "metastore": "metastore.auth=kerberos, metastore.principal=hive/_HOST@REALM, metastore.ca=FILE.pem, "
    "metastore.timeout=60 (the metastore)",
    "storage": "storage.user, storage.token, storage.kerberos=true, storage.keytab, storage.principal, "
    "storage.timeout=60, storage.retries=3 (HDFS); storage.key, storage.secret, storage.endpoint_url (S3); "
    "storage.<whatever fsspec's file system takes>",
}


class _SetOption(click.Option):
    """The option, whose help names the sections that the command has a use for."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.sections: list[str] = []

    def add_section(self, section: str) -> None:
        """Accept the settings of one more section, and name them in the help."""
        self.sections.insert(0, section)
        names = "; ".join(map(_HELP.__getitem__, self.sections))
        self.help = f"A setting as in the configuration file: {names}. Repeatable."


def set_option(section: str) -> Callable[[F], F]:
    """Return ``--set``; a function that has it already only gets one more section."""

    def decorate(function: F) -> F:
        params = getattr(function, "__click_params__", [])
        option = next((param for param in params if isinstance(param, _SetOption)), None)
        if option is None:
            make = click.option(
                "--set",
                _PARAMETER,
                cls=_SetOption,
                multiple=True,
                metavar="SECTION.KEY=VALUE",
                is_eager=True,  # completion of names asks for the settings of the metastore
                expose_value=False,
                callback=_take,
            )
            function = make(function)
            option = function.__click_params__[-1]  # type: ignore[attr-defined]
        option.add_section(section)
        return function

    return decorate


def key_and_value(item: str, option: str) -> tuple[str, str]:
    """Return the parts of a ``KEY=VALUE``, whose value is hidden from now on if the key names a secret.

    Args:
        option: the name of the option, for the error.

    Raises:
        BadParameter: the item has another form.
    """
    key, equals, value = item.partition("=")
    if not key or not equals:
        # The text itself is not shown: it may be a password.
        raise click.BadParameter("one of its values is not KEY=VALUE", param_hint=option)
    remember_pair(key, value)
    return key, value


def _take(context: click.Context, option: click.Parameter, items: Sequence[str]) -> None:
    assert isinstance(option, _SetOption)
    pairs: dict[str, Pairs] = {}
    for item in items:
        name, value = key_and_value(item, "--set")
        section, dot, key = name.partition(".")
        if not dot or not key:
            raise click.BadParameter("one of its values is not SECTION.KEY=VALUE", param_hint="--set")
        if section not in option.sections:
            near = did_you_mean(section, option.sections, f"sections: {', '.join(option.sections)}")
            raise click.BadParameter(
                f"{section} is not a section of `{context.command_path}`; {near}", param_hint="--set"
            )
        pairs[section] = (*pairs.get(section, ()), (key, value))
    context.meta[_META] = pairs


def assigned(section: str) -> dict[str, str]:
    """Return the settings of one section that this command line gave."""
    return dict(click.get_current_context().meta.get(_META, {}).get(section, ()))


def words_of(*sections: str) -> list[str]:
    """Return the settings as words for the line of another command, without the values of secrets."""
    given = click.get_current_context().meta.get(_META, {})
    return [
        f"--set={section}.{key}={HIDDEN if is_secret_name(key) else value}"
        for section in sections
        for key, value in given.get(section, ())
    ]


def refuse_assigned(beside: str, section: str) -> None:
    """Refuse settings of a section that would change nothing.

    Raises:
        UsageError: one was typed; a file or the environment may set them for other lines as well.
    """
    context = click.get_current_context()
    if assigned(section) and context.get_parameter_source(_PARAMETER) == ParameterSource.COMMANDLINE:
        raise click.UsageError(f"--set {section}.* has no effect on {beside}: leave it out.")


def source_of_settings() -> str:
    """Return where the values of ``--set`` are from, for people."""
    from acidctl.cli.config.settings import source_of  # noqa: PLC0415 - --help does without

    context = click.get_current_context()
    option = next(param for param in context.command.params if param.name == _PARAMETER)
    return source_of(context, option).removeprefix("it is from the ") or "--set"
