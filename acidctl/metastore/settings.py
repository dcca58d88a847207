"""Where the metastore is and how one logs in to it: from Hive's configuration files, or as a user says it."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from urllib.parse import urlsplit

from acidctl.errors import UsageProblem
from acidctl.printable import printable
from acidctl.site_files import SiteFiles

_FILES = ("core-site.xml", "hive-site.xml", "metastore-site.xml")
_PORT = 9083
_HTTP_PATH = "/metastore"


class Login(StrEnum):
    """How a client says who it is."""

    NONE = "none"
    KERBEROS = "kerberos"
    TOKEN = "token"
    PLAIN = "plain"


class Protection(StrEnum):
    """What Kerberos does for each message, by Hadoop's names: nothing, a checksum, encryption."""

    AUTHENTICATION = "authentication"
    INTEGRITY = "integrity"
    PRIVACY = "privacy"


@dataclass(frozen=True, slots=True)
class Address:
    """One server.

    Attributes:
        url: as it is shown: without user and password.
        path: over HTTP the path that is asked; None over a socket.
        secure: whether the URL itself asks for TLS (``https``).
    """

    url: str
    host: str
    port: int
    path: str | None = None
    secure: bool = False


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates, as PEM files; empty where there is none.

    Attributes:
        authority: of whoever signed the server's; without it those that the system trusts.
        certificate, key: of this client, where the server asks for one.
    """

    authority: str = ""
    certificate: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class MetastoreSettings:
    """Everything that is needed to talk to a metastore.

    Attributes:
        addresses: of servers that know the same; the first that answers is asked.
        principal: the server's, ``hive/_HOST@REALM``.
        keytab, client_principal: to get a ticket by itself, where there is none.
        password, token: secrets; a token is Hadoop's in its text form.
        plain_anyway: send a password without TLS.
        framed, compact: as the server is configured.
        headers: of every HTTP request.
        timeout: seconds without an answer after which a call has failed.
        capabilities, processor: what Hive 4's translation layer is told; empty for tables as they are.
    """

    addresses: tuple[Address, ...]
    login: Login = Login.NONE
    principal: str = ""
    protection: Protection = Protection.AUTHENTICATION
    keytab: str = ""
    client_principal: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    plain_anyway: bool = False
    tls: Tls | None = None
    framed: bool = False
    compact: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 300.0
    capabilities: tuple[str, ...] = ()
    processor: str = ""

    @property
    def user_name(self) -> str:
        """Who this process is to the server, where no login says it."""
        return self.user or os.environ.get("HADOOP_USER_NAME") or _system_user()


def find_settings(given: Mapping[str, str], environ: Mapping[str, str] | None = None) -> MetastoreSettings | None:
    """The settings that are in force; None where nothing names a metastore.

    What is given wins over ``metastore-site.xml`` and ``hive-site.xml`` in ``HIVE_CONF_DIR`` (else
    ``HIVE_HOME/conf``, else ``HADOOP_CONF_DIR``).

    Args:
        given: ``uris`` and whatever else of docs/how-to/metastore.md, as texts.

    Raises:
        UsageProblem: a value that cannot be used, an unknown name, or a file that is no configuration.
    """
    if unknown := set(given) - set(NAMES):
        raise UsageProblem(
            f"not a setting of the metastore: {', '.join(sorted(unknown))}",
            "",
            f"there are {', '.join(sorted(NAMES))}",
        )
    site = site_of(os.environ if environ is None else environ)
    values = {name: given.get(name) or _from_site(site, keys) for name, keys in NAMES.items()}
    if not values["uris"]:
        return None
    is_http = values["transport"] == "http"
    settings = MetastoreSettings(
        addresses=tuple(_address(uri.strip(), is_http, values["http-path"]) for uri in _items(values["uris"])),
        login=_login(values),
        principal=values["principal"],
        protection=_protection(values["protection"]),
        keytab=values["keytab"],
        client_principal=values["client-principal"],
        user=values["user"],
        password=values["password"] or os.environ.get("ACIDCTL_METASTORE_PASSWORD", ""),
        token=values["token"] or os.environ.get("ACIDCTL_METASTORE_TOKEN", ""),
        plain_anyway=_flag("plain-without-tls", values["plain-without-tls"]),
        framed=_flag("framed", values["framed"]),
        compact=_flag("compact", values["compact"]),
        timeout=_seconds(values["timeout"]),
        capabilities=tuple(_items(values["capabilities"])),
        processor=values["processor"] or (f"acidctl@{socket.gethostname()}" if values["capabilities"] else ""),
    )
    if _flag("tls", values["tls"]) or values["ca"] or values["certificate"]:
        settings = replace(settings, tls=Tls(values["ca"], values["certificate"], values["key"]))
    return settings


def site_of(environ: Mapping[str, str]) -> SiteFiles:
    """Hive's configuration files, where the environment says that they are."""
    for variable, below in (("HIVE_CONF_DIR", ""), ("HIVE_HOME", "/conf"), ("HADOOP_CONF_DIR", "")):
        if directory := environ.get(variable):
            return SiteFiles.read(directory + below, _FILES, variable)
    return SiteFiles()


NAMES: dict[str, tuple[str, ...]] = {
    "uris": ("metastore.thrift.uris", "hive.metastore.uris"),
    "auth": (),
    "sasl": ("metastore.sasl.enabled", "hive.metastore.sasl.enabled"),
    "principal": ("metastore.kerberos.principal", "hive.metastore.kerberos.principal"),
    "protection": ("hadoop.rpc.protection",),
    "keytab": (),
    "client-principal": (),
    "user": ("metastore.client.plain.username", "hive.metastore.client.plain.username"),
    "password": (),
    "token": (),
    "plain-without-tls": (),
    "tls": ("metastore.use.SSL", "hive.metastore.use.SSL"),
    "ca": (),
    "certificate": (),
    "key": (),
    "framed": ("metastore.thrift.framed.transport.enabled", "hive.metastore.thrift.framed.transport.enabled"),
    "compact": ("metastore.thrift.compact.protocol.enabled", "hive.metastore.thrift.compact.protocol.enabled"),
    "transport": ("metastore.client.thrift.transport.mode", "hive.metastore.client.thrift.transport.mode"),
    "http-path": ("metastore.client.thrift.http.path", "hive.metastore.client.thrift.http.path"),
    "timeout": (),
    "capabilities": (),
    "processor": (),
}
"""Every setting by its name in acidctl's configuration, with the properties of Hive that say it."""


def _from_site(site: SiteFiles, keys: tuple[str, ...]) -> str:
    return next((value for key in keys if (value := site.get(key))), "")


def _login(values: Mapping[str, str]) -> Login:
    if values["auth"]:
        try:
            return Login(values["auth"].lower())
        except ValueError as error:
            raise UsageProblem(
                f"not a way to log in to a metastore: {printable(values['auth'])}", "", f"there are {', '.join(Login)}"
            ) from error
    if values["token"]:
        return Login.TOKEN
    if values["password"]:
        return Login.PLAIN
    return Login.KERBEROS if _flag("sasl", values["sasl"]) else Login.NONE


def _protection(text: str) -> Protection:
    """The first of a list, as the server offers them in its own order."""
    first = next(iter(_items(text)), Protection.AUTHENTICATION).lower()
    try:
        return Protection(first)
    except ValueError as error:
        raise UsageProblem(
            f"not a protection of messages: {printable(first)}", "", f"there are {', '.join(Protection)}"
        ) from error


def _flag(name: str, text: str) -> bool:
    if text.lower() in ("", "false", "no", "0"):
        return False
    if text.lower() in ("true", "yes", "1"):
        return True
    raise UsageProblem(f"not a value for {name}: {printable(text)}", "", "write true or false")


def _seconds(text: str) -> float:
    try:
        seconds = float(text or 300)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:
        raise UsageProblem(f"not a number of seconds: {printable(text)}", "", "write timeout=300")
    return seconds


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _address(uri: str, is_http: bool, http_path: str) -> Address:
    """One of the addresses of a list, ``thrift://host:port``.

    Raises:
        UsageProblem: it is not one.
    """
    form = "write thrift://HOST:9083, or http://HOST:PORT/metastore"
    shown = printable(uri)
    if "://" not in uri:
        uri = f"thrift://{uri}"
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError as error:
        raise UsageProblem(f"not the address of a metastore: {shown}", str(error), form) from error
    if parts.password is not None or parts.username is not None:
        raise UsageProblem(
            "the address of a metastore must not hold a user or a password",
            "it would stand in messages and lists of processes",
            "give them as settings of the metastore, best in the configuration",
        )
    if parts.scheme not in ("thrift", "http", "https") or not parts.hostname:
        raise UsageProblem(f"not the address of a metastore: {shown}", "", form)
    if parts.scheme == "thrift" and not is_http:
        return Address(f"thrift://{_bracketed(parts.hostname)}:{port or _PORT}", parts.hostname, port or _PORT)
    secure = parts.scheme == "https"
    port = port or (443 if secure else 80)
    path = parts.path if parts.path not in ("", "/") else "/" + (http_path or _HTTP_PATH).lstrip("/")
    scheme = "https" if secure else "http"
    return Address(f"{scheme}://{_bracketed(parts.hostname)}:{port}{path}", parts.hostname, port, path, secure)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise UsageProblem(
            "no user for the metastore", "this process's user id has no name", "set HADOOP_USER_NAME"
        ) from error
