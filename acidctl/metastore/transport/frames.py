"""Messages preceded by their length: Thrift's framed transport, also used after a login with SASL."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

from thrift.protocol.TProtocol import TProtocolException
from thrift.transport.TTransport import CReadableTransport, TTransportBase

from acidctl.metastore.transport.stream import MOST_BYTES, Stream

_EMPTY = 100
"""Consecutive empty frames after which the answer counts as malformed."""


class Frames(TTransportBase, CReadableTransport):  # type: ignore[misc]
    """A framed transport that Thrift's accelerator can read."""

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
        """The buffer that the accelerator reads."""
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
