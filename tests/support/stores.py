"""One store of every kind, each test in a folder of its own; and the servers that some of them need."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from acidctl.storage.options import StorageOptions
from acidctl.storage.port import FileSystem, join, parent_of
from acidctl.storage.registry import open_location
from support.served import served
from support.servers.hdfs_server import HdfsServer


@dataclass(frozen=True)
class Store:
    """A file system and an existing, empty directory in it."""

    kind: str
    fs: FileSystem
    root: str

    @property
    def has_directories(self) -> bool:
        return self.kind not in ("s3", "objects")


def fill(store: Store, *paths: str, data: bytes = b"data") -> None:
    """Write files, with the directories they need."""
    for path in paths:
        full = join(store.root, path)
        store.fs.make_dirs(parent_of(full))
        store.fs.write_bytes(full, data)


def paths(store: Store, path: str = "") -> list[str]:
    """Everything below the test's directory, or a directory in it."""
    return [entry.path for entry in store.fs.list_tree(join(store.root, path) if path else store.root).entries]


@pytest.fixture(scope="session")
def hdfs2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """HDFS 2.7."""
    with served(lambda: HdfsServer(tmp_path_factory.mktemp("hdfs2"))) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """HDFS 3.4."""
    with served(lambda: HdfsServer(tmp_path_factory.mktemp("hdfs3"), hadoop=3)) as server:
        yield server


@pytest.fixture(scope="session", params=["hdfs2", "hdfs3"])
def hdfs(request: pytest.FixtureRequest) -> HdfsServer:
    """Each of the two in turn."""
    server: HdfsServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, str]]:
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    moto = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    server: Any = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield {"key": "x", "secret": "x", "endpoint_url": f"http://{host}:{port}"}
    server.stop()


@pytest.fixture(scope="session")
def bucket(s3_options: dict[str, str]) -> str:
    import fsspec

    fsspec.filesystem("s3", **s3_options).mkdir("acidctl-bucket")
    return "acidctl-bucket"


HDFS = [f"{way}{version}" for way in ("webhdfs", "hdfs") for version in (2, 3)]
SERVED = [pytest.param(kind, marks=pytest.mark.server) for kind in (*HDFS, "s3")]


@pytest.fixture(params=["local", "beneath", "memory", "objects", *SERVED])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    kind = request.param
    name = f"test-{uuid.uuid4().hex}"
    if kind == "local":
        fs, root = open_location(str(tmp_path))
    elif kind == "beneath":
        fs, root = open_location(str(tmp_path), StorageOptions(own_links=True))
    elif kind == "memory":
        fs, root = open_location(f"memory://{name}")
    elif kind == "objects":
        fs, root = open_location(f"memory://{name}", {"objects": "true"})
    elif kind.startswith("webhdfs"):
        server = request.getfixturevalue(kind.removeprefix("web"))
        fs, root = open_location(f"webhdfs://root@{server.authority}/{name}")
    elif kind.startswith("hdfs"):
        pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
        fs, root = open_location(f"hdfs://root@{request.getfixturevalue(kind).rpc_authority}/{name}")
    else:
        options = request.getfixturevalue("s3_options")
        fs, root = open_location(f"s3a://{request.getfixturevalue('bucket')}/{name}", options)
    fs.make_dirs(root)
    return Store(kind, fs, root)
