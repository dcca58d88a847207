"""Repairs on a real NameNode: files are replaced in one step, races have one winner, undoing brings all back."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from support.files.acid_files import insert, write_by_pyorc
from support.repairing import streamed
from support.servers.hdfs_server import HdfsServer
from support.tables import without_log

from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import KEY_INDEX, read_tail
from acidctl.storage.registry import open_location

pytestmark = [pytest.mark.server, pytest.mark.in_turn("hdfs")]
DELTA = "delta_0000001_0000001_0000"


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "acidctl", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def acidctl(*arguments: str) -> tuple[int, str, str]:
    process = start(*arguments)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def tree(url: str) -> dict[str, bytes]:
    fs, path = open_location(url)
    entries = fs.list_tree(path).entries
    return {e.path: fs.read_bytes(f"{path}/{e.path}") for e in entries if not e.is_dir and e.path[0] != "."}


@pytest.fixture
def table(hdfs: HdfsServer, tmp_path: Path) -> str:
    """One file without a key index, one of a dead streaming writer, one directory without a marker."""
    local = tmp_path / "t"
    write_by_pyorc(local / DELTA, [insert(1, row) for row in range(3)], metadata={KEY_INDEX: None}, marker=None)
    streamed(local / "delta_0000002_0000004" / "bucket_00000", [insert(2, 0)], [insert(3, 0)])
    url = f"webhdfs://root@{hdfs.authority}/test-{uuid.uuid4().hex}/orders"
    fs, path = open_location(url)
    for file in sorted(p for p in local.rglob("*") if p.is_file()):
        target = f"{path}/{file.relative_to(local)}"
        fs.make_dirs(target.rpartition("/")[0])
        fs.write_bytes(target, file.read_bytes())
    return url


def test_file_on_hdfs_is_repaired_and_undone(table: str) -> None:
    before = tree(table)
    rows = acidctl("cat", "--row-id", table)[1]
    for kind in ("key-index", "flush-length", "version-file"):
        force = () if kind == "key-index" else ("--force",)
        status, out, err = acidctl("repair", "--only", kind, "--yes", *force, "-o", "jsonl", table)
        assert status == 0, err
        assert json.loads(out)["result"] == "repaired"
        assert acidctl("cat", "--row-id", table)[1] == rows
    fs, path = open_location(table)
    assert read_tail(ByteSource(fs, f"{path}/{DELTA}/bucket_00000")).key_index() == [(1, 536870912, 2)]
    assert acidctl("validate", "--deep", table)[0] == 0
    for _ in range(3):
        status, _, err = acidctl("restore", table)
        assert status == 0, err
    assert tree(table) == before
    assert acidctl("cat", "--row-id", table)[1] == rows
    assert {name[0] for name in without_log(entry.path for entry in fs.list_dir(path).entries)} == {"d"}


def test_of_several_repairs_at_once_one_wins(table: str) -> None:
    """One wins; the others say so, or find nothing left to do."""
    racers = [start("repair", "--only", "key-index", "--yes", "-o", "jsonl", table) for _ in range(3)]
    ended = [(*racer.communicate(timeout=300), racer.returncode) for racer in racers]
    assert {status for _, _, status in ended} <= {0, 9}, ended
    runs = [json.loads(out).get("run") for out, _, status in ended if status == 0]
    assert len([run for run in runs if run]) == 1, ended
    assert len(acidctl("restore", "--list", "-o", "jsonl", table)[1].splitlines()) == 1


def test_a_file_is_replaced_in_one_step(table: str) -> None:
    fs, path = open_location(table)
    fs.write_bytes(f"{path}/new", b"new")
    fs.write_bytes(f"{path}/old", b"the old one")
    fs.replace(f"{path}/new", f"{path}/old")
    assert fs.read_bytes(f"{path}/old") == b"new"
    assert not fs.exists(f"{path}/new")
