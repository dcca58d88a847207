"""The step of the stores that repairs rest on: a file in the place of another, at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.repairing import FS

from acidctl.base.errors import NotFoundError, StorageError
from acidctl.storage.port import FileSystem
from acidctl.storage.registry import open_location


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileSystem, str]:
    url = str(tmp_path) if request.param == "local" else f"memory://replace/{tmp_path.name}"
    fs, path = open_location(url)
    fs.make_dirs(path)
    fs.write_bytes(f"{path}/new", b"new")
    fs.write_bytes(f"{path}/old", b"the old one")
    fs.make_dirs(f"{path}/folder")
    return fs, path


def test_file_takes_the_place_of_another(place: tuple[FileSystem, str]) -> None:
    fs, path = place
    fs.replace(f"{path}/new", f"{path}/old")
    assert fs.read_bytes(f"{path}/old") == b"new"
    assert [entry.path for entry in fs.list_dir(path).entries] == ["folder", "old"]


@pytest.mark.parametrize(
    ("source", "target"), [("new", "nothing"), ("nothing", "old"), ("new", "folder"), ("folder", "old")]
)
def test_only_a_file_that_is_there(source: str, target: str, place: tuple[FileSystem, str]) -> None:
    fs, path = place
    with pytest.raises(NotFoundError):
        fs.replace(f"{path}/{source}", f"{path}/{target}")
    assert (fs.read_bytes(f"{path}/new"), fs.read_bytes(f"{path}/old")) == (b"new", b"the old one")


def test_hadoops_checksum_of_the_old_file_goes(tmp_path: Path) -> None:
    """Hadoop refuses a file that differs from its checksum."""
    for name in ("old", "new"):
        (tmp_path / name).write_text(name)
    (tmp_path / ".old.crc").write_bytes(b"crc\0of the old one")
    FS.replace(str(tmp_path / "new"), str(tmp_path / "old"))
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_replace_on_an_object_store_is_refused() -> None:
    fs, path = open_location("s3://bucket/t", {"anon": "true"})
    with pytest.raises(StorageError, match="cannot rename"):
        fs.replace(f"{path}/a", f"{path}/b")
