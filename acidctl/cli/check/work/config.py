"""What `acidctl config` does: the settings that count, checked, and where they are from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import click

from acidctl.cli.command_table import command_named, walk
from acidctl.cli.config.layers import (
    GENERAL,
    CommandPath,
    Name,
    Settings,
    SettingsFile,
    Value,
    options_of,
    settings_of,
    variable_of,
    wrong_variables,
)
from acidctl.cli.config.setting_files import read_settings_file, user_path
from acidctl.cli.output.console import console, note, put_json, put_line, table_of
from acidctl.cli.output.redact import HIDDEN, hidden, is_secret_name
from acidctl.cli.report.outcomes import Visits
from acidctl.errors import AcidctlError, UsageProblem
from acidctl.orc.limits import LIMITS
from acidctl.printable import printable_json

_DEFAULT = "default"


def show_settings(*, origin: bool, with_defaults: bool, output: str) -> int:
    """Print the settings; the exit status."""
    given, profile = _of_program()
    file = read_settings_file(given)
    settings = settings_of(file, command_named, profile)
    found = dict(sorted(_settings(settings, with_defaults=with_defaults)))
    if output == "json":
        put_json(_record(file, profile, found), lines=False)
    elif output == "toml":
        for line in _toml(found, origin=origin):
            put_line(line)
    elif found:
        rows = [(".".join(map(_key, name)), _shown(value), where) for name, (value, where) in found.items()]
        names = ("setting", "value", "from") if origin else ("setting", "value")
        console().print(table_of(names, [row[: len(names)] for row in rows]))
    else:
        note("nothing is set: see `acidctl config path`")
    if patterns := [name[1] for name in found if name[0] == "policy"]:
        from acidctl.night.policy import specificity  # noqa: PLC0415 - only where there are policies

        order = " ".join(sorted(set(patterns), key=specificity))
        note(f"a table takes each key of a policy from the first of these that matches it and has the key: {order}")
    visits = Visits()
    for problem in _wrong_variables():
        visits.failed("", problem)
    return visits.status


def show_paths(*, output: str) -> None:
    """Print the path of the file, and whether it is used."""
    given, _ = _of_program()
    try:
        state = "used" if read_settings_file(given) else "not there"
    except AcidctlError as error:
        state = f"not known: {error}"
    path = given or str(user_path())
    if output == "json":
        put_json({"path": path, "state": state}, lines=False)
    else:
        put_line(f"{path}  {state}")


def _of_program() -> tuple[str | None, str | None]:
    """The file of --config, and the name of --profile."""
    program = click.get_current_context().find_root().params
    return program["config_file"], program["profile"]


def _wrong_variables() -> Iterator[UsageProblem]:
    for path, command in walk():
        if len(path) == 1:
            yield from wrong_variables(command, path)


def _settings(settings: Settings, *, with_defaults: bool) -> Iterator[tuple[Name, Value]]:
    """Every setting by its place in a file."""
    for key in GENERAL:
        variable = variable_of((), key)
        found = Value(text, f"environment {variable}") if (text := os.environ.get(variable)) else settings.get((key,))
        if found:
            yield (key,), found
    yield from _limits(settings, with_defaults=with_defaults)
    for name, found in settings.items():
        if name[0] in ("storage", "metastore", "policy"):
            yield name, Value(HIDDEN, found.origin) if is_secret_name(name[-1]) else found
    for path, command in walk():
        yield from _of_command(command, path, settings, with_defaults=with_defaults)


def _limits(settings: Settings, *, with_defaults: bool) -> Iterator[tuple[Name, Value]]:
    for limit in LIMITS:
        found = settings.get(("limits", limit.key))
        if text := os.environ.get(limit.variable):
            _ = limit.value  # says so where it is not a number
            found = Value(text, f"environment {limit.variable}")
        elif not found and with_defaults:
            found = Value(limit.default, _DEFAULT)
        if found:
            yield ("limits", limit.key), found


def _of_command(
    command: click.Command, path: CommandPath, settings: Settings, *, with_defaults: bool
) -> Iterator[tuple[Name, Value]]:
    context = click.Context(command, info_name=path[-1])
    for name, option in options_of(command).items():
        variable = variable_of(path, name)
        found = settings.get((*path, name))
        if text := os.environ.get(variable):
            several = option.multiple and option.type.split_envvar_value(text)
            found = Value(tuple(several) if several else text, f"environment {variable}")
        if found:
            _check(context, option, path, name, found)
        elif with_defaults:
            default = option.get_default(context)
            if isinstance(default, str | int | float):
                found = Value(default, _DEFAULT)
        if found:
            yield (*path, name), Value(_without_secrets(found.value), found.origin)


def _check(context: click.Context, option: click.Option, path: CommandPath, name: str, found: Value) -> None:
    try:
        option.type_cast_value(context, found.value)
    except click.BadParameter as error:
        raise UsageProblem(f"{found.origin}: {'.'.join((*path, name))} cannot be used", error.message) from None


def _without_secrets(value: Any) -> Any:
    if isinstance(value, tuple):
        pairs = (str(item).partition("=") for item in value)
        return tuple(
            f"{key}={HIDDEN}" if eq and is_secret_name(key) else hidden(key + eq + rest) for key, eq, rest in pairs
        )
    return hidden(value) if isinstance(value, str) else value


def _record(file: SettingsFile | None, profile: str | None, found: dict[Name, Value]) -> dict[str, Any]:
    return {
        "file": file and file.origin,
        "profile": profile,
        "settings": [
            {"name": list(name), "value": list(value) if isinstance(value, tuple) else value, "origin": origin}
            for name, (value, origin) in found.items()
        ],
    }


def _toml(found: dict[Name, Value], *, origin: bool) -> list[str]:
    """As it could stand in a file."""
    lines: list[str] = []
    table: Name = ()
    # What is in no table stands first.
    for name, (value, where) in sorted(found.items(), key=lambda item: (len(item[0]) > 1, item[0])):
        if name[:-1] != table:
            table = name[:-1]
            lines += [*([""] if lines else []), f"[{'.'.join(map(_key, table))}]"]
        lines.append(f"{_key(name[-1])} = {_literal(value)}" + (f"  # {where}" if origin else ""))
    return lines


def _literal(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_literal, value))}]"
    # Of JSON's texts TOML takes all but lone surrogates, and pairs of them.
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
    return printable_json(text, astral=lambda code: f"\\U{code:08x}")


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else _literal(name)


def _shown(value: Any) -> str:
    if isinstance(value, tuple | list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
