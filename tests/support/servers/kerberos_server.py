"""A real HDFS that wants Kerberos, with a key distribution centre of its own, on loopback.

The server is called `localhost`: that is the host in its only HTTP principal.
"""

from __future__ import annotations

from pathlib import Path

from support.servers.hdfs_server import HdfsServer
from support.servers.jvm import write_site
from support.servers.kdc import REALM, Kdc

USERS = ("root", "alice")

_KERBEROS = {"hadoop.security.authentication": "kerberos", "hadoop.security.authorization": "true"}
_PRINCIPALS = {f"dfs.{node}.kerberos.principal": f"hdfs/localhost@{REALM}" for node in ("namenode", "datanode")}


class KerberosHdfsServer(HdfsServer):
    """With a keytab for each of the users.

    Args:
        directory, timeout, hadoop: as for :class:`HdfsServer`.
        kdc: what knows its principals; without, it has one of its own.

    Attributes:
        kdc: as given, or its own.
        folder: has `krb5.conf` and `USER.keytab`, when the centre is its own.
        environment: what a client's process needs; its ticket cache is empty.
    """

    def __init__(self, directory: Path, timeout: float = 90, hadoop: int = 2, kdc: Kdc | None = None) -> None:
        self.folder = directory / "krb"
        self._own = kdc is None
        self.kdc = kdc or Kdc(self.folder)
        try:
            self.environment = self.kdc.environment
            self._keytab = directory / "server.keytab"
            directory.mkdir(parents=True, exist_ok=True)
            self.kdc.add_keys(self._keytab, "hdfs/localhost", "HTTP/localhost")
            for user in USERS:
                self.kdc.keytab(user)
            super().__init__(directory, timeout, hadoop)
        except BaseException:
            if self._own:
                self.kdc.stop()
            raise

    def kinit(self, user: str, *options: str) -> None:
        """Get a ticket."""
        self.kdc.kinit(user, *options)

    def kdestroy(self) -> None:
        """Throw the ticket away."""
        self.kdc.kdestroy()

    def stop(self) -> None:
        """End it, and its own centre."""
        super().stop()
        if self._own:
            self.kdc.stop()

    def write_client_conf(self, folder: Path, more: dict[str, str]) -> None:
        """What a client, or another server, must know of it: `core-site.xml`, with `more`, and `hdfs-site.xml`."""
        write_site(folder / "core-site.xml", {"fs.defaultFS": f"hdfs://{self.rpc_authority}", **_KERBEROS, **more})
        write_site(folder / "hdfs-site.xml", _PRINCIPALS)

    def _configure(self, ports: list[int]) -> None:
        self._jvm = self.kdc.jvm
        super()._configure(ports)
        self.authority = self.authority.replace("127.0.0.1", "localhost")
        self.rpc_authority = self.rpc_authority.replace("127.0.0.1", "localhost")

    def _write_conf(
        self, conf: str, default_fs: str, ports: list[int], more: dict[str, str], core: dict[str, str] | None = None
    ) -> None:
        keytab = str(self._keytab)
        secure = {
            **_PRINCIPALS,
            "dfs.block.access.token.enable": "true",
            "ignore.secure.ports.for.testing": "true",
            "dfs.namenode.keytab.file": keytab,
            "dfs.datanode.keytab.file": keytab,
            "dfs.web.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
            "dfs.web.authentication.kerberos.keytab": keytab,
            "dfs.permissions.superusergroup": "root",
        }
        core = {
            **_KERBEROS,
            # Hadoop 3 has one login for all its pages, WebHDFS among them.
            "hadoop.http.filter.initializers": "org.apache.hadoop.hdfs.web.AuthFilterInitializer",
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
            "hadoop.http.authentication.kerberos.keytab": keytab,
        }
        super()._write_conf(conf, default_fs, ports, {**more, **secure}, _KERBEROS if self.hadoop == 2 else core)

    def _live(self) -> int:
        """By the log: its pages want a login."""
        return (self._directory / "log/namenode.log").read_text(errors="replace").count("registerDatanode: from")

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), **self.environment}
