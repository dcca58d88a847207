"""A line to a metastore that twists answers: other types, lengths, counts, another call's answer, half of one.

It knows Thrift's binary protocol and nothing of Hive: an answer is a tree of fields, and each twist changes what the
bytes say of one node.

    with TwistedLine(fake.address, twist) as line:
        acidctl("ls", "--metastore", line.address, "hive:sales.orders")
"""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

_STOP, _BOOL, _BYTE, _DOUBLE, _I16, _I32, _I64, _STRING, _STRUCT, _MAP, _SET, _LIST = (
    0,
    2,
    3,
    4,
    6,
    8,
    10,
    11,
    12,
    13,
    14,
    15,
)
_SIZES = {_BOOL: 1, _BYTE: 1, _DOUBLE: 8, _I16: 2, _I32: 4, _I64: 8}
_REPLY, _EXCEPTION = 2, 3
_LENGTHS = (-1, -(2**31), 2**31 - 1, 300 << 20, 10_000_000, 0)


@dataclass
class Node:
    """A value of an answer, as the bytes have it.

    Attributes:
        code: its type.
        value: bytes of a scalar or text; fields of a struct; elements of a list or set; pairs of a map.
        inner: the types of elements, or of keys and values.
        claimed: the type, length or count that the bytes claim, if another than the right one.
    """

    code: int
    value: Any
    inner: tuple[int, ...] = ()
    claimed: dict[str, int] = field(default_factory=dict)
    raw: bytes | None = None

    def nodes(self) -> Iterator[Node]:
        yield self
        if self.code == _STRUCT:
            for _, node in self.value:
                yield from node.nodes()
        elif self.code in (_LIST, _SET):
            for node in self.value:
                yield from node.nodes()
        elif self.code == _MAP:
            for key, value in self.value:
                yield from key.nodes()
                yield from value.nodes()

    def written(self) -> bytes:
        if self.raw is not None:
            return self.raw
        if self.code in _SIZES:
            return bytes(self.value)
        if self.code == _STRING:
            return struct.pack(">i", self.claimed.get("length", len(self.value))) + self.value
        if self.code == _STRUCT:
            parts = [
                struct.pack(">bh", node.claimed.get("type", node.code), node.claimed.get("number", number))
                + node.written()
                for number, node in self.value
            ]
            return b"".join(parts) + (b"" if "no stop" in self.claimed else b"\0")
        count = self.claimed.get("count", len(self.value))
        inner = [self.claimed.get("inner", code) for code in self.inner]
        if self.code == _MAP:
            pairs = b"".join(key.written() + value.written() for key, value in self.value)
            return struct.pack(">bbi", *inner, count) + pairs
        return struct.pack(">bi", *inner, count) + b"".join(node.written() for node in self.value)


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise EOFError
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form: str) -> int:
        return int(struct.unpack(f">{form}", self.take(struct.calcsize(f">{form}")))[0])

    def node(self, code: int) -> Node:
        if code in _SIZES:
            return Node(code, self.take(_SIZES[code]))
        if code == _STRING:
            return Node(code, self.take(self.number("i")))
        if code == _STRUCT:
            fields = []
            while inner := self.number("b"):
                number = self.number("h")
                fields.append((number, self.node(inner)))
            return Node(code, fields)
        if code == _MAP:
            kinds = self.number("b"), self.number("b")
            return Node(code, [(self.node(kinds[0]), self.node(kinds[1])) for _ in range(self.number("i"))], kinds)
        kind = self.number("b")
        return Node(code, [self.node(kind) for _ in range(self.number("i"))], (kind,))


@dataclass
class Message:
    """One answer."""

    kind: int
    name: str
    number: int
    body: Node

    def written(self) -> bytes:
        name = self.name.encode()
        return (
            struct.pack(">Ii", 0x80010000 | self.kind, len(name))
            + name
            + struct.pack(">i", self.number)
            + self.body.written()
        )


def first_message(data: bytes) -> tuple[Message, bytes] | None:
    """The first whole answer of some bytes, and the bytes after it; None if it has not all come."""
    source = _Bytes(data)
    try:
        kind = source.number("I") & 0xFF
        name = source.take(source.number("i")).decode()
        message = Message(kind, name, source.number("i"), source.node(_STRUCT))
    except EOFError:
        return None
    return message, data[source.at :]


# --- twists -----------------------------------------------------------------------------------------------------------

Twist = Callable[[random.Random, Message, dict[str, Message]], bytes]
"""Bytes in place of an answer; it is given the last answer to each call before."""


def _any(chance: random.Random, message: Message, *codes: int) -> Node | None:
    found = [node for node in message.body.nodes() if node is not message.body and (not codes or node.code in codes)]
    return chance.choice(found) if found else None


def other_type(chance: random.Random, message: Message, _: dict[str, Message]) -> bytes:
    """A field claims to be of another type than its bytes are."""
    if node := _any(chance, message):
        node.claimed["type"] = chance.choice(
            [code for code in (*_SIZES, _STRING, _STRUCT, _MAP, _SET, _LIST, 99) if code != node.code]
        )
    return message.written()


def other_value(chance: random.Random, message: Message, _: dict[str, Message]) -> bytes:
    """A field is of another type, and its bytes are as well."""
    if node := _any(chance, message):
        values = [
            Node(_I64, struct.pack(">q", chance.choice((-1, 0, 2**63 - 1, -(2**63))))), Node(_BOOL, b"\1"),
            Node(_STRING, b"\xff\xfe" * 9), Node(_DOUBLE, struct.pack(">d", float("nan"))), Node(_LIST, [], (_STRUCT,)),
            Node(_STRUCT, []), Node(_MAP, [], (_STRING, _STRING)),
        ]  # fmt: skip
        new = chance.choice([one for one in values if one.code != node.code])
        node.code, node.value, node.inner = new.code, new.value, new.inner
    return message.written()


def other_length(chance: random.Random, message: Message, _: dict[str, Message]) -> bytes:
    """A text claims another length."""
    if node := _any(chance, message, _STRING):
        node.claimed["length"] = chance.choice((*_LENGTHS, len(node.value) + 1, max(len(node.value) - 1, 0)))
    return message.written()


def other_count(chance: random.Random, message: Message, _: dict[str, Message]) -> bytes:
    """A list, a set or a map claims another number of elements."""
    if node := _any(chance, message, _LIST, _SET, _MAP):
        node.claimed["count"] = chance.choice((*_LENGTHS, len(node.value) + 1, len(node.value) - 1))
    return message.written()


def other_inner(chance: random.Random, message: Message, _: dict[str, Message]) -> bytes:
    """A list, a set or a map claims another type of its elements."""
    if node := _any(chance, message, _LIST, _SET, _MAP):
        node.claimed["inner"] = chance.choice((_STOP, _BOOL, _I64, _STRING, _STRUCT, _LIST, 99))
    return message.written()


def other_number(chance: random.Random, message: Message, _: dict[str, Message]) -> bytes:
    """A number is another one: negative, zero, or too large."""
    if node := _any(chance, message, _I16, _I32, _I64):
        size = 8 * len(node.value)
        number = chance.choice((-1, 0, 2 ** (size - 1) - 1, -(2 ** (size - 1)), chance.getrandbits(size - 1)))
        node.value = number.to_bytes(size // 8, "big", signed=True)
    return message.written()


def other_text(chance: random.Random, message: Message, _: dict[str, Message]) -> bytes:
    """A text holds bytes that are none, or would move a terminal's cursor."""
    if node := _any(chance, message, _STRING):
        node.value = chance.choice(
            (b"\xff\xc0\x80", b"\x1b]0;x\x07\x1b[2J", b"\0", b"\xed\xa0\x80", b"", b"a" * 100_000)
        )
    return message.written()


def other_place(chance: random.Random, message: Message, _: dict[str, Message]) -> bytes:
    """A field has another one's number."""
    if node := _any(chance, message):
        node.claimed["number"] = chance.choice((-1, 0, 1, 2, 3, 7, 32767, -32768))
    return message.written()


def left_out(chance: random.Random, message: Message, _: dict[str, Message]) -> bytes:
    """A struct lacks a field, or all, or its end."""
    node = chance.choice([node for node in message.body.nodes() if node.code == _STRUCT])
    match chance.randrange(3):
        case 0:
            node.claimed["no stop"] = 1
        case 1 if node.value:
            node.value.pop(chance.randrange(len(node.value)))
        case _:
            node.value = []
    return message.written()


def nested(_: random.Random, message: Message, __: dict[str, Message]) -> bytes:
    """A field that nobody knows holds structs in structs, without end."""
    message.body.value.insert(0, (99, Node(_STRUCT, [], raw=b"\x0c\x00\x63" * 100_000)))
    return message.written()


def other_call(chance: random.Random, message: Message, seen: dict[str, Message]) -> bytes:
    """Another call's answer, under this one's name and number or under its own."""
    if others := [one for name, one in seen.items() if name != message.name]:
        other = chance.choice(others)
        if chance.random() < 0.3:
            return Message(other.kind, other.name, message.number, other.body).written()
        message.body = other.body
    return message.written()


def other_head(chance: random.Random, message: Message, _: dict[str, Message]) -> bytes:
    """A message of another kind, name or number."""
    match chance.randrange(3):
        case 0:
            message.kind = chance.choice((0, 1, 4, 7, _EXCEPTION))
        case 1:
            message.number += chance.choice((-1, 1, 2**30))
        case _:
            message.name = chance.choice(("", "x" * 100_000, message.name + "2", message.name.upper()))
    return message.written()


def twice(_: random.Random, message: Message, __: dict[str, Message]) -> bytes:
    """Send the answer twice."""
    return message.written() * 2


def both(chance: random.Random, message: Message, _: dict[str, Message]) -> bytes:
    """A result and an exception at once, or an exception of the wrong kind."""
    refusal = Node(_STRUCT, [(1, Node(_STRING, b"no\x1b[31m"))])
    message.body.value.append((chance.choice((1, 2, 3, 4, 9)), refusal))
    return message.written()


def middle(chance: random.Random, message: Message, _: dict[str, Message]) -> bytes:
    """The connection ends in the middle."""
    whole = message.written()
    return whole[: chance.randrange(len(whole))]


BYTES: tuple[Twist, ...] = (
    other_type, other_value, other_length, other_count, other_inner, other_number, other_text, other_place, left_out,
    nested, other_call, other_head, twice, both, middle,
)  # fmt: skip
"""All of them."""


class TwistedLine:
    """Listens on loopback; ended by the ``with`` statement.

    Args:
        server: the metastore's address.
        at: number of the answer that is twisted, from 0; -1 for none.
        lasting: all answers after it are twisted, too.

    Attributes:
        address: of the line.
        answers: names of the calls that were answered.
    """

    def __init__(
        self,
        server: str,
        twist: Twist = twice,
        seed: object = 0,
        at: int = -1,
        *,
        lasting: bool = False,
    ) -> None:
        parts = urlsplit(server)
        self._server = (parts.hostname or "", parts.port or 0)
        self._twist, self._chance = twist, random.Random(str(seed))
        self._at, self._lasting = at, lasting
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"
        self.answers: list[str] = []
        self._seen: dict[str, bytes] = {}
        self._open: set[socket.socket] = set()

    def __enter__(self) -> TwistedLine:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
            except OSError:
                return
            self._open |= {client, server}
            threading.Thread(target=self._ask, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answer, args=(server, client), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(64 << 10):
                server.sendall(data)
        self._end(client, server)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        data = b""
        with suppress(OSError):
            while more := server.recv(64 << 10):
                data += more
                while found := first_message(data):
                    message, rest = found
                    if not self._send(client, message, data[: len(data) - len(rest)]):
                        self._end(client, server)
                        return
                    data = rest
        self._end(client, server)

    def _send(self, client: socket.socket, message: Message, honest: bytes) -> bool:
        at = len(self.answers)
        self.answers.append(message.name)
        is_twisted = self._at >= 0 and (at == self._at or (self._lasting and at > self._at))
        seen = {name: found[0] for name, data in self._seen.items() if (found := first_message(data))}
        self._seen[message.name] = honest
        client.sendall(self._twist(self._chance, message, seen) if is_twisted else honest)
        return not (is_twisted and self._twist is middle)

    def _end(self, *sockets: socket.socket) -> None:
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
            self._open.discard(one)
