"""How a metastore's server is configured: time-outs, and which of Hive's own threads work there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from acidctl.errors import AcidctlError
from acidctl.metastore.client import Features, Metastore
from acidctl.metastore.settings import Address, MetastoreSettings, seconds_in

_HOUSE_KEEPER = "AcidHouseKeeperService"


@dataclass(frozen=True, slots=True)
class Switches:
    """What the server that answered says of its own configuration; other servers may have another.

    Attributes:
        is_hive4: its queue has pools, transactions of compactions, and entries that can be taken out.
        txn_timeout: seconds without a heartbeat after which a transaction is dead.
        worker_timeout: seconds after which an entry that is worked on is given to another worker.
        workers: threads that compact in this server.
        workers_elsewhere: whether HiveServer2 has the workers, as is usual from Hive 4 on: how many nobody tells.
        initiator, cleaner, keeps_house: whether these work in this server.
        by_write_id: whether a transaction holds back the cleaning of only those tables that it reads.
        most_failures: compactions of a location that fail one after another before the initiator gives it up.
        pool_timeout: seconds after which workers without a pool take an entry of any.
    """

    is_hive4: bool
    txn_timeout: float = 300.0
    worker_timeout: float = 86400.0
    workers: int = 0
    workers_elsewhere: bool = False
    initiator: bool = False
    cleaner: bool = False
    keeps_house: bool = False
    by_write_id: bool = False
    most_failures: int = 2
    pool_timeout: float = 43200.0


def find_switches(metastore: Metastore) -> Switches:
    """Ask a server for its configuration.

    Raises:
        MetastoreError: it cannot be reached.
    """
    said = partial(_said, metastore)
    is_hive4 = metastore.features.txn_types
    initiator = _is_true(said("compactor.initiator.on", "false"))
    # Before Hive 4 one switch starts initiator, cleaner and house keeper.
    cleaner = _is_true(said("compactor.cleaner.on", "false")) if is_hive4 else initiator
    keeps = _is_true(said("housekeeping.threads.on", "false")) if is_hive4 else initiator
    always = metastore.configured("metastore.task.threads.always", "")
    return Switches(
        is_hive4=is_hive4,
        txn_timeout=txn_timeout(metastore),
        worker_timeout=seconds_of(said("compactor.worker.timeout", "86400s"), 86400.0),
        workers=_number(said("compactor.worker.threads", "0"), 0),
        workers_elsewhere=is_hive4 and metastore.configured("hive.metastore.runworker.in", "hs2") != "metastore",
        initiator=initiator,
        cleaner=cleaner,
        keeps_house=keeps or _HOUSE_KEEPER in always,
        by_write_id=_is_true(said("txn.use.minhistorywriteid", "false")),
        most_failures=_number(said("compactor.initiator.failed.compacts.threshold", "2"), 2),
        pool_timeout=seconds_of(said("compactor.worker.pool.timeout", "12h"), 43200.0),
    )


def txn_timeout(metastore: Metastore) -> float:
    """After how many seconds without a heartbeat a server ends a transaction, as it says itself.

    Raises:
        MetastoreError: it cannot be reached.
    """
    return seconds_of(_said(metastore, "txn.timeout", "300s"), 300.0) or 300.0


def _said(metastore: Metastore, name: str, default: str) -> str:
    """A property by its name of today; servers of Hive 2 tell only what begins with hive."""
    missing = "\0"
    found = metastore.configured(f"metastore.{name}", missing)
    return metastore.configured(f"hive.{name}", default) if found == missing else found


def each_server(metastore: Metastore) -> list[tuple[Address, Switches | AcidctlError]]:
    """Return the configuration of every server, or why it does not answer: housekeepers may run in only one of them.

    Raises:
        MetastoreError: ZooKeeper, which lists the servers, does not answer.
    """
    answers: list[tuple[Address, Switches | AcidctlError]] = []
    for server in metastore.each_server():
        with closing(server):
            try:
                answers.append((server.settings.addresses[0], find_switches(server)))
            except AcidctlError as error:
                answers.append((server.settings.addresses[0], error))
    return answers


@dataclass(slots=True)
class ServerFacts:
    """One server; None for what it did not answer.

    Attributes:
        login: the user there, and what protects messages, for people.
        encryption: the version of TLS; empty without.
        features: what it can do, found out by asking.
        problems: why something is not known.
    """

    address: Address
    login: str = ""
    encryption: str = ""
    features: Features | None = None
    switches: Switches | None = None
    problems: list[AcidctlError] = field(default_factory=list)


def look_at_servers(settings: MetastoreSettings) -> Iterator[ServerFacts]:
    """Query each server from the settings or ZooKeeper once.

    Raises:
        EnvironmentProblem: the package that queries ZooKeeper is missing.
        MetastoreError: ZooKeeper does not answer, or lists no metastore.
    """
    for metastore in Metastore(settings).each_server():
        facts = ServerFacts(metastore.settings.addresses[0])
        with closing(metastore):
            try:
                connection = metastore.connection()
                facts.login, facts.encryption = connection.login, connection.encryption
                facts.features = metastore.features
                facts.switches = find_switches(metastore)
            except AcidctlError as error:
                facts.problems.append(error)
            yield facts


def seconds_of(text: str, default: float) -> float:
    """From a time as Hive's configuration has it, ``300s``, ``12h`` or ``300000ms``; the default for what is none."""
    found = seconds_in(text)
    return default if found is None else found


def _number(text: str, default: int) -> int:
    return int(text) if re.fullmatch(r"\d+", text.strip()) else default


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"
