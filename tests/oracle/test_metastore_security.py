"""Metastores that are reached by Kerberos, TLS, a password, HTTP: Java's own client says whom they let in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, TypeVar

import pytest
from support.servers.hdfs_server import ServerUnavailable
from support.servers.kdc import Kdc
from support.servers.metastore_clients import MetastoreClients
from support.servers.metastore_server import MetastoreServer
from support.servers.metastore_ways import Compact, Framed, Http, Kerberos, Password, Tls, Way

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]


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
        self.tls, self.other_tls = Tls(folder / "tls"), Tls(folder / "other")
        self.clients = self.keep(lambda: MetastoreClients(version, folder / "clients", self.kdc.jvm))

    def keep(self, start: Callable[[], S]) -> S:
        server = start()
        self._stack.callback(server.stop)
        return server

    def keytab(self, user: str) -> dict[str, str]:
        return {"principal": user, "keytab": str(self.kdc.keytab(user))}

    def let_in(self, properties: Mapping[str, str], **login: str) -> dict[str, object]:
        answer = self.clients.connect(properties, **login)
        assert answer.get("databases") == ["default"], answer
        assert answer["transaction"]
        return answer

    def refused(self, properties: Mapping[str, str], **login: str) -> str:
        answer = self.clients.connect(properties, **login)
        assert "databases" not in answer
        return str(answer["error"])


@pytest.fixture(scope="module", params=[3, 4], ids=["hive-3.1", "hive-4.0"])
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
            server = MetastoreServer(servers.version, tmp_path, *ways, standalone=True)
            stack.callback(server.stop)
            return server

        yield start


Start = Callable[..., MetastoreServer]
only_hive_4 = pytest.mark.parametrize("servers", [4], ids=["hive-4.0"], indirect=True)


def without(properties: Mapping[str, str], words: str) -> dict[str, str]:
    return {name: value for name, value in properties.items() if words not in name}


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


def test_a_client_of_kerberos_chooses_its_protection_and_needs_its_newest_keys(
    servers: Servers, metastore: Start
) -> None:
    server = metastore(Kerberos(servers.kdc, "authentication,integrity,privacy"))
    for protection in ("authentication", "integrity", "privacy"):
        servers.let_in(server.client | {"hadoop.rpc.protection": protection}, **servers.keytab("carol"))
    servers.kdc.add_keys(servers.folder / "new.keytab", "carol")  # which makes the old keytab void
    assert "Checksum failed" in servers.refused(server.client, **servers.keytab("carol"))
    servers.let_in(server.client, principal="carol", keytab=str(servers.folder / "new.keytab"))


def test_tls_lets_in_who_knows_the_ca(servers: Servers, metastore: Start) -> None:
    server = metastore(servers.tls)
    servers.let_in(server.client)
    assert "closed" in servers.refused(server.client | servers.other_tls.client())
    assert "truststore" in servers.refused(without(server.client, "truststore"))
    servers.refused({"metastore.thrift.uris": server.address})


@only_hive_4
def test_a_password_lets_in_whom_the_configuration_names(servers: Servers, metastore: Start) -> None:
    server = metastore(servers.tls, Password("alice", "secret"))
    servers.let_in(server.client)
    for wrong in ({"alice": "other"}, {"metastore.client.plain.username": "bob", "bob": "secret"}):
        assert "Error validating the login" in servers.refused(server.client | wrong)
    assert "closed" in servers.refused(without(server.client, "auth.mode"))


@only_hive_4
@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_http_lets_in_who_speaks_it(servers: Servers, metastore: Start, secure: bool) -> None:
    server = metastore(*([servers.tls] if secure else []), Http())
    servers.let_in(server.client)
    servers.refused({"metastore.thrift.uris": server.address.replace("http", "thrift", 1)})
    if secure:
        assert "PKIX path" in servers.refused(server.client | servers.other_tls.client())


def test_frames_and_the_compact_protocol_are_those_of_the_client(servers: Servers, metastore: Start) -> None:
    server = metastore(Framed(), Compact())
    servers.let_in(server.client)
    for name in ("framed", "compact"):
        servers.refused(without(server.client, name))
