"""HDFS by both of its ways: a real NameNode, a real pair of them, and servers that do not answer."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from support.served import served
from support.servers.hdfs_server import HaHdfsServer, HdfsServer

from acidctl.base.errors import AccessError, AcidctlError, ConflictError, NotFoundError, StorageError, UsageProblem
from acidctl.base.parallel import STORE_THREADS
from acidctl.storage.hdfs import native
from acidctl.storage.hdfs.errors import from_remote
from acidctl.storage.hdfs.filesystem import HdfsFileSystem
from acidctl.storage.hdfs.webhdfs_http import Http
from acidctl.storage.port import FileSystem, FileSystemSpec
from acidctl.storage.registry import open_file_system, open_location
from acidctl.storage.retry import PassingError

pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")

WAYS = ["hdfs", "webhdfs"]
QUICK = {"timeout": "0.2", "retries": "0"}


@pytest.fixture(autouse=True)
def _any_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_users", set())
    monkeypatch.setenv("HADOOP_USER_NAME", "root")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)


def open_as(server: HdfsServer, way: str, user: str, options: dict[str, str] | None = None) -> FileSystem:
    authority = server.rpc_authority if way == "hdfs" else server.authority
    return open_location(f"{way}://{user}@{authority}/", options)[0]


@pytest.mark.server
@pytest.mark.parametrize("way", WAYS)
class TestRealServer:
    def test_denied_directory_is_an_access_error(
        self, hdfs: HdfsServer, way: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root = open_as(hdfs, "webhdfs", "root")
        top = f"/private-{way}"
        root.make_dirs(f"{top}/t")
        root.write_bytes(f"{top}/t/f", b"x")
        root._client.set_permission(top, 0o700)  # type: ignore[attr-defined]
        alice = open_as(hdfs, way, "alice")
        calls: list[Callable[[], object]] = [
            lambda: alice.list_tree(top),
            lambda: alice.list_tree(f"{top}/t"),
            lambda: alice.list_tree("/"),  # a part of a tree is never the whole
            lambda: alice.read_bytes(f"{top}/t/f"),
            lambda: alice.open_input(f"{top}/t/f"),
            lambda: alice.exists(f"{top}/t/f"),
            lambda: alice.write_bytes(f"{top}/t/g", b""),
            lambda: alice.open_output("/new-at-root").close(),
            lambda: alice.make_dirs(f"{top}/u"),
            lambda: alice.rename(f"{top}/t", f"{top}/u"),
            lambda: alice.remove_tree(f"{top}/t"),
        ]
        for call in calls:
            with pytest.raises(AccessError) as raised:
                call()
            assert raised.value.why == "permission denied"
            assert "HADOOP_USER_NAME" in raised.value.hint
        assert [entry.path for entry in root.list_tree(top).entries] == ["t", "t/f"]

    def test_safe_mode_is_a_sentence(self, hdfs: HdfsServer, way: str) -> None:
        fs = open_as(hdfs, way, "root")
        fs.make_dirs(f"/safe-{way}/d")
        fs.write_bytes(f"/safe-{way}/f", b"0123")
        hdfs.admin("-safemode", "enter")
        try:
            assert fs.read_bytes(f"/safe-{way}/f") == b"0123"
            for call in (
                lambda: fs.make_dirs(f"/safe-{way}/e"),
                lambda: fs.write_bytes(f"/safe-{way}/g", b"x"),
                lambda: fs.rename(f"/safe-{way}/d", f"/safe-{way}/e"),
                lambda: fs.remove_tree(f"/safe-{way}"),
            ):
                with pytest.raises(StorageError, match="safe mode") as raised:
                    call()
                assert not isinstance(raised.value, PassingError)
        finally:
            hdfs.admin("-safemode", "leave")
        assert [entry.path for entry in fs.list_tree(f"/safe-{way}").entries] == ["d", "f"]

    def test_names_hdfs_does_not_allow(self, hdfs: HdfsServer, way: str) -> None:
        fs = open_as(hdfs, way, "root")
        with pytest.raises(StorageError, match="does not allow such a name"):
            fs.make_dirs("/a:b")
        with pytest.raises(NotFoundError, match="UTF-8"):
            fs.make_dirs("/caf\udce9")

    def test_what_vanishes_between_the_listing_and_the_reading(self, hdfs: HdfsServer, way: str) -> None:
        fs = open_as(hdfs, way, "root")
        fs.make_dirs(f"/vanish-{way}")
        fs.write_bytes(f"/vanish-{way}/f", b"0123456789")
        with fs.open_input(f"/vanish-{way}/f") as source:
            fs.remove_tree(f"/vanish-{way}/f")
            with pytest.raises(AcidctlError) as raised:
                source.read()
                fs.read_bytes(f"/vanish-{way}/f")
        assert f"/vanish-{way}/f" in raised.value.what

    def test_both_ways_see_the_same(self, hdfs: HdfsServer, way: str) -> None:
        fs, other = (open_as(hdfs, one, "root") for one in (way, WAYS[way == "hdfs"]))
        fs.make_dirs(f"/same-{way}/p=a%3Ab")
        fs.write_bytes(f"/same-{way}/p=a%3Ab/f", b"x" * 1000)
        assert fs.list_tree(f"/same-{way}") == other.list_tree(f"/same-{way}")
        assert other.read_bytes(f"/same-{way}/p=a%3Ab/f", 990) == b"x" * 10


@pytest.mark.server
def test_a_new_file_makes_no_directory(hdfs: HdfsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would bring back a location that was dropped. WebHDFS of Hadoop 2.7 does so all the same, but is told."""
    fs = open_as(hdfs, "hdfs", "root")
    for write in (lambda path: fs.write_bytes(path, b"x"), lambda path: fs.open_output(path).close()):
        with pytest.raises(NotFoundError):
            write("/never-made/t/file")
    assert not fs.exists("/never-made")
    web, asked = open_as(hdfs, "webhdfs", "root"), []
    send = Http.send

    def asking(http: Http, verb: str, url: str, data: object = None) -> object:
        asked.append(parse_qs(urlsplit(url).query))
        return send(http, verb, url, data)

    monkeypatch.setattr(Http, "send", asking)
    web.write_bytes("/told-so", b"x")
    assert next(one["createparent"] for one in asked if one["op"] == ["CREATE"]) == ["false"]


@pytest.mark.server
def test_a_forked_process_opens_it_again(hdfs: HdfsServer) -> None:
    script = (
        "import os, sys\n"
        "from acidctl.storage.registry import open_file_system, open_location\n"
        "fs, _ = open_location(sys.argv[1])\n"
        "assert fs.exists('/')\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os._exit(0 if open_file_system(fs.spec).exists('/') else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    subprocess.run([sys.executable, "-c", script, f"hdfs://root@{hdfs.rpc_authority}/"], check=True, timeout=60)


@pytest.fixture(scope="module", params=[2, 3])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HaHdfsServer]:
    with served(lambda: HaHdfsServer(tmp_path_factory.mktemp("pair"), hadoop=request.param)) as server:
        yield server


@pytest.mark.server
def test_a_nameservice_survives_its_active_name_node(pair: HaHdfsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(pair.conf))
    ways = [open_location(f"{way}://root@acid/t")[0] for way in WAYS]
    assert open_location("hdfs:///t")[0].spec == ways[0].spec
    assert ways[1].spec.authority == pair.authority
    monkeypatch.delenv("HADOOP_CONF_DIR")  # as on an executor
    ways += [open_file_system(fs.spec) for fs in ways]

    def use(turn: str) -> None:
        for index, fs in enumerate(ways):
            root = f"/{turn}-{index}"
            fs.make_dirs(root)
            fs.write_bytes(f"{root}/a", b"0123")
            fs.rename(f"{root}/a", f"{root}/b")
            with pytest.raises(NotFoundError):
                fs.rename(f"{root}/a", f"{root}/c")
            with pytest.raises(ConflictError):
                fs.rename(f"{root}/b", root)
            assert [entry.path for entry in fs.list_tree(root).entries] == ["b"]
            assert fs.read_bytes(f"{root}/b", 1) == b"123"
            fs.remove_tree(root)
            with pytest.raises(NotFoundError):
                fs.remove_tree(root)

    standby, _ = open_location(f"webhdfs://root@{pair.authority.partition(',')[2]}/")
    use("before")
    with pytest.raises(StorageError, match="on standby") as raised:
        standby.list_dir("/")
    assert "HADOOP_CONF_DIR" in raised.value.hint
    pair.fail_over()
    assert standby.list_dir("/").entries == ()
    use("after")


def test_one_process_is_one_user_over_rpc() -> None:
    open_location("hdfs://alice@nn:8020/")
    assert os.environ["HADOOP_USER_NAME"] == "alice"
    open_location("hdfs://alice@other:8020/")
    with pytest.raises(UsageProblem, match="alice"):
        open_location("hdfs://bob@nn:8020/")
    assert os.environ["HADOOP_USER_NAME"] == "alice"


def test_unreachable_namenode_is_told_with_its_address() -> None:
    fs, _ = open_location("hdfs://root@127.0.0.1:1/")
    with pytest.raises(StorageError) as raised:
        fs.list_tree("/t")
    assert "hdfs://127.0.0.1:1" in raised.value.why
    assert "8020" in raised.value.hint


@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_says_nothing(way: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fs, _ = open_location(f"{way}://root@127.0.0.1:{silent.getsockname()[1]}/", QUICK)
        for call in (fs.stat, fs.list_dir, fs.remove_tree, lambda path: fs.rename(path, "/u")):
            with pytest.raises(StorageError, match="did not answer"):
                call("/t")


@pytest.mark.parametrize("options", [{"timeout": "0"}, {"timeout": "soon"}, {"retries": "-1"}, {"retries": "many"}])
@pytest.mark.parametrize("way", WAYS)
def test_bad_options_are_named(way: str, options: dict[str, str]) -> None:
    with pytest.raises(UsageProblem, match=next(iter(options))):
        open_location(f"{way}://root@nn/", options)


def test_a_keytab_needs_its_principal() -> None:
    with pytest.raises(UsageProblem, match="principal"):
        open_location("hdfs://nn:8020/", {"keytab": "/k"})


def conf(folder: Path, **files: dict[str, str]) -> None:
    for name, properties in files.items():
        items = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items())
        (folder / f"{name}-site.xml").write_text(f"<?xml version='1.0'?><configuration>{items}</configuration>")


class TestConfiguration:
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
        conf(
            tmp_path,
            core={"fs.defaultFS": "hdfs://big", "domain": "x.org"},
            hdfs={
                "dfs.ha.namenodes.big": "a, b",
                "dfs.namenode.rpc-address.big.a": "nn1.${domain}:8020",
                "dfs.namenode.rpc-address.big.b": "nn2.${domain}:8020",
                "dfs.namenode.http-address.big.a": "nn1.${domain}:9870",
                "dfs.namenode.http-address.big.b": "nn2.${domain}",
                "dfs.namenode.https-address.big.a": "nn1.${domain}:9871",
            },
        )

    @pytest.mark.parametrize(
        ("written", "authority"),
        [
            ("hdfs://big/t", "big"),
            ("hdfs:///t", "big"),
            ("hdfs:/t", "big"),
            ("hdfs://nn/t", "nn:8020"),
            ("hdfs://nn:9000/t", "nn:9000"),
            ("webhdfs://big/t", "nn1.x.org:9870,nn2.x.org:9870"),
            ("webhdfs://alice@big/t", "nn1.x.org:9870,nn2.x.org:9870"),
            ("swebhdfs://big/t", "nn1.x.org:9871"),
            ("webhdfs://nn/t", "nn:9870"),
        ],
    )
    def test_nameservice_is_found_in_the_configuration(self, written: str, authority: str) -> None:
        fs, path = open_location(written)
        assert (fs.spec.authority, path) == (authority, "/t")

    def test_the_spec_takes_the_addresses_along(self) -> None:
        options = dict(open_location("hdfs://big/t", {"dfs.client.x": "y"})[0].spec.options)
        assert options["dfs.ha.namenodes.big"] == "a, b"
        assert options["dfs.namenode.rpc-address.big.b"] == "nn2.x.org:8020"
        assert options["dfs.client.x"] == "y"

    def test_kerberos_of_the_configuration_is_used(self, tmp_path: Path) -> None:
        conf(tmp_path, core={"hadoop.security.authentication": "kerberos", "fs.defaultFS": "hdfs://big"})
        assert dict(open_location("hdfs:///t")[0].spec.options)["kerberos"] == "true"
        assert dict(open_location("webhdfs://big/t", {"kerberos": "no"})[0].spec.options)["kerberos"] == "no"

    def test_configuration_is_found_below_hadoop_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("HADOOP_CONF_DIR")
        monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "home"))
        with pytest.raises(UsageProblem, match="no host"):
            open_location("hdfs:///t")
        (tmp_path / "home/etc").mkdir(parents=True)
        (tmp_path / "home/etc/hadoop").symlink_to(tmp_path)
        assert open_location("hdfs:///t")[0].spec.authority == "big"

    def test_a_broken_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "core-site.xml").write_text("<configuration><property>")
        with pytest.raises(UsageProblem, match=r"core-site\.xml"):
            open_location("hdfs:///t")

    def test_variables_that_lead_in_circles_end(self, tmp_path: Path) -> None:
        conf(tmp_path, core={"fs.defaultFS": "${a}", "a": "x${b}", "b": "${a}"})
        with pytest.raises(UsageProblem, match="no host"):
            open_location("hdfs:///t")


class Lossy:
    """A NameNode that does, or does not, what it is told, and then is not heard of."""

    def __init__(self, does: bool, error: type[StorageError] | type[NotFoundError] = PassingError) -> None:
        self.files = {"/d/s": b"S"}
        self.does, self.error = does, error

    def status(self, path: str, doing: str) -> dict[str, object]:
        if path not in self.files:
            raise NotFoundError(f"cannot {doing} {path}")
        return {"type": "FILE", "length": len(self.files[path]), "modificationTime": 0}

    def open_reader(self, path: str) -> tuple[int, Callable[[int, int], bytes]]:
        self.status(path, "read")
        return len(self.files[path]), lambda start, end: self.files[path][start:end]

    def rename(self, source: str, target: str) -> bool:
        if self.does:
            self.files[target] = self.files.pop(source)
        raise self.error("cannot rename", "no answer", "try again")

    def create(self, path: str, data: bytes) -> None:
        self.files[path] = data if self.does else data[:1]
        raise self.error("cannot create", "no answer", "try again")

    def delete(self, path: str) -> bool:
        if self.does:
            del self.files[path]
        raise self.error("cannot remove", "no answer", "try again")


class TestLostAnswers:
    def open(self, client: Lossy, monkeypatch: pytest.MonkeyPatch, several: bool = False) -> HdfsFileSystem:
        monkeypatch.setattr("acidctl.storage.hdfs.filesystem._client", lambda spec: client)
        return HdfsFileSystem(FileSystemSpec("webhdfs", (), "a:1,b:1" if several else "a:1"))

    def test_what_was_done_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        client = Lossy(does=True)
        fs = self.open(client, monkeypatch)
        fs.rename("/d/s", "/d/t")
        fs.create_exclusive("/d/lock", b"mine")
        fs.remove_tree("/d/t")
        assert client.files == {"/d/lock": b"mine"}

    def test_what_was_not_done_is_an_error_that_says_look(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fs = self.open(Lossy(does=False), monkeypatch)
        for call in (
            lambda: fs.rename("/d/s", "/d/t"),
            lambda: fs.create_exclusive("/d/lock", b"mine"),
            lambda: fs.remove_tree("/d/s"),
        ):
            with pytest.raises(StorageError, match="may") as raised:
                call()
            assert "look" in raised.value.hint
            assert not isinstance(raised.value, PassingError)  # nobody above may simply repeat it

    def test_nobody_can_tell_whose_an_empty_file_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fs = self.open(Lossy(does=True), monkeypatch)
        with pytest.raises(StorageError, match="may be there"):
            fs.create_exclusive("/d/lock", b"")

    def test_the_second_name_node_finds_it_done(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open(Lossy(True, NotFoundError), monkeypatch, several=True).rename("/d/s", "/d/t")
        with pytest.raises(NotFoundError):
            self.open(Lossy(True, NotFoundError), monkeypatch).rename("/d/s", "/d/t")
        with pytest.raises(NotFoundError):
            self.open(Lossy(False, NotFoundError), monkeypatch, several=True).rename("/d/s", "/d/t")

    def test_a_refusal_that_means_a_target(self, monkeypatch: pytest.MonkeyPatch) -> None:
        client = Lossy(does=False, error=StorageError)
        fs = self.open(client, monkeypatch)
        appears = iter([False])
        monkeypatch.setattr(fs, "exists", lambda path: next(appears, True))
        with pytest.raises(ConflictError):
            fs.rename("/d/s", "/d/t")


class Wide:
    """A NameNode with two levels of directories, which counts the requests that it has at once."""

    def __init__(self) -> None:
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    def list_status(self, path: str) -> list[dict[str, object]]:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.02)
        with self.lock:
            self.now -= 1
        names = [f"d{number}" for number in range(20)] if path.count("/") < 3 else []
        return [{"type": "DIRECTORY", "pathSuffix": name, "modificationTime": 0} for name in names]


def test_all_trees_together_are_listed_by_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Wide()
    monkeypatch.setattr("acidctl.storage.hdfs.filesystem._client", lambda spec: client)
    fs = HdfsFileSystem(FileSystemSpec("webhdfs", (), "a:1"))
    with ThreadPoolExecutor(8) as trees:
        listings = list(trees.map(fs.list_tree, [f"/t{number}/x" for number in range(8)]))
    assert [len(listing.entries) for listing in listings] == [20] * 8
    assert client.most <= STORE_THREADS


@pytest.mark.parametrize(
    ("exception", "message", "kind", "said"),
    [
        ("java.io.IOException", "Source /a and destination /b must both be directories", ConflictError, "exists"),
        ("org.apache.hadoop.ipc.StandbyException", "Operation category", PassingError, "standby"),
        ("java.io.IOException", "File /f could only be replicated to 0 nodes", StorageError, "DataNode"),
        ("SecurityException", "Failed: token.SecretManager$InvalidToken: expired", AccessError, "token"),
    ],
)
def test_exceptions_of_hadoop_become_ours(exception: str, message: str, kind: type[AcidctlError], said: str) -> None:
    error = from_remote("cannot", exception, message)
    assert type(error) is kind
    assert said in error.why
