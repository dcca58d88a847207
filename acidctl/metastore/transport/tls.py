"""TLS: whom to trust, who one is, and what an error of it means."""

from __future__ import annotations

import ssl

from acidctl.errors import AccessError, EnvironmentProblem
from acidctl.metastore.settings import Tls
from acidctl.printable import printable

_CONVERT = "keytool -list -rfc -keystore {} > ca.pem, and the setting ca=ca.pem"
_EXPIRED, _NOT_YET, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64


def context_of(tls: Tls) -> ssl.SSLContext:
    """Names and certificates are always checked.

    Raises:
        EnvironmentProblem: a file cannot be used.
    """
    shown = ""
    try:
        shown = tls.authority
        context = ssl.create_default_context(cafile=tls.authority or None)
        if tls.certificate:
            shown = tls.certificate
            # Without a function Python would ask on the terminal for a password.
            context.load_cert_chain(tls.certificate, tls.key or None, password=_no_password)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise EnvironmentProblem(
            "the certificates for the metastore cannot be used",
            f"{printable(shown)}: {getattr(error, 'strerror', None) or error}",
            f"give PEM files, a key without a password; from a Java keystore: {_CONVERT.format('STORE')}",
        ) from error
    return context


def _no_password() -> str:
    raise ValueError("the key has a password")


def not_trusted(server: str, error: ssl.SSLCertVerificationError, tls: Tls | None) -> AccessError:
    """The error for a server that is not who it should be, or that nobody vouches for."""
    what = f"the certificate of the metastore {server} is not to be trusted"
    why = printable(error.verify_message or str(error))
    if error.verify_code == _EXPIRED:
        return AccessError(what, why, "the server needs a new certificate; see the clock of this machine, too")
    if error.verify_code == _NOT_YET:
        return AccessError(what, why, "see the clocks of both machines")
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        return AccessError(what, why, "name the server as its certificate does")
    if tls and tls.java_store and not tls.authority:
        convert = _CONVERT.format(printable(tls.java_store))
        return AccessError(what, why, f"hive-site.xml names a Java keystore, which is to be converted: {convert}")
    return AccessError(what, why, "give the certificate of who signed it, a PEM file: the setting ca")
