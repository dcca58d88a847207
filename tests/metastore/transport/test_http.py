"""Thrift in HTTP: what a server, or a proxy before it, answers that is no answer of a metastore."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.metastore.fake_metastore import answer_bytes

from acidctl.base.errors import AccessError, AcidctlError, RefusedError, UsageProblem
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import MetastoreError, Unreachable
from acidctl.metastore.settings import find_settings

VERSION = answer_bytes(interface.GET_VERSION, "4.0.1", 1)


@contextmanager
def web_server(answer: Callable[[bytes], bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """Answers each request, as a test says it, and hangs up; gives its address and the requests."""
    listener = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError, ValueError):
                    if request := _request(connection):
                        heard.append(request)
                        connection.sendall(answer(request))
                        connection.shutdown(socket.SHUT_WR)
                        connection.recv(1)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/metastore", heard
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += (more := connection.recv(65536))
        if not more:
            return b""
    head, _, body = data.partition(b"\r\n\r\n")
    size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    while len(body) < size:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def version(answer: Callable[[bytes], bytes] | bytes, **given: str) -> str:
    """What a client takes for the server's version."""
    with web_server(answer if callable(answer) else lambda _: answer) as (address, _):
        return str(client(address, **given).call(interface.GET_VERSION))


def client(address: str, **given: str) -> Metastore:
    found = find_settings({"uris": address, "timeout": "2", "connect-timeout": "2", **given}, {})
    assert found
    return Metastore(found, rounds=1)


def response(status: str, body: bytes, *headers: str, length: int | None = -1) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers]
    if length is not None:
        lines.append(f"Content-Length: {len(body) if length == -1 else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(*parts: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + end


def test_an_answer_comes_with_its_length_without_one_and_in_chunks() -> None:
    assert version(response("200 OK", VERSION)) == "4.0.1"
    assert version(response("200 OK", VERSION, length=None)) == "4.0.1"
    assert version(chunked(VERSION[:7], VERSION[7:])) == "4.0.1"
    assert version(b"HTTP/1.1 100 Continue\r\n\r\n" + response("200 OK", VERSION)) == "4.0.1"


@pytest.mark.parametrize("length", [len(VERSION) - 1, 1, 0])
def test_a_length_that_is_too_short_cuts_the_answer(length: int) -> None:
    with pytest.raises(Unreachable):
        version(response("200 OK", VERSION, length=length))


def test_a_length_that_is_too_long_does_no_harm_to_what_is_whole_and_a_cut_answer_is_none() -> None:
    assert version(response("200 OK", VERSION, length=5000)) == "4.0.1"
    with pytest.raises(Unreachable):
        version(response("200 OK", VERSION[:-3], length=5000))
    with pytest.raises(Unreachable):
        version(chunked(VERSION[:9], end=b""))


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "407 Proxy Authentication Required"])
def test_who_is_not_let_in_is_told_so(status: str) -> None:
    with pytest.raises(AccessError, match="refuses the login"):
        version(response(status, b"<html>\x1b[2J who are you</html>"))


@pytest.mark.parametrize("status", ["502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"])
def test_a_gateway_without_a_server_is_a_server_that_is_gone(status: str) -> None:
    with pytest.raises(Unreachable, match=status[:3]):
        version(response(status, b"try later"))


@pytest.mark.parametrize(
    "status", ["201 Created", "204 No Content", "301 Moved", "302 Found", "307 Temporary Redirect", "400 Bad Request",
               "404 Not Found", "429 Too Many Requests", "500 Server Error"],
)  # fmt: skip
def test_any_other_status_is_no_answer_and_no_redirection_is_followed(status: str) -> None:
    with pytest.raises(MetastoreError, match="does not answer as a metastore over HTTP") as refused:
        version(response(status, b"\x1b]0;title\x07 words" * 1000, "Location: http://127.0.0.1:1/elsewhere"))
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_a_compressed_answer_was_not_asked_for() -> None:
    with pytest.raises(MetastoreError):
        version(response("200 OK", gzip.compress(VERSION), "Content-Encoding: gzip"))
    with web_server(lambda _: response("200 OK", VERSION)) as (address, heard):
        client(address).call(interface.GET_VERSION)
    assert b"\r\naccept-encoding: identity\r\n" in heard[0].lower()


def test_headers_without_an_end_and_answers_without_an_end_are_given_up() -> None:
    with pytest.raises(AcidctlError):
        version(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000)
    with pytest.raises(AcidctlError):
        version(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000)
    with pytest.raises(AcidctlError):
        version(b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80), st.booleans())
def test_whatever_comes_the_error_is_ours(data: bytes, begins: bool) -> None:
    with pytest.raises(AcidctlError):
        version((b"HTTP/1.1 200 OK\r\n" if begins else b"") + data)


# --- what is sent ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers", ["a=b\r\nX: y", "a=b\nX: y", "a b=c", "a:=b", "=b", "a", "a=b\0", "a\r\nb=c", "a=\x1b[2J"]
)
def test_no_header_is_smuggled_in_by_a_setting(headers: str) -> None:
    with pytest.raises(UsageProblem, match="headers cannot be used") as refused:
        client("http://127.0.0.1:1/metastore", headers=headers)
    assert headers not in str(refused.value) or headers == "a"


def test_no_header_is_smuggled_in_by_a_user_or_a_path() -> None:
    with web_server(lambda _: response("200 OK", VERSION)) as (address, heard):
        for given_ in (
            {"user": "me\r\nX-Evil: yes"},
            {"auth": "jwt", "token": "a\r\nX-Evil: yes", "plain-without-tls": "true"},
        ):
            with pytest.raises(AcidctlError):
                client(address, **given_).call(interface.GET_VERSION)
        for path in ("/a b", "/a\r\nX-Evil: yes", "/a\x00"):
            with pytest.raises(AcidctlError):
                client(address.replace("/metastore", path)).call(interface.GET_VERSION)
    assert not any(b"X-Evil" in request for request in heard)


def test_secrets_are_sent_over_tls_only() -> None:
    for given_ in (
        {"auth": "jwt", "token": "t"},
        {"auth": "plain", "user": "u", "password": "p"},
        {"headers": "Authorization=Bearer x"},
        {"headers": "Cookie=x"},
    ):
        with pytest.raises(RefusedError, match="not sent"):
            client("http://127.0.0.1:1/metastore", **given_).call(interface.GET_VERSION)


def test_a_token_is_sent_and_never_told(capsys: pytest.CaptureFixture[str]) -> None:
    with web_server(lambda request: response("400 Bad", request)) as (address, heard):
        one = client(address, auth="jwt", token="ey.secret.token", **{"plain-without-tls": "true"})
        with pytest.raises(MetastoreError):
            one.call(interface.GET_VERSION)
    assert b"Authorization: Bearer ey.secret.token" in heard[0]
    assert "secret" not in repr(one.settings)
    assert set(one.settings.secrets) == {"ey.secret.token"}


def test_a_question_that_must_not_be_asked_twice_is_asked_once_whatever_comes() -> None:
    for answer in (
        b"",
        response("503 No", b""),
        response("500 No", b""),
        response("200 OK", b"x"),
        chunked(b"ab", end=b""),
    ):
        with web_server(lambda _, answer=answer: answer) as (address, heard):
            with pytest.raises(MetastoreError):
                client(address).call(interface.COMPACT, interface.CompactionRequest("db", "t"))
            assert len([one for one in heard if b"compact2" in one]) == 1
