"""Logging in with SASL, in Thrift's frames: a status, a length, and what a mechanism says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from thrift.protocol.TProtocol import TProtocolException

from acidctl.errors import AccessError, RefusedError
from acidctl.metastore.settings import Protection
from acidctl.metastore.transport.frames import Frames
from acidctl.metastore.transport.stream import Stream
from acidctl.printable import printable

_START, _OK, _BAD, _ERROR, _COMPLETE = range(1, 6)
_MOST_BYTES = 1 << 20
"""Of one message of a login: nobody has logged in yet."""

_MOST_ROUNDS = 10
_MOST_WORDS = 300


class SaslLayer(Protocol):
    """What is done to every message after a login: a checksum, or encryption."""

    def wrap(self, data: bytes) -> Iterator[bytes]:
        """A message as one frame or several."""
        ...

    def unwrap(self, frame: bytes) -> bytes:
        """What a frame holds; raises TProtocolException where it was changed."""
        ...


class Mechanism(Protocol):
    """A way to say who one is.

    Attributes:
        name: SASL's.
        said: who one is, and what is done to messages, for people.
        hint: what to do where the server says no.
        layer: once logged in; None where messages travel as they are.
    """

    name: str
    hint: str

    @property
    def layer(self) -> SaslLayer | None: ...

    @property
    def said(self) -> str: ...

    def respond(self, challenge: bytes) -> bytes:
        """The answer to what the server says; its first words are an answer to nothing."""
        ...

    def end(self, last: bytes) -> None:
        """The server says that one is logged in.

        Raises:
            AccessError: it has not shown that it knows the secret itself.
        """
        ...


class Plain:
    """A user and a password, as they are."""

    name = "PLAIN"
    hint = "check the settings user and password"
    layer: SaslLayer | None = None

    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password

    @property
    def said(self) -> str:
        return f"as {self._user} with a password"

    def respond(self, challenge: bytes) -> bytes:
        """Both, with nothing between them that they may hold."""
        if challenge:
            raise TProtocolException(TProtocolException.INVALID_DATA, "a question where none is asked")
        if "\0" in self._user + self._password:
            raise AccessError("user and password for the metastore cannot be sent", "a NUL is in them", self.hint)
        return f"\0{self._user}\0{self._password}".encode()

    def end(self, last: bytes) -> None:
        """A server proves nothing here; that is what TLS is for."""


class SaslTransport(Frames):
    """A connection that is opened by logging in.

    Args:
        shown: the server's address, for messages.
        mechanism: used for one login.
    """

    def __init__(self, stream: Stream, shown: str, mechanism: Mechanism) -> None:
        super().__init__(stream)
        self._shown = shown
        self.mechanism = mechanism

    def open(self) -> None:
        """Connect, and log in.

        Raises:
            AccessError: the server does not let one in, or is not who it says it is.
            TProtocolException: it does not keep to the rules.
        """
        super().open()
        self._say(_START, self.mechanism.name.encode())
        self._say(_OK, self.mechanism.respond(b""))
        for _ in range(_MOST_ROUNDS):
            status, words = self._hear()
            if status == _COMPLETE:
                self.mechanism.end(words)
                return
            if status != _OK:
                raise AccessError(
                    f"the metastore {self._shown} does not let one in {self.mechanism.said}",
                    printable(words[:_MOST_WORDS].decode("utf-8", "replace")),
                    self.mechanism.hint,
                )
            self._say(_OK, self.mechanism.respond(words))
        raise TProtocolException(TProtocolException.INVALID_DATA, "a login without an end")

    def _say(self, status: int, words: bytes) -> None:
        self._stream.write(bytes([status]) + len(words).to_bytes(4, "big") + words)

    def _hear(self) -> tuple[int, bytes]:
        head = self._stream.readAll(5)
        status, size = head[0], int.from_bytes(head[1:], "big")
        if status not in (_OK, _BAD, _ERROR, _COMPLETE) or size > _MOST_BYTES:
            raise TProtocolException(
                TProtocolException.INVALID_DATA, f"no answer to a login: status {status}, {size} bytes"
            )
        return status, self._stream.readAll(size)

    def _wrapped(self, data: bytes) -> Iterator[bytes]:
        return self.mechanism.layer.wrap(data) if self.mechanism.layer else super()._wrapped(data)

    def _unwrapped(self, frame: bytes) -> bytes:
        return self.mechanism.layer.unwrap(frame) if self.mechanism.layer else frame


def chosen_protection(wanted: tuple[Protection, ...], offered: set[Protection], shown: str) -> Protection:
    """The first that is wanted and offered; else the weakest that is more than the least of the wanted.

    Raises:
        RefusedError: the server offers less.
    """
    for one in wanted:
        if one in offered:
            return one
    order = list(Protection)
    stronger = [one for one in order[min(map(order.index, wanted)) :] if one in offered]
    if stronger:
        return stronger[0]
    raise RefusedError(
        f"the metastore {shown} protects messages less than is wanted",
        f"it offers {', '.join(sorted(offered)) or 'nothing'}, and {', '.join(wanted)} is wanted",
        "the setting protection, or hadoop.rpc.protection in core-site.xml",
    )
