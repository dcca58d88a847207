"""Who one is to WebHDFS: a name, a token, a Kerberos ticket, or a password for a gateway."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

import requests
from hdfs import Client, InsecureClient, TokenClient
from requests.adapters import HTTPAdapter

from acidctl.errors import AccessError, EnvironmentProblem
from acidctl.storage.hdfs.kerberos import KINIT, ticket_problem, wants_kerberos
from acidctl.storage.port import FileSystemSpec
from acidctl.storage.retry import Patience

# The packages log what they also raise; without a handler Python would print that on stderr.
for _name in ("hdfs", "requests_kerberos", "spnego"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

_CONNECT_TIMEOUT = 10.0
_CONNECTIONS = 32
"""To one host, kept between requests."""

_HOSTS = 100
"""That connections are kept to: one for each DataNode."""

_CLIENT_KEYTAB = "KRB5_CLIENT_KTNAME"
"""Where MIT Kerberos looks for a keytab to get a ticket from by itself, when there is none."""


def log_in(spec: FileSystemSpec, patience: Patience) -> Any:
    """The package's client for a spec.

    Options: ``user``; ``token``, a delegation token; ``kerberos=true`` with the ticket cache, or ``keytab``, with
    ``principal`` where there are several; ``doas``, the user to act for; ``gateway``, the path of a proxy such as
    Knox (``/gateway/default``), and ``password`` when it wants one.

    Raises:
        EnvironmentProblem: the Kerberos packages are missing.
    """
    options = dict(spec.options)
    scheme = "https" if spec.protocol == "swebhdfs" else "http"
    gateway = options.get("gateway", "").strip("/")
    path = f"/{gateway}" if gateway else ""
    url = ";".join(f"{scheme}://{host}{path}" for host in spec.authority.split(","))
    session = requests.Session()
    for prefix in ("http://", "https://"):
        session.mount(prefix, HTTPAdapter(pool_connections=_HOSTS, pool_maxsize=_CONNECTIONS))
    settings: dict[str, Any] = {
        "timeout": (min(patience.timeout, _CONNECT_TIMEOUT), patience.timeout),
        "session": session,
    }
    doas = {"proxy": options["doas"]} if options.get("doas") else {}
    if options.get("token"):
        return TokenClient(url, options["token"], **settings)
    if wants_kerberos(options):
        return _kerberos(spec, url, settings | doas, options)
    if options.get("password"):
        session.auth = (options["user"], options["password"])
        return Client(url, **settings, **doas)
    return InsecureClient(url, user=options["user"], **settings, **doas)


def _kerberos(spec: FileSystemSpec, url: str, settings: dict[str, Any], options: Mapping[str, str]) -> Any:
    try:
        from hdfs.ext.kerberos import KerberosClient  # noqa: PLC0415 - optional: hdfs[kerberos]
    except ImportError as error:
        raise EnvironmentProblem(
            f"cannot log in to {spec.authority} with Kerberos", str(error), "pip install 'acidctl[kerberos]'"
        ) from error
    if options.get("keytab"):
        os.environ[_CLIENT_KEYTAB] = options["keytab"]
    if options.get("principal"):
        settings = settings | {"principal": options["principal"]}
    return KerberosClient(url, **settings)


def login_problem(what: str, options: Mapping[str, str]) -> AccessError:
    """The server answered 401: why, and what to do."""
    if options.get("token"):
        return AccessError(what, "the server does not take the delegation token", "get a new token")
    if options.get("password"):
        return AccessError(what, "the gateway does not take this user and password", "check user and password")
    if not wants_kerberos(options):
        return AccessError(what, "the server wants a login", "kinit, and the option kerberos=true")
    return AccessError(what, ticket_problem(), KINIT)
