"""The local disk's own corners: links, odd names, odd files, checksums, errors of the kernel."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acidctl.base.errors import (
    AccessError,
    AcidctlError,
    BadDataError,
    ConflictError,
    NoSpaceError,
    NotFoundError,
    StorageError,
)
from acidctl.base.printable import printable
from acidctl.storage.local import filesystem, rename, tree
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.local.rooted_directory import Anywhere
from acidctl.storage.options import StorageOptions
from acidctl.storage.os_errors import from_os_error
from acidctl.storage.registry import open_location

FS = LocalFileSystem()


def names(path: Path) -> list[str]:
    return [entry.path for entry in FS.list_tree(str(path)).entries]


class TestLinks:
    def test_a_linked_directory_is_followed_wherever_it_stands(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "real" / "f").write_text("1234")
        (tmp_path / "z").mkdir()
        (tmp_path / "a").symlink_to("real")
        (tmp_path / "z" / "again").symlink_to(tmp_path / "real")
        assert names(tmp_path) == ["a", "a/f", "real", "real/f", "z", "z/again", "z/again/f"]
        assert {entry.size for entry in FS.list_tree(str(tmp_path)).entries if not entry.is_dir} == {4}

    @pytest.mark.parametrize("target", [".", "..", "../..", "/"])
    def test_a_link_that_leads_back_is_listed_but_not_entered(self, tmp_path: Path, target: str) -> None:
        location = tmp_path / "t"
        (location / "d").mkdir(parents=True)
        (location / "d" / "back").symlink_to(target)
        assert names(location) == ["d", "d/back"]
        assert FS.list_tree(str(location)).entries[1].is_dir

    def test_two_links_that_lead_to_each_other(self, tmp_path: Path) -> None:
        for name, other in (("a", "b"), ("b", "a")):
            (tmp_path / name).mkdir()
            (tmp_path / name / "x").symlink_to(tmp_path / other)
        assert names(tmp_path) == ["a", "a/x", "a/x/x", "b", "b/x", "b/x/x"]

    def test_links_beyond_number_are_an_error_and_no_endless_walk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tree, "_NESTED_LINKS", 20)
        for index in range(5):
            (tmp_path / str(index)).mkdir()
            for other in range(5):
                (tmp_path / str(index) / f"to{other}").symlink_to(tmp_path / str(other))
        with pytest.raises(StorageError, match="symbolic links"):
            FS.list_tree(str(tmp_path))

    def test_a_link_that_leads_back_is_known_from_the_first_look(self, tmp_path: Path) -> None:
        (tmp_path / "delta_1_1").mkdir()
        (tmp_path / "up").symlink_to(".")
        found = FS.list_tree(str(tmp_path), FS.list_dir(str(tmp_path)))
        assert [entry.path for entry in found.entries] == ["delta_1_1", "up"]
        assert found == FS.list_tree(str(tmp_path))

    def test_a_cleaning_meanwhile_is_seen_whole(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Or the base that replaces a delta would be missing, and the delta too: its rows would be lost to a reader."""
        (tmp_path / "delta_1_1").mkdir()
        (tmp_path / "delta_2_2").mkdir()
        scan = tree._scan

        def racing(directory: str, prefix: str) -> object:
            found = list(scan(directory, prefix))
            if not prefix and (tmp_path / "delta_1_1").exists():
                (tmp_path / "base_2").mkdir()
                (tmp_path / "base_2" / "f").write_text("x")
                (tmp_path / "delta_1_1").rmdir()
            return found

        monkeypatch.setattr(tree, "_scan", racing)
        assert names(tmp_path) == ["base_2", "base_2/f", "delta_2_2"]

    def test_what_the_caller_has_listed_is_looked_at_again_when_something_went(self, tmp_path: Path) -> None:
        for name in ("delta_1_1", "delta_2_2"):
            (tmp_path / name).mkdir()
        top = FS.list_dir(str(tmp_path))
        (tmp_path / "base_2").mkdir()
        assert [entry.path for entry in FS.list_tree(str(tmp_path), top).entries] == ["delta_1_1", "delta_2_2"]
        (tmp_path / "delta_1_1").rmdir()
        assert [entry.path for entry in FS.list_tree(str(tmp_path), top).entries] == ["base_2", "delta_2_2"]

    def test_broken_links_are_files_of_a_byte(self, tmp_path: Path) -> None:
        (tmp_path / "nowhere").symlink_to("no-such")
        (tmp_path / "self").symlink_to("self")
        (tmp_path / "below").symlink_to("file/x")
        (tmp_path / "file").write_text("x")
        listing = FS.list_tree(str(tmp_path)).entries
        assert [(entry.path, entry.size, entry.is_dir) for entry in listing] == [
            ("below", 1, False),
            ("file", 1, False),
            ("nowhere", 1, False),
            ("self", 1, False),
        ]
        for name in ("nowhere", "self", "below"):
            with pytest.raises((NotFoundError, StorageError)):
                FS.read_bytes(str(tmp_path / name))

    def test_removing_a_link_leaves_its_target(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "real" / "f").write_text("x")
        (tmp_path / "link").symlink_to("real")
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "link").symlink_to("../real")
        FS.remove_tree(str(tmp_path / "link"))
        FS.remove_tree(str(tmp_path / "d"))
        assert names(tmp_path) == ["real", "real/f"]

    def test_a_broken_link_is_a_target_that_exists(self, tmp_path: Path) -> None:
        (tmp_path / "d").mkdir()
        (tmp_path / "target").symlink_to("no-such")
        with pytest.raises(ConflictError):
            FS.rename(str(tmp_path / "d"), str(tmp_path / "target"))
        with pytest.raises(ConflictError):
            FS.write_bytes(str(tmp_path / "target"), b"")


class TestNames:
    def test_bytes_that_are_no_utf8_are_kept(self, tmp_path: Path) -> None:
        name = b"caf\xe9\xff"
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"x")
        (entry,) = FS.list_tree(str(tmp_path)).entries
        assert os.fsencode(entry.path) == name
        path = f"{tmp_path}/{entry.path}"
        assert FS.read_bytes(path) == b"x"
        assert FS.local_path(path) is None
        with pytest.raises(ConflictError) as raised:
            FS.write_bytes(path, b"")
        assert raised.value.what.endswith("caf\\xe9\\xff")
        FS.rename(path, str(tmp_path / "new"))
        assert names(tmp_path) == ["new"]

    @pytest.mark.parametrize("bad", ["nul\0byte", "lone\ud800surrogate"])
    def test_what_cannot_be_a_name_is_not_found(self, tmp_path: Path, bad: str) -> None:
        (tmp_path / "nul").mkdir()
        path = f"{tmp_path}/{bad}"
        for call in (FS.list_tree, FS.stat, FS.exists, FS.read_bytes, FS.remove_tree, FS.make_dirs, FS.open_output):
            with pytest.raises(NotFoundError):
                call(path)
        with pytest.raises(NotFoundError):
            FS.rename(str(tmp_path / "nul"), path)
        assert names(tmp_path) == ["nul"]

    def test_messages_are_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError) as raised:
            FS.stat(f"{tmp_path}/a\nb\x1b[31m")
        assert raised.value.what.endswith("a\\nb\\x1b[31m")

    def test_odd_characters_of_names_are_escaped(self) -> None:
        assert printable("plain ü 日本") == "plain ü 日本"
        assert printable("a\r\udcff\u2028\ud800") == "a\\r\\xff\\u2028\\ud800"

    def test_a_name_that_is_too_long(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match="too long"):
            FS.write_bytes(str(tmp_path / ("x" * 300)), b"")


class TestOddFiles:
    @pytest.fixture
    def pipe(self, tmp_path: Path) -> Path:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        return path

    def test_a_pipe_is_not_waited_for(self, pipe: Path) -> None:
        assert [(entry.path, entry.size) for entry in FS.list_tree(str(pipe.parent)).entries] == [("pipe", 1)]
        for call in (FS.open_input, FS.read_bytes):
            with pytest.raises(BadDataError, match="device or a pipe"):
                call(str(pipe))

    def test_socket_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
            with pytest.raises(AcidctlError):
                FS.open_input(str(tmp_path / "socket"))

    def test_many_files_are_listed_in_order(self, tmp_path: Path) -> None:
        for index in range(2000):
            (tmp_path / f"{index:06d}_0").touch()
        assert names(tmp_path) == [f"{index:06d}_0" for index in range(2000)]


class TestVanishing:
    def test_a_file_that_goes_between_scan_and_stat_is_left_out(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("a", "b", "c"):
            (tmp_path / name).write_text("x")
        on_scan(monkeypatch, lambda directory: (tmp_path / "b").unlink(missing_ok=True))
        assert names(tmp_path) == ["a", "c"]

    def test_a_directory_that_goes_before_it_is_read_is_left_out(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("d", "dd"):
            (tmp_path / name).mkdir()
        (tmp_path / "dd" / "x").touch()
        on_open(monkeypatch, str(tmp_path / "d"), (tmp_path / "d").rmdir)
        assert names(tmp_path) == ["dd", "dd/x"]

    def test_a_directory_that_becomes_a_file_is_a_conflict(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        directory = tmp_path / "d"
        directory.mkdir()

        def swap() -> None:
            directory.rmdir()
            directory.touch()

        on_open(monkeypatch, str(directory), swap)
        with pytest.raises(ConflictError, match="changed"):
            FS.list_tree(str(tmp_path))

    def test_a_directory_that_cannot_be_read_is_never_an_empty_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "secret").mkdir()

        def deny() -> None:
            raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "secret"))

        on_open(monkeypatch, str(tmp_path / "secret"), deny)
        with pytest.raises(AccessError) as raised:
            FS.list_tree(str(tmp_path))
        assert "secret" in str(raised.value)

    def test_a_tree_removed_by_two(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "d" / "e").mkdir(parents=True)
        real = filesystem.shutil.rmtree
        calls: list[str] = []

        def losing(path: str, dir_fd: int | None) -> None:
            calls.append(path)
            real(path, dir_fd=dir_fd)
            raise FileNotFoundError(errno.ENOENT, "gone", path)

        monkeypatch.setattr(filesystem.shutil, "rmtree", losing)
        FS.remove_tree(str(tmp_path / "d"))
        assert calls == [str(tmp_path / "d")]

    def test_a_tree_that_is_written_while_it_is_removed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "d").mkdir()

        def full(path: str, dir_fd: int | None) -> None:
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)

        monkeypatch.setattr(filesystem.shutil, "rmtree", full)
        with pytest.raises(ConflictError):
            FS.remove_tree(str(tmp_path / "d"))


def on_scan(monkeypatch: pytest.MonkeyPatch, action: Callable[[str], None]) -> None:
    """Do something after a directory was read and before its entries are looked at."""
    real = os.scandir

    class Frozen:
        def __init__(self, directory: str) -> None:
            with real(directory) as items:
                self.items = list(items)
            action(directory)

        def __enter__(self) -> list[os.DirEntry[str]]:
            return self.items

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(tree.os, "scandir", Frozen)


def on_open(monkeypatch: pytest.MonkeyPatch, path: str, action: Callable[[], None]) -> None:
    """Do something just before a directory is read."""
    real = os.scandir

    def scandir(directory: str) -> object:
        if directory == path:
            action()
        return real(directory)

    monkeypatch.setattr(tree.os, "scandir", scandir)


class TestChecksums:
    """Hadoop's local file system fails on a file whose `.name.crc` is another one's."""

    @staticmethod
    def crc(directory: Path, name: str, data: bytes = b"crc\0\0\0\x02\0") -> Path:
        path = directory / f".{name}.crc"
        path.write_bytes(data)
        return path

    def test_goes_with_its_file(self, tmp_path: Path) -> None:
        (tmp_path / "f").touch()
        self.crc(tmp_path, "f")
        FS.remove_tree(str(tmp_path / "f"))
        assert names(tmp_path) == []

    def test_moves_with_its_file(self, tmp_path: Path) -> None:
        (tmp_path / "f").touch()
        self.crc(tmp_path, "f")
        self.crc(tmp_path, "g")
        FS.rename(str(tmp_path / "f"), str(tmp_path / "g"))
        assert names(tmp_path) == [".g.crc", "g"]

    def test_of_an_earlier_file_does_not_stay_for_a_new_one(self, tmp_path: Path) -> None:
        self.crc(tmp_path, "f")
        FS.write_bytes(str(tmp_path / "f"), b"new")
        assert names(tmp_path) == ["f"]

    def test_somebody_elses_file_of_that_name_stays(self, tmp_path: Path) -> None:
        (tmp_path / "f").touch()
        self.crc(tmp_path, "f", b"mine")
        FS.remove_tree(str(tmp_path / "f"))
        assert names(tmp_path) == [".f.crc"]


class TestErrors:
    @pytest.mark.parametrize(
        ("number", "kind"),
        [
            (errno.ENOENT, NotFoundError),
            (errno.ENOTDIR, NotFoundError),
            (errno.EISDIR, NotFoundError),
            (errno.EACCES, AccessError),
            (errno.EPERM, AccessError),
            (errno.EROFS, AccessError),
            (errno.EEXIST, ConflictError),
            (errno.ENOTEMPTY, ConflictError),
            (errno.ENOSPC, NoSpaceError),
            (errno.EDQUOT, NoSpaceError),
            (errno.EIO, StorageError),
            (errno.ESTALE, StorageError),
            (errno.ELOOP, StorageError),
        ],
    )
    def test_each_number_has_its_class_and_names_the_path(self, number: int, kind: type[AcidctlError]) -> None:
        problem = from_os_error(OSError(number, os.strerror(number), "/t/deep/file"), "list", "/t")
        assert type(problem) is kind
        assert "/t" in problem.what
        assert problem.why
        assert problem.hint
        if number != errno.EIO and number != errno.ESTALE:
            assert "/t/deep/file" in problem.why

    @pytest.mark.parametrize(
        ("error", "kind"),
        [(FileNotFoundError("x"), NotFoundError), (PermissionError("x"), AccessError), (OSError("x"), StorageError)],
    )
    def test_errors_without_a_number_become_ours(self, error: OSError, kind: type[AcidctlError]) -> None:
        assert type(from_os_error(error, "list", "/t")) is kind

    def test_a_file_where_a_directory_is_expected(self, tmp_path: Path) -> None:
        (tmp_path / "f").touch()
        for call in (FS.list_tree, FS.list_dir, FS.stat, FS.read_bytes, FS.make_dirs, FS.open_output, FS.remove_tree):
            with pytest.raises(NotFoundError) as raised:
                call(str(tmp_path / "f" / "below"))
            assert "file, not a directory" in raised.value.why
        assert not FS.exists(str(tmp_path / "f" / "below"))

    def test_writing_without_a_parent_is_not_found(self, tmp_path: Path) -> None:
        for call in (FS.open_output, lambda path: FS.write_bytes(path, b"")):
            with pytest.raises(NotFoundError):
                call(str(tmp_path / "no" / "f"))

    def test_a_full_disk_leaves_no_half_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(filesystem.os, "fsync", full)
        with pytest.raises(StorageError, match="no space left") as raised:
            FS.write_bytes(str(tmp_path / "f"), b"x")
        assert str(tmp_path / "f") in raised.value.what
        assert names(tmp_path) == []
        output = FS.open_output(str(tmp_path / "g"))
        output.write(b"x")
        with pytest.raises(StorageError, match="no space left"):
            output.close()
        assert output.closed

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
    def test_a_write_that_fails_names_the_file(self, tmp_path: Path) -> None:
        raw = filesystem._DurableFile(str(tmp_path / "f"), Anywhere())
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, raw.fileno())
        os.close(full)
        with pytest.raises(StorageError, match="no space left"):
            raw.write(b"x")

    def test_denied_write_is_an_access_error(self, tmp_path: Path) -> None:
        if os.geteuid() == 0:
            pytest.skip("root may do anything")
        tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
        with pytest.raises(AccessError):
            FS.write_bytes(str(tmp_path / "f"), b"")

    def test_a_read_only_file_system(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def read_only(*_: object, **__: object) -> None:
            raise OSError(errno.EROFS, "Read-only file system", str(tmp_path / "d"))

        monkeypatch.setattr(filesystem.os, "makedirs", read_only)
        with pytest.raises(AccessError, match="read-only"):
            FS.make_dirs(str(tmp_path / "d"))


class TestRenameWithoutTheKernelsHelp:
    @pytest.fixture(autouse=True, params=[None, errno.ENOSYS, errno.EINVAL])
    def _old_kernel(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> int:
            rename.ctypes.set_errno(request.param)
            return -1

        monkeypatch.setattr(rename, "_renameat2", None if request.param is None else refuse)

    def test_rename_moves_a_tree(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "x").touch()
        FS.rename(str(tmp_path / "a"), str(tmp_path / "b"))
        assert names(tmp_path) == ["b", "b/x"]

    @pytest.mark.parametrize("target", ["empty", "full", "file"])
    def test_rename_replaces_nothing(self, tmp_path: Path, target: str) -> None:
        for name in ("a", "empty", "full"):
            (tmp_path / name).mkdir()
        (tmp_path / "full" / "x").touch()
        (tmp_path / "file").touch()
        before = names(tmp_path)
        with pytest.raises(ConflictError):
            FS.rename(str(tmp_path / "a"), str(tmp_path / target))
        assert names(tmp_path) == before

    def test_a_full_directory_that_appears_meanwhile_is_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("a", "full"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "x").touch()
        monkeypatch.setattr(rename.os.path, "lexists", lambda path: path.endswith("/a"))
        with pytest.raises(ConflictError):
            FS.rename(str(tmp_path / "a"), str(tmp_path / "full"))

    def test_rename_into_itself_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        with pytest.raises(StorageError):
            FS.rename(str(tmp_path / "a"), str(tmp_path / "a" / "b"))
        assert names(tmp_path) == ["a"]


def test_rename_between_two_disks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()

    def other_disk(*_: object) -> int:
        rename.ctypes.set_errno(errno.EXDEV)
        return -1

    monkeypatch.setattr(rename, "_renameat2", other_disk)
    with pytest.raises(StorageError, match="different file systems"):
        FS.rename(str(tmp_path / "a"), str(tmp_path / "b"))


def test_an_output_is_on_the_disk_when_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc here")
    monkeypatch.setattr(filesystem.os, "fsync", fsync)
    with FS.open_output(str(tmp_path / "f")) as output:
        output.write(b"x")
        assert synced == []
    assert synced == [str(tmp_path / "f"), str(tmp_path)]
    assert (tmp_path / "f").read_bytes() == b"x"


class TestDisksThatFail:
    """Not when a file is opened: later."""

    @pytest.mark.parametrize("own_links", [True, False])
    def test_a_look_at_what_was_opened(self, own_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "f").write_bytes(b"x")
        fs, path = open_location(str(tmp_path), StorageOptions(own_links=own_links))
        fs.read_bytes(f"{path}/f")

        def fails(_: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        with monkeypatch.context() as patch:
            patch.setattr(os, "fstat", fails)
            for read in (fs.read_bytes, fs.open_input):
                with pytest.raises(StorageError, match=f"cannot read {path}/f: Input/output error"):
                    read(f"{path}/f")
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208

    def test_a_file_that_is_read_piece_by_piece(self, tmp_path: Path) -> None:
        (tmp_path / "f").write_bytes(b"x" * 100)

        reads: list[Callable[[Any], object]] = [
            lambda file: file.read(),
            lambda file: file.read(10),
            lambda file: file.readline(),
            lambda file: file.readinto(bytearray(10)),
        ]
        for read in reads:
            with FS.open_input(str(tmp_path / "f")) as file:
                directory = os.open(tmp_path, os.O_RDONLY)
                os.dup2(directory, file.fileno())  # of which nothing can be read
                os.close(directory)
                with pytest.raises(NotFoundError, match=f"cannot read {tmp_path}/f: it is a directory"):
                    read(file)
