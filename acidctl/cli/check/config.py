"""`acidctl config`: Show the settings that count, and their origin."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.cli.command_table import SUMMARIES, command_named
from acidctl.cli.options import shared
from acidctl.cli.output.redact import HIDDEN, hidden, is_secret_name

if TYPE_CHECKING:
    from acidctl.cli.config.settings import Name, Settings, Value


@click.group("config", epilog=shared.examples("acidctl config show", "acidctl config path"), no_args_is_help=True)
def command() -> None:
    """Show the settings of the configuration file and of ACIDCTL_* in the environment.

    Precedence: command line, environment, file, default. The file has a table for each command, [clean] for example,
    whose keys are the command's options. [storage."URL"] holds options for the stores below a URL, and
    [profile.NAME.clean] holds options that --profile NAME puts before the others.
    """


@shared.command(
    "show",
    "acidctl config show",
    "acidctl config show --profile prod -o json",
    group=command,
    short_help="Print every setting that is set, checked.",
)
@shared.output_option("table", "json", default="table")
def show_command(output: str) -> int:
    """Print what files and environment set for each command, and where, after checking all of it.

    Secrets are shown as ***. Variables because of which a command would refuse to run are named, too.
    """
    from acidctl.cli.config.setting_files import read_settings_file  # noqa: PLC0415 - --help does without
    from acidctl.cli.config.settings import settings_of, wrong_variables  # noqa: PLC0415 - --help does without
    from acidctl.cli.output.console import console, note, put_json, table_of  # noqa: PLC0415 - --help does without
    from acidctl.cli.report.outcomes import RunReporter  # noqa: PLC0415 - --help does without

    program = click.get_current_context().find_root().params
    file = read_settings_file(program["config_file"])
    found = dict(sorted(_settings(settings_of(file, program["profile"]))))
    if output == "json":
        settings = [{"name": list(name), "value": value, "origin": origin} for name, (value, origin) in found.items()]
        put_json({"file": file and file.origin, "profile": program["profile"], "settings": settings}, lines=False)
    elif found:
        rows = [(".".join(map(_key, name)), _shown(value), origin) for name, (value, origin) in found.items()]
        console().print(table_of(("setting", "value", "from"), rows))
    else:
        note("nothing is set: see `acidctl config path`")
    if patterns := {name[1] for name in found if name[0] == "policy"}:
        from acidctl.verbs.policy import specificity  # noqa: PLC0415 - only where there are policies

        order = " ".join(sorted(patterns, key=specificity))
        note(f"a table takes each key of a policy from the first of these that matches it and has the key: {order}")
    visits = RunReporter()
    for name in SUMMARIES:
        for problem in wrong_variables(_command(name), (name,)):
            visits.failed("", problem)
    return visits.status


@shared.command("path", "acidctl config path", group=command, short_help="Print the path of the file.")
def path_command() -> None:
    """Print the path of the configuration file, and whether it is used."""
    from acidctl.cli.config.setting_files import read_settings_file, user_path  # noqa: PLC0415 - --help does without
    from acidctl.cli.output.console import put_line  # noqa: PLC0415 - --help does without

    given = click.get_current_context().find_root().params["config_file"]
    try:
        state = "used" if read_settings_file(given) else "not there"
    except AcidctlError as error:
        state = f"not known: {error}"
    put_line(f"{given or user_path()}  {state}")


def _settings(settings: Settings) -> Iterator[tuple[Name, Value]]:
    """Yield every setting by its place in a file, without secrets; what the environment sets goes first."""
    from acidctl.cli.config.settings import Value, variable_of  # noqa: PLC0415 - --help does without
    from acidctl.orc.limits import LIMITS  # noqa: PLC0415 - --help does without

    for name, found in settings.items():
        if name[0] not in SUMMARIES:
            yield name, found._replace(value=HIDDEN) if is_secret_name(name[-1]) else found
    for name, variable in (
        (("log-format",), variable_of((), "log-format")),
        *((("limits", limit.key), limit.variable) for limit in LIMITS),
    ):
        if text := os.environ.get(variable):
            yield name, Value(text, f"environment {variable}")
    for limit in LIMITS:
        _ = limit.value  # raises if the environment has no number
    for title in SUMMARIES:
        yield from _of_command(_command(title), (title,), settings)


def _of_command(command: click.Command, path: Name, settings: Settings) -> Iterator[tuple[Name, Value]]:
    from acidctl.cli.config.settings import Value, options_of, parts_of, variable_of  # noqa: PLC0415 - as above

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
            yield (*path, name), Value(_without_secrets(found.value), found.origin)
    for part, below in parts_of(command).items():
        yield from _of_command(below, (*path, part), settings)


def _command(name: str) -> click.Command:
    command = command_named(name)
    assert command
    return command


def _without_secrets(value: Any) -> Any:
    if isinstance(value, tuple):
        pairs = (str(item).partition("=") for item in value)
        return [f"{key}={HIDDEN}" if eq and is_secret_name(key) else hidden(key + eq + rest) for key, eq, rest in pairs]
    return hidden(value) if isinstance(value, str) else value


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else f'"{name}"'


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
