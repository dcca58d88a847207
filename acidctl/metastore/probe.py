"""What ``acidctl doctor`` tells about the servers of a metastore: the way in, what each can do, and how it is set."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from acidctl.errors import AcidctlError
from acidctl.metastore.activity import find_locks, find_transactions
from acidctl.metastore.client import Features, Metastore
from acidctl.metastore.discovery import server_addresses
from acidctl.metastore.errors import Unreachable
from acidctl.metastore.housekeeping import server_time
from acidctl.metastore.queue.compactions import WAITING_STATES, find_compactions
from acidctl.metastore.server import Switches, find_switches
from acidctl.metastore.settings import Address, MetastoreSettings

_T = TypeVar("_T")


@dataclass(slots=True)
class ServerFacts:
    """One server; None for what it did not tell.

    Attributes:
        login: who one is there, and what is done to messages, for people.
        encryption: the version of TLS; empty without.
        features: what it can do, found out by asking.
        clock: seconds by which its clock is ahead of ours.
        open_txns, locks: how many there are.
        queue: entries that are not done, by state.
        problems: why something is not known; of a server that cannot be reached there is nothing else.
    """

    address: Address
    login: str = ""
    encryption: str = ""
    features: Features | None = None
    switches: Switches | None = None
    clock: float | None = None
    open_txns: int | None = None
    locks: int | None = None
    queue: Mapping[str, int] | None = None
    problems: list[AcidctlError] = field(default_factory=list)

    @property
    def generation(self) -> int | None:
        """Of which Hive it is: 2, 3 or 4 by what it can do, whatever it says of its version."""
        return int(self.features.hive[-1]) if self.features else None


def look_at_servers(settings: MetastoreSettings) -> Iterator[ServerFacts]:
    """Ask every server that the settings, or ZooKeeper, know; each once.

    Of each the clock is read from a transaction that is opened and ended at once.

    Raises:
        EnvironmentProblem: ZooKeeper is to be asked, and its package is missing.
        MetastoreError: ZooKeeper does not answer, or knows no metastore.
    """
    for address in server_addresses(settings):
        metastore = Metastore(replace(settings, addresses=(address,), quorum=""), rounds=1)
        try:
            yield _look_at(metastore, address)
        finally:
            metastore.close()


def _look_at(metastore: Metastore, address: Address) -> ServerFacts:
    facts = ServerFacts(address)

    def said(ask: Callable[[], _T]) -> _T | None:
        """What it answers; None where it refuses or fails. Gone is gone: then no more is asked."""
        try:
            return ask()
        except Unreachable:
            raise
        except AcidctlError as error:
            facts.problems.append(error)
            return None

    try:
        connection = metastore.connection()
        facts.login, facts.encryption = connection.login, connection.encryption
        facts.features = said(lambda: metastore.features)
        if facts.features is None:
            return facts
        facts.switches = said(lambda: find_switches(metastore))
        facts.clock = said(lambda: _ahead(metastore))
        facts.open_txns = said(lambda: len(find_transactions(metastore).open))
        facts.locks = said(lambda: len({lock.id for lock in find_locks(metastore)}))
        facts.queue = said(lambda: _queue(metastore))
    except AcidctlError as error:
        facts.problems.append(error)
    return facts


def _ahead(metastore: Metastore) -> float:
    """By how much its clock is ahead, as if the begin of the transaction were in the middle of the questions."""
    before = time.time()
    there = server_time(metastore)
    return there - (before + time.time()) / 2


def _queue(metastore: Metastore) -> Mapping[str, int]:
    counts = Counter(one.state for one in find_compactions(metastore))
    return {state: counts[state] for state in WAITING_STATES}
