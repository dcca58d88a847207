"""Compaction on S3, where nothing can be renamed: the same files as on a disk, and readers who never see less."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Result
from support.compacting import copy_table, run_compaction
from support.made.objects import table_of_buckets
from support.tables import CLEAN_NOW, json_rows, without_log

import acidctl as library
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import StorageError
from acidctl.location.change.lock import LOCK
from acidctl.location.snapshot import take_snapshot
from acidctl.rows.scan.scan import Scan
from acidctl.storage.fsspec_fs import FsspecFileSystem
from acidctl.storage.registry import open_location

pytestmark = pytest.mark.server

Command = Callable[..., Result]

COMPACT = ("compact", "--assume-committed=0s", "--engine", "local")


class Place:
    """A folder of a bucket, for one test."""

    def __init__(self, bucket: str, options: dict[str, str]) -> None:
        self.url = f"s3://{bucket}/test-{uuid.uuid4().hex}"
        self.storage = options
        self.options = [part for key, value in options.items() for part in ("--set", f"storage.{key}={value}")]

    def upload(self, table: Path, name: str = "t") -> str:
        fs, root = open_location(f"{self.url}/{name}", self.storage)
        for path in table.rglob("*"):
            if path.is_file():
                fs.write_bytes(f"{root}/{path.relative_to(table).as_posix()}", path.read_bytes())
        return f"{self.url}/{name}"

    def rows(self, url: str) -> list[str]:
        return rows_of(url, self.storage)

    def files(self, url: str) -> dict[str, bytes]:
        fs, root = open_location(url, self.storage)
        entries = [entry.path for entry in fs.list_tree(root).entries if not entry.is_dir]
        return {path: fs.read_bytes(f"{root}/{path}") for path in without_log(entries)}


@pytest.fixture
def place(bucket: str, s3_options: dict[str, str]) -> Place:
    return Place(bucket, s3_options)


def inserts_only(table: Path) -> Path:
    """A table whose minor compaction makes one file."""
    table_of_buckets(table, 1)
    shutil.rmtree(table / "delete_delta_0000003_0000003_0000")
    return table


def rows_of(url: Path | str, storage: dict[str, str] | None = None) -> list[str]:
    scan = Scan(take_snapshot(*open_location(str(url), storage)), row_id=True)
    return sorted(json.dumps(row) for row in json_rows(scan))


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_the_same_files_as_on_a_disk(
    acidctl: Command,
    place: Place,
    tmp_path: Path,
    kind: CompactionKind,
) -> None:
    table = table_of_buckets(tmp_path / "t", 1) if kind is CompactionKind.MAJOR else inserts_only(tmp_path / "t")
    url, copy = place.upload(table), copy_table(table, tmp_path / "copy")
    assert run_compaction(copy, kind)
    done = acidctl(*COMPACT, f"--{kind.value}", "--verify", "full", "-o", "jsonl", *place.options, url)
    assert done.status == 0, done.err
    (name,) = done.json()["outputs"]
    assert place.files(url) == {str(path.relative_to(copy)): path.read_bytes() for path in copy.rglob("*/*")}
    rows = place.rows(url)
    assert rows == rows_of(copy)
    cleaned = acidctl(*CLEAN_NOW, "--no-trash", *place.options, url)
    assert cleaned.status == 0, cleaned.err
    assert {path.partition("/")[0] for path in place.files(url)} == {name}
    assert place.rows(url) == rows


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_a_reader_all_the_while(
    acidctl: Command,
    place: Place,
    tmp_path: Path,
    kind: CompactionKind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody reads again and again, also between any two of the copies, and never sees other rows."""
    table = table_of_buckets(tmp_path / "t", 1) if kind is CompactionKind.MAJOR else inserts_only(tmp_path / "t")
    url = place.upload(table)
    rows = place.rows(url)
    reads, is_over, copy = [rows], threading.Event(), FsspecFileSystem.copy

    def read() -> None:
        while not is_over.is_set():
            found = library.open_table(url, storage_options=place.storage).scan(row_id=True).to_table()
            reads.append(sorted(json.dumps(row, sort_keys=True) for row in found.to_pylist()))

    def slowly(self: FsspecFileSystem, source: str, target: str) -> None:
        copy(self, source, target)
        before = len(reads)
        while len(reads) < before + 2 and reader.is_alive():  # one that began afterwards
            time.sleep(0.01)

    monkeypatch.setattr(FsspecFileSystem, "copy", slowly)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        done = acidctl(*COMPACT, f"--{kind.value}", *place.options, url)
    finally:
        is_over.set()
        reader.join()
    assert done.status == 0, done.err
    assert len(reads) > 5
    assert len({tuple(each) for each in reads[1:]}) == 1
    assert len(reads[1]) == len(rows)
    assert place.rows(url) == rows


def test_several_buckets_are_refused_without_consent_to_copies(acidctl: Command, place: Place, tmp_path: Path) -> None:
    url = place.upload(table_of_buckets(tmp_path / "t", 3))
    rows, before = place.rows(url), place.files(url)
    for kind in ("--major", "--minor"):
        refused = acidctl(*COMPACT, kind, *place.options, url)
        assert refused.status == 7
        assert f"cannot compact {url} while it is read" in refused.err
        assert "--offline" in refused.err
        assert place.files(url) == before
    done = acidctl(*COMPACT, "--minor", "--offline", "-o", "jsonl", *place.options, url)
    assert done.json()["outputs"] == ["delta_0000001_0000003", "delete_delta_0000001_0000003"]
    assert place.rows(url) == rows
    done = acidctl(*COMPACT, "--major", "--visibility-txn", "9", "-o", "jsonl", *place.options, url)
    assert done.json()["outputs"] == ["base_0000003_v0000009"]
    assert place.rows(url) == rows
    assert acidctl(*CLEAN_NOW, "--no-trash", "--assume-committed=0s", *place.options, url).status == 0
    assert {path.partition("/")[0] for path in place.files(url)} == {"base_0000003_v0000009"}
    assert place.rows(url) == rows


def test_partitions_above_thresholds_are_compacted(acidctl: Command, place: Place, tmp_path: Path) -> None:
    for day in (1, 2):
        place.upload(table_of_buckets(tmp_path / str(day), 1), f"t/day={day}")
    place.upload(table_of_buckets(tmp_path / "3", 2), "t/day=3")
    url = f"{place.url}/t"
    done = acidctl(
        "compact",
        "--assume-committed=0s",
        "--engine",
        "local",
        "--auto",
        "--min-deltas",
        "2",
        "-o",
        "jsonl",
        *place.options,
        url,
    )
    assert done.status == 7
    assert [line["result"] for line in done.lines()] == ["failed", "compacted", "compacted"]
    assert not [path for path in place.files(url) if "_tmp" in path or LOCK in path]


def test_one_that_died_half_way_is_finished(
    acidctl: Command,
    place: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = place.upload(table_of_buckets(tmp_path / "t", 2))
    rows, copy, remove = place.rows(url), FsspecFileSystem.copy, FsspecFileSystem.remove_tree
    compact = (*COMPACT, "--major", "--offline", *place.options, url)

    def fails(self: FsspecFileSystem, source: str, target: str) -> None:
        if target.endswith("bucket_00001"):
            raise StorageError("no answer")
        copy(self, source, target)

    def kept(self: FsspecFileSystem, path: str) -> None:
        if not path.endswith(LOCK):
            raise StorageError("no answer")
        remove(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(FsspecFileSystem, "copy", fails)
        patch.setattr(FsspecFileSystem, "remove_tree", kept)
        died = acidctl(*compact)
    assert died.status == 6
    assert "base_0000003/bucket_00000 appeared, and what belongs to it did not" in died.err
    for command in (CLEAN_NOW, ("compact", "--assume-committed=0s", "--major", "--dry-run")):
        assert "interrupted while it was published" in acidctl(*command, *place.options, url).err
    assert "V11" in acidctl("validate", *place.options, url).out
    done = acidctl(*compact)
    assert "finished an interrupted compaction: base_0000003" in done.err
    assert done.status == 0
    assert place.rows(url) == rows
    assert not [path for path in place.files(url) if "_tmp" in path or LOCK in path]


def test_of_three_compactions_at_once_one_wins(place: Place, tmp_path: Path) -> None:
    """One wins; the others say so, or find nothing left to do."""
    url = place.upload(table_of_buckets(tmp_path / "t", 1))
    rows = place.rows(url)
    command = [sys.executable, "-m", "acidctl", *COMPACT, "--major", "-o", "jsonl", *place.options, url]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    ended = [(*racer.communicate(timeout=300), racer.returncode) for racer in racers]
    results = [json.loads(out)["result"] for out, _, _ in ended]
    assert results.count("compacted") == 1, ended
    for (_, err, status), result in zip(ended, results, strict=True):
        assert status == {"compacted": 0, "nothing-to-do": 0, "failed": 9}[result], err
    assert place.rows(url) == rows
    assert not [path for path in place.files(url) if "_tmp" in path or LOCK in path]


def test_a_copy_has_a_condition(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 itself says no, should a file have come since the look; moto does not know that of copies."""
    import s3fs

    fs, root = open_location(place.url, place.storage)
    fs.write_bytes(f"{root}/a", b"a")
    sent, call = [], s3fs.S3FileSystem._filter_kwargs

    def filtered(self: object, method: Callable[..., object], values: dict[str, object]) -> dict[str, object]:
        found: dict[str, object] = call(self, method, values)
        sent.append((method.__name__, found.get("IfNoneMatch")))
        return found

    monkeypatch.setattr(s3fs.S3FileSystem, "_filter_kwargs", filtered)
    fs.copy(f"{root}/a", f"{root}/b")
    assert ("copy_object", "*") in sent


def test_copy_in_parts_is_whole(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for what is larger than 5 GB."""
    monkeypatch.setattr("s3fs.core.MANAGED_COPY_THRESHOLD", 1 << 20)
    fs, root = open_location(place.url, place.storage)
    data = bytes(range(256)) * (9 << 12)
    with fs.open_output(f"{root}/a") as sink:
        sink.write(data)
    fs.copy(f"{root}/a", f"{root}/b")
    assert fs.read_bytes(f"{root}/b") == data


@pytest.mark.spark
def test_spark_compacts_to_the_same_rows(acidctl: Command, place: Place, tmp_path: Path) -> None:
    url = place.upload(table_of_buckets(tmp_path / "t", 2))
    rows = place.rows(url)
    done = acidctl(
        "compact",
        "--assume-committed=0s",
        "--major",
        "--offline",
        "--master",
        "local[2]",
        "-o",
        "jsonl",
        *place.options,
        url,
    )
    assert done.status == 0, done.err
    assert done.json()["outputs"] == ["base_0000003"]
    assert place.rows(url) == rows
