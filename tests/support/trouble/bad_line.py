"""A line to a server on which something happens at one byte: it is cut, holds its breath, or changes what it carries.

with BadLine(fake.address) as line:
    line.answers = Trouble(at=120, kind="cut")
    acidctl("ls", "--metastore", line.address, "hive:sales.orders")
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass
class Trouble:
    """What happens, once; afterwards the line is whole again, unless it is `lasting`: then nobody connects any more.

    Attributes:
        at: the byte before which it happens, counted over all connections.
        kind: ``cut``; ``reset``; ``hang``: nothing comes any more; ``garble``: this byte and all after it are others;
            ``replay``: what came before on this connection comes again.
    """

    at: int
    kind: str = "cut"
    lasting: bool = False


class BadLine:
    """Listens on loopback; ended by the ``with`` statement.

    Attributes:
        address: of the line.
        questions, answers: what happens to what clients, and to what the server says; None for nothing.
        asked, answered: how many bytes went through so far.
    """

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self._server = (parts.hostname or "", parts.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"
        self.questions: Trouble | None = None
        self.answers: Trouble | None = None
        self.asked = self.answered = 0
        self._is_down = False
        self._open: set[socket.socket] = set()

    def __enter__(self) -> BadLine:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()

    def hang_up(self) -> None:
        """End every connection, as a server does that is started anew."""
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._is_down:
                client.close()
                continue
            try:
                server = socket.create_connection(self._server)
            except OSError:
                client.close()
                continue
            self._open |= {client, server}
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, target, is_question in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._carry, args=(source, target, is_question), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, is_question: bool) -> None:
        seen = b""
        with suppress(OSError):
            while data := source.recv(64 << 10):
                seen += data
                trouble = self.questions if is_question else self.answers
                done = self.asked if is_question else self.answered
                if trouble and done <= trouble.at < done + len(data):
                    place = trouble.at - done
                    self._count(place, is_question)
                    self._forget(is_question)
                    target.sendall(data[:place])
                    self._is_down = trouble.lasting
                    if trouble.kind == "hang":
                        return
                    if trouble.kind == "reset":
                        target.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                        target.close()
                    if trouble.kind == "garble":
                        data = bytes(byte ^ 0x5A for byte in data[place:])
                    elif trouble.kind == "replay":
                        data = seen[: -len(data)] + seen
                    else:
                        break
                self._count(len(data), is_question)
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
            self._open.discard(one)

    def _count(self, size: int, is_question: bool) -> None:
        if is_question:
            self.asked += size
        else:
            self.answered += size

    def _forget(self, is_question: bool) -> None:
        if is_question:
            self.questions = None
        else:
            self.answers = None
