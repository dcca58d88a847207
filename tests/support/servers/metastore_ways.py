"""How a metastore of tests is reached: the ways that :class:`MetastoreServer` takes, alone or together.

MetastoreServer(4, directory, Kerberos(kdc, "privacy"))
MetastoreServer(4, directory, Tls(directory / "tls"), Password("alice", "secret"))
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from support.servers.hdfs_server import find_java
from support.servers.jvm import run
from support.servers.kdc import REALM, Kdc


class Way:
    """What it asks of a server and of its clients; a way overrides what it changes."""

    host = "127.0.0.1"
    """By what name clients call the server."""

    scheme = "thrift"

    oldest = 2
    """The first version of Hive that has it."""

    newest = 41
    """And the last."""

    def both(self) -> dict[str, str]:
        """Properties of the server and of Java's client."""
        return {}

    def server(self) -> dict[str, str]:
        """Properties of the server alone."""
        return {}

    def client(self) -> dict[str, str]:
        """Properties of Java's client alone."""
        return {}

    def core(self) -> dict[str, str]:
        """Hadoop's properties, of both."""
        return {}

    def jvm(self) -> list[str]:
        """Options of both JVMs."""
        return []

    def said(self) -> dict[str, str]:
        """What a client needs beside the address."""
        return {}

    def is_open(self, port: int) -> bool:
        """Whether a server that listens at a port is reached this way, too."""
        return True


@dataclass(frozen=True)
class Kerberos(Way):
    """SASL with GSSAPI, and DIGEST-MD5 for those who have a delegation token of it.

    Attributes:
        kdc: gives keytabs to clients: ``kdc.keytab("alice")``.
        protection: of what goes over the wire, as ``hadoop.rpc.protection`` calls it: ``authentication``,
            ``integrity``, ``privacy``, or several with commas, of which a client may choose.
    """

    kdc: Kdc
    protection: str = "authentication"

    host = "localhost"
    principal = f"hive/localhost@{REALM}"
    """The server's."""

    def both(self) -> dict[str, str]:
        return {"metastore.sasl.enabled": "true", "metastore.kerberos.principal": self.principal}

    def server(self) -> dict[str, str]:
        return {"metastore.kerberos.keytab.file": str(self.kdc.keytab(self.principal.partition("@")[0]))}

    def core(self) -> dict[str, str]:
        return {"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": self.protection}

    def jvm(self) -> list[str]:
        return self.kdc.jvm

    def said(self) -> dict[str, str]:
        return {
            **self.kdc.environment,
            "principal": self.principal,
            "alice@TEST.LOCAL": str(self.kdc.keytab("alice")),
            "hadoop.rpc.protection": self.protection,
        }


class Tls(Way):
    """The server shows a certificate for ``localhost`` and ``127.0.0.1``, signed by a CA that is made for it.

    Args:
        directory: for the keys; one set may serve several servers.

    Attributes:
        ca: the CA's certificate, PEM, for clients.
        trust_store: the same for Java.
        password: of the trust store.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.ca = directory / "ca.pem"
        self.trust_store = directory / "trust.p12"
        self.password = secrets.token_hex(8)
        self._key_store = directory / "server.p12"
        key = ("-keyalg", "EC", "-groupname", "secp256r1", "-validity", "30", "-dname")
        self._keytool("ca", "-genkeypair", "-alias", "ca", *key, "CN=CA of tests", "-ext", "bc:c", "-ext", "ku=kCS,cRL")
        self._keytool("server", "-genkeypair", "-alias", "server", *key, "CN=localhost")
        asked, signed = directory / "server.csr", directory / "server.pem"
        names = ("-ext", "san=dns:localhost,ip:127.0.0.1", "-ext", "eku=serverAuth", "-ext", "ku=digitalSignature")
        self._keytool("ca", "-exportcert", "-alias", "ca", "-rfc", "-file", self.ca)
        self._keytool("server", "-certreq", "-alias", "server", "-file", asked)
        self._keytool("ca", "-gencert", "-alias", "ca", *names, "-rfc", "-infile", asked, "-outfile", signed)
        for store in ("trust", "server"):
            self._keytool(store, "-importcert", "-noprompt", "-alias", "ca", "-file", self.ca)
        self._keytool("server", "-importcert", "-noprompt", "-alias", "server", "-file", signed)

    def _keytool(self, store: str, *arguments: str | Path) -> None:
        keytool = Path(find_java()).resolve().with_name("keytool")
        path = self.ca.with_name(f"{store}.p12")
        fast = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
        run([str(part) for part in (keytool, *fast, *arguments, "-keystore", path, "-storepass", self.password)])

    def both(self) -> dict[str, str]:
        return {"metastore.use.SSL": "true"}

    def server(self) -> dict[str, str]:
        return {
            "metastore.keystore.path": str(self._key_store),
            "metastore.keystore.password": self.password,
            "metastore.keystore.type": "PKCS12",  # over HTTP these have no default in 4.0.1
            "metastore.keymanagerfactory.algorithm": "PKIX",
        }

    def client(self) -> dict[str, str]:
        return {
            "metastore.truststore.path": str(self.trust_store),
            "metastore.truststore.password": self.password,
            "metastore.truststore.type": "PKCS12",
            "metastore.trustmanagerfactory.algorithm": "PKIX",
        }

    def said(self) -> dict[str, str]:
        return {"CA": str(self.ca)}


@dataclass(frozen=True)
class Password(Way):
    """SASL PLAIN with the one user that stands in the server's configuration (``CONFIG``)."""

    user: str
    password: str

    oldest = 4

    def both(self) -> dict[str, str]:
        return {"metastore.execute.setugi": "false"}

    def server(self) -> dict[str, str]:
        return {
            "metastore.authentication": "CONFIG",
            "metastore.authentication.config.username": self.user,
            "metastore.authentication.config.password": self.password,
        }

    def client(self) -> dict[str, str]:
        # Java's client asks Hadoop's store of credentials for a password by the user's name.
        return {
            "metastore.client.auth.mode": "PLAIN",
            "metastore.client.plain.username": self.user,
            self.user: self.password,
        }

    def said(self) -> dict[str, str]:
        return {"user": self.user, "password": self.password}


class Http(Way):
    """Thrift in HTTP, at ``/metastore``; the user is what the header ``x-actor-username`` says."""

    scheme = "http"
    oldest = 4

    def server(self) -> dict[str, str]:
        return {"metastore.server.thrift.transport.mode": "http"}

    def client(self) -> dict[str, str]:
        return {"metastore.client.thrift.transport.mode": "http"}


class Framed(Way):
    """A length before every message."""

    def both(self) -> dict[str, str]:
        return {"metastore.thrift.framed.transport.enabled": "true"}


class Compact(Way):
    """Thrift's compact protocol in place of its binary one."""

    def both(self) -> dict[str, str]:
        return {"metastore.thrift.compact.protocol.enabled": "true"}


WAYS = ("kerberos", "tls", "password", "http", "framed", "compact")
"""Their names where one is started by hand."""


def way(name: str, directory: Path, started: ExitStack) -> Way:
    """The way of a name, or of ``kerberos=PROTECTION``; what it starts ends with `started`."""
    kind, _, protection = name.partition("=")
    if kind == "kerberos":
        kdc = Kdc(directory / "krb")
        started.callback(kdc.stop)
        return Kerberos(kdc, protection or Kerberos.protection)
    if kind == "tls":
        return Tls(directory / "tls")
    if kind == "password":
        return Password("alice", secrets.token_hex(8))
    return {"http": Http, "framed": Framed, "compact": Compact}[kind]()
