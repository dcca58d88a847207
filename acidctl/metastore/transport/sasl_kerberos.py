"""Log in with a Kerberos ticket by the SASL mechanism GSSAPI (RFC 4752), or by SPNEGO over HTTP."""

from __future__ import annotations

import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from thrift.protocol.TProtocol import TProtocolException

from acidctl.base.errors import AccessError, UsageProblem
from acidctl.base.printable import printable
from acidctl.hadoop.kerberos import KINIT, credentials, gssapi_for, reason_of
from acidctl.metastore.settings import Protection
from acidctl.metastore.transport.sasl import Mechanism, chosen_protection

_BITS = {Protection.AUTHENTICATION: 1, Protection.INTEGRITY: 2, Protection.PRIVACY: 4}
_MOST_RECEIVED = 0xFFFFFF
_LEAST_SENT = 1024
_SPNEGO = "1.3.6.1.5.5.2"


class Kerberos(Mechanism):
    """A login with a Kerberos ticket.

    Args:
        shown: the server's address, for messages.
        principal: of the server, ``hive/host@REALM``.
        wanted: protections in order of preference.
        keytab, client: as in :func:`acidctl.hadoop.kerberos.credentials`.

    Raises:
        EnvironmentProblem: the package gssapi is missing.
        AccessError: there is no ticket.
    """

    name = "GSSAPI"
    hint = KINIT

    def __init__(self, shown: str, principal: str, wanted: tuple[Protection, ...], keytab: str, client: str) -> None:
        self._gssapi = gssapi = gssapi_for(f"log in to {shown}")
        self._shown = shown
        self._principal = principal
        self._wanted = wanted
        self._protection: Protection | None = None
        flags = gssapi.RequirementFlag
        mutual = flags.mutual_authentication | flags.replay_detection | flags.out_of_sequence_detection
        self._context = gssapi.SecurityContext(
            name=gssapi.Name(principal, gssapi.NameType.kerberos_principal),
            creds=credentials(gssapi, keytab, client),
            flags=mutual | flags.integrity | flags.confidentiality,
            mech=gssapi.MechType.kerberos,
            usage="initiate",
        )
        self.description = "with Kerberos"

    def respond(self, challenge: bytes) -> bytes:
        """Exchange tickets, and choose a protection in the last step."""
        try:
            if not self._context.complete:
                answer = bytes(self._context.step(challenge or None) or b"")
                if self._context.complete:
                    self.description = f"as {printable(str(self._context.initiator_name))} to {self._principal}"
                return answer
            return self._choose(challenge)
        except self._gssapi.exceptions.GSSError as error:
            what = f"cannot log in to the metastore {self._shown} as {self._principal} with Kerberos"
            hint = f"check the setting principal, and the clocks; {KINIT}"
            raise AccessError(what, printable(reason_of(error)), hint) from error

    def _choose(self, challenge: bytes) -> bytes:
        offer = self._context.unwrap(challenge).message
        if len(offer) != 4 or self._protection:
            raise TProtocolException(TProtocolException.INVALID_DATA, "no offer of protections")
        offered = {protection for protection, bit in _BITS.items() if offer[0] & bit}
        actual, flags = self._context.actual_flags, self._gssapi.RequirementFlag
        if not actual & flags.confidentiality:
            offered.discard(Protection.PRIVACY)
        if not actual & flags.integrity:
            offered.discard(Protection.INTEGRITY)
        self._protection = chosen_protection(self._wanted, offered, self._shown)
        self.description += f", {self._protection}"
        most = int.from_bytes(offer[1:], "big")
        if self._protection != Protection.AUTHENTICATION:
            encrypts = self._protection == Protection.PRIVACY
            size = self._context.get_wrap_size_limit(max(most, _LEAST_SENT), encrypts)
            self.layer = KerberosLayer(self._context, self._gssapi.exceptions.GSSError, max(size, 1), encrypts=encrypts)
        size = _MOST_RECEIVED if self.layer else 0
        choice = bytes([_BITS[self._protection]]) + size.to_bytes(3, "big")
        return bytes(self._context.wrap(choice, False).message)

    def end(self, last: bytes) -> None:
        """Check that a protection was chosen, and that nothing comes with the end."""
        if not self._protection or last:
            what = f"the metastore {self._shown} did not finish the Kerberos login"
            raise AccessError(what, "it accepts the login, but has not shown who it is", "see the metastore's log")


class KerberosLayer:
    """Checksum or encryption of messages by the ticket's key.

    Args:
        failure: base class of GSSAPI's errors.
        most: largest size of a frame's content, in bytes.
    """

    def __init__(self, context: Any, failure: type[Exception], most: int, *, encrypts: bool) -> None:
        self._context = context
        self._failure = failure
        self._most = most
        self._encrypts = encrypts

    def wrap(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames of a message, none larger than the server's buffer."""
        for start in range(0, len(data), self._most):
            yield bytes(self._context.wrap(data[start : start + self._most], self._encrypts).message)

    def unwrap(self, frame: bytes) -> bytes:
        """Return the content of a frame.

        Raises:
            TProtocolException: the frame was changed on its way, or is not encrypted.
        """
        try:
            unwrapped = self._context.unwrap(frame)
        except self._failure as error:
            raise TProtocolException(TProtocolException.INVALID_DATA, printable(reason_of(error))) from error
        if self._encrypts and not unwrapped.encrypted:
            raise TProtocolException(TProtocolException.INVALID_DATA, "a message that is not encrypted")
        return bytes(unwrapped.message)


def negotiate_header(shown: str, principal: str, keytab: str, client: str) -> str:
    """Return the HTTP header ``Authorization`` for a login with a ticket (SPNEGO).

    Raises:
        EnvironmentProblem: the package gssapi is missing.
        AccessError: there is no ticket, or none for this server.
    """
    gssapi = gssapi_for(f"log in to {shown}")
    try:
        context = gssapi.SecurityContext(
            name=gssapi.Name(principal, gssapi.NameType.kerberos_principal),
            creds=credentials(gssapi, keytab, client),
            mech=gssapi.OID.from_int_seq(_SPNEGO),
            usage="initiate",
        )
        return "Negotiate " + b64encode(context.step() or b"").decode()
    except gssapi.exceptions.GSSError as error:
        what = f"cannot log in to the metastore {shown} as {principal} with Kerberos"
        raise AccessError(what, printable(reason_of(error)), KINIT) from error


def server_principal(principal: str, host: str) -> str:
    """Replace ``_HOST`` in a principal by the canonical name of the host in lower case, as Hadoop does.

    Raises:
        UsageProblem: the principal does not have the form of a server's.
    """
    service, slash, rest = principal.partition("/")
    named, at, realm = rest.partition("@")
    if not service or not slash or not named:
        hint = "the setting principal, hive/_HOST@REALM, as hive.metastore.kerberos.principal of the server"
        raise UsageProblem(f"not the principal of a metastore: {printable(principal) or 'none is given'}", "", hint)
    if named == "_HOST":
        named = host.lower()
        with suppress(OSError):
            named = socket.gethostbyaddr(host)[0].lower()
    return f"{service}/{named}{at}{realm}"
