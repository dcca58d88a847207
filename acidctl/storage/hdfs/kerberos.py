"""What this machine knows about the user's Kerberos ticket."""

from __future__ import annotations

from collections.abc import Mapping

KINIT = "get a ticket: kinit USER, or kinit -k -t KEYTAB PRINCIPAL; klist shows what there is"


def wants_kerberos(options: Mapping[str, str]) -> bool:
    """Whether the storage options ask for a Kerberos login."""
    return options.get("kerberos", "").lower() in ("true", "yes", "1") or bool(options.get("keytab"))


def ticket_problem() -> str:
    """What is wrong with this user's Kerberos ticket, as far as the machine can tell."""
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
