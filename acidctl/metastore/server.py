"""Configuration of a metastore's servers: time-outs, and which of Hive's services run in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

from acidctl.base.errors import AcidctlError
from acidctl.metastore.client import Features, Metastore
from acidctl.metastore.settings import Address, seconds_in

_HOUSE_KEEPER = "AcidHouseKeeperService"


@dataclass(frozen=True, slots=True)
class Switches:
    """Configuration of one server; other servers may have another.

    Attributes:
        is_hive4: whether the queue has pools, transactions of compactions, and entries that can be removed.
        worker_timeout: seconds after which a running compaction is given to another worker.
        workers_elsewhere: whether HiveServer2 runs the workers (usual from Hive 4 on), in an unknown number.
        initiator, cleaner, keeps_house: whether these services run in this server.
        by_write_id: whether a transaction holds back the cleaning of only those tables that it reads.
        most_failures: consecutive failed compactions after which the initiator gives a location up.
        pool_timeout: seconds after which workers without a pool take entries of all pools.
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

    @property
    def waits_for_locks(self) -> bool:
        """Whether the cleaner waits for readers of the table: those before Hive 4, and from 4.2 on those registered.

        No call lists what is registered, but who is registered also has a lock.
        """
        return not self.is_hive4 or self.by_write_id


def find_switches(metastore: Metastore) -> Switches:
    """Read a server's configuration."""

    def seconds(name: str, default: float) -> float:
        value = seconds_in(_value_of(metastore, name))
        return default if value is None else value

    def number(name: str, default: int) -> int:
        text = _value_of(metastore, name).strip()
        return int(text) if re.fullmatch(r"\d+", text) else default

    def is_on(name: str) -> bool:
        return _value_of(metastore, name).strip().lower() == "true"

    is_hive4 = metastore.features.txn_types
    # Before Hive 4, one setting starts initiator, cleaner and housekeeping.
    initiator = is_on("compactor.initiator.on")
    always = metastore.configured("metastore.task.threads.always", "")
    return Switches(
        is_hive4=is_hive4,
        txn_timeout=txn_timeout(metastore),
        worker_timeout=seconds("compactor.worker.timeout", 86400.0),
        workers=number("compactor.worker.threads", 0),
        workers_elsewhere=is_hive4 and metastore.configured("hive.metastore.runworker.in", "hs2") != "metastore",
        initiator=initiator,
        cleaner=is_on("compactor.cleaner.on") if is_hive4 else initiator,
        keeps_house=(is_on("housekeeping.threads.on") if is_hive4 else initiator) or _HOUSE_KEEPER in always,
        by_write_id=waits_by_write_id(metastore),
        most_failures=number("compactor.initiator.failed.compacts.threshold", 2),
        pool_timeout=seconds("compactor.worker.pool.timeout", 43200.0),
    )


def waits_by_write_id(metastore: Metastore) -> bool:
    """Return whether a transaction holds back the cleaning of only those tables that it reads (default in Hive 4.2)."""
    return _value_of(metastore, "txn.use.minhistorywriteid").strip().lower() == "true"


def txn_timeout(metastore: Metastore) -> float:
    """Return after how many seconds without a heartbeat the server ends a transaction."""
    return seconds_in(_value_of(metastore, "txn.timeout")) or 300.0


def _value_of(metastore: Metastore, name: str) -> str:
    # Servers of Hive 2 return only properties whose names begin with hive.
    return metastore.configured(f"metastore.{name}", "") or metastore.configured(f"hive.{name}", "")


@dataclass(slots=True)
class ServerFacts:
    """Properties of one server; None if the server did not answer."""

    address: Address
    login: str = ""
    encryption: str = ""
    features: Features | None = None
    switches: Switches | None = None
    problems: list[AcidctlError] = field(default_factory=list)


def look_at_servers(metastore: Metastore) -> Iterator[ServerFacts]:
    """Query each server from the settings once; housekeepers may run in only one of them."""
    for server in metastore.each_server():
        facts = ServerFacts(server.settings.addresses[0])
        with closing(server):
            try:
                connection = server.connection()
                facts.login, facts.encryption = connection.login, connection.encryption
                facts.features = server.features
                facts.switches = find_switches(server)
            except AcidctlError as error:
                facts.problems.append(error)
            yield facts
