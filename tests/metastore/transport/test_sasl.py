"""Logging in by SASL's frames: every way in which a server can break the rules ends with an error, and soon."""

from __future__ import annotations

import hmac
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import md5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thrift.protocol.TProtocol import TProtocolException

from acidctl.base.errors import AccessError, AcidctlError, RefusedError
from acidctl.hadoop.tokens import Token
from acidctl.metastore.connection import Connection
from acidctl.metastore.errors import MetastoreError, Unreachable
from acidctl.metastore.settings import MetastoreSettings, Protection, find_settings
from acidctl.metastore.transport import sasl_digest, transports
from acidctl.metastore.transport.sasl import Plain, chosen_protection
from acidctl.metastore.transport.sasl_digest import Digest, Sealed, Signed, _pairs, _rc4

TOKEN = Token(b"\0who", b"secret!", "HIVE_DELEGATION_TOKEN")
_START, _OK, _BAD, _ERROR, _COMPLETE = range(1, 6)


class Peer:
    """The other side of a login, as a test writes it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def hear(self) -> tuple[int, bytes]:
        head = self._read(5)
        return head[0], self._read(int.from_bytes(head[1:], "big"))

    def say(self, status: int, words: bytes, size: int | None = None) -> None:
        length = len(words) if size is None else size
        self._connection.sendall(bytes([status]) + length.to_bytes(4, "big") + words)

    def raw(self, data: bytes) -> None:
        self._connection.sendall(data)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += (more := self._connection.recv(size - len(data)))
            if not more:
                raise EOFError
        return data


@contextmanager
def peer(talk: Callable[[Peer], None]) -> Iterator[str]:
    """A server for one connection after the other."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError, EOFError):
                    talk(Peer(connection))

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"thrift://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def settings_of(address: str, **given: str) -> MetastoreSettings:
    plain = {"user": "alice", "password": "wonderland", "plain-without-tls": "true"}
    found = find_settings({"uris": address, "timeout": "1", "connect-timeout": "1", **(given or plain)}, {})
    assert found
    return found


def log_in(talk: Callable[[Peer], None], **given: str) -> Connection:
    with peer(talk) as address:
        known = settings_of(address, **given)
        return Connection(known, known.addresses[0])


# --- PLAIN, and the frames of every mechanism -----------------------------------------------------------------------


def test_plain_says_mechanism_user_and_password_and_is_done() -> None:
    heard = []

    def talk(server: Peer) -> None:
        heard.extend([server.hear(), server.hear()])
        server.say(_COMPLETE, b"")

    log_in(talk).close()
    assert heard == [(_START, b"PLAIN"), (_OK, b"\0alice\0wonderland")]


@pytest.mark.parametrize("status", [_BAD, _ERROR])
def test_a_refusal_is_told_in_the_servers_words_and_never_with_the_password(status: int) -> None:
    def talk(server: Peer) -> None:
        server.hear(), server.hear()
        server.say(status, b"no such user \x1b[2J" + b"x" * 5000)

    with pytest.raises(AccessError) as refused:
        log_in(talk)
    assert "no such user" in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 1000
    assert "wonderland" not in str(refused.value)


@pytest.mark.parametrize("status", [0, _START, 6, 7, 128, 255])
def test_a_status_that_there_is_not_is_refused(status: int) -> None:
    def talk(server: Peer) -> None:
        server.hear(), server.hear()
        server.say(status, b"")

    with pytest.raises(MetastoreError):
        log_in(talk)


@pytest.mark.parametrize("size", [(1 << 20) + 1, 2**31, 2**32 - 1])
def test_words_of_a_login_are_never_long(size: int) -> None:
    def talk(server: Peer) -> None:
        server.hear(), server.hear()
        server.say(_OK, b"", size)

    with pytest.raises(MetastoreError, match="no answer to a login"):
        log_in(talk)


def test_questions_without_an_end_are_given_up() -> None:
    asked = []

    def talk(server: Peer) -> None:
        server.hear()
        while True:
            asked.append(server.hear())
            server.say(_OK, b"")

    class Endless(Plain):
        def respond(self, challenge: bytes) -> bytes:
            return b""

    with pytest.MonkeyPatch.context() as patch, pytest.raises(MetastoreError, match="the login does not end"):
        patch.setattr(transports, "Plain", Endless)
        log_in(talk)
    assert len(asked) < 20


def test_plain_answers_no_question() -> None:
    def talk(server: Peer) -> None:
        server.hear(), server.hear()
        server.say(_OK, b"and now?")
        server.hear()

    with pytest.raises(MetastoreError, match="an unexpected challenge"):
        log_in(talk)


@pytest.mark.parametrize("end", range(6))
def test_a_server_that_goes_in_the_middle_of_a_login_is_gone(end: int) -> None:
    def talk(server: Peer) -> None:
        server.hear()
        server.raw(bytes([_COMPLETE, 0, 0, 0, 1, 0])[:end])

    with pytest.raises(Unreachable):
        log_in(talk)


def test_a_server_that_says_nothing_is_waited_for_as_long_as_is_said() -> None:
    ended = threading.Event()

    def talk(server: Peer) -> None:
        ended.wait(20)

    try:
        with pytest.raises(Unreachable, match="does not answer"):
            log_in(talk)
    finally:
        ended.set()


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=40))
def test_whatever_a_server_says_first_the_error_is_ours(data: bytes) -> None:
    def talk(server: Peer) -> None:
        server.hear(), server.hear()
        server.raw(data)

    try:
        log_in(talk).close()
    except AcidctlError:
        return
    assert data[:1] == bytes([_COMPLETE])


def test_a_nul_in_a_password_is_not_sent() -> None:
    with pytest.raises(AccessError, match="cannot be sent"):
        Plain("alice", "a\0b").respond(b"")


def test_a_password_is_not_sent_in_the_open() -> None:
    with peer(lambda server: None) as address:
        found = find_settings({"uris": address, "user": "alice", "password": "wonderland"}, {})
        assert found
        with pytest.raises(RefusedError, match="not sent") as refused:
            Connection(found, found.addresses[0])
    assert "wonderland" not in str(refused.value)


# --- which protection -----------------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from(list(Protection)), min_size=1, unique=True),
    st.frozensets(st.sampled_from(list(Protection))),
)
def test_protection_is_never_less_than_the_least_that_is_wanted(
    wanted: list[Protection], offered: frozenset[Protection]
) -> None:
    order = list(Protection)
    least = min(map(order.index, wanted))
    try:
        chosen = chosen_protection(tuple(wanted), set(offered), "server")
    except RefusedError:
        assert all(order.index(one) < least for one in offered)
        return
    assert chosen in offered
    assert order.index(chosen) >= least
    assert chosen in wanted or not offered & set(wanted)


# --- DIGEST-MD5 -----------------------------------------------------------------------------------------------------


def challenge(qop: str = "auth", **more: str) -> bytes:
    said = {"realm": '"default"', "nonce": '"OA6MG9tEQGm2hh"', "charset": "utf-8", "algorithm": "md5-sess", **more}
    return ",".join([f'qop="{qop}"', *(f"{key}={value}" for key, value in said.items())]).encode()


def test_the_digest_is_that_of_rfc_2831(monkeypatch: pytest.MonkeyPatch) -> None:
    # Its example of IMAP: chris, secret, elwood.innosoft.com.
    monkeypatch.setattr(sasl_digest.secrets, "token_hex", lambda _: "OA6MHXh6VqTrRk")
    monkeypatch.setattr(sasl_digest, "_URI", "imap/elwood.innosoft.com")
    login = Digest("server", TOKEN, (Protection.AUTHENTICATION,))
    login._user, login._password = "chris", "secret"
    answer = _pairs(
        login.respond(b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8')
    )
    assert answer["response"] == "d388dad90d4bbd760a152321f2143af7"
    assert answer["nc"] == "00000001"
    login.end(b"rspauth=ea40f60335c427b5527b84dbabcdfffd")


def test_a_server_that_does_not_prove_the_token_is_not_believed() -> None:
    for last in (b"", b"rspauth=" + b"0" * 32, b"rspauth=", b"other=1", b'rspauth="\xff"'):
        login = Digest("server", TOKEN, (Protection.AUTHENTICATION,))
        login.respond(challenge())
        with pytest.raises(AccessError, match="does not know the delegation token"):
            login.end(last)


def test_a_server_that_lets_everybody_in_at_once_has_proven_nothing() -> None:
    with pytest.raises(AccessError, match="may be another server"):
        Digest("server", TOKEN, (Protection.AUTHENTICATION,)).end(b"")

    def talk(server: Peer) -> None:
        server.hear(), server.hear()
        server.say(_COMPLETE, b"")

    with pytest.raises(AccessError, match="may be another server"):
        log_in(talk, auth="token", token=TOKEN.as_text())


@pytest.mark.parametrize("offer", ["auth", "auth,auth-int", "none", ""])
def test_privacy_that_is_wanted_is_not_talked_down(offer: str) -> None:
    login = Digest("server", TOKEN, (Protection.PRIVACY,))
    with pytest.raises(RefusedError, match="less than is wanted"):
        login.respond(challenge(offer))


def test_privacy_without_a_cipher_that_is_known_is_none() -> None:
    login = Digest("server", TOKEN, (Protection.PRIVACY,))
    with pytest.raises(RefusedError):
        login.respond(challenge("auth-conf", cipher='"des,3des"'))


@pytest.mark.parametrize(
    "words",
    [b"x", b"nonce", b'nonce="', b"=", b'realm="a"', b"algorithm=md5,nonce=1", b",,,", b"\xff\xfe", b'nonce=""'],
)
def test_words_that_are_no_challenge_are_refused(words: bytes) -> None:
    with pytest.raises((TProtocolException, AcidctlError)):
        Digest("server", TOKEN, (Protection.AUTHENTICATION,)).respond(words)


@given(st.binary(max_size=60))
def test_any_challenge_is_answered_or_refused_in_our_words(words: bytes) -> None:
    with suppress(TProtocolException, AcidctlError):
        Digest("server", TOKEN, (Protection.AUTHENTICATION,)).respond(words)


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=10))
def test_quotes_in_a_realm_add_nothing_to_the_answer(realm: str) -> None:
    escaped = realm.replace("\\", "\\\\").replace('"', '\\"')
    answer = _pairs(
        Digest("server", TOKEN, (Protection.AUTHENTICATION,)).respond(challenge(realm=f'"{escaped}"', nonce='"n"'))
    )
    assert answer["realm"] == realm
    assert answer["username"] == b64encode(TOKEN.identifier).decode()
    assert set(answer) == {
        "charset", "username", "realm", "nonce", "nc", "cnonce", "digest-uri", "response", "qop"
    }  # fmt: skip


def test_rc4_is_rc4() -> None:
    # Of RFC 6229, a key of 40 bits.
    stream = _rc4(bytes.fromhex("0102030405"))
    assert bytes(next(stream) for _ in range(16)).hex() == "b2396305f03dc027ccc3524a0a1118a8"


def other_side(layer: type[Signed], key: bytes) -> Signed:
    """The server's end of a layer: its keys are the client's, the other way round."""
    made = layer(key) if layer is Signed else Sealed(key, 16)  # type: ignore[call-arg]
    made._own, made._servers = made._servers, made._own
    if isinstance(made, Sealed):
        made._out, made._in = made._in, made._out
    return made


def layer_of(layer: type[Signed], key: bytes) -> Signed:
    return layer(key) if layer is Signed else Sealed(key, 16)


@pytest.mark.parametrize("layer", [Signed, Sealed])
@given(messages=st.lists(st.binary(max_size=50), min_size=1, max_size=4))
def test_messages_of_a_layer_come_as_they_were_sent(layer: type[Signed], messages: list[bytes]) -> None:
    key = md5(b"key", usedforsecurity=False).digest()
    own, server = layer_of(layer, key), other_side(layer, key)
    for message in messages:
        assert [own.unwrap(frame) for frame in server.wrap(message)] == [message]


@pytest.mark.parametrize("layer", [Signed, Sealed])
@given(message=st.binary(max_size=30), at=st.integers(0, 100), bit=st.integers(0, 7), how=st.sampled_from("cdrs"))
def test_a_message_that_was_changed_repeated_or_left_out_is_refused(
    layer: type[Signed], message: bytes, at: int, bit: int, how: str
) -> None:
    key = md5(b"key", usedforsecurity=False).digest()
    own, server = layer_of(layer, key), other_side(layer, key)
    (first,), (second,) = server.wrap(message), server.wrap(message)
    if how == "c":
        changed = bytearray(first)
        changed[at % len(changed)] ^= 1 << bit
        frames = [bytes(changed)]
    elif how == "d":
        frames = [first, first]
    elif how == "s":
        frames = [first[: at % len(first)]]
    else:
        frames = [second]
    with pytest.raises(TProtocolException, match="changed on its way"):
        for frame in frames:
            own.unwrap(frame)


def test_a_mac_is_of_ten_bytes_and_of_the_servers_key() -> None:
    key = md5(b"key", usedforsecurity=False).digest()
    (frame,) = Signed(key).wrap(b"hello")
    magic = b"Digest session key to client-to-server signing key magic constant"
    mine = md5(key + magic, usedforsecurity=False).digest()
    assert frame == b"hello" + hmac.digest(mine, bytes(4) + b"hello", "md5")[:10] + b"\0\1" + bytes(4)
