"""Metastores that are reached by Kerberos, TLS, a password, HTTP: Java's own client says whom they let in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar

import pytest
from support.servers.hdfs_server import ServerUnavailable
from support.servers.kdc import Kdc
from support.servers.metastore_clients import MetastoreClients
from support.servers.metastore_server import MetastoreServer
from support.servers.metastore_ways import Compact, Framed, Http, Kerberos, Password, Tls, Way

pytestmark = [pytest.mark.server, pytest.mark.timeout(600), pytest.mark.in_turn("servers")]


class Stoppable(Protocol):
    def stop(self) -> None: ...


S = TypeVar("S", bound=Stoppable)


class Servers:
    """Those of one version of Hive, each as long as the test that asked for it."""

    def __init__(self, version: int, folder: Path, stack: ExitStack) -> None:
        self.version = version
        self.folder = folder
        self._stack = stack
        self.kdc = self.keep(lambda: Kdc(folder / "krb"))
        # Hive 3's client asks Hive 2 for the databases of a catalog, and it has none of that name.
        self.databases = ["default"] if version > 2 else []
        self.clients = self.keep(lambda: MetastoreClients(max(version, 3), folder / "clients", self.kdc.jvm))

    @cached_property
    def tls(self) -> Tls:
        return Tls(self.folder / "tls")

    @cached_property
    def other_tls(self) -> Tls:
        return Tls(self.folder / "other")

    def keep(self, start: Callable[[], S]) -> S:
        server = start()
        self._stack.callback(server.stop)
        return server

    def keytab(self, user: str) -> dict[str, str]:
        return {"principal": user, "keytab": str(self.kdc.keytab(user))}

    def let_in(self, properties: Mapping[str, str], **login: str) -> dict[str, object]:
        answer = self.clients.connect(properties, **login)
        assert answer.get("databases") == self.databases, answer
        assert answer["transaction"]
        return answer

    def refused(self, properties: Mapping[str, str], **login: str) -> str:
        answer = self.clients.connect(properties, **login)
        assert "databases" not in answer
        return str(answer["error"])


@pytest.fixture(scope="module")
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with ExitStack() as stack:
        try:
            yield Servers(request.param, tmp_path_factory.mktemp("metastores"), stack)
        except ServerUnavailable as error:
            pytest.skip(f"no metastore to test with: {error}")


@pytest.fixture
def metastore(servers: Servers, tmp_path: Path) -> Iterator[Callable[..., MetastoreServer]]:
    """``metastore(way...)``: one that is reached so, for one test."""
    with ExitStack() as stack:

        def start(*ways: Way) -> MetastoreServer:
            try:
                server = MetastoreServer(servers.version, tmp_path, *ways, standalone=True)
            except ServerUnavailable as error:
                pytest.skip(f"no metastore to test with: {error}")
            stack.callback(server.stop)
            return server

        yield start


Start = Callable[..., MetastoreServer]
NAMES = {2: "hive-2.3", 3: "hive-3.1", 4: "hive-4.0", 41: "hive-4.1"}


def of_hive(*versions: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("servers", versions, ids=[NAMES[version] for version in versions], indirect=True)


def without(properties: Mapping[str, str], words: str) -> dict[str, str]:
    return {name: value for name, value in properties.items() if words not in name}


@of_hive(2, 3, 4, 41)
def test_kerberos_lets_in_who_has_a_keytab_or_a_token_of_it(servers: Servers, metastore: Start) -> None:
    server = metastore(Kerberos(servers.kdc, "privacy"))
    token = servers.let_in(server.client, **servers.keytab("alice"), renewer="alice")["token"]
    assert servers.let_in(server.client, token=str(token))["user"] == "nobody"
    bad = str(token)[:60] + ("B" if str(token)[60] == "A" else "A") + str(token)[61:]
    assert "DIGEST-MD5" in servers.refused(server.client, token=bad)
    assert "GSS initiate failed" in servers.refused(server.client)
    servers.refused({"metastore.thrift.uris": server.address})
    weaker = server.client | {"hadoop.rpc.protection": "authentication"}
    assert "No common protection layer" in servers.refused(weaker, **servers.keytab("alice"))


@of_hive(3, 4)
def test_a_client_of_kerberos_chooses_its_protection_and_needs_its_newest_keys(
    servers: Servers, metastore: Start
) -> None:
    server = metastore(Kerberos(servers.kdc, "authentication,integrity,privacy"))
    for protection in ("authentication", "integrity", "privacy"):
        servers.let_in(server.client | {"hadoop.rpc.protection": protection}, **servers.keytab("carol"))
    servers.kdc.add_keys(servers.folder / "new.keytab", "carol")  # which makes the old keytab void
    assert "Checksum failed" in servers.refused(server.client, **servers.keytab("carol"))
    servers.let_in(server.client, principal="carol", keytab=str(servers.folder / "new.keytab"))


@of_hive(3, 4)
def test_tls_lets_in_who_knows_the_ca(servers: Servers, metastore: Start) -> None:
    server = metastore(servers.tls)
    servers.let_in(server.client)
    assert "closed" in servers.refused(server.client | servers.other_tls.client())
    assert "truststore" in servers.refused(without(server.client, "truststore"))
    servers.refused({"metastore.thrift.uris": server.address})


@of_hive(4)
def test_a_password_lets_in_whom_the_configuration_names(servers: Servers, metastore: Start) -> None:
    server = metastore(servers.tls, Password("alice", "secret"))
    servers.let_in(server.client)
    for wrong in ({"alice": "other"}, {"metastore.client.plain.username": "bob", "bob": "secret"}):
        assert "Error validating the login" in servers.refused(server.client | wrong)
    assert "closed" in servers.refused(without(server.client, "auth.mode"))


@of_hive(4)
@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_http_lets_in_who_speaks_it(servers: Servers, metastore: Start, secure: bool) -> None:
    server = metastore(*([servers.tls] if secure else []), Http())
    servers.let_in(server.client)
    servers.refused({"metastore.thrift.uris": server.address.replace("http", "thrift", 1)})
    if secure:
        assert "PKIX path" in servers.refused(server.client | servers.other_tls.client())


@of_hive(3, 4)
def test_frames_and_the_compact_protocol_are_those_of_the_client(servers: Servers, metastore: Start) -> None:
    server = metastore(Framed(), Compact())
    servers.let_in(server.client)
    for name in ("framed", "compact"):
        servers.refused(without(server.client, name))
