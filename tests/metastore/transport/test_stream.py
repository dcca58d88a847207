"""The bytes to a server and back, and frames of them: time and memory have an end, whatever it does."""

from __future__ import annotations

import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TProtocol import TProtocolException
from thrift.transport.TTransport import TTransportException

from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.transport import stream as module
from acidctl.metastore.transport.stream import MOST_BYTES, Frames, Stream


@contextmanager
def connected(talk: Callable[[socket.socket], None], **given: bool) -> Iterator[Stream]:
    """A stream to a server that talks as a test says it, and hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                talk(connection)

    threading.Thread(target=serve, daemon=True).start()
    one = Stream("thrift://here", "127.0.0.1", listener.getsockname()[1], **given)
    one.begin(5)
    one.open()
    try:
        yield one
    finally:
        one.close()
        listener.close()


def saying(*parts: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        for part in parts:
            connection.sendall(part)

    return talk


# --- the stream -----------------------------------------------------------------------------------------------------


def test_bytes_come_as_they_were_sent_however_they_are_cut() -> None:
    with connected(saying(b"ab", b"cdef", b"g")) as one:
        assert one.readAll(3) == b"abc"
        assert one.readAll(4) == b"defg"
        with pytest.raises(TTransportException, match="in the middle of an answer"):
            one.read(1)


def test_a_server_that_hangs_up_at_once_gave_no_answer() -> None:
    with connected(saying()) as one, pytest.raises(TTransportException, match="without an answer"):
        one.read(1)


def test_nobody_there_is_an_error_of_the_system() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    one = Stream("thrift://here", "127.0.0.1", port)
    one.begin(2)
    with pytest.raises(OSError):
        one.open()
    assert not one.isOpen()
    for ask in (lambda: one.read(1), lambda: one.write(b"x")):
        with pytest.raises(TTransportException, match="closed"):
            ask()


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_server_that_drips_is_given_up_when_its_time_is_over(size: int) -> None:
    def drip(connection: socket.socket) -> None:
        while True:
            connection.sendall(bytes(size))
            time.sleep(0.02)

    with connected(drip) as one:
        one.begin(0.5)
        with pytest.raises(TimeoutError):
            one.readAll(100_000_000)


def test_a_server_that_does_not_listen_is_given_up() -> None:
    ended = threading.Event()
    with connected(lambda _: ended.wait(10) and None) as one:
        one.begin(0.5)
        with pytest.raises(TimeoutError):
            one.write(bytes(50 << 20))
    ended.set()


def test_what_is_announced_takes_no_memory_and_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(saying(b"abc")) as one:
        tracemalloc.start()
        with pytest.raises(TTransportException):
            one.readAll(200 << 20)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
        tracemalloc.stop()
        with pytest.raises(TProtocolException):
            one.readAll(MOST_BYTES + 1)
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    with connected(saying(bytes(3000))) as one, pytest.raises(TProtocolException, match="more than"):
        for _ in range(10):
            one.read(500)


def test_an_end_between_two_questions_is_noticed() -> None:
    go_on, done = threading.Event(), threading.Event()

    def talk(connection: socket.socket) -> None:
        connection.sendall(b"x")
        go_on.wait(5)
        connection.close()
        done.set()

    with connected(talk) as one:
        assert one.readAll(1) == b"x"
        assert not one.has_come()
        go_on.set()
        done.wait(5)
        end = time.monotonic() + 5
        while not one.has_come() and time.monotonic() < end:
            time.sleep(0.01)
        assert one.has_come()
    assert not one.has_come(), "it is closed by us"


@pytest.mark.parametrize(
    ("data", "given_", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", {}, "speaks HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x16", {}, "speaks TLS"),
        (b"\x04\x00\x00\x00\x11Invalid status -128", {}, "wants a login"),
        (b"\x03\x00\x00\x00\x05PLAIN", {}, "wants a login"),
    ],
)
def test_a_server_that_speaks_something_else_is_told_by_its_first_bytes(
    data: bytes, given_: dict[str, bool], said: str
) -> None:
    with connected(saying(data), **given_) as one, pytest.raises(MetastoreError, match=said):
        one.read(100)
    with connected(saying(data), is_sasl=True, is_http=True) as one, suppress(MetastoreError):
        assert one.read(100)[:1] == data[:1]


# --- frames ---------------------------------------------------------------------------------------------------------


class Fed:
    """In place of a stream."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.sent = b""

    def readAll(self, size: int) -> bytes:
        if size > len(self.data):
            raise TTransportException(TTransportException.END_OF_FILE, "it hung up")
        found, self.data = self.data[:size], self.data[size:]
        return found

    def write(self, data: bytes) -> None:
        self.sent += data


def frames(data: bytes) -> Frames:
    return Frames(Fed(data))  # type: ignore[arg-type]


def framed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


@given(st.lists(st.binary(max_size=20), max_size=8), st.lists(st.integers(1, 30), min_size=1, max_size=20))
def test_frames_are_one_message_however_they_are_cut_and_read(parts: list[bytes], sizes: list[int]) -> None:
    whole = b"".join(parts)
    one, found = frames(framed(*parts)), b""
    for size in sizes * 40:
        if len(found) == len(whole):
            break
        found += one.read(min(size, len(whole) - len(found)))
    assert found == whole[: len(found)]
    assert frames(framed(*parts)).cstringio_refill(b"", len(whole)).getvalue() == whole if whole else True


@given(st.binary(max_size=50))
def test_what_is_written_goes_as_one_frame(data: bytes) -> None:
    fed = Fed(b"")
    one = Frames(fed)  # type: ignore[arg-type]
    for byte in data:
        one.write(bytes([byte]))
    one.flush()
    one.flush()
    assert fed.sent == framed(data, b"")


@pytest.mark.parametrize("size", [MOST_BYTES + 1, 2**31, 2**32 - 1])
def test_a_frame_is_never_longer_than_an_answer(size: int) -> None:
    with pytest.raises(TProtocolException, match="a frame of"):
        frames(size.to_bytes(4, "big")).read(1)


def test_empty_frames_without_an_end_are_no_answer() -> None:
    with pytest.raises(TProtocolException, match="empty frames"):
        frames(bytes(4 * 1000)).read(1)
    assert frames(framed(b"", b"", b"x")).read(1) == b"x"


@pytest.mark.parametrize("end", range(9))
def test_frames_that_end_anywhere_are_an_end(end: int) -> None:
    with pytest.raises(TTransportException):
        one = frames(framed(b"abcde")[:end])
        for _ in range(6):
            one.read(5)
            one.cstringio_refill(b"", 5)
