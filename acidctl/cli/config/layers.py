"""Settings from files and from ``ACIDCTL_*``, put in order and checked: from what was read to what click looks up.

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

TRUSTED = "trusted-projects"
GENERAL = ("log-format",)
_TABLES = ("storage", "profile", "limits", "metastore", "policy")


class Value(NamedTuple):
    """A setting, and where it is from."""

    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Layer:
    """One file.

    Attributes:
        origin: what it is and its path, ``user file ~/.config/acidctl/config.toml``.
        is_project: it may be part of what others send: no credentials, and it trusts nobody.
        readers: what keeps the file from others, where they can read it: then it holds no credentials.
    """

    origin: str
    table: Mapping[str, Any]
    is_project: bool = False
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


def merged_settings(layers: Sequence[Layer], commands: Commands, profile: str | None = None) -> Settings:
    """The settings of all files: of each the profile first, then what it says without one.

    Args:
        layers: the strongest first.

    Raises:
        UsageProblem: a key or a value that cannot be used, or no file has the profile.
        RefusedError: others can read the credentials of a file.
    """
    merged = Settings()
    known: list[str] = []
    for layer in layers:
        profiles = _table(layer, ("profile",), layer.table.get("profile", {}))
        known += profiles
        # All are looked at: a mistake should not wait for the night its profile is used.
        read = {name: dict(_read(layer, ("profile", name), table, commands)) for name, table in profiles.items()}
        base = dict(_read(layer, (), layer.table, commands))
        chosen = read.get(profile or "", {})
        chosen = {name: found._replace(origin=f"{found.origin}, profile {profile}") for name, found in chosen.items()}
        for part in (chosen, base):
            merged.update({name: value for name, value in part.items() if name not in merged})
    if profile is not None and profile not in known:
        near = _near(profile, known)
        raise UsageProblem(
            f"no profile is called {profile!r}", f"the files have {', '.join(sorted(set(known))) or 'none'}", near
        )
    return merged


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
    layer: Layer, above: CommandPath, table: Mapping[str, Any], commands: Commands
) -> Iterator[tuple[Name, Value]]:
    """What one table of a file says, the file's own or a profile's."""
    for key, value in _table(layer, above, table).items():
        place = (*above, key)
        if key == "storage":
            yield from _storage(layer, place, _table(layer, place, value))
        elif key == "limits":
            yield from _limits(layer, place, _table(layer, place, value))
        elif key == "metastore":
            yield from _metastore(layer, place, _table(layer, place, value))
        elif key == "policy":
            yield from _policies(layer, place, _table(layer, place, value), commands)
        elif key in GENERAL:
            yield (key,), _general(layer, place, value)
        elif command := None if key in _TABLES else commands(key):
            yield from _options(layer, place, _table(layer, place, value), command, (key,))
        elif above or key not in ("profile", TRUSTED):
            _refuse(layer, place, "no command or setting is called so", _near(key, _top_level(top=not above)))
        elif key == TRUSTED and layer.is_project:
            _refuse(layer, place, "a project file cannot trust others", "it goes into the user file")


def _top_level(*, top: bool) -> list[str]:
    return [*SUMMARIES, *GENERAL, "storage", "limits", "metastore", "policy", *(["profile", TRUSTED] if top else [])]


def _options(
    layer: Layer, place: CommandPath, table: Mapping[str, Any], command: click.Command, path: CommandPath
) -> Iterator[tuple[Name, Value]]:
    options = options_of(command)
    below = command.commands if isinstance(command, click.Group) else {}
    for key, value in table.items():
        at = (*place, key)
        if key in below:
            yield from _options(layer, at, _table(layer, at, value), below[key], (*path, key))
        elif key in options_of(command, typed_only=True):
            _refuse(layer, at, f"--{key} counts on the command line only", "take it out, and give it where it is meant")
        elif key not in options:
            _refuse(layer, at, f"`acidctl {' '.join(path)}` has no such option", _near(key, [*options, *below]))
        else:
            yield (*path, key), Value(_converted(layer, at, value, options[key]), layer.origin)


def _converted(layer: Layer, place: CommandPath, value: Any, option: click.Option) -> Any:
    """As it would stand on the command line: texts, and booleans for flags."""
    if option.is_flag:
        if not isinstance(value, bool):
            _refuse(layer, place, "it is a switch", "write true or false")
        return value
    if not option.multiple:
        return _text(layer, place, value)
    pairs = option.metavar == "KEY=VALUE"
    if isinstance(value, dict) and pairs:
        value = [f"{key}={_text(layer, (*place, key), item)}" for key, item in value.items()]
    if not isinstance(value, list):
        _refuse(layer, place, "it takes several values", 'write a list: ["a", "b"]')
    texts = tuple(_text(layer, place, item) for item in value)
    for key, equals, item in (text.partition("=") for text in texts if pairs):
        if equals:
            _keep_secret(layer, (*place, key), key, item)
    return texts


def _storage(layer: Layer, place: CommandPath, table: Mapping[str, Any]) -> Iterator[tuple[Name, Value]]:
    for prefix, options in table.items():
        at = (*place, prefix)
        if "://" not in prefix:
            _refuse(layer, at, "it is not the beginning of a URL", 'write [storage."webhdfs://namenode:9870"]')
        if "@" in prefix.partition("://")[2].partition("/")[0] and ":" in prefix.partition("://")[2].partition("@")[0]:
            _refuse(layer, (*place, "..."), "a URL must not hold a password", "write it as an option below the URL")
        for key, value in _flat(_table(layer, at, options)):
            text = _text(layer, (*at, key), value)
            _keep_secret(layer, (*at, key), key, text)
            yield ("storage", prefix, key), Value(text, layer.origin)


def _limits(layer: Layer, place: CommandPath, table: Mapping[str, Any]) -> Iterator[tuple[Name, Value]]:
    from acidctl.orc.limits import LIMITS, check_value  # noqa: PLC0415 - only where limits are set

    known = {limit.key: limit for limit in LIMITS}
    for key, value in table.items():
        at = (*place, key)
        if key not in known:
            _refuse(layer, at, "there is no such limit", _near(key, [*known]) or f"limits: {', '.join(known)}")
        text = _text(layer, at, value)
        try:
            check_value(known[key], text)
        except UsageProblem as error:
            _refuse(layer, at, error.why, error.hint)
        yield ("limits", key), Value(text, layer.origin)


def _metastore(layer: Layer, place: CommandPath, table: Mapping[str, Any]) -> Iterator[tuple[Name, Value]]:
    from acidctl.metastore.settings import NAMES  # noqa: PLC0415 - with XML: only where one is set

    for key, value in table.items():
        at = (*place, key)
        if key not in NAMES:
            _refuse(
                layer, at, "the metastore has no such setting", _near(key, [*NAMES]) or f"settings: {', '.join(NAMES)}"
            )
        text = _text(layer, at, value)
        _keep_secret(layer, at, key, text)
        yield ("metastore", key), Value(text, layer.origin)


def _policies(
    layer: Layer, place: CommandPath, table: Mapping[str, Any], commands: Commands
) -> Iterator[tuple[Name, Value]]:
    from acidctl.cli.config.policy_tables import check_policy  # noqa: PLC0415 - only where there are policies

    for pattern, policy in table.items():
        for key, value in _table(layer, (*place, pattern), policy).items():
            at = (*place, pattern, key)
            given = value if isinstance(value, bool | dict) else _text(layer, at, value)
            try:
                check_policy(pattern, key, given, _command(["nightly"], commands))
            except UsageProblem as error:
                _refuse(layer, at, str(error), error.hint)
            yield ("policy", pattern.lower(), key), Value(given, layer.origin)


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """``client_kwargs.region_name`` from a table in a table."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield above + key, value


def _general(layer: Layer, place: CommandPath, value: Any) -> Value:
    if value not in ("text", "json"):
        _refuse(layer, place, "it is none of text and json", 'write log-format = "json"')
    return Value(value, layer.origin)


def _keep_secret(layer: Layer, place: CommandPath, key: str, value: str) -> None:
    remember_pair(key, value)
    if layer.is_project and is_secret_name(key):
        _refuse(layer, place, "credentials have no place in a project file", "put them into the user file")
    if layer.readers and is_secret_name(key):
        what = f"{layer.origin}: {'.'.join(place)} is a credential that others can read"
        raise RefusedError(what, "it may be known to them already: change it, and close the file", layer.readers)


def _text(layer: Layer, place: CommandPath, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        _refuse(layer, place, "it takes one value", "write a text or a number")
    return str(value)


def _table(layer: Layer, place: CommandPath, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(layer, place, "it is not a table", f"write [{'.'.join(place)}] and its keys below")
    return value


def _refuse(layer: Layer, place: CommandPath, why: str, hint: str) -> NoReturn:
    raise UsageProblem(f"{layer.origin}: {'.'.join(place)} cannot be used", why, hint)


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
