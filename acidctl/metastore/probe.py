"""Which servers of a metastore answer, and how Hive's own services are set there, for ``acidctl doctor``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from acidctl.errors import AcidctlError
from acidctl.metastore.client import Features, Metastore
from acidctl.metastore.discovery import server_addresses
from acidctl.metastore.server import Switches, find_switches
from acidctl.metastore.settings import Address, MetastoreSettings


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
    """Ask every server that the settings, or ZooKeeper, know; each once.

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
    try:
        connection = metastore.connection()
        facts.login, facts.encryption = connection.login, connection.encryption
        facts.features = metastore.features
        facts.switches = find_switches(metastore)
    except AcidctlError as error:
        facts.problems.append(error)
    return facts
