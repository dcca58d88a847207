"""Speak Thrift over HTTP: each call is a POST request, answered with status 200.

It ignores the environment's proxies, like Hive's own client, because a metastore is inside the network.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from typing import Any, cast

from thrift.protocol.TProtocol import TProtocolException
from thrift.transport.TTransport import TTransportException

from acidctl.base.errors import AccessError
from acidctl.base.printable import printable
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.settings import Address
from acidctl.metastore.transport.stream import MOST_BYTES, Frames, Stream

_MOST_WORDS = 300


class HttpTransport(Frames):
    """A transport that opens a connection for each request, so that it never uses a stale one.

    Args:
        headers: of every request.
        login: returns the header ``Authorization`` for each request; None to send no such header.
        hint: what to do if the server refuses the login.
    """

    def __init__(
        self, stream: Stream, address: Address, headers: Mapping[str, str], login: Callable[[], str] | None, hint: str
    ) -> None:
        super().__init__(stream)
        self._address = address
        self._headers = headers
        self._login = login
        self._hint = hint

    def flush(self) -> None:
        """Send the request, and read the whole answer.

        Raises:
            AccessError: the server refuses the login.
            MetastoreError: it does not answer as a metastore.
            OSError, TTransportException: the connection was lost.
        """
        body, self._out = bytes(self._out), bytearray()
        headers = {"Content-Type": "application/x-thrift", "User-Agent": "acidctl", "Connection": "close"}
        headers |= self._headers
        if self._login:
            headers["Authorization"] = self._login()
        connection = HTTPConnection(self._address.host, self._address.port)
        if not self._stream.is_fresh:
            self._stream.open()
        connection.sock = cast(Any, _Socket(self._stream))
        try:
            connection.request("POST", self._address.path or "/", body, headers)
            self._in = io.BytesIO(self._body(connection.getresponse()))
        except ConnectionError as error:
            raise TTransportException(TTransportException.END_OF_FILE, str(error), error) from error
        except IncompleteRead as error:
            raise _cut() from error
        except HTTPException as error:
            raise TProtocolException(TProtocolException.INVALID_DATA, f"not HTTP: {error!r}"[:_MOST_WORDS]) from error
        finally:
            self._stream.close()

    def cstringio_refill(self, read: bytes, wanted: int) -> io.BytesIO:  # noqa: ARG002 - Thrift's names
        """Raise, as the whole answer is in the buffer."""
        raise _cut()

    def _next(self) -> io.BytesIO:
        raise _cut()

    def _body(self, response: HTTPResponse) -> bytes:
        if response.status == 200:
            return response.read(MOST_BYTES)
        url = self._address.url
        words = response.read(_MOST_WORDS).decode("utf-8", "replace") if response.status != 401 else ""
        why = printable(f"{response.status} {response.reason}: {words}".strip(": ")[:_MOST_WORDS])
        if response.status in (401, 403, 407):
            raise AccessError(f"the metastore {url} refuses the login", why, self._hint)
        if response.status in (502, 503, 504):
            raise TTransportException(TTransportException.UNKNOWN, why)
        raise MetastoreError(f"{url} does not answer as a metastore over HTTP", why, "check its address and path")


def _cut() -> TTransportException:
    return TTransportException(TTransportException.END_OF_FILE, "an answer that ends in the middle")


class _Socket:
    """The methods of a socket that http.client calls."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def sendall(self, data: Any) -> None:
        self._stream.write(bytes(data))

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002 - Python's name
        return io.BufferedReader(_Reader(self._stream), 64 << 10)

    def close(self) -> None:
        """Keep the stream open: http.client reads the response after this."""


class _Reader(io.RawIOBase):
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except TTransportException as error:
            if error.type == TTransportException.END_OF_FILE:
                return 0
            raise
        buffer[: len(data)] = data
        return len(data)
