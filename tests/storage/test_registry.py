"""What a user types, and where it leads."""

from __future__ import annotations

import sys
from pathlib import Path

import fsspec
import pytest

from acidctl.base.errors import ConflictError, EnvironmentProblem, NotFoundError, StorageError, UsageProblem
from acidctl.storage import fsspec_fs
from acidctl.storage.port import FileSystemSpec, base_name, join, parent_of
from acidctl.storage.registry import open_file_system, open_location


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "t",
            "p=a%3Ab",
            "100% sure",
            "a#b?c",
            "ü 日本",
            "~",
            "~root",
            "a+b",
            "$HOME",
            "new\nline",
            "*[x]",
            "c:d",
            "x//:y",
        ),
        *("\udcff", "file", "memory:x"),
    ],
)
@pytest.mark.usefixtures("_here")
def test_a_plain_path_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    for written, expected in ((name, name), (f"{name}/", name), (f"./{name}//", name)):
        fs, path = open_location(written)
        assert fs.spec == FileSystemSpec("file")
        assert path == f"{tmp_path}/{expected.replace('//', '/')}"
        assert fs.display(path) == path


@pytest.mark.parametrize("options", [None, {}, {"user": "x", "key": "y"}])
def test_absolute_paths_and_file_urls(options: dict[str, str] | None) -> None:
    for written in ("/w/t", "//w//t/", "file:///w/t", "file:/w/t/", "FILE://localhost/w/t", "/w/./t", "/w/x/../t"):
        assert open_location(written, options)[1] == "/w/t"
    assert open_location("file:///p=a%3Ab c#d")[1] == "/p=a%3Ab c#d"
    assert open_location("/")[1] == open_location("file:///")[1] == "/"


@pytest.mark.usefixtures("_here")
def test_links_are_kept_and_dots_behind_them_mean_what_the_kernel_says(tmp_path: Path) -> None:
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to("far/away")
    assert open_location("link")[1] == f"{tmp_path}/link"
    assert open_location("link/../x")[1] == f"{tmp_path}/far/x"
    assert open_location("far/../x")[1] == f"{tmp_path}/x"
    assert open_location("..")[1] == str(tmp_path.parent)


def test_relative_path_in_a_removed_directory_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d").mkdir()
    monkeypatch.chdir(tmp_path / "d")
    (tmp_path / "d").rmdir()
    with pytest.raises(NotFoundError, match="current directory"):
        open_location("t")
    assert open_location("/w")[1] == "/w"


def test_url_of_memory_gives_its_path() -> None:
    for written in ("memory://w/t", "memory:///w/t/", "memory://w//./t"):
        fs, path = open_location(written)
        assert path == "/w/t"
        assert fs.display(path) == "memory:///w/t"
    assert open_location("memory://")[1] == "/"


@pytest.mark.parametrize(
    ("written", "options", "authority", "user", "path"),
    [
        ("webhdfs://nn:50070/w/t/", {}, "nn:50070", "env", "/w/t"),
        ("webhdfs://nn/w/p=a%3Ab", {}, "nn:9870", "env", "/w/p=a%3Ab"),
        ("swebhdfs://nn/a b#c?d", {}, "nn:9871", "env", "/a b#c?d"),
        ("webhdfs://alice@nn/w", {}, "nn:9870", "alice", "/w"),
        ("webhdfs://alice@nn/w", {"user": "bob"}, "nn:9870", "bob", "/w"),
        ("webhdfs://a,b:1", {}, "a:9870,b:1", "env", "/"),
        ("webhdfs://[::1]:99/w//t", {}, "[::1]:99", "env", "/w/t"),
        ("webhdfs://[::1]/w", {}, "[::1]:9870", "env", "/w"),
    ],
)
def test_url_of_webhdfs_gives_authority_user_and_path(
    written: str,
    options: dict[str, str],
    authority: str,
    user: str,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "env")
    fs, inside = open_location(written, options)
    assert inside == path
    assert fs.spec.authority == authority
    assert dict(fs.spec.options)["user"] == user
    assert fs.display(path) == f"{written.partition(':')[0]}://{authority}{path}"
    monkeypatch.delenv("HADOOP_USER_NAME")
    monkeypatch.setenv("LOGNAME", "system")
    if user == "env":
        assert dict(open_location(written)[0].spec.options)["user"] == "system"


@pytest.mark.parametrize(
    "written", ["", "file://host/x", "webhdfs:///x", "s3:///x", "nonsense://x/y", "webhdfs://nn/x"], ids=str
)
def test_url_that_cannot_be_used_is_refused_with_a_hint(written: str) -> None:
    options = {"timeout": "soon"} if written == "webhdfs://nn/x" else {}
    with pytest.raises(UsageProblem) as raised:
        open_location(written, options)
    assert raised.value.hint or "timeout" in raised.value.what


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(protocol: str) -> None:
        raise ImportError(f"Install something to access {protocol}")

    monkeypatch.setattr(fsspec_fs.fsspec, "get_filesystem_class", missing)
    for written, hint in (("s3a://b/t", "pip install 'acidctl[s3]'"), ("gs://b/t", "pip install gcsfs")):
        with pytest.raises(EnvironmentProblem) as raised:
            open_location(written)
        assert raised.value.hint == hint


def test_native_hdfs_without_its_package_points_to_webhdfs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(EnvironmentProblem) as raised:
        open_location("hdfs://nn:8020/w/t")
    assert "acidctl[hdfs]" in raised.value.hint
    assert "webhdfs://" in raised.value.hint


def test_options_become_what_fsspec_takes() -> None:
    options = (("anon", "true"), ("client_kwargs.region_name", "eu"), ("client_kwargs.verify", "False"), ("key", "1"))
    assert fsspec_fs._nested(options) == {
        "anon": True,
        "client_kwargs": {"region_name": "eu", "verify": False},
        "key": "1",
    }


def test_s3_has_timeouts_and_tries_of_its_own() -> None:
    spec = FileSystemSpec("s3", (("config_kwargs.x", "y"), ("key", "1"), ("retries", "7"), ("timeout", "30")), "bucket")
    assert fsspec_fs._nested(fsspec_fs._with_retries(spec)) == {
        "config_kwargs": {"x": "y", "read_timeout": 30.0, "connect_timeout": 10.0, "retries": {"max_attempts": 7}},
        "key": "1",
    }
    assert fsspec_fs._with_retries(FileSystemSpec("s3", (), "bucket")) == ()
    with pytest.raises(UsageProblem, match="timeout"):
        open_file_system(FileSystemSpec("s3", (("timeout", "0"),), "bucket"))


def test_secrets_are_not_shown() -> None:
    assert "hush" not in repr(FileSystemSpec("s3", (("secret", "hush"),), "bucket"))


def test_paths_are_joined_and_taken_apart() -> None:
    assert join("/", "a", "b") == join("/a", "b") == "/a/b"
    assert (base_name("/a/b"), base_name("/"), parent_of("/a/b"), parent_of("/a"), parent_of("/")) == (
        *("b", "", "/a", "/", "/"),
    )


class TestAnyFsspecStore:
    """The adapter over a store of which fsspec knows nothing special, here the local disk through fsspec."""

    @pytest.fixture
    def fs(self) -> fsspec_fs.FsspecFileSystem:
        return fsspec_fs.FsspecFileSystem(FileSystemSpec("file"))

    def test_lists_reads_writes_and_removes(self, fs: fsspec_fs.FsspecFileSystem, tmp_path: Path) -> None:
        root = str(tmp_path)
        fs.make_dirs(f"{root}/d/e")
        fs.write_bytes(f"{root}/d/[x]*", b"0123")
        with fs.open_output(f"{root}/d/e/f") as output:
            output.write(b"45")
        assert [(entry.path, entry.size) for entry in fs.list_tree(root).entries] == [
            *(("d", 0), ("d/[x]*", 4), ("d/e", 0), ("d/e/f", 2)),
        ]
        assert [entry.path for entry in fs.list_dir(f"{root}/d").entries] == ["[x]*", "e"]
        assert fs.read_bytes(f"{root}/d/[x]*", -2) == b"23"
        with fs.open_input(f"{root}/d/[x]*") as source:
            source.seek(1)
            assert source.read() == b"123"
        fs.remove_tree(f"{root}/d")
        assert fs.list_tree(root).entries == ()

    def test_a_file_is_opened_once_for_all_of_its_pieces(
        self, fs: fsspec_fs.FsspecFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data = bytes(range(256)) * (48 << 10)
        (tmp_path / "f").write_bytes(data)
        opened: list[str] = []
        real = fs._fs.open

        def counted(path: str, *how: str, **options: object) -> object:
            opened.append(path)
            return real(path, *how, **options)

        monkeypatch.setattr(fs._fs, "open", counted)
        with fs.open_input(f"{tmp_path}/f") as source:
            pieces = [source.read(4 << 20) for _ in range(3)]
        assert b"".join(pieces) == data
        assert len(opened) == 1

    def test_it_does_not_copy(self, fs: fsspec_fs.FsspecFileSystem, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"1")
        with pytest.raises(StorageError, match="cannot copy"):
            fs.copy(f"{tmp_path}/f", f"{tmp_path}/g")
        assert not (tmp_path / "g").exists()

    def test_a_directory_that_cannot_be_read_is_never_an_empty_one(
        self, fs: fsspec_fs.FsspecFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "secret" / "x").mkdir(parents=True)
        real = fs._fs.ls

        def ls(path: str, detail: bool) -> object:
            if path.endswith("secret"):
                raise PermissionError(path)
            return real(path, detail=detail)

        monkeypatch.setattr(fs._fs, "ls", ls)
        with pytest.raises(Exception, match="permission denied"):
            fs.list_tree(str(tmp_path))

    def test_a_file_that_may_be_its_own_is_no_conflict(
        self, fs: fsspec_fs.FsspecFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The first answer was lost, and the package has repeated its request by itself."""
        monkeypatch.setattr(fsspec_fs, "_EXCLUSIVE_CREATE", {"file"})

        def lost(path: str, data: bytes, **_: object) -> None:
            (tmp_path / path.rpartition("/")[2]).write_bytes(data if path.endswith("own") else b"theirs")
            raise FileExistsError(path)

        def fails(*_: object, **__: object) -> bytes:
            raise StorageError("cannot read own", "the network is down")

        monkeypatch.setattr(fs._fs, "pipe_file", lost)
        fs.create_exclusive(f"{tmp_path}/own", b"ours")
        with pytest.raises(ConflictError):
            fs.create_exclusive(f"{tmp_path}/other", b"ours")
        (tmp_path / "own").unlink()
        monkeypatch.setattr(fs, "read_bytes", fails)
        with pytest.raises(StorageError, match="cannot read own"):
            fs.create_exclusive(f"{tmp_path}/own", b"ours")

    def test_promises_no_more_than_it_can(self, fs: fsspec_fs.FsspecFileSystem, tmp_path: Path) -> None:
        with pytest.raises(Exception, match="exclusively"):
            fs.create_exclusive(str(tmp_path / "lock"), b"")
        assert list(tmp_path.iterdir()) == []


def test_memory_is_fsspecs_own() -> None:
    fsspec.filesystem("memory").pipe_file("/acidctl-shared/d/x", b"1")
    fs, path = open_location("memory://acidctl-shared")
    assert [entry.path for entry in fs.list_tree(path).entries] == ["d", "d/x"]
    fs.remove_tree(join(path, "d/x"))
    assert [entry.path for entry in fs.list_tree(path).entries] == ["d"]
    fs.remove_tree(path)
