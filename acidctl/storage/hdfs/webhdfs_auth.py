"""Log in to WebHDFS by a name, a token, a Kerberos ticket, or a password for a gateway."""

from __future__ import annotations

import logging
import os
from http.cookiejar import DefaultCookiePolicy

import requests
from hdfs import InsecureClient, TokenClient

from acidctl.errors import AccessError, importing
from acidctl.kerberos import KINIT, ticket_problem
from acidctl.storage.hdfs.kerberos import wants_kerberos, web_token
from acidctl.storage.port import FileSystemSpec

# The packages log errors that they also raise; without a handler Python would print them on stderr.
for _name in ("hdfs", "requests_kerberos", "spnego"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

_CLIENT_KEYTAB = "KRB5_CLIENT_KTNAME"
"""The variable with the keytab from which MIT Kerberos gets a ticket by itself if there is none."""


def log_in(spec: FileSystemSpec) -> tuple[requests.Session, dict[str, str]]:
    """Return a session with the login of a spec, and the parameters for the query of every URL.

    The clients of PyPI `hdfs` put the login into a given session.

    Options: ``user``; ``token``, a delegation token; ``kerberos=true`` with a token of this job, else the ticket
    cache, or ``keytab``, with ``principal`` if there are several; ``doas``, the user to act for; ``gateway``, the
    path of a proxy such as Knox (``/gateway/default``), and its ``password`` if it needs one.

    Raises:
        EnvironmentProblem: the Kerberos packages are missing.
    """
    options = dict(spec.options)
    token = options.get("token") or (web_token(spec) if wants_kerberos(options) else "")
    session = requests.Session()
    if token:
        TokenClient(spec.authority, token, session=session)
    elif wants_kerberos(options):
        _kerberos(spec.authority, session, options)
    elif options.get("password"):
        session.auth = (options["user"], options["password"])
    else:
        InsecureClient(spec.authority, user=options["user"], session=session)
    parameters = {key: str(value) for key, value in dict(session.params or {}).items()}
    session.params = {}
    if options.get("doas") and not token:  # a token holds who acts for whom
        parameters["doas"] = options["doas"]
    return session, parameters


def anonymous() -> requests.Session:
    """Return a session that sends no login, no cookie, and no entry of ``~/.netrc``."""
    session = requests.Session()
    session.auth = lambda request: request
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return session


def _kerberos(authority: str, session: requests.Session, options: dict[str, str]) -> None:
    with importing(f"cannot log in to {authority} with Kerberos", "pip install 'acidctl[kerberos]'"):
        from hdfs.ext.kerberos import KerberosClient  # noqa: PLC0415 - optional: hdfs[kerberos]
    if options.get("keytab"):
        os.environ[_CLIENT_KEYTAB] = options["keytab"]
    principal = {"principal": options["principal"]} if options.get("principal") else {}
    KerberosClient(authority, session=session, **principal)


def login_problem(what: str, options: dict[str, str]) -> AccessError:
    """Return the error for a server's answer 401."""
    if options.get("token"):
        return AccessError(what, "the server does not take the delegation token", "get a new token")
    if options.get("password"):
        return AccessError(what, "the gateway does not take this user and password", "check user and password")
    if not wants_kerberos(options):
        return AccessError(what, "the server wants a login", "kinit, and the option kerberos=true")
    return AccessError(what, ticket_problem(), KINIT)
