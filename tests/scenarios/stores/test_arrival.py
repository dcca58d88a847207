"""What was written is there: stores that answer "done" and keep nothing, less, or other bytes."""

from __future__ import annotations

import http.server
import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from support import memory_store as memory
from support.stores import Store

from acidctl.base.errors import AcidctlError, ConflictError, StorageError
from acidctl.location.change.own_files import write_checked, write_whole
from acidctl.storage import fsspec_fs
from acidctl.storage.hdfs.errors import QuotaError, from_remote
from acidctl.storage.local import filesystem
from acidctl.storage.port import FileSystem, FileSystemSpec, join
from acidctl.storage.registry import open_location

DATA = b"0123456789"

Keep = Callable[[bytes], bytes]
"""What a store keeps of what it is given."""

NOTHING: Keep = lambda _: b""  # noqa: E731
HALF: Keep = lambda data: data[: len(data) // 2]  # noqa: E731
MORE: Keep = lambda data: data + b"!"  # noqa: E731
OTHER: Keep = lambda data: data[:-1] + b"!"  # noqa: E731


def write_bytes(fs: FileSystem, path: str, data: bytes = DATA) -> None:
    fs.write_bytes(path, data)


def create_exclusive(fs: FileSystem, path: str, data: bytes = DATA) -> None:
    fs.create_exclusive(path, data)


def open_output(fs: FileSystem, path: str, data: bytes = DATA) -> None:
    with fs.open_output(path) as output:
        output.write(data)


CALLS = [write_bytes, create_exclusive, open_output]


class LyingNameNode(http.server.BaseHTTPRequestHandler):
    """WebHDFS that keeps what it likes, and says 201."""

    files: ClassVar[dict[str, bytes]] = {}
    keep: ClassVar[Keep] = staticmethod(lambda data: data)
    refusal: ClassVar[dict[str, str]] = {}
    asked: ClassVar[list[str]] = []

    def do_PUT(self) -> None:
        body = self._body()
        if "step=2" not in self.path:
            self._say(307, {}, {"Location": f"http://{self.headers['Host']}{self.path}&step=2"})
        elif self.refusal:
            self.files[self._name] = b""
            self._say(403, {"RemoteException": self.refusal})
        else:
            self.files[self._name] = type(self).keep(body)
            self._say(201, {})

    def do_GET(self) -> None:
        operation, name = self._operation, self._name
        self.asked.append(operation)
        if name not in self.files:
            self._say(404, {"RemoteException": {"exception": "FileNotFoundException", "message": name}})
        elif operation == "OPEN":
            self._say(200, self.files[name])
        else:
            found = {"type": "FILE", "length": len(self.files[name]), "modificationTime": 0}
            self._say(200, {"FileStatus": {**found, "blockSize": 1000, "replication": 3}})

    def do_DELETE(self) -> None:
        self._say(200, {"boolean": self.files.pop(self._name, None) is not None})

    @property
    def _name(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix("/webhdfs/v1")

    @property
    def _operation(self) -> str:
        return parse_qs(urlsplit(self.path).query)["op"][0].upper()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _say(self, status: int, answer: Any, headers: dict[str, str] | None = None) -> None:
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def name_node() -> Iterator[tuple[type[LyingNameNode], FileSystem]]:
    handler = type("ThisNameNode", (LyingNameNode,), {"files": {}, "refusal": {}, "asked": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield handler, open_location(f"webhdfs://root@127.0.0.1:{server.server_address[1]}/")[0]
        finally:
            server.shutdown()
            thread.join()


# --- one store of each kind that lies --------------------------------------------------------------------------------


class Liar:
    """A store, how it is told to lie, and what it has.

    Attributes:
        lie: called with what is to be kept of every new file.
    """

    def __init__(self, fs: FileSystem, root: str, lie: Callable[[Keep], None]) -> None:
        self.fs, self.path, self.lie = fs, join(root, "new"), lie


@pytest.fixture(params=["local", "memory", "objects", "fsspec", "webhdfs"])
def liar(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Liar:
    kind = request.param
    if kind == "local":
        return _lying_disk(tmp_path, monkeypatch)
    if kind == "fsspec":
        return _lying_objects(tmp_path, monkeypatch)
    if kind == "webhdfs":
        handler, fs = request.getfixturevalue("name_node")
        return Liar(fs, "/d", lambda keep: setattr(handler, "keep", staticmethod(keep)))
    fs, root = open_location(f"memory://{tmp_path.name}", {"objects": "true"} if kind == "objects" else None)

    def lie(keep: Keep) -> None:
        class Lossy(memory.MemoryFile):  # type: ignore[misc]
            def __init__(self, store: Any, path: str, data: bytes) -> None:
                super().__init__(store, path, keep(data) if data else data)

            def write(self, data: Any) -> int:
                return int(super().write(keep(bytes(data))))

        monkeypatch.setattr(memory, "MemoryFile", Lossy)

    return Liar(fs, root, lie)


def _lying_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Liar:
    def lie(keep: Keep) -> None:
        real = os.fsync

        def fsync(descriptor: int) -> None:
            name = f"/proc/self/fd/{descriptor}"
            if Path(name).is_file():
                path = Path(name).resolve()
                path.write_bytes(keep(path.read_bytes()))
            real(descriptor)

        monkeypatch.setattr(filesystem.os, "fsync", fsync)

    return Liar(filesystem.LocalFileSystem(), str(tmp_path), lie)


def _lying_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Liar:
    """The adapter of object stores over the local disk, through fsspec."""
    fs = fsspec_fs.FsspecFileSystem(FileSystemSpec("file"))
    monkeypatch.setattr(fs, "_protocol", "gs")
    inner = fs._fs

    class Later(io.BytesIO):
        def __init__(self, path: str, keep: Keep) -> None:
            super().__init__()
            self._path, self._keep = path, keep

        def close(self) -> None:
            Path(self._path).write_bytes(self._keep(self.getvalue()))
            super().close()

    def lie(keep: Keep) -> None:
        monkeypatch.setattr(inner, "pipe_file", lambda path, data, **_: Path(path).write_bytes(keep(data)))
        real = inner.open
        monkeypatch.setattr(inner, "open", lambda path, mode: real(path, mode) if mode == "rb" else Later(path, keep))

    return Liar(fs, str(tmp_path), lie)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("keep", [NOTHING, HALF, MORE], ids=["nothing", "half", "more"])
def test_a_file_of_another_length_is_an_error(liar: Liar, call: Callable[..., None], keep: Keep) -> None:
    liar.lie(keep)
    with pytest.raises(StorageError) as raised:
        call(liar.fs, liar.path)
    assert liar.fs.display(liar.path) in raised.value.what
    assert raised.value.hint
    assert f"{len(keep(DATA))} are there" in raised.value.why
    # Half a file is never left to look like a whole one; what is longer may be somebody else's.
    if not isinstance(liar.fs, memory.MemoryFileSystem):
        assert liar.fs.exists(liar.path) is (keep is MORE and not isinstance(liar.fs, filesystem.LocalFileSystem))


def test_a_lock_of_other_bytes_is_an_error(liar: Liar) -> None:
    if isinstance(liar.fs, memory.MemoryFileSystem):
        pytest.skip("what is in memory is what was put there")
    liar.lie(OTHER)
    with pytest.raises(StorageError, match="other bytes"):
        liar.fs.create_exclusive(liar.path, DATA)


@pytest.mark.parametrize("write", [write_checked, write_whole])
def test_own_files_are_read_again(liar: Liar, write: Callable[[FileSystem, str, bytes], None]) -> None:
    if write is write_whole and not liar.fs.can_rename:
        pytest.skip("only where files are renamed")
    if isinstance(liar.fs, memory.MemoryFileSystem):
        pytest.skip("what is in memory is what was put there")
    liar.lie(OTHER)
    with pytest.raises(StorageError, match="other bytes"):
        write(liar.fs, liar.path, DATA)
    assert write is write_checked or not liar.fs.exists(liar.path)


@pytest.mark.parametrize("call", CALLS)
def test_a_file_that_is_empty_may_be_so(store: Store, call: Callable[..., None]) -> None:
    call(store.fs, join(store.root, "new"), b"")
    assert store.fs.stat(join(store.root, "new")).size == 0


def test_a_file_of_somebody_else_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is taken away only while it is this file's."""
    fs = filesystem.LocalFileSystem()
    output = fs.open_output(str(tmp_path / "new"))
    output.write(DATA)
    output.flush()
    (tmp_path / "new").rename(tmp_path / "moved")
    (tmp_path / "new").write_bytes(b"theirs")
    os.truncate(tmp_path / "moved", 3)
    with pytest.raises(StorageError, match="3 are there"):
        output.close()
    assert (tmp_path / "new").read_bytes() == b"theirs"


# --- object stores ---------------------------------------------------------------------------------------------------


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Liar:
    return _lying_objects(tmp_path, monkeypatch)


@pytest.mark.parametrize(("late", "comes"), [(2, True), (99, False)])
def test_a_store_that_shows_a_new_file_late(
    objects: Liar, late: int, comes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.lie(lambda data: data)
    fs: Any = objects.fs
    left = iter([False] + [True] * late)  # the first look is whether the name is free
    real = fs._info

    def info(path: str) -> dict[str, Any]:
        if next(left, False):
            raise FileNotFoundError(path)
        return dict(real(path))

    monkeypatch.setattr(fs, "_info", info)
    if comes:
        write_bytes(fs, objects.path)
        assert fs.read_bytes(objects.path) == DATA
    else:
        with pytest.raises(StorageError, match="does not show it"):
            write_bytes(fs, objects.path)


@pytest.mark.parametrize(("there", "is_ours"), [(DATA, True), (b"theirs", False)])
def test_a_creation_that_was_asked_for_twice(
    objects: Liar, there: bytes, is_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer was lost, the client asked again by itself, and now its own file is in the way."""
    fs: Any = objects.fs

    def pipe_file(path: str, data: bytes, **_: object) -> None:
        Path(path).write_bytes(there)
        raise FileExistsError(path)

    monkeypatch.setattr(fs._fs, "pipe_file", pipe_file)
    if is_ours:
        fs.create_exclusive(objects.path, DATA)
    else:
        with pytest.raises(ConflictError):
            fs.create_exclusive(objects.path, DATA)
    assert fs.read_bytes(objects.path) == there


def test_a_copy_that_is_not_whole(objects: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    objects.lie(lambda data: data)
    fs: Any = objects.fs
    fs.can_copy = True
    write_bytes(fs, objects.path)
    target = objects.path + "-copy"
    monkeypatch.setattr(fs._fs, "cp_file", lambda source, to, **_: Path(to).write_bytes(DATA[:3]))
    with pytest.raises(StorageError, match="3 are there"):
        fs.copy(objects.path, target)
    assert not fs.exists(target)


# --- HDFS and its quotas ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS)
def test_newer_data_nodes_say_it_themselves(
    name_node: tuple[type[LyingNameNode], FileSystem], call: Callable[..., None]
) -> None:
    handler, fs = name_node
    handler.refusal = {"exception": "DSQuotaExceededException", "message": "The DiskSpace quota of /w is exceeded"}
    with pytest.raises(StorageError, match="the space quota is used up"):
        call(fs, "/w/new")
    assert handler.files == {}  # of which there would be nothing but the names


def test_webhdfs_is_asked_once_before_and_once_after_a_file(name_node: tuple[type[LyingNameNode], FileSystem]) -> None:
    handler, fs = name_node
    for call in (write_bytes, open_output):
        handler.asked.clear()
        call(fs, f"/{call.__name__}")
        assert handler.asked == ["GETFILESTATUS"] * 2  # whether the name is free, and what came


@pytest.mark.parametrize("name", ["DSQuotaExceededException", "QuotaByStorageTypeExceededException"])
def test_only_quotas_of_space_come_after_the_file_was_made(name: str) -> None:
    assert isinstance(from_remote("x", f"org.apache.hadoop.hdfs.protocol.{name}", "..."), QuotaError)
    assert not isinstance(from_remote("x", "NSQuotaExceededException", "..."), QuotaError)


def test_the_first_failure_of_a_write_is_told(name_node: tuple[type[LyingNameNode], FileSystem]) -> None:
    """A buffer gives its bytes once more when it is closed; what comes of that says less."""
    from acidctl.storage.hdfs.new_file import NewFile

    class Once(NewFile):
        def _send(self, chunk: bytes) -> None:
            raise QuotaError("the first")

        def _finish(self) -> None:
            raise StorageError("the second")

    file = io.BufferedWriter(Once(), 4)
    with pytest.raises(AcidctlError, match="the first"):
        file.write(DATA)
    with pytest.raises(AcidctlError, match="the first"):
        file.close()
    assert file.closed
