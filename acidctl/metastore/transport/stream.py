"""Connect to a metastore by a socket, perhaps with TLS, and limit the time and size of answers; frame messages."""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO

from thrift.protocol.TProtocol import TProtocolException
from thrift.transport.TTransport import CReadableTransport, TTransportBase, TTransportException

from acidctl.base.errors import AccessError, EnvironmentProblem
from acidctl.base.printable import printable
from acidctl.metastore.errors import MetastoreError, Unreachable
from acidctl.metastore.settings import Tls

MOST_BYTES = 256 << 20
"""Largest answer; by default, Hive's own server sends at most 100 MB per message."""

_PIECE = 1 << 20
_EMPTY = 100  # consecutive empty frames after which the answer counts as malformed

_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST")
_SASL_REFUSALS = (3, 4)
_CONVERT = "keytool -list -rfc -keystore {} > ca.pem, and the setting ca=ca.pem"
_EXPIRED, _NOT_YET, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64
_MOST_WORDS = 64 << 10


class Stream(TTransportBase):  # type: ignore[misc]
    """A connection; call :meth:`begin` before each request.

    Args:
        shown: the server's address, for messages.
        context: for TLS; None to use no TLS.
        is_sasl, is_http: whether the server should answer in SASL's frames, or by HTTP.

    Attributes:
        is_fresh: whether it is open, and nothing was sent yet.
        encryption: the version of TLS; empty without TLS.
    """

    def __init__(
        self,
        shown: str,
        host: str,
        port: int,
        context: ssl.SSLContext | None = None,
        *,
        is_sasl: bool = False,
        is_http: bool = False,
    ) -> None:
        self._shown = shown
        self._address = (host, port)
        self._context = context
        self._is_sasl = is_sasl
        self._is_http = is_http
        self.is_fresh = False
        self.encryption = ""
        self._socket: socket.socket | None = None
        self._received = 0
        self._is_first = True
        self.begin(60)

    def begin(self, seconds: float) -> None:
        """Begin a request: the limits for the time and size of its answer count from now."""
        self._seconds = seconds
        self._ends = time.monotonic() + seconds
        self._received = 0

    def isOpen(self) -> bool:  # noqa: N802 - Thrift's name
        """Return whether the socket is open."""
        return self._socket is not None

    def open(self) -> None:
        """Connect.

        Raises:
            OSError: no server listens, time ran out, or the server's certificate is not trusted.
            Unreachable: the server does not use TLS.
        """
        self.close()
        self._is_first = True
        raw = socket.create_connection(self._address, self._seconds)
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            raw.settimeout(self._time_left())
            self._socket = self._secured(raw) if self._context else raw
            self.is_fresh = True
        except BaseException:
            raw.close()
            raise

    def _secured(self, raw: socket.socket) -> ssl.SSLSocket:
        assert self._context
        try:
            secured = self._context.wrap_socket(raw, server_hostname=self._address[0])
        except ssl.SSLCertVerificationError:
            raise
        except ssl.SSLError as error:
            if not isinstance(error, ssl.SSLEOFError) and error.reason not in _NOT_TLS:
                raise
            raise self._no_tls(str(error)) from error
        except ConnectionResetError as error:
            raise self._no_tls(str(error)) from error
        self.encryption = secured.version() or ""
        return secured

    def _no_tls(self, why: str) -> Unreachable:
        return Unreachable(
            f"the metastore {self._shown} does not speak TLS", why, "see whether it does: the setting tls; and its port"
        )

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
            self._socket = None
        self.is_fresh = False

    def read(self, size: int) -> bytes:
        """Return some bytes, at least one.

        Raises:
            OSError: the connection was lost, or time ran out.
            TTransportException: the server hung up.
            TProtocolException: the answer is too long.
            MetastoreError: the server uses another protocol.
        """
        if self._socket is None:
            raise TTransportException(TTransportException.NOT_OPEN, "it is closed")
        self._socket.settimeout(self._time_left())
        data = self._socket.recv(min(size, _PIECE))
        if not data:
            where = "in the middle of an answer" if self._received else "without an answer"
            raise TTransportException(TTransportException.END_OF_FILE, f"it hung up {where}")
        if self._is_first:
            self._is_first = False
            self._refuse_other(data)
        self._received += len(data)
        if self._received > MOST_BYTES:
            raise TProtocolException(TProtocolException.SIZE_LIMIT, f"an answer of more than {MOST_BYTES >> 20} MB")
        return data

    def has_come(self) -> bool:
        """Return whether something can be read now; between two requests, this means that the server hung up."""
        if self._socket is None:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def _time_left(self) -> float:
        seconds = self._ends - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("time ran out")
        return seconds

    def readAll(self, size: int) -> bytes:  # noqa: N802 - Thrift's name
        """Return `size` bytes; memory is allocated only as they arrive."""
        if size > MOST_BYTES:
            raise TProtocolException(TProtocolException.SIZE_LIMIT, f"a message of {size} bytes")
        data = bytearray()
        while len(data) < size:
            data += self.read(size - len(data))
        return bytes(data)

    def write(self, data: bytes) -> None:
        """Send data."""
        if self._socket is None:
            raise TTransportException(TTransportException.NOT_OPEN, "it is closed")
        self.is_fresh = False
        self._socket.settimeout(self._time_left())
        self._socket.sendall(data)

    def flush(self) -> None:
        """Do nothing, as no data is buffered."""

    def _refuse_other(self, data: bytes) -> None:
        """Raise if the first bytes of an answer belong to another protocol."""
        if data[:2] == b"\x15\x03" and not self._context:
            what = f"the metastore {self._shown} speaks TLS"
            raise MetastoreError(what, "it was not asked with TLS", "the setting tls=true")
        if data[:5] == b"HTTP/" and not self._is_http:
            hint = "write its address as http://HOST:PORT/metastore"
            raise MetastoreError(f"the metastore {self._shown} speaks HTTP", "", hint)
        is_refusal = data[0] in _SASL_REFUSALS and len(data) > 4 and int.from_bytes(data[1:5], "big") < _MOST_WORDS
        if is_refusal and not self._is_sasl and not self._is_http:
            hint = "the setting auth=kerberos, token or plain"
            raise MetastoreError(f"the metastore {self._shown} wants a login", "none is given", hint)


class Frames(TTransportBase, CReadableTransport):  # type: ignore[misc]
    """Messages preceded by their length, Thrift's framed transport, also used after a login with SASL."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._in = BytesIO()
        self._out = bytearray()

    def isOpen(self) -> bool:  # noqa: N802 - Thrift's name
        """Return whether the stream is open."""
        return self._stream.isOpen()

    def open(self) -> None:
        """Connect."""
        self._stream.open()

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    def read(self, size: int) -> bytes:
        """Return some bytes of a frame, at least one."""
        return self._in.read(size) or self._next().read(size)

    def write(self, data: bytes) -> None:
        """Buffer data for the next message."""
        self._out += data

    def flush(self) -> None:
        """Send the buffered data as one message."""
        data, self._out = bytes(self._out), bytearray()
        self._stream.write(b"".join(len(part).to_bytes(4, "big") + part for part in self._wrapped(data)))

    @property
    def cstringio_buf(self) -> BytesIO:
        """Return the buffer that the accelerator reads."""
        return self._in

    def cstringio_refill(self, read: bytes, wanted: int) -> BytesIO:
        """Return a buffer with at least `wanted` bytes that begins with `read`."""
        parts, size = [read], len(read)
        while size < wanted:
            parts.append(self._next().getvalue())
            size += len(parts[-1])
            if size > 2 * MOST_BYTES:
                raise TProtocolException(TProtocolException.SIZE_LIMIT, f"a text of {wanted} bytes")
        self._in = BytesIO(b"".join(parts))
        return self._in

    def _wrapped(self, data: bytes) -> Iterator[bytes]:
        yield data

    def _unwrapped(self, frame: bytes) -> bytes:
        return frame

    def _next(self) -> BytesIO:
        """Return the next frame that is not empty."""
        for _ in range(_EMPTY):
            size = int.from_bytes(self._stream.readAll(4), "big")
            if size > MOST_BYTES:
                raise TProtocolException(TProtocolException.SIZE_LIMIT, f"a frame of {size} bytes")
            if frame := self._unwrapped(self._stream.readAll(size)):
                self._in = BytesIO(frame)
                return self._in
        raise TProtocolException(TProtocolException.INVALID_DATA, "nothing but empty frames")


def context_of(tls: Tls) -> ssl.SSLContext:
    """Return a TLS context that checks names and certificates.

    Raises:
        EnvironmentProblem: a file cannot be used.
    """
    shown = ""
    try:
        shown = tls.authority
        context = ssl.create_default_context(cafile=tls.authority or None)
        if tls.certificate:
            shown = tls.certificate
            # Without this function, Python would prompt for a password on the terminal.
            context.load_cert_chain(tls.certificate, tls.key or None, password=_no_password)
    except (OSError, ssl.SSLError, ValueError) as error:
        why = f"{printable(shown)}: {getattr(error, 'strerror', None) or error}"
        hint = f"give PEM files, a key without a password; from a Java keystore: {_CONVERT.format('STORE')}"
        raise EnvironmentProblem("the certificates for the metastore cannot be used", why, hint) from error
    return context


def _no_password() -> str:
    raise ValueError("the key has a password")


def not_trusted(server: str, error: ssl.SSLCertVerificationError, tls: Tls | None) -> AccessError:
    """Return the error for a certificate with a wrong name, an unknown CA, or outside its validity."""
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
