"""What is mounted inside a table is not the table's: it is never emptied, and said before anything else is removed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from acidctl.storage.local import filesystem
from acidctl.storage.local.filesystem import LocalFileSystem, refuse_mounts
from acidctl.storage.local.rooted_directory import held

REMOVE = """
import sys
from acidctl.base.errors import RefusedError
from acidctl.storage.options import StorageOptions
from acidctl.storage.registry import open_location
if sys.argv[1] == "old":
    from acidctl.storage.local import filesystem
    filesystem._DESCRIPTORS = "/nowhere"
for guarded, name in [(guarded, name) for guarded in (True, False) for name in sys.argv[3:]] + [(True, "plain")]:
        fs, path = open_location(sys.argv[2], StorageOptions(own_links=guarded))
        try:
            fs.remove_tree(path + "/" + name)
            print(name, "removed")
        except RefusedError as error:
            print(name, "refused", error.what.removeprefix("will not remove " + path + "/"), error.why)
"""


def mounted(tmp_path: Path, *line: str) -> str:
    """What a program prints that has another directory, and a file system of its own, mounted inside a table."""
    mount = f"mount --bind {tmp_path}/precious {tmp_path}/t/delta && mount -t tmpfs none {tmp_path}/t/x/y"
    script = f'{mount} && touch {tmp_path}/t/x/y/held && "$@" && ls {tmp_path}/t/x/y'
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(tmp_path)], check=False).returncode:
        pytest.skip("nothing may be mounted here, in a namespace of its own neither")
    command = ["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, "-c", REMOVE, *line]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for name in ("precious", "t/delta", "t/x/first", "t/x/y", "t/plain/below"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "precious" / "data").write_bytes(b"data")
    (tmp_path / "t" / "x" / "first" / "file").write_bytes(b"file")
    return tmp_path / "t"


@pytest.mark.parametrize("kernel", ["new", "old"])
def test_mount_points_are_refused_before_anything_goes(table: Path, kernel: str) -> None:
    """By number of mount; without /proc by device, which a bind mount has in common with the rest."""
    names = ["delta", "x"] if kernel == "new" else ["x"]
    why = "it is a mount point: what is mounted there would be deleted"
    expected = [f"delta refused delta {why}"] if kernel == "new" else []
    expected += [f"x refused x/y {why}"]
    assert mounted(table.parent, kernel, str(table), *names).splitlines() == [*expected * 2, "plain removed", "held"]
    assert (table.parent / "precious" / "data").read_bytes() == b"data"
    assert (table / "x" / "first" / "file").exists()
    assert not (table / "plain").exists()


def test_links_in_what_is_removed_are_no_mount_points(table: Path) -> None:
    (table / "plain" / "link").symlink_to("/proc")
    (table / "plain" / "loop").symlink_to("loop")
    LocalFileSystem().remove_tree(str(table / "plain"))
    assert not (table / "plain").exists()


def test_relative_path_has_no_mounts_to_refuse(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table)
    refuse_mounts("x", "x", None)


def test_a_kernel_without_numbers_of_mounts_shows_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fdinfo").mkdir()
    monkeypatch.setattr(filesystem, "_DESCRIPTORS", str(tmp_path / "fdinfo"))
    found = []
    for path in ("/proc", str(tmp_path)):
        with held(os.open(path, os.O_PATH)) as descriptor:
            (tmp_path / "fdinfo" / str(descriptor)).write_text("pos:\t0\nflags:\t02\n")
            found.append(filesystem._mount_of(descriptor))
    assert found[0] != found[1]
    assert "" not in found
