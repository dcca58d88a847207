"""Find the user's Kerberos ticket, and explain its problems, for HDFS and for the metastore."""

from __future__ import annotations

from typing import Any

from acidctl.base.errors import AccessError, EnvironmentProblem

KINIT = "get a ticket: kinit USER, or kinit -k -t KEYTAB PRINCIPAL; klist shows what there is"


def ticket_problem() -> str:
    """Return what is wrong with this user's Kerberos ticket, as far as this machine shows it."""
    try:
        from gssapi import Credentials  # noqa: PLC0415 - optional
        from gssapi.exceptions import ExpiredCredentialsError  # noqa: PLC0415 - optional
        from gssapi.raw import GSSError  # noqa: PLC0415 - optional
    except ImportError:
        return "the server does not take the Kerberos login"
    try:
        left = Credentials(usage="initiate").lifetime
    except ExpiredCredentialsError:
        left = 0
    except GSSError:
        return "there is no Kerberos ticket"
    if left == 0:
        return "the Kerberos ticket has expired"
    return "the server does not take the Kerberos ticket"


def gssapi_for(doing: str) -> Any:
    """Return the package gssapi.

    Args:
        doing: what cannot be done without it, for the error.

    Raises:
        EnvironmentProblem: it is not installed, or finds no library of Kerberos.
    """
    try:
        import gssapi  # noqa: PLC0415 - optional
    except (ImportError, OSError) as error:
        hint = "pip install 'acidctl[kerberos]'"
        raise EnvironmentProblem(f"cannot {doing} with Kerberos", str(error), hint) from error
    return gssapi


def credentials(gssapi: Any, keytab: str, principal: str) -> Any:
    """Return the credentials of a keytab or of a ticket; None lets the library choose a ticket.

    A keytab's tickets are kept in this process: those of the user stay as they are.  Raises AccessError if there is
    none, or it has expired.
    """
    if not keytab and not principal:
        return None
    store = {"client_keytab": keytab, "ccache": f"MEMORY:acidctl-{abs(hash((keytab, principal)))}"} if keytab else None
    try:
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal) if principal else None
        return gssapi.Credentials(name=name, usage="initiate", **({"store": store} if store else {}))
    except gssapi.exceptions.GSSError as error:
        what = f"no Kerberos ticket for {principal or 'the principal of ' + keytab}"
        raise AccessError(what, reason_of(error), KINIT) from error


def reason_of(error: Any) -> str:
    """Return the library's own words for an error of GSSAPI, the detailed ones where there are some."""
    try:
        code, minor = error.maj_code, error.min_code
        texts = [*error.get_all_statuses(minor, False), *error.get_all_statuses(code, True)]
    except (AttributeError, TypeError, ValueError):
        return str(error)
    return next((text for text in texts if text and not text.startswith("Unknown error")), str(error))
