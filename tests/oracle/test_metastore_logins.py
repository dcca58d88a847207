"""acidctl logs in to real metastores: Kerberos, tokens, passwords, TLS, HTTP, and where a server is gone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar

import pytest
from support.servers.hdfs_server import ServerUnavailable
from support.servers.kdc import Kdc
from support.servers.kerberos_packages import python_packages
from support.servers.metastore_server import MetastoreServer
from support.servers.metastore_ways import Compact, Framed, Http, Kerberos, Password, Tls, Way

from acidctl.base.errors import AccessError, AcidctlError, RefusedError, UsageProblem
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import MetastoreError, Unreachable
from acidctl.metastore.settings import find_settings

pytestmark = [pytest.mark.server, pytest.mark.timeout(600), pytest.mark.in_turn("servers")]


class Stoppable(Protocol):
    def stop(self) -> None: ...


S = TypeVar("S", bound=Stoppable)
PROTECTIONS = ("authentication", "integrity", "privacy")


class Servers:
    """Those of one version of Hive, which the tests of a module share."""

    def __init__(self, version: int, folder: Path, stack: ExitStack) -> None:
        self.version = version
        self._folder = folder
        self._stack = stack

    @cached_property
    def kdc(self) -> Kdc:
        return self.keep(lambda: Kdc(self._folder / "krb"))

    @cached_property
    def tls(self) -> Tls:
        return Tls(self._folder / "tls")

    @cached_property
    def other_tls(self) -> Tls:
        return Tls(self._folder / "other")

    @cached_property
    def kerberos(self) -> MetastoreServer:
        """With every protection."""
        return self.metastore(Kerberos(self.kdc, ",".join(PROTECTIONS)))

    def metastore(self, *ways: Way) -> MetastoreServer:
        names = "-".join(type(way).__name__ for way in ways)
        folder = self._folder / f"{names}-{len(list(self._folder.iterdir()))}"
        return self.keep(lambda: MetastoreServer(self.version, folder, *ways, standalone=True))

    def keep(self, start: Callable[[], S]) -> S:
        try:
            server = start()
        except ServerUnavailable as error:
            pytest.skip(f"no metastore to test with: {error}")
        self._stack.callback(server.stop)
        return server


@pytest.fixture(scope="module", params=[3, 4], ids=["hive-3.1", "hive-4.0"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(request.param, tmp_path_factory.mktemp("logins"), stack)


@pytest.fixture
def realm(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kdc]:
    """The key distribution centre, known to this process, which has no ticket."""
    try:
        packages = python_packages()
    except ServerUnavailable as error:
        pytest.skip(f"no Kerberos to test with: {error}")
    if packages:
        monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    for name, value in servers.kdc.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("KRB5_CLIENT_KTNAME", raising=False)
    servers.kdc.kdestroy()
    yield servers.kdc
    servers.kdc.kdestroy()


def client(uris: str, environ: dict[str, str] | None = None, **given: str) -> Metastore:
    named = {name.replace("_", "-"): value for name, value in given.items()}
    settings = find_settings({"uris": uris, "connect-timeout": "20", **named}, environ or {})
    assert settings
    return Metastore(settings, rounds=1)


def let_in(uris: str, environ: dict[str, str] | None = None, **given: str) -> Metastore:
    """One that asked, and was given an answer, and could send a long question."""
    found = client(uris, environ, **given)
    assert found.call(interface.GET_ALL_DATABASES) == ("default",)
    assert found.configured("x" * 70_000, "not there") == "not there"
    return found


KERBEROS = {"auth": "kerberos", "principal": "hive/_HOST@TEST.LOCAL"}


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_a_ticket_lets_one_in_with_every_protection(servers: Servers, realm: Kdc, protection: str) -> None:
    realm.kinit("alice")
    found = let_in(servers.kerberos.address, **KERBEROS, protection=protection)
    assert found.connection().login == f"as alice@TEST.LOCAL to hive/localhost@TEST.LOCAL, {protection}"


def test_a_keytab_lets_one_in_and_the_users_ticket_stays(servers: Servers, realm: Kdc) -> None:
    address = servers.kerberos.address
    found = let_in(address, **KERBEROS, keytab=str(realm.keytab("bob")), client_principal="bob@TEST.LOCAL")
    assert found.connection().login.startswith("as bob@TEST.LOCAL")
    with pytest.raises(AccessError, match=r"No Kerberos credentials|ticket|credential"):
        let_in(address, **KERBEROS)
    with pytest.raises(AccessError) as refused:
        let_in(address, **KERBEROS, keytab="/no/such/keytab", client_principal="carol@TEST.LOCAL")
    assert "kinit" in refused.value.hint


@pytest.mark.parametrize("principal", ["hive/other.host@TEST.LOCAL", "nobody/_HOST@TEST.LOCAL"])
def test_a_principal_that_is_not_the_servers_is_refused(servers: Servers, realm: Kdc, principal: str) -> None:
    realm.kinit("alice")
    with pytest.raises(AccessError, match=principal.partition("/")[0]):
        let_in(servers.kerberos.address, auth="kerberos", principal=principal)


@pytest.mark.parametrize("offered", PROTECTIONS)
def test_less_protection_than_is_wanted_is_refused_and_more_is_taken(
    servers: Servers, realm: Kdc, offered: str
) -> None:
    realm.kinit("alice")
    server = servers.metastore(Kerberos(realm, offered))
    token = ""
    for wanted in PROTECTIONS:
        if PROTECTIONS.index(wanted) > PROTECTIONS.index(offered):
            with pytest.raises(RefusedError, match="protects messages less"):
                let_in(server.address, **KERBEROS, protection=wanted)
            continue
        found = let_in(server.address, **KERBEROS, protection=wanted)
        assert found.connection().login.endswith(offered)
        token = found.call(interface.GET_DELEGATION_TOKEN, "alice", "alice")
    realm.kdestroy()
    found = let_in(server.address, token=token)
    assert found.connection().login == f"with a delegation token, {offered}"


def test_a_delegation_token_lets_one_in(servers: Servers, realm: Kdc, tmp_path: Path) -> None:
    realm.kinit("alice")
    address = servers.kerberos.address
    token = let_in(address, **KERBEROS).call(interface.GET_DELEGATION_TOKEN, "alice", "alice")
    realm.kdestroy()
    for protection in PROTECTIONS:
        found = let_in(address, token=token, protection=protection)
        assert found.connection().login == f"with a delegation token, {protection}"
        assert len(found.call(interface.GET_TABLE_META, "*", "*", ())) == 0
    (tmp_path / "tokens").write_bytes(b"HDTS\0\1\1x" + _bytes_of(token))
    environ = {"HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "tokens")}
    let_in(address, environ, sasl="true", principal=KERBEROS["principal"])
    changed = token[:60] + ("B" if token[60] == "A" else "A") + token[61:]
    with pytest.raises(AccessError) as refused:
        let_in(address, token=changed)
    assert "DIGEST-MD5" in refused.value.why
    assert changed not in str(refused.value) + repr(client(address, token=changed).settings)
    with pytest.raises(UsageProblem, match="cannot be read"):
        let_in(address, token=token[:-5])


def _bytes_of(token: str) -> bytes:
    from base64 import urlsafe_b64decode

    return urlsafe_b64decode(token + "=" * (-len(token) % 4))


def test_a_login_that_is_missing_or_that_the_server_does_not_have_is_told(servers: Servers, realm: Kdc) -> None:
    with pytest.raises(MetastoreError) as wants:
        let_in(servers.kerberos.address)
    assert "auth=kerberos" in wants.value.hint or "Kerberos" in wants.value.hint
    realm.kinit("alice")
    plain = servers.metastore()
    with pytest.raises(AcidctlError):
        let_in(plain.address.replace("127.0.0.1", "localhost"), **KERBEROS)


def test_tls_is_checked(servers: Servers) -> None:
    server = servers.metastore(servers.tls)
    ca = str(servers.tls.ca)
    found = let_in(server.address, ca=ca)
    assert found.connection().encryption.startswith("TLSv1")
    for wrong in ({"ca": str(servers.other_tls.ca)}, {"tls": "true"}):
        with pytest.raises(AccessError, match="not to be trusted"):
            let_in(server.address, **wrong)
    with pytest.raises(MetastoreError, match=r"speaks TLS|was lost"):
        let_in(server.address)
    with pytest.raises(Unreachable, match=r"does not speak TLS|does not answer"):
        let_in(servers.metastore().address, ca=ca, connect_timeout="3")


@pytest.mark.parametrize("ways", [[Framed()], [Compact()], [Framed(), Compact()]], ids=["framed", "compact", "both"])
def test_frames_and_the_compact_protocol(servers: Servers, ways: list[Way]) -> None:
    server = servers.metastore(*ways)
    let_in(server.address, framed=str(Framed in map(type, ways)), compact=str(Compact in map(type, ways)))
    with pytest.raises(MetastoreError):
        let_in(server.address, timeout="5", connect_timeout="5")


def test_kerberos_goes_with_tls_and_the_compact_protocol(servers: Servers, realm: Kdc) -> None:
    realm.kinit("alice")
    server = servers.metastore(servers.tls, Kerberos(realm, "privacy"), Compact())
    let_in(server.address, **KERBEROS, ca=str(servers.tls.ca), compact="true", protection="privacy")


def test_a_dead_server_is_passed_over_and_a_restarted_one_is_found_again(servers: Servers, tmp_path: Path) -> None:
    server = servers.metastore()
    found = let_in(f"thrift://127.0.0.1:1,{server.address}", selection="SEQUENTIAL")
    assert found.connection().address.url == server.address
    second = servers.metastore()
    found = let_in(f"{server.address},{second.address}", selection="SEQUENTIAL")
    server.stop()
    assert found.call(interface.GET_ALL_DATABASES) == ("default",)
    assert found.connection().address.url == second.address


class TestHive4:
    @pytest.fixture(autouse=True)
    def _only(self, servers: Servers) -> None:
        if servers.version < 4:
            pytest.skip("Hive 4 has it")

    def test_a_password_over_tls(self, servers: Servers) -> None:
        server = servers.metastore(servers.tls, Password("alice", "secret-word"))
        ca = str(servers.tls.ca)
        found = let_in(server.address, ca=ca, auth="plain", user="alice", password="secret-word")
        assert found.connection().login == "as alice with a password"
        for wrong in ({"user": "alice", "password": "other-word"}, {"user": "bob", "password": "secret-word"}):
            with pytest.raises(AccessError, match="refuses the login") as refused:
                let_in(server.address, ca=ca, auth="plain", **wrong)
            assert wrong["password"] not in str(refused.value)

    @pytest.mark.in_turn("none")  # Hive 3 has no passwords
    def test_a_password_without_tls_only_where_that_is_said(self, servers: Servers) -> None:
        server = servers.metastore(Password("alice", "secret-word"))
        login = {"user": "alice", "password": "secret-word"}
        with pytest.raises(RefusedError, match="has no TLS"):
            let_in(server.address, **login)
        let_in(server.address, **login, plain_without_tls="true")

    @pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
    def test_http(self, servers: Servers, secure: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        server = servers.metastore(*([servers.tls] if secure else []), Http())
        ca = {"ca": str(servers.tls.ca)} if secure else {}
        uri = server.address.replace("http:", "https:") if secure else server.address
        found = let_in(uri, user="alice", **ca)
        assert bool(found.connection().encryption) == secure
        (txn,) = found.call(interface.OPEN_TXNS, interface.OpenTxnRequest(1, "alice", "here")).txn_ids
        found.call(interface.ABORT_TXN, interface.AbortTxnRequest(txn))
        with pytest.raises(MetastoreError, match="does not answer as a metastore"):
            let_in(f"{uri}/other", **ca)
        with pytest.raises(MetastoreError):
            let_in(server.address.replace("http", "thrift", 1), connect_timeout="5")
        if secure:
            with pytest.raises(AccessError, match="not to be trusted"):
                let_in(uri, ca=str(servers.other_tls.ca))
