"""What `acidctl doctor --metastore` says: the settings and their origins, and each server as it was found."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from acidctl.cli.options.metastore import settings_with_origins
from acidctl.cli.output.redact import HIDDEN, hidden, is_secret_name, remember
from acidctl.errors import AcidctlError, UsageProblem
from acidctl.location.named_metastore import NONE, VARIABLES, client_of
from acidctl.metastore.settings import MetastoreSettings, Said, find_settings, said_settings
from acidctl.wording import duration, human_count

if TYPE_CHECKING:
    from acidctl.metastore.probe import ServerFacts

_CLOCK = 5.0
"""Seconds that clocks may differ before it is worth a word."""

_LONGEST = 100
"""Characters of a version."""

Record = dict[str, Any]


def check_metastore(metastore: str, pairs: tuple[str, ...]) -> tuple[Record, list[AcidctlError]]:
    """What there is, as JSON has it, and what went wrong, the first first; that is part of the record, too.

    Args:
        metastore: as it was typed.
        pairs: as they were typed.
    """
    found: Record = {"settings": [], "servers": [], "problem": None}
    problems: list[AcidctlError] = []
    try:
        given = settings_with_origins(metastore, pairs)
        texts = {name: value for name, (value, _) in given.items()}
        said = said_settings(texts)
        found["settings"] = [_setting(name, one, given) for name, one in said.items()]
        settings = None if texts.get("uris") == NONE else find_settings(texts)
        if settings is None:
            raise _none(said)
        for secret in settings.secrets:
            remember(secret)
        for facts in _asked(settings):
            problems += facts.problems
            found["servers"].append(_server(facts, settings))
    except AcidctlError as error:
        problems.insert(0, error)
        found["problem"] = _problem(error)
    return found, problems


def _asked(settings: MetastoreSettings) -> Iterator[ServerFacts]:
    client_of(settings)
    from acidctl.metastore.probe import look_at_servers  # noqa: PLC0415 - with thrift, which is there now

    return look_at_servers(settings)


def lines_of(record: Record) -> Iterator[str]:
    """The same for people."""
    settings = (f"{one['name']}={one['value']}  from {one['origin']}" for one in record["settings"])
    yield from _labelled("metastore", settings)
    for server in record["servers"]:
        yield from _labelled("server", _of_server(server))
    if record["problem"]:
        yield from _labelled("metastore", [f"not asked: {record['problem']['what']}"])


def _labelled(label: str, lines: Iterator[str] | list[str]) -> Iterator[str]:
    for place, line in enumerate(lines):
        yield f"{label if not place else '':10} {line}"


def _none(said: Mapping[str, Said]) -> UsageProblem:
    if "uris" in said:
        return UsageProblem(
            "no metastore is asked", "it is set to none", "give an address: --metastore thrift://HOST:9083"
        )
    looked = [f"{name}={os.environ[name]}" for name in VARIABLES if os.environ.get(name)]
    why = f"no hive-site.xml or metastore-site.xml there names one: {looked[0]}" if looked else "nothing names one"
    return UsageProblem(
        "no metastore is known", why, "give `metastore`, or set HIVE_CONF_DIR to where hive-site.xml says where it is"
    )


def _setting(name: str, one: Said, given: Mapping[str, tuple[str, str]]) -> Record:
    # Addresses hold no users, and are refused where they do.
    is_secret = is_secret_name(name) or (name == "uris" and "@" in one.value)
    value = HIDDEN if is_secret else hidden(one.value)
    return {"name": name, "value": value, "origin": one.origin or given[name][1]}


def _problem(error: AcidctlError) -> Record:
    return {"code": error.code, "what": hidden(error.what), "why": hidden(error.why), "hint": hidden(error.hint)}


def _problem_text(problem: Record) -> str:
    text = ": ".join(part for part in (problem["what"], problem["why"]) if part)
    return f"{text}; {problem['hint']}" if problem["hint"] else text


def _server(facts: ServerFacts, settings: MetastoreSettings) -> Record:
    features = facts.features
    return {
        "server": facts.address.url,
        "answers": bool(facts.login),
        "transport": "http" if facts.address.path is not None else "framed" if settings.framed else "socket",
        "protocol": "compact" if settings.compact else "binary",
        "auth": settings.login.value,
        "login": facts.login or None,
        "tls": facts.encryption or None,
        "version": features.version[:_LONGEST] if features else None,
        "hive": facts.generation,
        "calls": {"get_valid_write_ids": features.write_ids, "get_open_txns_req": features.txn_types}
        if features
        else {},
        "switches": _switches(facts),
        "clockAhead": None if facts.clock is None else round(facts.clock, 1),
        "openTxns": facts.open_txns,
        "locks": facts.locks,
        "compactions": dict(facts.queue) if facts.queue is not None else None,
        "abilities": list(_abilities(facts)),
        "problems": [_problem(error) for error in facts.problems],
    }


def _switches(facts: ServerFacts) -> Record | None:
    if facts.switches is None:
        return None
    words = {name: name.split("_") for name in asdict(facts.switches) if name != "is_hive4"}
    return {
        first + "".join(map(str.title, rest)): getattr(facts.switches, name) for name, (first, *rest) in words.items()
    }


def _abilities(facts: ServerFacts) -> Iterator[Record]:
    """What acidctl can do with a server, and why not."""
    if facts.features is None:
        return
    is_hive4 = facts.features.txn_types
    version = f"Hive {facts.generation}"
    yield _can("names", "tables and partitions by name")
    if facts.features.write_ids:
        yield _can("snapshots", "exact snapshots: write ids of each table")
    else:
        yield _can("snapshots", "snapshots by transactions: Hive 2 numbers no writes by table")
    yield _can("views", "transactions, locks and the queue of compactions")
    yield _can("request", "ask for major and minor compactions")
    for code, what in (
        ("txn-types", "tell transactions that read from those that compact"),
        ("rebalance", "ask for rebalancing, and for a pool of workers"),
        ("abort-compaction", "take a compaction out of the queue"),
    ):
        yield _can(code, what) if is_hive4 else _cannot(code, what, f"{version} has no call for it")
    switches = facts.switches
    if switches is None:
        return
    if switches.keeps_house:
        yield _cannot("housekeep", "end what has died", "this server does it itself")
    else:
        yield _can("housekeep", "end what has died: acidctl hive housekeep; this server does not do it")


def _can(code: str, what: str) -> Record:
    return {"code": code, "can": True, "text": what}


def _cannot(code: str, what: str, why: str) -> Record:
    return {"code": code, "can": False, "text": f"{what}: {why}"}


def _of_server(one: Record) -> Iterator[str]:
    """The lines of one server."""
    if not one["answers"]:
        yield f"{one['server']}: cannot be asked"
        yield from map(_problem_text, one["problems"])
        return
    yield f"{one['server']}: answers"
    way = {"http": "over HTTP", "framed": "over a socket, framed", "socket": "over a socket"}[one["transport"]]
    compact = ", compact protocol" if one["protocol"] == "compact" else ""
    yield f"way in     {way}{compact}, {one['tls'] or 'without TLS'}, {one['login']}"
    if one["version"] is not None:
        calls = ", ".join(f"{'' if has else 'no '}{name}" for name, has in one["calls"].items())
        yield f"version    {one['version']} by its own words, Hive {one['hive']} by its calls: {calls}"
    if one["switches"]:
        yield f"switches   {', '.join(_switch_texts(one['switches'], one['hive']))}"
    if one["clockAhead"] is not None:
        yield f"clock      {_clock_text(one['clockAhead'])}"
    counts = [
        human_count(one[key], noun)
        for key, noun in (("openTxns", "open transaction"), ("locks", "lock"))
        if one[key] is not None
    ]
    if one["compactions"] is not None:
        counts += [f"{count:,} {state}" for state, count in one["compactions"].items() if count] or ["an empty queue"]
    if counts:
        yield f"now        {', '.join(counts)}"
    for can in (True, False):
        texts = [ability["text"] for ability in one["abilities"] if ability["can"] is can]
        for place, text in enumerate(texts):
            yield f"{'' if place else 'can' if can else 'cannot':10} {text}"
    for problem in one["problems"]:
        yield f"problem    {_problem_text(problem)}"


def _switch_texts(switches: Record, hive: int) -> Iterator[str]:
    for key, name in (("initiator", "initiator"), ("cleaner", "cleaner"), ("keepsHouse", "house keeper")):
        yield f"{name} {'on' if switches[key] else 'off'}"
    yield (
        "workers in HiveServer2" if switches["workersElsewhere"] else human_count(switches["workers"], "worker thread")
    )
    yield f"transactions time out after {duration(switches['txnTimeout'])}"
    if hive == 4:
        yield f"cleaning waits for {'who reads the table' if switches['byWriteId'] else 'every open transaction'}"


def _clock_text(ahead: float) -> str:
    if abs(ahead) < _CLOCK:
        return "as ours"
    way = "ahead of" if ahead > 0 else "behind"
    return f"{duration(abs(ahead))} {way} ours: set both by one source of time; Kerberos takes 5 minutes at most"
