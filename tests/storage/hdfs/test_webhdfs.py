"""HDFS's own corners: against the real one, and against a server that answers as told."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from support.servers.hdfs_server import HdfsServer

from acidctl.base.errors import (
    AccessError,
    AcidctlError,
    ConflictError,
    EnvironmentProblem,
    NotFoundError,
    StorageError,
)
from acidctl.storage.port import FileSystem, FileSystemSpec
from acidctl.storage.registry import open_file_system, open_location


def open_as(server: HdfsServer, user: str) -> FileSystem:
    return open_location(f"webhdfs://{user}@{server.authority}/")[0]


@pytest.mark.server
class TestRealServer:
    def test_a_percent_sign_never_leads_elsewhere(self, hdfs: HdfsServer) -> None:
        fs = open_as(hdfs, "root")
        fs.make_dirs("/percent/%41")
        fs.make_dirs("/percent/A")
        fs.write_bytes("/percent/A/f", b"A")
        fs.write_bytes("/percent/%41/f", b"%41")
        assert fs.read_bytes("/percent/A/f") == b"A"
        assert fs.read_bytes("/percent/%41/f") == b"%41"
        fs.remove_tree("/percent/%41")
        assert [entry.path for entry in fs.list_tree("/percent").entries] == ["A", "A/f"]

    def test_a_tree_of_many_directories(self, hdfs: HdfsServer) -> None:
        fs = open_as(hdfs, "root")
        expected = []
        for index in range(30):
            fs.make_dirs(f"/many/d{index:02d}/e/f")
            expected += [f"d{index:02d}", f"d{index:02d}/e", f"d{index:02d}/e/f"]
        assert [entry.path for entry in fs.list_tree("/many").entries] == expected

    def test_a_conflict_met_after_megabytes_is_still_an_error(
        self, hdfs: HdfsServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fs = open_as(hdfs, "root")
        fs.write_bytes("/taken", b"old")
        monkeypatch.setattr(fs, "_require_free", lambda path: None)
        with pytest.raises((ConflictError, StorageError)), fs.open_output("/taken") as output:
            for _ in range(40):
                output.write(bytes(1 << 20))
        assert fs.read_bytes("/taken") == b"old"


class Answers(http.server.BaseHTTPRequestHandler):
    """Says to every request what the test wants."""

    status = 200
    body: bytes = b"{}"

    def answer(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    do_GET = do_PUT = do_DELETE = answer  # noqa: N815 - the library's names

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def answers() -> Iterator[tuple[type[Answers], FileSystem]]:
    handler = type("TheseAnswers", (Answers,), {})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield handler, open_location(f"webhdfs://root@127.0.0.1:{server.server_address[1]}/")[0]
        finally:
            server.shutdown()
            thread.join()


def remote(exception: str, message: str = "said so") -> bytes:
    return json.dumps({"RemoteException": {"exception": exception, "message": message}}).encode()


def test_the_root_of_the_trash(answers: tuple[type[Answers], FileSystem]) -> None:
    """Of an encryption zone it is its own; servers before Hadoop 2.9 cannot be asked."""
    handler, fs = answers
    handler.body = json.dumps({"Path": "/zone/.Trash/root"}).encode()
    assert fs.trash_root("/zone/t") == "/zone/.Trash/root"
    unknown = 'Invalid value for webhdfs parameter "op": No enum constant GETTRASHROOT'
    handler.status, handler.body = 400, remote("IllegalArgumentException", unknown)
    assert fs.trash_root("/zone/t") is None
    handler.status, handler.body = 403, remote("AccessControlException")
    with pytest.raises(AccessError, match="ask for the trash"):
        fs.trash_root("/zone/t")


@pytest.mark.parametrize(
    ("exception", "message", "kind", "said"),
    [
        ("FileNotFoundException", "File does not exist: /t", NotFoundError, "no such file"),
        ("AccessControlException", "Permission denied: user=x", AccessError, "permission denied"),
        ("FileAlreadyExistsException", "rename destination /t already exists", ConflictError, "exists"),
        ("AlreadyBeingCreatedException", "Failed to CREATE_FILE /t", ConflictError, "writing it"),
        ("StandbyException", "Operation category READ is not supported", StorageError, "standby"),
        ("SafeModeException", "Name node is in safe mode", StorageError, "safe mode"),
        ("SecurityException", "Failed to obtain user group information", AccessError, "login"),
        ("RemoteException", "org.apache.hadoop.hdfs.protocol.SnapshotException: no", StorageError, "snapshot"),
        ("RemoteException", "Invalid path name /a:b\n\tat org.x.FileNotFoundException", StorageError, "such a name"),
        ("IOException", "/t already exists", ConflictError, "exists"),
        ("StrangeException", "something\nand a stack", StorageError, "StrangeException: something"),
    ],
)
def test_each_remote_exception_is_one_sentence(
    answers: tuple[type[Answers], FileSystem],
    exception: str,
    message: str,
    kind: type[AcidctlError],
    said: str,
) -> None:
    handler, fs = answers
    handler.status, handler.body = 403, remote(exception, message)
    with pytest.raises(kind) as raised:
        fs.list_dir("/t")
    assert raised.value.what == f"cannot list {fs.url}/t"
    assert said in raised.value.why
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, b"<html>Authentication required</html>", AccessError),
        (404, b"<html>no such page\n</html>", StorageError),
        (500, b"", StorageError),
        (200, b"<html>a router's login page</html>", StorageError),
        (200, b"{}", StorageError),
        (200, b'{"FileStatuses": {"FileStatus": [{"pathSuffix": "a", "type": "FI', StorageError),
        (403, b"{}", StorageError),
    ],
)
def test_what_is_no_webhdfs_is_told(
    answers: tuple[type[Answers], FileSystem], status: int, body: bytes, kind: type[AcidctlError]
) -> None:
    handler, fs = answers
    handler.status, handler.body = status, body
    for call in (fs.list_tree, fs.stat, fs.exists, fs.read_bytes, fs.remove_tree):
        with pytest.raises(kind) as raised:
            call("/t")
        assert raised.value.hint
        assert "\n" not in str(raised.value)


def test_a_rename_that_httpfs_nested_is_told(
    answers: tuple[type[Answers], FileSystem], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, fs = answers
    handler.body = b'{"boolean": true}'
    monkeypatch.setattr(fs, "exists", lambda path: path == "/base_5/base_5-tmp")
    with pytest.raises(StorageError, match="moved the source into it"):
        fs.rename("/_tmp/base_5-tmp", "/base_5")
    monkeypatch.setattr(fs, "exists", lambda path: False)
    fs.rename("/_tmp/base_5", "/base_5")
    handler.body = b'{"boolean": false}'
    with pytest.raises(StorageError, match="without a reason"):
        fs.rename("/_tmp/base_5", "/base_5")


def test_unreachable_namenode_is_told_with_its_address() -> None:
    fs, _ = open_location("webhdfs://root@127.0.0.1:1/")
    with pytest.raises(StorageError) as raised:
        fs.list_tree("/t")
    assert "127.0.0.1:1" in raised.value.why
    assert "9870" in raised.value.hint


def test_a_data_node_that_cannot_be_reached_is_named(
    answers: tuple[type[Answers], FileSystem], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, fs = answers

    def redirect(self: Answers) -> None:
        self.send_response(307)
        self.send_header("Location", "http://127.0.0.1:1/webhdfs/v1/t?op=OPEN")
        self.send_header("Content-Length", "0")
        self.end_headers()

    monkeypatch.setattr(handler, "do_GET", redirect)
    with pytest.raises(StorageError) as raised:
        fs.read_bytes("/t", 0, 5)
    assert "DataNode 127.0.0.1:1" in raised.value.hint


@pytest.mark.parametrize(("breaks", "fails"), [(3, False), (4, True)])
def test_a_connection_that_breaks_within_the_bytes_is_tried_again(
    answers: tuple[type[Answers], FileSystem], monkeypatch: pytest.MonkeyPatch, breaks: int, fails: bool
) -> None:
    handler, fs = answers
    left = iter([True] * breaks)

    def broken(self: Answers) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b"01234" if next(left, False) else b"0123456789")

    monkeypatch.setattr(handler, "do_GET", broken)
    if fails:
        with pytest.raises(StorageError, match="no connection"):
            fs.read_bytes("/t", 0, 10)
    else:
        assert fs.read_bytes("/t", 0, 10) == b"0123456789"


def test_an_answer_that_is_too_short_is_not_the_end_of_the_file(
    answers: tuple[type[Answers], FileSystem], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, fs = answers
    status = json.dumps({"FileStatus": {"type": "FILE", "modificationTime": 0, "length": 100}}).encode()

    def short(self: Answers) -> None:
        self.body = status if "GETFILESTATUS" in self.path else b"x" * 10
        self.answer()

    monkeypatch.setattr(handler, "do_GET", short)
    for read in (lambda: fs.read_bytes("/t"), lambda: fs.read_bytes("/t", 5, 50), lambda: fs.open_input("/t").read()):
        with pytest.raises(StorageError, match="got 10"):
            read()


def test_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {"timeout": "0.05", "retries": "0"}
        fs, _ = open_location(f"webhdfs://root@127.0.0.1:{silent.getsockname()[1]}/", options)
        with pytest.raises(StorageError, match="did not answer in time"):
            fs.stat("/t")


def test_kerberos_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "hdfs.ext.kerberos", None)
    with pytest.raises(EnvironmentProblem, match="Kerberos"):
        open_file_system(FileSystemSpec("webhdfs", (("kerberos", "true"), ("user", "x")), "nn:9870"))


def test_a_token_takes_the_place_of_the_user(answers: tuple[type[Answers], FileSystem]) -> None:
    handler, fs = answers
    seen: list[str] = []

    def note(self: Answers) -> None:
        seen.append(self.path)
        self.answer()

    handler.do_GET = note
    handler.body = json.dumps({"FileStatus": {"type": "DIRECTORY", "modificationTime": 0, "length": 0}}).encode()
    spec = FileSystemSpec("webhdfs", (("token", "abc"), ("user", "x")), fs.spec.authority)
    assert open_file_system(spec).exists("/t")
    assert "delegation=abc" in seen[0]
    assert "user.name" not in seen[0]


def test_a_gateway_and_a_user_to_act_for(answers: tuple[type[Answers], FileSystem]) -> None:
    handler, fs = answers
    seen: list[tuple[str, str | None]] = []

    def note(self: Answers) -> None:
        seen.append((self.path, self.headers.get("Authorization")))
        self.answer()

    handler.do_GET = note
    handler.body = json.dumps({"FileStatus": {"type": "DIRECTORY", "modificationTime": 0, "length": 0}}).encode()
    options = {"gateway": "/gateway/default/", "password": "hush", "doas": "bob"}
    open_location(f"webhdfs://alice@{fs.spec.authority}/", options)[0].stat("/t")
    ((path, login),) = seen
    assert path.startswith("/gateway/default/webhdfs/v1/t?")
    assert "doas=bob" in path
    assert base64.b64decode((login or "").removeprefix("Basic ")) == b"alice:hush"
    handler.status = 401
    with pytest.raises(AccessError, match="password") as raised:
        open_location(f"webhdfs://alice@{fs.spec.authority}/", options)[0].stat("/t")
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(("status", "asked"), [(503, 4), (500, 4), (404, 1), (403, 1)])
def test_a_server_in_trouble_is_asked_again(answers: tuple[type[Answers], FileSystem], status: int, asked: int) -> None:
    handler, fs = answers
    seen: list[str] = []

    def note(self: Answers) -> None:
        seen.append(self.path)
        self.answer()

    handler.do_GET = handler.do_PUT = handler.do_DELETE = note
    handler.status, handler.body = status, b"<html>Service Unavailable</html>"
    for call in (fs.stat, fs.list_dir, fs.make_dirs, lambda path: fs.read_bytes(path, 0, 5)):
        seen.clear()
        with pytest.raises(StorageError):
            call("/t")
        assert len(seen) in (asked, 2 * asked)  # a failed range asks for the size, too
    seen.clear()
    with pytest.raises(StorageError):
        fs.remove_tree("/t")
    assert sum("op=DELETE" in path for path in seen) == 1


def test_a_rename_is_sent_once(answers: tuple[type[Answers], FileSystem], monkeypatch: pytest.MonkeyPatch) -> None:
    handler, fs = answers
    seen: list[str] = []

    def note(self: Answers) -> None:
        seen.append(self.path)
        self.answer()

    handler.do_PUT = note
    handler.status, handler.body = 503, b"<html>Service Unavailable</html>"
    monkeypatch.setattr(fs, "exists", lambda path: path == "/a")
    with pytest.raises(StorageError, match="may still be moved"):
        fs.rename("/a", "/b")
    assert len(seen) == 1


LOGINS = [{"password": "hush"}, {"token": "hush"}, {"password": "hush", "doas": "bob"}]


@pytest.fixture
def stranger() -> Iterator[tuple[list[tuple[str, dict[str, str]]], str]]:
    """A server that takes and gives everything: what it was asked, with which headers; and where it is."""
    seen: list[tuple[str, dict[str, str]]] = []

    class Stranger(Answers):
        def answer(self) -> None:
            seen.append((self.path, {key.lower(): value for key, value in self.headers.items()}))
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("Set-Cookie", "theirs=1")
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"abc")

        do_GET = do_PUT = do_DELETE = answer  # noqa: N815 - the library's names

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield seen, f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def leading_to(handler: type[Answers], host: str, status: int = 307) -> None:
    """Every question is sent on to another host; the answers bring a cookie."""

    def lead(self: Answers) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(status)
        self.send_header("Location", f"http://{host}{self.path.partition('?')[0]}?op=ANY&of=theirs")
        self.send_header("Set-Cookie", "ours=1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    handler.do_GET = handler.do_PUT = handler.do_DELETE = lead


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize("path", ["/t", "/p=a%3Ab"])
def test_the_login_stays_with_the_hosts_that_were_named(
    answers: tuple[type[Answers], FileSystem],
    stranger: tuple[list[tuple[str, dict[str, str]]], str],
    login: dict[str, str],
    path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handler, fs = answers
    seen, host = stranger
    (tmp_path / "netrc").write_text("default login alice password hush\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    client = open_location(f"webhdfs://alice@{fs.spec.authority}/", login | {"retries": "0"})[0]._client  # type: ignore[attr-defined]
    leading_to(handler, host)
    for _ in range(3):
        assert client.read(path, 0, 3) == b"abc"
    with pytest.raises(StorageError) if "%" in path else nullcontext():  # where nothing says that it was stored
        client.create(path, b"xyz")
    assert len(seen) >= 4
    for asked, headers in seen:
        assert not {"authorization", "cookie"} & set(headers)
        assert not any(word in asked for word in ("hush", "delegation", "user.name", "doas"))


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_question_of_names_is_not_sent_on(
    answers: tuple[type[Answers], FileSystem],
    stranger: tuple[list[tuple[str, dict[str, str]]], str],
    login: dict[str, str],
    status: int,
) -> None:
    handler, fs = answers
    seen, host = stranger
    fs = open_location(f"webhdfs://alice@{fs.spec.authority}/", login | {"retries": "0"})[0]
    leading_to(handler, host, status)
    for call in (fs.stat, fs.list_dir, fs.make_dirs, fs.remove_tree):
        with pytest.raises(StorageError, match=f"leads to {host}"):
            call("/t")
    assert not seen


def test_a_named_host_gets_the_login_wherever_it_leads_to_itself(answers: tuple[type[Answers], FileSystem]) -> None:
    """As a gateway does, which stands before the DataNodes as well."""
    handler, fs = answers
    seen: list[tuple[str, str | None]] = []

    def lead(self: Answers) -> None:
        seen.append((self.path, self.headers.get("Authorization")))
        self.send_response(200 if "data" in self.path else 307)
        self.send_header("Location", f"http://{fs.spec.authority}/gateway/data/webhdfs/v1/t")
        self.send_header("Content-Length", "3" if "data" in self.path else "0")
        self.end_headers()
        self.wfile.write(b"abc" if "data" in self.path else b"")

    handler.do_GET = lead
    options = {"gateway": "gateway", "password": "hush"}
    client = open_location(f"webhdfs://alice@{fs.spec.authority}/", options)[0]._client  # type: ignore[attr-defined]
    for _ in range(2):
        assert client.read("/t", 0, 3) == b"abc"
    assert [path.partition("?")[0] for path, _ in seen] == ["/gateway/webhdfs/v1/t", "/gateway/data/webhdfs/v1/t"] * 2
    assert {login for _, login in seen} == {"Basic " + base64.b64encode(b"alice:hush").decode()}


def test_a_host_that_wants_the_login_and_was_not_named_is_told(answers: tuple[type[Answers], FileSystem]) -> None:
    handler, fs = answers
    other = type("Other", (Answers,), {"status": 401})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), other) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        host = f"127.0.0.1:{server.server_address[1]}"
        leading_to(handler, host)
        try:
            with pytest.raises(AccessError, match=f"sends us on to {host}") as raised:
                fs._client.read("/t", 0, 3)  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()
    assert host in raised.value.hint


@pytest.mark.parametrize(
    "location", ["", "/webhdfs/v1/t?op=OPEN", "http://127.0.0.1:1", "http://127.0.0.1:x/t", "gopher://h/t"]
)
def test_a_redirect_to_no_place_is_told(answers: tuple[type[Answers], FileSystem], location: str) -> None:
    handler, fs = answers

    def lead(self: Answers) -> None:
        self.send_response(307)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    handler.do_GET = handler.do_PUT = lead
    for call in (fs._client.read, lambda path, *_: fs._client.create(path, b"x")):  # type: ignore[attr-defined]
        with pytest.raises(StorageError, match="does not answer as WebHDFS does"):
            call("/t", 0, 3)
