"""How often a remote store is asked for the ends of files, and for all of a table."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import B0, write_acid
from support.tables import json_rows

from acidctl.base.errors import NotFoundError
from acidctl.location.snapshot import take_snapshot
from acidctl.rows.scan.event_dump import event_files_at
from acidctl.rows.scan.scan import Scan
from acidctl.storage.hdfs.filesystem import HdfsFileSystem
from acidctl.storage.local.filesystem import LocalFileSystem
from acidctl.storage.port import FileSystemSpec
from acidctl.storage.remote import END, fetch_tails


class Disk:
    """An HDFS client over a folder, which writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def status(self, path: str, doing: str) -> dict[str, Any]:
        self.asked.append(("status", path))
        return self._status(path)

    def _status(self, path: str) -> dict[str, Any]:
        if not Path(path).exists():
            raise NotFoundError(f"cannot look at {path}")
        info = Path(path).stat()
        kind = "DIRECTORY" if Path(path).is_dir() else "FILE"
        return {"type": kind, "length": info.st_size, "modificationTime": info.st_mtime * 1000}

    def list_status(self, path: str) -> list[dict[str, Any]]:
        self.asked.append(("list", path))
        return [self._status(str(child)) | {"pathSuffix": child.name} for child in Path(path).iterdir()]

    def read(self, path: str, offset: int, length: int) -> bytes:
        self.asked.append(("read", path))
        if not Path(path).exists():
            raise NotFoundError(f"cannot read {path}")
        return Path(path).read_bytes()[offset : offset + length]

    def open_reader(self, path: str) -> tuple[int, Callable[[int, int], bytes]]:
        size = self.status(path, "read")["length"]
        return size, lambda start, end: self.read(path, start, end - start)

    def rename(self, source: str, target: str) -> bool:
        Path(source).rename(target)
        return True

    def count(self, kind: str) -> int:
        return sum(one == kind for one, _ in self.asked)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    client = Disk()
    monkeypatch.setattr("acidctl.storage.hdfs.filesystem._client", lambda spec: client)
    return client


@pytest.fixture
def fs(disk: Disk) -> HdfsFileSystem:
    return HdfsFileSystem(FileSystemSpec("webhdfs", (), "nn:9870"))


def end_of(fs: HdfsFileSystem, path: str, size: int) -> bytes:
    return fs.read_bytes(path, max(0, size - END), min(END, size))


@pytest.mark.parametrize("size", [10, END, 3 * END])
def test_an_end_is_read_once(fs: HdfsFileSystem, disk: Disk, tmp_path: Path, size: int) -> None:
    path = str(tmp_path / "f")
    Path(path).write_bytes(os.urandom(size))
    fs.list_tree(str(tmp_path))
    found = {end_of(fs, path, size) for _ in range(3)}
    assert found == {Path(path).read_bytes()[-END:]}
    assert disk.count("read") == 1
    fs.stat(path)
    fs.list_dir(str(tmp_path))
    end_of(fs, path, size)
    assert disk.count("read") == 1


def test_a_file_that_changed_is_read_again(fs: HdfsFileSystem, disk: Disk, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    os.utime(path, (1, 1))
    for look in (lambda: fs.list_tree(str(tmp_path)), lambda: fs.list_dir(str(tmp_path)), lambda: fs.stat(str(path))):
        path.write_bytes(b"old")
        os.utime(path, (1, 1))
        look()
        assert end_of(fs, str(path), 3) == b"old"
        path.write_bytes(b"new")
        os.utime(path, (2, 2))
        look()
        assert end_of(fs, str(path), 3) == b"new"


def test_what_was_renamed_is_read_again(fs: HdfsFileSystem, disk: Disk, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode())
        os.utime(tmp_path / name, (1, 1))
    fs.list_tree(str(tmp_path))
    assert end_of(fs, f"{tmp_path}/a", 1) == b"a"
    fs.rename(f"{tmp_path}/a", f"{tmp_path}/c")
    fs.rename(f"{tmp_path}/b", f"{tmp_path}/a")
    fs.list_tree(str(tmp_path))
    assert end_of(fs, f"{tmp_path}/a", 1) == b"b"


@pytest.mark.parametrize("first", ["tree", "parent"])
@pytest.mark.parametrize("then", ["tree", "parent"])
def test_what_has_gone_since_is_not_found(
    fs: HdfsFileSystem, disk: Disk, tmp_path: Path, first: str, then: str
) -> None:
    looks = {"tree": lambda: fs.list_tree(str(tmp_path)), "parent": lambda: fs.list_dir(f"{tmp_path}/d")}
    (tmp_path / "d").mkdir()
    path = tmp_path / "d" / "f"
    path.write_bytes(b"x")
    looks[first]()
    assert end_of(fs, str(path), 1) == b"x"
    path.unlink()
    looks[then]()
    with pytest.raises(NotFoundError):
        end_of(fs, str(path), 1)


def test_what_was_never_listed_and_other_ranges_are_always_read(fs: HdfsFileSystem, disk: Disk, tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    Path(path).write_bytes(bytes(100))
    for _ in range(2):
        end_of(fs, path, 100)
    fs.list_tree(str(tmp_path))
    for _ in range(2):
        fs.read_bytes(path, 0, 50)
    assert disk.count("read") == 4


def test_ends_are_fetched_side_by_side(fs: HdfsFileSystem, disk: Disk, tmp_path: Path) -> None:
    sizes = {f"{tmp_path}/{index}": index * 1000 for index in range(40)}
    for path, size in sizes.items():
        Path(path).write_bytes(os.urandom(size))
    fs.list_tree(str(tmp_path))
    fetch_tails(fs, [*sizes.items(), (f"{tmp_path}/gone", 7)])
    before = disk.count("read")
    for path, size in sizes.items():
        assert not size or end_of(fs, path, size) == Path(path).read_bytes()[-END:]
    assert disk.count("read") == before
    fetch_tails(LocalFileSystem(), [(path, 1 << 40) for path in sizes])  # nothing to do on the disk


def test_how_often_a_table_is_asked_for(fs: HdfsFileSystem, disk: Disk, tmp_path: Path) -> None:
    """Ten small files: their ends once each, and each one's rows in one more piece."""
    for write_id in range(1, 11):
        path = tmp_path / f"delta_{write_id}_{write_id}_0" / "bucket_00000"
        write_acid(path, *((0, write_id, B0, row, write_id, (row, row)) for row in range(3)))
    snapshot = take_snapshot(fs, str(tmp_path))
    assert disk.count("list") == 11
    assert disk.count("status") == 0
    assert len(json_rows(Scan(snapshot, row_id=True))) == 30
    assert disk.count("status") == 0
    assert disk.count("read") <= 20, disk.asked
    disk.asked.clear()
    (file,) = event_files_at(fs, f"{tmp_path}/delta_1_1_0/bucket_00000")
    with file.open() as events:
        assert events is not None
    assert disk.count("status") <= 2
    assert disk.count("read") == 0  # its end is known by now
