"""A real HDFS that wants Kerberos, with a key distribution centre of its own, on loopback.

The server is called `localhost`: that is the host in its only HTTP principal.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from support.servers.hdfs_server import HdfsServer, ServerUnavailable, free_ports
from support.servers.kerberos_packages import Kerberos

REALM = "TEST.LOCAL"
USERS = ("root", "alice")


class KerberosHdfsServer(HdfsServer):
    """With a keytab for each of the users.

    Attributes:
        folder: has `krb5.conf` and `USER.keytab`.
        environment: what a client's process needs; its ticket cache is empty.
    """

    def __init__(self, directory: Path, timeout: float = 90) -> None:
        self._kerberos = Kerberos()
        names = ("krb5kdc", "kadmin.local", "kdb5_util", "kinit", "kdestroy")
        self._kdc, self._kadmin, self._kdb, self._kinit, self._kdestroy = map(self._kerberos.program, names)
        self.folder = directory / "krb"
        self.environment = {"KRB5_CONFIG": f"{self.folder}/krb5.conf", "KRB5CCNAME": f"FILE:{self.folder}/cache"}
        super().__init__(directory, timeout)

    def kinit(self, user: str, *options: str) -> None:
        """Get a ticket."""
        keytab = str(self.folder / f"{user}.keytab")
        subprocess.run([self._kinit, *options, "-k", "-t", keytab, user], env=self._client(), check=True)

    def kdestroy(self) -> None:
        """Throw the ticket away."""
        subprocess.run([self._kdestroy, "-q"], env=self._client(), check=False, capture_output=True)

    def _client(self) -> dict[str, str]:
        return {**os.environ, **self._kerberos.environment, **self.environment}

    def _configure(self, ports: list[int]) -> None:
        self._make_realm(free_ports(1)[0])
        self._jvm = [f"-Djava.security.krb5.conf={self.folder}/krb5.conf"]
        super()._configure(ports)
        self.authority = self.authority.replace("127.0.0.1", "localhost")
        self.rpc_authority = self.rpc_authority.replace("127.0.0.1", "localhost")

    def _write_conf(
        self, conf: str, default_fs: str, ports: list[int], more: dict[str, str], core: dict[str, str] | None = None
    ) -> None:
        keytab = f"{self.folder}/server.keytab"
        secure = {
            "dfs.block.access.token.enable": "true",
            "ignore.secure.ports.for.testing": "true",
            "dfs.namenode.kerberos.principal": f"hdfs/localhost@{REALM}",
            "dfs.namenode.keytab.file": keytab,
            "dfs.datanode.kerberos.principal": f"hdfs/localhost@{REALM}",
            "dfs.datanode.keytab.file": keytab,
            "dfs.web.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
            "dfs.web.authentication.kerberos.keytab": keytab,
            "dfs.permissions.superusergroup": "root",
        }
        core = {"hadoop.security.authentication": "kerberos", "hadoop.security.authorization": "true"}
        super()._write_conf(conf, default_fs, ports, {**more, **secure}, core)

    def _start(self, timeout: float) -> None:
        self._start_process("kdc", [self._kdc, "-n"], self._kdc_environment())
        super()._start(timeout)

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), **self.environment}

    def _kdc_environment(self) -> dict[str, str]:
        return {**self._client(), "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf")}

    def _make_realm(self, port: int) -> None:
        self.folder.mkdir(parents=True)
        modules = self._kerberos.modules
        (self.folder / "krb5.conf").write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
            + (f"[dbmodules]\n db_module_dir = {modules}\n" if modules else "")
        )
        (self.folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n"
            f"[realms]\n {REALM} = {{\n"
            f"  database_name = {self.folder}/principal\n  key_stash_file = {self.folder}/stash\n"
            "  supported_enctypes = aes256-cts:normal aes128-cts:normal\n }\n"
        )
        self._run(self._kdb, "create", "-s", "-r", REALM, "-P", os.urandom(16).hex())
        services = [(name, "server") for name in ("hdfs/localhost", "HTTP/localhost")]
        for principal, keytab in [*services, *((user, user) for user in USERS)]:
            self._run(self._kadmin, "-q", f"addprinc -randkey {principal}")
            self._run(self._kadmin, "-q", f"ktadd -k {self.folder}/{keytab}.keytab {principal}")

    def _run(self, *command: str) -> None:
        ended = subprocess.run(
            command,
            env=self._kdc_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise ServerUnavailable(f"{command[0]}: {ended.stderr[-300:]}")
