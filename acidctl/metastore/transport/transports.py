"""Choose the transport by the settings: a socket or HTTP, TLS, a login, and frames."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thrift.transport.TTransport import TBufferedTransport

from acidctl.base.errors import RefusedError, UsageProblem
from acidctl.hadoop.kerberos import KINIT
from acidctl.metastore.settings import Address, Login, MetastoreSettings, Protection, Tls
from acidctl.metastore.transport.http import HttpTransport
from acidctl.metastore.transport.sasl import Mechanism, Plain, SaslTransport
from acidctl.metastore.transport.sasl_digest import Digest, token_of_text
from acidctl.metastore.transport.sasl_kerberos import Kerberos, negotiate_header, server_principal
from acidctl.metastore.transport.stream import Frames, Stream, context_of

_BUFFER = 64 << 10
_SECRET_HEADERS = ("authorization", "cookie", "proxy-authorization")


@dataclass(frozen=True, slots=True)
class Transport:
    """Transport of one connection.

    Attributes:
        thrift: transport for Thrift's protocols.
        stream: the socket below it.
        login: describes the login, once the transport is open.
    """

    thrift: Any
    stream: Stream
    login: Callable[[], str]


def transport_of(settings: MetastoreSettings, address: Address) -> Transport:
    """Return a transport that is not yet open.

    Raises:
        RefusedError: a secret would be sent unencrypted.
        UsageProblem: settings contradict each other.
        EnvironmentProblem: a package, or a file, is missing.
        AccessError: there is no Kerberos ticket.
    """
    context = context_of(settings.tls or Tls()) if settings.tls or address.secure else None
    _refuse_bare_secrets(settings, address, context)
    if address.path is not None:
        return _http(settings, address, context)
    if settings.login is Login.JWT:
        hint = "the setting transport=http, or another auth"
        raise UsageProblem("a JWT is for a metastore over HTTP", f"{address.url} is not one", hint)
    has_login = settings.login is not Login.NONE
    stream = Stream(address.url, address.host, address.port, context, is_sasl=has_login)
    if has_login:  # after a login, Hive uses SASL's frames even if it is configured as framed
        mechanism = _mechanism(settings, address)
        return Transport(SaslTransport(stream, address.url, mechanism), stream, lambda: mechanism.description)
    thrift = Frames(stream) if settings.framed else TBufferedTransport(stream, _BUFFER)
    return Transport(thrift, stream, lambda: f"as {settings.user_name}, by name only")


def _refuse_bare_secrets(settings: MetastoreSettings, address: Address, context: ssl.SSLContext | None) -> None:
    has_secret = settings.login in (Login.PLAIN, Login.JWT) or any(
        name.lower() in _SECRET_HEADERS for name in settings.headers
    )
    if has_secret and context is None and not settings.plain_anyway:
        what = f"the password or token for the metastore {address.url} is not sent"
        why = "the connection has no TLS: everybody on the way could read it"
        raise RefusedError(what, why, "the setting tls=true (https), or plain-without-tls=true where the way is safe")


def _mechanism(settings: MetastoreSettings, address: Address) -> Mechanism:
    if settings.login is Login.PLAIN:
        return Plain(settings.user_name, settings.password)
    # Under TLS, Hive 4's servers offer only authentication.
    wanted = settings.protections if settings.tls is None else (*settings.protections, Protection.AUTHENTICATION)
    if settings.login is Login.TOKEN:
        if not settings.token:
            why = "none is given, and HADOOP_TOKEN_FILE_LOCATION leads to none of Hive's"
            hint = "the setting token, or ACIDCTL_METASTORE_TOKEN"
            raise UsageProblem("no delegation token for the metastore", why, hint)
        return Digest(address.url, token_of_text(settings.token), wanted)
    principal = server_principal(settings.principal, address.host)
    return Kerberos(address.url, principal, wanted, settings.keytab, settings.client_principal)


def _http(settings: MetastoreSettings, address: Address, context: ssl.SSLContext | None) -> Transport:
    headers = {"x-actor-username": settings.user_name, **settings.headers}
    login: Callable[[], str] | None = None
    description, hint = f"as {settings.user_name}, by name only", "the setting auth: jwt, kerberos or plain"
    if settings.login is Login.TOKEN:
        raise UsageProblem("a delegation token is for a metastore over thrift", "", "the setting auth=jwt or kerberos")
    if settings.login is Login.JWT:
        if not settings.token:
            raise UsageProblem("no JWT for the metastore", "", "the setting token, or the variable HMS_JWT")
        del headers["x-actor-username"]
        login, description, hint = (lambda: f"Bearer {settings.token}"), "with a JWT", "get a new token"
    elif settings.login is Login.PLAIN:
        pair = b64encode(f"{settings.user_name}:{settings.password}".encode()).decode()
        login, description = (lambda: f"Basic {pair}"), f"as {settings.user_name} with a password"
        hint = Plain.hint
    elif settings.login is Login.KERBEROS:
        realm = "".join(settings.principal.partition("@")[1:])
        is_http = settings.principal.startswith("HTTP/")
        principal = server_principal(settings.principal if is_http else f"HTTP/_HOST{realm}", address.host)
        keytab, client = settings.keytab, settings.client_principal
        login = lambda: negotiate_header(address.url, principal, keytab, client)  # noqa: E731 - as the others
        description, hint = f"with Kerberos to {principal}", KINIT
    stream = Stream(address.url, address.host, address.port, context, is_http=True)
    return Transport(HttpTransport(stream, address, headers, login, hint), stream, lambda: description)
