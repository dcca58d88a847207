"""How a metastore's server is configured: time-outs, and which of Hive's own threads work there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from acidctl.errors import AcidctlError
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.settings import seconds_in

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

    def is_on(name: str) -> bool:
        return _said(metastore, name).lower() == "true"

    def number(name: str, default: int) -> int:
        text = _said(metastore, name)
        return int(text) if re.fullmatch(r"\d+", text) else default

    def seconds(name: str, default: float) -> float:
        found = seconds_in(_said(metastore, name))
        return default if found is None else found

    is_hive4 = metastore.features.txn_types
    initiator = is_on("compactor.initiator.on")
    always = metastore.configured("metastore.task.threads.always", "")
    return Switches(
        is_hive4=is_hive4,
        txn_timeout=txn_timeout(metastore),
        worker_timeout=seconds("compactor.worker.timeout", 86400.0),
        workers=number("compactor.worker.threads", 0),
        workers_elsewhere=is_hive4 and metastore.configured("hive.metastore.runworker.in", "hs2") != "metastore",
        initiator=initiator,
        # Before Hive 4 one switch starts initiator, cleaner and house keeper.
        cleaner=is_on("compactor.cleaner.on") if is_hive4 else initiator,
        keeps_house=(is_on("housekeeping.threads.on") if is_hive4 else initiator) or _HOUSE_KEEPER in always,
        by_write_id=is_on("txn.use.minhistorywriteid"),
        most_failures=number("compactor.initiator.failed.compacts.threshold", 2),
        pool_timeout=seconds("compactor.worker.pool.timeout", 43200.0),
    )


def txn_timeout(metastore: Metastore) -> float:
    """After how many seconds without a heartbeat the server ends a transaction, as it says itself."""
    return seconds_in(_said(metastore, "txn.timeout")) or 300.0


def _said(metastore: Metastore, name: str) -> str:
    """A property by its name of today, or as servers of Hive 2 have it; empty where the server does not tell."""
    found = metastore.configured(f"metastore.{name}", "") or metastore.configured(f"hive.{name}", "")
    return found.strip()


def each_server(metastore: Metastore) -> list[Switches | MetastoreError]:
    """The configuration of every server that is known, or why it does not answer: house keepers may run in one only."""
    found: list[Switches | MetastoreError] = []
    for address in metastore.settings.addresses:
        one = Metastore(replace(metastore.settings, addresses=(address,)), rounds=1)
        try:
            found.append(find_switches(one))
        except MetastoreError as error:
            found.append(error)
        except AcidctlError as error:
            found.append(MetastoreError(error.what, error.why, error.hint))
        finally:
            one.close()
    return found
