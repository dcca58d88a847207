"""Kerberos, for real: tickets, keytabs, expired ones, and delegation tokens for those who have none."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.files.token_files import NEW_FORMAT, OLD_FORMAT, with_service
from support.servers.hdfs_server import ServerUnavailable
from support.servers.jvm import write_site
from support.servers.kdc import REALM
from support.servers.kerberos_packages import python_packages
from support.servers.kerberos_server import KerberosHdfsServer

from acidctl.base.errors import AccessError, AcidctlError, StorageError
from acidctl.hadoop.tokens import Token
from acidctl.storage.hdfs import native
from acidctl.storage.hdfs.cluster import rpc_address, web_token
from acidctl.storage.hdfs.filesystem import delegated
from acidctl.storage.port import FileSystem, FileSystemSpec
from acidctl.storage.registry import open_file_system, open_location

WAYS = ["webhdfs", "hdfs"]
LOGIN = {"kerberos": "true", "retries": "0"}


def test_only_webhdfs_with_kerberos_needs_a_token() -> None:
    for spec in (
        FileSystemSpec("file"),
        FileSystemSpec("webhdfs", (("user", "x"),), "nn:9870"),
        FileSystemSpec("webhdfs", (("kerberos", "true"), ("token", "abc")), "nn:9870"),
        FileSystemSpec("hdfs", (("kerberos", "true"),), "nn:8020"),
    ):
        assert delegated(spec) == spec


def test_a_token_of_the_job_is_found_by_its_address(tmp_path: Path) -> None:
    environ = {"HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "tokens")}
    assert rpc_address("localhost:42659", {}) is None
    for data in (OLD_FORMAT, NEW_FORMAT):
        (tmp_path / "tokens").write_bytes(data)
        assert rpc_address("localhost:42659", environ) == "127.0.0.1:42659"
        assert rpc_address("127.0.0.1:42659", environ) == "127.0.0.1:42659"
        assert rpc_address("localhost:8020", environ) is None
        assert rpc_address("no.such.host.invalid:42659", environ) is None
    (tmp_path / "tokens").write_bytes(with_service("nn.example:8020"))  # where services are names
    assert rpc_address("NN.example:8020", environ) == "nn.example:8020"
    (tmp_path / "tokens").write_bytes(with_service("ha-hdfs:acid"))
    assert rpc_address("acid", environ) == "acid"
    assert rpc_address("other", environ) is None


def test_a_token_of_the_job_opens_webhdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "tokens")}
    one, both, tls = (
        FileSystemSpec(protocol, (("kerberos", "true"),), authority)
        for protocol, authority in (
            ("webhdfs", "localhost:9870"),
            ("webhdfs", "nn1:9870,nn2:9870"),
            ("swebhdfs", "localhost:9870"),
        )
    )
    assert web_token(one, {}) == ""
    (tmp_path / "tokens").write_bytes(with_service("127.0.0.1:9870", "WEBHDFS delegation"))
    assert Token.of_text(web_token(one, environ)).kind == "WEBHDFS delegation"
    assert web_token(both, environ) == web_token(tls, environ) == ""
    (tmp_path / "tokens").write_bytes(with_service("127.0.0.1:9870"))  # of RPC, whatever listens there
    assert web_token(one, environ) == ""
    (tmp_path / "tokens").write_bytes(with_service("ha-hdfs:acid"))
    assert web_token(both, environ) == ""
    names = {"dfs.ha.namenodes.acid": "a,b"}
    names |= {f"dfs.namenode.http-address.acid.{name}": f"nn{at}:9870" for at, name in enumerate("ab", 1)}
    write_site(tmp_path / "hdfs-site.xml", names)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert Token.of_text(web_token(both, environ)).service == "ha-hdfs:acid"
    assert web_token(one, environ) == ""
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "tokens"))
    sent = dict(delegated(both).options)
    assert Token.of_text(sent["token"]).service == "ha-hdfs:acid"
    assert "kerberos" not in sent


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberosHdfsServer]:
    pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
    with pytest.MonkeyPatch.context() as patch:
        try:
            if packages := python_packages():
                patch.setattr(sys, "path", [*sys.path, str(packages)])
                patch.setenv("PYTHONPATH", str(packages), prepend=os.pathsep)
            server = KerberosHdfsServer(tmp_path_factory.mktemp("kerberos"))
        except ServerUnavailable as error:
            pytest.skip(f"no Kerberos to test with: {error}")
        yield server
        server.stop()


@pytest.mark.server
class TestRealKerberos:
    @pytest.fixture(autouse=True)
    def _fresh(self, realm: KerberosHdfsServer, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in realm.environment.items():
            monkeypatch.setenv(name, value)
        for name in ("KRB5_CLIENT_KTNAME", "HADOOP_CONF_DIR", "HADOOP_USER_NAME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(native, "_users", set())
        delegated.cache_clear()
        realm.kdestroy()

    def open(self, realm: KerberosHdfsServer, way: str, **options: str) -> FileSystem:
        authority = realm.rpc_authority if way == "hdfs" else realm.authority
        return open_location(f"{way}://{authority}/", LOGIN | options)[0]

    @pytest.mark.parametrize("way", WAYS)
    def test_ticket_opens_the_store(self, realm: KerberosHdfsServer, way: str) -> None:
        realm.kinit("root")
        fs = self.open(realm, way)
        fs.make_dirs(f"/{way}/p=a%3Ab")
        fs.write_bytes(f"/{way}/p=a%3Ab/f", b"0123")
        fs.rename(f"/{way}/p=a%3Ab/f", f"/{way}/p=a%3Ab/g")
        assert fs.read_bytes(f"/{way}/p=a%3Ab/g", 2) == b"23"
        realm.kdestroy()
        realm.kinit("alice")
        with pytest.raises(AccessError, match="permission denied"):
            self.open(realm, way).write_bytes(f"/{way}/h", b"")
        assert [entry.path for entry in self.open(realm, way).list_tree(f"/{way}").entries] == ["p=a%3Ab", "p=a%3Ab/g"]

    @pytest.mark.parametrize("way", WAYS)
    def test_missing_ticket_is_told_with_kinit(self, realm: KerberosHdfsServer, way: str) -> None:
        with pytest.raises(AccessError, match="there is no Kerberos ticket") as raised:
            self.open(realm, way).list_dir("/")
        assert "kinit" in raised.value.hint

    @pytest.mark.parametrize("way", WAYS)
    def test_expired_ticket_is_told(self, realm: KerberosHdfsServer, way: str) -> None:
        realm.kinit("root", "-l", "1s")
        end = time.monotonic() + 20
        while time.monotonic() < end:  # servers forgive some seconds
            try:
                self.open(realm, way).list_dir("/")
            except AccessError as error:
                assert "the Kerberos ticket has expired" in error.why
                assert "kinit" in error.hint
                return
            time.sleep(0.2)
        raise AssertionError("the ticket does not expire")

    @pytest.mark.parametrize("way", WAYS)
    def test_keytab_opens_the_store(self, realm: KerberosHdfsServer, way: str) -> None:
        options = {"keytab": f"{realm.folder}/alice.keytab", "principal": f"alice@{REALM}"}
        assert self.open(realm, way, **options).stat("/").is_dir
        realm.kdestroy()
        with pytest.raises(AccessError) as raised:
            self.open(realm, way, **(options | {"keytab": "/no/such"})).stat("/")
        assert "kinit" in raised.value.hint

    def test_secured_store_without_the_option_is_told(self, realm: KerberosHdfsServer) -> None:
        with pytest.raises(AccessError) as raised:
            open_location(f"webhdfs://{realm.authority}/")[0].list_dir("/")
        assert "kerberos=true" in raised.value.hint
        with pytest.raises(StorageError) as ended:
            open_location(f"hdfs://{realm.rpc_authority}/", {"retries": "0"})[0].list_dir("/")
        assert "kerberos=true" in ended.value.hint

    def test_the_configuration_says_it(self, realm: KerberosHdfsServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(realm.folder.parent / "conf"))
        realm.kinit("root")
        for way, authority in (("webhdfs", realm.authority), ("hdfs", realm.rpc_authority)):
            assert open_location(f"{way}://{authority}/")[0].stat("/").is_dir

    def test_delegation_token_opens_the_store_elsewhere(self, realm: KerberosHdfsServer) -> None:
        realm.kinit("root")
        spec = delegated(self.open(realm, "webhdfs").spec)
        assert delegated(self.open(realm, "webhdfs").spec) is spec
        realm.kdestroy()
        fs = open_file_system(spec)
        fs.make_dirs("/token/d")
        fs.write_bytes("/token/d/f", b"0123")
        fs.rename("/token/d", "/token/e")
        assert fs.read_bytes("/token/e/f", 1, 2) == b"12"
        fs.remove_tree("/token")
        token = dict(spec.options)["token"]
        bad = token[:40] + ("B" if token[40] == "A" else "A") + token[41:]
        with pytest.raises(AcidctlError, match="token"):
            open_location(f"webhdfs://{realm.authority}/", {"token": bad})[0].list_dir("/")
        delegated.cache_clear()
        with pytest.raises(AccessError, match="no Kerberos ticket"):
            delegated(self.open(realm, "webhdfs").spec)

    def test_rpc_takes_hadoops_token_file(
        self, realm: KerberosHdfsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As Spark gives it to executors on YARN."""
        realm.kinit("root")
        realm.tool("org.apache.hadoop.hdfs.tools.DelegationTokenFetcher", "--renewer", "root", str(tmp_path / "tokens"))
        realm.kdestroy()
        monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "tokens"))
        keytab = {"keytab": "/no/such", "principal": f"root@{REALM}"}  # of the machine where it was planned
        assert open_location(f"hdfs://{realm.rpc_authority}/", LOGIN | keytab)[0].stat("/").is_dir
        (tmp_path / "tokens").write_bytes(OLD_FORMAT)  # for another one
        with pytest.raises(AccessError) as raised:
            open_location(f"hdfs://{realm.rpc_authority}/", LOGIN)[0].stat("/")
        assert "spark.kerberos.access.hadoopFileSystems" in raised.value.hint

    @pytest.mark.spark
    def test_sparks_executors_need_no_ticket(self, realm: KerberosHdfsServer) -> None:
        realm.kinit("root")
        table = f"webhdfs://{realm.authority}/spark/orders"
        login = ("--set", "storage.kerberos=true")
        no_ticket = ("--conf", "spark.executorEnv.KRB5CCNAME=FILE:/no/such/cache")
        for arguments in (
            ("demo", *login, table),
            ("compact", "--assume-committed=0s", "--major", "--master", "local[2]", *no_ticket, *login, table),
        ):
            ended = subprocess.run(
                [sys.executable, "-m", "acidctl", *arguments], capture_output=True, text=True, check=False, timeout=200
            )
            assert ended.returncode == 0, ended.stderr
        names = [entry.path for entry in self.open(realm, "webhdfs").list_dir("/spark/orders").entries]
        assert "base_0000003" in names
