"""Addresses of the metastore and the login to it, from Hive's configuration files or given by the user."""

from __future__ import annotations

import getpass
import os
import re
import socket
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import urlsplit

from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.base.printable import printable
from acidctl.hadoop.site_files import SiteFiles
from acidctl.hadoop.tokens import Token, tokens_of_job

PASSWORD_VARIABLE, TOKEN_VARIABLE = "ACIDCTL_METASTORE_PASSWORD", "ACIDCTL_METASTORE_TOKEN"
"""Environment variables for secrets that no file should hold."""

_E = TypeVar("_E", bound=StrEnum)
_FILES = ("core-site.xml", "hive-site.xml", "metastore-site.xml")
_PORT = 9083
_HTTP_PATH = "/metastore"
_TOKEN_KIND = "HIVE_DELEGATION_TOKEN"
_HIVESERVER2_TOKEN = "hiveserver2ClientToken"


class Login(StrEnum):
    """Ways in which a client can identify itself."""

    NONE = "none"
    KERBEROS = "kerberos"
    TOKEN = "token"
    PLAIN = "plain"
    JWT = "jwt"


class Protection(StrEnum):
    """Protection of each message after a login, by Hadoop's names: none, a checksum, encryption."""

    AUTHENTICATION = "authentication"
    INTEGRITY = "integrity"
    PRIVACY = "privacy"


@dataclass(frozen=True, slots=True)
class Address:
    """Address of one server.

    Attributes:
        path: path of the requests over HTTP; None over a socket.
        secure: whether the URL itself requires TLS (``https``).
    """

    url: str
    host: str
    port: int
    path: str | None = None
    secure: bool = False


@dataclass(frozen=True, slots=True)
class Tls:
    """Names of PEM files with certificates; empty without one.

    Attributes:
        authority: CA of the server's certificate; default: the CAs that the system trusts.
        java_store: Java keystore of CAs in Hive's configuration, for a hint only: it is not read.
    """

    authority: str = ""
    certificate: str = ""
    key: str = ""
    java_store: str = ""


@dataclass(frozen=True, slots=True)
class MetastoreSettings:
    """Everything that is needed to connect to a metastore.

    Attributes:
        addresses: servers of the same metastore; the first that answers is used.
        in_order: try them in the given order, else in random order like Hive's client, to share the load.
        principal: the server's, ``hive/_HOST@REALM``.
        protections: of messages, in order of preference.
        keytab, client_principal: to get a ticket if the user has none.
        token: Hadoop's delegation token in its text form, or a JWT.
        headers: of every HTTP request.
        connect_timeout: seconds for connecting and logging in.
        timeout: seconds from the beginning of a call until it fails, even if parts of the answer keep arriving.
        capabilities, processor: for a metastore that translates tables (CDP); empty to get tables untranslated.
    """

    addresses: tuple[Address, ...]
    login: Login = Login.NONE
    principal: str = ""
    protections: tuple[Protection, ...] = (Protection.AUTHENTICATION,)
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
    connect_timeout: float = 30.0
    timeout: float = 300.0
    in_order: bool = False
    is_http: bool = False
    http_path: str = ""
    capabilities: tuple[str, ...] = ()
    processor: str = ""

    @property
    def translation(self) -> dict[str, Any]:
        """The fields of requests for tables that a metastore with translation reads."""
        return {"processor_capabilities": self.capabilities or None, "processor": self.processor or None}

    @property
    def user_name(self) -> str:
        """The user of this process, for a server without a login."""
        if user := self.user or os.environ.get("HADOOP_USER_NAME"):
            return user
        try:
            return getpass.getuser()
        except (KeyError, OSError) as error:
            raise UsageProblem(
                "no user for the metastore", "this process's user id has no name", "set HADOOP_USER_NAME"
            ) from error

    @property
    def shown(self) -> str:
        """The first address, for messages."""
        return self.addresses[0].url

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must never be shown."""
        pair = b64encode(f"{self.user_name}:{self.password}".encode()).decode() if self.password else ""
        return tuple(filter(None, (self.password, pair, self.token, *self.headers.values())))


@dataclass(frozen=True, slots=True)
class Setting:
    """The value of a setting, and where it is from: a property of Hive and its file, or a variable; empty if given."""

    value: str
    origin: str = ""


def sourced_settings(given: Mapping[str, str], environ: Mapping[str, str] | None = None) -> dict[str, Setting]:
    """Return every setting that has a value, by its name, without checking the value.

    Arguments win over ``metastore-site.xml`` and ``hive-site.xml`` in ``HIVE_CONF_DIR`` (else ``HIVE_HOME/conf``, else
    ``HADOOP_CONF_DIR``), and the files win over the environment variables for secrets.

    Args:
        given: ``uris`` and other settings of docs/how-to/metastore.md, as texts.
    """
    if unknown := set(given) - set(NAMES):
        names = printable(", ".join(sorted(unknown)))
        raise UsageProblem(f"not a setting of the metastore: {names}", "", f"there are {', '.join(sorted(NAMES))}")
    environ = os.environ if environ is None else environ
    site, values = site_of(environ), {}
    for name, keys in NAMES.items():
        if value := given.get(name):
            values[name] = Setting(value)
        elif key := next((key for key in keys if site.get(key)), None):
            values[name] = Setting(site.get(key), f"{key} in {site.files.get(key, '')}")
    if "uris" in values and "token" not in values and (token := _token(environ, values, _from_site(site, _SIGNATURE))):
        values["token"] = token
    if "password" not in values and (password := environ.get(PASSWORD_VARIABLE)):
        values["password"] = Setting(password, PASSWORD_VARIABLE)
    return values


def find_settings(given: Mapping[str, str], environ: Mapping[str, str] | None = None) -> MetastoreSettings | None:
    """Return the effective settings; None if nothing names a metastore."""
    environ = os.environ if environ is None else environ
    sourced = sourced_settings(given, environ)
    values = {name: sourced[name].value if name in sourced else "" for name in NAMES}
    if not values["uris"]:
        return None
    if not given.get("uris") and _from_site(site_of(environ), _DISCOVERY).lower() == "zookeeper":
        what, why = "acidctl does not ask ZooKeeper for metastores", f"hive-site.xml has {_DISCOVERY[0]}=zookeeper"
        hint = "give the metastore's own address, --metastore thrift://HOST:9083, or none to work on paths without it"
        raise UsageProblem(what, why, hint)

    def flag(name: str) -> bool:
        return _flag(name, values[name])

    protections = [_one_of(Protection, word, "protection of messages") for word in _items(values["protection"])]
    order = values["selection"].upper()
    if order not in ("", "RANDOM", "SEQUENTIAL"):
        shown = printable(values["selection"])
        raise UsageProblem(f"not an order of metastores: {shown}", "", "there are RANDOM and SEQUENTIAL")
    is_http = values["transport"].lower() == "http"
    settings = MetastoreSettings(
        addresses=(),
        login=_login(values, is_http=is_http or values["uris"].lower().startswith("http")),
        principal=values["principal"],
        protections=tuple(protections) or (Protection.AUTHENTICATION,),
        keytab=values["keytab"],
        client_principal=values["client-principal"],
        user=values["user"],
        password=values["password"],
        token=values["token"],
        plain_anyway=flag("plain-without-tls"),
        framed=flag("framed"),
        compact=flag("compact"),
        headers=_headers(values["headers"]),
        connect_timeout=_seconds("connect-timeout", values["connect-timeout"], 30),
        timeout=_seconds("timeout", values["timeout"], 300),
        in_order=order == "SEQUENTIAL",
        is_http=is_http,
        http_path=values["http-path"],
        capabilities=tuple(_items(values["capabilities"])),
        processor=values["processor"] or (f"acidctl@{socket.gethostname()}" if values["capabilities"] else ""),
    )
    if flag("tls") or values["ca"] or values["certificate"]:
        store = _from_site(site_of(environ), _JAVA_STORE)
        settings = replace(settings, tls=Tls(values["ca"], values["certificate"], values["key"], store))
    return replace(settings, addresses=tuple(address_of(uri, settings) for uri in _items(values["uris"])))


def _token(environ: Mapping[str, str], sourced: Mapping[str, Setting], signature: str) -> Setting | None:
    """Return the token of the environment if the settings use a token."""
    if given := environ.get(TOKEN_VARIABLE):
        return Setting(given, TOKEN_VARIABLE)
    auth, sasl, transport = (sourced[name].value.lower() if name in sourced else "" for name in _OF_LOGIN)
    if transport == "http" or sourced["uris"].value.lower().startswith("http"):
        jwt = environ.get("HMS_JWT") if auth in ("", "jwt", "nosasl") else ""
        return Setting(jwt, "HMS_JWT") if jwt else None
    if auth == "token" or (auth in ("", "nosasl") and _flag("sasl", sasl)):
        token = token_of_file(environ, signature)
        return Setting(token.as_text(), "HADOOP_TOKEN_FILE_LOCATION") if token else None
    return None


def token_of_file(environ: Mapping[str, str], signature: str) -> Token | None:
    """Return the token for a metastore from the file that a cluster writes for a job; None without one.

    Args:
        signature: the service's, ``hive.metastore.token.signature``; default: the token without a service, else the
            first token of Hive that is not for HiveServer2.
    """
    ours = [
        token for token in tokens_of_job(environ) if token.kind == _TOKEN_KIND and token.service != _HIVESERVER2_TOKEN
    ]
    if signature:
        return next((token for token in ours if token.service == signature), None)
    plain = [token for token in ours if not token.service]
    return next(iter(plain or ours), None)


def site_of(environ: Mapping[str, str]) -> SiteFiles:
    """Read Hive's configuration files from the directory that the environment names."""
    for variable, below in (("HIVE_CONF_DIR", ""), ("HIVE_HOME", "/conf"), ("HADOOP_CONF_DIR", "")):
        if directory := environ.get(variable):
            try:
                return SiteFiles.read(directory + below, _FILES, variable)
            except AcidctlError as error:
                hint = f"{error.hint}; with --metastore none paths are worked on without it"
                raise type(error)(error.what, error.why, hint) from error
    return SiteFiles()


_OF_LOGIN = ("auth", "sasl", "transport")
_SIGNATURE = ("metastore.token.signature", "hive.metastore.token.signature")
_DISCOVERY = ("metastore.service.discovery.mode", "hive.metastore.service.discovery.mode")
_JAVA_STORE = ("metastore.truststore.path", "hive.metastore.truststore.path")

NAMES: dict[str, tuple[str, ...]] = {
    "uris": ("metastore.thrift.uris", "hive.metastore.uris"),
    "selection": ("metastore.thrift.uri.selection", "hive.metastore.uri.selection"),
    "auth": ("metastore.client.auth.mode", "hive.metastore.client.auth.mode"),
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
    "headers": ("metastore.client.http.additional.headers", "hive.metastore.client.http.additional.headers"),
    "capabilities": (),
    "processor": (),
    "connect-timeout": ("metastore.client.connection.timeout", "hive.metastore.client.connection.timeout"),
    "timeout": ("metastore.client.socket.timeout", "hive.metastore.client.socket.timeout"),
}
"""Every setting by its name in acidctl's configuration, with Hive's properties for it."""


def _from_site(site: SiteFiles, keys: tuple[str, ...]) -> str:
    return next((value for key in keys if (value := site.get(key))), "")


def _one_of(kind: type[_E], text: str, what: str) -> _E:
    try:
        return kind(text.lower())
    except ValueError as error:
        raise UsageProblem(f"not a {what}: {printable(text)}", "", f"there are {', '.join(kind)}") from error


def _login(values: Mapping[str, str], *, is_http: bool) -> Login:
    if values["auth"].lower() not in ("", "nosasl"):  # which means none, or Kerberos if SASL is on
        return _one_of(Login, values["auth"], "way to log in to a metastore")
    if values["token"]:
        return Login.JWT if is_http else Login.TOKEN
    if values["password"]:
        return Login.PLAIN
    return Login.KERBEROS if _flag("sasl", values["sasl"]) else Login.NONE


def _headers(text: str) -> dict[str, str]:
    """Parse Hive's form of headers, ``name=value,name=value``."""
    headers = {}
    for item in _items(text):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not value.isprintable():
            raise UsageProblem("the setting headers cannot be used", "one of them is not NAME=VALUE", "NAME=VALUE,...")
        headers[name] = value
    return headers


def _flag(name: str, text: str) -> bool:
    if text.lower() in ("", "false", "no", "0"):
        return False
    if text.lower() in ("true", "yes", "1"):
        return True
    raise UsageProblem(f"not a value for {name}: {printable(text)}", "", "write true or false")


_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_LONG_UNITS = {"day": "d", "hour": "h", "min": "m", "sec": "s", "msec": "ms", "usec": "us", "nsec": "ns"}
"""Prefixes of the long names of units."""


def seconds_in(text: str) -> float | None:
    """Parse a time of Hive's configuration, in seconds or with a unit: ``300``, ``12h``, ``10 minutes``; else None."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    unit = (match[2].lower() or "s") if match else ""
    unit = next((short for long, short in _LONG_UNITS.items() if unit.startswith(long)), unit)
    return float(match[1]) * _UNITS[unit] if match and unit in _UNITS else None


def _seconds(name: str, text: str, default: float) -> float:
    seconds = seconds_in(text) if text else default
    if seconds is None or not 0 < seconds <= 86400:
        raise UsageProblem(f"not a time for {name}: {printable(text)}", "", f"write seconds: {name}=300")
    return seconds


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def address_of(uri: str, settings: MetastoreSettings) -> Address:
    """Parse the address of a server, ``thrift://host:port``; the settings decide on HTTP and TLS."""
    form = "write thrift://HOST:9083, or http://HOST:PORT/metastore"
    shown = printable(uri)
    if "@" in uri:
        raise UsageProblem(
            "the address of a metastore must not hold a user or a password",
            "it would stand in messages and lists of processes",
            "give them as settings of the metastore, best in the configuration",
        )
    if "://" not in uri:
        uri = f"thrift://{uri}"
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError as error:
        raise UsageProblem(f"not the address of a metastore: {shown}", str(error), form) from error
    if parts.scheme not in ("thrift", "http", "https") or not parts.hostname:
        raise UsageProblem(f"not the address of a metastore: {shown}", "", form)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if parts.scheme == "thrift" and not settings.is_http:
        return Address(f"thrift://{host}:{port or _PORT}", parts.hostname, port or _PORT)
    secure = parts.scheme == "https" or settings.tls is not None
    port = port or (443 if secure else 80)
    path = parts.path if parts.path not in ("", "/") else "/" + (settings.http_path or _HTTP_PATH).lstrip("/")
    url = f"{'https' if secure else 'http'}://{host}:{port}{path}"
    return Address(url, parts.hostname, port, path, secure)
