"""Check the settings of a file and of ``ACIDCTL_*``, and turn them into defaults for click.

A file has a table for each command, whose keys are the command's options without the dashes::

    [clean]
    older-than = "48h"
    [compact]
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
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click
from click.core import ParameterSource

from acidctl.base.deadline import duration_seconds
from acidctl.base.errors import RefusedError, UsageProblem
from acidctl.base.nearest import did_you_mean
from acidctl.cli.command_table import SUMMARIES, command_named
from acidctl.cli.output.redact import is_secret_name, remember_pair

if TYPE_CHECKING:
    from acidctl.verbs.policy import Policies, TablePolicy

Name = tuple[str, ...]
"""The place of a setting in a file without profiles: ``("clean", "older-than")``, ``("storage", URL, "user")``."""


class Value(NamedTuple):
    """A setting and its origin."""

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


class Settings(dict[Name, Value]):
    """The settings of a file, with those of a profile before the others; `file` is None if there is none."""

    file: SettingsFile | None = None

    def below(self, *place: str) -> dict[str, Value]:
        """Return the settings of one table."""
        return {name[-1]: value for name, value in self.items() if name[:-1] == place}

    def storage_values(self) -> dict[str, dict[str, str]]:
        """Return the options of stores by prefix of URL."""
        options: dict[str, dict[str, str]] = {}
        for name, value in self.items():
            if name[0] == "storage":
                options.setdefault(name[1], {})[name[2]] = value.value
        return options

    def default_map(self) -> dict[str, Any]:
        """Return the form in which click looks values up: by command and parameter."""
        made: dict[str, Any] = {}
        for name, found in self.items():
            if name[0] not in SUMMARIES:
                continue
            title, *path, option = name
            place, command = made.setdefault(title, {}), command_named(title)
            for part in path:
                place = place.setdefault(part, {})
                command = command.commands[part] if isinstance(command, click.Group) else None
            if command:
                place[options_of(command)[option].name] = found.value
        return made


def settings_of(file: SettingsFile | None, profile: str | None = None) -> Settings:
    """Return the settings of the file, if there is one; those of the profile take precedence.

    All profiles are checked, so that a mistake is found before its profile is used.

    Raises:
        UsageProblem: a key or a value cannot be used, or the file lacks the profile.
        RefusedError: others can read the credentials of the file.
    """
    table = file.table if file else {}
    found = list(_read(_Place(file, ()), table)) if file else []
    settings = Settings({place.name: Value(value, place.origin) for place, value in found if not place.profile})
    settings.file = file
    if profile is not None:
        profiles = sorted(table.get("profile", {}))
        if profile not in profiles:
            known = f"profiles: {', '.join(profiles) or 'none'}"
            raise UsageProblem(f"the profile {profile!r} does not exist", known, did_you_mean(profile, profiles))
        settings |= {place.name: Value(value, place.origin) for place, value in found if place.profile == profile}
    return settings


def options_of(command: click.Command, *, typed_only: bool = False) -> dict[str, click.Option]:
    """Return the options that files and the environment may set, by their long name without dashes.

    Args:
        typed_only: return the other options, with ``allow_from_autoenv=False``: they waive a safeguard, hold only for
            one moment, or decide what to do at all.
    """
    options = (p for p in command.params if isinstance(p, click.Option) and p.allow_from_autoenv != typed_only)
    named = ((next((word[2:] for word in option.opts if word.startswith("--")), ""), option) for option in options)
    return {name: option for name, option in named if name}


def parts_of(command: click.Command) -> Mapping[str, click.Command]:
    """Return the commands below a command."""
    return command.commands if isinstance(command, click.Group) else {}


# --- one file ---


@dataclass(frozen=True, slots=True)
class _Place:
    """The path of a key in a file; empty for the file itself."""

    file: SettingsFile
    path: Name

    @property
    def profile(self) -> str:
        """The profile that it is in; empty outside of all."""
        return self.path[1] if self.path[:1] == ("profile",) and len(self.path) > 1 else ""

    @property
    def name(self) -> Name:
        """The place without the profile; options of stores in a table of their own are joined by dots."""
        path = self.path[2:] if self.profile else self.path
        return (*path[:2], ".".join(path[2:])) if path[:1] == ("storage",) else path

    @property
    def origin(self) -> str:
        return f"{self.file.origin}, profile {self.profile}" if self.profile else self.file.origin

    def refuse(self, why: str, hint: str = "") -> NoReturn:
        raise UsageProblem(f"{self.file.origin}: {'.'.join(self.path)} cannot be used", why, hint)

    def items(
        self, value: Any, known: Collection[str] | None = None, unknown: str = ""
    ) -> Iterator[tuple[str, _Place, Any]]:
        """Yield each key of a table, its place and its value.

        Args:
            known: the allowed keys; by default all.
            unknown: the error for any other key.
        """
        if not isinstance(value, dict):
            self.refuse("it is not a table", f"write [{'.'.join(self.path)}] and its keys below")
        for key, item in value.items():
            place = _Place(self.file, (*self.path, key))
            if known is not None and key not in known:
                near = did_you_mean(key.replace("_", "-"), list(known))
                place.refuse(unknown, near or (f"known: {', '.join(known)}" if known else ""))
            yield key, place, item

    def text(self, value: Any, name: str = "") -> str:
        """Return a value as it would be typed, hidden in all output if its name is that of a secret."""
        if isinstance(value, dict | list):
            self.refuse("it takes one value", "write a string or a number")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        remember_pair(name, text)
        if self.file.readers and is_secret_name(name):
            what = f"{self.file.origin}: {'.'.join(self.path)} is a credential that others can read"
            why = "they may know it already: change it, and make the file private"
            raise RefusedError(what, why, self.file.readers)
        return text


_Found = Iterator[tuple[_Place, Any]]


def _read(at: _Place, table: Any) -> _Found:
    sections = {"storage": _storage, "limits": _limits, "metastore": _metastore, "policy": _policies}
    if not at.path:
        sections["profile"] = _profiles
    for key, place, value in at.items(table, (*SUMMARIES, *sections), "unknown command or setting"):
        if key in sections:
            yield from sections[key](place, value)
        elif command := command_named(key):
            yield from _options(place, value, command)


def _profiles(at: _Place, table: Any) -> _Found:
    for _, place, below in at.items(table):
        yield from _read(place, below)


def _options(at: _Place, table: Any, command: click.Command) -> _Found:
    options, typed, parts = options_of(command), options_of(command, typed_only=True), parts_of(command)
    unknown = f"`acidctl {' '.join(at.name)}` has no such option"
    for key, place, value in at.items(table, {**options, **parts, **typed}, unknown):
        if key in parts:
            yield from _options(place, value, parts[key])
        elif key in typed:
            place.refuse(f"--{key} counts on the command line only", "remove it, and give it on the command line")
        else:
            yield place, _converted(place, value, options[key])


def _converted(at: _Place, value: Any, option: click.Option) -> Any:
    """Return the value as on the command line: texts, and booleans for flags."""
    if option.is_flag:
        if not isinstance(value, bool):
            at.refuse("it is a switch", "write true or false")
        return value
    if not option.multiple:
        return at.text(value)
    if not isinstance(value, list):  # click would take each letter for a value
        at.refuse("it takes several values", 'write a list: ["a", "b"]')
    texts = tuple(map(at.text, value))
    for key, equals, item in (text.partition("=") for text in texts if (option.metavar or "").endswith("KEY=VALUE")):
        if equals:
            at.text(item, key)
    return texts


def _storage(at: _Place, table: Any) -> _Found:
    for prefix, place, options in at.items(table):
        _, scheme, rest = prefix.partition("://")
        if not scheme:
            place.refuse("it is not the beginning of a URL", 'write [storage."webhdfs://namenode:9870"]')
        user, has_user, _ = rest.partition("/")[0].rpartition("@")
        if has_user and ":" in user:
            hidden = _Place(at.file, (*at.path, "..."))
            hidden.refuse("a URL must not hold a password", "write it as an option below the URL")
        yield from _texts(place, options)


def _texts(at: _Place, table: Any, known: Collection[str] | None = None, unknown: str = "") -> _Found:
    """Yield the values of a table, and of the tables in it, as texts; those with the name of a secret are hidden."""
    for key, place, value in at.items(table, known, unknown):
        if isinstance(value, dict) and not known:
            yield from _texts(place, value)
        else:
            yield place, place.text(value, key)


def _metastore(at: _Place, table: Any) -> _Found:
    from acidctl.metastore.settings import NAMES  # noqa: PLC0415 - with XML: only where one is set

    return _texts(at, table, NAMES, "unknown metastore setting")


def _limits(at: _Place, table: Any) -> _Found:
    from acidctl.orc.limits import LIMITS, check_value  # noqa: PLC0415 - only where limits are set

    known = {limit.key: limit for limit in LIMITS}
    for place, text in _texts(at, table, known, "unknown limit"):
        try:
            check_value(known[place.path[-1]], text)
        except UsageProblem as error:
            place.refuse(error.why, error.hint)
        yield place, text


def _policies(at: _Place, table: Any) -> _Found:
    for pattern, place, policy in at.items(table):
        for key, below, value in place.items(policy):
            try:
                policy_of(pattern, {key: value})
            except UsageProblem as error:
                below.refuse(str(error), error.hint)
            yield _Place(at.file, (*at.path, pattern.lower(), key)), value


# --- [policy."sales.*"]: the treatment of some tables by `acidctl nightly` ---

_POLICY_TYPES: dict[str, Callable[[Any], Any]] = {
    "exclude": bool,
    "kind": str,
    "priority": int,
    "max-ratio": float,
    "min-deltas": int,
    "older-than": duration_seconds,
    "purge-older-than": duration_seconds,
}


def policy_of(pattern: str, table: Mapping[str, Any]) -> TablePolicy:
    """Return the policy of the tables whose name matches.

    Raises:
        UsageProblem: the pattern, a key or a value cannot be used.
    """
    from acidctl.verbs.policy import TablePolicy, require_pattern  # noqa: PLC0415 - --help does without

    require_pattern(pattern)
    values: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict | list):
            hint = f'a name with a dot needs quotation marks: [policy."{pattern}.{key}"]'
            raise UsageProblem("it is a table in a table", "", hint)
        if key not in _POLICY_TYPES:
            near = did_you_mean(key.replace("_", "-"), _POLICY_TYPES, f"keys: {', '.join(_POLICY_TYPES)}")
            raise UsageProblem("a policy has no such key", "", near)
        if isinstance(value, bool) != (key == "exclude"):
            what, hint = ("it is a switch", "write true or false") if key == "exclude" else ("it is not a switch", "")
            raise UsageProblem(what, "", hint)
        try:
            converted = _POLICY_TYPES[key](value if key == "exclude" else str(value))
        except ValueError:
            raise UsageProblem(f"{value!r} is not a number") from None
        if converted is None:
            raise UsageProblem(f"{key} is not a duration: {value!r}", "", 'write it as "48h" or "7d"')
        values[key.replace("-", "_")] = converted
    return TablePolicy(**values)


def policies_of(settings: Mapping[tuple[str, ...], Any]) -> Policies:
    """Return the policies of all settings, which were checked when they were read.

    Args:
        settings: values with their origin, by their place in a file.
    """
    from acidctl.verbs.policy import Policies  # noqa: PLC0415 - --help does without

    by_pattern: dict[str, dict[str, Any]] = {}
    for name, found in settings.items():
        if name[0] == "policy":
            by_pattern.setdefault(name[1], {})[name[2]] = found.value
    return Policies({pattern: policy_of(pattern, table) for pattern, table in by_pattern.items()})


# --- the environment ---


def variable_of(path: Name, option: str) -> str:
    """Return the environment variable of an option: ``ACIDCTL_CLEAN_OLDER_THAN``."""
    return "_".join(("acidctl", *path, option)).replace("-", "_").upper()


def take_variables(command: click.Command, path: Name) -> None:
    """Let click read the variables of a command, and of the commands below it.

    They are named after the option as it is typed: ``auto_envvar_prefix`` takes the name of click's parameter, which
    cannot be that of ``--from`` or ``--for``, and ignores a variable without an option: a misspelled
    ``ACIDCTL_CLEAN_OLDER_THAN`` would shorten the retention.

    Raises:
        UsageProblem: a variable is set for an option that only the command line may set, or that does not exist.
    """
    known, typed = _variables(command, path), _variables(command, path, typed_only=True)
    prefix = variable_of(path, "")
    for name in sorted(name for name, value in os.environ.items() if value and name.startswith(prefix)):
        if name in typed:
            why = f"{typed[name].opts[-1]} counts on the command line only"
            raise UsageProblem(f"{name} is set", why, f"unset {name}")
        if name not in known:
            what = f"{name} is set, but `acidctl {' '.join(path)}` has no such option"
            raise UsageProblem(what, "", did_you_mean(name, list(known), f"unset {name}"))
    for name, option in known.items():
        option.envvar = option.envvar or name


def _variables(command: click.Command, path: Name, *, typed_only: bool = False) -> dict[str, click.Option]:
    """Return options by the name of their variable, even if they may not have one."""
    options = {variable_of(path, name): option for name, option in options_of(command, typed_only=typed_only).items()}
    for name, below in parts_of(command).items():
        options |= _variables(below, (*path, name), typed_only=typed_only)
    return options


def source_of(context: click.Context, parameter: click.Parameter) -> str:
    """Return where the value of a parameter is from, for people; empty for the command line and for defaults."""
    source = context.get_parameter_source(parameter.name or "")
    if source == ParameterSource.ENVIRONMENT:
        return f"it is from the environment: {parameter.envvar}"
    settings = context.find_root().meta.get("acidctl.settings")
    if source != ParameterSource.DEFAULT_MAP or settings is None:
        return ""
    path = tuple(context.command_path.split(" ")[1:])
    name = next(name for name, option in options_of(context.command).items() if option is parameter)
    return f"it is from the {settings[(*path, name)].origin}"
