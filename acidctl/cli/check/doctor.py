"""`acidctl doctor`: Show the settings, Java, packages and metastore that are used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.cli.command_table import SUMMARIES
from acidctl.cli.options import shared
from acidctl.cli.options.metastore import CONFIGURED, settings_with_origins
from acidctl.cli.options.param_types import LOCATION
from acidctl.cli.options.set_option import refuse_assigned
from acidctl.cli.output.redact import HIDDEN, hidden, remember, shown_setting

if TYPE_CHECKING:
    from acidctl.cli.config.settings import Value
    from acidctl.metastore.server import ServerFacts
    from acidctl.metastore.settings import MetastoreSettings, Setting
    from acidctl.storage.options import StorageOptions

_MARGIN = 14
_LONGEST = 100
"""The most characters of a version that are shown."""

Record = dict[str, Any]
Part = tuple[Record, Sequence[AcidctlError]]
"""A part of the record, and the problems that it shows."""


@shared.command("doctor")
@click.argument("locations", nargs=-1, metavar="[LOCATION]...", type=LOCATION)
@click.option(
    "--metastore",
    is_flag=False,
    flag_value=CONFIGURED,
    metavar="[URI[,URI]]",
    help="Ask every server of this metastore (default: the configured one) for its version and its services of Hive.",
)
@shared.typed_option(
    "--write",
    is_flag=True,
    help="Try out each LOCATION: create, rename and remove a hidden file there, and compare the clocks.",
)
@shared.storage_options
@shared.output_option("table", "json", default="table")
def command(
    locations: tuple[str, ...], metastore: str | None, write: bool, storage: StorageOptions, output: str
) -> None:
    """Show what acidctl uses here: settings, Python, packages, and every Java that was found.

    Settings are those of the configuration file, and ACIDCTL_* of the environment. Precedence: command line,
    environment, file, default. The file has a table for each command, [clean] for example, whose keys are the command's
    options. [storage."URL"] holds options for the stores below a URL, and [profile.NAME.clean] holds options that
    --profile NAME puts before the others.

    --metastore also shows the settings of the metastore, each with its origin, and which servers answer; a LOCATION
    shows whether its store can be reached and listed; with --write also whether acidctl can work there. Secrets are
    hidden.

    The exit status is that of the first problem.
    """
    from acidctl.cli.output.console import put_json, put_text

    if metastore is None:
        refuse_assigned("doctor without --metastore", "metastore")
    if not locations:
        refuse_assigned("doctor without a LOCATION", "storage")
        if write:
            raise UsageProblem("--write needs a LOCATION", "", "name the directory to try out")
    parts = [_settings, _machine]
    if metastore is not None:
        parts.append(partial(_metastore, metastore))
    if locations:
        parts.append(partial(_stores, locations, storage, write))
    record: Record = {}
    problems: list[AcidctlError] = []
    for part in parts:  # shown one by one, as a server takes its time
        found, wrong = part()
        record |= found
        problems += wrong
        for line in _lines(found) if output == "table" else ():
            put_text(line, _MARGIN)
    if output == "json":
        put_json(record, lines=False)
    if problems:
        raise problems[0]


def _settings() -> Part:
    from acidctl.cli.config.setting_files import user_path

    root = click.get_current_context().find_root()
    problem: AcidctlError | None = root.meta.get("acidctl.settings_problem")
    settings = root.meta.get("acidctl.settings")
    record = {
        "file": root.params["config_file"] or str(user_path()),
        "isUsed": settings is not None and settings.file is not None,
        "profile": root.params["profile"],
        "settings": [*_of_file(settings or {}), *_of_environment()],
        "problem": _problem(problem) if problem else None,
    }
    return {"configuration": record}, [problem] if problem else []


def _of_file(settings: Mapping[tuple[str, ...], Value]) -> Iterator[Record]:
    """Yield each setting by its place as TOML writes it, ``storage."s3://b".user``, without secrets."""
    for name, found in settings.items():
        is_bare = (part.replace("-", "").replace("_", "").isalnum() and part.isascii() for part in name)
        key = ".".join(part if bare else f'"{part}"' for part, bare in zip(name, is_bare, strict=True))
        # An option of a command is not a secret, whatever its name: --key names a column.
        value = shown_setting("" if name[0] in SUMMARIES else name[-1], found.value)
        yield {"name": key, "value": value, "origin": found.origin}


def _of_environment() -> Iterator[Record]:
    for name, value in sorted(os.environ.items()):
        if name.startswith("ACIDCTL_"):
            yield {"name": name, "value": shown_setting(name, value), "origin": "environment"}


def _machine() -> Part:
    from acidctl.orc.read.zones import native_problem
    from acidctl.spark.probe import gather

    record, zones = gather(), native_problem()
    for variable in record["environment"]:
        variable["value"] = hidden(variable["value"])
    return record | {"timezones": zones.why if zones else "found"}, [zones] if zones else []


def _stores(locations: Sequence[str], storage: StorageOptions, write: bool) -> Part:
    from acidctl.storage.options import StorageOptions
    from acidctl.storage.registry import open_location
    from acidctl.storage.trial import Trial, try_out

    stores, problems = list[Record](), list[AcidctlError]()
    options = StorageOptions(storage, storage.below, own_links=write)
    for url in locations:
        try:
            trial = try_out(*open_location(url, options), write=write)
        except AcidctlError as error:
            trial = Trial(error=error)
        problems += [trial.error] if trial.error else []
        ahead = None if trial.clock_ahead is None else round(trial.clock_ahead, 1)
        problem = _problem(trial.error) if trial.error else None
        is_reachable = bool(trial.worked) or problem is None
        record = {"location": hidden(url), "isReachable": is_reachable, "worked": trial.worked, "problem": problem}
        stores.append(record | ({"clockAhead": ahead} if write else {}))
    return {"stores": stores}, problems


def _metastore(metastore: str) -> Part:
    from acidctl.location.arguments import NONE, client_of
    from acidctl.metastore.settings import find_settings, sourced_settings

    record: Record = {"settings": [], "servers": [], "problem": None}
    problems: list[AcidctlError] = []
    try:
        given = settings_with_origins(metastore)
        texts = {name: value for name, (value, _) in given.items()}
        said = sourced_settings(texts)
        record["settings"] = [_setting(name, item, item.origin or given[name][1]) for name, item in said.items()]
        settings = None if texts.get("uris") == NONE else find_settings(texts)
        if settings is None:
            raise _no_metastore(said)
        for secret in settings.secrets:
            remember(secret)
        opened = client_of(settings)  # raises if a package is missing
        from acidctl.metastore.server import look_at_servers

        for facts in look_at_servers(opened):
            record["servers"].append(_server(facts, settings))
            problems += facts.problems
    except AcidctlError as error:
        record["problem"] = _problem(error)
        problems.insert(0, error)
    return {"metastore": record}, problems


def _no_metastore(said: Mapping[str, Setting]) -> UsageProblem:
    from acidctl.location.arguments import VARIABLES

    if "uris" in said:
        hint = "give an address: --metastore thrift://HOST:9083"
        return UsageProblem("no metastore is asked", "it is set to none", hint)
    folders = [f"{name}={os.environ[name]}" for name in VARIABLES if os.environ.get(name)]
    why = f"no hive-site.xml or metastore-site.xml there names one: {folders[0]}" if folders else "nothing names one"
    hint = "give --metastore, or set HIVE_CONF_DIR to where hive-site.xml says where it is"
    return UsageProblem("no metastore is known", why, hint)


def _setting(name: str, said: Setting, origin: str) -> Record:
    # An address with a user, and maybe a password, is refused.
    value = HIDDEN if name == "uris" and "@" in said.value else shown_setting(name, said.value)
    return {"name": name, "value": value, "origin": origin}


def _server(facts: ServerFacts, settings: MetastoreSettings) -> Record:
    features, switches = facts.features, facts.switches
    return {
        "server": facts.address.url,
        "answers": bool(facts.login),
        "auth": settings.login.value,
        "login": facts.login or None,
        "tls": facts.encryption or None,
        "version": features.version[:_LONGEST] if features else None,
        # Taken from the calls that it has: its version may be made up.
        "hive": int(features.hive[-1]) if features else None,
        "services": switches
        and {
            "initiator": switches.initiator,
            "workers": None if switches.workers_elsewhere else switches.workers,
            "cleaner": switches.cleaner,
            "houseKeeper": switches.keeps_house,
        },
        "problems": [_problem(error) for error in facts.problems],
    }


def _problem(error: AcidctlError) -> Record:
    return {"code": error.code, "what": hidden(error.what), "why": hidden(error.why), "hint": hidden(error.hint)}


# --- for people ---


def _lines(record: Record) -> Iterator[str]:
    """Yield the lines of a part of the record; the first of each key has its label."""
    special: Mapping[str, Callable[[Any], Iterator[str]]] = {
        "configuration": _configuration_lines,
        "metastore": _metastore_lines,
        "stores": _store_lines,
    }
    for label, value in record.items():
        if label in special:
            yield from special[label](value)
        elif isinstance(value, list):
            yield from _labelled(label, (" ".join(map(str, row.values())) for row in value))
        else:
            yield from _labelled(label, [value])


def _labelled(label: str, lines: Iterable[str]) -> Iterator[str]:
    for place, line in enumerate(lines):
        yield f"{'' if place else label:13} {line}"


def _configuration_lines(found: Record) -> Iterator[str]:
    profile = f", profile {found['profile']}" if found["profile"] else ""
    file = f"{found['file']}: {'is used' if found['isUsed'] else 'is not used'}{profile}"
    problems = [_problem_text(found["problem"])] if found["problem"] else []
    yield from _labelled("configuration", [file, *_setting_lines(found), *problems])


def _setting_lines(found: Record) -> Iterator[str]:
    for item in found["settings"]:
        value = item["value"]
        text = " ".join(map(str, value)) if isinstance(value, list | tuple) else value
        yield f"{item['name']}={text}  from {item['origin']}"


def _metastore_lines(found: Record) -> Iterator[str]:
    yield from _labelled("metastore", _setting_lines(found))
    for server in found["servers"]:
        yield from _labelled("server", [*_server_lines(server), *map(_problem_text, server["problems"])])
    if found["problem"]:
        yield from _labelled("metastore", [f"not asked: {_problem_text(found['problem'])}"])


def _server_lines(server: Record) -> Iterator[str]:
    if not server["answers"]:
        yield f"{server['server']}: cannot be asked"
        return
    yield f"{server['server']}: answers, {server['tls'] or 'without TLS'}, {server['login']}"
    if server["version"] is not None:
        yield f"reports version {server['version']}; its calls are those of Hive {server['hive']}"
    if services := server["services"]:
        switched = (f"{name} {'on' if services[key] else 'off'}" for key, name in _SERVICES.items())
        workers = "workers in HiveServer2" if services["workers"] is None else f"{services['workers']} worker threads"
        yield ", ".join((*switched, workers))


def _store_lines(stores: list[Record]) -> Iterator[str]:
    return _labelled("store", (f"{store['location']}: {_store_text(store)}" for store in stores))


def _store_text(store: Record) -> str:
    ahead = store.get("clockAhead")
    parts = [
        "can be reached" if store["isReachable"] else "",
        f"these worked: {', '.join(store['worked'])}" if store["worked"] else "",
        "" if ahead is None else f"its clock differs from ours by {ahead:+} s",
        _problem_text(store["problem"]) if store["problem"] else "",
    ]
    return "; ".join(filter(None, parts))


def _problem_text(problem: Record) -> str:
    text = ": ".join(part for part in (problem["what"], problem["why"]) if part)
    return f"{text}; {problem['hint']}" if problem["hint"] else text


_SERVICES = {"initiator": "initiator", "cleaner": "cleaner", "houseKeeper": "house keeper"}
