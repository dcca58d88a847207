"""Log in with SASL in Thrift's frames: a status, a length, and the mechanism's message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from thrift.protocol.TProtocol import TProtocolException

from acidctl.base.errors import AccessError, RefusedError
from acidctl.base.printable import printable
from acidctl.metastore.settings import Protection
from acidctl.metastore.transport.stream import Frames, Stream

_START, _OK, _BAD, _ERROR, _COMPLETE = range(1, 6)
_MOST_BYTES = 1 << 20  # limit of one message of a login, as the server is not trusted yet
_MOST_ROUNDS = 10
_MOST_WORDS = 300


class SaslLayer(Protocol):
    """Protection of messages after a login: a checksum, or encryption."""

    def wrap(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames of a message."""
        ...

    def unwrap(self, frame: bytes) -> bytes:
        """Return the content of a frame.

        Raises:
            TProtocolException: it was changed on its way.
        """
        ...


class Mechanism:
    """A SASL mechanism for one login.

    Attributes:
        name: SASL's name.
        description: the user and the protection of messages, for people.
        hint: what to do if the server refuses the login.
        layer: set after the login; None if messages are not protected.
    """

    name = ""
    hint = ""
    description = ""
    layer: SaslLayer | None = None

    def respond(self, challenge: bytes) -> bytes:
        """Return the answer to the server's challenge; the first challenge is empty."""
        raise NotImplementedError

    def end(self, last: bytes) -> None:
        """Check the server's last message.

        Raises:
            AccessError: the server has not proven that it knows the secret.
        """


class Plain(Mechanism):
    """The mechanism PLAIN (RFC 4616), which sends the password itself: only TLS proves the server's identity."""

    name = "PLAIN"
    hint = "check the settings user and password"

    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password
        self.description = f"as {user} with a password"

    def respond(self, challenge: bytes) -> bytes:
        """Return user and password, separated by NUL."""
        if challenge:
            raise TProtocolException(TProtocolException.INVALID_DATA, "an unexpected challenge")
        if "\0" in self._user + self._password:
            raise AccessError("user and password for the metastore cannot be sent", "a NUL is in them", self.hint)
        return f"\0{self._user}\0{self._password}".encode()


class SaslTransport(Frames):
    """A connection that begins with a login.

    Args:
        shown: the server's address, for messages.
    """

    def __init__(self, stream: Stream, shown: str, mechanism: Mechanism) -> None:
        super().__init__(stream)
        self._shown = shown
        self.mechanism = mechanism

    def open(self) -> None:
        """Connect, and log in.

        Raises:
            AccessError: the server refuses the login, or has not proven its identity.
            TProtocolException: the server violates the protocol.
        """
        super().open()
        self._send(_START, self.mechanism.name.encode())
        self._send(_OK, self.mechanism.respond(b""))
        for _ in range(_MOST_ROUNDS):
            status, message = self._receive()
            if status == _COMPLETE:
                self.mechanism.end(message)
                return
            if status != _OK:
                what = f"the metastore {self._shown} refuses the login {self.mechanism.description}"
                why = printable(message[:_MOST_WORDS].decode("utf-8", "replace"))
                raise AccessError(what, why, self.mechanism.hint)
            self._send(_OK, self.mechanism.respond(message))
        raise TProtocolException(TProtocolException.INVALID_DATA, "the login does not end")

    def _send(self, status: int, message: bytes) -> None:
        self._stream.write(bytes([status]) + len(message).to_bytes(4, "big") + message)

    def _receive(self) -> tuple[int, bytes]:
        head = self._stream.readAll(5)
        status, size = head[0], int.from_bytes(head[1:], "big")
        if status not in (_OK, _BAD, _ERROR, _COMPLETE) or size > _MOST_BYTES:
            why = f"no answer to a login: status {status}, {size} bytes"
            raise TProtocolException(TProtocolException.INVALID_DATA, why)
        return status, self._stream.readAll(size)

    def _wrapped(self, data: bytes) -> Iterator[bytes]:
        return self.mechanism.layer.wrap(data) if self.mechanism.layer else super()._wrapped(data)

    def _unwrapped(self, frame: bytes) -> bytes:
        return self.mechanism.layer.unwrap(frame) if self.mechanism.layer else frame


def chosen_protection(wanted: tuple[Protection, ...], offered: set[Protection], shown: str) -> Protection:
    """Return the first wanted protection that the server offers, else the weakest one stronger than a wanted one.

    Raises:
        RefusedError: the server offers only weaker protection.
    """
    for protection in wanted:
        if protection in offered:
            return protection
    order = list(Protection)
    stronger = [protection for protection in order[min(map(order.index, wanted)) :] if protection in offered]
    if stronger:
        return stronger[0]
    why = f"it offers {', '.join(sorted(offered)) or 'nothing'}, and {', '.join(wanted)} is wanted"
    hint = "the setting protection, or hadoop.rpc.protection in core-site.xml"
    raise RefusedError(f"the metastore {shown} protects messages less than is wanted", why, hint)
