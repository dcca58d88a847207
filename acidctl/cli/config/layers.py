"""Check the settings of a file and of ``ACIDCTL_*``, and turn them into values that click looks up.

A file has a table for each command, whose keys are the command's options without the dashes::

    log-format = "json"
    [clean]
    older-than = "48h"
    [repair.key-index]
    exit-code = true
    [storage."webhdfs://nn:9870"]
    user = "hive"
    [metastore]
    uris = "thrift://metastore:9083"
    [limits]
    stripe-memory = "8G"
    [policy."sales.*"]
    older-than = "72h"
    [profile.prod.compact]
    master = "yarn"
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import click
from click.core import ParameterSource

from acidctl.cli.command_table import SUMMARIES
from acidctl.cli.output.redact import is_secret_name, remember_pair
from acidctl.errors import RefusedError, UsageProblem
from acidctl.nearest import did_you_mean

GENERAL = ("log-format",)
_TABLES = ("storage", "profile", "limits", "metastore", "policy")


class Value(NamedTuple):
    """A setting, and where it is from."""

    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The content of a file of settings.

    Attributes:
        origin: its path, ``user file ~/.config/acidctl/config.toml``.
        readers: the command that makes the file private, if others can read it; it must not hold credentials then.
    """

    origin: str
    table: Mapping[str, Any]
    readers: str = ""


CommandPath = tuple[str, ...]
Name = tuple[str, ...]
"""The place of a setting in a file without profiles: ``("clean", "older-than")``, ``("storage", URL, "user")``."""

Commands = Callable[[str], click.Command | None]
"""Gives a command by its name."""


class Settings(dict[Name, Value]):
    """What the files say together."""

    def below(self, *place: str) -> dict[str, Value]:
        """The settings of one table."""
        return {name[-1]: value for name, value in self.items() if name[:-1] == place}

    def storage_values(self) -> dict[str, dict[str, str]]:
        """Options of stores by prefix of URL."""
        prefixes = dict.fromkeys(name[1] for name in self if name[0] == "storage")
        return {
            prefix: {key: found.value for key, found in self.below("storage", prefix).items()} for prefix in prefixes
        }

    def default_map(self, commands: Commands) -> dict[str, Any]:
        """The form in which click looks values up: by command and parameter."""
        made: dict[str, Any] = {}
        for (*path, option), found in self.items():
            if path and path[0] not in _TABLES:
                place = made
                for name in path:
                    place = place.setdefault(name, {})
                place[str(options_of(_command(path, commands))[option].name)] = found.value
        return made


def settings_of(file: SettingsFile | None, commands: Commands, profile: str | None = None) -> Settings:
    """Return the settings of a file, none without one; those of the profile take precedence.

    Raises:
        UsageProblem: a key or a value cannot be used, or the file lacks the profile.
        RefusedError: others can read the credentials of the file.
    """
    file = file or SettingsFile("no file", {})
    profiles = _table(file, ("profile",), file.table.get("profile", {}))
    # All profiles are checked, so that a mistake is found before its profile is used.
    read = {name: dict(_read(file, ("profile", name), table, commands)) for name, table in profiles.items()}
    settings = Settings(_read(file, (), file.table, commands))
    if profile is not None and profile not in profiles:
        raise UsageProblem(
            f"there is no profile {profile!r}",
            f"profiles: {', '.join(sorted(profiles)) or 'none'}",
            _near(profile, list(profiles)),
        )
    chosen = read[profile] if profile is not None else {}
    origin = f"{file.origin}, profile {profile}"
    return Settings(settings | {name: found._replace(origin=origin) for name, found in chosen.items()})


def options_of(command: click.Command, *, typed_only: bool = False) -> dict[str, click.Option]:
    """The options that files and the environment may set, by their long name without dashes.

    Args:
        typed_only: the others, which say ``allow_from_autoenv=False``: they waive a safeguard, say what is true of one
            moment, or say what is to be done at all.
    """
    options = (one for one in command.params if isinstance(one, click.Option) and one.allow_from_autoenv != typed_only)
    named = ((next((word[2:] for word in option.opts if word.startswith("--")), ""), option) for option in options)
    return {name: option for name, option in named if name}


def variable_of(path: CommandPath, option: str) -> str:
    """The environment variable of an option: ``ACIDCTL_CLEAN_OLDER_THAN``."""
    return "_".join(("acidctl", *path, option)).replace("-", "_").upper()


# --- one file ---


def _read(
    file: SettingsFile, above: CommandPath, table: Mapping[str, Any], commands: Commands
) -> Iterator[tuple[Name, Value]]:
    """Yield the settings of one table of a file, the file's own or a profile's."""
    for key, value in _table(file, above, table).items():
        place = (*above, key)
        if key == "storage":
            yield from _storage(file, place, _table(file, place, value))
        elif key == "limits":
            yield from _limits(file, place, _table(file, place, value))
        elif key == "metastore":
            yield from _metastore(file, place, _table(file, place, value))
        elif key == "policy":
            yield from _policies(file, place, _table(file, place, value), commands)
        elif key in GENERAL:
            yield (key,), _general(file, place, value)
        elif command := None if key in _TABLES else commands(key):
            yield from _options(file, place, _table(file, place, value), command, (key,))
        elif above or key != "profile":
            _refuse(file, place, "unknown command or setting", _near(key, _top_level(top=not above)))


def _top_level(*, top: bool) -> list[str]:
    return [*SUMMARIES, *GENERAL, "storage", "limits", "metastore", "policy", *(["profile"] if top else [])]


def _options(
    file: SettingsFile, place: CommandPath, table: Mapping[str, Any], command: click.Command, path: CommandPath
) -> Iterator[tuple[Name, Value]]:
    options = options_of(command)
    below = command.commands if isinstance(command, click.Group) else {}
    for key, value in table.items():
        at = (*place, key)
        if key in below:
            yield from _options(file, at, _table(file, at, value), below[key], (*path, key))
        elif key in options_of(command, typed_only=True):
            _refuse(file, at, f"--{key} counts on the command line only", "remove it, and give it on the command line")
        elif key not in options:
            _refuse(file, at, f"`acidctl {' '.join(path)}` has no such option", _near(key, [*options, *below]))
        else:
            yield (*path, key), Value(_converted(file, at, value, options[key]), file.origin)


def _converted(file: SettingsFile, place: CommandPath, value: Any, option: click.Option) -> Any:
    """Return the value as on the command line: texts, and booleans for flags."""
    if option.is_flag:
        if not isinstance(value, bool):
            _refuse(file, place, "it is a switch", "write true or false")
        return value
    if not option.multiple:
        return _text(file, place, value)
    pairs = option.metavar == "KEY=VALUE"
    if isinstance(value, dict) and pairs:
        value = [f"{key}={_text(file, (*place, key), item)}" for key, item in value.items()]
    if not isinstance(value, list):
        _refuse(file, place, "it takes several values", 'write a list: ["a", "b"]')
    texts = tuple(_text(file, place, item) for item in value)
    for key, equals, item in (text.partition("=") for text in texts if pairs):
        if equals:
            _keep_secret(file, (*place, key), key, item)
    return texts


def _storage(file: SettingsFile, place: CommandPath, table: Mapping[str, Any]) -> Iterator[tuple[Name, Value]]:
    for prefix, options in table.items():
        at = (*place, prefix)
        if "://" not in prefix:
            _refuse(file, at, "it is not the beginning of a URL", 'write [storage."webhdfs://namenode:9870"]')
        if "@" in prefix.partition("://")[2].partition("/")[0] and ":" in prefix.partition("://")[2].partition("@")[0]:
            _refuse(file, (*place, "..."), "a URL must not hold a password", "write it as an option below the URL")
        for key, value in _flat(_table(file, at, options)):
            text = _text(file, (*at, key), value)
            _keep_secret(file, (*at, key), key, text)
            yield ("storage", prefix, key), Value(text, file.origin)


def _limits(file: SettingsFile, place: CommandPath, table: Mapping[str, Any]) -> Iterator[tuple[Name, Value]]:
    from acidctl.orc.limits import LIMITS, check_value  # noqa: PLC0415 - only where limits are set

    known = {limit.key: limit for limit in LIMITS}
    for key, value in table.items():
        at = (*place, key)
        if key not in known:
            _refuse(file, at, "unknown limit", _near(key, [*known]) or f"limits: {', '.join(known)}")
        text = _text(file, at, value)
        try:
            check_value(known[key], text)
        except UsageProblem as error:
            _refuse(file, at, error.why, error.hint)
        yield ("limits", key), Value(text, file.origin)


def _metastore(file: SettingsFile, place: CommandPath, table: Mapping[str, Any]) -> Iterator[tuple[Name, Value]]:
    from acidctl.metastore.settings import NAMES  # noqa: PLC0415 - with XML: only where one is set

    for key, value in table.items():
        at = (*place, key)
        if key not in NAMES:
            _refuse(file, at, "unknown metastore setting", _near(key, [*NAMES]) or f"settings: {', '.join(NAMES)}")
        text = _text(file, at, value)
        _keep_secret(file, at, key, text)
        yield ("metastore", key), Value(text, file.origin)


def _policies(
    file: SettingsFile, place: CommandPath, table: Mapping[str, Any], commands: Commands
) -> Iterator[tuple[Name, Value]]:
    from acidctl.cli.config.policy_tables import check_policy  # noqa: PLC0415 - only where there are policies

    for pattern, policy in table.items():
        for key, value in _table(file, (*place, pattern), policy).items():
            at = (*place, pattern, key)
            given = value if isinstance(value, bool | dict) else _text(file, at, value)
            try:
                check_policy(pattern, key, given, _command(["nightly"], commands))
            except UsageProblem as error:
                _refuse(file, at, str(error), error.hint)
            yield ("policy", pattern.lower(), key), Value(given, file.origin)


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """``client_kwargs.region_name`` from a table in a table."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield above + key, value


def _general(file: SettingsFile, place: CommandPath, value: Any) -> Value:
    if value not in ("text", "json"):
        _refuse(file, place, "it must be text or json", 'write log-format = "json"')
    return Value(value, file.origin)


def _keep_secret(file: SettingsFile, place: CommandPath, key: str, value: str) -> None:
    remember_pair(key, value)
    if file.readers and is_secret_name(key):
        what = f"{file.origin}: {'.'.join(place)} is a credential that others can read"
        raise RefusedError(what, "they may know it already: change it, and make the file private", file.readers)


def _text(file: SettingsFile, place: CommandPath, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        _refuse(file, place, "it takes one value", "write a string or a number")
    return str(value)


def _table(file: SettingsFile, place: CommandPath, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(file, place, "it is not a table", f"write [{'.'.join(place)}] and its keys below")
    return value


def _refuse(file: SettingsFile, place: CommandPath, why: str, hint: str) -> NoReturn:
    raise UsageProblem(f"{file.origin}: {'.'.join(place)} cannot be used", why, hint)


def _near(name: str, known: Sequence[str]) -> str:
    return did_you_mean(name.replace("_", "-"), known)


def _command(path: Sequence[str], commands: Commands) -> click.Command:
    command = commands(path[0])
    for name in path[1:]:
        command = command.commands[name] if isinstance(command, click.Group) else None
    if command is None:
        raise KeyError(path)
    return command


# --- the environment ---

_LOG_FORMAT = "ACIDCTL_LOG_FORMAT"
"""It is of every command, and none of the command `log`."""


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
        if not value or not name.startswith(prefix) or name in known or name == _LOG_FORMAT:
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
    return f"it is from the {settings[(*path, names[0])].origin}"
