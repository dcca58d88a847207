"""Requests to WebHDFS: logins, cookies, redirects, proxies, and answers that never come."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from acidctl.base.errors import StorageError
from acidctl.storage.hdfs import webhdfs_http
from acidctl.storage.port import FileSystem, FileSystemSpec
from acidctl.storage.registry import open_file_system

LIST = json.dumps(
    {"FileStatuses": {"FileStatus": [{"pathSuffix": "f", "type": "FILE", "length": 3, "modificationTime": 0}]}}
).encode()


class Place(http.server.BaseHTTPRequestHandler):
    """Lists and opens what it is asked for, and notes the questions.

    Attributes:
        status: of the next answers, taken from the front; 200 when there is none left.
        elsewhere: where reads are sent to.
        is_gone: connections are cut.
        silent: how many of the next questions are never answered.
        over: set when nobody waits any more.
    """

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, dict[str, str]]]
    status: list[int]
    elsewhere = ""
    is_gone = False
    silent = 0
    over: threading.Event

    def do_GET(self) -> None:
        if self.silent:
            type(self).silent -= 1
            self.over.wait()
            self.close_connection = True
            return
        if self.is_gone:
            self.close_connection = True
            return
        self.seen.append((self.path, {key.lower(): value for key, value in self.headers.items()}))
        status = self.status.pop(0) if self.status else 200
        body = LIST if "LISTSTATUS" in self.path else b"abc"
        if status == 200 and self.elsewhere and "OPEN" in self.path:
            status, body = 307, b""
        self.send_response(status)
        if status == 307:
            self.send_header("Location", self.elsewhere + self.path)
        self.send_header("Set-Cookie", "hadoop.auth=me; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def served() -> Iterator[tuple[str, type[Place]]]:
    handler = type("ThisPlace", (Place,), {"seen": [], "status": [], "over": threading.Event()})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}", handler
        finally:
            handler.over.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as found:
        yield found


def opened(authority: str, **options: str) -> FileSystem:
    return open_file_system(FileSystemSpec("webhdfs", tuple(sorted({"user": "root", **options}.items())), authority))


@pytest.mark.parametrize(
    "options", [{}, {"token": "abc"}, {"doas": "bob"}, {"gateway": "/gateway/x", "password": "hush", "doas": "bob"}]
)
def test_every_request_has_the_login_and_the_cookie(stack: ExitStack, options: dict[str, str]) -> None:
    authority, place = stack.enter_context(served())
    fs = opened(authority, **options)
    for _ in range(3):
        assert [entry.path for entry in fs.list_dir("/w/p=a b/ü&?#+;~").entries] == ["f"]
    first, *others = place.seen
    wanted = {key: value for key, value in first[1].items() if key != "cookie"}
    for path, headers in others:
        assert http_path(path) == http_path(first[0])
        assert wanted.items() <= headers.items()
    assert others[-1][1]["cookie"] == "hadoop.auth=me"


def http_path(path: str) -> tuple[str, list[str]]:
    from urllib.parse import unquote

    where, _, query = path.partition("?")
    return unquote(where), sorted(query.split("&"))


def test_reads_follow_to_the_data_node_without_credentials(stack: ExitStack) -> None:
    authority, place = stack.enter_context(served())
    other, data_node = stack.enter_context(served())
    place.elsewhere = f"http://{other}"
    fs = opened(authority, password="hush")
    for offset in (0, 1, 2):
        assert fs.read_bytes("/f", offset, 3) == b"abc"
    assert [path.partition("offset=")[2][0] for path, _ in data_node.seen] == ["0", "1", "2"]
    assert not {"authorization", "cookie"} & set(data_node.seen[-1][1])


@pytest.mark.parametrize("reads", [False, True])
def test_an_answer_that_never_comes_is_not_waited_for(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch, reads: bool
) -> None:
    """The request is sent again, with the user's timeout."""
    monkeypatch.setattr(webhdfs_http, "_FIRST_TIMEOUT", 0.1)
    authority, place = stack.enter_context(served())
    other, data_node = stack.enter_context(served())
    place.elsewhere = f"http://{other}"
    fs = opened(authority, retries="0", timeout="20")

    def ask() -> bool:
        return fs.read_bytes("/f", 0, 3) == b"abc" if reads else bool(fs.list_dir("/w").entries)

    for _ in range(3):
        assert ask()
    (data_node if reads else place).silent = 1
    assert ask()
    assert (data_node if reads else place).silent == 0
    assert ask()


def test_what_is_not_there_is_asked_for_once(stack: ExitStack) -> None:
    authority, place = stack.enter_context(served())
    fs = opened(authority, retries="0")
    for _ in range(2):
        fs.list_dir("/w")
    place.seen.clear()
    place.status[:] = [404]
    with pytest.raises(StorageError, match="404"):
        fs.list_dir("/w")
    assert len(place.seen) == 1


def test_a_name_node_that_has_gone_is_followed_by_another(stack: ExitStack) -> None:
    first, place = stack.enter_context(served())
    second, _ = stack.enter_context(served())
    fs = opened(f"{first},{second}", retries="0")
    alone = opened(first, retries="0")
    for one in (fs, alone):
        for _ in range(2):
            assert one.list_dir("/w").entries
    place.is_gone = True
    for _ in range(3):
        assert fs.list_dir("/w").entries
    with pytest.raises(StorageError, match="no connection"):
        alone.list_dir("/w")


def test_connections_that_were_closed_are_made_anew(stack: ExitStack) -> None:
    """`requests` closes those to the host that was used longest ago, when there are many DataNodes."""
    authority, place = stack.enter_context(served())
    other, _ = stack.enter_context(served())
    place.elsewhere = f"http://{other}"
    fs = opened(authority, retries="0")
    for _ in range(2):
        for _ in range(2):
            assert fs.list_dir("/w").entries
            assert fs.read_bytes("/f", 0, 3) == b"abc"
        fs._client._own._session.close()  # type: ignore[attr-defined]


def test_a_proxy_is_used(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, place = stack.enter_context(served())
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://{authority}")
    fs = opened("elsewhere.invalid:9870", retries="0")
    for _ in range(2):
        assert fs.list_dir("/w").entries
    assert all(path.startswith("http://elsewhere.invalid:9870/") for path, _ in place.seen)
